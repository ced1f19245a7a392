//! What we could not know. Not an error: a value plus its gaps, and the report prints them.

use serde::{Deserialize, Serialize};

/// What kind of knowledge is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapKind {
    /// A translation unit did not compile or could not be read.
    Unit,
    /// Part of a function was not understood and was taken as unknown.
    Function,
    /// A limit was reached and the result degraded to "may".
    Limit,
    /// A cache entry or another file of ours was damaged and rebuilt.
    Cache,
}

/// One thing that was not looked at as closely as the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gap {
    pub kind: GapKind,
    /// What it concerns: a file, or `file: function`.
    pub place: String,
    /// What happened, in words for the user.
    pub reason: String,
}

impl Gap {
    pub fn new(kind: GapKind, place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { kind, place: place.into(), reason: reason.into() }
    }
}

/// A result together with what was left out of it.
#[derive(Clone, Debug, Default)]
pub struct Checked<T> {
    pub value: T,
    pub gaps: Vec<Gap>,
}
