//! What a callee may have done to its arguments without saying which: released parts of them, kept one.
//!
//!     push_and_flush(queue, item);      // queue's items are released in a loop; is `item` one of them?
//!
//! # Invariants
//! - What is only suspected here is no finding. It is a reason not to release the object elsewhere.

use caulk_base::Id;
use caulk_ir::{FuncId, InstId};
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::facts::Range;
use crate::object::{ObjId, ObjState, Object, Status};
use crate::state::State;
use crate::summary::{Outcome, Summary};
use crate::term::{Term, TermId, Terms};
use crate::translate::Translation;

impl Engine<'_> {
    /// Parts of what the arguments lead to may have been released; `named` says which it is known of.
    pub(crate) fn drain(&mut self, state: &mut State, callee: &Summary, args: &[TermId], named: &[TermId], id: InstId) {
        (self.drained, state.drains) = (true, true);
        let direct: Vec<ObjId> =
            args.iter().chain(named).filter_map(|&arg| self.terms.pointee(arg)).map(|(obj, _)| obj).collect();
        let reached = self.reachable(state, args.iter().copied());
        for (obj, known) in &mut state.objs {
            if reached.contains(*obj)
                && !direct.contains(obj)
                && matches!(self.terms.object(*obj), Object::Heap { .. })
                && known.status.may(Status::LIVE)
            {
                known.status = known.status.join(Status::FREED);
                known.freed_at = known.freed_at.or(Some(id));
            }
        }
        // An input of ours that lies in there is such a part, or is not: our caller cannot tell.
        let lies_in = |holder: ObjId, term: TermId| reached.contains(holder).then_some(term);
        let cells = state.cells.iter().filter_map(|((holder, _), cell)| lies_in(*holder, cell.term));
        let weak = state.weak.iter().filter_map(|(holder, term)| lies_in(*holder, *term));
        let inputs: Vec<TermId> =
            cells.chain(weak).filter(|&term| matches!(self.terms.get(term), Term::Param(_))).collect();
        for input in inputs {
            let obj = self.terms.intern_object(Object::Deref(input));
            if !direct.contains(&obj) {
                state.obj_entry(obj, self.memory).give_away();
            }
        }
        // An argument that lies in another one, or was put into one, may be such a part, too.
        for (at, &arg) in args.iter().enumerate() {
            if !self.terms.holds_block(arg) {
                continue;
            }
            let Some((obj, _)) = self.terms.pointee(arg) else { continue };
            let mut others = args.to_vec();
            others.retain(|&other| self.terms.pointee(other).is_none_or(|of| of.0 != obj));
            if callee.stored.contains(&(at as u32)) || self.reachable(state, others).contains(obj) {
                for held in self.terms.mentions(arg).to_vec() {
                    if let Some(known) = state.obj_mut(held) {
                        known.drained = true;
                    }
                }
            }
        }
    }

    /// May the callee come to the outcome, as far as the arguments themselves tell? `clear(&map, KEEP)` releases no entry.
    pub(crate) fn suits(&self, before: &State, translation: &Translation<'_>, outcome: &Outcome) -> bool {
        outcome.ranges.iter().all(|(fact, lo, hi, not)| {
            let Term::Param(index) = translation.summary.terms[fact.index()] else { return true };
            let Some(&arg) = translation.args.get(index as usize) else { return true };
            let given = before.facts.range(&self.terms, arg);
            !given.is_disjoint(&Range::between(*lo, *hi)) && !given.constant().is_some_and(|value| not.contains(&value))
        })
    }

    /// The callee may do more with its arguments than its summary tells: where that is all there will be, what it is
    /// given may be released. Not so a block that nobody else has, and that the callee gives to nobody who could.
    pub(crate) fn unsettle(&mut self, state: &mut State, args: &[TermId], callee: FuncId, incomplete: bool) {
        let spared = self.left_alone(state, args, callee);
        for &arg in args {
            if self.terms.pointee(arg).is_some_and(|(obj, _)| spared.contains(&obj)) {
                continue;
            }
            if matches!(self.terms.get(arg), Term::Param(_) | Term::Content { epoch: 0, .. }) {
                let (input, family) = (self.terms.intern_object(Object::Deref(arg)), self.memory);
                state.obj_entry(input, family);
            }
        }
        let reached = self.reachable(state, args.iter().copied());
        let marked = |known: &ObjState| if incomplete { known.doubted } else { known.unsettled };
        let within = |obj: ObjId| {
            reached.contains(obj)
                && !spared.contains(&obj)
                && matches!(self.terms.object(obj), Object::Heap { .. } | Object::Deref(_))
        };
        for (obj, known) in state.objs.edit_if(|(obj, known)| !marked(known) && within(*obj)) {
            if within(*obj) {
                known.doubted |= incomplete;
                known.unsettled |= !incomplete;
            }
        }
    }

    /// A block of this function that the callee is given, releases nowhere by this value, and cannot come to in another way:
    /// that it releases something without a name is no reason to doubt this one.
    pub(crate) fn is_left_alone(&mut self, state: &State, args: &[TermId], callee: FuncId, obj: ObjId) -> bool {
        matches!(self.terms.object(obj), Object::Heap { .. }) && self.left_alone(state, args, callee).contains(&obj)
    }

    /// What arguments point to that the callee neither keeps nor releases, by where their values go, and cannot come to
    /// in another way.
    fn left_alone(&mut self, state: &State, args: &[TermId], callee: FuncId) -> Vec<ObjId> {
        let (mut alone, mut roots): (Vec<ObjId>, Vec<TermId>) = (Vec::new(), Vec::new());
        for (at, &arg) in args.iter().enumerate() {
            match self.terms.pointee(arg) {
                Some((obj, _)) if !self.knowledge.keeps_argument(callee, at) => {
                    alone.push(obj);
                    roots.extend(state.cells_of(obj).map(|entry| entry.1.term).chain(state.weak_of(obj)));
                }
                _ => roots.push(arg),
            }
        }
        // A variable of this function may lie there: `top = &frame;`.
        let shared = |holder: ObjId| match self.terms.object(holder) {
            Object::Stack(_) => false,
            Object::Heap { .. } => state.obj(holder).is_some_and(ObjState::is_given_away),
            _ => true,
        };
        roots.extend(state.cells.iter().filter(|entry| shared(entry.0.0)).map(|entry| entry.1.term));
        roots.extend(state.weak.iter().filter(|entry| shared(entry.0)).map(|entry| entry.1));
        let reached = self.reachable(state, roots);
        alone.retain(|&obj| {
            let shared = state.obj(obj).is_some_and(ObjState::is_given_away) || self.is_referenced_outside(state, obj);
            !shared && !reached.contains(obj)
        });
        alone
    }

    /// A destructor is given a block of this function, and releases what callees have put into it.
    pub(crate) fn is_own_part(&self, state: &State, ptr: TermId, at: InstId) -> bool {
        let (mut open, mut next) = (vec![ptr], 0);
        while let Some(&part) = open.get(next) {
            next += 1;
            match *self.terms.get(part) {
                Term::Int(_) => {}
                Term::Ite(_, a, b) if open.len() < 64 => open.extend([a, b]),
                Term::Content { obj, .. } => match *self.terms.object(obj) {
                    Object::Heap { older: false, .. } => {
                        let ours = |known: &ObjState| !known.is_given_away() && !known.mixed && !known.lent;
                        if !state.obj(obj).is_some_and(ours) {
                            return false;
                        }
                    }
                    Object::Deref(base) => open.push(base),
                    _ => return false,
                },
                _ => return false,
            }
        }
        !self.is_library_call(at)
    }

    /// What a callee stores of its arguments, this function stores of its own.
    pub(crate) fn note_stored(&mut self, state: &mut State, callee: &Summary, args: &[TermId]) {
        for &at in &callee.stored {
            if let Some(&arg) = args.get(at as usize) {
                let stored = self.terms.pointee(arg).map(|(obj, _)| obj);
                let own = |obj| matches!(self.terms.object(obj), Object::Heap { .. });
                if self.terms.as_int(arg).is_none() && !stored.is_some_and(own) {
                    let given: Vec<ObjId> = args.iter().flat_map(|&arg| self.terms.mentions(arg).to_vec()).collect();
                    given.iter().for_each(|&obj| _ = state.obj_mut(obj).map(|known| known.mixed = true));
                }
                self.put_away.extend(parameters_in(&self.terms, arg));
            }
        }
    }

    /// The arguments may be kept by the callee, whose paths were merged; it would have told, unless it was cut short.
    pub(crate) fn blur(&mut self, state: &mut State, args: &[TermId], cut: bool) {
        let before: Vec<ObjId> =
            state.objs.iter().filter(|(_, known)| known.is_given_away()).map(|entry| entry.0).collect();
        for &arg in args {
            self.escape(state, arg);
        }
        let merges = |obj: ObjId, known: &ObjState| !cut && known.escaped && !known.merged && !before.contains(&obj);
        for (obj, known) in state.objs.edit_if(|(obj, known)| merges(*obj, known)) {
            known.merged |= merges(*obj, known);
        }
    }
}

/// The parameters whose value this is, or an address computed from it.
pub(crate) fn parameters_in(terms: &Terms, id: TermId) -> Vec<u32> {
    let mut found = Vec::new();
    let (mut open, mut at): (SmallVec<[TermId; 8]>, usize) = (SmallVec::from_slice(&[id]), 0);
    while let Some(&id) = open.get(at) {
        at += 1;
        let parts: &[TermId] = match *terms.get(id) {
            Term::Param(parameter) => {
                found.push(parameter);
                &[]
            }
            Term::Addr { obj, .. } => match *terms.object(obj) {
                Object::Deref(base) => &[base],
                _ => &[],
            },
            Term::Elem { base, .. } => &[base],
            Term::Cast(_, _, a) => &[a],
            Term::Bin(_, a, b) | Term::Ite(_, a, b) => &[a, b],
            _ => &[],
        };
        for part in parts {
            if !open.contains(part) {
                open.push(*part);
            }
        }
    }
    found
}
