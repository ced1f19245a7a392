//! Findings held against the cases.
//!
//!     finding                                    counts as
//!     right rule, source/sink/step in a bad one  that case's bad function found
//!     right rule, source or sink in a good one   that good function flagged
//!     right rule, in helpers only                elsewhere
//!     another rule                               other: Juliet's good functions do leak
//!                                                where the weakness is not a leak
//!
//! # Invariants
//! - A finding flags a good flow or finds a bad one, never both: a place in a good
//!   function wins, so that no finding is credited on the strength of a wrong path.

use std::collections::{BTreeMap, BTreeSet};

use crate::juliet::cases::{Role, Suite, case_of, role};
use crate::output::{Finding, Place};

pub(crate) struct Score {
    /// Each case with a bad function: was it found?
    bad: BTreeMap<String, bool>,
    /// Each good flow, `case:flow`: was it flagged?
    good: BTreeMap<String, bool>,
    pub other_rules: u64,
    /// Findings that touch neither, as `file:line`.
    pub elsewhere: Vec<String>,
}

pub(crate) fn score(suite: &Suite, rule: &str, findings: &[Finding]) -> Score {
    let mut score = Score {
        bad: suite.cases.iter().filter(|(_, case)| case.has_bad).map(|(name, _)| (name.clone(), false)).collect(),
        good: suite
            .cases
            .iter()
            .flat_map(|(name, case)| case.good.iter().map(move |flow| (key(name, flow), false)))
            .collect(),
        other_rules: 0,
        elsewhere: Vec::new(),
    };
    for finding in findings {
        if finding.rule == rule {
            score.count(finding);
        } else {
            score.other_rules += 1;
        }
    }
    score
}

impl Score {
    fn count(&mut self, finding: &Finding) {
        let ends = [&finding.source, &finding.sink];
        let steps = || finding.steps.iter().map(|step| &step.location);
        let mut good = flows(ends.into_iter());
        let bad: BTreeSet<String> = ends.into_iter().chain(steps()).filter_map(bad_case).collect();
        // Both ends in helpers: then the path says whom the finding is about.
        if good.is_empty() && bad.is_empty() {
            good = flows(steps());
        }
        if good.is_empty() && bad.is_empty() {
            self.elsewhere.push(format!("{}:{}", finding.sink.file, finding.sink.line));
        }
        if good.is_empty() {
            for case in bad {
                self.bad.insert(case, true);
            }
        }
        for flow in good {
            self.good.insert(flow, true);
        }
    }

    pub(crate) fn bad(&self) -> u64 {
        self.bad.len() as u64
    }

    pub(crate) fn found(&self) -> u64 {
        self.bad.values().filter(|found| **found).count() as u64
    }

    pub(crate) fn good(&self) -> u64 {
        self.good.len() as u64
    }

    pub(crate) fn flagged(&self) -> u64 {
        self.good.values().filter(|flagged| **flagged).count() as u64
    }

    pub(crate) fn missed(&self) -> Vec<&String> {
        self.bad.iter().filter(|(_, found)| !**found).map(|(case, _)| case).collect()
    }

    pub(crate) fn flagged_names(&self) -> Vec<&String> {
        self.good.iter().filter(|(_, flagged)| **flagged).map(|(flow, _)| flow).collect()
    }

    pub(crate) fn missed_by_variant(&self) -> Vec<(String, Vec<String>)> {
        by_variant(self.missed(), |name| name)
    }

    pub(crate) fn flagged_by_variant(&self) -> Vec<(String, Vec<String>)> {
        by_variant(self.flagged_names(), |name| name.split(':').next().unwrap_or(name))
    }
}

fn key(case: &str, flow: &str) -> String {
    format!("{case}:{flow}")
}

fn flows<'a>(places: impl Iterator<Item = &'a Place>) -> BTreeSet<String> {
    places
        .filter_map(|place| match role(&place.function) {
            // Blame on the caller of all flows is blame on a flow of its own.
            Role::Good(flow) => Some(key(&case_of(&place.file)?, if flow.is_empty() { "good" } else { &flow })),
            Role::Bad | Role::Helper => None,
        })
        .collect()
}

fn bad_case(place: &Place) -> Option<String> {
    if role(&place.function) == Role::Bad { case_of(&place.file) } else { None }
}

/// Groups names by the number they end in: Juliet's flow variant.
fn by_variant<'a>(names: Vec<&'a String>, case: impl Fn(&'a str) -> &'a str) -> Vec<(String, Vec<String>)> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        let variant = case(name).rsplit('_').next().unwrap_or_default().to_owned();
        groups.entry(variant).or_default().push(name.clone());
    }
    groups.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::juliet::cases::Case;
    use crate::output::Step;

    const CASE: &str = "CWE401_x__y_22";

    fn place(function: &str) -> Place {
        let file = if function == "printLine" { "/j/io.c".to_owned() } else { format!("/j/{CASE}a.c") };
        Place { file, line: 7, function: function.to_owned() }
    }

    fn finding(rule: &str, source: &str, sink: &str, steps: &[&str]) -> Finding {
        Finding {
            rule: rule.to_owned(),
            source: place(source),
            sink: place(sink),
            steps: steps.iter().map(|function| Step { location: place(function) }).collect(),
        }
    }

    fn scored(findings: &[Finding]) -> Score {
        let good = ["goodB2G", "goodG2B"].map(str::to_owned).into();
        let cases = [(CASE.to_owned(), Case { has_bad: true, good })].into();
        score(&Suite { cases, files: Vec::new(), flags: Vec::new() }, "memory-leak", findings)
    }

    #[test]
    fn a_bad_function_is_found_by_the_right_rule_only() {
        let score = scored(&[finding("memory-leak", "CWE401_x__y_22_bad", "CWE401_x__y_22_badSink", &[])]);
        assert_eq!((score.found(), score.bad(), score.flagged(), score.good()), (1, 1, 0, 2));
        let score = scored(&[finding("double-free", "CWE401_x__y_22_bad", "CWE401_x__y_22_badSink", &[])]);
        assert_eq!((score.found(), score.other_rules), (0, 1));
        assert_eq!(score.missed_by_variant(), [("22".to_owned(), vec![CASE.to_owned()])]);
    }

    #[test]
    fn a_flow_is_flagged_once_however_often() {
        let score = scored(&[
            finding("memory-leak", "goodB2G", "goodB2G", &[]),
            finding("memory-leak", "goodB2G", "CWE401_x__y_22_goodB2GSink", &[]),
        ]);
        assert_eq!((score.flagged(), score.good()), (1, 2));
        assert_eq!(score.flagged_by_variant()[0].0, "22");
    }

    #[test]
    fn one_finding_is_never_credit_and_blame() {
        let score = scored(&[finding("memory-leak", "goodB2G", "CWE401_x__y_22_badSink", &[])]);
        assert_eq!((score.found(), score.flagged()), (0, 1));
    }

    #[test]
    fn helpers_are_judged_by_the_path() {
        let score = scored(&[
            finding("memory-leak", "printLine", "printLine", &["goodG2B"]),
            finding("memory-leak", "printLine", "printLine", &[]),
        ]);
        assert_eq!((score.flagged(), score.elsewhere.len()), (1, 1));
    }
}
