//! Descriptors that somebody closes by their numbers, whoever else has them.
//!
//!     FILE *f = fdopen(fd, "r");                    // the stream has the descriptor now
//!     close(fd);                                    // fclose(f) would close that number a second time
//!
//!     for (i = 3; i < 256; i++) close(i);           // whatever is open from 3 on: closefrom(3)
//!
//! Callers are told by outcome ([`Outcome::swept`](crate::summary::Outcome::swept)): what they had open may be closed.

use caulk_ir::{InstId, Op, ValueId, ValueKind};
use caulk_models::{Effect, FamilyId, FunctionModel, Place};

use crate::engine::Engine;
use crate::incident::Doubt;
use crate::object::{ObjId, Object, Status};
use crate::place::NUMBER;
use crate::state::State;
use crate::term::{Term, TermId};

impl Engine<'_> {
    /// `fdopen(fd)`: the stream takes the descriptor. If that is not this function's own, whoever has it may go on with
    /// it, and would miss it once the stream is closed.
    pub(crate) fn note_foundation(
        &mut self,
        state: &mut State,
        args: &[TermId],
        model: &FunctionModel,
        result: TermId,
    ) {
        let made = model.effects.iter().any(|effect| matches!(effect, Effect::Allocates { place: Place::Return, .. }));
        let foreign = model.effects.iter().any(|effect| match effect {
            Effect::Takes { place: Place::Arg(arg), .. } => {
                args.get(*arg as usize).is_some_and(|&arg| self.terms.mentions(arg).is_empty())
            }
            _ => false,
        });
        if made
            && foreign
            && let Some((obj, _)) = self.terms.pointee(result)
            && let Some(known) = state.obj_mut(obj)
        {
            known.lent = true;
        }
    }

    /// A descriptor that was handed over is closed, or handed over again: no stream of this function may be closed by a
    /// patch, neither before nor behind that, since it could be the one that has the descriptor.
    pub(crate) fn undermine(&mut self, state: &State) {
        let streams = state.objs.iter().filter(|(_, known)| self.is_handle(known.family)).map(|(obj, _)| *obj);
        let streams: Vec<ObjId> = streams.collect();
        self.undermined.extend(streams);
    }

    /// `close(fileno(f))`
    pub(crate) fn undermine_by_number(&mut self, state: &State, number: TermId) {
        if self.terms.contains(number, &mut |part, _| matches!(part, Term::Content { off: NUMBER, .. })) {
            self.undermine(state);
        }
    }

    fn is_handle(&self, family: FamilyId) -> bool {
        let spec = &self.models.families[family];
        !spec.is_memory && !spec.is_integer
    }

    pub(crate) fn note_closed(&mut self, obj: ObjId, family: FamilyId, at: InstId) {
        if self.is_handle(family) {
            self.closed.insert((at, obj));
        }
    }

    pub(crate) fn doubt_undermined(&mut self) {
        for (at, _) in self.closed.iter().filter(|(_, obj)| self.undermined.contains(obj)) {
            self.releases.entry(*at).or_default().insert(Doubt::Lent);
        }
    }

    /// Whatever there is of a family may be released, also what nobody has any more.
    pub(crate) fn sweep(&mut self, state: &mut State, family: FamilyId) {
        let is_own = |object: &Object| matches!(object, Object::Heap { .. });
        let terms = &self.terms;
        for (_, known) in
            state.objs.iter_mut().filter(|(obj, known)| known.family == family && is_own(terms.object(*obj)))
        {
            known.give_away();
            known.lost = false;
            known.status = known.status.join(Status::FREED);
        }
        if let Err(at) = state.swept.binary_search(&family) {
            state.swept.insert(at, family);
        }
        self.undermine(state);
    }

    /// Is the number that a call is given the counter of a loop?
    pub(crate) fn counts_through(&self, at: InstId, place: &Place) -> bool {
        let (Op::Call(call), Place::Arg(arg)) = (&self.function.insts[at].op, place) else { return false };
        let Some(mut value): Option<ValueId> = call.args.get(*arg as usize).copied() else { return false };
        loop {
            let ValueKind::Inst(inst) = self.function.values[value].kind else { return false };
            match &self.function.insts[inst].op {
                Op::Cast { a, .. } => value = *a,
                Op::Phi { incoming } => {
                    return incoming.iter().any(|(_, next)| self.is_step(*next, value));
                }
                _ => return false,
            }
        }
    }

    /// `i + 1`, `i - 1`
    fn is_step(&self, next: ValueId, of: ValueId) -> bool {
        let ValueKind::Inst(inst) = self.function.values[next].kind else { return false };
        match &self.function.insts[inst].op {
            Op::Bin { a, b, .. } => {
                let is_one = |value: ValueId| matches!(self.function.values[value].kind, ValueKind::Int(_));
                *a == of && is_one(*b) || *b == of && is_one(*a)
            }
            _ => false,
        }
    }
}
