//! Comparisons, and what follows from their truth for the objects of a state.

use caulk_ir::{CmpOp, InstId};

use crate::arithmetic::{fold_cmp, negate};
use crate::engine::Engine;
use crate::object::{ObjId, Object, Status};
use crate::state::State;
use crate::term::{ONE, Term, TermId, ZERO};
use crate::trace::Event;

/// The standard descriptors are open: a new one is beyond them. (`if (fd > 2) close(fd);`)
const FIRST_DESCRIPTOR: i64 = 3;

/// A size that is not reached: what needs more than this does not happen.
const LIMIT: i64 = 1 << 30;

impl Engine<'_> {
    /// Compares with what the state knows of the objects.
    pub(crate) fn compare(&mut self, state: &State, op: CmpOp, a: TermId, b: TermId) -> TermId {
        let (a, b) = if self.terms.as_int(a).is_some()
            && self.terms.as_int(b).is_none()
            && matches!(op, CmpOp::Eq | CmpOp::Ne)
        {
            (b, a)
        } else {
            (a, b)
        };
        let equality = matches!(op, CmpOp::Eq | CmpOp::Ne);
        if equality && a != b {
            let differ = match (self.block_of(a), self.block_of(b)) {
                (Some(x), Some(y)) if x != y => true,
                (Some(x), None) => self.cannot_equal(state, x, b),
                (None, Some(y)) => self.cannot_equal(state, y, a),
                (None, None) => self.is_made_here(state, a, b) || self.is_made_here(state, b, a),
                _ => false,
            };
            if differ {
                return if op == CmpOp::Eq { ZERO } else { ONE };
            }
        }
        self.terms.cmp(op, a, b)
    }

    /// The object into which the term points, if it is a local or an allocated one.
    fn block_of(&self, term: TermId) -> Option<ObjId> {
        match *self.terms.get(term) {
            Term::Elem { base, .. } => self.block_of(base),
            Term::Addr { obj, .. }
                if matches!(self.terms.object(obj), Object::Heap { older: false, .. } | Object::Stack(_)) =>
            {
                Some(obj)
            }
            _ => None,
        }
    }

    /// Is one a block of an earlier round, whichever it is, and the other something that was there before all of them?
    fn is_made_here(&self, state: &State, block: TermId, other: TermId) -> bool {
        let mut base = block;
        while let Term::Elem { base: inner, .. } = *self.terms.get(base) {
            base = inner;
        }
        let Term::Addr { obj, .. } = *self.terms.get(base) else { return false };
        let older = matches!(self.terms.object(obj), Object::Heap { older: true, .. });
        let there = state
            .obj(obj)
            .is_some_and(|known| !known.status.may(Status::FAILED) && !self.models.families[known.family].is_integer);
        older
            && there
            && matches!(self.terms.get(other), Term::Func(_) | Term::Param(_) | Term::Content { epoch: 0, .. })
    }

    /// A new block is none of those that were there before it.
    fn cannot_equal(&self, state: &State, obj: ObjId, other: TermId) -> bool {
        if let Some(known) = state.obj(obj) {
            if known.status.may(Status::FAILED) {
                return false;
            }
            if self.models.families[known.family].is_integer {
                // What a call gave is another descriptor, as long as nobody else has this one: `fileno(stderr)`.
                return !known.escaped && matches!(self.terms.get(other), Term::Sym { .. });
            }
        }
        if self.terms.mentions(other).contains(&obj) {
            return false;
        }
        match *self.terms.get(other) {
            Term::Int(0) | Term::Func(_) | Term::Param(_) | Term::Content { epoch: 0, .. } => true,
            Term::Addr { obj: of, .. } => of != obj,
            // Nobody but this path knows the address: it can only be where the path put it.
            Term::Content { .. } => {
                let held = |term: TermId| self.terms.mentions(term).contains(&obj);
                state.obj(obj).is_some_and(|known| !known.escaped)
                    && !state.candidates(&self.terms, other).into_iter().any(held)
            }
            _ => state.obj(obj).is_some_and(|known| !known.escaped),
        }
    }

    /// Does the pointer lead to a block that this path has made and put nowhere but into variables?
    pub(crate) fn is_new_to_memory(&self, state: &State, ptr: TermId) -> bool {
        let Some(block) = self.block_of(ptr) else { return false };
        let elsewhere =
            |(holder, _): &(ObjId, crate::place::Off)| !matches!(self.terms.object(*holder), Object::Stack(_));
        state.obj(block).is_some_and(|known| !known.escaped)
            && !state.weak.iter().any(|(_, term)| self.terms.mentions(*term).contains(&block))
            && !state
                .cells
                .iter()
                .any(|(place, cell)| elsewhere(place) && self.terms.mentions(cell.term).contains(&block))
    }

    /// The truth of a condition becomes a fact. `false`: it cannot be.
    pub(crate) fn assume(&mut self, state: &mut State, cond: TermId, truth: bool, at: InstId) -> bool {
        // `a | b` is zero when both are; where one is known to be zero, it is the other.
        let (bits, nonzero) = match *self.terms.get(cond) {
            Term::Cmp(CmpOp::Ne, a, ZERO) => (a, truth),
            Term::Cmp(CmpOp::Eq, a, ZERO) => (a, !truth),
            _ => (cond, truth),
        };
        let bits = match *self.terms.get(bits) {
            Term::Cast(caulk_ir::CastOp::ZExt | caulk_ir::CastOp::Trunc, _, inner) => inner,
            _ => bits,
        };
        if let Term::Bin(caulk_ir::BinOp::Or, a, b) = *self.terms.get(bits) {
            let zero = |engine: &Self, term| state.facts.range(&engine.terms, term).constant() == Some(0);
            if !nonzero {
                return self.assume(state, a, false, at) && self.assume(state, b, false, at);
            }
            if zero(self, a) {
                return self.assume(state, b, true, at);
            }
            if zero(self, b) {
                return self.assume(state, a, true, at);
            }
        }
        if let Term::Cmp(op, a, b) = *self.terms.get(cond)
            && matches!((op, truth), (CmpOp::Eq, true) | (CmpOp::Ne, false))
            && self.terms.as_int(b).is_none()
        {
            // A value that turns out to be the address of a block: somebody else has it.
            for (block, other) in [(self.block_of(a), b), (self.block_of(b), a)] {
                if let Some(block) = block
                    && !self.terms.mentions(other).contains(&block)
                    && let Some(known) = state.obj_mut(block)
                {
                    known.give_away();
                }
            }
            // An argument that a search has come upon: `if (found->key == key)`.
            for (param, other) in [(a, b), (b, a)] {
                if matches!(self.terms.get(param), Term::Param(_))
                    && matches!(self.terms.get(other), Term::Content { .. })
                    && self.terms.is_private(other)
                {
                    let (input, family) = (self.terms.intern_object(Object::Deref(param)), self.memory);
                    state.obj_entry(input, family).found = true;
                }
            }
        }
        if let Term::Cmp(op, a, b) = *self.terms.get(cond)
            && let Some(k) = self.terms.as_int(b)
            && let Term::Addr { obj, off: 0 } = *self.terms.get(a)
            && matches!(self.terms.object(obj), Object::Heap { .. })
            && let Some(known) = state.obj(obj).copied()
        {
            let op = if truth { op } else { negate(op) };
            let integer = self.models.families[known.family].is_integer;
            let on_failure = fold_cmp(op, known.failure.into(), k);
            // A valid pointer is anything but 0 and -1; a new descriptor is none of the standard ones.
            let may_hold = match (integer, op) {
                (true, CmpOp::Eq | CmpOp::Sle) => k >= FIRST_DESCRIPTOR,
                (true, CmpOp::Slt) => k > FIRST_DESCRIPTOR,
                (false, CmpOp::Eq) => k != 0 && k != -1,
                _ => true,
            };
            let may_fail = known.status.may(Status::FAILED);
            return match (may_hold, may_fail && on_failure) {
                (true, true) => true,
                (true, false) => {
                    if let Some(entry) = state.obj_mut(obj) {
                        entry.status = known.status.without(Status::FAILED);
                    }
                    true
                }
                (false, true) => {
                    let value = self.terms.int(known.failure.into());
                    // Where paths were merged, it may be null for another reason.
                    if !known.merged {
                        state.record(Event::Failed { inst: at, obj });
                        state.starved = true;
                    }
                    state.fail(&mut self.terms, obj, value);
                    true
                }
                (false, false) => false,
            };
        }
        state.starved |= self.is_beyond_limits(cond, truth);
        state.facts.assume(&mut self.terms, cond, truth)
    }

    /// `if (length + more > UINT32_MAX) return NULL;`: that is no way anyone takes, just as when there is no memory left.
    fn is_beyond_limits(&self, cond: TermId, truth: bool) -> bool {
        let Term::Cmp(op, a, b) = *self.terms.get(cond) else { return false };
        let op = if truth { op } else { negate(op) };
        let sum = matches!(self.terms.get(a), Term::Bin(caulk_ir::BinOp::Add, ..));
        let limit = self.terms.as_int(b).is_some_and(|limit| limit >= LIMIT);
        sum && limit && matches!(op, CmpOp::Ugt | CmpOp::Uge | CmpOp::Sgt | CmpOp::Sge)
    }
}
