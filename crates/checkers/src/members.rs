//! Errors that need an object to be two things at once: members of a union under tags of their own.
//!
//! ```text
//! if (n->names) free(n->u.name);
//! if (n->count > 1) free(n->u.list);         // the same word, but never in the same object
//! ```
//!
//! Whoever made the object has set one of the tags. A release of one member, and behind a question to the object a release
//! or use of another one, is not reported; of the same member it is. Which member is meant is not to be seen in what the
//! compiler makes of it, but in the word that stands where it is read.
//!
//! Known imprecision: tags that do not exclude each other.

use caulk_analysis::{Event, Incident, IncidentKind};
use caulk_ir::{Function, InstId, Op, ValueId, ValueKind};

use crate::choice::{asks, place, read_from};
use crate::naming::Names;

/// Does a second release or use read another member of a union, after the object was asked what it holds?
pub fn is_another_member(names: &Names<'_>, incident: &Incident) -> bool {
    let (IncidentKind::DoubleFree | IncidentKind::UseAfterFree(_), Some(freed)) = (&incident.kind, incident.freed_at)
    else {
        return false;
    };
    let function = names.function;
    let mut in_union = loads(function, freed).map(|read| (read, names.union_members(read.1)));
    let Some((first, members)) = in_union.find(|(_, members)| !members.is_empty()) else { return false };
    let again = loads(function, incident.at).find(|read| place(function, read.1) == place(function, first.1));
    let (Some(again), Some(owner)) = (again, read_from(function, first.0)) else { return false };
    let word = |value: ValueId| match function.values[value].kind {
        ValueKind::Inst(inst) => names.word(inst).filter(|word| members.contains(&word.as_str())),
        _ => None,
    };
    let (Some(one), Some(other)) = (word(first.0), word(again.0)) else { return false };
    one != other
        && !incident.paths.is_empty()
        && incident.paths.iter().all(|path| {
            let mut behind =
                path.iter().skip_while(|event| !matches!(event, Event::Release { inst, .. } if *inst == freed));
            behind.any(|event| matches!(event, Event::Branch { inst, .. } if asks(function, *inst, owner)))
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
