//! The rules of the house that no compiler checks.
//!
//! Each rule is one function from the files of the repository to complaints, so
//! that the tests can hand it made-up files. The rules:
//!
//! - [`rooms`]: dependencies between crates point one way only; LLVM, z3 and
//!   libclang stay each behind one door.
//! - [`code`]: length of files, module docs, where `unsafe` and printing may be,
//!   words that do not belong into a finished tree.
//! - [`papers`]: the documents exist, name every room, and their links lead somewhere.
//! - [`fixtures`]: names that sort and that belong to something.

use std::fmt;
use std::path::Path;
use std::process::Command;

mod code;
mod fixtures;
mod papers;
mod rooms;

/// One file of the repository: its path from the root with `/`, and its text (empty if it is not text).
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// One broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Complaint {
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    text: String,
}

impl Complaint {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// Runs every rule over the repository at `root`.
pub(crate) fn check(root: &Path) -> Result<Vec<Complaint>, String> {
    let files = repository_files(root)?;
    let mut complaints = Vec::new();
    complaints.extend(rooms::check(&files));
    complaints.extend(code::check(&files));
    complaints.extend(papers::check(&files));
    complaints.extend(fixtures::check(&files));
    complaints.sort();
    Ok(complaints)
}

/// What git tracks or would track: build output and caches are none of our business.
fn repository_files(root: &Path) -> Result<Vec<File>, String> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    if !listing.status.success() {
        return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim()));
    }
    let names = String::from_utf8(listing.stdout).map_err(|_| "a file name is not UTF-8".to_owned())?;
    let mut files = Vec::new();
    for path in names.split('\0').filter(|name| !name.is_empty()) {
        // Listed but gone: deleted in the work tree and not committed yet.
        let Ok(bytes) = std::fs::read(root.join(path)) else { continue };
        files.push(File { path: path.to_owned(), text: String::from_utf8(bytes).unwrap_or_default() });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

#[cfg(test)]
pub(crate) fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}
