//! Findings a project knows and lives with.
//!
//! A baseline counts fingerprints, so it survives code moving up and down. Two
//! findings with one fingerprint (the same mistake twice in one function) are
//! two: a third one is new.
//!
//! # Known imprecision
//! - Which one of several findings with the same fingerprint is the new one
//!   cannot be told: the last in report order is taken.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Finding, Fingerprint, Rule};

/// One known finding. All but fingerprint and count is there for the reader of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BaselineEntry {
    pub fingerprint: Fingerprint,
    pub rule: Rule,
    pub function: String,
    pub object: String,
    pub count: u32,
}

/// The known findings, sorted by fingerprint, each fingerprint once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    pub entries: Vec<BaselineEntry>,
}

/// Findings seen against a baseline.
#[derive(Clone, Debug, Default)]
pub struct Filtered {
    /// Not in the baseline, in the order they came.
    pub new: Vec<Finding>,
    /// In the baseline.
    pub known: Vec<Finding>,
    /// In the baseline and no longer found; `count` says how many are gone.
    pub gone: Vec<BaselineEntry>,
}

impl Baseline {
    pub fn of(findings: &[Finding]) -> Baseline {
        let mut entries: BTreeMap<&Fingerprint, BaselineEntry> = BTreeMap::new();
        for finding in findings {
            entries
                .entry(&finding.fingerprint)
                .or_insert_with(|| BaselineEntry {
                    fingerprint: finding.fingerprint.clone(),
                    rule: finding.rule,
                    function: finding.primary().function.clone(),
                    object: finding.object.clone(),
                    count: 0,
                })
                .count += 1;
        }
        Baseline { entries: entries.into_values().collect() }
    }

    /// Splits findings into new and known ones.
    pub fn filter_new(&self, findings: Vec<Finding>) -> Filtered {
        let mut left: BTreeMap<&Fingerprint, u32> = BTreeMap::new();
        for entry in &self.entries {
            *left.entry(&entry.fingerprint).or_default() += entry.count;
        }
        let mut filtered = Filtered::default();
        for finding in findings {
            match left.get_mut(&finding.fingerprint) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    filtered.known.push(finding);
                }
                _ => filtered.new.push(finding),
            }
        }
        for entry in &self.entries {
            // Taken out, so that a fingerprint listed twice is not gone twice.
            match left.remove(&entry.fingerprint) {
                Some(count) if count > 0 => filtered.gone.push(BaselineEntry { count, ..entry.clone() }),
                _ => {}
            }
        }
        filtered
    }
}
