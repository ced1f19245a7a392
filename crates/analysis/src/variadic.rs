//! Which functions may keep or release one of their variable arguments.
//!
//!     void error(const char *fmt, ...) { va_list a; va_start(a, fmt); vlog(fmt, a); va_end(a); }
//!     void vlog(const char *fmt, va_list a) { vfprintf(stderr, fmt, a); }
//!
//! Neither of them: the list goes through any number of functions to one that has a model and only reads it. A function
//! that takes arguments out of the list itself may do anything with them.

use caulk_base::{FxHashSet, IdVec};
use caulk_ir::{Call, Callee, FuncId, Function, Op, Program, Target, UnitId, ValueId, ValueKind};

use crate::cfg::for_each_operand;

/// For each function: may it keep one of its variable arguments? `is_modelled` says it of library functions.
pub fn find(program: &Program, is_modelled: impl Fn(caulk_ir::ExternId) -> bool) -> IdVec<FuncId, bool> {
    let finder = Finder { program, is_modelled };
    program
        .functions
        .ids()
        .map(|id| {
            let lists = started(program.function(id));
            !lists.is_empty() && finder.keeps(id, lists, &mut FxHashSet::default())
        })
        .collect()
}

struct Finder<'a, M> {
    program: &'a Program,
    is_modelled: M,
}

impl<M: Fn(caulk_ir::ExternId) -> bool> Finder<'_, M> {
    /// Is something taken out of one of the lists, here or where they are handed to?
    fn keeps(&self, id: FuncId, mut lists: Vec<ValueId>, seen: &mut FxHashSet<(FuncId, ValueId)>) -> bool {
        lists.retain(|list| seen.insert((id, *list)));
        let function = self.program.function(id);
        let unit = self.program.unit_of(id);
        // A copy of a list is one.
        for inst in function.insts.iter() {
            if let Op::Call(call) = &inst.op
                && is_intrinsic(call, "va_copy")
                && let [copy, list] = call.args[..]
                && lists.contains(&base_of(function, list))
            {
                lists.push(base_of(function, copy));
            }
        }
        function.insts.iter().any(|inst| match &inst.op {
            Op::Call(call) if matches!(call.callee, Callee::Intrinsic(_)) => false,
            Op::Call(call) => call.args.iter().enumerate().any(|(place, &arg)| {
                lists.contains(&base_of(function, arg)) && self.kept_by_callee(unit, call, place, seen)
            }),
            Op::VaArg { .. } => !lists.is_empty(),
            Op::Offset { .. } | Op::Bind { .. } => false,
            // Read, written, copied, chosen between: whoever does that takes something out.
            op => {
                let mut used = false;
                for_each_operand(op, |value| used |= lists.contains(&base_of(function, value)));
                used
            }
        })
    }

    fn kept_by_callee(&self, unit: UnitId, call: &Call, place: usize, seen: &mut FxHashSet<(FuncId, ValueId)>) -> bool {
        let Callee::Symbol(symbol) = &call.callee else { return true };
        match self.program.target(unit, *symbol) {
            Target::Extern(external) => !(self.is_modelled)(*external),
            Target::Functions(all) => all.iter().any(|&callee| {
                let parameter = self.program.function(callee).params().nth(place);
                parameter.is_none_or(|parameter| self.keeps(callee, vec![parameter], seen))
            }),
            Target::Globals(_) => true,
        }
    }
}

/// The lists that a function makes of its own variable arguments.
fn started(function: &Function) -> Vec<ValueId> {
    let starts = function.insts.iter().filter_map(|inst| match &inst.op {
        Op::Call(call) if is_intrinsic(call, "va_start") => call.args.first().copied(),
        _ => None,
    });
    starts.map(|list| base_of(function, list)).collect()
}

fn is_intrinsic(call: &Call, name: &str) -> bool {
    matches!(&call.callee, Callee::Intrinsic(intrinsic) if intrinsic.contains(name))
}

/// The variable a pointer was computed from.
fn base_of(function: &Function, value: ValueId) -> ValueId {
    let mut at = value;
    while let ValueKind::Inst(inst) = function.values[at].kind
        && let Op::Offset { base, .. } = &function.insts[inst].op
    {
        at = *base;
    }
    at
}
