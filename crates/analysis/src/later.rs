//! What comes behind an instruction: is a word of a local variable read there?
//!
//!     push(&list, item);         // list.head leads to the block
//!     free(item);                // is list.head read from here on?
//!     show(&list);               // it is

use caulk_base::{FxHashSet, Id};
use caulk_ir::{BlockId, Function, InstId, Op, ValueId, ValueKind};

use crate::cfg::{Cfg, for_each_operand, successors};

/// Eight bytes of a variable on the stack, by its `alloca`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    pub variable: InstId,
    pub offset: i64,
}

const SIZE: i64 = 8;

/// May the word be read on some way from `after` before it is written?
pub(crate) fn is_read(function: &Function, cfg: &Cfg, word: Word, after: InstId) -> bool {
    let abroad = is_abroad(function, word.variable);
    let mut seen: FxHashSet<BlockId> = FxHashSet::default();
    let mut open = vec![(cfg.block_of[after.index()], Some(after))];
    while let Some((block, from)) = open.pop() {
        let rest = function.block_insts(block).filter(|(id, _)| from.is_none_or(|from| *id > from));
        let mut written = false;
        for (_, inst) in rest {
            match effect(function, word, &inst.op, abroad) {
                Effect::Reads => return true,
                Effect::Writes => {
                    written = true;
                    break;
                }
                Effect::None => {}
            }
        }
        if !written {
            let next = successors(&function.terminator(block).1.op);
            open.extend(next.into_iter().filter(|to| seen.insert(*to)).map(|to| (to, None)));
        }
    }
    false
}

/// May the instruction be run after `after`?
pub(crate) fn is_behind(function: &Function, cfg: &Cfg, inst: InstId, after: InstId) -> bool {
    let (start, end) = (cfg.block_of[after.index()], cfg.block_of[inst.index()]);
    if start == end && inst > after {
        return true;
    }
    let mut seen: FxHashSet<BlockId> = FxHashSet::default();
    let mut open = vec![start];
    while let Some(block) = open.pop() {
        let next = successors(&function.terminator(block).1.op);
        open.extend(next.into_iter().filter(|to| seen.insert(*to)));
    }
    seen.contains(&end)
}

/// The call that a pointer comes from, also as a number.
pub(crate) fn made_by(function: &Function, value: ValueId) -> Option<InstId> {
    let mut value = value;
    while let ValueKind::Inst(inst) = function.values[value].kind {
        match function.insts[inst].op {
            Op::Cast { a, .. } => value = a,
            Op::Call(_) => return Some(inst),
            _ => return None,
        }
    }
    None
}

/// Is the value read from this very word?
pub(crate) fn is_from(function: &Function, value: ValueId, word: Word) -> bool {
    let mut value = value;
    while let ValueKind::Inst(inst) = function.values[value].kind {
        match function.insts[inst].op {
            Op::Cast { a, .. } => value = a,
            Op::Load { ptr } => {
                return address(function, ptr) == Some((word.variable, Some(word.offset)));
            }
            _ => return false,
        }
    }
    false
}

enum Effect {
    Reads,
    Writes,
    None,
}

fn effect(function: &Function, word: Word, op: &Op, abroad: bool) -> Effect {
    let meets = |ptr: ValueId| match address(function, ptr) {
        Some((variable, offset)) => {
            variable == word.variable && offset.is_none_or(|offset| (offset - word.offset).abs() < SIZE)
        }
        None => abroad,
    };
    let covers = |ptr: ValueId, len: i64| {
        matches!(address(function, ptr), Some((variable, Some(offset)))
            if variable == word.variable && offset <= word.offset && word.offset + SIZE <= offset + len)
    };
    let length = |len: ValueId| match function.values[len].kind {
        ValueKind::Int(len) => len,
        _ => 0,
    };
    let inside = |ptr: ValueId| matches!(address(function, ptr), Some((variable, _)) if variable == word.variable);
    match op {
        Op::Load { ptr } if meets(*ptr) => Effect::Reads,
        Op::Store { ptr, .. } if covers(*ptr, SIZE) => Effect::Writes,
        Op::Copy { src, .. } if inside(*src) || abroad && address(function, *src).is_none() => Effect::Reads,
        Op::Copy { dst, len, .. } | Op::Fill { dst, len, .. } if covers(*dst, length(*len)) => Effect::Writes,
        Op::Call(call) if abroad || call.args.iter().any(|arg| inside(*arg)) => Effect::Reads,
        Op::Atomic { ptr, .. } if meets(*ptr) => Effect::Reads,
        Op::VaArg { list } if inside(*list) => Effect::Reads,
        Op::Opaque { operands, .. } if operands.iter().any(|value| inside(*value)) => Effect::Reads,
        _ => Effect::None,
    }
}

/// Does the variable's address lie where it is not followed: in memory, or in a value that may be another?
fn is_abroad(function: &Function, variable: InstId) -> bool {
    let of = |value: ValueId| matches!(address(function, value), Some((at, _)) if at == variable);
    function.insts.iter().any(|inst| match &inst.op {
        Op::Store { value, .. } | Op::Atomic { value, .. } | Op::Insert { value, .. } => of(*value),
        Op::Phi { .. } | Op::Select { .. } | Op::Bin { .. } => {
            let mut found = false;
            for_each_operand(&inst.op, |value| found |= of(value));
            found
        }
        _ => false,
    })
}

/// The variable that an address lies in, and where if that is known.
fn address(function: &Function, ptr: ValueId) -> Option<(InstId, Option<i64>)> {
    let (mut ptr, mut at) = (ptr, Some(0));
    loop {
        let ValueKind::Inst(inst) = function.values[ptr].kind else { return None };
        match &function.insts[inst].op {
            Op::Alloca { .. } => return Some((inst, at)),
            Op::Cast { a, .. } => ptr = *a,
            Op::Offset { base, bytes, indices, .. } => {
                at = if indices.is_empty() { at.map(|at: i64| at.wrapping_add(*bytes)) } else { None };
                ptr = *base;
            }
            _ => return None,
        }
    }
}
