//! `--commit`: one commit for each finding, with a message for the maintainer.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use caulk_base::ContentHash;
use caulk_repair::{Done, Repaired};

pub(super) fn each(repaired: &Repaired, root: &Path) -> Result<()> {
    let files: Vec<&Path> = repaired.files.iter().map(|(path, ..)| path.as_path()).collect();
    if files.is_empty() {
        return Ok(());
    }
    let mut clean = git(root);
    let status = clean.args(["status", "--porcelain", "--"]).args(&files).output().context("cannot run git")?;
    if !status.status.success() {
        bail!("--commit needs a git repository: {}", String::from_utf8_lossy(&status.stderr).trim());
    }
    if !status.stdout.is_empty() {
        bail!("the files to be patched have changes that are not committed");
    }
    let mut now: Vec<(&Path, Vec<u8>)> =
        repaired.files.iter().map(|(path, old, _)| (path.as_path(), old.clone())).collect();
    for done in &repaired.done {
        let Some((path, after)) = &done.after else { continue };
        let Some(entry) = now.iter_mut().find(|entry| entry.0 == path) else { continue };
        caulk_source::write_atomically(path, ContentHash::of(&entry.1), after)?;
        entry.1.clone_from(after);
        let made = git(root).args(["commit", "-q", "-m", &message(done), "--"]).arg(path).output();
        let made = made.context("cannot run git")?;
        if !made.status.success() {
            bail!("git commit failed: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
    }
    Ok(())
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root);
    command
}

/// The problem, the path to it, and why the patch is safe.
fn message(done: &Done) -> String {
    let Done { finding, patch, .. } = done;
    let name =
        |file: &str| Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut text = format!(
        "{}: fix {} of {}\n\n",
        finding.sink.function,
        finding.rule.id().replace('-', " "),
        finding.object.replace('`', "")
    );
    text.push_str(&format!("{}.\n\nThe path:\n", finding.message));
    for step in &finding.steps {
        text.push_str(&format!("- {}:{}: {}\n", name(&step.place.file), step.place.line, step.text));
    }
    text.push_str(&format!("\nThe patch: {}.\nWhy it is safe:\n", patch.title));
    for why in &patch.why_safe {
        text.push_str(&format!("- {why}\n"));
    }
    for assumed in &finding.assumptions {
        text.push_str(&format!("- assumed: {assumed}\n"));
    }
    text
}
