//! Globals that are nothing but an argument: set by one function, read by those it calls, and by nobody later.
//!
//!     static char *line;                        // `line` passes a value from `parse` to `lex`:
//!     static int lex(void) { return line[0]; }  // when `parse` returns, nobody will read it before
//!     int parse(void) {                         // the next call sets it again. What only `line`
//!         line = read_line();                   // holds then is lost.
//!         return lex();
//!     }
//!
//! # Invariants
//! - Only what the program shows counts: a global that others may see, or whose address is taken, is none of these.

use caulk_base::{FxHashMap, FxHashSet, Id, IdVec};
use caulk_ir::{
    BlockId, Callee, FuncId, Function, GlobalId, InitValue, Linkage, Op, Program, SymbolId, Target, UnitId, ValueId,
    ValueKind,
};

use crate::callgraph::CallGraph;
use crate::cfg::{for_each_operand, successors};

/// Who reads and writes a global by its name.
#[derive(Clone, Default)]
struct Access {
    readers: FxHashSet<FuncId>,
    writers: FxHashSet<FuncId>,
    /// Its address goes elsewhere.
    open: bool,
}

/// The globals that are arguments, with the function that sets each.
pub fn find(program: &Program, graph: &CallGraph) -> FxHashMap<GlobalId, FuncId> {
    let mut accesses: IdVec<GlobalId, Access> = IdVec::filled(program.globals.len(), Access::default());
    let mut named: IdVec<FuncId, bool> = IdVec::filled(program.functions.len(), false);
    let mut callers: IdVec<FuncId, Vec<FuncId>> = IdVec::filled(program.functions.len(), Vec::new());
    for (unit_id, unit) in program.units.iter_ids() {
        for init in unit.globals.iter().flat_map(|global| &global.init) {
            if let InitValue::Address(symbol, _) = init.value {
                mention(program, unit_id, symbol, &mut accesses, &mut named);
            }
        }
    }
    for id in program.functions.ids() {
        graph.callees[id].iter().for_each(|&callee| callers[callee].push(id));
        note(program, id, &mut accesses, &mut named);
    }
    let private = |symbol: SymbolId, unit: UnitId| program.units[unit].symbols[symbol].linkage == Linkage::Internal;
    let mut found = FxHashMap::default();
    for (global, access) in accesses.iter_ids() {
        let (unit, _) = program.globals[global];
        let definition = program.global(global);
        let mut writers = access.writers.iter();
        if let (Some(&owner), None) = (writers.next(), writers.next())
            && !access.open
            && !definition.thread_local
            && private(definition.symbol, unit)
            && access.readers.iter().any(|&reader| reader != owner)
            && let Some(below) = only_below(&access.readers, owner, &callers, |id| {
                !named[id] && private(program.function(id).symbol, program.unit_of(id))
            })
            && !below.iter().any(|id| graph.callees[*id].contains(&owner))
            && sets_first(program, owner, global, &below)
        {
            found.insert(global, owner);
        }
    }
    found
}

/// The address of something is used as a value.
fn mention(
    program: &Program,
    unit: UnitId,
    symbol: SymbolId,
    accesses: &mut IdVec<GlobalId, Access>,
    named: &mut IdVec<FuncId, bool>,
) {
    match program.target(unit, symbol) {
        Target::Functions(all) => all.iter().for_each(|&id| named[id] = true),
        Target::Globals(all) => all.iter().for_each(|&global| accesses[global].open = true),
        Target::Extern(_) => {}
    }
}

fn note(program: &Program, id: FuncId, accesses: &mut IdVec<GlobalId, Access>, named: &mut IdVec<FuncId, bool>) {
    let (unit, function) = (program.unit_of(id), program.function(id));
    for inst in function.insts.iter() {
        let place = match inst.op {
            Op::Load { ptr } | Op::Store { ptr, .. } => Some(ptr),
            _ => None,
        };
        if let Some(global) = place.and_then(|ptr| global_of(program, unit, function, ptr)) {
            let access = &mut accesses[global];
            let whole = matches!(place.map(|ptr| function.values[ptr].kind), Some(ValueKind::Address(_, 0)));
            access.open |= !whole;
            if matches!(inst.op, Op::Load { .. }) { &mut access.readers } else { &mut access.writers }.insert(id);
        }
        for_each_operand(&inst.op, |value| {
            let is_place =
                Some(value) == place && !matches!(inst.op, Op::Store { value: stored, .. } if stored == value);
            if let ValueKind::Address(symbol, _) = function.values[value].kind
                && !(is_place && global_of(program, unit, function, value).is_some())
            {
                mention(program, unit, symbol, accesses, named);
            }
        });
    }
}

/// The one global that a value is the address of.
pub(crate) fn global_of(program: &Program, unit: UnitId, function: &Function, value: ValueId) -> Option<GlobalId> {
    let ValueKind::Address(symbol, _) = function.values[value].kind else { return None };
    match program.target(unit, symbol) {
        Target::Globals(all) => match all.as_slice() {
            [one] => Some(*one),
            _ => None,
        },
        _ => None,
    }
}

/// The readers and those that lead to them, if there is no way to them but through `owner`.
fn only_below(
    readers: &FxHashSet<FuncId>,
    owner: FuncId,
    callers: &IdVec<FuncId, Vec<FuncId>>,
    is_private: impl Fn(FuncId) -> bool,
) -> Option<FxHashSet<FuncId>> {
    let mut below: FxHashSet<FuncId> = FxHashSet::default();
    let mut open: Vec<FuncId> = readers.iter().copied().filter(|&reader| reader != owner).collect();
    while let Some(id) = open.pop() {
        if !below.insert(id) {
            continue;
        }
        if !is_private(id) || callers[id].is_empty() {
            return None;
        }
        open.extend(callers[id].iter().copied().filter(|&caller| caller != owner));
    }
    Some(below)
}

/// Is the global set on every way through `owner` before it is read there or in a callee?
fn sets_first(program: &Program, owner: FuncId, global: GlobalId, below: &FxHashSet<FuncId>) -> bool {
    let (unit, function) = (program.unit_of(owner), program.function(owner));
    let mut seen = vec![false; function.blocks.len()];
    let mut open = vec![BlockId(0)];
    while let Some(block) = open.pop() {
        if std::mem::replace(&mut seen[block.index()], true) {
            continue;
        }
        let mut set = false;
        for (_, inst) in function.block_insts(block) {
            match &inst.op {
                Op::Store { ptr, .. } if global_of(program, unit, function, *ptr) == Some(global) => {
                    set = true;
                    break;
                }
                Op::Load { ptr } if global_of(program, unit, function, *ptr) == Some(global) => return false,
                Op::Call(call) => {
                    if let Callee::Symbol(symbol) = &call.callee
                        && let Target::Functions(all) = program.target(unit, *symbol)
                        && all.iter().any(|callee| below.contains(callee))
                    {
                        return false;
                    }
                }
                _ => {}
            }
        }
        if !set {
            open.extend(successors(&function.terminator(block).1.op));
        }
    }
    true
}
