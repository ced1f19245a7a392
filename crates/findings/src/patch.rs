//! What repair has to say about one finding: a proven patch, or why there is none.
//!
//! The repair crate fills these in; report shows them as diffs, SARIF `fixes`
//! and pages. The edits and the diff say the same thing twice on purpose: tools
//! want positions, people and `git apply` want the diff.
//!
//! # Invariants
//! - `status` is `Fixed` exactly when `diff` and `edits` are not empty.
//! - Edits are against the text that was analysed, sorted by file and start, and
//!   do not overlap.

use serde::{Deserialize, Serialize};

use crate::Fingerprint;

/// How the attempt to repair one finding ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchStatus {
    /// Proved on the patched source.
    Fixed,
    /// No safe patch; the reason in words for the user.
    Refused { reason: String },
}

/// One replacement in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Absolute path.
    pub file: String,
    /// Byte range `start..end` in the file as it was analysed; equal for an insertion.
    pub start: u64,
    pub end: u64,
    /// Where `start` and `end` lie: lines and byte columns, both from 1.
    pub start_line: u32,
    pub start_column: u32,
    pub end_line: u32,
    pub end_column: u32,
    pub replacement: String,
}

/// The answer of repair to one finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    pub fingerprint: Fingerprint,
    pub status: PatchStatus,
    /// Name of the strategy, `release-before-exit`; empty if none was tried.
    pub strategy: String,
    /// One line: "release `buf` before the early return".
    pub title: String,
    /// Why the patch is safe, one argument a line.
    pub why_safe: Vec<String>,
    /// Unified diff with paths relative to the project.
    pub diff: String,
    pub edits: Vec<Edit>,
    /// For a refused finding: what was tried and why it was not good enough, "title: reason".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<String>,
}

impl Patch {
    /// The answer "no safe patch".
    pub fn refused(fingerprint: Fingerprint, reason: impl Into<String>) -> Self {
        Self {
            fingerprint,
            status: PatchStatus::Refused { reason: reason.into() },
            strategy: String::new(),
            title: String::new(),
            why_safe: Vec::new(),
            diff: String::new(),
            edits: Vec::new(),
            tried: Vec::new(),
        }
    }

    pub fn is_fixed(&self) -> bool {
        self.status == PatchStatus::Fixed
    }
}
