//! What speaks against a release: the doubts that a repair asks for.

use caulk_ir::{BinOp, Callee, InstId, Op, Ty, ValueId};
use caulk_models::FamilyId;

use crate::engine::Engine;
use crate::incident::Doubt;
use crate::later::{self, Word};
use crate::object::{ObjId, Object, Status};
use crate::place::{NUMBER, Off};
use crate::state::{Cell, State};
use crate::term::{Term, TermId};

impl Engine<'_> {
    /// What speaks against releasing this pointer here.
    pub(crate) fn weigh_release(&mut self, state: &State, ptr: TermId, at: InstId) {
        let mut doubts: Vec<Doubt> = Vec::new();
        if self.terms.as_int(ptr) != Some(0) {
            match self.terms.pointee(ptr) {
                Some((obj, Off::At(0))) => match (self.terms.object(obj), state.obj(obj)) {
                    (Object::Heap { older: false, .. }, Some(known)) => {
                        if known.is_given_away() {
                            doubts.push(Doubt::Escaped);
                        }
                        let through_pointer = matches!(&self.function.insts[at].op,
                            Op::Call(call) if matches!(call.callee, Callee::Value(_)));
                        if known.chosen && !through_pointer {
                            doubts.push(Doubt::Chosen);
                        }
                        if known.lent {
                            doubts.push(Doubt::Lent);
                        }
                        let nothing = self.may_be_asked_for_nothing(state, obj, at);
                        if known.status.may(Status::FREED) || known.drained || known.doubted || nothing {
                            doubts.push(Doubt::MayBeReleased);
                        }
                        if known.unsettled {
                            doubts.push(Doubt::Unsettled);
                        }
                        if known.retained > 0
                            || self.is_referenced_outside(state, obj)
                            || self.is_looked_into(state, obj, known.family, at)
                            || self.is_kept_beside(state, obj, at)
                        {
                            doubts.push(Doubt::StillReferenced);
                        }
                    }
                    (Object::Deref(_), _) if self.is_own_part(state, ptr, at) => doubts.push(Doubt::Part),
                    (Object::Deref(_), _) => doubts.push(Doubt::NotOurs),
                    _ => doubts.push(Doubt::Blurred),
                },
                _ if self.is_own_part(state, ptr, at) => doubts.push(Doubt::Part),
                _ => doubts.push(Doubt::Blurred),
            }
        }
        self.releases.entry(at).or_default().extend(doubts);
    }

    /// A block was to become larger, and was not.
    pub(crate) fn note_asked(&mut self, old: TermId, at: InstId, arg: u32, args: &[TermId]) {
        let (Some((obj, _)), Op::Call(call)) = (self.terms.pointee(old), &self.function.insts[at].op) else { return };
        for (&value, &size) in call.args.iter().zip(args).skip(arg as usize + 1) {
            if matches!(self.function.values[value].ty, Ty::Int(_)) {
                self.asked.entry(obj).or_default().insert((at, size));
            }
        }
    }

    /// Who asks for no bytes gets null, and the old block is gone all the same.
    fn may_be_asked_for_nothing(&self, state: &State, obj: ObjId, at: InstId) -> bool {
        let before = |asked: &(InstId, TermId)| asked.0 != at && self.may_be_none(state, asked.1);
        self.asked.get(&obj).is_some_and(|sizes| sizes.iter().any(before))
    }

    /// May the number be 0? That it runs over is another error.
    fn may_be_none(&self, state: &State, size: TermId) -> bool {
        if state.facts.range(&self.terms, size).excludes(0) {
            return false;
        }
        match *self.terms.get(size) {
            Term::Bin(BinOp::Mul, a, b) => self.may_be_none(state, a) || self.may_be_none(state, b),
            Term::Bin(BinOp::Shl, a, _) | Term::Cast(_, _, a) => self.may_be_none(state, a),
            Term::Bin(BinOp::Add, a, b) => !(self.is_positive(a) || self.is_positive(b)),
            _ => true,
        }
    }

    fn is_positive(&self, term: TermId) -> bool {
        self.terms.as_int(term).is_some_and(|value| value > 0)
    }

    /// What the library put into a resource goes with it: does anybody still need a pointer that was read there
    /// (`return found->ai_addr;`)?
    fn is_looked_into(&self, state: &State, obj: ObjId, family: FamilyId, at: InstId) -> bool {
        let spec = &self.models.families[family];
        if spec.is_memory || spec.is_integer {
            return false;
        }
        let inside = |term: TermId| {
            self.terms.contains(term, &mut |part, _| matches!(part, Term::Content { obj: of, .. } if *of == obj))
        };
        let needed = |value: ValueId| {
            self.function.values.get(value).is_some_and(|known| known.ty == Ty::Ptr)
                && self.cfg.is_live_after(self.block, value, at)
        };
        let outside = |holder: ObjId| match *self.terms.object(holder) {
            Object::Stack(_) => false,
            Object::Deref(base) => !inside(base),
            _ => holder != obj,
        };
        // The number of a stream stands for it.
        let number = |term: TermId| {
            self.terms
                .contains(term, &mut |part, _| matches!(part, Term::Content { obj: of, off: NUMBER, .. } if *of == obj))
        };
        let held =
            |holder: ObjId, cell: &Cell| outside(holder) && (cell.size == 8 && inside(cell.term) || number(cell.term));
        let may_lead = |term: TermId| inside(term) && state.facts.range(&self.terms, term).constant() != Some(0);
        let goes_on = |value: ValueId, term: TermId| number(term) && self.cfg.is_live_after(self.block, value, at);
        state.env.iter().any(|(value, term)| needed(*value) && may_lead(*term) || goes_on(*value, *term))
            || state.cells.iter().any(|((holder, _), cell)| held(*holder, cell))
    }

    /// Does a variable of this function lead to the object that is looked at later, beside the one whose content
    /// is released (`push(&list, item); free(item); show(&list);`)?
    fn is_kept_beside(&self, state: &State, obj: ObjId, at: InstId) -> bool {
        let Op::Call(call) = &self.function.insts[at].op else { return false };
        state.cells.iter().any(|((holder, off), cell)| {
            let (Object::Stack(variable), Off::At(offset)) = (self.terms.object(*holder), off) else { return false };
            let word = Word { variable: *variable, offset: *offset };
            self.terms.mentions(cell.term).contains(&obj)
                && !call.args.iter().any(|arg| later::is_from(self.function, *arg, word))
                && later::is_read(self.function, &self.cfg, word, at)
        })
    }

    /// Does memory that outlives this function, or a block that is still in use, point to the object?
    pub(crate) fn is_referenced_outside(&self, state: &State, obj: ObjId) -> bool {
        let outlives = |holder: ObjId| match self.terms.object(holder) {
            Object::Stack(_) => false,
            Object::Heap { .. } => {
                holder != obj && state.obj(holder).is_some_and(|known| known.status.may(Status::LIVE))
            }
            _ => true,
        };
        state.cells.iter().any(|((holder, _), cell)| self.terms.mentions(cell.term).contains(&obj) && outlives(*holder))
            || state.weak.iter().any(|(holder, term)| self.terms.mentions(*term).contains(&obj) && outlives(*holder))
    }
}
