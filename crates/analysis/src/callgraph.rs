//! Who may call whom, and the order in which functions are summarised.
//!
//! Calls through pointers are resolved by where function addresses are kept: a
//! pointer read at offset 16 of something means a function that was put at
//! offset 16 of something, with a matching signature. That keeps the slots of
//! operation tables apart without a points-to set for every variable.
//!
//! # Known imprecision
//! - Tables of different types that agree in offset and signature are mixed.

use caulk_base::{FxHashMap, FxHashSet, Id, IdVec};
use caulk_ir::{
    Callee, FuncId, Function, InitValue, InstId, Op, Program, Target, Ty, TypeKind, UnitId, ValueId, ValueKind,
};

/// More possible targets than this and a call counts as unknown.
pub const MAX_TARGETS: usize = 10;

#[derive(Default)]
pub struct CallGraph {
    /// Callees with a body, sorted. Calls through pointers count only where they do not tie a large part of
    /// the program into one recursion.
    pub callees: IdVec<FuncId, Vec<FuncId>>,
    /// Targets of calls through pointers, where they are few enough.
    pub indirect: FxHashMap<(FuncId, InstId), Vec<FuncId>>,
    pub indirect_calls: usize,
    pub resolved_calls: usize,
    /// Strongly connected components, callees before callers, in levels that do not depend on each other.
    pub levels: Vec<Vec<Vec<FuncId>>>,
    /// Functions of a lower level are summarised before those of a higher one.
    pub level_of: IdVec<FuncId, u32>,
}

type Signature = (usize, bool, bool, bool);

fn signature(function: &Function) -> Signature {
    (
        function.param_count as usize,
        function.variadic,
        matches!(function.ret, Ty::Void),
        matches!(function.ret, Ty::Ptr),
    )
}

/// Where the addresses of functions were seen.
#[derive(Default)]
struct Kept {
    by_offset: FxHashMap<i64, FxHashSet<FuncId>>,
    /// Passed on, returned or chosen between: they may be put anywhere.
    loose: FxHashSet<FuncId>,
    anywhere: FxHashSet<FuncId>,
}

pub fn build(program: &Program) -> CallGraph {
    let kept = addresses(program);
    let mut graph = CallGraph { callees: IdVec::filled(program.functions.len(), Vec::new()), ..CallGraph::default() };
    for id in program.functions.ids() {
        let unit = program.unit_of(id);
        let function = program.function(id);
        let mut callees: Vec<FuncId> = Vec::new();
        for (inst_id, inst) in function.insts.iter_ids() {
            let Op::Call(call) = &inst.op else { continue };
            match &call.callee {
                Callee::Symbol(symbol) => {
                    if let Target::Functions(all) = program.target(unit, *symbol) {
                        callees.extend(all);
                    }
                }
                Callee::Value(value) => {
                    graph.indirect_calls += 1;
                    let result = inst.result.map(|result| function.values[result].ty);
                    let found = resolve(program, unit, function, *value, call.args.len(), result, &kept);
                    if let Some(found) = found {
                        graph.resolved_calls += 1;
                        graph.indirect.insert((id, inst_id), found);
                    }
                }
                Callee::Intrinsic(_) | Callee::Asm(_) => {}
            }
        }
        callees.sort_unstable();
        callees.dedup();
        graph.callees[id] = callees;
    }
    add_indirect(&mut graph);
    graph.levels = levels(&graph.callees);
    graph.level_of = IdVec::filled(program.functions.len(), 0);
    for (level, components) in graph.levels.iter().enumerate() {
        for &member in components.iter().flatten() {
            graph.level_of[member] = level as u32;
        }
    }
    graph
}

/// More functions than this in one recursion and its calls through pointers do not order it.
const MAX_RECURSION: usize = 16;

fn add_indirect(graph: &mut CallGraph) {
    let mut calls: Vec<(FuncId, FuncId)> =
        graph.indirect.iter().flat_map(|((from, _), targets)| targets.iter().map(|&to| (*from, to))).collect();
    calls.sort_unstable();
    calls.dedup();
    let mut all = graph.callees.clone();
    for &(from, to) in &calls {
        all[from].push(to);
    }
    let mut component: IdVec<FuncId, (u32, usize)> = IdVec::filled(all.len(), (0, 0));
    for (number, members) in levels(&all).into_iter().flatten().enumerate() {
        for &member in &members {
            component[member] = (number as u32, members.len());
        }
    }
    for (from, to) in calls {
        let (mine, size) = component[from];
        if mine != component[to].0 || size <= MAX_RECURSION {
            graph.callees[from].push(to);
        }
    }
    for callees in graph.callees.iter_mut() {
        callees.sort_unstable();
        callees.dedup();
    }
}

fn functions_of<'p>(program: &'p Program, unit: UnitId, function: &Function, value: ValueId) -> &'p [FuncId] {
    if let ValueKind::Address(symbol, _) = function.values[value].kind
        && let Target::Functions(all) = program.target(unit, symbol)
    {
        return all;
    }
    &[]
}

fn addresses(program: &Program) -> Kept {
    let mut kept = Kept::default();
    for global in program.globals.ids() {
        let (unit, _) = program.globals[global];
        let definition = program.global(global);
        let element = element_size(program, unit, definition.ty);
        for init in &definition.init {
            if let InitValue::Address(symbol, _) = init.value
                && let Target::Functions(all) = program.target(unit, symbol)
            {
                let at = if element > 0 { init.offset % element } else { init.offset };
                kept.by_offset.entry(at as i64).or_default().extend(all);
                kept.anywhere.extend(all);
            }
        }
    }
    for id in program.functions.ids() {
        let unit = program.unit_of(id);
        let function = program.function(id);
        for inst in function.insts.iter() {
            match &inst.op {
                Op::Store { ptr, value } => {
                    let all = functions_of(program, unit, function, *value);
                    if !all.is_empty() {
                        kept.by_offset.entry(offset_of(function, *ptr)).or_default().extend(all);
                        kept.anywhere.extend(all);
                    }
                }
                Op::Call(call) => {
                    for &arg in &call.args {
                        kept.loose.extend(functions_of(program, unit, function, arg));
                    }
                }
                Op::Phi { incoming } => {
                    for &(_, value) in incoming {
                        kept.loose.extend(functions_of(program, unit, function, value));
                    }
                }
                Op::Select { a, b, .. } => {
                    kept.loose.extend(functions_of(program, unit, function, *a));
                    kept.loose.extend(functions_of(program, unit, function, *b));
                }
                Op::Return { value: Some(value) } => kept.loose.extend(functions_of(program, unit, function, *value)),
                _ => {}
            }
        }
    }
    kept.anywhere.extend(&kept.loose);
    kept
}

/// The size of an array's element, so that every row of a table counts as one.
fn element_size(program: &Program, unit: UnitId, ty: Option<caulk_ir::TypeId>) -> u64 {
    let unit = &program.units[unit];
    let mut at = ty;
    for _ in 0..16 {
        let Some(known) = at.and_then(|ty| unit.types.get(ty)) else { return 0 };
        match &known.kind {
            TypeKind::Typedef(inner) | TypeKind::Const(inner) | TypeKind::Qualified(inner) => at = *inner,
            TypeKind::Array(Some(element)) => {
                let element = unit.types.get(*element);
                return element.map_or(0, |element| element.size);
            }
            _ => return 0,
        }
    }
    0
}

fn offset_of(function: &Function, ptr: ValueId) -> i64 {
    match function.values[ptr].kind {
        ValueKind::Inst(inst) => match &function.insts[inst].op {
            Op::Offset { bytes, .. } => *bytes,
            _ => 0,
        },
        ValueKind::Address(_, off) => off,
        _ => 0,
    }
}

fn resolve(
    program: &Program,
    unit: UnitId,
    function: &Function,
    value: ValueId,
    args: usize,
    result: Option<Ty>,
    kept: &Kept,
) -> Option<Vec<FuncId>> {
    let direct = functions_of(program, unit, function, value);
    if !direct.is_empty() {
        return Some(direct.to_vec());
    }
    let fits = |id: &FuncId| {
        let (params, variadic, void, pointer) = signature(program.function(*id));
        let shape = params == args || (variadic && args >= params);
        shape && result.is_none_or(|ty| !void && pointer == matches!(ty, Ty::Ptr))
    };
    let loaded_from = match function.values[value].kind {
        ValueKind::Inst(inst) => match &function.insts[inst].op {
            Op::Load { ptr } => Some(offset_of(function, *ptr)),
            _ => None,
        },
        _ => None,
    };
    let from_slot: Option<Vec<FuncId>> = loaded_from
        .and_then(|offset| kept.by_offset.get(&offset))
        .map(|all| all.iter().copied().filter(fits).collect::<Vec<_>>())
        .filter(|all| !all.is_empty());
    let mut found = match from_slot {
        Some(found) => found,
        // Nothing was put at this place by name: only what is handed around can be there.
        None if loaded_from.is_some() => kept.loose.iter().copied().filter(fits).collect(),
        None => kept.anywhere.iter().copied().filter(fits).collect(),
    };
    if found.is_empty() || found.len() > MAX_TARGETS {
        return None;
    }
    found.sort_unstable();
    Some(found)
}

/// Tarjan's algorithm without recursion, then the longest distance to a leaf as level.
fn levels(callees: &IdVec<FuncId, Vec<FuncId>>) -> Vec<Vec<Vec<FuncId>>> {
    let count = callees.len();
    let mut index: IdVec<FuncId, u32> = IdVec::filled(count, u32::MAX);
    let mut low: IdVec<FuncId, u32> = IdVec::filled(count, 0);
    let mut on_stack: IdVec<FuncId, bool> = IdVec::filled(count, false);
    let mut component: IdVec<FuncId, u32> = IdVec::filled(count, u32::MAX);
    let mut components: Vec<Vec<FuncId>> = Vec::new();
    let mut stack: Vec<FuncId> = Vec::new();
    let mut next = 0;
    for root in (0..count).map(FuncId::new) {
        if index[root] != u32::MAX {
            continue;
        }
        let mut work: Vec<(FuncId, usize)> = vec![(root, 0)];
        while let Some((at, child)) = work.pop() {
            if child == 0 {
                index[at] = next;
                low[at] = next;
                next += 1;
                stack.push(at);
                on_stack[at] = true;
            }
            if let Some(&to) = callees[at].get(child) {
                work.push((at, child + 1));
                if index[to] == u32::MAX {
                    work.push((to, 0));
                } else if on_stack[to] {
                    low[at] = low[at].min(index[to]);
                }
                continue;
            }
            if low[at] == index[at] {
                let mut members = Vec::new();
                while let Some(top) = stack.pop() {
                    on_stack[top] = false;
                    component[top] = components.len() as u32;
                    members.push(top);
                    if top == at {
                        break;
                    }
                }
                members.sort_unstable();
                components.push(members);
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[at]);
            }
        }
    }
    // Components come out callees first.
    let mut level: Vec<usize> = vec![0; components.len()];
    for (number, members) in components.iter().enumerate() {
        let mut mine = 0;
        for &member in members {
            for &to in &callees[member] {
                let other = component[to] as usize;
                if other != number {
                    mine = mine.max(level[other] + 1);
                }
            }
        }
        level[number] = mine;
    }
    let mut levels: Vec<Vec<Vec<FuncId>>> = vec![Vec::new(); level.iter().max().map_or(0, |max| max + 1)];
    for (number, members) in components.into_iter().enumerate() {
        levels[level[number]].push(members);
    }
    levels
}
