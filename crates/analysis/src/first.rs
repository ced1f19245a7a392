//! Who comes to which variables: what a function finds in those that nobody has written before it runs, and which ones a call
//! leaves alone.
//!
//! ```c
//! static char *host;                       // null when `parse` begins: `main` calls it once, and
//! static void parse(int argc, char **argv) // nobody else sets it. The first `-h` loses nothing,
//! {                                        // the second what the first one made.
//!     …
//!     case 'h': host = strdup(optarg);
//! ```
//!
//! # Invariants
//! - Only what the program shows counts. A library's variables may have been written by its users; what a function mentions that
//!   nobody is seen to call may change before `main`, or at any time: a handler, a thread, a callback.

use std::collections::BTreeSet;

use caulk_base::{FxHashMap, FxHashSet, IdVec};
use caulk_ir::{
    Callee, FuncId, GlobalId, InitValue, InstId, Linkage, Op, Program, SymbolId, Target, Ty, UnitId, ValueId, ValueKind,
};

use crate::callgraph::CallGraph;
use crate::cfg::{self, for_each_operand};
use crate::engine::Engine;
use crate::object::Object;
use crate::passing::global_of;
use crate::place::Off;
use crate::state::State;
use crate::term::ZERO;

/// More functions than these are not looked through below a call.
const MAX_BELOW: usize = 1000;

/// Who comes first to which variables.
#[derive(Default)]
pub struct First {
    main: FxHashSet<FuncId>,
    /// By global, who reads or writes it by its name, where nobody else can.
    users: FxHashMap<GlobalId, Vec<FuncId>>,
    /// Written by one function alone, which runs once.
    owned: FxHashMap<GlobalId, FuncId>,
}

#[derive(Clone, Default)]
struct Access {
    by: FxHashSet<FuncId>,
    writers: FxHashSet<FuncId>,
    /// Set to null by others.
    emptied: bool,
    /// Its address goes elsewhere.
    open: bool,
}

impl First {
    pub fn of(program: &Program, graph: &CallGraph) -> First {
        if program.is_library() {
            return First::default();
        }
        let mut around = Around {
            program,
            accesses: IdVec::filled(program.globals.len(), Access::default()),
            named: IdVec::filled(program.functions.len(), false),
            calls: IdVec::filled(program.functions.len(), Vec::new()),
        };
        around.look();
        let is_main = |id: &FuncId| program.function(*id).name == "main";
        let is_start = |id: &FuncId| around.calls[*id].is_empty() && !around.named[*id];
        let main: FxHashSet<FuncId> = program.functions.ids().filter(|id| is_main(id) && is_start(id)).collect();
        let unseen = |id: &FuncId| around.named[*id] || is_start(id) && !main.contains(id);
        let mut open: Vec<FuncId> = program.functions.ids().filter(unseen).collect();
        let mut stray: FxHashSet<FuncId> = FxHashSet::default();
        while let Some(id) = open.pop() {
            if stray.insert(id) {
                open.extend(graph.callees[id].iter().copied());
            }
        }
        let once = around.once(&main);
        let mut first = First { main, ..First::default() };
        for (global, access) in around.accesses.iter_ids() {
            let known = program.global(global);
            let (unit, _) = program.globals[global];
            let elsewhere = program.units[unit].symbols[known.symbol].linkage == Linkage::Common;
            let alone = !access.open && !access.by.iter().any(|id| stray.contains(id));
            if elsewhere || known.thread_local || !alone {
                continue;
            }
            let mut users: Vec<FuncId> = access.by.iter().copied().collect();
            users.sort_unstable();
            first.users.insert(global, users);
            let mut writers = access.writers.iter();
            let begins_null = known.init.iter().all(|init| matches!(init.value, InitValue::Int(0, _)));
            if let (Some(owner), None) = (writers.next(), writers.next())
                && once.contains(owner)
                && (!access.emptied || begins_null)
            {
                first.owned.insert(global, *owner);
            }
        }
        first
    }

    /// Does the function find in the global what it was initialised with?
    pub fn finds(&self, by: FuncId, global: GlobalId) -> bool {
        self.users.contains_key(&global) && (self.main.contains(&by) || self.owned.get(&global) == Some(&by))
    }

    /// Is the global neither read nor written while the function runs?
    pub fn leaves_alone(&self, graph: &CallGraph, callee: FuncId, global: GlobalId) -> bool {
        let Some(users) = self.users.get(&global) else { return false };
        let mut below: FxHashSet<FuncId> = FxHashSet::default();
        let mut open = vec![callee];
        while let Some(id) = open.pop() {
            if below.insert(id) {
                open.extend(graph.callees[id].iter().copied());
            }
            if below.len() > MAX_BELOW {
                return false;
            }
        }
        !users.iter().any(|id| below.contains(id))
    }
}

struct Around<'a> {
    program: &'a Program,
    accesses: IdVec<GlobalId, Access>,
    /// Functions whose address is used.
    named: IdVec<FuncId, bool>,
    calls: IdVec<FuncId, Vec<(FuncId, InstId)>>,
}

impl Around<'_> {
    fn look(&mut self) {
        for (unit_id, unit) in self.program.units.iter_ids() {
            for init in unit.globals.iter().flat_map(|global| &global.init) {
                if let InitValue::Address(symbol, _) = init.value {
                    self.mention(unit_id, symbol, None);
                }
            }
        }
        for id in self.program.functions.ids() {
            self.look_into(id);
        }
    }

    fn look_into(&mut self, id: FuncId) {
        let (unit, function) = (self.program.unit_of(id), self.program.function(id));
        for (at, inst) in function.insts.iter_ids() {
            let place = match inst.op {
                Op::Load { ptr } => Some(ptr),
                Op::Store { ptr, value } if ptr != value => Some(ptr),
                _ => None,
            };
            if let Some(global) = place.and_then(|ptr| global_of(self.program, unit, function, ptr)) {
                let access = &mut self.accesses[global];
                access.by.insert(id);
                match inst.op {
                    Op::Store { value, .. } if matches!(function.values[value].kind, ValueKind::Null) => {
                        access.emptied = true;
                    }
                    Op::Store { .. } => _ = access.writers.insert(id),
                    _ => {}
                }
            }
            let callee = match &inst.op {
                Op::Call(call) => match call.callee {
                    Callee::Symbol(symbol) => Some(symbol),
                    _ => None,
                },
                _ => None,
            };
            if let Some(symbol) = callee
                && let Target::Functions(all) = self.program.target(unit, symbol)
            {
                all.iter().for_each(|&target| self.calls[target].push((id, at)));
            }
            let mut mentioned: Vec<SymbolId> = Vec::new();
            for_each_operand(&inst.op, |value: ValueId| {
                if let ValueKind::Address(symbol, _) = function.values[value].kind
                    && !(Some(value) == place && global_of(self.program, unit, function, value).is_some())
                {
                    mentioned.push(symbol);
                }
            });
            mentioned.into_iter().for_each(|symbol| self.mention(unit, symbol, Some(id)));
        }
    }

    /// The address of something is used as a value.
    fn mention(&mut self, unit: UnitId, symbol: SymbolId, by: Option<FuncId>) {
        match self.program.target(unit, symbol) {
            Target::Functions(all) => all.iter().for_each(|&id| self.named[id] = true),
            Target::Globals(all) => {
                for &global in all {
                    self.accesses[global].open = true;
                    self.accesses[global].by.extend(by);
                }
            }
            Target::Extern(_) => {}
        }
    }

    /// The functions that run once at most: called at one place alone, in one of these, and outside of its loops.
    fn once(&self, main: &FxHashSet<FuncId>) -> FxHashSet<FuncId> {
        let mut once: FxHashSet<FuncId> = FxHashSet::default();
        let mut below: FxHashMap<FuncId, Vec<(FuncId, InstId)>> = FxHashMap::default();
        for (id, calls) in self.calls.iter_ids() {
            if let [(caller, at)] = calls[..]
                && !self.named[id]
            {
                below.entry(caller).or_default().push((id, at));
            }
        }
        let mut open: Vec<FuncId> = main.iter().copied().collect();
        while let Some(id) = open.pop() {
            if !once.insert(id) || self.may_come_back(id) {
                continue;
            }
            let Some(called) = below.get(&id) else { continue };
            let cfg = cfg::build(self.program.function(id));
            open.extend(called.iter().filter(|(_, at)| !cfg.is_in_some_loop(*at)).map(|entry| entry.0));
        }
        once
    }

    /// `setjmp` returns as often as others please.
    fn may_come_back(&self, id: FuncId) -> bool {
        let unit = self.program.unit_of(id);
        self.program.function(id).insts.iter().any(|inst| match &inst.op {
            Op::Call(call) => match call.callee {
                Callee::Symbol(symbol) => match self.program.target(unit, symbol) {
                    Target::Extern(external) => self.program.externs[*external].contains("setjmp"),
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        })
    }
}

impl Engine<'_> {
    /// A weak function may be another one when the program is linked, which keeps what it is given. Pointers that nobody has
    /// written before are what they were initialised with.
    pub(crate) fn first_state(&mut self) -> State {
        let mut state = State::default();
        for (global, at) in self.named_pointers() {
            if self.knowledge.comes_first(global) {
                let obj = self.terms.intern_object(Object::Global(global));
                let term = self.initial(global, at).unwrap_or(ZERO);
                state.store(&self.terms, obj, Off::At(at), 8, term);
            }
        }
        if self.program.units[self.unit].symbols[self.function.symbol].linkage == Linkage::Weak {
            for index in self.function.params().map(|value| value.0).collect::<Vec<_>>() {
                let param = self.terms.param(index);
                if self.function.values[ValueId(index)].ty == Ty::Ptr
                    && let Some((obj, _)) = self.terms.pointee(param)
                {
                    state.obj_entry(obj, self.memory).lent = true;
                }
            }
        }
        state
    }

    /// Pointers in globals that the function reads or writes by their names.
    fn named_pointers(&self) -> BTreeSet<(GlobalId, i64)> {
        let function = self.function;
        let pointer = |value: ValueId| function.values[value].ty == Ty::Ptr;
        let places = function.insts.iter().filter_map(|inst| match inst.op {
            Op::Load { ptr } => inst.result.filter(|result| pointer(*result)).map(|_| ptr),
            Op::Store { ptr, value } => pointer(value).then_some(ptr),
            _ => None,
        });
        let named = places.filter_map(|place| match function.values[place].kind {
            ValueKind::Address(_, at) => Some((global_of(self.program, self.unit, function, place)?, at)),
            _ => None,
        });
        named.collect()
    }
}
