//! Errors that need one answer from an object, and its contrary a line later.
//!
//! ```text
//! text = c->filter(c);          // which function that is, whoever made `c` has decided
//! write(c->fd, text);
//! if (c->copies)                // and this as well
//!     free(text);
//! ```
//!
//! Only some filters allocate, and they are put where `copies` is set: what an object does and what it says of itself go
//! together. A block that is lost only in an object which calls the one function and says the other is not reported.
//!
//! So it is with a function that copies, if there is one: `e->key = t->copy ? t->copy(key) : key`. Who passes a new key
//! knows that there is none. And with a list that says whether it copies: who appends a new text to a list that he was given,
//! or has found, knows that it does not.
//!
//! Known imprecision: where the two have nothing to do with each other, a true error is not seen.

use caulk_analysis::{Event, Incident, IncidentKind, Subject};
use caulk_ir::{BlockId, Callee, FuncId, Function, InstId, Op, Program, SymbolId, Target, ValueId, ValueKind};

use crate::latent::is_local;

/// Does every way to the leak ask the object again that chose the allocating function?
pub fn asks_again(program: &Program, incident: &Incident) -> bool {
    let (IncidentKind::Leak, Subject::Allocated { site, .. }) = (&incident.kind, &incident.subject) else {
        return false;
    };
    let function = program.function(incident.function);
    let Op::Call(call) = &function.insts[*site].op else { return false };
    let Callee::Value(pointer) = call.callee else { return false };
    let Some(owner) = read_from(function, pointer) else { return false };
    !incident.paths.is_empty() && incident.paths.iter().all(|path| is_asked(function, path, *site, owner))
}

/// Is the block lost by being given to a function that the object has or has not, and kept where it has none?
pub fn is_copied_on_demand(program: &Program, incident: &Incident) -> bool {
    let (IncidentKind::Leak, Subject::Allocated { site, .. }) = (&incident.kind, &incident.subject) else {
        return false;
    };
    let function = program.function(incident.function);
    let Some(block) = function.insts[*site].result else { return false };
    let calls = function.insts.iter().filter_map(|inst| match &inst.op {
        Op::Call(call) if call.args.contains(&block) => Some((call, inst.result?)),
        _ => None,
    });
    let mut copying = calls.filter(|(call, _)| matches!(call.callee, Callee::Value(_)));
    let Some((call, copy)) = copying.next() else { return false };
    let Callee::Value(pointer) = call.callee else { return false };
    // Of an object that is made here it is known what it has.
    let Some(Owner::Value(owner)) = read_from(function, pointer) else { return false };
    matches!(function.values[owner].kind, ValueKind::Param(_))
        && is_tested(function, pointer)
        && is_kept_instead(function, *site, copy, block)
}

/// Is the block lost by being given to a function that keeps or copies it, as the object says to which it goes?
pub fn is_copied_by_mode(program: &Program, incident: &Incident) -> bool {
    let (IncidentKind::Leak, Subject::Allocated { site, .. }) = (&incident.kind, &incident.subject) else {
        return false;
    };
    let function = program.function(incident.function);
    let Some(block) = function.insts[*site].result else { return false };
    let passes_by = |path: &Vec<Event>| {
        path.iter().any(|event| match event {
            Event::Outcome { inst, .. } => is_given_to_copier(program, incident.function, *inst, block),
            _ => false,
        })
    };
    !incident.paths.is_empty() && incident.paths.iter().all(passes_by)
}

/// Is it a call of a function that copies the block or keeps it, by what lies in another argument which is not made here?
fn is_given_to_copier(program: &Program, caller: FuncId, call: InstId, block: ValueId) -> bool {
    let function = program.function(caller);
    let Op::Call(call) = &function.insts[call].op else { return false };
    let Callee::Symbol(symbol) = call.callee else { return false };
    let Target::Functions(targets) = program.target(program.unit_of(caller), symbol) else { return false };
    let [target] = targets.as_slice() else { return false };
    let Some(given) = call.args.iter().position(|&arg| arg == block) else { return false };
    let mut owners = call.args.iter().enumerate().filter(|&(at, &arg)| at != given && !is_local(function, arg));
    owners.any(|(at, _)| copies_by(program.function(*target), given as u32, at as u32))
}

/// `keep(list->copies ? strdup(text) : text)`, of a `text` and a `list` that are parameters.
fn copies_by(function: &Function, given: u32, owner: u32) -> bool {
    let param = |index: u32| function.params().find(|&value| function.values[value].kind == ValueKind::Param(index));
    let (Some(given), Some(owner)) = (param(given), param(owner)) else { return false };
    let owner = Owner::Value(owner);
    let is_copy = |value: ValueId| {
        matches!(function.values[value].kind, ValueKind::Inst(inst)
            if matches!(&function.insts[inst].op, Op::Call(call) if call.args.contains(&given)))
    };
    function.blocks.ids().any(|block| {
        function.block_insts(block).any(|(_, inst)| match &inst.op {
            Op::Select { cond, a, b } => {
                ((*a == given && is_copy(*b)) || (*b == given && is_copy(*a)))
                    && is_worked_out_from(function, *cond, owner)
            }
            Op::Phi { incoming } => {
                incoming.iter().any(|entry| entry.1 == given)
                    && incoming.iter().any(|entry| is_copy(entry.1))
                    && function.blocks.ids().any(|from| {
                        let (branch, inst) = function.terminator(from);
                        let near = |to: BlockId| to == block || incoming.iter().any(|entry| entry.0 == to);
                        matches!(inst.op, Op::Branch { then, els, .. } if near(then) && near(els))
                            && asks(function, branch, owner)
                    })
            }
            _ => false,
        })
    })
}

/// Is the function that is read from somewhere compared with null, where it is read once more or here?
fn is_tested(function: &Function, pointer: ValueId) -> bool {
    let read = |value: ValueId| match function.values[value].kind {
        ValueKind::Inst(inst) => match function.insts[inst].op {
            Op::Load { ptr } => Some((read_from(function, value), offset(function, ptr))),
            _ => None,
        },
        _ => None,
    };
    let Some(place) = read(pointer) else { return false };
    function.insts.iter().any(|inst| match inst.op {
        Op::Cmp { a, b, .. } => function.values[b].kind == ValueKind::Null && read(a) == Some(place),
        _ => false,
    })
}

/// Where the copy goes, does the block itself go as well, or another that is made in the same way?
fn is_kept_instead(function: &Function, site: InstId, copy: ValueId, block: ValueId) -> bool {
    let callee = |inst: InstId| match &function.insts[inst].op {
        Op::Call(call) => match call.callee {
            Callee::Symbol(symbol) => Some((symbol, call.args.as_slice())),
            _ => None,
        },
        _ => None,
    };
    let like_block = |value: ValueId| {
        value == block
            || matches!(function.values[value].kind, ValueKind::Inst(inst)
                if inst != site && callee(inst).is_some() && callee(inst) == callee(site))
    };
    let goes_to = |wanted: &dyn Fn(ValueId) -> bool| -> Vec<Option<(ValueId, i64)>> {
        let stores = function.insts.iter().filter_map(|inst| match inst.op {
            Op::Store { ptr, value } if wanted(value) => Some(place(function, ptr)),
            _ => None,
        });
        stores.filter(Option::is_some).collect()
    };
    let copies = goes_to(&|value| value == copy);
    let joined = function.insts.iter().any(|inst| match &inst.op {
        Op::Phi { incoming } => {
            incoming.iter().any(|entry| entry.1 == copy) && incoming.iter().any(|entry| like_block(entry.1))
        }
        _ => false,
    });
    joined || goes_to(&like_block).iter().any(|at| copies.contains(at))
}

/// Bytes from the pointer that a place begins with.
fn offset(function: &Function, ptr: ValueId) -> i64 {
    match function.values[ptr].kind {
        ValueKind::Inst(inst) => match function.insts[inst].op {
            Op::Offset { bytes, .. } => bytes,
            _ => 0,
        },
        ValueKind::Address(_, bytes) => bytes,
        _ => 0,
    }
}

/// A base and bytes behind it.
pub(crate) fn place(function: &Function, ptr: ValueId) -> Option<(ValueId, i64)> {
    let ValueKind::Inst(inst) = function.values[ptr].kind else { return None };
    match &function.insts[inst].op {
        Op::Offset { base, bytes, indices, .. } if indices.is_empty() => Some((*base, *bytes)),
        _ => None,
    }
}

/// Who holds what is read: the first pointer on the way there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Value(ValueId),
    Global(SymbolId),
}

pub(crate) fn read_from(function: &Function, value: ValueId) -> Option<Owner> {
    let (mut at, mut read) = (value, false);
    loop {
        match function.values[at].kind {
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Load { ptr } => (at, read) = (*ptr, true),
                Op::Offset { base, .. } => at = *base,
                Op::Cast { a, .. } => at = *a,
                _ => return read.then_some(Owner::Value(at)),
            },
            ValueKind::Address(symbol, _) => return read.then_some(Owner::Global(symbol)),
            _ => return read.then_some(Owner::Value(at)),
        }
    }
}

fn is_asked(function: &Function, path: &[Event], site: InstId, owner: Owner) -> bool {
    let behind = path.iter().skip_while(|event| !matches!(event, Event::Alloc { inst, .. } if *inst == site));
    behind.into_iter().any(|event| match event {
        Event::Branch { inst, .. } => asks(function, *inst, owner),
        _ => false,
    })
}

/// Is the branch decided by something that the owner holds?
pub(crate) fn asks(function: &Function, branch: InstId, owner: Owner) -> bool {
    match &function.insts[branch].op {
        Op::Branch { cond, .. } => is_worked_out_from(function, *cond, owner),
        Op::Switch { value, .. } => is_worked_out_from(function, *value, owner),
        _ => false,
    }
}

/// Does something that the owner holds go into the value?
fn is_worked_out_from(function: &Function, value: ValueId, owner: Owner) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if read_from(function, value) == Some(owner) {
            return true;
        }
        if let ValueKind::Inst(inst) = function.values[value].kind {
            match &function.insts[inst].op {
                Op::Cmp { a, b, .. } | Op::Bin { a, b, .. } => open.extend([*a, *b]),
                Op::Cast { a, .. } => open.push(*a),
                _ => {}
            }
        }
    }
    false
}
