//! Errors that need an object to say one thing, and the contrary after it was asked to do something.
//!
//! ```text
//! if (c->flags & MANY) v = split(text); else v = &text;
//! c->set(c, v);                           // whatever this is, it was chosen by whoever made `c`
//! if (c->flags & MANY) free(v);           // released although it was not split?
//! ```
//!
//! What a call through a pointer does is not known for sure, so that from there on the flag may be any. But a path on
//! which it is one thing before and another thing behind is nobody's: the author asks twice because the answer stays.
//! An error to which all ways are like that is not reported. Where the function itself, or a call by name, may have
//! changed the flag, the path counts.

use caulk_analysis::{Event, Incident};
use caulk_ir::{BlockId, Callee, CmpOp, Function, InstId, Op, Program, SymbolId, ValueId, ValueKind};

/// Blocks that are walked through at most.
const FAR: usize = 4096;

/// Does every way to the incident need that an object contradicts itself?
pub fn contradicts_itself(program: &Program, incident: &Incident) -> bool {
    let function = program.function(incident.function);
    let through_pointer = |op: &Op| matches!(op, Op::Call(call) if matches!(call.callee, Callee::Value(_)));
    function.insts.iter().any(|inst| through_pointer(&inst.op))
        && !incident.paths.is_empty()
        && incident.paths.iter().all(|path| is_contradictory(function, path))
}

/// An answer that was got on a way.
struct Answer {
    question: ValueId,
    /// The values that it was worked out from: once one of them is another, so is the question.
    parts: Vec<ValueId>,
    truth: bool,
    /// A call through a pointer came behind it.
    called: bool,
}

fn is_contradictory(function: &Function, path: &[Event]) -> bool {
    let mut decisions = path.iter().filter_map(|event| match event {
        Event::Branch { inst, to, first } => Some((*inst, *to, *first)),
        _ => None,
    });
    let mut answers: Vec<Answer> = Vec::new();
    let mut block = BlockId(0);
    for _ in 0..FAR {
        let range = function.blocks[block];
        for at in range.first.0..range.end.0 {
            pass(function, InstId(at), &mut answers);
        }
        let (terminator, inst) = function.terminator(block);
        block = match &inst.op {
            Op::Jump { to } => *to,
            Op::Branch { cond, .. } => {
                let Some((at, to, truth)) = decisions.next() else { return false };
                if at != terminator {
                    return false;
                }
                let same = |answer: &Answer| is_same(function, answer.question, *cond, 8);
                if answers.iter().any(|answer| answer.called && answer.truth != truth && same(answer)) {
                    return true;
                }
                if reads(function, *cond).next().is_some() {
                    answers.push(Answer { question: *cond, parts: parts(function, *cond), truth, called: false });
                }
                to
            }
            Op::Switch { .. } => match decisions.next() {
                Some((at, to, _)) if at == terminator => to,
                _ => return false,
            },
            _ => return false,
        };
    }
    false
}

/// What an instruction on the way means for the answers.
fn pass(function: &Function, at: InstId, answers: &mut Vec<Answer>) {
    if let Some(result) = function.insts[at].result {
        answers.retain(|answer| !answer.parts.contains(&result));
    }
    match &function.insts[at].op {
        Op::Call(call) if matches!(call.callee, Callee::Value(_)) => {
            answers.iter_mut().for_each(|answer| answer.called = true);
        }
        Op::Call(call) if matches!(call.callee, Callee::Symbol(_)) => {
            // Who is given the object may change it; who is given nothing may change what everybody sees.
            answers.retain(|answer| {
                reads(function, answer.question).all(|ptr| match owner(function, ptr) {
                    Some(Owner::Value(owner)) => !call.args.iter().any(|&arg| leads_to(function, arg, owner)),
                    _ => false,
                })
            });
        }
        Op::Call(_) | Op::Copy { .. } | Op::Fill { .. } | Op::Atomic { .. } | Op::Opaque { .. } => answers.clear(),
        Op::Store { ptr, .. } => {
            answers.retain(|answer| !reads(function, answer.question).any(|place| is_same(function, place, *ptr, 8)));
        }
        _ => {}
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Value(ValueId),
    Global(SymbolId),
}

/// The pointer or variable at the beginning of a place.
fn owner(function: &Function, ptr: ValueId) -> Option<Owner> {
    let mut at = ptr;
    loop {
        match function.values[at].kind {
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Offset { base, .. } => at = *base,
                _ => return Some(Owner::Value(at)),
            },
            ValueKind::Address(symbol, _) => return Some(Owner::Global(symbol)),
            ValueKind::Param(_) => return Some(Owner::Value(at)),
            _ => return None,
        }
    }
}

fn leads_to(function: &Function, value: ValueId, target: ValueId) -> bool {
    owner(function, value) == Some(Owner::Value(target))
}

/// The places that a condition reads.
fn reads(function: &Function, cond: ValueId) -> impl Iterator<Item = ValueId> {
    let place = |value: ValueId| match function.values[value].kind {
        ValueKind::Inst(inst) => match function.insts[inst].op {
            Op::Load { ptr } => Some(ptr),
            _ => None,
        },
        _ => None,
    };
    parts(function, cond).into_iter().filter_map(place)
}

/// All that goes into a value, with itself.
fn parts(function: &Function, value: ValueId) -> Vec<ValueId> {
    let mut all = vec![value];
    let mut at = 0;
    while at < all.len() {
        if let ValueKind::Inst(inst) = function.values[all[at]].kind {
            match &function.insts[inst].op {
                Op::Load { ptr } => all.push(*ptr),
                Op::Cmp { a, b, .. } | Op::Bin { a, b, .. } => all.extend([*a, *b]),
                Op::Offset { base, .. } => all.push(*base),
                Op::Cast { a, .. } => all.push(*a),
                _ => {}
            }
        }
        at += 1;
    }
    all
}

/// Are the two worked out in the same way from the same values and places?
fn is_same(function: &Function, one: ValueId, other: ValueId, depth: u32) -> bool {
    if one == other {
        return true;
    }
    let (ValueKind::Inst(a), ValueKind::Inst(b)) = (function.values[one].kind, function.values[other].kind) else {
        return function.values[one].kind == function.values[other].kind;
    };
    let same = |x: ValueId, y: ValueId| depth > 0 && is_same(function, x, y, depth - 1);
    match (&function.insts[a].op, &function.insts[b].op) {
        (Op::Load { ptr: x }, Op::Load { ptr: y }) => same(*x, *y),
        (Op::Cast { a: x, op: p }, Op::Cast { a: y, op: q }) => p == q && same(*x, *y),
        (Op::Cmp { op: p, a: x, b: u }, Op::Cmp { op: q, a: y, b: v }) => {
            p == q && *p != CmpOp::Float && same(*x, *y) && same(*u, *v)
        }
        (Op::Bin { op: p, a: x, b: u }, Op::Bin { op: q, a: y, b: v }) => p == q && same(*x, *y) && same(*u, *v),
        (Op::Offset { base: x, bytes: i, indices: m, .. }, Op::Offset { base: y, bytes: j, indices: n, .. }) => {
            i == j && m.is_empty() && n.is_empty() && same(*x, *y)
        }
        _ => false,
    }
}
