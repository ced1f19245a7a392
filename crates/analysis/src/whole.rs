//! The whole program, bottom-up: every function once, callees before callers (`schedule`), or taken over from an
//! earlier run.

use std::collections::BTreeSet;
use std::sync::{Arc, RwLock};

use caulk_base::{FxHashMap, Gap, GapKind, IdVec, Store};
use caulk_ir::{
    ExternId, FuncId, GlobalId, InitValue, InstId, Linkage, Op, Program, SymbolId, Target, TypeKind, UnitId, ValueKind,
};
use caulk_models::{FamilyId, FunctionModel, Models};

use crate::callgraph::{self, CallGraph};
use crate::cfg::for_each_operand;
use crate::engine::Limits;
use crate::first::First;
use crate::flow;
use crate::incident::{Incident, ReleaseFact, Suspicion};
use crate::kept::{Kept, Shelf};
use crate::learned::Learned;
use crate::noreturn;
use crate::passing;
use crate::recursion::component;
use crate::schedule::Schedule;
use crate::slots::Targets;
use crate::summary::{SiteFact, Summary};
use crate::variadic;

/// What is known of the program as a whole before any function is analysed.
#[derive(Clone)]
pub struct Common {
    pub graph: Arc<CallGraph>,
    /// Functions that never come back, as far as control flow tells.
    pub never: Arc<IdVec<FuncId, bool>>,
    /// Globals that nothing in the program writes or gives away.
    constant: Arc<IdVec<GlobalId, Constancy>>,
    /// Variables for functions to which nobody has a pointer.
    hooks: Arc<IdVec<GlobalId, bool>>,
    /// Functions that may keep one of their variable arguments.
    variadic: Arc<IdVec<FuncId, bool>>,
    /// Parameters that functions may keep or release, by where their values go.
    flow: Arc<IdVec<FuncId, flow::Params>>,
    /// Globals that are nothing but an argument, and who passes it.
    passing: Arc<FxHashMap<GlobalId, FuncId>>,
    first: Arc<First>,
    /// Functions that are looked at more closely than others.
    pub close: Arc<BTreeSet<FuncId>>,
}

impl std::ops::Deref for Knowledge<'_> {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// What the analysis of a function may ask.
pub struct Knowledge<'a> {
    pub program: &'a Program,
    pub models: &'a Models,
    pub memory: FamilyId,
    pub common: Common,
    externs: IdVec<ExternId, Option<&'a FunctionModel>>,
    summaries: IdVec<FuncId, RwLock<Option<Arc<Summary>>>>,
}

impl<'a> Knowledge<'a> {
    pub fn new(program: &'a Program, models: &'a Models) -> Self {
        let externs: IdVec<ExternId, Option<&'a FunctionModel>> =
            program.externs.iter().map(|name| models.get(name)).collect();
        let never = noreturn::find(program, |id| externs[id].is_some_and(|model| model.returns.never));
        let graph = callgraph::build(program, &never);
        let (constant, hooks) = constants(program);
        let variadic = variadic::find(program, |id| externs[id].is_some());
        let user_model = |name: &str| models.get(name).filter(|model| model.origin.is_user());
        let model = |id: ExternId| externs[id];
        let flow = flow::find(&flow::Around { program, graph: &graph, variadic: &variadic, model, user_model });
        let common = Common {
            constant: Arc::new(constant),
            hooks: Arc::new(hooks),
            passing: Arc::new(passing::find(program, &graph)),
            first: Arc::new(First::of(program, &graph)),
            graph: Arc::new(graph),
            never: Arc::new(never),
            variadic: Arc::new(variadic),
            flow: Arc::new(flow),
            close: Arc::default(),
        };
        Self::with(program, models, common)
    }

    /// Of a program whose common part is known.
    pub(crate) fn with(program: &'a Program, models: &'a Models, common: Common) -> Self {
        Self {
            program,
            models,
            memory: models.family("memory").unwrap_or(FamilyId(0)),
            common,
            externs: program.externs.iter().map(|name| models.get(name)).collect(),
            summaries: program.functions.ids().map(|_| RwLock::new(None)).collect(),
        }
    }

    /// Does the global keep its initial contents?
    pub fn is_constant(&self, id: GlobalId) -> bool {
        self.constant[id] == Constancy::Constant
    }

    pub fn constancy(&self, id: GlobalId) -> Constancy {
        self.constant[id]
    }

    /// Is it a variable for a function, and only ever written by its name?
    pub fn is_hook(&self, id: GlobalId) -> bool {
        self.hooks[id]
    }

    /// Is the global read by nobody once this function has returned, until it is set again?
    pub fn only_passes(&self, id: GlobalId, by: FuncId) -> bool {
        self.passing.get(&id) == Some(&by)
    }

    /// Does the function find in the global what it was initialised with?
    pub fn comes_first(&self, id: GlobalId, by: FuncId) -> bool {
        self.first.finds(by, id)
    }

    /// Is the global neither read nor written while the function runs?
    pub fn leaves_alone(&self, callee: FuncId, id: GlobalId) -> bool {
        self.first.leaves_alone(&self.graph, callee, id)
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

    /// The parameters that the function may keep or release, by where their values go.
    pub fn kept_parameters(&self, id: FuncId) -> flow::Params {
        self.flow[id]
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

    pub(crate) fn set_summary(&self, id: FuncId, summary: Arc<Summary>) {
        if let Ok(mut slot) = self.summaries[id].write() {
            *slot = Some(summary);
        }
    }
}

/// Does a global keep its initial contents?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constancy {
    /// Nothing can write it.
    Constant,
    /// Nothing in this library writes it; its users could.
    Unwritten,
    Variable,
}

/// Globals that are only ever read in place: their initialiser says all about them. And variables for functions that are
/// only ever read and written in place.
fn constants(program: &Program) -> (IdVec<GlobalId, Constancy>, IdVec<GlobalId, bool>) {
    let mut constant = IdVec::filled(program.globals.len(), Constancy::Constant);
    let mut hooks: IdVec<GlobalId, bool> = program.globals.ids().map(|id| holds_function(program, id)).collect();
    let mut name = |unit: UnitId, symbol: SymbolId, in_place: bool| {
        if let Target::Globals(all) = program.target(unit, symbol) {
            for &global in all {
                if !program.global(global).is_const {
                    constant[global] = Constancy::Variable;
                }
                hooks[global] &= in_place;
            }
        }
    };
    for (unit_id, unit) in program.units.iter_ids() {
        for global in unit.globals.iter() {
            for init in &global.init {
                if let InitValue::Address(symbol, _) = init.value {
                    name(unit_id, symbol, false);
                }
            }
        }
        for function in unit.functions.iter() {
            for inst in function.insts.iter() {
                let place = match inst.op {
                    Op::Load { .. } => continue,
                    Op::Store { ptr, value } if ptr != value => Some(ptr),
                    _ => None,
                };
                for_each_operand(&inst.op, |value| {
                    if let ValueKind::Address(symbol, _) = function.values[value].kind {
                        name(unit_id, symbol, place == Some(value));
                    }
                });
            }
        }
    }
    // A tentative definition may be completed by a unit we did not see, and a library's variable be written by its users.
    let is_library = program.is_library();
    for (id, &(unit, local)) in program.globals.iter_ids() {
        let unit = &program.units[unit];
        match unit.symbols[unit.globals[local].symbol].linkage {
            Linkage::Common => constant[id] = Constancy::Variable,
            Linkage::Internal => {}
            _ if is_library && !program.global(id).is_const && constant[id] == Constancy::Constant => {
                constant[id] = Constancy::Unwritten;
            }
            _ => {}
        }
    }
    (constant, hooks)
}

/// Is it declared as a pointer to a function?
fn holds_function(program: &Program, id: GlobalId) -> bool {
    let types = &program.units[program.globals[id].0].types;
    let (mut at, mut pointer) = (program.global(id).ty, false);
    // Types nest; the limit is for damaged ones.
    for _ in 0..16 {
        let Some(known) = at.and_then(|ty| types.get(ty)) else { return false };
        match known.kind {
            TypeKind::Typedef(inner) | TypeKind::Const(inner) | TypeKind::Qualified(inner) => at = inner,
            TypeKind::Pointer(inner) if !pointer => (at, pointer) = (inner, true),
            TypeKind::Function => return pointer,
            _ => return false,
        }
    }
    false
}

/// All that is known after the analysis, beside the program.
pub struct Analysis<'a> {
    pub knowledge: Knowledge<'a>,
    pub learned: IdVec<FuncId, Arc<Learned>>,
    /// Sorted by function.
    pub incidents: Vec<Arc<Incident>>,
    pub suspicions: Vec<Suspicion>,
    pub gaps: Vec<Gap>,
    /// Functions that were looked at in this run; the others were taken over.
    pub analysed: usize,
}

impl Analysis<'_> {
    /// Calls that allocate.
    pub fn sites(&self, id: FuncId) -> &[SiteFact] {
        &self.learned[id].sites
    }

    pub(crate) fn sort(&mut self) {
        self.incidents
            .sort_by(|a, b| (a.function, a.at, &a.kind, &a.subject).cmp(&(b.function, b.at, &b.kind, &b.subject)));
        self.suspicions.sort_unstable();
        self.gaps.sort_unstable();
    }

    /// Calls that release, in order.
    pub fn releases(&self, id: FuncId) -> &[ReleaseFact] {
        &self.learned[id].releases
    }
}

/// Analyses every function of the program.
pub fn analyse<'a>(program: &'a Program, models: &'a Models, limits: Limits) -> Analysis<'a> {
    run(program, models, limits, None).0
}

/// The same, with the results of earlier runs that lie in a store; what this one finds out goes there, too.
pub fn analyse_with<'a>(program: &'a Program, models: &'a Models, limits: Limits, store: &Store) -> Analysis<'a> {
    let (analysis, kept) = run(program, models, limits, Some(Kept::open(store, None, program, models, limits)));
    if let Some(kept) = kept {
        kept.close(None);
    }
    analysis
}

/// The same for one of several programs that are much alike: what was learned of the others is on the shelf. The store
/// is read and written for the first of them only.
pub fn analyse_again<'a>(
    program: &'a Arc<Program>,
    models: &'a Models,
    limits: Limits,
    store: &Store,
    shelf: &Shelf,
) -> Analysis<'a> {
    let kept = Kept::open(store, Some(shelf), program, models, limits);
    let (analysis, kept) = run(program, models, limits, Some(kept));
    if let Some(kept) = kept {
        kept.close(Some(program));
    }
    analysis
}

fn run<'a, 'k>(
    program: &'a Program,
    models: &'a Models,
    limits: Limits,
    kept: Option<Kept<'k>>,
) -> (Analysis<'a>, Option<Kept<'k>>) {
    let mut knowledge = Knowledge::new(program, models);
    if let Some(kept) = &kept {
        knowledge.common.close = Arc::clone(&kept.close);
    }
    let mut analysis = Analysis {
        knowledge,
        learned: IdVec::filled(program.functions.len(), Arc::default()),
        incidents: Vec::new(),
        suspicions: Vec::new(),
        gaps: Vec::new(),
        analysed: 0,
    };
    let schedule = Schedule::of(program, &analysis.knowledge.graph, &analysis.knowledge.constant);
    let done = schedule.run(|members| {
        let knowledge = &analysis.knowledge;
        if let Some(found) = kept.as_ref().and_then(|kept| kept.find(knowledge, members)) {
            for (id, learned) in &found {
                knowledge.set_summary(*id, Arc::clone(&learned.summary));
            }
            return (found, 0);
        }
        let made = component(knowledge, members, limits);
        let count = made.len();
        let shared = |(id, made)| (id, Arc::new(Learned::from(made)));
        match &kept {
            Some(kept) => (kept.keep(knowledge, made), count),
            None => (made.into_iter().map(shared).collect(), count),
        }
    });
    drop(schedule);
    for (results, made) in done {
        analysis.analysed += made;
        for (id, learned) in results {
            if learned.degraded {
                let function = program.function(id);
                let place = format!("{}: {}", program.units[program.unit_of(id)].source, function.name);
                let what = "too many paths; analysed without telling them apart";
                analysis.gaps.push(Gap::new(GapKind::Limit, place, what));
            }
            analysis.incidents.extend(learned.incidents.iter().cloned());
            analysis.suspicions.extend(learned.suspicions.iter().cloned());
            analysis.learned[id] = learned;
        }
    }
    analysis.sort();
    (analysis, kept)
}
