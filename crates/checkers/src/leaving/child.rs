//! Code that only a child process runs: `if (fork() == 0) { … }`.

use caulk_analysis::successors;
use caulk_base::Id;
use caulk_ir::{BlockId, Callee, CmpOp, Function, Op, Program, Target, ValueId, ValueKind};

use super::around::Site;

const FORKS: &[&str] = &["fork", "vfork", "forkpty"];

/// Is the call come to only where `fork` has returned 0?
pub fn is_in_child(program: &Program, site: Site) -> bool {
    let function = program.function(site.caller);
    let unit = program.unit_of(site.caller);
    let forks: Vec<ValueId> = super::around::calls(function)
        .filter(|(_, call)| match call.callee {
            Callee::Symbol(symbol) => match program.target(unit, symbol) {
                Target::Extern(external) => FORKS.contains(&program.externs[*external].as_str()),
                _ => false,
            },
            _ => false,
        })
        .filter_map(|(inst, _)| function.insts[inst].result)
        .collect();
    if forks.is_empty() {
        return false;
    }
    // Without the ways on which it returns 0, nobody comes there.
    let mut seen = vec![false; function.blocks.len()];
    let mut open = vec![BlockId(0)];
    while let Some(block) = open.pop() {
        if std::mem::replace(&mut seen[block.index()], true) {
            continue;
        }
        let range = function.blocks[block];
        if range.first <= site.inst && site.inst < range.end {
            return false;
        }
        let op = &function.terminator(block).1.op;
        let child = child_side(function, op, &forks);
        open.extend(successors(op).into_iter().filter(|to| Some(*to) != child));
    }
    true
}

/// Where a terminator goes in a child.
fn child_side(function: &Function, op: &Op, forks: &[ValueId]) -> Option<BlockId> {
    match op {
        Op::Branch { cond, then, els } => {
            let ValueKind::Inst(inst) = function.values[*cond].kind else { return None };
            let Op::Cmp { op, a, b } = function.insts[inst].op else { return None };
            let zero = |value: ValueId| matches!(function.values[value].kind, ValueKind::Int(0));
            match op {
                CmpOp::Eq if forks.contains(&a) && zero(b) => Some(*then),
                CmpOp::Ne if forks.contains(&a) && zero(b) => Some(*els),
                _ => None,
            }
        }
        Op::Switch { value, cases, default } if forks.contains(value) => {
            let case = cases.iter().find(|case| case.value == 0)?.to;
            (case != *default && cases.iter().filter(|other| other.to == case).count() == 1).then_some(case)
        }
        _ => None,
    }
}
