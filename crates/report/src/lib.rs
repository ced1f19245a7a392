//! What people and tools see of a run: text, JSON, SARIF, annotations for code
//! hosts, and pages. The only room that serialises.
//!
//! Every output is a pure function of a [`Report`]: the findings, what repair
//! said of them, what was silenced, and a way to read the sources. A source file
//! that is gone means less is shown, never an error.
//!
//! # Invariants
//! - The same `Report` gives the same bytes.
//! - Paths below the root are shown relative to it, with `/`.
//! - Text from the user's program reaches a terminal without control characters
//!   and a page escaped.

mod baseline_file;
mod code_hosts;
mod disk;
mod dot;
mod explain;
mod html;
mod json;
mod level;
mod paths;
mod rule_help;
mod run_report;
mod sarif;
mod span;
mod stats;
mod summary;
mod text;
mod texts;
mod words;

use std::collections::BTreeMap;

use caulk_findings::{Finding, Findings, Fingerprint, Patch, SourceProvider, Suppressed, SuppressionIssue};

pub use baseline_file::{BaselineError, parse_baseline, render_baseline};
pub use code_hosts::{render_codeclimate, render_github};
pub use disk::DiskSources;
pub use dot::to_dot;
pub use explain::{explain_finding, explain_rule};
pub use html::{HtmlOptions, render_html, write_html};
pub use json::{JSON_VERSION, render_json};
pub use level::{Level, Levels};
pub use run_report::{RunReport, RunReportError, RunSite};
pub use sarif::render_sarif;
pub use stats::render_stats;
pub use summary::{closing_line, summary_line};
pub use text::{TextOptions, render_text};

/// Everything an output may want to show.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    /// What is reported: after suppressions and the baseline.
    pub findings: &'a Findings,
    /// What repair said, for any of the findings.
    pub patches: &'a [Patch],
    pub suppressed: &'a [Suppressed],
    pub issues: &'a [SuppressionIssue],
    /// Found again and muted by the baseline; `None` if there is no baseline.
    pub known: Option<&'a [Finding]>,
    /// What guarded builds of the program said of their runs.
    pub runs: Option<&'a RunReport>,
    /// The project's folder; absolute.
    pub root: &'a str,
    pub sources: &'a dyn SourceProvider,
    pub levels: Levels,
}

impl<'a> Report<'a> {
    /// A report of findings alone.
    pub fn new(findings: &'a Findings, root: &'a str, sources: &'a dyn SourceProvider) -> Self {
        Self {
            findings,
            patches: &[],
            suppressed: &[],
            issues: &[],
            known: None,
            runs: None,
            root,
            sources,
            levels: Levels::default(),
        }
    }

    fn patches_by_fingerprint(&self) -> BTreeMap<&'a Fingerprint, &'a Patch> {
        self.patches.iter().map(|patch| (&patch.fingerprint, patch)).collect()
    }
}
