//! Functions that never come back, found by control flow alone: every way from the entry ends in a call
//! that does not return. Needed before anything is summarised, for calls through pointers whose only known
//! target is such a function (out-of-memory handlers).

use caulk_base::{Id, IdVec};
use caulk_ir::{BlockId, Callee, ExternId, FuncId, Op, Program, Target};

use crate::cfg::successors;

/// Chains of wrappers longer than this are found by the summaries anyway.
const MAX_ROUNDS: usize = 8;

pub fn find(program: &Program, ends: impl Fn(ExternId) -> bool) -> IdVec<FuncId, bool> {
    let mut never: IdVec<FuncId, bool> = IdVec::filled(program.functions.len(), false);
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for id in program.functions.ids() {
            if !never[id] && (program.function(id).attrs.noreturn || !may_return(program, id, &never, &ends)) {
                never[id] = true;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    never
}

fn may_return(program: &Program, id: FuncId, never: &IdVec<FuncId, bool>, ends: &impl Fn(ExternId) -> bool) -> bool {
    let function = program.function(id);
    let unit = program.unit_of(id);
    let mut seen = vec![false; function.blocks.len()];
    let mut open = vec![BlockId(0)];
    while let Some(block) = open.pop() {
        if std::mem::replace(&mut seen[block.index()], true) {
            continue;
        }
        let stops = function.block_insts(block).any(|(_, inst)| match &inst.op {
            Op::Call(call) if call.noreturn => true,
            Op::Call(call) => match &call.callee {
                Callee::Symbol(symbol) => match program.target(unit, *symbol) {
                    Target::Functions(all) => !all.is_empty() && all.iter().all(|&callee| never[callee]),
                    Target::Extern(external) => ends(*external),
                    Target::Globals(_) => false,
                },
                _ => false,
            },
            _ => false,
        });
        if stops {
            continue;
        }
        match &function.terminator(block).1.op {
            Op::Return { .. } => return true,
            other => open.extend(successors(other)),
        }
    }
    false
}
