//! Reads what `caulk check --format json` wrote.
//!
//! Only the fields the benchmark counts. They are read by name from the documented
//! JSON, as any other tool would do it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
pub(crate) struct Report {
    #[serde(default)]
    pub findings: Vec<Finding>,
    #[serde(default)]
    pub summary: Summary,
}

#[derive(Deserialize)]
pub(crate) struct Finding {
    pub rule: String,
    pub source: Place,
    pub sink: Place,
    #[serde(default)]
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
pub(crate) struct Step {
    pub location: Place,
}

/// The file is relative to the report's root.
#[derive(Deserialize)]
pub(crate) struct Place {
    pub file: String,
    pub line: u32,
    #[serde(default)]
    pub function: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub units: u64,
    pub units_failed: u64,
    pub functions: u64,
    pub alloc_sites: u64,
    pub decided_in_stage_one: u64,
    pub smt_queries: u64,
    pub phases: Vec<Phase>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub name: String,
    pub microseconds: u64,
}

impl Report {
    pub(crate) fn read(path: &Path) -> Result<Report> {
        let text = std::fs::read(path).with_context(|| format!("caulk wrote no {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not caulk's JSON", path.display()))
    }

    pub(crate) fn by_rule(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for finding in &self.findings {
            *counts.entry(finding.rule.clone()).or_default() += 1;
        }
        counts
    }
}
