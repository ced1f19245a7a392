//! The page of one finding.

use std::borrow::Cow;

use caulk_findings::{Finding, Graph, GraphNode, Rule};
use maud::{Markup, html};

use crate::html::frames::{Frame, frames};
use crate::html::graph::svg;
use crate::html::items::Item;
use crate::html::page::{page as shell, prose};
use crate::html::patch::patch;
use crate::html::source::{Sources, View, state};
use crate::paths::shown;
use crate::rule_help::rule_help;
use crate::words::{confidence, lost, step_text};
use crate::{Report, RunReport};

/// Deeper calls are indented no further.
const MAX_INDENT: u32 = 6;

pub fn page(
    report: &Report<'_>,
    item: &Item<'_>,
    neighbours: [Option<&Item<'_>>; 2],
    total: usize,
    sources: &mut Sources<'_>,
) -> Markup {
    let finding = item.finding;
    let name = |file: &str| shown(report.root, file);
    let graph = match &finding.graph {
        Some(graph) if !graph.nodes.is_empty() => Cow::Borrowed(graph),
        _ => Cow::Owned(Graph::from_steps(&finding.steps)),
    };
    let frames = frames(&finding.steps, finding.graph.as_ref(), [&finding.source, &finding.sink]);
    let view = View { steps: &finding.steps, frames: &frames, shown: &name };
    let main = html! {
        (crumbs(item, neighbours, total))
        (head(report, item))
        div.split {
            div.body {
                section aria-labelledby="h-source" {
                    h2.sr #h-source { "Source" }
                    (view.render(sources))
                }
                (patch(item))
                @if !graph.nodes.is_empty() {
                    section aria-labelledby="h-graph" {
                        h2 #h-graph { "Slice graph" }
                        div.scroll tabindex="0" role="region" aria-label="Slice graph" {
                            (svg(&graph, finding.rule, &|node| link(node, &frames), &name))
                        }
                    }
                }
                (sure(finding))
                (about(finding))
            }
            (path(finding, &name))
        }
    };
    shell(&format!("{} · {}", finding.message, finding.rule.id()), "../", "one", report, main)
}

fn crumbs(item: &Item<'_>, neighbours: [Option<&Item<'_>>; 2], total: usize) -> Markup {
    let file = |item: &Item<'_>| item.page.rsplit('/').next().unwrap_or_default().to_owned();
    html! {
        nav.crumbs aria-label="Findings" {
            a href="../index.html#findings" #up { "All findings" }
            span.grow {}
            @if let Some(before) = neighbours[0] { a rel="prev" href=(file(before)) { "Previous" } }
            span { (item.number) " of " (total) }
            @if let Some(after) = neighbours[1] { a rel="next" href=(file(after)) { "Next" } }
        }
    }
}

fn head(report: &Report<'_>, item: &Item<'_>) -> Markup {
    let finding = item.finding;
    let place = finding.primary();
    html! {
        p.kicker {
            span class={ "badge r-" (finding.rule.id()) } { (finding.rule.id()) }
            " " span class={ "conf conf-" (confidence(finding.confidence)) } { (confidence(finding.confidence)) " confidence" }
            @if item.patch.is_some() { " " span class={ "fix fix-" (item.repair.id()) } { (item.repair.name()) } }
            @if item.known { " " span.chip { "in the baseline" } }
        }
        h1 { (prose(&finding.message)) }
        dl.facts {
            div { dt { "Place" } dd { code { (item.file) ":" (place.line) } } }
            @if !finding.object.is_empty() { div { dt { "Object" } dd { (object(&finding.object)) } } }
            @if !finding.family.is_empty() {
                div { dt { "Kind" } dd { (finding.family) @if !finding.release.is_empty() { ", released by " code { (finding.release) } } } }
            }
            @if let Some(runs) = report.runs.filter(|_| is_leak(finding)) { div { dt { "In runs" } dd { (in_runs(runs, finding)) } } }
            div { dt { "CWE" } dd { (finding.rule.cwe()) } }
            div { dt { "Fingerprint" } dd { code #print { (finding.fingerprint.0) } " " button.copy.small type="button" data-copy="print" hidden { "Copy" } } }
        }
    }
}

/// Only what is lost can be guarded.
fn is_leak(finding: &Finding) -> bool {
    matches!(finding.rule, Rule::MemoryLeak | Rule::ResourceLeak)
}

/// What guarded runs lost of it.
fn in_runs(runs: &RunReport, finding: &Finding) -> Markup {
    html! {
        @match runs.site_of(finding) {
            None => "not guarded",
            Some(site) if site.blocks == 0 => "guarded, nothing was lost",
            Some(site) => { (lost(site)) " " (runs.verb()) }
        }
    }
}

/// A name alone is code; words with code in them have it marked.
fn object(text: &str) -> Markup {
    if text.contains('`') {
        prose(text)
    } else {
        html! { code { (text) } }
    }
}

fn path(finding: &Finding, name: &dyn Fn(&str) -> String) -> Markup {
    let total = finding.steps.len();
    html! {
        @if total > 0 {
            aside.path aria-labelledby="h-path" {
                h2 #h-path { "Path" }
                div.walker role="group" aria-label="Walk the path" hidden {
                    button #prev type="button" aria-keyshortcuts="ArrowLeft k p" { "‹ Previous" }
                    span #walk { "0 of " (total) }
                    button #next type="button" aria-keyshortcuts="ArrowRight j n" { "Next ›" }
                }
                p.sr #say role="status" aria-live="polite" {}
                ol.steps {
                    @for (index, step) in finding.steps.iter().enumerate() {
                        @let before = index.checked_sub(1).map(|before| finding.steps[before].state.as_str());
                        @let file = name(&step.place.file);
                        li class={ "d" (step.depth.min(MAX_INDENT)) } {
                            a href={ "#step-" (index + 1) } data-go=(index + 1) {
                                span.num { (index + 1) }
                                span.txt {
                                    (prose(&step_text(step)))
                                    span.at {
                                        (file.rsplit('/').next().unwrap_or_default()) ":" (step.place.line)
                                        @if let Some(decision) = &step.decision { " · " (if decision.taken { "true" } else { "false" }) " branch" }
                                    }
                                }
                                (state(&step.state, before == Some(step.state.as_str())))
                            }
                        }
                    }
                }
                p.keys hidden { kbd { "j" } kbd { "k" } " walk the path, " kbd { "[" } kbd { "]" } " change finding, " kbd { "u" } " up" }
            }
        }
    }
}

/// The mark of the node's step, or the line if the node is beside the path.
fn link(node: &GraphNode, frames: &[Frame<'_>]) -> Option<String> {
    if let Some(step) = node.step {
        return Some(format!("#step-{}", step + 1));
    }
    let place = &node.place;
    let shows = |frame: &Frame<'_>| {
        frame.file == place.file && frame.function == place.function && frame.lines.contains(&place.line)
    };
    let frame = frames.iter().position(shows)?;
    Some(format!("#f{frame}-l{}", place.line))
}

fn sure(finding: &Finding) -> Markup {
    html! {
        section aria-labelledby="h-sure" {
            h2 #h-sure { "How sure" }
            @if finding.doubts.is_empty() {
                p { "Confidence is " (confidence(finding.confidence)) "." }
            } @else {
                p { "Confidence is " (confidence(finding.confidence)) ", because:" }
                ul { @for doubt in &finding.doubts { li { (prose(doubt)) } } }
            }
            @if !finding.assumptions.is_empty() {
                p { "Assumed of functions without a model:" }
                ul { @for assumption in &finding.assumptions { li { (prose(assumption)) } } }
            }
        }
    }
}

fn about(finding: &Finding) -> Markup {
    let help = rule_help(finding.rule);
    html! {
        details.about {
            summary { "About " code { (finding.rule.id()) } }
            p { (prose(help.what)) }
            div.twins {
                figure { figcaption { "Wrong" } pre { code { (help.bad) } } }
                figure { figcaption { "Right" } pre { code { (help.good) } } }
            }
            p { (prose(help.how)) }
            p { "To silence it, at the allocation or where it goes wrong: " code { "// caulk-ignore[" (finding.rule.id()) "]: the reason" } }
        }
    }
}
