//! Would following a state further tell anything new of its blocks?
//!
//! A loop that still changes after many rounds is left alone. Most often it is a counter or a cursor that changes. What
//! was said of releases holds all the same if, of the state that is not followed, everything that concerns blocks is
//! known already:
//!
//! ```text
//! known      p = block 1, live     n = some value     row[…]: block 2
//! arrives    p = block 1, live     n = some other     row[…]: block 2      -> covered
//! arrives    p = block 3           …                                       -> not
//! ```
//!
//! # Invariants
//! - A value that is a certain block, or null, in the known state is the same in the one that arrives.
//! - A block is at most as live, as released and as far given away as is known.

use crate::object::{ObjState, Object, Status};
use crate::state::State;
use crate::term::{Term, TermId, Terms};

pub fn covers(terms: &Terms, known: &State, state: &State) -> bool {
    let objects = state.objs.iter().all(|(id, arrived)| match known.obj(*id) {
        Some(before) => is_within(arrived, before),
        None => !matches!(terms.object(*id), Object::Heap { .. }) && *arrived == ObjState::input(arrived.family),
    });
    let values = known.env.iter().all(|&(value, before)| {
        let arrived = state.value(value);
        !is_certain(terms, before) || arrived.is_none_or(|arrived| arrived == before)
    });
    let held = |at: &State, (obj, off), term: TermId| {
        let cell = at.cells.binary_search_by_key(&(obj, off), |entry| entry.0).ok().map(|found| at.cells[found].1.term);
        cell == Some(term)
            || terms.mentions(term).iter().all(|block| {
                cell.is_some_and(|cell| terms.mentions(cell).contains(block))
                    || at.weak.iter().any(|(of, other)| *of == obj && terms.mentions(*other).contains(block))
            })
    };
    let cells = known.cells.iter().all(|&(place, before)| {
        let cell = state.cells.binary_search_by_key(&place, |entry| entry.0);
        !is_certain(terms, before.term) || cell.is_ok_and(|at| state.cells[at].1.term == before.term)
    });
    let references = state.cells.iter().all(|&(place, cell)| held(known, place, cell.term));
    let somewhere = state.weak.iter().all(|entry| terms.mentions(entry.1).is_empty() || known.weak.contains(entry));
    let drains = known.drains || !state.drains;
    let sweeps = state.swept.iter().all(|family| known.swept.contains(family));
    objects && values && cells && references && somewhere && drains && sweeps
}

/// A release of it would be found good.
fn is_certain(terms: &Terms, term: TermId) -> bool {
    let block = |obj| matches!(terms.object(obj), Object::Heap { older: false, .. });
    terms.as_int(term) == Some(0) || matches!(*terms.get(term), Term::Addr { obj, .. } if block(obj))
}

fn is_within(arrived: &ObjState, known: &ObjState) -> bool {
    let status = arrived.status.without(Status::FAILED);
    known.status.join(status) == known.status
        && (known.is_given_away() || !arrived.is_given_away())
        && (known.lent || !arrived.lent)
        && (known.sent || !arrived.sent)
        && (arrived.found || !known.found)
        && (known.drained || !arrived.drained)
        && (known.unsettled || !arrived.unsettled)
        && (known.doubted || !arrived.doubted)
        && arrived.retained <= known.retained
}
