//! The html report as a folder, and the browser that shows it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use caulk_report::{HtmlOptions, Report, RunReport};

use crate::exit;

/// Told before minutes of compiling.
pub(super) fn check_options(is_html: bool, output: Option<&Path>, open: bool) -> Result<()> {
    if is_html && output.is_none_or(|output| output == Path::new("-")) {
        bail!("--format html writes a folder of pages: name it with -o FOLDER");
    }
    if open && !is_html {
        bail!("--open is for --format html");
    }
    Ok(())
}

/// The runs to show, told before minutes of compiling that one cannot be read.
pub(super) fn runs(is_html: bool, files: &[PathBuf]) -> Result<Option<RunReport>> {
    if files.is_empty() {
        return Ok(None);
    }
    if !is_html {
        bail!("--runtime is for --format html; `caulk fix --from` answers what runs lost in every format");
    }
    let mut runs = RunReport::default();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        runs.add(&text).with_context(|| format!("cannot use {}", file.display()))?;
    }
    Ok(Some(runs))
}

/// Writes the folder and says which page to open, or opens it.
pub(super) fn write(report: &Report<'_>, options: &HtmlOptions, folder: Option<&Path>, open: bool) -> Result<()> {
    let folder = folder.unwrap_or(Path::new("."));
    let page = caulk_report::write_html(report, options, folder)
        .with_context(|| format!("cannot write the report to {}", folder.display()))?;
    exit::say(&format!("{}\n", page.display()));
    if open {
        // What the opener says of itself is no part of the result.
        let opener = Command::new("xdg-open").arg(&page).stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !opener.is_ok_and(|status| status.success()) {
            exit::say("warning: `xdg-open` could not open a browser; open the page above yourself\n");
        }
    }
    Ok(())
}
