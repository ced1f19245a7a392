//! The parts of a finding.

use serde::{Deserialize, Serialize};

use crate::Graph;

/// What is wrong. The serialised name is the `ruleId` of every output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    MemoryLeak,
    ResourceLeak,
    DoubleFree,
    UseAfterFree,
    MismatchedRelease,
    InvalidFree,
    LeakAtExit,
}

impl Rule {
    pub const ALL: [Rule; 7] = [
        Rule::MemoryLeak,
        Rule::ResourceLeak,
        Rule::DoubleFree,
        Rule::UseAfterFree,
        Rule::MismatchedRelease,
        Rule::InvalidFree,
        Rule::LeakAtExit,
    ];

    pub fn id(self) -> &'static str {
        match self {
            Rule::MemoryLeak => "memory-leak",
            Rule::ResourceLeak => "resource-leak",
            Rule::DoubleFree => "double-free",
            Rule::UseAfterFree => "use-after-free",
            Rule::MismatchedRelease => "mismatched-release",
            Rule::InvalidFree => "invalid-free",
            Rule::LeakAtExit => "leak-at-exit",
        }
    }

    pub fn from_id(id: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.id() == id)
    }

    /// Something is not released, rather than released too early or wrongly.
    pub fn is_leak(self) -> bool {
        matches!(self, Rule::MemoryLeak | Rule::ResourceLeak | Rule::LeakAtExit)
    }

    /// The CWE number that other tools know it by.
    pub fn cwe(self) -> u32 {
        match self {
            Rule::MemoryLeak | Rule::LeakAtExit => 401,
            Rule::ResourceLeak => 772,
            Rule::DoubleFree => 415,
            Rule::UseAfterFree => 416,
            Rule::MismatchedRelease => 762,
            Rule::InvalidFree => 590,
        }
    }
}

/// How sure we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Place {
    /// Absolute path; outputs show it relative to the project.
    pub file: String,
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    pub function: String,
    /// The code here comes out of a macro.
    pub in_macro: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    Allocate,
    Copy,
    Store,
    Call,
    /// A branch was decided.
    Branch,
    Release,
    Use,
    Lose,
    Return,
}

/// Which way a branch went.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decision {
    /// The condition as the programmer wrote it, where we could tell.
    pub condition: String,
    pub taken: bool,
}

/// One step of the path from the allocation to the error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    pub kind: StepKind,
    pub place: Place,
    /// "allocated here", "`append` returns -1 here, so it was not stored".
    pub text: String,
    /// 0 in the function of the error, 1 in a callee, …
    pub depth: u32,
    pub decision: Option<Decision>,
    /// The object's state after this step: `allocated`, `stored`, `released`, `lost`.
    pub state: String,
}

/// Line-independent identity of a finding: 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

/// One error, with all that is needed to explain and to repair it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub rule: Rule,
    pub confidence: Confidence,
    /// Why the confidence is not higher; empty for `High`.
    pub doubts: Vec<String>,
    /// One sentence: "`buf` is never released when `fill` fails".
    pub message: String,
    /// How people call the object: `buf`, `ctx->name`, "the result of `strdup`".
    pub object: String,
    /// Resource family: `memory`, `file`, `descriptor`, …
    pub family: String,
    /// The function that would release it here: `free`, `fclose`, the program's own.
    pub release: String,
    /// Where the object was allocated; for `invalid-free` of what was not, where it comes from.
    pub source: Place,
    /// Where the error happens: the loss, the second release, the use.
    pub sink: Place,
    pub steps: Vec<Step>,
    /// What was assumed of functions without a model.
    pub assumptions: Vec<String>,
    pub fingerprint: Fingerprint,
    /// The use-flow graph of the object; without one, outputs draw the steps.
    #[serde(default)]
    pub graph: Option<Graph>,
    /// Of a leak: the steps behind it, if all that the program does then is to end. For those who compare programs; in
    /// reports it is a rule of its own.
    #[serde(skip)]
    pub at_exit: Option<Vec<Step>>,
}

impl Finding {
    /// The place that outputs show first: the allocation for leaks, the error itself otherwise.
    pub fn primary(&self) -> &Place {
        match self.rule {
            Rule::MemoryLeak | Rule::ResourceLeak | Rule::LeakAtExit => &self.source,
            Rule::DoubleFree | Rule::UseAfterFree | Rule::MismatchedRelease | Rule::InvalidFree => &self.sink,
        }
    }
}

/// FastCheck's classes of allocation sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocClass {
    NeverFreedLocalInMain,
    NeverFreedLocal,
    NeverFreedShared,
    AlwaysFreed,
    SometimesFreed,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteCount {
    pub class: AllocClass,
    pub sites: u64,
    pub reported: u64,
}

/// What a run looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    pub units: u64,
    pub units_failed: u64,
    /// C++ and assembler.
    pub units_passed_over: u64,
    pub functions: u64,
    pub alloc_sites: u64,
    pub stats: RunStats,
}

/// For `--stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStats {
    pub classes: Vec<SiteCount>,
    pub decided_in_stage_one: u64,
    pub candidates: u64,
    pub refuted_by_contradiction: u64,
    pub smt_queries: u64,
    pub refuted_by_smt: u64,
    /// Functions that this run looked at; the results for the others lay in the cache.
    #[serde(default)]
    pub functions_analysed: u64,
    /// Phase and microseconds, in order.
    pub phases: Vec<(String, u64)>,
    /// External functions without a model that objects flow into, and how often; most first.
    #[serde(default)]
    pub unmodelled: Vec<(String, u64)>,
}
