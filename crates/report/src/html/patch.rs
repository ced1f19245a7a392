//! What repair said of a finding: the diff side by side, why it is safe, how to apply it.

use caulk_findings::{Patch, PatchStatus};
use maud::{Markup, html};

use crate::html::diff::{Row, rows};
use crate::html::items::{Item, Repair};
use crate::html::page::prose;

pub fn patch(item: &Item<'_>) -> Markup {
    let print = &item.finding.fingerprint.0;
    html! {
        section.patch #patch aria-labelledby="h-patch" {
            h2 #h-patch { "Patch" }
            @match item.patch.map(|patch| (&patch.status, patch)) {
                None => p.none { "Not tried. " code { "caulk fix --finding " (print) } " looks for one." },
                Some((PatchStatus::Refused { reason }, _)) => p.refused { strong { "No safe patch: " } (prose(reason)) },
                Some((PatchStatus::Fixed, patch)) => (fixed(item, patch)),
            }
        }
    }
}

fn fixed(item: &Item<'_>, patch: &Patch) -> Markup {
    let command = format!("caulk fix --finding {} --apply", item.finding.fingerprint.0);
    html! {
        @if !patch.title.is_empty() { p.lead { (prose(&patch.title)) } }
        div.tools {
            button.copy type="button" data-copy="patch-text" hidden { "Copy patch" }
            @if !patch.strategy.is_empty() { span.chip { (patch.strategy) } }
        }
        (side_by_side(&patch.diff))
        pre #patch-text hidden { (patch.diff) }
        @if !patch.why_safe.is_empty() {
            h3 { "Why it is safe" }
            ul.why { @for argument in &patch.why_safe { li { (prose(argument)) } } }
        }
        @if item.repair == Repair::Fixed {
            p { "This patch is already in the source." }
        } @else {
            h3 { "Apply it" }
            p.command { code #command { (command) } button.copy type="button" data-copy="command" hidden { "Copy" } }
        }
    }
}

fn side_by_side(diff: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="The patch, before and after" {
            table.diff {
                colgroup { col.n; col; col.n; col; }
                thead.sr { tr { th scope="col" { "Line" } th scope="col" { "Before" } th scope="col" { "Line" } th scope="col" { "After" } } }
                tbody {
                    @for row in rows(diff) {
                        @match row {
                            Row::File(path) => tr.file { th colspan="4" { code { (path) } } },
                            Row::Hunk(text) => tr.hunk { td colspan="4" { code { (text) } } },
                            Row::Lines { old, new, changed } => tr.changed[changed].only-old[new.is_none()].only-new[old.is_none()] {
                                (side(old, changed, "del"))
                                (side(new, changed, "ins"))
                            },
                        }
                    }
                }
            }
        }
    }
}

fn side(line: Option<(u32, &str)>, changed: bool, kind: &str) -> Markup {
    html! {
        @match line {
            None => { td.no {} td.empty {} },
            Some((number, text)) => {
                td.no data-n=(number) {}
                td class=[changed.then_some(kind)] {
                    @if changed { span.sr { @if kind == "del" { "removed: " } @else { "added: " } } }
                    code { (text) }
                }
            },
        }
    }
}
