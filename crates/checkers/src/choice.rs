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
//! So it is with the members of a union: `if (c->named) free(c->u.name); if (c->many) free(c->u.list);` releases the same
//! word twice only in an object that is both.
//!
//! Known imprecision: where the two have nothing to do with each other, a true error is not seen.

use caulk_analysis::{Event, Incident, IncidentKind, Subject};
use caulk_ir::{Callee, Function, InstId, Op, Program, SymbolId, ValueId, ValueKind};

use crate::naming::Names;

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

/// Does a second release or use read the word once more from a union, after the object was asked what it holds?
pub fn is_another_member(names: &Names<'_>, incident: &Incident) -> bool {
    let (IncidentKind::DoubleFree | IncidentKind::UseAfterFree(_), Some(freed)) = (&incident.kind, incident.freed_at)
    else {
        return false;
    };
    let function = names.function;
    let Some(first) = loads(function, freed).find(|&(_, ptr)| names.is_in_union(ptr)) else { return false };
    let again = loads(function, incident.at)
        .any(|(load, ptr)| load != first.0 && place(function, ptr) == place(function, first.1));
    let Some(owner) = read_from(function, first.0) else { return false };
    again
        && !incident.paths.is_empty()
        && incident.paths.iter().all(|path| {
            let behind =
                path.iter().skip_while(|event| !matches!(event, Event::Release { inst, .. } if *inst == freed));
            behind.into_iter().any(|event| matches!(event, Event::Branch { inst, .. } if asks(function, *inst, owner)))
        })
}

/// What an instruction reads on its way to what it works on: the values, and the places that they are read from.
fn loads(function: &Function, inst: InstId) -> impl Iterator<Item = (ValueId, ValueId)> {
    let mut open: Vec<ValueId> = match &function.insts[inst].op {
        Op::Call(call) => call.args.to_vec(),
        Op::Load { ptr } | Op::Store { ptr, .. } => vec![*ptr],
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        let ValueKind::Inst(inst) = function.values[value].kind else { continue };
        match &function.insts[inst].op {
            Op::Load { ptr } => {
                found.push((value, *ptr));
                open.push(*ptr);
            }
            Op::Offset { base, .. } => open.push(*base),
            Op::Cast { a, .. } => open.push(*a),
            _ => {}
        }
    }
    found.into_iter()
}

/// A base and bytes behind it.
fn place(function: &Function, ptr: ValueId) -> Option<(ValueId, i64)> {
    let ValueKind::Inst(inst) = function.values[ptr].kind else { return None };
    match &function.insts[inst].op {
        Op::Offset { base, bytes, indices, .. } if indices.is_empty() => Some((*base, *bytes)),
        _ => None,
    }
}

/// Who holds what is read: the first pointer on the way there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Value(ValueId),
    Global(SymbolId),
}

fn read_from(function: &Function, value: ValueId) -> Option<Owner> {
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
fn asks(function: &Function, branch: InstId, owner: Owner) -> bool {
    let decided = match &function.insts[branch].op {
        Op::Branch { cond, .. } => *cond,
        Op::Switch { value, .. } => *value,
        _ => return false,
    };
    let mut open = vec![decided];
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
