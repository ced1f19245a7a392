//! The last lines of a run: what was looked at, and what came out.
//!
//! # Invariants
//! - A run that analysed nothing, or not everything, never reads like a clean one.

use std::collections::BTreeMap;

use caulk_base::GapKind;
use caulk_findings::RunSummary;

use crate::Report;
use crate::words::{count, thousands};

/// "13 units analysed, 1 failed, 2 passed over; 412 functions, 98 allocation sites".
pub fn summary_line(summary: &RunSummary) -> String {
    let number = |value: u64, noun: &str| count(usize::try_from(value).unwrap_or(usize::MAX), noun);
    let mut line = format!("{} analysed", number(summary.units, "unit"));
    if summary.units_failed > 0 {
        line += &format!(", {} failed", thousands(summary.units_failed));
    }
    if summary.units_passed_over > 0 {
        line += &format!(", {} passed over", thousands(summary.units_passed_over));
    }
    line + &format!("; {}, {}", number(summary.functions, "function"), number(summary.alloc_sites, "allocation site"))
}

/// "3 findings: 2 memory-leak, 1 double-free; 1 suppressed", or why none is not clean.
pub fn closing_line(report: &Report<'_>) -> String {
    let findings = &report.findings.findings;
    let mut by_rule = BTreeMap::new();
    for finding in findings {
        *by_rule.entry(finding.rule).or_insert(0usize) += 1;
    }
    let mut line = if report.findings.summary.units == 0 && findings.is_empty() {
        "nothing was analysed: this is not a clean result".to_owned()
    } else if findings.is_empty() {
        match report.findings.gaps.iter().filter(|gap| gap.kind == GapKind::Unit).count() {
            0 => "no findings".to_owned(),
            missing => format!("no findings in what was analysed; {} could not be", count(missing, "unit")),
        }
    } else {
        let rules: Vec<String> =
            by_rule.into_iter().map(|(rule, number)| format!("{} {}", thousands(number as u64), rule.id())).collect();
        format!("{}: {}", count(findings.len(), "finding"), rules.join(", "))
    };
    if !report.suppressed.is_empty() {
        line += &format!("; {} suppressed", thousands(report.suppressed.len() as u64));
    }
    match report.known {
        Some(known) if !known.is_empty() => line += &format!("; {} in the baseline", thousands(known.len() as u64)),
        _ => {}
    }
    let fixed = report.patches.iter().filter(|patch| patch.is_fixed()).count();
    if !report.patches.is_empty() {
        line += &format!("; {} of {} patched", thousands(fixed as u64), thousands(report.patches.len() as u64));
    }
    line
}
