//! Descriptors that somebody closes by their numbers, whoever else has them.
//!
//!     FILE *f = fdopen(fd, "r");                    // the stream has the descriptor now
//!     close(fd);                                    // fclose(f) would close that number a second time
//!
//!     for (i = 3; i < 256; i++) close(i);           // whatever is open from 3 on: closefrom(3)
//!     close(atoi(entry->d_name));                   // as well: the number was not come by as a descriptor
//!
//! Callers are told by outcome ([`Outcome::swept`](crate::summary::Outcome::swept)): what they had open may be closed.
//!
//! # Known imprecision
//! - A number that was worked out, and lay in an array since, is taken for one that was come by.

use caulk_ir::{Call, Callee, InstId, Op, Target, ValueId, ValueKind};
use caulk_models::{Effect, FamilyId, FunctionModel, Place};
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::incident::Doubt;
use crate::object::{ObjId, Object, Status};
use crate::place::NUMBER;
use crate::state::State;
use crate::term::{Term, TermId};

/// Standard input, output and error are known by their numbers.
const LAST_STANDARD: i64 = 2;

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

    /// Was the number that a call is given worked out or written down (`close(i)`, `close(atoi(name))`, `close(5)`), and
    /// not come by as somebody's descriptor? Then it may be anybody's.
    pub(crate) fn is_worked_out(&self, at: InstId, place: &Place) -> bool {
        let (Op::Call(call), Place::Arg(arg)) = (&self.function.insts[at].op, place) else { return false };
        call.args.get(*arg as usize).is_some_and(|value| self.is_worked_out_value(*value, &mut SmallVec::new()))
    }

    /// The same of a value as it came about on the way, through callees as well.
    pub(crate) fn is_worked_out_term(&self, number: TermId) -> bool {
        match *self.terms.get(number) {
            Term::Int(number) => number > LAST_STANDARD,
            Term::Bin(..) => self.terms.mentions(number).is_empty(),
            _ => false,
        }
    }

    fn is_worked_out_value(&self, value: ValueId, seen: &mut SmallVec<[ValueId; 8]>) -> bool {
        if seen.contains(&value) {
            return false;
        }
        seen.push(value);
        let inst = match self.function.values[value].kind {
            ValueKind::Int(number) => return number > LAST_STANDARD,
            ValueKind::Inst(inst) => inst,
            _ => return false,
        };
        match &self.function.insts[inst].op {
            Op::Bin { .. } => true,
            Op::Cast { a, .. } => self.is_worked_out_value(*a, seen),
            Op::Select { a, b, .. } => self.is_worked_out_value(*a, seen) || self.is_worked_out_value(*b, seen),
            Op::Phi { incoming } => incoming.iter().any(|(_, next)| self.is_worked_out_value(*next, seen)),
            Op::Load { ptr } => self.is_counted_there(*ptr),
            Op::Call(call) => self.library_model(call).is_some_and(reads_number),
            _ => false,
        }
    }

    /// `close(last++)`, or a number that `sscanf` has put there.
    fn is_counted_there(&self, ptr: ValueId) -> bool {
        let is_read = |value: ValueId| match self.function.values[value].kind {
            ValueKind::Inst(inst) => {
                matches!(self.function.insts[inst].op, Op::Load { ptr: from } if self.is_same_place(from, ptr))
            }
            _ => false,
        };
        self.function.insts.iter().any(|inst| match &inst.op {
            Op::Store { ptr: into, value } if self.is_same_place(*into, ptr) => {
                let ValueKind::Inst(made) = self.function.values[*value].kind else { return false };
                matches!(self.function.insts[made].op, Op::Bin { a, b, .. } if is_read(a) || is_read(b))
            }
            Op::Call(call) => {
                let model = self.library_model(call);
                let from = model.into_iter().flat_map(|model| &model.effects).find_map(|effect| match effect {
                    Effect::WritesRest { from } => Some(*from as usize),
                    _ => None,
                });
                from.is_some_and(|from| call.args.iter().skip(from).any(|arg| self.is_same_place(*arg, ptr)))
            }
            _ => false,
        })
    }

    fn is_same_place(&self, a: ValueId, b: ValueId) -> bool {
        let (one, other) = (&self.function.values[a].kind, &self.function.values[b].kind);
        a == b
            || match (one, other) {
                (ValueKind::Address(of, at), ValueKind::Address(too, there)) => of == too && at == there,
                _ => false,
            }
    }

    fn library_model(&self, call: &Call) -> Option<&FunctionModel> {
        let Callee::Symbol(symbol) = call.callee else { return None };
        match self.program.target(self.unit, symbol) {
            Target::Extern(external) => self.knowledge.model(*external),
            _ => None,
        }
    }
}

/// `atoi`, `strtol`: what comes back is nothing but what stands in a text.
fn reads_number(model: &FunctionModel) -> bool {
    let within = |effect: &Effect| matches!(effect, Effect::Points { .. });
    let all = model.effects.iter().all(within) && (model.returns.pure || !model.effects.is_empty());
    all && model.returns.number_of.is_none()
}
