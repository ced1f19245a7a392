//! What an instruction reads, and where a terminator goes.

use crate::{BlockId, Callee, Op, ValueId};

impl Op {
    /// Calls `visit` with every value the instruction reads, in the order of its text form.
    pub fn visit_operands(&self, mut visit: impl FnMut(ValueId)) {
        match self {
            Op::Alloca { count, .. } => count.iter().copied().for_each(visit),
            Op::Load { ptr: a }
            | Op::Cast { a, .. }
            | Op::Extract { aggregate: a, .. }
            | Op::VaArg { list: a }
            | Op::Bind { value: a, .. }
            | Op::Branch { cond: a, .. }
            | Op::Switch { value: a, .. }
            | Op::IndirectJump { address: a, .. } => visit(*a),
            Op::Store { value: a, ptr: b }
            | Op::Cmp { a, b, .. }
            | Op::Bin { a, b, .. }
            | Op::Insert { aggregate: a, value: b, .. }
            | Op::Atomic { ptr: a, value: b } => [*a, *b].into_iter().for_each(visit),
            Op::Select { cond: a, a: b, b: c }
            | Op::Copy { dst: a, src: b, len: c }
            | Op::Fill { dst: a, byte: b, len: c } => [*a, *b, *c].into_iter().for_each(visit),
            Op::Offset { base, indices, .. } => {
                visit(*base);
                indices.iter().for_each(|(index, _)| visit(*index));
            }
            Op::Phi { incoming } => incoming.iter().for_each(|(_, value)| visit(*value)),
            Op::Call(call) => {
                if let Callee::Value(target) = call.callee {
                    visit(target);
                }
                call.args.iter().copied().for_each(visit);
            }
            Op::Opaque { operands, .. } => operands.iter().copied().for_each(visit),
            Op::Return { value } => value.iter().copied().for_each(visit),
            Op::Jump { .. } | Op::Unreachable => {}
        }
    }

    /// Calls `visit` with every block control may go to; one that is named twice comes twice.
    pub fn visit_successors(&self, mut visit: impl FnMut(BlockId)) {
        match self {
            Op::Jump { to } => visit(*to),
            Op::Branch { then, els, .. } => [*then, *els].into_iter().for_each(visit),
            Op::Switch { cases, default, .. } => {
                cases.iter().for_each(|case| visit(case.to));
                visit(*default);
            }
            Op::IndirectJump { targets, .. } => targets.iter().copied().for_each(visit),
            _ => {}
        }
    }
}
