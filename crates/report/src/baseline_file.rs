//! The baseline as a file: sorted JSON, one entry a finding, made to be read in
//! a review and to merge well. No lines in it, so code may move.

use std::fmt;

use caulk_findings::{Baseline, BaselineEntry};
use serde::{Deserialize, Serialize};

const FORMAT: &str = "caulk-baseline";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    version: u32,
    findings: Vec<BaselineEntry>,
}

/// Why a baseline file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BaselineError {
    /// Not the JSON we write: what and where.
    Malformed { message: String, line: usize, column: usize },
    /// Written by a caulk with another shape of file.
    Version { found: u32 },
    /// Some other tool's JSON.
    Format { found: String },
}

impl fmt::Display for BaselineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaselineError::Malformed { message, line, column } => {
                write!(
                    f,
                    "not a baseline: {message} at line {line}, column {column}; write it anew with `--write-baseline`"
                )
            }
            BaselineError::Version { found } => {
                write!(
                    f,
                    "baseline version {found}, but this caulk reads {VERSION}; write it anew with `--write-baseline`"
                )
            }
            BaselineError::Format { found } => {
                write!(f, "`format` is `{found}`, not `{FORMAT}`: not a baseline of caulk")
            }
        }
    }
}

impl std::error::Error for BaselineError {}

/// The text of a baseline file.
pub fn render_baseline(baseline: &Baseline) -> String {
    let mut findings = baseline.entries.clone();
    findings.sort();
    let file = File { format: FORMAT.to_owned(), version: VERSION, findings };
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads what [`render_baseline`] wrote, also after hands edited it.
pub fn parse_baseline(text: &str) -> Result<Baseline, BaselineError> {
    let file: File = serde_json::from_str(text).map_err(|error| BaselineError::Malformed {
        message: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        line: error.line(),
        column: error.column(),
    })?;
    if file.format != FORMAT {
        return Err(BaselineError::Format { found: file.format });
    }
    if file.version != VERSION {
        return Err(BaselineError::Version { found: file.version });
    }
    let mut entries = file.findings;
    entries.sort();
    Ok(Baseline { entries })
}
