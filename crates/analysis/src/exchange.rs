//! Functions that give something back for what they are given: `s = append(s, text)`.
//!
//! Written in the program itself, such a function returns null when memory runs out, or when there would be too much in
//! the block, and leaves `s` alone. Every use of it, of `append(make(), text)` and of `return append(s, text)`, loses the
//! argument then; those who wrote it that way have decided so. What `realloc` leaves is another matter: there the idiom is a known mistake.

use caulk_base::Id;
use caulk_ir::{Inst, InstId, Op, Ty, ValueId, ValueKind};

use crate::cfg;
use crate::engine::Engine;
use crate::object::{ObjId, Object, Status};
use crate::state::State;
use crate::summary::{Outcome, Summary};
use crate::term::{Term, TermId};

impl Engine<'_> {
    /// The blocks that a call exchanges for its result.
    pub(crate) fn exchanged(&self, before: &State, call: InstId, summary: &Summary) -> Vec<ObjId> {
        let inst = &self.function.insts[call];
        let (Op::Call(args), Some(result)) = (&inst.op, inst.result) else { return Vec::new() };
        if self.function.values[result].ty != Ty::Ptr {
            return Vec::new();
        }
        let is_temporary = |arg: ValueId| {
            let made_by_call = |inst: InstId| matches!(self.function.insts[inst].op, Op::Call(_));
            matches!(self.function.values[arg].kind, ValueKind::Inst(inst) if made_by_call(inst))
                && !self.bound.contains(arg)
        };
        let same_variable = |arg: ValueId| {
            self.bindings.values().any(|values| values.contains(&arg) && values.contains(&result))
                || self.place_of(arg).is_some_and(|place| self.is_stored_at(result, place))
        };
        let exchanged = args.args.iter().enumerate().filter(|&(at, &arg)| {
            is_temporary(arg) || same_variable(arg) || (gives_back(summary, at as u32) && self.is_returned(result))
        });
        let exchanged = exchanged.filter_map(|(_, &arg)| before.value(arg));
        exchanged.flat_map(|term| self.terms.mentions(term)).copied().collect()
    }

    /// `return append(s, text);`: nobody looks at it before.
    fn is_returned(&self, result: ValueId) -> bool {
        let is_read = |inst: &Inst, value: ValueId| {
            let mut read = false;
            cfg::for_each_operand(&inst.op, |operand| read |= operand == value);
            read && !matches!(inst.op, Op::Bind { .. })
        };
        let mut readers = self.function.insts.iter().filter(|inst| is_read(inst, result)).peekable();
        let is_return = |inst: &Inst| matches!(inst.op, Op::Return { .. });
        let leads_to_return = |inst: &Inst| match (&inst.op, inst.result) {
            (Op::Phi { .. }, Some(phi)) => self.function.insts.iter().filter(|inst| is_read(inst, phi)).all(is_return),
            _ => is_return(inst),
        };
        readers.peek().is_some() && readers.all(leads_to_return)
    }

    /// The address that a value was read from.
    fn place_of(&self, value: ValueId) -> Option<ValueId> {
        match self.function.values[value].kind {
            ValueKind::Inst(inst) => match self.function.insts[inst].op {
                Op::Load { ptr } => Some(ptr),
                _ => None,
            },
            _ => None,
        }
    }

    /// Is the value written to the address, or to one that is worked out in the same way?
    fn is_stored_at(&self, value: ValueId, place: ValueId) -> bool {
        let way = |ptr: ValueId| match self.function.values[ptr].kind {
            ValueKind::Inst(inst) => match &self.function.insts[inst].op {
                Op::Offset { base, bytes, indices, .. } if indices.is_empty() => Some((*base, *bytes)),
                _ => None,
            },
            _ => None,
        };
        self.function.insts.iter().any(|inst| {
            matches!(inst.op, Op::Store { ptr, value: stored }
                if stored == value && (ptr == place || (way(ptr).is_some() && way(ptr) == way(place))))
        })
    }
}

/// Does the function return its argument, or release it and return a new block, wherever it returns something?
fn gives_back(summary: &Summary, index: u32) -> bool {
    let is_param = |term: TermId| summary.terms[term.index()] == Term::Param(index);
    let releases = |outcome: &Outcome| {
        outcome.objs.iter().any(|(obj, known)| {
            known.status == Status::FREED
                && matches!(summary.objects[obj.index()], Object::Deref(base) if is_param(base))
        })
    };
    let is_new = |term: TermId| match summary.terms[term.index()] {
        Term::Addr { obj, .. } => matches!(summary.objects[obj.index()], Object::Heap { .. }),
        _ => false,
    };
    let results = summary.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.result?)));
    let mut some = results.filter(|(_, result)| summary.terms[result.index()] != Term::Int(0)).peekable();
    some.peek().is_some() && some.all(|(outcome, result)| is_param(result) || (releases(outcome) && is_new(result)))
}
