//! Functions that give something back for what they are given: `s = append(s, text)`.
//!
//! Written in the program itself, such a function returns null when memory runs out, or when there would be too much in
//! the block, and leaves `s` alone. Every use of it, and of `append(make(), text)`, loses the argument then; those who wrote
//! it that way have decided so. What `realloc` leaves is another matter: there the idiom is a known mistake.

use caulk_ir::{InstId, Op, Ty, ValueId, ValueKind};

use crate::engine::Engine;
use crate::object::ObjId;
use crate::state::State;

impl Engine<'_> {
    /// The blocks that a call exchanges for its result.
    pub(crate) fn exchanged(&self, before: &State, call: InstId) -> Vec<ObjId> {
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
        let exchanged = args.args.iter().filter(|&&arg| is_temporary(arg) || same_variable(arg));
        exchanged.filter_map(|&arg| before.value(arg)).flat_map(|term| self.terms.mentions(term)).copied().collect()
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
