//! `--validate COMMAND`: the user's own tests, on a copy of the project with the patches.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use caulk_repair::Repaired;

use super::Dropped;
use crate::exit;

/// Drops patches, the latest first, until the command passes.
pub(super) fn keep_passing(
    command: &str,
    root: &Path,
    mut repaired: Repaired,
    mut dropped: Dropped,
    again: &dyn Fn(&Dropped) -> Repaired,
) -> Result<Repaired> {
    loop {
        if passes(command, root, &repaired)? {
            return Ok(repaired);
        }
        let Some(last) = repaired.done.iter().rev().find(|done| done.after.is_some()) else {
            bail!("`{command}` fails without any patch");
        };
        exit::say(&format!("dropped, because `{command}` fails with it: {}\n", last.patch.title));
        dropped.insert(last.finding.fingerprint.0.clone(), format!("`{command}` fails with a patch"));
        repaired = again(&dropped);
    }
}

fn passes(command: &str, root: &Path, repaired: &Repaired) -> Result<bool> {
    let copy = tempfile::Builder::new().prefix("caulk-validate-").tempdir().context("no temporary folder")?;
    let copied = Command::new("cp").arg("-a").arg("--").arg(root.join(".")).arg(copy.path()).status();
    if !copied.context("cannot copy the project")?.success() {
        bail!("cannot copy {}", root.display());
    }
    for (path, _, new) in &repaired.files {
        let Ok(inside) = path.strip_prefix(root) else { continue };
        std::fs::write(copy.path().join(inside), new).context("cannot write the patched copy")?;
    }
    let mut run = Command::new("sh");
    run.arg("-c")
        .arg(command)
        .current_dir(copy.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(run.status().context("cannot run the tests")?.success())
}
