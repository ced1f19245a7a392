//! What was made of incidents, for the next program that is almost the same.
//!
//! Repair looks at one program after another. An incident that came from the shelf of the analysis is the same one, by
//! its address; what was said of it is said again if all that was looked at is the same, too.
//!
//! # Invariants
//! - Verdicts are those of all incidents of a function together: they share a budget.
//! - A finding tells of the function, of what it calls and of what these call, in positions of their units. It counts as
//!   long as none of them has changed.

use std::sync::Arc;

use caulk_analysis::{Analysis, Incident, Learned};
use caulk_base::FxHashMap;
use caulk_findings::Finding;
use caulk_ir::{FuncId, Unit};
use caulk_solver::{Statistics, Verdict};

/// Steps inside of calls are told this deep, and each may name what is called there.
const DEPTH: usize = 3;
/// Programs after which what none of them used is forgotten.
const REMEMBERED: usize = 24;

/// What is known of earlier programs.
#[derive(Default)]
pub struct Memo {
    programs: usize,
    verdicts: FxHashMap<FuncId, Vec<Judged>>,
    /// By the address of the incident, which `told` keeps in place.
    findings: FxHashMap<usize, Told>,
}

/// The incidents of one function, and what the solver said.
struct Judged {
    incidents: Vec<Arc<Incident>>,
    answer: (Vec<Verdict>, Statistics),
    used: usize,
}

struct Told {
    incident: Arc<Incident>,
    seen: Vec<Seen>,
    finding: Finding,
    used: usize,
}

/// A function that the finding tells of.
struct Seen {
    id: FuncId,
    learned: Arc<Learned>,
    unit: Arc<Unit>,
    callees: Vec<FuncId>,
}

impl Memo {
    /// Begins with the next program.
    pub(crate) fn turn(&mut self) {
        self.programs += 1;
        let now = self.programs;
        self.verdicts.retain(|_, all| {
            all.retain(|judged| judged.used + REMEMBERED >= now);
            !all.is_empty()
        });
        self.findings.retain(|_, told| told.used + REMEMBERED >= now);
    }

    /// What the solver said of these, all of one function.
    pub(crate) fn verdicts(&mut self, incidents: &[&Arc<Incident>]) -> Option<&(Vec<Verdict>, Statistics)> {
        let same = |judged: &&mut Judged| {
            judged.incidents.len() == incidents.len()
                && judged.incidents.iter().zip(incidents).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let found = self.verdicts.get_mut(&incidents.first()?.function)?.iter_mut().find(same)?;
        found.used = self.programs;
        Some(&found.answer)
    }

    pub(crate) fn judge(&mut self, incidents: &[&Arc<Incident>], answer: (Vec<Verdict>, Statistics)) {
        let Some(first) = incidents.first() else { return };
        let incidents = incidents.iter().map(|incident| Arc::clone(incident)).collect();
        let all = self.verdicts.entry(first.function).or_default();
        all.push(Judged { incidents, answer, used: self.programs });
    }

    /// What was said of an incident, or what `tell` says now.
    pub(crate) fn finding(
        &mut self,
        analysis: &Analysis<'_>,
        incident: &Arc<Incident>,
        tell: impl FnOnce() -> Finding,
    ) -> Finding {
        let key = Arc::as_ptr(incident) as usize;
        if let Some(told) = self.findings.get_mut(&key)
            && Arc::ptr_eq(&told.incident, incident)
            && told.seen.iter().all(|seen| seen.is_there(analysis))
        {
            told.used = self.programs;
            return told.finding.clone();
        }
        let finding = tell();
        let told = Told {
            incident: Arc::clone(incident),
            seen: seen(analysis, incident.function),
            finding: finding.clone(),
            used: self.programs,
        };
        self.findings.insert(key, told);
        finding
    }
}

impl Seen {
    fn is_there(&self, analysis: &Analysis<'_>) -> bool {
        let (program, graph) = (analysis.knowledge.program, &analysis.knowledge.graph);
        program.functions.get(self.id).is_some()
            && Arc::ptr_eq(&self.learned, &analysis.learned[self.id])
            && Arc::ptr_eq(&self.unit, &program.units[program.unit_of(self.id)])
            && self.callees == graph.callees[self.id]
    }
}

/// The function and what it calls.
fn seen(analysis: &Analysis<'_>, id: FuncId) -> Vec<Seen> {
    let (program, graph) = (analysis.knowledge.program, &analysis.knowledge.graph);
    let mut all = vec![id];
    let mut level = vec![id];
    for _ in 0..DEPTH {
        let mut next: Vec<FuncId> = level.iter().flat_map(|&id| &graph.callees[id]).copied().collect();
        next.sort_unstable();
        next.dedup();
        next.retain(|id| !all.contains(id));
        all.extend(&next);
        level = next;
    }
    let seen = |id: FuncId| Seen {
        id,
        learned: Arc::clone(&analysis.learned[id]),
        unit: Arc::clone(&program.units[program.unit_of(id)]),
        callees: graph.callees[id].clone(),
    };
    all.into_iter().map(seen).collect()
}
