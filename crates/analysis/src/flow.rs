//! Which parameters a function may keep or release, by where their values go.
//!
//!     void show(struct item *i, FILE *to) { if (i->next) show(i->next, to); fputs(i->name, to); }
//!
//! Neither `i` nor `to` is stored, returned, or given to anybody who stores or releases it: whatever else `show` does,
//! who passes a block that nobody else has, has it alone afterwards. That is so for any number of functions that call
//! each other, and takes no look at their states: where a recursion could not be followed to its end, it is what is
//! still certain of it.
//!
//! # Invariants
//! - A value that is computed from a parameter counts as the parameter.
//! - What lies in the block is another matter: it may be released or exchanged.
//!
//! # Known imprecision
//! - Of more than 63 parameters, the last are kept.

use caulk_base::{FxHashMap, Id, IdVec};
use caulk_ir::{Call, Callee, ExternId, FuncId, Function, InstId, Op, Program, Target, UnitId, ValueId};
use caulk_models::{Effect, FunctionModel, Place};

use crate::callgraph::CallGraph;
use crate::cfg::for_each_operand;

/// A set of parameters, one bit each.
pub type Params = u64;

/// What is known before the values are followed.
pub struct Around<'a, M, U> {
    pub program: &'a Program,
    pub graph: &'a CallGraph,
    /// Functions that may keep one of their variable arguments.
    pub variadic: &'a IdVec<FuncId, bool>,
    pub model: M,
    /// Models that stand for functions of the program.
    pub user_model: U,
}

/// For each function, the parameters that it may keep or release.
pub fn find<'m, M, U>(around: &Around<'_, M, U>) -> IdVec<FuncId, Params>
where
    M: Fn(ExternId) -> Option<&'m FunctionModel>,
    U: Fn(&str) -> Option<&'m FunctionModel>,
{
    let ids: Vec<FuncId> = around.program.functions.ids().collect();
    let mut kept: IdVec<FuncId, Params> = IdVec::filled(ids.len(), 0);
    // Who gives a parameter of his to whom: (callee, its parameter) -> (caller, his parameters).
    let mut givers: FxHashMap<(FuncId, u32), Vec<(FuncId, Params)>> = FxHashMap::default();
    let mut open: Vec<FuncId> = Vec::new();
    for &id in &ids {
        let mut walk = Walk { around, id, unit: around.program.unit_of(id), kept: 0, given: Vec::new() };
        walk.run();
        kept[id] = walk.kept;
        for (callee, at, params) in walk.given {
            givers.entry((callee, at)).or_default().push((id, params));
        }
        if kept[id] != 0 {
            open.push(id);
        }
    }
    while let Some(callee) = open.pop() {
        let known = kept[callee];
        for at in (0..64).filter(|at| known & (1 << at) != 0) {
            for &(caller, params) in givers.get(&(callee, at)).into_iter().flatten() {
                if kept[caller] | params != kept[caller] {
                    kept[caller] |= params;
                    open.push(caller);
                }
            }
        }
    }
    kept
}

/// The bit of a parameter.
pub fn bit(at: usize) -> Params {
    1 << at.min(63)
}

struct Walk<'a, 'b, M, U> {
    around: &'a Around<'b, M, U>,
    id: FuncId,
    unit: UnitId,
    kept: Params,
    given: Vec<(FuncId, u32, Params)>,
}

impl<'m, M, U> Walk<'_, '_, M, U>
where
    M: Fn(ExternId) -> Option<&'m FunctionModel>,
    U: Fn(&str) -> Option<&'m FunctionModel>,
{
    fn run(&mut self) {
        let function = self.around.program.function(self.id);
        if function.param_count == 0 {
            return;
        }
        let origins = self.origins(function);
        if function.param_count > 63 {
            self.kept |= bit(63);
        }
        for (inst_id, inst) in function.insts.iter_ids() {
            let of = |value: ValueId| origins[value.index()];
            match &inst.op {
                // The block is looked into, or written.
                Op::Load { .. } | Op::Cmp { .. } | Op::Bind { .. } | Op::Branch { .. } | Op::Switch { .. } => {}
                Op::Copy { .. } | Op::Fill { .. } => {}
                // What is computed is followed.
                Op::Offset { .. } | Op::Cast { .. } | Op::Bin { .. } | Op::Select { .. } | Op::Phi { .. } => {}
                Op::Store { value, .. } => self.kept |= of(*value),
                Op::Call(call) => self.call(inst_id, call, &origins),
                op => for_each_operand(op, |value| self.kept |= of(value)),
            }
        }
    }

    /// For each value, the parameters that it may be computed from.
    fn origins(&self, function: &Function) -> Vec<Params> {
        let mut origins: Vec<Params> = vec![0; function.values.len()];
        for (at, value) in function.params().enumerate() {
            origins[value.index()] = bit(at);
        }
        loop {
            let mut changed = false;
            for inst in function.insts.iter() {
                let Some(result) = inst.result else { continue };
                let mut found: Params = 0;
                match &inst.op {
                    Op::Offset { .. } | Op::Cast { .. } | Op::Bin { .. } | Op::Select { .. } | Op::Phi { .. } => {
                        for_each_operand(&inst.op, |value| found |= origins[value.index()]);
                    }
                    Op::Call(call) => found = self.returned(call, &origins),
                    _ => {}
                }
                let known = &mut origins[result.index()];
                changed |= *known | found != *known;
                *known |= found;
            }
            if !changed {
                return origins;
            }
        }
    }

    fn library(&self, call: &Call) -> Option<&'m FunctionModel> {
        let Callee::Symbol(symbol) = call.callee else { return None };
        match self.around.program.target(self.unit, symbol) {
            Target::Extern(external) => (self.around.model)(*external),
            _ => (self.around.user_model)(&self.around.program.units[self.unit].symbols[symbol].name),
        }
    }

    /// A library function may return what it is given, or a pointer into it. (One of the program that does so keeps it.)
    fn returned(&self, call: &Call, origins: &[Params]) -> Params {
        let Some(model) = self.library(call) else { return 0 };
        let returns = [model.returns.argument, model.returns.interior];
        let given = returns.into_iter().flatten().filter_map(|at| call.args.get(at as usize));
        given.fold(0, |all, value| all | origins[value.index()])
    }

    fn call(&mut self, inst: InstId, call: &Call, origins: &[Params]) {
        let given = |at: usize| call.args.get(at).map_or(0, |value| origins[value.index()]);
        let all = (0..call.args.len()).fold(0, |all, at| all | given(at));
        if all == 0 {
            return;
        }
        if let Some(model) = self.library(call) {
            let kept = (0..call.args.len()).filter(|at| keeps(model, *at as u32));
            self.kept |= kept.fold(0, |all, at| all | given(at));
            return;
        }
        let program = self.around.program;
        let callees: Vec<FuncId> = match &call.callee {
            Callee::Symbol(symbol) => match program.target(self.unit, *symbol) {
                Target::Functions(all) => all.clone(),
                _ => Vec::new(),
            },
            Callee::Value(_) => match self.around.graph.indirect.get(&(self.id, inst)) {
                Some(targets) if !targets.guessed && targets.library.is_empty() => targets.functions.clone(),
                _ => Vec::new(),
            },
            Callee::Intrinsic(name) if name.contains("va_") || name.contains("objectsize") => return,
            _ => Vec::new(),
        };
        if callees.is_empty() {
            self.kept |= all;
            return;
        }
        for callee in callees {
            let named = program.function(callee).param_count as usize;
            for at in 0..call.args.len() {
                if at >= named.min(63) {
                    self.kept |= if at >= named && !self.around.variadic[callee] { 0 } else { given(at) };
                } else if given(at) != 0 {
                    self.given.push((callee, at as u32, given(at)));
                }
            }
        }
    }
}

/// May the library keep or release the argument itself?
fn keeps(model: &FunctionModel, at: u32) -> bool {
    let is_it = |place: &Place| *place == Place::Arg(at);
    model.effects.iter().any(|effect| match effect {
        Effect::Releases { place, .. } | Effect::Retains { place, .. } | Effect::Takes { place, .. } => is_it(place),
        Effect::Reallocates { arg, .. } | Effect::Stores { arg, .. } => *arg == at,
        Effect::Replaces { place, .. } => is_it(place),
        Effect::Points { into, .. } => is_it(into),
        // Whom it calls may do anything with what it is given.
        Effect::Calls { .. } | Effect::Registers { .. } => true,
        Effect::Allocates { .. }
        | Effect::Clears { .. }
        | Effect::Copies { .. }
        | Effect::Writes { .. }
        | Effect::Zeroes { .. }
        | Effect::Sends { .. }
        | Effect::Sweeps { .. }
        | Effect::WritesRest { .. } => false,
    })
}
