//! The whole program, bottom-up: every function once, callees before callers (`schedule`), or taken over from an
//! earlier run.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use caulk_base::{FxHashMap, Gap, GapKind, IdVec, Store};
use caulk_ir::{
    ExternId, FuncId, GlobalId, InitValue, InstId, Linkage, Op, Program, SymbolId, Target, UnitId, ValueKind,
};
use caulk_models::{FamilyId, FunctionModel, Models};

use crate::asked::Question;
use crate::callgraph::{self, CallGraph};
use crate::cfg::for_each_operand;
use crate::engine::{self, Analysed, Limits};
use crate::incident::{Doubt, Incident, ReleaseFact, Suspicion};
use crate::kept::Kept;
use crate::noreturn;
use crate::passing;
use crate::schedule::Schedule;
use crate::slots::Targets;
use crate::summary::{SiteFact, Summary};
use crate::variadic;

/// Rounds through a recursion before its summaries count as complete.
const MAX_ROUNDS: usize = 3;
/// Rounds at most until it is known what a recursion of a few functions does with its arguments.
const MAX_SETTLING_ROUNDS: usize = 5;
const FEW: usize = 4;
/// Rounds at most until every member of a recursion is seen to come back.
const MAX_RETURNING_ROUNDS: usize = 8;

/// What the analysis of a function may ask.
pub struct Knowledge<'a> {
    pub program: &'a Program,
    pub models: &'a Models,
    pub memory: FamilyId,
    pub graph: CallGraph,
    /// Functions that never come back, as far as control flow tells.
    pub never: IdVec<FuncId, bool>,
    /// Globals that nothing in the program writes or gives away.
    constant: IdVec<GlobalId, bool>,
    /// Functions that may keep one of their variable arguments.
    variadic: IdVec<FuncId, bool>,
    /// Globals that are nothing but an argument, and who passes it.
    passing: FxHashMap<GlobalId, FuncId>,
    externs: IdVec<ExternId, Option<&'a FunctionModel>>,
    summaries: IdVec<FuncId, RwLock<Option<Arc<Summary>>>>,
}

impl<'a> Knowledge<'a> {
    pub fn new(program: &'a Program, models: &'a Models) -> Self {
        let externs: IdVec<ExternId, Option<&'a FunctionModel>> =
            program.externs.iter().map(|name| models.get(name)).collect();
        let never = noreturn::find(program, |id| externs[id].is_some_and(|model| model.returns.never));
        let graph = callgraph::build(program, &never);
        Self {
            program,
            models,
            constant: constants(program),
            memory: models.family("memory").unwrap_or(FamilyId(0)),
            passing: passing::find(program, &graph),
            graph,
            never,
            variadic: variadic::find(program, |id| externs[id].is_some()),
            externs,
            summaries: program.functions.ids().map(|_| RwLock::new(None)).collect(),
        }
    }

    /// Does the global keep its initial contents?
    pub fn is_constant(&self, id: GlobalId) -> bool {
        self.constant[id]
    }

    /// Is the global read by nobody once this function has returned, until it is set again?
    pub fn only_passes(&self, id: GlobalId, by: FuncId) -> bool {
        self.passing.get(&id) == Some(&by)
    }

    pub fn model(&self, id: ExternId) -> Option<&'a FunctionModel> {
        self.externs[id]
    }

    /// A model the user wrote for a function of the program wins over its body.
    pub fn user_model(&self, name: &str) -> Option<&'a FunctionModel> {
        self.models.get(name).filter(|model| model.origin.is_user())
    }

    /// May the function keep or release one of its variable arguments?
    pub fn keeps_variadic(&self, id: FuncId) -> bool {
        self.variadic[id]
    }

    /// The targets of a call through a pointer, if all of them were summarised before its function.
    pub fn indirect(&self, function: FuncId, inst: InstId) -> Option<&Targets> {
        let found = self.graph.indirect.get(&(function, inst))?;
        let is_known = |target: &FuncId| self.never[*target] || self.is_earlier(*target, function);
        let is_modelled = |target: &ExternId| self.externs[*target].is_some();
        (found.functions.iter().all(is_known) && found.library.iter().all(is_modelled)).then_some(found)
    }

    /// Is one function summarised before the other?
    pub fn is_earlier(&self, id: FuncId, than: FuncId) -> bool {
        self.graph.level_of[id] < self.graph.level_of[than]
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

/// Globals that are only ever read in place: their initialiser says all about them.
fn constants(program: &Program) -> IdVec<GlobalId, bool> {
    let mut constant = IdVec::filled(program.globals.len(), true);
    let mut give_away = |unit: UnitId, symbol: SymbolId| {
        if let Target::Globals(all) = program.target(unit, symbol) {
            for &global in all {
                constant[global] = program.global(global).is_const;
            }
        }
    };
    for (unit_id, unit) in program.units.iter_ids() {
        for global in unit.globals.iter() {
            for init in &global.init {
                if let InitValue::Address(symbol, _) = init.value {
                    give_away(unit_id, symbol);
                }
            }
        }
        for function in unit.functions.iter() {
            for inst in function.insts.iter() {
                if matches!(inst.op, Op::Load { .. }) {
                    continue;
                }
                for_each_operand(&inst.op, |value| {
                    if let ValueKind::Address(symbol, _) = function.values[value].kind {
                        give_away(unit_id, symbol);
                    }
                });
            }
        }
    }
    // A tentative definition may be completed by a unit we did not see.
    for (id, &(unit, local)) in program.globals.iter_ids() {
        let unit = &program.units[unit];
        if unit.symbols[unit.globals[local].symbol].linkage == Linkage::Common {
            constant[id] = false;
        }
    }
    constant
}

/// All that is known after the analysis, beside the program.
pub struct Analysis<'a> {
    pub knowledge: Knowledge<'a>,
    /// Sorted by function.
    pub incidents: Vec<Incident>,
    pub sites: IdVec<FuncId, Vec<SiteFact>>,
    /// Calls that release, by function and in order.
    pub releases: IdVec<FuncId, Vec<ReleaseFact>>,
    pub suspicions: Vec<Suspicion>,
    pub gaps: Vec<Gap>,
    /// Functions that were looked at in this run; the others were taken over.
    pub analysed: usize,
}

/// Analyses every function of the program.
pub fn analyse<'a>(program: &'a Program, models: &'a Models, limits: Limits) -> Analysis<'a> {
    run(program, models, limits, None, None)
}

/// The same, with the results of earlier runs that lie in a store; what this one finds out goes there, too.
pub fn analyse_with<'a>(program: &'a Program, models: &'a Models, limits: Limits, store: &Store) -> Analysis<'a> {
    run(program, models, limits, None, Some(store))
}

/// Analyses a program that differs from an analysed one in a few units. Functions whose body and whose
/// callees' summaries are the same are taken over.
pub fn reanalyse<'a>(old: &Analysis<'_>, program: &'a Program, models: &'a Models, limits: Limits) -> Analysis<'a> {
    run(program, models, limits, Some(old), None)
}

/// Where the results for a function come from.
enum Done {
    /// From the analysis of the program before it was changed.
    Old,
    /// From an earlier run.
    Kept(Analysed),
    Made(Analysed),
}

fn run<'a>(
    program: &'a Program,
    models: &'a Models,
    limits: Limits,
    old: Option<&Analysis<'_>>,
    store: Option<&Store>,
) -> Analysis<'a> {
    let knowledge = Knowledge::new(program, models);
    let kept = store.map(|store| Kept::open(store, program, models, limits));
    let old = old.filter(|old| old.knowledge.program.functions.as_slice() == program.functions.as_slice());
    let count = program.functions.len();
    let mut analysis = Analysis {
        knowledge,
        incidents: Vec::new(),
        sites: IdVec::filled(count, Vec::new()),
        releases: IdVec::filled(count, Vec::new()),
        suspicions: Vec::new(),
        gaps: Vec::new(),
        analysed: 0,
    };
    let same_units: IdVec<UnitId, bool> = program
        .units
        .iter_ids()
        .map(|(id, unit)| old.is_some_and(|old| Arc::ptr_eq(&old.knowledge.program.units[id], unit)))
        .collect();
    // A function whose summary came out as before stops the spread of an edit here.
    let unchanged: IdVec<FuncId, AtomicBool> = program.functions.ids().map(|_| AtomicBool::new(false)).collect();
    let schedule = Schedule::of(program, &analysis.knowledge.graph, &analysis.knowledge.constant);
    let done = schedule.run(|members| {
        let knowledge = &analysis.knowledge;
        let reusable = old.filter(|old| {
            let same = |callee: &FuncId| members.contains(callee) || unchanged[*callee].load(Relaxed);
            members.iter().all(|&id| {
                let callees = &knowledge.graph.callees[id];
                same_units[program.unit_of(id)]
                    && *callees == old.knowledge.graph.callees[id]
                    && callees.iter().all(same)
            })
        });
        if let Some(old) = reusable {
            for &id in members {
                if let Some(summary) = old.knowledge.summary(id) {
                    knowledge.set_summary(id, summary);
                }
                unchanged[id].store(true, Relaxed);
            }
            return members.iter().map(|&id| (id, Done::Old)).collect();
        }
        let made: Vec<(FuncId, Done)> = match kept.as_ref().and_then(|kept| kept.find(knowledge, members)) {
            Some(found) => {
                for (id, analysed) in &found {
                    knowledge.set_summary(*id, Arc::new(analysed.summary.clone()));
                }
                found.into_iter().map(|(id, found)| (id, Done::Kept(found))).collect()
            }
            None => {
                let made = component(knowledge, members, limits);
                if let Some(kept) = &kept {
                    kept.keep(knowledge, &made);
                }
                made.into_iter().map(|(id, made)| (id, Done::Made(made))).collect()
            }
        };
        for &id in members {
            let same = old.is_some_and(|old| old.knowledge.summary(id) == knowledge.summary(id));
            unchanged[id].store(same, Relaxed);
        }
        made
    });
    drop(schedule);
    for (id, done) in done.into_iter().flatten() {
        let analysed = match done {
            Done::Old => {
                if let Some(old) = old {
                    analysis.sites[id] = old.sites[id].clone();
                    analysis.releases[id] = old.releases[id].clone();
                    analysis.incidents.extend_from_slice(of_function(&old.incidents, id, |one| one.function));
                    analysis.suspicions.extend_from_slice(of_function(&old.suspicions, id, |one| one.function));
                }
                continue;
            }
            Done::Kept(analysed) => analysed,
            Done::Made(analysed) => {
                analysis.analysed += 1;
                analysed
            }
        };
        if analysed.degraded {
            let function = program.function(id);
            let place = format!("{}: {}", program.units[program.unit_of(id)].source, function.name);
            let what = "too many paths; analysed without telling them apart";
            analysis.gaps.push(Gap::new(GapKind::Limit, place, what));
        }
        analysis.incidents.extend(analysed.incidents);
        analysis.suspicions.extend(analysed.suspicions);
        analysis.sites[id] = analysed.sites;
        analysis.releases[id] = analysed.releases;
    }
    analysis
        .incidents
        .sort_by(|a, b| (a.function, a.at, &a.kind, &a.subject).cmp(&(b.function, b.at, &b.kind, &b.subject)));
    analysis.suspicions.sort_unstable();
    analysis.gaps.sort_unstable();
    if let Some(kept) = kept {
        kept.write();
    }
    analysis
}

/// The entries of one function, in a list that is sorted by function.
fn of_function<T>(all: &[T], id: FuncId, function: impl Fn(&T) -> FuncId) -> &[T] {
    let from = all.partition_point(|one| function(one) < id);
    let len = all[from..].partition_point(|one| function(one) == id);
    &all[from..from + len]
}

/// A function of a recursion while it is worked out.
struct Member {
    id: FuncId,
    /// Positions of those of the recursion that call it.
    callers: Vec<usize>,
    runs: usize,
    /// The summary of a callee has changed since the last run.
    outdated: bool,
    /// What it then does with its arguments has changed, too.
    misled: bool,
    /// A callee that had no way back has got one.
    opened: bool,
    /// It was too large to be followed to any end; it would be so again.
    given_up: bool,
    result: Option<Analysed>,
    asked: Vec<Question>,
}

impl Member {
    fn is_stuck(&self, knowledge: &Knowledge<'_>) -> bool {
        !knowledge.never[self.id] && self.result.as_ref().is_none_or(|result| result.summary.outcomes.is_empty())
    }
}

/// Analyses the functions of one recursion until their summaries no longer change.
fn component(knowledge: &Knowledge<'_>, members: &[FuncId], limits: Limits) -> Vec<(FuncId, Analysed)> {
    let position: FxHashMap<FuncId, usize> = members.iter().enumerate().map(|(at, &id)| (id, at)).collect();
    let mut work: Vec<Member> = members
        .iter()
        .map(|&id| Member {
            id,
            callers: Vec::new(),
            runs: 0,
            outdated: true,
            misled: true,
            opened: false,
            given_up: false,
            result: None,
            asked: Vec::new(),
        })
        .collect();
    for (at, id) in members.iter().enumerate() {
        for callee in knowledge.graph.callees[*id].iter().filter_map(|callee| position.get(callee)) {
            work[*callee].callers.push(at);
        }
    }
    for round in 1..=MAX_RETURNING_ROUNDS + 1 {
        let mut changed = false;
        for at in 0..work.len() {
            let member = &work[at];
            let rounds = if member.misled && work.len() <= FEW { MAX_SETTLING_ROUNDS } else { MAX_ROUNDS };
            if !member.given_up && (member.opened || member.outdated && member.runs < rounds) {
                changed |= run_member(knowledge, &mut work, at, limits);
            }
        }
        if !changed {
            break;
        }
        if round == MAX_RETURNING_ROUNDS {
            // That there is no way back is only what the rounds have not come to.
            for at in 0..work.len() {
                if work[at].is_stuck(knowledge) {
                    knowledge.set_summary(work[at].id, Arc::new(Summary::unknown()));
                    for caller in work[at].callers.clone() {
                        work[caller].opened = true;
                    }
                }
            }
        }
    }
    let settled = !work.iter().any(|member| member.misled);
    let finished = work.into_iter().filter_map(|member| {
        // Every way was given up, or ends in an error: that is not to say that it does not come back.
        let stuck = member.is_stuck(knowledge);
        let mut result = member.result?;
        let cut = result.summary.cut;
        if stuck {
            result.summary = Summary::unknown();
            result.degraded |= cut;
            knowledge.set_summary(member.id, Arc::new(result.summary.clone()));
        }
        if settle(&mut result, settled) && !stuck {
            knowledge.set_summary(member.id, Arc::new(result.summary.clone()));
        }
        // What an earlier round asked has led here, too.
        let mut asked = member.asked;
        asked.sort_unstable();
        asked.dedup();
        result.asked = result.asked.take().map(|_| asked);
        Some((member.id, result))
    });
    finished.collect()
}

/// Once the rounds are over: does what was given to the recursion have to be doubted? `true` if the summary has changed.
fn settle(result: &mut Analysed, settled: bool) -> bool {
    if settled {
        result.releases.iter_mut().for_each(|fact| fact.doubts.retain(|doubt| *doubt != Doubt::Unsettled));
    }
    let mut changed = !settled;
    result.summary.incomplete = !settled;
    for (_, known) in result.summary.outcomes.iter_mut().flat_map(|outcome| &mut outcome.objs) {
        changed |= known.unsettled;
        known.doubted |= known.unsettled && !settled;
        known.unsettled = false;
    }
    changed
}

/// Analyses one function of a recursion; `true` if its summary has changed.
fn run_member(knowledge: &Knowledge<'_>, work: &mut [Member], at: usize, limits: Limits) -> bool {
    let member = &mut work[at];
    (member.outdated, member.misled, member.opened) = (false, false, false);
    member.runs += 1;
    let mut result = guarded(knowledge, member.id, limits);
    member.asked.extend(result.asked.iter().flatten());
    let old = knowledge.summary(member.id);
    let was_closed = old.as_ref().is_none_or(|old| old.outcomes.is_empty());
    member.given_up = result.summary.cut && result.summary.outcomes.is_empty() && !knowledge.never[member.id];
    if member.given_up {
        result.summary = Summary::unknown();
    }
    let opened = member.given_up || (was_closed && !result.summary.outcomes.is_empty());
    let misleading = old.as_ref().is_none_or(|old| old.fate_of_arguments() != result.summary.fate_of_arguments());
    let changed = old.is_none_or(|old| *old != result.summary);
    if changed {
        knowledge.set_summary(member.id, Arc::new(result.summary.clone()));
    }
    member.result = Some(result);
    for caller in member.callers.clone() {
        work[caller].outdated |= changed;
        work[caller].misled |= misleading;
        work[caller].opened |= opened;
    }
    changed
}

/// A bug of ours in one function must not take the others with it: in release builds it becomes a gap.
fn guarded(knowledge: &Knowledge<'_>, id: FuncId, limits: Limits) -> Analysed {
    if cfg!(debug_assertions) {
        return engine::analyse(knowledge, id, limits);
    }
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine::analyse(knowledge, id, limits))).unwrap_or_else(
        |_| Analysed {
            summary: Summary::unknown(),
            incidents: Vec::new(),
            sites: Vec::new(),
            releases: Vec::new(),
            suspicions: Vec::new(),
            degraded: true,
            asked: None,
        },
    )
}
