//! Blocks that count their holders: which way a release goes hangs on a number in the block itself.
//!
//!     void show(struct obj *o) {
//!         if (o->refs < MAX) o->refs++;   // 1: callers who know the count know what becomes of it
//!         callback(o);                    // 2: from here on nobody knows the count
//!         if (--o->refs == 0) free(o);    //    so "it released o" is something no caller can foresee
//!     }
//!
//! 1. Ways that change a count only within bounds of the count itself are kept apart.
//! 2. Where a release hangs on a number that callers have no name for, in the block or in what it points to (`p->db->mode`
//!    after a call that is given `p->db`), they are told that it *may* be released: with
//!    "it was released" every further use would be an error on a way that does not exist.
//!
//! Who raises a count holds the block: that it was -1 before, so that a callee finds 0 and releases the block, is no way.

use caulk_base::Id;
use caulk_ir::BinOp;

use crate::engine::Exit;
use crate::facts::Range;
use crate::object::{ObjId, Object, Status};
use crate::place::Off;
use crate::state::State;
use crate::summary::{Outcome, Summary};
use crate::term::{Term, TermId, Terms};

/// Is a number of an input counted on from what it was, within bounds of what it was?
pub fn is_bounded(state: &State, terms: &Terms, (obj, off): (ObjId, Off), term: TermId) -> bool {
    let Term::Bin(BinOp::Add, count, step) = *terms.get(term) else { return false };
    matches!(terms.object(obj), Object::Deref(_))
        && terms.as_int(step).is_some()
        && *terms.get(count) == Term::Content { obj, off, epoch: 0 }
        && state.facts.range(terms, count) != Range::full()
}

/// The object of which the term is a part, if whether it is released hangs on that part: elsewhere, with another value or
/// a changed one, it is left alone.
pub fn decided_by(summary: &Summary, part: TermId, range: &Range) -> Option<ObjId> {
    let Term::Content { obj, off, .. } = summary.terms[part.index()] else { return None };
    let left =
        |outcome: &Outcome| !outcome.objs.iter().any(|(id, known)| *id == obj && known.status.may(Status::FREED));
    let otherwise = |outcome: &Outcome| {
        outcome.writes.iter().any(|write| (write.obj, write.off) == (obj, off))
            || outcome.ranges.iter().any(|(term, lo, hi, not)| {
                *term == part && Range { lo: *lo, hi: *hi, not: not.as_slice().into() }.is_disjoint(range)
            })
    };
    summary.outcomes.iter().any(|outcome| left(outcome) && otherwise(outcome)).then_some(obj)
}

/// A number in memory that was changed by somebody who did not tell to what.
pub fn is_hidden(terms: &Terms, term: TermId) -> bool {
    match *terms.get(term) {
        Term::Content { epoch, .. } => epoch != 0,
        Term::Bin(BinOp::Add, count, step) => terms.as_int(step).is_some() && is_hidden(terms, count),
        _ => false,
    }
}

/// A number in memory that this function has raised.
pub fn is_raised(terms: &Terms, term: TermId) -> bool {
    match *terms.get(term) {
        Term::Bin(BinOp::Add, count, step) => {
            terms.as_int(step).is_some_and(|step| step > 0) && matches!(terms.get(count), Term::Content { .. })
        }
        Term::Cast(_, _, inner) => is_raised(terms, inner),
        _ => false,
    }
}

/// Does the outcome make a number in what the parameter points to less than it was?
pub fn counts_down(summary: &Summary, outcome: &Outcome, param: u32) -> bool {
    outcome.writes.iter().any(|write| {
        let given = matches!(summary.objects[write.obj.index()], Object::Deref(base)
            if summary.terms[base.index()] == Term::Param(param));
        given
            && match summary.terms[write.term.index()] {
                Term::Bin(BinOp::Add, count, step) => {
                    matches!(summary.terms[step.index()], Term::Int(step) if step < 0)
                        && matches!(summary.terms[count.index()], Term::Content { obj, off, .. }
                            if (obj, off) == (write.obj, write.off))
                }
                _ => false,
            }
    })
}

/// Releases of inputs that hang on a number in them which callers have no name for become "may be released".
pub fn soften_releases(terms: &Terms, exits: &mut [Exit]) {
    let mut unforeseen: Vec<(usize, ObjId)> = Vec::new();
    for (at, exit) in exits.iter().enumerate() {
        for &(obj, known) in &exit.state.objs {
            if known.status == Status::FREED
                && matches!(terms.object(obj), Object::Deref(_))
                && hangs_on_hidden(terms, exits, &exit.state, obj)
            {
                unforeseen.push((at, obj));
            }
        }
    }
    for (at, obj) in unforeseen {
        if let Some(known) = exits[at].state.obj_mut(obj) {
            known.status = known.status.join(Status::LIVE);
        }
    }
}

/// Is it the object, or something that it points to?
fn is_part(terms: &Terms, part: ObjId, obj: ObjId) -> bool {
    let inside = |base: TermId| matches!(*terms.get(base), Term::Content { obj: of, .. } if of == obj);
    part == obj || matches!(*terms.object(part), Object::Deref(base) if inside(base))
}

/// Is there a number in the object or in what it points to, unknown to callers, by which it is released here and left
/// elsewhere?
fn hangs_on_hidden(terms: &Terms, exits: &[Exit], state: &State, obj: ObjId) -> bool {
    let hidden = |id: TermId| match *terms.get(id) {
        Term::Content { obj: of, epoch, .. } => epoch != 0 && is_part(terms, of, obj),
        _ => false,
    };
    state.facts.ranges.iter().filter(|(id, _)| hidden(*id)).any(|(id, range)| {
        let mut left = false;
        for Exit { state: other, .. } in exits {
            if other.facts.range(terms, *id).is_disjoint(range) {
                match other.obj(obj).map_or(Status::LIVE, |known| known.status) {
                    Status::FREED => return false,
                    _ => left = true,
                }
            }
        }
        left
    })
}
