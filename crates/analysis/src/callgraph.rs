//! Who may call whom, and the order in which functions are summarised.
//!
//! Calls through pointers are resolved by `slots`.

use std::collections::BTreeMap;

use caulk_base::{FxHashSet, Id, IdVec};
use caulk_ir::{Callee, FuncId, InstId, Op, Program, Target};

use crate::slots::{Slots, Targets};

/// More possible targets than this and a call counts as unknown.
pub const MAX_TARGETS: usize = 10;

#[derive(Default)]
pub struct CallGraph {
    /// Callees with a body, sorted. Calls through pointers count only where they do not tie a large part of
    /// the program into one recursion.
    pub callees: IdVec<FuncId, Vec<FuncId>>,
    /// Targets of calls through pointers, where they are few enough.
    pub indirect: BTreeMap<(FuncId, InstId), Targets>,
    /// Loads from members of tables in which there is never anything.
    pub nulls: FxHashSet<(FuncId, InstId)>,
    pub indirect_calls: usize,
    pub resolved_calls: usize,
    /// Strongly connected components, callees before callers, in levels that do not call each other.
    pub levels: Vec<Vec<Vec<FuncId>>>,
    /// Functions of a lower level are summarised before those of a higher one.
    pub level_of: IdVec<FuncId, u32>,
}

impl CallGraph {
    /// What the calls through pointers in a function may mean, where that is known.
    pub fn indirect_of(&self, function: FuncId) -> impl Iterator<Item = &Targets> {
        let calls = (function, InstId(0))..=(function, InstId(u32::MAX));
        self.indirect.range(calls).map(|entry| entry.1)
    }
}

/// Who may be called through which pointer, however many there are: for those who ask for all callers of a function.
pub struct PointerCalls {
    /// By call, sorted.
    pub targets: BTreeMap<(FuncId, InstId), Targets>,
    /// Those that were put there by name, whatever else may be there.
    pub named: BTreeMap<(FuncId, InstId), Vec<FuncId>>,
    /// Functions whose address is handed round: anybody may call them.
    pub loose: FxHashSet<FuncId>,
}

pub fn pointer_calls(program: &Program) -> PointerCalls {
    let slots = Slots::of(program);
    let strays = slots.strays();
    let (mut targets, mut named) = (BTreeMap::new(), BTreeMap::new());
    for id in program.functions.ids() {
        let function = program.function(id);
        for (inst_id, inst) in function.insts.iter_ids() {
            let Op::Call(call) = &inst.op else { continue };
            if !matches!(call.callee, Callee::Value(_)) {
                continue;
            }
            let result = inst.result.map(|result| function.values[result].ty);
            let (all, by_name) = slots.all(program, id, call, result, &strays);
            named.insert((id, inst_id), by_name);
            targets.insert((id, inst_id), all);
        }
    }
    PointerCalls { targets, named, loose: slots.into_loose() }
}

/// Who calls a function that never comes back need not know what it does: `never` stays out of the order.
pub fn build(program: &Program, never: &IdVec<FuncId, bool>) -> CallGraph {
    let (slots, is_library) = (Slots::of(program), program.is_library());
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
                    let found = slots.resolve(program, id, *value, &call.args, result);
                    if let Some(found) = found {
                        graph.resolved_calls += 1;
                        graph.indirect.insert((id, inst_id), found);
                    }
                }
                Callee::Intrinsic(_) | Callee::Asm(_) => {}
            }
        }
        callees.retain(|callee| !never[*callee]);
        callees.sort_unstable();
        callees.dedup();
        graph.callees[id] = callees;
        // A library's users may fill its tables.
        if !is_library {
            graph.nulls.extend(slots.nulls(program, unit, function).into_iter().map(|inst| (id, inst)));
        }
    }
    add_indirect(&mut graph, never);
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

fn add_indirect(graph: &mut CallGraph, never: &IdVec<FuncId, bool>) {
    let calls = |by_parameter: bool| {
        let found = graph.indirect.iter().filter(|(_, targets)| targets.by_parameter == by_parameter);
        let mut calls: Vec<(FuncId, FuncId)> =
            found.flat_map(|((from, _), targets)| targets.functions.iter().map(|&to| (*from, to))).collect();
        calls.retain(|(_, to)| !never[*to]);
        calls.sort_unstable();
        calls.dedup();
        calls
    };
    let (by_member, by_parameter) = (calls(false), calls(true));
    let with = |mut all: IdVec<FuncId, Vec<FuncId>>, calls: &[(FuncId, FuncId)]| {
        for &(from, to) in calls {
            all[from].push(to);
        }
        all
    };
    let all = with(graph.callees.clone(), &by_member);
    let recursions = components(&all);
    let ordered = by_member.into_iter().filter(|&(from, to)| {
        let (mine, size) = recursions[from];
        mine != recursions[to].0 || size <= MAX_RECURSION
    });
    let ordered: Vec<(FuncId, FuncId)> = ordered.collect();
    // What is passed as an argument may lead back to nearly everything: it orders nothing that is not ordered without it.
    let recursions = components(&with(all, &by_parameter));
    let onwards = by_parameter.into_iter().filter(|&(from, to)| recursions[from].0 != recursions[to].0);
    for (from, to) in ordered.into_iter().chain(onwards) {
        graph.callees[from].push(to);
    }
    for callees in graph.callees.iter_mut() {
        callees.sort_unstable();
        callees.dedup();
    }
}

/// The recursion that a function belongs to, and how many others do.
fn components(callees: &IdVec<FuncId, Vec<FuncId>>) -> IdVec<FuncId, (u32, usize)> {
    let mut component: IdVec<FuncId, (u32, usize)> = IdVec::filled(callees.len(), (0, 0));
    for (number, members) in levels(callees).into_iter().flatten().enumerate() {
        for &member in &members {
            component[member] = (number as u32, members.len());
        }
    }
    component
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
                // The last to be found first: callees before callers, as far as a recursion has an order.
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
