//! Findings as plain data. A checker makes them; report and repair read them and
//! never call back.

use caulk_base::Gap;
use serde::{Deserialize, Serialize};

mod model;
pub use model::{
    AllocClass, Confidence, Decision, Finding, Fingerprint, Place, Rule, RunStats, RunSummary, SiteCount, Step,
    StepKind,
};

/// Everything one run of `check` has to say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// Sorted by file, line, column, rule, fingerprint.
    pub findings: Vec<Finding>,
    pub summary: RunSummary,
    pub gaps: Vec<Gap>,
}
