//! The list of findings: a plain table; script hides what a filter leaves out.

use std::collections::BTreeSet;

use caulk_findings::{Confidence, Rule};
use maud::{Markup, html};

use crate::Report;
use crate::html::items::{Item, Repair};
use crate::html::page::prose;
use crate::words::confidence;

pub fn list(report: &Report<'_>, items: &[Item<'_>]) -> Markup {
    html! {
        section #findings aria-labelledby="h-findings" {
            h2 #h-findings { "Findings" }
            @if items.is_empty() {
                p.none { "Nothing to list." }
            } @else {
                (filters(report, items))
                p.shown #shown role="status" aria-live="polite" {}
                (table(report, items))
            }
        }
    }
}

fn filters(report: &Report<'_>, items: &[Item<'_>]) -> Markup {
    let rules: BTreeSet<Rule> = items.iter().map(|item| item.finding.rule).collect();
    let repairs: BTreeSet<Repair> = items.iter().map(|item| item.repair).collect();
    let folders: BTreeSet<&str> = items.iter().map(Item::folder).collect();
    let files: BTreeSet<&str> = items.iter().map(|item| item.file.as_str()).collect();
    let same = |values: Vec<&'static str>| values.into_iter().map(|value| (value, value)).collect::<Vec<_>>();
    html! {
        form.filters #filters role="search" aria-label="Filter the findings" hidden {
            label.wide { span { "Search" } input type="search" name="q" autocomplete="off" placeholder="message, file, function, fingerprint   /"; }
            (select("rule", "Rule", &same(rules.into_iter().map(Rule::id).collect())))
            (select("confidence", "Confidence", &same(vec!["high", "medium", "low"])))
            @if !report.patches.is_empty() {
                (select("repair", "Repair", &repairs.into_iter().map(|repair| (repair.id(), repair.name())).collect::<Vec<_>>()))
            }
            @if report.known.is_some() { (select("since", "Baseline", &[("new", "new"), ("known", "known")])) }
            (select("folder", "Folder", &folders.into_iter().map(|folder| (folder, folder)).collect::<Vec<_>>()))
            (select("file", "File", &files.into_iter().map(|file| (file, file)).collect::<Vec<_>>()))
            label {
                span { "Sort" }
                select name="sort" {
                    option value="" { "place" }
                    option value="confidence" { "confidence" }
                    option value="rule" { "rule" }
                }
            }
            button type="reset" { "Clear" }
        }
    }
}

fn select(name: &str, label: &str, options: &[(&str, &str)]) -> Markup {
    html! {
        label {
            span { (label) }
            select name=(name) {
                option value="" { "all" }
                @for (value, text) in options { option value=(value) { (text) } }
            }
        }
    }
}

fn table(report: &Report<'_>, items: &[Item<'_>]) -> Markup {
    let repairs = !report.patches.is_empty();
    html! {
        table.list {
            thead {
                tr {
                    th scope="col" { "Rule" }
                    th scope="col" { "Finding" }
                    th scope="col" { "Place" }
                    th scope="col" { "Confidence" }
                    @if repairs { th scope="col" { "Repair" } }
                }
            }
            tbody #rows {
                @for item in items { (row(report, item, repairs)) }
            }
        }
        p.none #none hidden { "No finding matches these filters." }
    }
}

fn row(report: &Report<'_>, item: &Item<'_>, repairs: bool) -> Markup {
    let finding = item.finding;
    let place = finding.primary();
    let since = report.known.map(|_| if item.known { "known" } else { "new" });
    let rank = match finding.confidence {
        Confidence::High => 0,
        Confidence::Medium => 1,
        Confidence::Low => 2,
    };
    html! {
        tr data-rule=(finding.rule.id()) data-confidence=(confidence(finding.confidence)) data-rank=(rank)
            data-repair=(item.repair.id()) data-since=[since] data-folder=(item.folder()) data-file=(item.file)
            data-print=(finding.fingerprint.0) {
            td.rule { span class={ "badge r-" (finding.rule.id()) } { (finding.rule.id()) } }
            td.what {
                a href=(item.page) { (prose(&finding.message)) }
                @if since == Some("new") { " " span.chip.new { "new" } }
            }
            td.where { code { (item.file) ":" (place.line) } @if !place.function.is_empty() { " " span.fn { (place.function) } } }
            td.sure { span class={ "conf conf-" (confidence(finding.confidence)) } { (confidence(finding.confidence)) } }
            @if repairs { td.repair { span class={ "fix fix-" (item.repair.id()) } { (item.repair.name()) } } }
        }
    }
}
