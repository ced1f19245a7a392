//! The JSON output: a documented, versioned shape of its own, so that the types
//! inside caulk can change without breaking its readers.
//!
//! The schema is `docs/caulk-findings.schema.json`, in words `docs/json-schema.md`.
//! Adding a field keeps the version; removing or changing one raises it.

use caulk_base::Gap;
use caulk_findings::{
    Confidence, Decision, Edit, Finding, Graph, Patch, PatchStatus, Place, Rule, SiteCount, StepKind, SuppressionIssue,
    SuppressionProblem,
};
use serde::Serialize;

use crate::paths::shown;
use crate::words::step_text;
use crate::{Level, Report};

/// The version of the shape.
pub const JSON_VERSION: u32 = 1;

/// The whole report as JSON, ending in a line break.
pub fn render_json(report: &Report<'_>) -> String {
    let mut text = serde_json::to_string_pretty(&document(report)).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    tool: Tool,
    root: &'a str,
    summary: Summary<'a>,
    findings: Vec<JsonFinding<'a>>,
    suppressed: Vec<JsonSuppressed<'a>>,
    suppression_issues: Vec<JsonIssue>,
    /// How many findings the baseline muted; null without a baseline.
    in_baseline: Option<usize>,
    gaps: &'a [Gap],
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Summary<'a> {
    units: u64,
    units_failed: u64,
    units_passed_over: u64,
    functions: u64,
    alloc_sites: u64,
    classes: &'a [SiteCount],
    decided_in_stage_one: u64,
    candidates: u64,
    refuted_by_contradiction: u64,
    smt_queries: u64,
    refuted_by_smt: u64,
    phases: Vec<Phase<'a>>,
}

#[derive(Serialize)]
struct Phase<'a> {
    name: &'a str,
    microseconds: u64,
}

#[derive(Serialize)]
struct Location<'a> {
    file: String,
    line: u32,
    column: u32,
    function: &'a str,
    in_macro: bool,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    fingerprint: &'a str,
    rule: Rule,
    cwe: u32,
    level: Level,
    confidence: Confidence,
    doubts: &'a [String],
    message: &'a str,
    object: &'a str,
    family: &'a str,
    release: &'a str,
    primary: Location<'a>,
    source: Location<'a>,
    sink: Location<'a>,
    steps: Vec<JsonStep<'a>>,
    assumptions: &'a [String],
    graph: Option<JsonGraph<'a>>,
    patch: Option<JsonPatch<'a>>,
}

#[derive(Serialize)]
struct JsonStep<'a> {
    kind: StepKind,
    text: String,
    depth: u32,
    state: &'a str,
    decision: Option<&'a Decision>,
    location: Location<'a>,
}

#[derive(Serialize)]
struct JsonGraph<'a> {
    nodes: Vec<JsonNode<'a>>,
    edges: Vec<JsonEdge<'a>>,
}

#[derive(Serialize)]
struct JsonNode<'a> {
    kind: StepKind,
    label: &'a str,
    state: &'a str,
    step: Option<u32>,
    location: Location<'a>,
}

#[derive(Serialize)]
struct JsonEdge<'a> {
    from: usize,
    to: usize,
    label: &'a str,
    on_path: bool,
}

#[derive(Serialize)]
struct JsonPatch<'a> {
    status: &'static str,
    reason: Option<&'a str>,
    strategy: &'a str,
    title: &'a str,
    why_safe: &'a [String],
    diff: &'a str,
    edits: Vec<JsonEdit<'a>>,
    tried: &'a [String],
}

#[derive(Serialize)]
struct JsonEdit<'a> {
    file: String,
    start: u64,
    end: u64,
    start_line: u32,
    start_column: u32,
    end_line: u32,
    end_column: u32,
    replacement: &'a str,
}

#[derive(Serialize)]
struct JsonSuppressed<'a> {
    fingerprint: &'a str,
    rule: Rule,
    message: &'a str,
    reason: &'a str,
    comment: Location<'a>,
}

#[derive(Serialize)]
struct JsonIssue {
    problem: &'static str,
    message: String,
    file: String,
    line: u32,
    column: u32,
}

fn document<'a>(report: &Report<'a>) -> Document<'a> {
    let patches = report.patches_by_fingerprint();
    let finding = |finding: &'a Finding| json_finding(report, finding, patches.get(&finding.fingerprint).copied());
    Document {
        format: "caulk-findings",
        version: JSON_VERSION,
        tool: Tool { name: "caulk", version: env!("CARGO_PKG_VERSION") },
        root: report.root,
        summary: summary(report),
        findings: report.findings.findings.iter().map(finding).collect(),
        suppressed: report
            .suppressed
            .iter()
            .map(|suppressed| JsonSuppressed {
                fingerprint: &suppressed.finding.fingerprint.0,
                rule: suppressed.finding.rule,
                message: &suppressed.finding.message,
                reason: &suppressed.reason,
                comment: location(report, &suppressed.place),
            })
            .collect(),
        suppression_issues: report.issues.iter().map(|issue| json_issue(report, issue)).collect(),
        in_baseline: report.known.map(<[Finding]>::len),
        gaps: &report.findings.gaps,
    }
}

fn summary<'a>(report: &Report<'a>) -> Summary<'a> {
    let summary = &report.findings.summary;
    let stats = &summary.stats;
    Summary {
        units: summary.units,
        units_failed: summary.units_failed,
        units_passed_over: summary.units_passed_over,
        functions: summary.functions,
        alloc_sites: summary.alloc_sites,
        classes: &stats.classes,
        decided_in_stage_one: stats.decided_in_stage_one,
        candidates: stats.candidates,
        refuted_by_contradiction: stats.refuted_by_contradiction,
        smt_queries: stats.smt_queries,
        refuted_by_smt: stats.refuted_by_smt,
        phases: stats.phases.iter().map(|(name, microseconds)| Phase { name, microseconds: *microseconds }).collect(),
    }
}

fn location<'a>(report: &Report<'_>, place: &'a Place) -> Location<'a> {
    Location {
        file: shown(report.root, &place.file),
        line: place.line,
        column: place.column,
        function: &place.function,
        in_macro: place.in_macro,
    }
}

fn json_finding<'a>(report: &Report<'a>, finding: &'a Finding, patch: Option<&'a Patch>) -> JsonFinding<'a> {
    JsonFinding {
        fingerprint: &finding.fingerprint.0,
        rule: finding.rule,
        cwe: finding.rule.cwe(),
        level: report.levels.get(finding.rule),
        confidence: finding.confidence,
        doubts: &finding.doubts,
        message: &finding.message,
        object: &finding.object,
        family: &finding.family,
        release: &finding.release,
        primary: location(report, finding.primary()),
        source: location(report, &finding.source),
        sink: location(report, &finding.sink),
        steps: finding
            .steps
            .iter()
            .map(|step| JsonStep {
                kind: step.kind,
                text: step_text(step),
                depth: step.depth,
                state: &step.state,
                decision: step.decision.as_ref(),
                location: location(report, &step.place),
            })
            .collect(),
        assumptions: &finding.assumptions,
        graph: finding.graph.as_ref().map(|graph| json_graph(report, graph)),
        patch: patch.map(|patch| json_patch(report, patch)),
    }
}

fn json_graph<'a>(report: &Report<'_>, graph: &'a Graph) -> JsonGraph<'a> {
    JsonGraph {
        nodes: graph
            .nodes
            .iter()
            .map(|node| JsonNode {
                kind: node.kind,
                label: &node.label,
                state: &node.state,
                step: node.step,
                location: location(report, &node.place),
            })
            .collect(),
        edges: graph
            .edges_within()
            .map(|(from, to, edge)| JsonEdge { from, to, label: &edge.label, on_path: edge.on_path })
            .collect(),
    }
}

fn json_patch<'a>(report: &Report<'_>, patch: &'a Patch) -> JsonPatch<'a> {
    let (status, reason) = match &patch.status {
        PatchStatus::Fixed => ("fixed", None),
        PatchStatus::Refused { reason } => ("refused", Some(reason.as_str())),
    };
    let edit = |edit: &'a Edit| JsonEdit {
        file: shown(report.root, &edit.file),
        start: edit.start,
        end: edit.end,
        start_line: edit.start_line,
        start_column: edit.start_column,
        end_line: edit.end_line,
        end_column: edit.end_column,
        replacement: &edit.replacement,
    };
    JsonPatch {
        status,
        reason,
        strategy: &patch.strategy,
        title: &patch.title,
        why_safe: &patch.why_safe,
        diff: &patch.diff,
        edits: patch.edits.iter().map(edit).collect(),
        tried: &patch.tried,
    }
}

fn json_issue(report: &Report<'_>, issue: &SuppressionIssue) -> JsonIssue {
    JsonIssue {
        problem: match issue.problem {
            SuppressionProblem::Unused => "unused",
            SuppressionProblem::NoReason => "no-reason",
            SuppressionProblem::UnknownRule(_) => "unknown-rule",
        },
        message: issue.message(),
        file: shown(report.root, &issue.place.file),
        line: issue.place.line,
        column: issue.place.column,
    }
}
