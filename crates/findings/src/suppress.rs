//! Findings silenced in the source: `// caulk-ignore[rule]: reason`.
//!
//! ```c
//! // caulk-ignore[memory-leak]: the cache lives as long as the process
//! static_cache = malloc(n);              // line above the allocation
//! return -1; /* caulk-ignore: see above */   // same line as the loss
//! ```
//!
//! A comment beside code speaks for its own line. A comment on lines of its own
//! speaks for the statement that follows, up to the line that ends it. Several
//! rules are separated by commas; no rule means every rule. It silences a
//! finding whose allocation or whose error lies on a line it speaks for.
//!
//! # Invariants
//! - Every finding comes back exactly once, in order: kept or suppressed.
//! - A comment is only read where a C compiler sees a comment: not in strings.
//! - A comment that silenced nothing is reported: it is out of date, or it hides
//!   a mistake in the rule's name.
//!
//! # Known imprecision
//! - Comments under `#if 0` are read like any other.
//! - A comment without a rule that silences a finding of a rule that is turned
//!   off counts as used only if the finding is passed in: filter rules afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Finding, Place, Rule, SourceProvider};

mod comments;
use comments::{Marker, markers};

/// What came of the suppressions in the source.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    pub kept: Vec<Finding>,
    pub suppressed: Vec<Suppressed>,
    /// Sorted by place.
    pub issues: Vec<SuppressionIssue>,
}

/// A finding that a comment silenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppressed {
    pub finding: Finding,
    /// The comment.
    pub place: Place,
    /// Empty if the comment gives none.
    pub reason: String,
}

/// What is wrong with a suppression comment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuppressionProblem {
    /// It silences nothing.
    Unused,
    /// It does not say why.
    NoReason,
    /// It names a rule that does not exist.
    UnknownRule(String),
}

/// A suppression comment that needs a person's attention.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SuppressionIssue {
    pub place: Place,
    pub problem: SuppressionProblem,
}

impl SuppressionIssue {
    /// One sentence for people.
    pub fn message(&self) -> String {
        match &self.problem {
            SuppressionProblem::Unused => "this `caulk-ignore` silences nothing; remove it".to_owned(),
            SuppressionProblem::NoReason => {
                "this `caulk-ignore` gives no reason; write `caulk-ignore[rule]: reason`".to_owned()
            }
            SuppressionProblem::UnknownRule(name) => {
                let known: Vec<&str> = Rule::ALL.into_iter().map(Rule::id).collect();
                format!("there is no rule `{name}`; the rules are {}", known.join(", "))
            }
        }
    }
}

/// Takes out the findings that a comment in the source silences. `files` are the
/// files whose comments must all be of use; the files of the findings are read too.
pub fn apply_suppressions(findings: Vec<Finding>, sources: &dyn SourceProvider, files: &[String]) -> Suppressions {
    let mut paths: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    for finding in &findings {
        paths.extend([finding.source.file.as_str(), finding.sink.file.as_str()]);
    }
    let mut by_file: BTreeMap<String, Vec<(Marker, bool)>> = BTreeMap::new();
    for path in paths {
        let found = sources.text(path).map(|text| markers(&text)).unwrap_or_default();
        if !found.is_empty() {
            by_file.insert(path.to_owned(), found.into_iter().map(|marker| (marker, false)).collect());
        }
    }

    let mut result = Suppressions::default();
    for finding in findings {
        match silence(&finding, &mut by_file) {
            Some((place, reason)) => result.suppressed.push(Suppressed { finding, place, reason }),
            None => result.kept.push(finding),
        }
    }
    for (file, markers) in &by_file {
        for (marker, used) in markers {
            let issue = |problem| SuppressionIssue { place: place_of(file, marker), problem };
            result.issues.extend(marker.unknown.iter().cloned().map(SuppressionProblem::UnknownRule).map(issue));
            if !used && (marker.unknown.is_empty() || !marker.rules.is_empty()) {
                result.issues.push(issue(SuppressionProblem::Unused));
            } else if marker.reason.is_empty() {
                result.issues.push(issue(SuppressionProblem::NoReason));
            }
        }
    }
    result.issues.sort();
    result
}

/// Marks every comment that speaks for the finding as used; the first one gives the reason.
fn silence(finding: &Finding, by_file: &mut BTreeMap<String, Vec<(Marker, bool)>>) -> Option<(Place, String)> {
    let mut first = None;
    for place in [&finding.source, &finding.sink] {
        for (marker, used) in by_file.get_mut(&place.file).into_iter().flatten() {
            if marker.covers(place.line) && marker.silences(finding.rule) {
                *used = true;
                first.get_or_insert_with(|| (place_of(&place.file, marker), marker.reason.clone()));
            }
        }
    }
    first
}

fn place_of(file: &str, marker: &Marker) -> Place {
    Place { file: file.to_owned(), line: marker.line, column: marker.column, ..Place::default() }
}
