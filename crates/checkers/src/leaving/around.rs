//! What the program looks like to someone who leaves it: who calls whom, which functions start work anew, and which are
//! given the command line.

use std::cell::OnceCell;

use caulk_analysis::{Analysis, PointerCalls, pointer_calls};
use caulk_base::{FxHashSet, IdVec};
use caulk_ir::{
    Callee, ExternId, FuncId, Function, InitValue, InstId, Linkage, Op, Program, SymbolId, Target, Ty, UnitId, ValueId,
    ValueKind,
};
use caulk_models::{Course, Effect, FunctionModel};

/// What a call is to someone who leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It returns, and does nothing but clean up or say something. `makes`: not without making something new. `reads`: it
    /// may read something, but nobody asks for an answer.
    Passed { makes: bool, reads: bool },
    /// As the last, but another program may take the place of this one, and gets what is open.
    Replaces,
    /// The process ends; `thread`: or the thread that is not the main one.
    Ends { thread: bool },
    /// It returns, having waited, read or started something.
    Works,
    /// The program goes on, or nobody knows.
    GoesOn,
}

/// What a function may do, itself or through others that return.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Does {
    work: bool,
    reads: bool,
    makes: bool,
    execs: bool,
}

impl Does {
    fn join(&mut self, other: Does) -> bool {
        let joined = Does {
            work: self.work || other.work,
            reads: self.reads || other.reads,
            makes: self.makes || other.makes,
            execs: self.execs || other.execs,
        };
        std::mem::replace(self, joined) != joined
    }
}

/// A call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    pub caller: FuncId,
    pub inst: InstId,
    /// Through a pointer: whoever calls chooses among several.
    pub chosen: bool,
}

pub struct Around<'a> {
    pub analysis: &'a Analysis<'a>,
    pub program: &'a Program,
    pointers: PointerCalls,
    sites: IdVec<FuncId, Vec<Site>>,
    /// Functions that others than those may call.
    open: IdVec<FuncId, bool>,
    does: IdVec<FuncId, Does>,
    /// Functions that the program calls in more than one place where it ends, or on each of several ways to end.
    usual: IdVec<FuncId, bool>,
    threaded: OnceCell<IdVec<FuncId, bool>>,
    /// Parameters that are the arguments of the program.
    words: OnceCell<FxHashSet<(FuncId, u32)>>,
}

impl<'a> Around<'a> {
    pub fn new(analysis: &'a Analysis<'a>) -> Self {
        let program = analysis.knowledge.program;
        let pointers = pointer_calls(program);
        let count = program.functions.len();
        let mut around = Around {
            analysis,
            program,
            sites: IdVec::filled(count, Vec::new()),
            open: open(program, &pointers),
            does: IdVec::filled(count, Does::default()),
            usual: IdVec::filled(count, false),
            threaded: OnceCell::new(),
            words: OnceCell::new(),
            pointers,
        };
        around.collect();
        around
    }

    /// Every call of a function; `None`, if there may be others.
    pub fn sites(&self, id: FuncId) -> Option<&[Site]> {
        (!self.open[id] && !self.sites[id].is_empty()).then_some(&self.sites[id])
    }

    /// The functions that a call is meant for, and those of a library; nothing, if that is not known. Of a pointer, those
    /// that were put there by name: what else may have come there is not what its author has in mind.
    pub fn targets(&self, caller: FuncId, inst: InstId) -> (&[FuncId], &[ExternId]) {
        let Op::Call(call) = &self.program.function(caller).insts[inst].op else { return (&[], &[]) };
        match call.callee {
            Callee::Symbol(symbol) => match self.program.target(self.program.unit_of(caller), symbol) {
                Target::Functions(all) => (all, &[]),
                Target::Extern(external) => (&[], std::slice::from_ref(external)),
                Target::Globals(_) => (&[], &[]),
            },
            Callee::Value(_) => match self.pointers.targets.get(&(caller, inst)) {
                Some(targets) => (&self.pointers.named[&(caller, inst)], &targets.library),
                None => (&[], &[]),
            },
            Callee::Intrinsic(_) | Callee::Asm(_) => (&[], &[]),
        }
    }

    /// A call, as far as it is one of functions that come back, or of a library.
    pub fn kind(&self, caller: FuncId, inst: InstId) -> Kind {
        let Op::Call(call) = &self.program.function(caller).insts[inst].op else { return Kind::GoesOn };
        if matches!(call.callee, Callee::Intrinsic(_) | Callee::Asm(_)) {
            return Kind::Passed { makes: false, reads: false };
        }
        let (functions, library) = self.targets(caller, inst);
        if functions.is_empty() && library.is_empty() {
            return if call.noreturn { Kind::GoesOn } else { Kind::Works };
        }
        let mut all = Does { reads: call.args.iter().any(|arg| self.is_reader(caller, *arg)), ..Does::default() };
        functions.iter().for_each(|id| _ = all.join(self.does[*id]));
        let (mut ends, mut jumps, mut thread) = (functions.is_empty(), false, false);
        for &external in library {
            match self.foreign(external, self.program.function(caller), inst) {
                Foreign::Ends => {}
                Foreign::EndsThread => thread = true,
                Foreign::Jumps => jumps = true,
                Foreign::Does(does) => {
                    ends = false;
                    all.join(does);
                }
            }
        }
        let usual = self.is_usual(caller, inst);
        match () {
            () if jumps => Kind::GoesOn,
            () if ends => Kind::Ends { thread },
            () if call.noreturn => Kind::GoesOn,
            () if all.work => Kind::Works,
            () if all.reads && !usual && (functions.is_empty() || self.goes(caller, inst).elsewhere) => Kind::Works,
            () if all.execs => Kind::Replaces,
            () => Kind::Passed { makes: all.makes, reads: all.reads && !usual },
        }
    }

    /// Is the value the address of a library function that takes something in?
    fn is_reader(&self, id: FuncId, value: ValueId) -> bool {
        let ValueKind::Address(symbol, _) = self.program.function(id).values[value].kind else { return false };
        match self.program.target(self.program.unit_of(id), symbol) {
            Target::Extern(external) => self.course(*external) == Some(Course::Reads),
            _ => false,
        }
    }

    fn foreign(&self, id: ExternId, function: &Function, inst: InstId) -> Foreign {
        let work = Foreign::Does(Does { work: true, ..Does::default() });
        let Some(model) = self.analysis.knowledge.model(id) else { return work };
        match model.course {
            Some(Course::Jumps) => return Foreign::Jumps,
            Some(Course::EndsThread) => return Foreign::EndsThread,
            _ => {}
        }
        let Op::Call(call) = &function.insts[inst].op else { return work };
        let given = |at: u32| call.args.get(at as usize).map(|arg| function.values[*arg].kind);
        if model.returns.never || model.returns.never_if_nonzero.is_some_and(|at| is_nonzero(given(at))) {
            return Foreign::Ends;
        }
        match matches!(model.course, Some(Course::Waits | Course::BeginsThread)) || call.noreturn {
            true => work,
            false => Foreign::Does(Does {
                work: false,
                reads: model.course == Some(Course::Reads),
                makes: makes(model),
                execs: model.course == Some(Course::Replaced),
            }),
        }
    }

    fn course(&self, id: ExternId) -> Option<Course> {
        self.analysis.knowledge.model(id)?.course
    }

    /// May the function run in a thread that is not the main one?
    pub fn is_in_thread(&self, id: FuncId) -> bool {
        self.threaded.get_or_init(|| self.find_threaded())[id]
    }

    fn find_threaded(&self) -> IdVec<FuncId, bool> {
        let program = self.program;
        let mut threaded = IdVec::filled(program.functions.len(), false);
        let mut open: Vec<FuncId> = Vec::new();
        for id in program.functions.ids() {
            let (function, unit) = (program.function(id), program.unit_of(id));
            for (inst, call) in calls(function) {
                let begins = |external: &ExternId| self.course(*external) == Some(Course::BeginsThread);
                if !self.targets(id, inst).1.iter().any(begins) {
                    continue;
                }
                let given = call.args.iter().filter_map(|arg| match function.values[*arg].kind {
                    ValueKind::Address(symbol, _) => match program.target(unit, symbol) {
                        Target::Functions(all) => Some(all),
                        _ => None,
                    },
                    _ => None,
                });
                let given: Vec<FuncId> = given.flatten().copied().collect();
                // Of a wrapper it is not known what it is given.
                match given.is_empty() {
                    true => open.extend(self.pointers.loose.iter().copied()),
                    false => open.extend(given),
                }
            }
        }
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut threaded[id], true) {
                open.extend(calls(program.function(id)).flat_map(|(inst, _)| self.targets(id, inst).0));
            }
        }
        threaded
    }

    /// Is the value the list of the program's arguments, as `main` was given it?
    pub fn is_words(&self, id: FuncId, value: ValueId) -> bool {
        is_words(self.program.function(id), value, &|param| self.words().contains(&(id, param)))
    }

    fn words(&self) -> &FxHashSet<(FuncId, u32)> {
        self.words.get_or_init(|| {
            let mut found: FxHashSet<(FuncId, u32)> = FxHashSet::default();
            let mains = self.program.functions.ids().filter(|id| is_main(self.program, *id));
            let mut open: Vec<FuncId> = mains.collect();
            found.extend(open.iter().map(|id| (*id, 1)));
            while let Some(id) = open.pop() {
                let function = self.program.function(id);
                let mut passed: Vec<(FuncId, u32)> = Vec::new();
                for (inst, call) in calls(function) {
                    let own = |param: u32| found.contains(&(id, param));
                    let words = call.args.iter().enumerate().filter(|(_, arg)| is_words(function, **arg, &own));
                    for (at, _) in words {
                        passed.extend(self.targets(id, inst).0.iter().map(|callee| (*callee, at as u32)));
                    }
                }
                open.extend(passed.into_iter().filter(|param| found.insert(*param)).map(|param| param.0));
            }
            found
        })
    }

    /// Is it a call of a library function that ends the process?
    pub fn ends(&self, caller: FuncId, inst: InstId) -> bool {
        let function = self.program.function(caller);
        let ends = |external: &ExternId| matches!(self.foreign(*external, function, inst), Foreign::Ends);
        self.targets(caller, inst).1.iter().any(ends)
    }

    /// Is it a call of what the program calls wherever it ends?
    pub fn is_usual(&self, caller: FuncId, inst: InstId) -> bool {
        let functions = self.targets(caller, inst).0;
        !functions.is_empty() && functions.iter().all(|id| self.usual[*id])
    }

    /// Is it called by more than one function?
    pub fn is_common(&self, id: FuncId) -> bool {
        let callers = &self.sites[id];
        callers.iter().any(|site| site.caller != callers[0].caller)
    }

    /// What `die` calls, which is called in several places itself, and what is called for the sake of `exit` there:
    /// `exit(farewell(status))`.
    fn find_usual(&mut self) {
        let never = &self.analysis.knowledge.never;
        let mut last: IdVec<FuncId, u32> = IdVec::filled(self.program.functions.len(), 0);
        for id in self.program.functions.ids() {
            let function = self.program.function(id);
            let dies = never[id] && self.is_common(id);
            for (inst, call) in calls(function) {
                if dies {
                    self.targets(id, inst).0.iter().for_each(|callee| last[*callee] += 2);
                }
                if !self.ends(id, inst) {
                    continue;
                }
                for arg in &call.args {
                    if let ValueKind::Inst(made) = function.values[*arg].kind {
                        self.targets(id, made).0.iter().for_each(|callee| last[*callee] += 1);
                    }
                }
            }
        }
        self.usual = last.iter().map(|times| *times > 1).collect();
    }

    fn collect(&mut self) {
        let program = self.program;
        let never = &self.analysis.knowledge.never;
        let mut open: Vec<FuncId> = Vec::new();
        let mut sites: IdVec<FuncId, Vec<Site>> = IdVec::filled(program.functions.len(), Vec::new());
        for id in program.functions.ids() {
            let function = program.function(id);
            let mut does = Does::default();
            for (inst, call) in calls(function) {
                let chosen = matches!(call.callee, Callee::Value(_));
                let callees = match self.pointers.targets.get(&(id, inst)) {
                    Some(targets) => &targets.functions,
                    None => self.targets(id, inst).0,
                };
                for callee in callees {
                    sites[*callee].push(Site { caller: id, inst, chosen });
                }
                // `transfer(read, fd, …)`
                does.reads |= call.args.iter().any(|arg| self.is_reader(id, *arg));
                for external in self.targets(id, inst).1 {
                    if let Foreign::Does(known) = self.foreign(*external, function, inst) {
                        does.join(known);
                    }
                }
            }
            self.does[id] = does;
            if does != Does::default() {
                open.push(id);
            }
        }
        self.sites = sites;
        self.find_usual();
        while let Some(id) = open.pop() {
            // What does not come back is no part of what its caller does on the way out.
            if never[id] {
                continue;
            }
            let mut does = self.does[id];
            does.reads &= !self.usual[id];
            for site in &self.sites[id] {
                let is_meant = !site.chosen || self.targets(site.caller, site.inst).0.contains(&id);
                if is_meant && self.does[site.caller].join(does) {
                    open.push(site.caller);
                }
            }
        }
    }
}

enum Foreign {
    Ends,
    EndsThread,
    Jumps,
    Does(Does),
}

pub fn is_main(program: &Program, id: FuncId) -> bool {
    program.function(id).name == "main"
}

pub fn calls(function: &Function) -> impl Iterator<Item = (InstId, &caulk_ir::Call)> {
    function.insts.iter_ids().filter_map(|(id, inst)| match &inst.op {
        Op::Call(call) => Some((id, &**call)),
        _ => None,
    })
}

fn is_nonzero(value: Option<ValueKind>) -> bool {
    matches!(value, Some(ValueKind::Int(number)) if number != 0)
}

fn makes(model: &FunctionModel) -> bool {
    let new = |effect: &Effect| {
        matches!(effect, Effect::Allocates { .. } | Effect::Reallocates { .. } | Effect::Replaces { .. })
    };
    model.effects.iter().any(new)
}

/// `argv`, `argv + 1`, or what lies in a variable that was set to it.
fn is_words(function: &Function, value: ValueId, is_it: &dyn Fn(u32) -> bool) -> bool {
    let mut at = value;
    // Chains end at a parameter; the limit is for damaged code.
    for _ in 0..64 {
        match function.values[at].kind {
            ValueKind::Param(param) => return function.values[at].ty == Ty::Ptr && is_it(param),
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Offset { base, .. } => at = *base,
                Op::Cast { a, .. } => at = *a,
                Op::Phi { incoming } => {
                    let Some(first) = incoming.iter().find(|entry| entry.1 != at) else { return false };
                    at = first.1;
                }
                Op::Load { ptr } => {
                    let stored = function.insts.iter().find_map(|inst| match inst.op {
                        Op::Store { ptr: to, value } if to == *ptr => Some(value),
                        _ => None,
                    });
                    let is_local = matches!(function.values[*ptr].kind, ValueKind::Inst(made)
                        if matches!(function.insts[made].op, Op::Alloca { .. }));
                    match stored.filter(|_| is_local) {
                        Some(value) => at = value,
                        None => return false,
                    }
                }
                _ => return false,
            },
            _ => return false,
        }
    }
    false
}

/// Functions that may be called by somebody who is not seen.
fn open(program: &Program, pointers: &PointerCalls) -> IdVec<FuncId, bool> {
    let mut open = IdVec::filled(program.functions.len(), false);
    pointers.loose.iter().for_each(|id| open[*id] = true);
    // What a library has to offer: its users need not be among the programs that are looked at. What several programs
    // share is taken for one, too, and so is what has no `main` beside several that have one, if nobody knows the links.
    let mains: Vec<UnitId> =
        program.functions.ids().filter(|id| is_main(program, *id)).map(|id| program.unit_of(id)).collect();
    let mut shared: FxHashSet<UnitId> = FxHashSet::default();
    let mut linked: FxHashSet<UnitId> = FxHashSet::default();
    for link in program.link_units.iter() {
        let is_library = !link.units.iter().any(|unit| mains.contains(unit));
        shared.extend(link.units.iter().filter(|unit| !linked.insert(**unit) || is_library));
    }
    if program.link_units.is_empty() && mains.len() > 1 {
        shared.extend(program.units.ids().filter(|unit| !mains.contains(unit)));
    }
    for id in program.functions.ids() {
        let unit = program.unit_of(id);
        let symbol = &program.units[unit].symbols[program.function(id).symbol];
        open[id] |= shared.contains(&unit) && symbol.linkage != Linkage::Internal;
    }
    // An address is kept somewhere, and nobody was seen who calls it from there.
    let called: FxHashSet<FuncId> =
        pointers.targets.values().flat_map(|targets| targets.functions.iter().copied()).collect();
    let mut named: FxHashSet<FuncId> = FxHashSet::default();
    let mut name = |unit: UnitId, symbol: SymbolId| {
        if let Target::Functions(all) = program.target(unit, symbol) {
            named.extend(all);
        }
    };
    for (unit_id, unit) in program.units.iter_ids() {
        for init in unit.globals.iter().flat_map(|global| &global.init) {
            if let InitValue::Address(symbol, _) = init.value {
                name(unit_id, symbol);
            }
        }
        for function in unit.functions.iter() {
            for value in function.values.iter() {
                if let ValueKind::Address(symbol, _) = value.kind {
                    name(unit_id, symbol);
                }
            }
        }
    }
    for id in program.functions.ids() {
        open[id] |= named.contains(&id) && !called.contains(&id);
    }
    open
}
