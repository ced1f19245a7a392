//! The whole program, bottom-up: every function once, callees before callers,
//! functions that do not depend on each other in parallel.

use std::sync::{Arc, RwLock};

use caulk_base::{Gap, GapKind, IdVec};
use caulk_ir::{ExternId, FuncId, InstId, Program};
use caulk_models::{FamilyId, FunctionModel, Models};
use rayon::prelude::*;

use crate::callgraph::{self, CallGraph};
use crate::engine::{self, Analysed, Limits};
use crate::incident::Incident;
use crate::summary::{SiteFact, Summary};

/// Rounds through a recursion before its summaries count as complete.
const MAX_ROUNDS: usize = 4;

/// What the analysis of a function may ask.
pub struct Knowledge<'a> {
    pub program: &'a Program,
    pub models: &'a Models,
    pub memory: FamilyId,
    pub graph: CallGraph,
    externs: IdVec<ExternId, Option<&'a FunctionModel>>,
    summaries: IdVec<FuncId, RwLock<Option<Arc<Summary>>>>,
}

impl<'a> Knowledge<'a> {
    pub fn new(program: &'a Program, models: &'a Models) -> Self {
        Self {
            program,
            models,
            memory: models.family("memory").unwrap_or(FamilyId(0)),
            graph: callgraph::build(program),
            externs: program.externs.iter().map(|name| models.get(name)).collect(),
            summaries: program.functions.ids().map(|_| RwLock::new(None)).collect(),
        }
    }

    pub fn model(&self, id: ExternId) -> Option<&'a FunctionModel> {
        self.externs[id]
    }

    /// A model the user wrote for a function of the program wins over its body.
    pub fn user_model(&self, name: &str) -> Option<&'a FunctionModel> {
        self.models.get(name).filter(|model| model.origin.is_user())
    }

    pub fn indirect(&self, function: FuncId, inst: InstId) -> Option<&[FuncId]> {
        self.graph.indirect.get(&(function, inst)).map(Vec::as_slice)
    }

    /// `None` while the function's recursion is being worked out.
    pub fn summary(&self, id: FuncId) -> Option<Arc<Summary>> {
        self.summaries[id].read().ok().and_then(|summary| summary.clone())
    }

    fn set_summary(&self, id: FuncId, summary: Arc<Summary>) {
        if let Ok(mut slot) = self.summaries[id].write() {
            *slot = Some(summary);
        }
    }
}

/// All that is known after the analysis, beside the program.
pub struct Analysis<'a> {
    pub knowledge: Knowledge<'a>,
    /// Sorted by function.
    pub incidents: Vec<Incident>,
    pub sites: IdVec<FuncId, Vec<SiteFact>>,
    pub gaps: Vec<Gap>,
}

/// Analyses every function of the program.
pub fn analyse<'a>(program: &'a Program, models: &'a Models, limits: Limits) -> Analysis<'a> {
    let knowledge = Knowledge::new(program, models);
    let mut incidents: Vec<Incident> = Vec::new();
    let mut sites: IdVec<FuncId, Vec<SiteFact>> = IdVec::filled(program.functions.len(), Vec::new());
    let mut gaps = Vec::new();
    for level in &knowledge.graph.levels {
        let done: Vec<Vec<(FuncId, Analysed)>> =
            level.par_iter().map(|members| component(&knowledge, members, limits)).collect();
        for (id, analysed) in done.into_iter().flatten() {
            if analysed.degraded {
                let function = program.function(id);
                let place = format!("{}: {}", program.units[program.unit_of(id)].source, function.name);
                gaps.push(Gap::new(GapKind::Limit, place, "too many paths; analysed without telling them apart"));
            }
            incidents.extend(analysed.incidents);
            sites[id] = analysed.sites;
        }
    }
    incidents.sort_by(|a, b| (a.function, a.at, &a.kind, &a.subject).cmp(&(b.function, b.at, &b.kind, &b.subject)));
    gaps.sort_unstable();
    Analysis { knowledge, incidents, sites, gaps }
}

/// Analyses the functions of one recursion until their summaries no longer change.
fn component(knowledge: &Knowledge<'_>, members: &[FuncId], limits: Limits) -> Vec<(FuncId, Analysed)> {
    let recursive = match members {
        [one] => knowledge.graph.callees[*one].contains(one),
        _ => true,
    };
    let mut last: Vec<(FuncId, Analysed)> = Vec::new();
    for _ in 0..if recursive { MAX_ROUNDS } else { 1 } {
        let mut changed = false;
        last.clear();
        for &id in members {
            let analysed = guarded(knowledge, id, limits);
            let summary = Arc::new(analysed.summary.clone());
            if knowledge.summary(id).is_none_or(|old| *old != *summary) {
                changed = true;
                knowledge.set_summary(id, summary);
            }
            last.push((id, analysed));
        }
        if !changed {
            break;
        }
    }
    last
}

/// A bug of ours in one function must not take the others with it: in release builds it becomes a gap.
fn guarded(knowledge: &Knowledge<'_>, id: FuncId, limits: Limits) -> Analysed {
    if cfg!(debug_assertions) {
        return engine::analyse(knowledge, id, limits);
    }
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine::analyse(knowledge, id, limits))).unwrap_or_else(
        |_| Analysed { summary: Summary::unknown(), incidents: Vec::new(), sites: Vec::new(), degraded: true },
    )
}
