//! SARIF 2.1.0: what code hosts and editors read.
//!
//! | finding | SARIF |
//! | --- | --- |
//! | `Finding::primary` | `locations[0]` |
//! | the other end of the path | `relatedLocations[0]` |
//! | steps | one `codeFlow` with one `threadFlow`; depth is the nesting level |
//! | fingerprint | `partialFingerprints["caulk/v1"]` |
//! | a proven patch | `fixes[0]` |
//! | gaps | `invocations[0].toolExecutionNotifications` |
//!
//! Columns are counted in characters, as `columnKind` says; inside caulk they
//! are bytes. Silenced and muted findings are left out.

use std::collections::BTreeMap;

use caulk_base::{Gap, GapKind};
use caulk_findings::{Edit, Finding, Fingerprint, Patch, Place, Rule, StepKind};
use serde_json::{Value, json};
use serde_sarif::sarif::{
    ArtifactChange, ArtifactContent, ArtifactLocation, CodeFlow, Fix, Invocation, Location, LogicalLocation, Message,
    MultiformatMessageString, Notification, PhysicalLocation, PropertyBag, Region, Replacement, ReportingConfiguration,
    ReportingDescriptor, ReportingDescriptorReference, Result as SarifResult, ResultLevel, Run, Sarif, ThreadFlow,
    ThreadFlowLocation, Tool, ToolComponent,
};

use crate::explain::{rule_markdown, rule_text};
use crate::paths::{below, percent_encode};
use crate::rule_help::rule_help;
use crate::span::{character_column, span_in_line};
use crate::texts::Texts;
use crate::words::{sink_text, source_text, step_text};
use crate::{Level, Report};

/// Files below the root are given relative to this.
const ROOT_ID: &str = "%SRCROOT%";
const FINGERPRINT_KEY: &str = "caulk/v1";
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The whole report as SARIF, ending in a line break.
pub fn render_sarif(report: &Report<'_>) -> String {
    let context = Context { report, texts: Texts::of_report(report), patches: report.patches_by_fingerprint() };
    let log = Sarif {
        schema: Some(SCHEMA.to_owned()),
        version: json!("2.1.0"),
        runs: vec![run(&context)],
        inline_external_properties: None,
        properties: None,
    };
    let mut text = serde_json::to_string_pretty(&log).unwrap_or_default();
    text.push('\n');
    text
}

/// What every part of the log needs.
struct Context<'a> {
    report: &'a Report<'a>,
    texts: Texts,
    patches: BTreeMap<&'a Fingerprint, &'a Patch>,
}

fn run(context: &Context<'_>) -> Run {
    let root = format!("file://{}/", percent_encode(context.report.root.trim_end_matches('/')));
    let bases = BTreeMap::from([(ROOT_ID.to_owned(), ArtifactLocation { uri: Some(root), ..Default::default() })]);
    let results = context.report.findings.findings.iter().map(|finding| result(context, finding)).collect();
    Run {
        column_kind: Some(json!("unicodeCodePoints")),
        original_uri_base_ids: Some(bases),
        invocations: Some(vec![invocation(context)]),
        results: Some(results),
        ..Run::builder().tool(Tool::builder().driver(driver(context)).build()).build()
    }
}

fn driver(context: &Context<'_>) -> ToolComponent {
    ToolComponent {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        semantic_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        short_description: Some(plain("Finds and repairs memory and resource errors in whole C programs.")),
        rules: Some(Rule::ALL.into_iter().map(|rule| descriptor(context, rule)).collect()),
        ..ToolComponent::builder().name("caulk").build()
    }
}

fn descriptor(context: &Context<'_>, rule: Rule) -> ReportingDescriptor {
    let help = rule_help(rule);
    // How bad it is if true, on the scale code hosts use for security alerts.
    let severity = match rule {
        Rule::UseAfterFree | Rule::DoubleFree => "8.0",
        Rule::InvalidFree | Rule::MismatchedRelease => "7.0",
        Rule::MemoryLeak | Rule::ResourceLeak => "5.0",
        Rule::LeakAtExit => "1.0",
    };
    ReportingDescriptor {
        name: Some(camel_case(rule.id())),
        short_description: Some(plain(&format!("{}.", help.short))),
        full_description: Some(plain(help.what)),
        help: Some(MultiformatMessageString {
            text: rule_text(rule),
            markdown: Some(rule_markdown(rule)),
            properties: None,
        }),
        default_configuration: Some(ReportingConfiguration {
            level: Some(json!(context.report.levels.get(rule).name())),
            enabled: Some(rule != Rule::LeakAtExit),
            ..Default::default()
        }),
        properties: Some(PropertyBag {
            tags: Some(vec!["memory".into(), "security".into(), format!("external/cwe/cwe-{:03}", rule.cwe())]),
            additional_properties: BTreeMap::from([
                ("precision".to_owned(), json!("high")),
                ("security-severity".to_owned(), json!(severity)),
            ]),
        }),
        ..ReportingDescriptor::builder().id(rule.id()).build()
    }
}

fn result(context: &Context<'_>, finding: &Finding) -> SarifResult {
    let primary = finding.primary();
    let (other, text) = match std::ptr::eq(primary, &finding.source) {
        true => (&finding.sink, sink_text(finding.rule)),
        false => (&finding.source, source_text(finding.rule)),
    };
    let related = Location { id: Some(1), ..location(context, other, Some(text)) };
    let fix =
        context.patches.get(&finding.fingerprint).filter(|patch| patch.is_fixed()).map(|patch| fix(context, patch));
    SarifResult {
        rule_id: Some(finding.rule.id().to_owned()),
        rule_index: Some(finding.rule as i64),
        level: Some(match context.report.levels.get(finding.rule) {
            Level::Note => ResultLevel::Note,
            Level::Warning => ResultLevel::Warning,
            Level::Error => ResultLevel::Error,
        }),
        locations: Some(vec![location(context, primary, None)]),
        related_locations: (other.line > 0).then(|| vec![related]),
        code_flows: Some(vec![code_flow(context, finding)]),
        partial_fingerprints: Some(BTreeMap::from([(FINGERPRINT_KEY.to_owned(), finding.fingerprint.0.clone())])),
        fixes: fix.map(|fix| vec![fix]),
        properties: Some(PropertyBag {
            tags: None,
            additional_properties: BTreeMap::from([
                ("assumptions".to_owned(), json!(finding.assumptions)),
                ("confidence".to_owned(), json!(finding.confidence)),
                ("doubts".to_owned(), json!(finding.doubts)),
                ("family".to_owned(), json!(finding.family)),
                ("object".to_owned(), json!(finding.object)),
            ]),
        }),
        ..SarifResult::builder().message(message(&finding.message)).build()
    }
}

fn code_flow(context: &Context<'_>, finding: &Finding) -> CodeFlow {
    let last = finding.steps.len().saturating_sub(1);
    let mut locations: Vec<ThreadFlowLocation> = finding
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let mut kinds: Vec<String> = step_kinds(step.kind).iter().map(|kind| (*kind).to_owned()).collect();
            kinds.extend(step.decision.as_ref().map(|decision| decision.taken.to_string()));
            let essential = index == 0 || index == last;
            ThreadFlowLocation {
                location: Some(location(context, &step.place, Some(&step_text(step)))),
                kinds: Some(kinds),
                nesting_level: Some(i64::from(step.depth)),
                importance: Some(json!(if essential { "essential" } else { "important" })),
                execution_order: i64::try_from(index + 1).ok(),
                state: (!step.state.is_empty() && !finding.object.is_empty())
                    .then(|| BTreeMap::from([(finding.object.clone(), plain(&step.state))])),
                ..Default::default()
            }
        })
        .collect();
    if locations.is_empty() {
        for (place, text) in [(&finding.source, source_text(finding.rule)), (&finding.sink, sink_text(finding.rule))] {
            let location = Some(location(context, place, Some(text)));
            locations.push(ThreadFlowLocation { location, ..Default::default() });
        }
    }
    let thread_flow = ThreadFlow::builder().locations(locations).build();
    CodeFlow { thread_flows: vec![thread_flow], message: None, properties: None }
}

/// The words the standard proposes.
fn step_kinds(kind: StepKind) -> &'static [&'static str] {
    match kind {
        StepKind::Allocate => &["acquire", "resource"],
        StepKind::Copy | StepKind::Store => &["memory"],
        StepKind::Call => &["call", "function"],
        StepKind::Branch => &["branch"],
        StepKind::Release => &["release", "resource"],
        StepKind::Use => &["usage"],
        StepKind::Lose => &["exit", "scope"],
        StepKind::Return => &["return", "function"],
    }
}

fn location(context: &Context<'_>, place: &Place, text: Option<&str>) -> Location {
    Location {
        physical_location: Some(PhysicalLocation {
            artifact_location: Some(artifact(context, &place.file)),
            region: region(context, place),
            ..Default::default()
        }),
        logical_locations: (!place.function.is_empty()).then(|| {
            vec![LogicalLocation {
                name: Some(place.function.clone()),
                kind: Some("function".to_owned()),
                ..Default::default()
            }]
        }),
        message: text.map(message),
        ..Default::default()
    }
}

fn artifact(context: &Context<'_>, file: &str) -> ArtifactLocation {
    match below(context.report.root, file) {
        Some(path) => ArtifactLocation {
            uri: Some(percent_encode(&path.replace('\\', "/"))),
            uri_base_id: Some(ROOT_ID.to_owned()),
            ..Default::default()
        },
        None => ArtifactLocation { uri: Some(format!("file://{}", percent_encode(file))), ..Default::default() },
    }
}

fn region(context: &Context<'_>, place: &Place) -> Option<Region> {
    if place.line == 0 {
        return None;
    }
    let line = i64::from(place.line);
    let columns = context.texts.line(&place.file, place.line).map(|text| {
        let span = span_in_line(text, place.column);
        let column = |at: usize| i64::from(character_column(text, u32::try_from(at + 1).unwrap_or(u32::MAX)));
        (column(span.start), column(span.end))
    });
    let unread = (place.column > 0).then_some(i64::from(place.column));
    Some(Region {
        start_line: Some(line),
        start_column: columns.map(|(start, _)| start).or(unread),
        end_line: columns.map(|_| line),
        end_column: columns.map(|(_, end)| end),
        ..Default::default()
    })
}

fn fix(context: &Context<'_>, patch: &Patch) -> Fix {
    let mut files: Vec<&str> = patch.edits.iter().map(|edit| edit.file.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    let change = |file: &str| ArtifactChange {
        artifact_location: artifact(context, file),
        replacements: patch
            .edits
            .iter()
            .filter(|edit| edit.file == file)
            .map(|edit| replacement(context, edit))
            .collect(),
        properties: None,
    };
    let description = match patch.title.as_str() {
        "" => patch.strategy.clone(),
        title => title.to_owned(),
    };
    Fix {
        description: Some(message(&description)),
        artifact_changes: files.into_iter().map(change).collect(),
        properties: None,
    }
}

fn replacement(context: &Context<'_>, edit: &Edit) -> Replacement {
    let column = |line: u32, column: u32| {
        let text = context.texts.line(&edit.file, line);
        i64::from(text.map_or(column, |text| character_column(text, column)))
    };
    Replacement {
        deleted_region: Region {
            start_line: Some(i64::from(edit.start_line)),
            start_column: Some(column(edit.start_line, edit.start_column)),
            end_line: Some(i64::from(edit.end_line)),
            end_column: Some(column(edit.end_line, edit.end_column)),
            ..Default::default()
        },
        inserted_content: Some(ArtifactContent { text: Some(edit.replacement.clone()), ..Default::default() }),
        properties: None,
    }
}

fn invocation(context: &Context<'_>) -> Invocation {
    let summary = &context.report.findings.summary;
    let mut notifications: Vec<Notification> =
        context.report.findings.gaps.iter().map(|gap| gap_notification(context, gap)).collect();
    notifications.extend(context.report.issues.iter().map(|issue| {
        notification("caulk-ignore", "warning", &issue.message(), Some(location(context, &issue.place, None)))
    }));
    Invocation {
        tool_execution_notifications: Some(notifications),
        properties: Some(PropertyBag {
            tags: None,
            additional_properties: [
                ("allocationSites", summary.alloc_sites),
                ("functions", summary.functions),
                ("units", summary.units),
                ("unitsFailed", summary.units_failed),
                ("unitsPassedOver", summary.units_passed_over),
            ]
            .into_iter()
            .map(|(name, number)| (name.to_owned(), Value::from(number)))
            .collect(),
        }),
        ..Invocation::builder().execution_successful(summary.units > 0).build()
    }
}

fn gap_notification(context: &Context<'_>, gap: &Gap) -> Notification {
    let (id, level) = match gap.kind {
        GapKind::Unit => ("gap/unit", "error"),
        GapKind::Function => ("gap/function", "warning"),
        GapKind::Limit => ("gap/limit", "note"),
        GapKind::Cache => ("gap/cache", "note"),
    };
    // Only a unit's place is a path for certain.
    let place = Place { file: gap.place.clone(), ..Place::default() };
    let location = (gap.kind == GapKind::Unit).then(|| location(context, &place, None));
    notification(
        id,
        level,
        &format!("{}: {}", crate::paths::shown(context.report.root, &gap.place), gap.reason),
        location,
    )
}

fn notification(id: &str, level: &str, text: &str, location: Option<Location>) -> Notification {
    Notification {
        descriptor: Some(ReportingDescriptorReference { id: Some(id.to_owned()), ..Default::default() }),
        level: Some(json!(level)),
        locations: location.map(|location| vec![location]),
        ..Notification::builder().message(message(text)).build()
    }
}

fn message(text: &str) -> Message {
    Message { text: Some(text.to_owned()), ..Default::default() }
}

fn plain(text: &str) -> MultiformatMessageString {
    MultiformatMessageString { text: text.to_owned(), markdown: None, properties: None }
}

/// `memory-leak` as `MemoryLeak`.
fn camel_case(id: &str) -> String {
    id.split('-').flat_map(|word| word.chars().enumerate()).fold(String::new(), |mut name, (index, letter)| {
        name.push(if index == 0 { letter.to_ascii_uppercase() } else { letter });
        name
    })
}
