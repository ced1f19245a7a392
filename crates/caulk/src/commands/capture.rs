//! `caulk capture -- make`: runs a build and records its compilers and linkers.

use std::os::unix::process::ExitStatusExt;

use anyhow::{Result, bail};

use crate::args::CaptureArgs;
use crate::exit::{self, Outcome};

/// Ends with the build's own exit code, so that it can stand in for the build in a script.
pub(super) fn run(args: &CaptureArgs) -> Result<Outcome> {
    let report = caulk_frontend::capture(&args.command, &args.folder)?;
    if let Some(note) = &report.note {
        exit::say(&format!("note: {note}\n"));
    }
    exit::say(&format!(
        "{} units recorded, {} in {}; {} programs and libraries\n",
        report.recorded,
        report.units,
        report.database.display(),
        report.link_units
    ));
    if !report.status.success() {
        exit::say(&format!("the build failed ({}); what it compiled before is recorded\n", report.status));
        // As shells have it for a build that was killed.
        let code = report.status.code().or_else(|| report.status.signal().map(|signal| 128 + signal));
        return Ok(Outcome::Child(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2)));
    }
    if report.units == 0 {
        bail!("the build compiled nothing; was everything up to date? Try `make clean` first");
    }
    Ok(Outcome::Clean)
}
