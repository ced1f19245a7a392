//! FastCheck's classes of allocation sites: what was proved safe, what was
//! reported, what could not be decided.

use caulk_analysis::{Analysis, Subject};
use caulk_base::FxHashSet;
use caulk_findings::{AllocClass, Findings, SiteCount};
use caulk_ir::{FuncId, InstId};

pub fn count(analysis: &Analysis<'_>, findings: &mut Findings) {
    let reported: FxHashSet<(FuncId, InstId)> = analysis
        .incidents
        .iter()
        .filter_map(|incident| match incident.subject {
            Subject::Allocated { site, .. } => Some((incident.function, site)),
            Subject::Input(_) => None,
        })
        .collect();
    let mut counts: Vec<SiteCount> = [
        AllocClass::NeverFreedLocalInMain,
        AllocClass::NeverFreedLocal,
        AllocClass::NeverFreedShared,
        AllocClass::AlwaysFreed,
        AllocClass::SometimesFreed,
        AllocClass::Unknown,
    ]
    .into_iter()
    .map(|class| SiteCount { class, sites: 0, reported: 0 })
    .collect();
    for (id, sites) in analysis.sites.iter_ids() {
        let in_main = analysis.knowledge.program.function(id).name == "main";
        for site in sites.iter().filter(|site| site.direct) {
            let is_reported = reported.contains(&(id, site.inst));
            let class = match (site.released, is_reported) {
                (true, true) => AllocClass::SometimesFreed,
                (true, false) => AllocClass::AlwaysFreed,
                (false, true) if in_main => AllocClass::NeverFreedLocalInMain,
                (false, true) => AllocClass::NeverFreedLocal,
                (false, false) => AllocClass::NeverFreedShared,
            };
            findings.summary.alloc_sites += 1;
            if let Some(count) = counts.iter_mut().find(|count| count.class == class) {
                count.sites += 1;
                count.reported += u64::from(is_reported);
            }
        }
    }
    findings.summary.stats.classes = counts;
    findings.summary.stats.candidates = analysis.incidents.len() as u64;
}
