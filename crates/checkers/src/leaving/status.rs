//! What becomes of the result of a call: is somebody asked for an answer, or is it the status that the process ends with?

use caulk_analysis::for_each_operand;
use caulk_base::FxHashSet;
use caulk_ir::{FuncId, InstId, Op, ValueId};

use super::around::Around;

/// Where a result goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goes {
    /// It, or what was made of it, is returned or given to `exit`.
    pub up: bool,
    /// Something is decided by it, or it goes elsewhere.
    pub elsewhere: bool,
}

impl Around<'_> {
    /// Where the result of a call goes.
    pub fn goes(&self, caller: FuncId, inst: InstId) -> Goes {
        let function = self.program.function(caller);
        let mut goes = Goes::default();
        let Some(result) = function.insts[inst].result else { return goes };
        let mut seen: FxHashSet<ValueId> = FxHashSet::from_iter([result]);
        let mut open = vec![result];
        while let Some(value) = open.pop() {
            for (at, inst) in function.insts.iter_ids() {
                let mut reads = false;
                for_each_operand(&inst.op, |operand| reads |= operand == value);
                if !reads {
                    continue;
                }
                let passes = match &inst.op {
                    Op::Bind { .. } => continue,
                    Op::Return { .. } => {
                        goes.up = true;
                        continue;
                    }
                    Op::Phi { .. } | Op::Cast { .. } | Op::Select { .. } | Op::Cmp { .. } | Op::Bin { .. } => true,
                    Op::Call(_) if self.ends(caller, at) => {
                        goes.up = true;
                        continue;
                    }
                    // `exit(farewell(status))`
                    Op::Call(_) => self.is_usual(caller, at),
                    _ => false,
                };
                match inst.result.filter(|_| passes) {
                    Some(made) if seen.insert(made) => open.push(made),
                    Some(_) => {}
                    None => goes.elsewhere = true,
                }
            }
        }
        goes
    }
}
