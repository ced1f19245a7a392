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

/// The problem, the path to it, why the patch is safe, and what was checked.
fn message(done: &Done) -> String {
    let Done { finding, patch, .. } = done;
    let plain = |text: &str| text.replace('`', "");
    let name =
        |file: &str| Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let what = finding.rule.id().replace('-', " ");
    let mut text = format!("{}: fix {what} of {}\n\n", finding.sink.function, plain(&finding.object));
    wrap(&mut text, "", &format!("{}:", sentence(&finding.message)));
    text.push('\n');
    for step in &finding.steps {
        wrap(&mut text, "  ", &format!("{}:{}: {}", name(&step.place.file), step.place.line, step.text));
    }
    text.push('\n');
    wrap(&mut text, "", &format!("{}. This is safe:", sentence(&patch.title)));
    text.push('\n');
    let assumed = finding.assumptions.iter().map(|assumed| format!("assumed: {assumed}"));
    for why in patch.why_safe.iter().cloned().chain(assumed) {
        wrap(&mut text, "- ", &why);
    }
    text
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Adds a paragraph of lines that fit into what `git log` shows.
fn wrap(text: &mut String, lead: &str, paragraph: &str) {
    const WIDTH: usize = 72;
    let mut line = lead.to_owned();
    let mut empty = true;
    for word in paragraph.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(lead.len());
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
