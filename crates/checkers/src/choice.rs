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
//! Known imprecision: where the two have nothing to do with each other, a true leak is not seen.

use caulk_analysis::{Event, Incident, IncidentKind, Subject};
use caulk_ir::{Callee, Function, InstId, Op, Program, SymbolId, ValueId, ValueKind};

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
