//! Functions that may end the process: a destructor with `assert(c->state == CLOSED)` is right where its author calls it, and
//! would end a program that has only lost the block so far.
//!
//! ```c
//! void conn_free(struct conn *c) {
//!     assert(c);                       // null is asked for elsewhere: does not count here
//!     if (c->state != CLOSED)
//!         abort();                     // may end the process
//!     free(c);
//! }
//! ```
//!
//! # Known imprecision
//! - Why the process would end is not asked: a function that cannot go on without memory counts, too.

use caulk_analysis::Analysis;
use caulk_ir::{BlockId, Callee, CmpOp, FuncId, Function, Op, Target, ValueKind};

/// What may end the process in a function itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dying {
    /// Nothing but a parameter that is null.
    OnNull,
    Perhaps,
}

pub fn of(analysis: &Analysis<'_>, id: FuncId) -> Option<Dying> {
    let function = analysis.knowledge.program.function(id);
    let ends = |block: &BlockId| {
        function.block_insts(*block).any(|(_, inst)| match &inst.op {
            Op::Call(call) => call.noreturn || never_returns(analysis, id, &call.callee),
            _ => false,
        })
    };
    let found = function.blocks.ids().filter(ends);
    found.map(|block| if is_null_way(function, block) { Dying::OnNull } else { Dying::Perhaps }).max()
}

fn never_returns(analysis: &Analysis<'_>, id: FuncId, callee: &Callee) -> bool {
    let knowledge = &analysis.knowledge;
    match callee {
        Callee::Symbol(symbol) => match knowledge.program.target(knowledge.program.unit_of(id), *symbol) {
            Target::Functions(all) => !all.is_empty() && all.iter().all(|&callee| knowledge.never[callee]),
            Target::Extern(external) => knowledge.model(*external).is_some_and(|model| model.returns.never),
            Target::Globals(_) => false,
        },
        Callee::Intrinsic(name) => name.contains("trap"),
        Callee::Value(_) | Callee::Asm(_) => false,
    }
}

/// Whether a block is come to only where the function has asked whether a parameter is null, and it is.
fn is_null_way(function: &Function, block: BlockId) -> bool {
    let mut ways = function.blocks.ids().filter_map(|from| {
        let op = &function.terminator(from).1.op;
        let mut leads = false;
        op.visit_successors(|to| leads |= to == block);
        leads.then_some(op)
    });
    let is_null = |op: &Op| {
        let Op::Branch { cond, then, .. } = op else { return false };
        let ValueKind::Inst(test) = function.values[*cond].kind else { return false };
        let Op::Cmp { op, a, b } = &function.insts[test].op else { return false };
        let kinds = [function.values[*a].kind, function.values[*b].kind];
        let of_parameter = matches!(kinds, [ValueKind::Param(_), ValueKind::Null]);
        let wanted = if *then == block { CmpOp::Eq } else { CmpOp::Ne };
        of_parameter && *op == wanted
    };
    let first = ways.next();
    first.is_some_and(is_null) && ways.all(is_null)
}
