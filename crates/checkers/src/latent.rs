//! Errors that wait for a caller who does not exist.
//!
//! ```text
//! struct item *insert(char *key, struct table *t) {
//!     if (t == NULL) t = create();         // lost when the function returns
//! ```
//!
//! The leak is there only where `t` is null. If every caller is known and none passes a null pointer by name, nobody has
//! written the program in which it happens: it is not reported. So it is with constants that no caller of a program passes
//! together: `copy(from, NULL, 1)` and `copy(from, to, 0)`, but never `copy(from, to, 1)`.
//!
//! The same in a caller: `insert(strdup(key), names)` leaks if `names` is null, but it is a variable that the caller
//! never compares with null. Whoever passes it on like that knows that it is not.

use std::sync::Arc;

use caulk_analysis::{Analysis, Event, Incident, Range, Term, ValueSet, tested};
use caulk_base::{FxHashMap, FxHashSet, Id};
use caulk_ir::{
    Callee, FuncId, Function, InitValue, InstId, Linkage, Op, Program, SymbolId, Target, Ty, UnitId, ValueId, ValueKind,
};

/// The constants that callers pass, call by call; functions that nobody calls by name are not listed.
pub struct Callers {
    calls: FxHashMap<FuncId, FxHashSet<Vec<Argument>>>,
    /// Functions that others may call as well: through pointers, or from outside of a library.
    open: FxHashSet<FuncId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Argument {
    Constant(i64),
    Pointer,
    Number,
}

impl Callers {
    /// Looks at every call of the functions whose arguments matter to one of the incidents.
    pub fn of(program: &Program, incidents: &[&Arc<Incident>]) -> Self {
        let told = incidents.iter().filter(|incident| !incident.arguments.is_empty());
        let asked: FxHashSet<FuncId> = told.map(|incident| incident.function).collect();
        let mut calls: FxHashMap<FuncId, FxHashSet<Vec<Argument>>> = FxHashMap::default();
        if asked.is_empty() {
            return Self { calls, open: FxHashSet::default() };
        }
        for id in program.functions.ids() {
            let (unit, function) = (program.unit_of(id), program.function(id));
            for inst in function.insts.iter() {
                let Op::Call(call) = &inst.op else { continue };
                let Callee::Symbol(symbol) = call.callee else { continue };
                let Target::Functions(targets) = program.target(unit, symbol) else { continue };
                if !targets.iter().any(|target| asked.contains(target)) {
                    continue;
                }
                let arguments: Vec<Argument> = call.args.iter().map(|value| argument(function, *value)).collect();
                for target in targets.iter().filter(|target| asked.contains(*target)) {
                    calls.entry(*target).or_default().insert(arguments.clone());
                }
            }
        }
        Self { calls, open: open_functions(program) }
    }

    /// Does the incident need arguments that no caller passes?
    pub fn rule_out(&self, incident: &Incident) -> bool {
        let Some(calls) = self.calls.get(&incident.function) else { return false };
        !incident.arguments.is_empty()
            && incident.arguments.iter().all(|needed| {
                let open = self.open.contains(&incident.function);
                !calls.iter().any(|call| fits(call, needed, open))
            })
    }
}

/// May this call be the one that leads to it?
fn fits(call: &[Argument], needed: &[(u32, Range)], open: bool) -> bool {
    needed.iter().all(|(param, range)| match call.get(*param as usize) {
        // Whoever passes a variable does not pass a null pointer.
        Some(Argument::Pointer) => range.constant() != Some(0),
        Some(Argument::Constant(value)) if !open => !range.excludes(*value),
        _ => true,
    })
}

/// Functions whose address is taken; in a library, also those that its users may call.
fn open_functions(program: &Program) -> FxHashSet<FuncId> {
    let is_program = !program.is_library();
    let mut open: FxHashSet<FuncId> = FxHashSet::default();
    let mut take = |unit: UnitId, symbol: SymbolId| {
        if let Target::Functions(targets) = program.target(unit, symbol) {
            open.extend(targets);
        }
    };
    for (id, unit) in program.units.iter_ids() {
        for init in unit.globals.iter().flat_map(|global| &global.init) {
            if let InitValue::Address(symbol, _) = init.value {
                take(id, symbol);
            }
        }
        for value in unit.functions.iter().flat_map(|function| function.values.iter()) {
            if let ValueKind::Address(symbol, _) = value.kind {
                take(id, symbol);
            }
        }
    }
    if !is_program {
        let internal = |id: FuncId| {
            let (unit, function) = (&program.units[program.unit_of(id)], program.function(id));
            unit.symbols[function.symbol].linkage == Linkage::Internal
        };
        open.extend(program.functions.ids().filter(|&id| !internal(id)));
    }
    open
}

fn argument(function: &Function, value: ValueId) -> Argument {
    let value = function.values[value];
    match value.kind {
        ValueKind::Null | ValueKind::Zero => Argument::Constant(0),
        ValueKind::Int(number) => Argument::Constant(number),
        _ if value.ty == Ty::Ptr => Argument::Pointer,
        _ => Argument::Number,
    }
}

/// Does every way to the incident that was seen need a null pointer that the function passes on without a look?
pub fn needs_unexpected_null(analysis: &Analysis<'_>, incident: &Incident) -> bool {
    let function = analysis.knowledge.program.function(incident.function);
    let calls = |path: &Vec<Event>| path.iter().any(|event| matches!(event, Event::Outcome { .. }));
    if !incident.paths.iter().all(calls) {
        return false;
    }
    let expected = tested(function);
    !incident.paths.is_empty()
        && incident.paths.iter().all(|path| {
            path.iter().any(|event| match event {
                Event::Outcome { inst, outcome } => {
                    passes_null(analysis, incident.function, *inst, *outcome, &expected)
                }
                _ => false,
            })
        })
}

/// Is the outcome one of a null argument, for an argument of which nothing was known?
fn passes_null(analysis: &Analysis<'_>, caller: FuncId, inst: InstId, outcome: u32, expected: &ValueSet) -> bool {
    let program = analysis.knowledge.program;
    let function = program.function(caller);
    let Op::Call(call) = &function.insts[inst].op else { return false };
    let Callee::Symbol(symbol) = call.callee else { return false };
    let Target::Functions(targets) = program.target(program.unit_of(caller), symbol) else { return false };
    let [target] = targets.as_slice() else { return false };
    let Some(summary) = analysis.knowledge.summary(*target) else { return false };
    let Some(outcome) = summary.outcomes.get(outcome as usize) else { return false };
    outcome.ranges.iter().any(|(term, lo, hi, _)| {
        let Some(Term::Param(index)) = summary.terms.get(term.index()) else { return false };
        let Some(&argument) = call.args.get(*index as usize) else { return false };
        let value = function.values[argument];
        // A parameter of our own is a question for our callers, a new block may be none, and what a local variable holds
        // was put there by this function: it may well be null.
        let is_read = matches!(value.kind, ValueKind::Inst(inst)
            if matches!(function.insts[inst].op, Op::Load { ptr } if !is_local(function, ptr)));
        (*lo, *hi) == (0, 0) && value.ty == Ty::Ptr && is_read && !expected.contains(argument)
    })
}

/// Does the pointer lead into a variable of the function?
pub(crate) fn is_local(function: &Function, ptr: ValueId) -> bool {
    let mut at = ptr;
    while let ValueKind::Inst(inst) = function.values[at].kind {
        match &function.insts[inst].op {
            Op::Alloca { .. } => return true,
            Op::Offset { base, .. } => at = *base,
            Op::Cast { a, .. } => at = *a,
            _ => return false,
        }
    }
    false
}
