//! What a caller takes for granted of the functions it calls, where it cannot know better.
//!
//!     list_add(list, text);    // returns nothing, and keeps `text` on some way: the caller relies on it
//!     text_free(text);         // releases, unless a check of its own fails: the same
//!
//! An analysis that takes nothing for granted (`Limits::wary`), which every patch must pass as well, asks none of this.

use caulk_base::Id;
use caulk_ir::Inst;

use crate::counted;
use crate::engine::Engine;
use crate::object::{ObjId, Object, Status};
use crate::state::State;
use crate::summary::{Outcome, Summary};
use crate::term::{Term, TermId};

impl Engine<'_> {
    /// Is there a result that nobody looks at?
    pub(crate) fn ignores_result(&self, inst: &Inst) -> bool {
        inst.result.is_some_and(|result| !self.used.contains(result) && !self.bound.contains(result))
    }

    /// A function without a result that keeps its argument on some way: its caller has no means to know of
    /// the other ways, and relies on it, unless he asked for one of them by a number that he passed (`keep`). So does a
    /// caller who ignores a result that would tell that the argument was refused (a key that is there already), unless he
    /// could have known: the outcome depends on what he passed, or on whether there was memory.
    pub(crate) fn trust_taking(
        &self,
        before: &State,
        states: &mut Vec<(&Outcome, State)>,
        args: &[TermId],
        ignored: bool,
        (summary, numbers): (&Summary, &[bool]),
    ) {
        for &arg in args {
            let mut given: Vec<ObjId> = self.terms.mentions(arg).to_vec();
            // Also what lies in a local that is passed by its address, to be copied.
            if let Term::Addr { obj: local, .. } = *self.terms.get(arg)
                && matches!(self.terms.object(local), Object::Stack(_))
            {
                given.extend(before.cells_of(local).flat_map(|(_, cell)| self.terms.mentions(cell.term)));
            }
            for obj in given {
                let is_gone = |state: &State| is_gone(before, state, obj);
                let taken = |state: &State| {
                    is_gone(state)
                        || state.obj(obj).is_some_and(|known| known.escaped || known.status.may(Status::FREED))
                        || state.cells.iter().any(|((holder, _), cell)| {
                            self.terms.mentions(cell.term).contains(&obj)
                                && !matches!(self.terms.object(*holder), Object::Stack(_))
                                && *holder != obj
                        })
                        || state.weak.iter().any(|(_, term)| self.terms.mentions(*term).contains(&obj))
                };
                let takers: Vec<&Outcome> =
                    states.iter().filter(|(_, state)| taken(state)).map(|entry| entry.0).collect();
                if !takers.is_empty() {
                    states.retain(|(outcome, state)| {
                        // Where the allocation failed, there is nothing to take.
                        let nothing = state.obj(obj).is_none();
                        let known = if ignored {
                            outcome.starved || is_foreseeable(outcome, &takers)
                        } else {
                            is_asked_for(summary, numbers, outcome, &takers)
                        };
                        nothing || taken(state) || known
                    });
                }
            }
        }
    }

    /// A function that releases its argument and does not tell when it did not: its caller relies on it.
    /// Ways through it on which the block stays (failed sanity checks, null fields) are not followed. Where one of them counts
    /// the block's holders, it may have stayed all the same.
    pub(crate) fn trust_release(&self, states: &mut Vec<(&Outcome, State)>, args: &[TermId], summary: &Summary) {
        for (index, &arg) in args.iter().enumerate() {
            for &obj in self.terms.mentions(arg) {
                let status = |state: &State| state.obj(obj).map(|known| known.status.without(Status::FAILED));
                // Also where it hangs on a number in the block that is not known here.
                if !states.iter().any(|(_, state)| status(state).is_some_and(|status| status.may(Status::FREED))) {
                    continue;
                }
                let stays = |state: &State| status(state) == Some(Status::LIVE);
                let counts = states
                    .iter()
                    .any(|(outcome, state)| stays(state) && counted::counts_down(summary, outcome, index as u32));
                states.retain(|(_, state)| !stays(state));
                for (_, state) in states.iter_mut().filter(|_| counts) {
                    if let Some(known) = state.obj_mut(obj).filter(|known| known.status.may(Status::FREED)) {
                        known.status = known.status.join(Status::LIVE);
                    }
                }
            }
        }
    }
}

/// A block that was there before the call, and of which nothing is known any more: it was released, or somebody else has
/// it, and no variable led to it.
fn is_gone(before: &State, state: &State, obj: ObjId) -> bool {
    state.obj(obj).is_none() && before.obj(obj).is_some_and(|known| !known.status.may(Status::FAILED))
}

/// Does an outcome depend on something about the inputs that is not so in the others, beside that pointers are valid?
fn is_foreseeable(outcome: &Outcome, others: &[&Outcome]) -> bool {
    let ranges =
        outcome.ranges.iter().filter(|(_, lo, hi, not)| (*lo, *hi, not.as_slice()) != (i64::MIN, i64::MAX, &[0]));
    ranges.into_iter().any(|range| others.iter().any(|other| !other.ranges.contains(range)))
        || outcome.atoms.iter().any(|atom| others.iter().any(|other| !other.atoms.contains(atom)))
        || outcome.clauses.iter().any(|clause| others.iter().any(|other| !other.clauses.contains(clause)))
}

/// Does an outcome need a number among the arguments that none of the others can be given?
fn is_asked_for(summary: &Summary, numbers: &[bool], outcome: &Outcome, others: &[&Outcome]) -> bool {
    outcome.ranges.iter().any(|(term, lo, hi, not)| {
        let excludes = |other: &&Outcome| {
            other.ranges.iter().any(|(id, from, to, holes)| {
                id == term
                    && (to < lo || hi < from || (lo == hi && holes.contains(lo)) || (from == to && not.contains(from)))
            })
        };
        matches!(summary.terms[term.index()], Term::Param(index) if numbers.get(index as usize) == Some(&true))
            && others.iter().all(excludes)
    })
}

/// An insertion that returns the element which was there already: whoever ignores that result has made
/// sure that there is none.
pub(crate) fn tells_of_another(summary: &Summary, outcome: &Outcome) -> bool {
    let null = |outcome: &Outcome| outcome.result.is_some_and(|term| summary.terms[term.index()] == Term::Int(0));
    let other = outcome
        .result
        .is_some_and(|term| matches!(summary.terms[term.index()], Term::Sym { .. } | Term::Content { .. }));
    other && outcome.writes.is_empty() && summary.outcomes.iter().any(|one| null(one) && !one.writes.is_empty())
}
