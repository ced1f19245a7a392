//! `--changed-since REV`: findings whose path touches a function that was changed.
//!
//!     git diff -U0 REV          @@ -10,2 +12,3 @@   lines 12 to 14 of the file as it is now
//!     load() is lines 8..=20    touched             its findings stay
//!     main() is lines 22..=40   not touched         its findings go
//!
//! # Known imprecision
//! - A function ends at its last line of code: a change to the closing brace alone does not count.
//! - A change outside every function (a macro, a type) touches no function.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use caulk_findings::{Finding, Place};
use caulk_ir::{Function, Program, Unit};

/// Lines of the work tree that differ from a revision, by absolute path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedLines(BTreeMap<String, Vec<Change>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Lines that are new or different, both ends included.
    Lines(u32, u32),
    /// Something was removed after this line.
    RemovedAfter(u32),
    WholeFile,
}

impl Change {
    /// Does it touch the lines `first..=last`?
    fn touches(self, first: u32, last: u32) -> bool {
        match self {
            Change::Lines(from, to) => from <= last && first <= to,
            Change::RemovedAfter(line) => first <= line && line < last,
            Change::WholeFile => true,
        }
    }
}

impl ChangedLines {
    /// Asks git what changed since `revision` in the repository that `root` lies in.
    pub(crate) fn since(revision: &str, root: &Path) -> Result<ChangedLines> {
        let top = git(root, &["rev-parse", "--show-toplevel"])
            .context("--changed-since needs a git repository around the project")?;
        let top = top.trim_end();
        let commit =
            git(root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")]);
        let Ok(commit) = commit else { bail!("--changed-since: git knows no revision `{revision}`") };
        let options =
            ["-c", "core.quotePath=false", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-renames"];
        let arguments: Vec<&str> =
            options.into_iter().chain(["--src-prefix=a/", "--dst-prefix=b/", commit.trim_end(), "--"]).collect();
        let mut changed = parse_diff(&git(Path::new(top), &arguments)?, top);
        for file in git(Path::new(top), &["ls-files", "-z", "--others", "--exclude-standard"])?.split('\0') {
            if !file.is_empty() {
                changed.0.entry(format!("{top}/{file}")).or_default().push(Change::WholeFile);
            }
        }
        Ok(changed)
    }

    /// Keeps findings with a step, the source or the sink in a function that was changed.
    pub(crate) fn keep(&self, findings: Vec<Finding>, program: &Program) -> Vec<Finding> {
        let functions = self.functions(program);
        let touched = |place: &Place| {
            functions
                .get(place.file.as_str())
                .is_some_and(|ranges| ranges.iter().any(|&(first, last)| first <= place.line && place.line <= last))
        };
        let relevant = |finding: &Finding| {
            let steps = finding.steps.iter().map(|step| &step.place);
            [&finding.source, &finding.sink].into_iter().chain(steps).any(touched)
        };
        findings.into_iter().filter(relevant).collect()
    }

    /// Git knows files by their real path, a compile command perhaps through a link.
    fn of_file(&self, file: &str) -> Option<&Vec<Change>> {
        let real = || self.0.get(std::fs::canonicalize(file).ok()?.to_str()?);
        self.0.get(file).or_else(real)
    }

    /// Line ranges of changed functions, by file.
    fn functions<'p>(&self, program: &'p Program) -> BTreeMap<&'p str, Vec<(u32, u32)>> {
        let mut ranges: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
        let mut by_file: BTreeMap<&str, Option<&Vec<Change>>> = BTreeMap::new();
        for unit in program.units.iter() {
            for function in unit.functions.iter() {
                let Some((file, first, last)) = extent(unit, function) else { continue };
                let Some(changes) = by_file.entry(file).or_insert_with(|| self.of_file(file)) else { continue };
                if changes.iter().any(|change| change.touches(first, last)) {
                    ranges.entry(file).or_default().push((first, last));
                }
            }
        }
        ranges
    }
}

/// File, first and last line of a function.
fn extent<'u>(unit: &'u Unit, function: &Function) -> Option<(&'u str, u32, u32)> {
    let start = unit.locs.get(function.loc)?;
    let file = start.file?;
    let lines = function.insts.iter().filter_map(|inst| unit.locs.get(inst.loc));
    let last = lines.filter(|loc| loc.file == Some(file)).map(|loc| loc.line).max().unwrap_or(start.line);
    Some((unit.files.get(file)?, start.line, last.max(start.line)))
}

fn parse_diff(diff: &str, top: &str) -> ChangedLines {
    let mut changed = ChangedLines::default();
    let mut current: Option<String> = None;
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ ") {
            // Git ends a name that holds a space with a tab, and quotes what it cannot show plainly.
            let name = name.trim_end_matches('\t').trim_matches('"');
            current = name.strip_prefix("b/").map(|path| format!("{top}/{path}"));
        } else if let Some(hunk) = line.strip_prefix("@@ ")
            && let (Some(file), Some(change)) = (&current, parse_hunk(hunk))
        {
            changed.0.entry(file.clone()).or_default().push(change);
        }
    }
    changed
}

/// `-10,2 +12,3 @@ …`: the second pair is the file as it is now.
fn parse_hunk(hunk: &str) -> Option<Change> {
    let now = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    let (line, count) = match now.split_once(',') {
        Some((line, count)) => (line.parse().ok()?, count.parse().ok()?),
        None => (now.parse().ok()?, 1),
    };
    Some(if count == 0 { Change::RemovedAfter(line) } else { Change::Lines(line, line.checked_add(count)? - 1) })
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().context("cannot run git")?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.first().unwrap_or(&""), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_read() {
        let diff = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -3 +3,2 @@ int f(void)\n-a\n+b\n+c\n\
                    @@ -9,2 +10,0 @@\n-gone\n-gone\n--- a/old.c\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-x\n";
        let changed = parse_diff(diff, "/top");
        let expected = BTreeMap::from([("/top/x.c".to_owned(), vec![Change::Lines(3, 4), Change::RemovedAfter(10)])]);
        assert_eq!(changed, ChangedLines(expected));
    }

    #[test]
    fn a_change_touches_the_function_it_lies_in() {
        assert!(Change::Lines(3, 4).touches(4, 9));
        assert!(!Change::Lines(3, 4).touches(5, 9));
        assert!(Change::RemovedAfter(5).touches(5, 9));
        assert!(!Change::RemovedAfter(9).touches(5, 9), "after the last line of the function");
        assert!(!Change::RemovedAfter(4).touches(5, 9), "before the first");
    }
}
