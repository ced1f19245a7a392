//! Parameters through which a function only writes: whatever lies there before is not looked at.
//!
//!     free(label);
//!     format(&label, "%d", n);      // `label` dangles, and nobody sees it: it is written, or stays where it is
//!
//! # Invariants
//! - It is a matter of the instructions, on every way: a parameter that is copied, moved along or handed to somebody
//!   unknown does not count.

use caulk_ir::{Call, Callee, Op, Target, ValueId};
use caulk_models::{Effect, FunctionModel, Place};

use crate::cfg::for_each_operand;
use crate::engine::Engine;

impl Engine<'_> {
    /// The numbers of the parameters that are pointers to what is only written.
    pub(crate) fn written_parameters(&self) -> Vec<u32> {
        let function = self.function;
        let pointers =
            function.params().enumerate().filter(|(_, value)| function.values[*value].ty == caulk_ir::Ty::Ptr);
        pointers.filter(|(_, value)| self.is_only_written(*value)).map(|(at, _)| at as u32).collect()
    }

    fn is_only_written(&self, parameter: ValueId) -> bool {
        let mut written = false;
        let harmless = self.function.insts.iter().all(|inst| {
            let mut used = false;
            for_each_operand(&inst.op, |value| used |= value == parameter);
            match &inst.op {
                _ if !used => true,
                Op::Bind { .. } | Op::Cmp { .. } => true,
                Op::Store { ptr, value } if *ptr == parameter && *value != parameter => {
                    written = true;
                    true
                }
                Op::Call(call) => {
                    written = true;
                    self.is_written_by(call, parameter)
                }
                _ => false,
            }
        });
        harmless && written
    }

    fn is_written_by(&self, call: &Call, pointer: ValueId) -> bool {
        let Callee::Symbol(symbol) = call.callee else { return false };
        let mut places = call.args.iter().enumerate().filter(|(_, arg)| **arg == pointer).map(|(at, _)| at as u32);
        match self.program.target(self.unit, symbol) {
            Target::Extern(external) => {
                let model = self.knowledge.model(*external);
                places.all(|at| model.is_some_and(|model| puts_something(model, at)))
            }
            Target::Functions(all) => places.all(|at| all.iter().all(|&one| self.only_writes(one, at))),
            Target::Globals(_) => false,
        }
    }

    /// Does the function only write through this parameter?
    pub(crate) fn only_writes(&self, function: caulk_ir::FuncId, at: u32) -> bool {
        !self.knowledge.never_returns(function)
            && self.knowledge.summary(function).is_some_and(|summary| summary.written.contains(&at))
    }
}

/// The library puts something new there, and does nothing else with the argument.
fn puts_something(model: &FunctionModel, at: u32) -> bool {
    let puts = |effect: &Effect| matches!(effect, Effect::Allocates { place: Place::Deref(of), .. } if *of == at);
    let mut effects = model.effects.iter();
    effects.all(puts) && !model.effects.is_empty()
}
