//! FastCheck's classes of allocation sites: what was proved safe, what was
//! reported, what could not be decided.

use std::sync::Arc;

use caulk_analysis::{Analysis, Incident, IncidentKind, SiteFact, Subject};
use caulk_base::FxHashSet;
use caulk_findings::{AllocClass, Findings, SiteCount};
use caulk_ir::{FuncId, InstId};
use caulk_solver::Verdict;

use crate::verify::Verified;

/// Fills in what the run looked at. `wanted`: the incidents that were verified. `leaving`: which of them happen on the way
/// out, and whether these are reported.
pub fn count(
    analysis: &Analysis<'_>,
    wanted: &[&Arc<Incident>],
    verified: &Verified,
    (leaving, shown): (&[bool], bool),
    findings: &mut Findings,
) {
    let sites_of = |keep: &dyn Fn(Verdict, bool) -> bool| -> FxHashSet<(FuncId, InstId)> {
        let all = wanted.iter().zip(&verified.verdicts).zip(leaving);
        let kept = all.filter(|((_, verdict), leaves)| keep(**verdict, **leaves));
        kept.filter_map(|((incident, _), _)| match incident.subject {
            Subject::Allocated { site, .. } => Some((incident.function, site)),
            Subject::Input(_) => None,
        })
        .collect()
    };
    let candidates = sites_of(&|_, _| true);
    let reported = sites_of(&|verdict, leaves| verdict != Verdict::Infeasible && (shown || !leaves));
    let lost = sites_of(&|verdict, leaves| verdict != Verdict::Infeasible && leaves);
    let held: FxHashSet<(FuncId, InstId)> = analysis
        .incidents
        .iter()
        .filter(|incident| incident.kind == IncidentKind::LeakAtExit)
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
    for id in analysis.knowledge.program.functions.ids() {
        let in_main = analysis.knowledge.program.function(id).name == "main";
        // A call is one site, whatever else is made with the block that it hands out.
        let mut sites: Vec<&SiteFact> = analysis.sites(id).iter().collect();
        sites.sort_unstable_by_key(|site| (site.inst, site.sub));
        sites.dedup_by_key(|site| site.inst);
        for site in sites {
            let is_reported = reported.contains(&(id, site.inst));
            let class =
                match (site.released, is_reported || [&held, &lost].iter().any(|all| all.contains(&(id, site.inst)))) {
                    (true, true) => AllocClass::SometimesFreed,
                    (true, false) => AllocClass::AlwaysFreed,
                    (false, true) if in_main => AllocClass::NeverFreedLocalInMain,
                    (false, true) => AllocClass::NeverFreedLocal,
                    (false, false) => AllocClass::NeverFreedShared,
                };
            findings.summary.alloc_sites += 1;
            findings.summary.stats.decided_in_stage_one += u64::from(!candidates.contains(&(id, site.inst)));
            if let Some(count) = counts.iter_mut().find(|count| count.class == class) {
                count.sites += 1;
                count.reported += u64::from(is_reported);
            }
        }
    }
    findings.summary.stats.classes = counts;
    let stats = &mut findings.summary.stats;
    stats.candidates = wanted.len() as u64;
    stats.refuted_by_contradiction = verified.statistics.by_contradiction;
    stats.smt_queries = verified.statistics.queries;
    stats.refuted_by_smt = verified.statistics.by_smt;
    stats.unmodelled = caulk_analysis::unmodelled(&analysis.knowledge);
}
