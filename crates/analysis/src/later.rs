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

/// Is a number returned, or put into memory that others see, on some way from `after`? By `close(fd)` it stands for nothing
/// any more, or for another file.
pub(crate) fn is_handed_on(function: &Function, cfg: &Cfg, value: ValueId, after: InstId) -> bool {
    // Each with where it is known from: the number itself behind `after`, what is made of it where it is made.
    let mut known = vec![(value, after)];
    let mut next = 0;
    while let Some(&(value, from)) = known.get(next) {
        next += 1;
        let comes_by = |inst: InstId| reaches(function, cfg, value, from, inst);
        for (id, inst) in function.insts.iter_ids() {
            let goes_on = match &inst.op {
                Op::Return { value: Some(result) } if *result == value && comes_by(id) => return true,
                Op::Store { ptr, value: stored } if *stored == value && address(function, *ptr).is_none() => {
                    if comes_by(id) {
                        return true;
                    }
                    false
                }
                Op::Cast { a, .. } => *a == value && comes_by(id),
                Op::Select { a, b, .. } => (*a == value || *b == value) && comes_by(id),
                Op::Phi { incoming } => {
                    let mut sources = incoming.iter().filter(|(_, one)| *one == value);
                    sources.any(|(block, _)| comes_by(function.terminator(*block).0))
                }
                _ => false,
            };
            let made = inst.result.filter(|result| goes_on && !known.iter().any(|(one, _)| one == result));
            known.extend(made.map(|result| (result, id)));
        }
    }
    false
}

/// Is there a way from one instruction to another on which the value is not made anew?
fn reaches(function: &Function, cfg: &Cfg, value: ValueId, from: InstId, to: InstId) -> bool {
    let (start, end) = (cfg.block_of[from.index()], cfg.block_of[to.index()]);
    if start == end && to > from {
        return true;
    }
    let made_in = match function.values[value].kind {
        ValueKind::Inst(inst) => Some(cfg.block_of[inst.index()]),
        _ => None,
    };
    let mut seen: FxHashSet<BlockId> = FxHashSet::default();
    let mut open = vec![start];
    while let Some(block) = open.pop() {
        let next = successors(&function.terminator(block).1.op);
        open.extend(next.into_iter().filter(|to| Some(*to) != made_in && seen.insert(*to)));
    }
    seen.contains(&end)
}

/// What is read from a word of a variable on some way from `after`.
pub(crate) fn read_from<'a>(
    function: &'a Function,
    cfg: &'a Cfg,
    word: Word,
    after: InstId,
) -> impl Iterator<Item = ValueId> + 'a {
    let reads = move |ptr: ValueId| address(function, ptr) == Some((word.variable, Some(word.offset)));
    function.insts.iter_ids().filter_map(move |(id, inst)| match inst.op {
        Op::Load { ptr } if reads(ptr) && is_behind(function, cfg, id, after) => inst.result,
        _ => None,
    })
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
