//! The top of the index: how many of what, where, how it was decided, what is missing.

use std::collections::BTreeMap;

use caulk_base::{Gap, GapKind};
use caulk_findings::{AllocClass, Confidence, Rule};
use maud::{Markup, html};

use crate::html::items::{Item, Repair};
use crate::html::page::{project, prose};
use crate::paths::{percent_encode, shown};
use crate::words::{alloc_class, confidence, count, duration, lost, thousands};
use crate::{Report, RunReport, RunSite, summary_line};

/// Rows of a panel before "and more".
const MAX_ROWS: usize = 10;

pub fn overview(report: &Report<'_>, items: &[Item<'_>]) -> Markup {
    let summary = &report.findings.summary;
    let failed: Vec<&Gap> = report.findings.gaps.iter().filter(|gap| gap.kind == GapKind::Unit).collect();
    html! {
        h1 {
            @match items.len() {
                0 => "No findings",
                number => (count(number, "finding")),
            }
            " in " span.name { (project(report)) }
        }
        p.summary { (summary_line(summary)) (also(report)) }
        @if summary.units == 0 {
            p.alert role="alert" { "Nothing was analysed: this is not a clean result." }
        } @else if !failed.is_empty() {
            p.alert { (count(failed.len(), "unit")) " could not be compiled and " @if failed.len() == 1 { "was" } @else { "were" }
                " not analysed. " a href="#gaps" { "See the gaps" } "." }
        }
        div.panels {
            (by_rule(items))
            (by_confidence(items))
            @if !report.patches.is_empty() { (by_repair(items)) }
            @if let Some(runs) = report.runs { (in_runs(report, runs, items)) }
            (by_folder(items))
            (sites(report))
            @if !report.findings.summary.stats.phases.is_empty() { (time(report)) }
            (unmodelled(report, items))
            (gaps(report))
        }
    }
}

fn also(report: &Report<'_>) -> Markup {
    html! {
        @if !report.suppressed.is_empty() { "; " (thousands(report.suppressed.len() as u64)) " suppressed in the source" }
        @if let Some(known) = report.known { "; " (thousands(known.len() as u64)) " in the baseline" }
    }
}

/// One row of a bar chart: label, link, number, class for the colour.
struct Bar {
    label: Markup,
    href: Option<String>,
    number: u64,
    shown: String,
    class: String,
}

fn panel(id: &str, title: &str, body: Markup) -> Markup {
    html! {
        section.panel aria-labelledby={ "h-" (id) } {
            h2 id={ "h-" (id) } { (title) }
            (body)
        }
    }
}

fn bars(bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|bar| bar.number).max().unwrap_or(0).max(1);
    html! {
        table.bars {
            @for bar in bars {
                tr {
                    th scope="row" {
                        @match &bar.href {
                            Some(href) => a href=(href) { (bar.label) },
                            None => (bar.label),
                        }
                    }
                    td.bar aria-hidden="true" {
                        svg width="100%" height="10" class=(bar.class) {
                            rect width={ (bar.number as f64 * 100.0 / most as f64) "%" } height="10" rx="2" {}
                        }
                    }
                    td.number { (bar.shown) }
                }
            }
        }
    }
}

fn filter_bar(label: Markup, key: &str, value: &str, number: usize, class: String) -> Bar {
    let href = Some(format!("#{key}={}", percent_encode(value)));
    Bar { label, href, number: number as u64, shown: thousands(number as u64), class }
}

fn by_rule(items: &[Item<'_>]) -> Markup {
    let number = |rule: Rule| items.iter().filter(|item| item.finding.rule == rule).count();
    let rows: Vec<Bar> = Rule::ALL
        .into_iter()
        .map(|rule| (rule, number(rule)))
        .filter(|(_, number)| *number > 0)
        .map(|(rule, number)| filter_bar(html! { (rule.id()) }, "rule", rule.id(), number, format!("r-{}", rule.id())))
        .collect();
    panel("rules", "Rules", html! { @if rows.is_empty() { p.none { "None broken." } } @else { (bars(&rows)) } })
}

fn by_confidence(items: &[Item<'_>]) -> Markup {
    let rows: Vec<Bar> = [Confidence::High, Confidence::Medium, Confidence::Low]
        .into_iter()
        .map(|level| {
            let name = confidence(level);
            let number = items.iter().filter(|item| item.finding.confidence == level).count();
            filter_bar(html! { (name) }, "confidence", name, number, format!("conf-{name}"))
        })
        .collect();
    panel("confidence", "Confidence", bars(&rows))
}

fn by_repair(items: &[Item<'_>]) -> Markup {
    let rows: Vec<Bar> = Repair::ALL
        .into_iter()
        .map(|repair| (repair, items.iter().filter(|item| item.repair == repair).count()))
        .filter(|(_, number)| *number > 0)
        .map(|(repair, number)| {
            filter_bar(html! { (repair.name()) }, "repair", repair.id(), number, format!("fix-{}", repair.id()))
        })
        .collect();
    panel("repair", "Repair", bars(&rows))
}

/// Guarded sites that lost something, those that lost most first.
fn in_runs(report: &Report<'_>, runs: &RunReport, items: &[Item<'_>]) -> Markup {
    let mut sites: Vec<&RunSite> = runs.sites.iter().filter(|site| site.blocks > 0).collect();
    sites.sort_by_key(|site| std::cmp::Reverse((site.bytes, site.blocks)));
    let page = |site: &RunSite| items.iter().find(|item| runs.site_of(item.finding) == Some(site));
    let rows: Vec<Bar> = sites
        .iter()
        .take(MAX_ROWS)
        .map(|site| Bar {
            label: html! { code { (shown(report.root, &site.file)) ":" (site.line) } },
            href: page(site).map(|item| item.page.clone()),
            number: site.bytes.max(site.blocks),
            shown: lost(site),
            class: "runs".to_owned(),
        })
        .collect();
    let total = sites.iter().fold(RunSite::default(), |sum, site| RunSite {
        blocks: sum.blocks.saturating_add(site.blocks),
        bytes: sum.bytes.saturating_add(site.bytes),
        ..sum
    });
    let body = html! {
        @if rows.is_empty() { p.none { "Nothing was lost." } } @else { (bars(&rows)) }
        @if sites.len() > MAX_ROWS { p.more { "and " (count(sites.len() - MAX_ROWS, "more site")) } }
        p.more {
            @if total.blocks > 0 { (lost(&total)) " " (runs.verb()) ", " }
            "at " (thousands(sites.len() as u64)) " of " (count(runs.sites.len(), "guarded site")) "."
        }
    };
    panel("runs", "Lost in runs", body)
}

fn by_folder(items: &[Item<'_>]) -> Markup {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        *folders.entry(item.folder()).or_default() += 1;
    }
    let mut folders: Vec<(&str, usize)> = folders.into_iter().collect();
    folders.sort_by_key(|(folder, number)| (std::cmp::Reverse(*number), *folder));
    let rows: Vec<Bar> = folders
        .iter()
        .take(MAX_ROWS)
        .map(|(folder, number)| filter_bar(html! { code { (folder) } }, "folder", folder, *number, "folder".to_owned()))
        .collect();
    panel(
        "folders",
        "Folders",
        html! {
            @if rows.is_empty() { p.none { "Nothing to show." } } @else { (bars(&rows)) }
            @if folders.len() > MAX_ROWS { p.more { "and " (count(folders.len() - MAX_ROWS, "more folder")) } }
        },
    )
}

fn sites(report: &Report<'_>) -> Markup {
    let stats = &report.findings.summary.stats;
    let total: u64 = stats.classes.iter().map(|class| class.sites).sum();
    let share = |part: u64| part as f64 * 100.0 / total.max(1) as f64;
    let mut start = 0.0;
    let parts: Vec<(AllocClass, f64, f64)> = stats
        .classes
        .iter()
        .map(|class| {
            let from = start;
            start += share(class.sites);
            (class.class, from, share(class.sites))
        })
        .collect();
    let body = html! {
        @if total == 0 { p.none { "No allocation site was seen." } } @else {
            svg.stack width="100%" height="14" aria-hidden="true" {
                @for (class, from, width) in &parts {
                    rect class=(class_style(*class)) x={ (from) "%" } width={ (width) "%" } height="14" {}
                }
            }
            table.classes {
                thead { tr { th scope="col" { "class" } th.number scope="col" { "sites" } th.number scope="col" { "reported" } } }
                tbody {
                    @for class in &stats.classes {
                        tr title=(alloc_class(class.class).1) {
                            th scope="row" { span class={ "swatch " (class_style(class.class)) } {} (alloc_class(class.class).0) }
                            td.number { (thousands(class.sites)) }
                            td.number { (thousands(class.reported)) }
                        }
                    }
                }
            }
            p.more {
                (thousands(stats.decided_in_stage_one)) " decided without a formula; "
                (count(usize::try_from(stats.candidates).unwrap_or(usize::MAX), "candidate")) ", "
                (thousands(stats.refuted_by_contradiction + stats.refuted_by_smt)) " refuted, "
                (thousands(stats.smt_queries)) " SMT " @if stats.smt_queries == 1 { "query" } @else { "queries" } "."
            }
        }
    };
    panel("sites", "Allocation sites", body)
}

fn class_style(class: AllocClass) -> &'static str {
    match class {
        AllocClass::AlwaysFreed => "k-safe",
        AllocClass::SometimesFreed => "k-sometimes",
        AllocClass::NeverFreedLocal => "k-never",
        AllocClass::NeverFreedShared => "k-shared",
        AllocClass::NeverFreedLocalInMain => "k-main",
        AllocClass::Unknown => "k-unknown",
    }
}

fn time(report: &Report<'_>) -> Markup {
    let phases = &report.findings.summary.stats.phases;
    let total: u64 = phases.iter().map(|(_, micros)| micros).sum();
    let rows: Vec<Bar> = phases
        .iter()
        .map(|(name, micros)| Bar {
            label: html! { (name) },
            href: None,
            number: *micros,
            shown: duration(*micros),
            class: "time".to_owned(),
        })
        .collect();
    let body = html! {
        (bars(&rows))
        p.more { (duration(total)) " in all" }
    };
    panel("time", "Where the time went", body)
}

/// What had to be assumed, most often first: where a model would help most.
fn unmodelled(report: &Report<'_>, items: &[Item<'_>]) -> Markup {
    let functions = &report.findings.summary.stats.unmodelled;
    let mut assumed: BTreeMap<&str, usize> = BTreeMap::new();
    for assumption in items.iter().flat_map(|item| &item.finding.assumptions) {
        *assumed.entry(assumption).or_default() += 1;
    }
    let mut assumed: Vec<(&str, usize)> = assumed.into_iter().collect();
    assumed.sort_by_key(|(text, number)| (std::cmp::Reverse(*number), *text));
    if functions.is_empty() && assumed.is_empty() {
        return html! {};
    }
    let body = html! {
        @if !functions.is_empty() {
            p.more { "Functions without a model that objects flow into:" }
            ul.plain {
                @for (name, uses) in functions.iter().take(MAX_ROWS) { li { code { (name) } span.number { (thousands(*uses)) "×" } } }
            }
        }
        @if !assumed.is_empty() {
            p.more { "Assumed for findings:" }
            ul.plain {
                @for (text, number) in assumed.iter().take(MAX_ROWS) { li { (prose(text)) span.number { (number) "×" } } }
            }
        }
    };
    panel("unmodelled", "Without a model", body)
}

fn gaps(report: &Report<'_>) -> Markup {
    let gaps = &report.findings.gaps;
    let kinds = [
        (GapKind::Unit, "Units not analysed"),
        (GapKind::Function, "Functions only partly understood"),
        (GapKind::Limit, "Limits reached"),
        (GapKind::Cache, "Cache entries rebuilt"),
    ];
    let body = html! {
        @if gaps.is_empty() { p.none { "None: everything was looked at." } }
        @for (kind, title) in kinds {
            @let here: Vec<&Gap> = gaps.iter().filter(|gap| gap.kind == kind).collect();
            @if !here.is_empty() {
                details open[kind == GapKind::Unit && here.len() <= MAX_ROWS] {
                    summary { (title) " " span.number { (thousands(here.len() as u64)) } }
                    ul.plain.gaps {
                        @for gap in here { li { code { (shown(report.root, &gap.place)) } " " (prose(gap.reason.trim_end())) } }
                    }
                }
            }
        }
    };
    html! { div #gaps { (panel("gaps", "Gaps", body)) } }
}
