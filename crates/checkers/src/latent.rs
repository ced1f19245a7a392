//! Errors that wait for a caller who does not exist.
//!
//! ```text
//! struct item *insert(char *key, struct table *t) {
//!     if (t == NULL) t = create();         // lost when the function returns
//! ```
//!
//! The leak is there only where `t` is null. If every caller is known and none passes a null pointer by name, nobody has
//! written the program in which it happens: it is not reported.
//!
//! The same in a caller: `insert(strdup(key), names)` leaks if `names` is null, but it is a variable that the caller
//! never compares with null. Whoever passes it on like that knows that it is not.

use caulk_analysis::{Analysis, Event, Incident, Term, tested};
use caulk_base::{FxHashMap, FxHashSet, Id};
use caulk_ir::{Callee, FuncId, Function, InstId, Op, Program, Target, Ty, ValueId, ValueKind};

/// Which parameters are given a null constant by some caller; functions without callers are not listed.
pub struct Callers {
    null: FxHashMap<FuncId, Vec<bool>>,
}

impl Callers {
    /// Looks at every call of the program's own functions.
    pub fn of(program: &Program) -> Self {
        let mut null: FxHashMap<FuncId, Vec<bool>> = FxHashMap::default();
        for id in program.functions.ids() {
            let (unit, function) = (program.unit_of(id), program.function(id));
            for inst in function.insts.iter() {
                let Op::Call(call) = &inst.op else { continue };
                let Callee::Symbol(symbol) = call.callee else { continue };
                let Target::Functions(targets) = program.target(unit, symbol) else { continue };
                for target in targets {
                    let seen = null.entry(*target).or_default();
                    for (index, argument) in call.args.iter().enumerate() {
                        if seen.len() <= index {
                            seen.push(false);
                        }
                        let kind = function.values[*argument].kind;
                        seen[index] |= matches!(kind, ValueKind::Null | ValueKind::Zero | ValueKind::Int(0));
                    }
                }
            }
        }
        Self { null }
    }

    /// Does the incident need a null pointer that no caller passes?
    pub fn rule_out(&self, incident: &Incident) -> bool {
        let Some(given) = self.null.get(&incident.function) else { return false };
        incident.null_params.iter().any(|param| given.get(*param as usize) == Some(&false))
    }
}

/// Does every way to the incident that was seen need a null pointer that the function passes on without a look?
pub fn needs_unexpected_null(analysis: &Analysis<'_>, incident: &Incident) -> bool {
    let function = analysis.knowledge.program.function(incident.function);
    let expected = tested(function);
    !incident.paths.is_empty()
        && incident.paths.iter().all(|path| {
            path.iter().any(|event| match event {
                Event::Outcome { inst, outcome } => {
                    passes_null(analysis, incident.function, *inst, *outcome, &expected)
                }
                _ => false,
            })
        })
}

/// Is the outcome one of a null argument, for an argument of which nothing was known?
fn passes_null(
    analysis: &Analysis<'_>,
    caller: FuncId,
    inst: InstId,
    outcome: u32,
    expected: &FxHashSet<ValueId>,
) -> bool {
    let program = analysis.knowledge.program;
    let function = program.function(caller);
    let Op::Call(call) = &function.insts[inst].op else { return false };
    let Callee::Symbol(symbol) = call.callee else { return false };
    let Target::Functions(targets) = program.target(program.unit_of(caller), symbol) else { return false };
    let [target] = targets.as_slice() else { return false };
    let Some(summary) = analysis.knowledge.summary(*target) else { return false };
    let Some(outcome) = summary.outcomes.get(outcome as usize) else { return false };
    outcome.ranges.iter().any(|(term, lo, hi, _)| {
        let Some(Term::Param(index)) = summary.terms.get(term.index()) else { return false };
        let Some(&argument) = call.args.get(*index as usize) else { return false };
        let value = function.values[argument];
        // A parameter of our own is a question for our callers, a new block may be none, and what a local variable holds
        // was put there by this function: it may well be null.
        let is_read = matches!(value.kind, ValueKind::Inst(inst)
            if matches!(function.insts[inst].op, Op::Load { ptr } if !is_local(function, ptr)));
        (*lo, *hi) == (0, 0) && value.ty == Ty::Ptr && is_read && !expected.contains(&argument)
    })
}

/// Does the pointer lead into a variable of the function?
fn is_local(function: &Function, ptr: ValueId) -> bool {
    let mut at = ptr;
    while let ValueKind::Inst(inst) = function.values[at].kind {
        match &function.insts[inst].op {
            Op::Alloca { .. } => return true,
            Op::Offset { base, .. } => at = *base,
            Op::Cast { a, .. } => at = *a,
            _ => return false,
        }
    }
    false
}
