//! Findings as plain data. A checker makes them; report and repair read them and
//! never call back.

use caulk_base::Gap;
use serde::{Deserialize, Serialize};

mod baseline;
mod graph;
mod model;
mod patch;
mod sources;
mod suppress;

pub use baseline::{Baseline, BaselineEntry, Filtered};
pub use graph::{Graph, GraphEdge, GraphNode};
pub use model::{
    AllocClass, Confidence, Decision, Finding, Fingerprint, Place, Rule, RunStats, RunSummary, SiteCount, Step,
    StepKind,
};
pub use patch::{Edit, Patch, PatchStatus};
pub use sources::{MemorySources, SourceProvider};
pub use suppress::{Suppressed, SuppressionIssue, SuppressionProblem, Suppressions, apply_suppressions};

/// Everything one run of `check` has to say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// Sorted by file, line, column, rule, fingerprint.
    pub findings: Vec<Finding>,
    pub summary: RunSummary,
    pub gaps: Vec<Gap>,
}
