//! Errors that wait for a caller who does not exist.
//!
//! ```text
//! struct item *insert(char *key, struct table *t) {
//!     if (t == NULL) t = create();         // lost when the function returns
//! ```
//!
//! The leak is there only where `t` is null. If every caller is known and none passes a null pointer by name, nobody has
//! written the program in which it happens: it is not reported.

use caulk_analysis::Incident;
use caulk_base::FxHashMap;
use caulk_ir::{Callee, FuncId, Op, Program, Target, ValueKind};

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
