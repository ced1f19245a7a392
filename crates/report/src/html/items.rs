//! The findings as the pages list them.

use std::collections::BTreeMap;

use caulk_findings::{Finding, Patch, PatchStatus};

use crate::Report;
use crate::html::HtmlOptions;
use crate::paths::{folder, shown};

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// The patch is in the source.
    Fixed,
    /// A proven patch exists.
    Fixable,
    /// There is none, with a reason.
    NoPatch,
    /// Repair was not asked.
    NotTried,
}

impl Repair {
    pub const ALL: [Repair; 4] = [Repair::Fixed, Repair::Fixable, Repair::NoPatch, Repair::NotTried];

    pub fn id(self) -> &'static str {
        match self {
            Repair::Fixed => "fixed",
            Repair::Fixable => "fixable",
            Repair::NoPatch => "no-patch",
            Repair::NotTried => "not-tried",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Repair::Fixed => "fixed",
            Repair::Fixable => "fixable",
            Repair::NoPatch => "no safe patch",
            Repair::NotTried => "not tried",
        }
    }
}

/// One finding and where its page is.
pub struct Item<'a> {
    pub finding: &'a Finding,
    pub patch: Option<&'a Patch>,
    pub repair: Repair,
    /// In the baseline; always false without one.
    pub known: bool,
    /// `finding/00c0ffee00c0ffee.html`.
    pub page: String,
    /// Of the primary place, as shown.
    pub file: String,
    /// From 1, in report order.
    pub number: usize,
}

impl Item<'_> {
    pub fn folder(&self) -> &str {
        folder(&self.file)
    }
}

/// Reported findings and those in the baseline, by place.
pub fn items<'a>(report: &Report<'a>, options: &HtmlOptions) -> Vec<Item<'a>> {
    let patches = report.patches_by_fingerprint();
    let known = report.known.unwrap_or_default();
    let mut all: Vec<(&'a Finding, bool)> = report.findings.findings.iter().map(|finding| (finding, false)).collect();
    all.extend(known.iter().map(|finding| (finding, true)));
    all.sort_by_cached_key(|(finding, _)| {
        let place = finding.primary();
        (place.file.clone(), place.line, place.column, finding.rule, finding.fingerprint.clone())
    });
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    all.into_iter()
        .enumerate()
        .map(|(index, (finding, known))| {
            let patch = patches.get(&finding.fingerprint).copied();
            let name = file_name(&finding.fingerprint.0);
            let times = names.entry(name.clone()).or_insert(0);
            *times += 1;
            let page = match times {
                1 => format!("finding/{name}.html"),
                times => format!("finding/{name}-{times}.html"),
            };
            Item {
                finding,
                patch,
                repair: match patch.map(|patch| &patch.status) {
                    Some(PatchStatus::Fixed) if options.applied => Repair::Fixed,
                    Some(PatchStatus::Fixed) => Repair::Fixable,
                    Some(PatchStatus::Refused { .. }) => Repair::NoPatch,
                    None => Repair::NotTried,
                },
                known,
                page,
                file: shown(report.root, &finding.primary().file),
                number: index + 1,
            }
        })
        .collect()
}

/// A fingerprint as a file name; anything odd in it is spelled out.
fn file_name(fingerprint: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric();
    match !fingerprint.is_empty() && fingerprint.len() <= 64 && fingerprint.chars().all(plain) {
        true => fingerprint.to_owned(),
        false => format!("x{}", fingerprint.bytes().take(64).map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}
