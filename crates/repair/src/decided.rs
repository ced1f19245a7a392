//! Conditions that a constant decides for good, so that the code under them is compiled and never run.
//!
//! ```c
//! if (flags & KEEP)          // KEEP is 0 here: decided, `last = p;` is not looked at by anybody
//!     last = p;
//! if (length <= LIMIT)       // open, whatever LIMIT is: both ways were analysed
//!     return pass_on(p);
//! ```
//!
//! # Invariants
//! - Open is only what is understood: an ordering, or a question for equality, of something that is not known here and a
//!   constant that the type does not make pointless.
//!
//! # Known imprecision
//! - What is known of the other side from elsewhere (`if (n > 9) return; … if (n > LIMIT)`) is not asked for.

use caulk_ir::{BinOp, CastOp, CmpOp, Function, Op, Program, Ty, ValueId, ValueKind};
use caulk_source::{FunctionSource, Span};

/// Deeper expressions are not understood.
const MAX_DEPTH: usize = 6;

/// Whether the program branches in a condition of a function, and each time on something that is not decided.
pub fn is_open(program: &Program, function: &FunctionSource, cond: Span) -> bool {
    let path = function.file.path.to_string_lossy();
    let mut asked = false;
    for unit in program.units.iter() {
        for body in unit.functions.iter().filter(|body| body.name == function.name) {
            for inst in body.insts.iter() {
                let Op::Branch { cond: value, .. } = &inst.op else { continue };
                let loc = unit.locs[inst.loc];
                let is_here = loc.file.is_some_and(|file| unit.files[file] == *path)
                    && function.file.offset_of(loc.line, loc.column).is_some_and(|at| cond.contains(at));
                if !is_here {
                    continue;
                }
                asked = true;
                if !is_open_value(body, *value) {
                    return false;
                }
            }
        }
    }
    asked
}

fn is_open_value(body: &Function, value: ValueId) -> bool {
    let Some(Op::Cmp { op, a, b }) = made_by(body, value) else { return false };
    match (constant(body, *a), constant(body, *b)) {
        (None, None) => is_free(body, *a, MAX_DEPTH) || is_free(body, *b, MAX_DEPTH),
        (None, Some(number)) => !is_pointless(body, *op, *a, number) && is_free(body, *a, MAX_DEPTH),
        // clang puts constants to the right, and what it does not put there was no question of a constant.
        _ => false,
    }
}

/// Do all values that `value` may have answer the same?
fn is_pointless(body: &Function, op: CmpOp, value: ValueId, number: i64) -> bool {
    let Ty::Int(bits) = body.values[value].ty else { return false };
    let is_unsigned = matches!(op, CmpOp::Ult | CmpOp::Ule | CmpOp::Ugt | CmpOp::Uge);
    // Constants are sign-extended.
    let number = if is_unsigned { i128::from(number) & (whole(bits, true).1) } else { i128::from(number) };
    let (least, most) = match made_by(body, value) {
        Some(Op::Cast { op: cast @ (CastOp::ZExt | CastOp::SExt), a }) => match body.values[*a].ty {
            Ty::Int(bits) => whole(bits, *cast == CastOp::ZExt),
            _ => return true,
        },
        _ => whole(bits, is_unsigned),
    };
    match op {
        CmpOp::Ult | CmpOp::Slt | CmpOp::Uge | CmpOp::Sge => number <= least || number > most,
        CmpOp::Ule | CmpOp::Sle | CmpOp::Ugt | CmpOp::Sgt => number < least || number >= most,
        CmpOp::Eq | CmpOp::Ne => number < least || number > most,
        CmpOp::Float => true,
    }
}

/// The least and the greatest number of so many bits.
fn whole(bits: u32, is_unsigned: bool) -> (i128, i128) {
    let bits = bits.clamp(1, 64);
    if is_unsigned { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) }
}

/// Is there a part of the value that no constant takes away?
fn is_free(body: &Function, value: ValueId, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    match made_by(body, value) {
        None => matches!(body.values[value].kind, ValueKind::Param(_)),
        Some(Op::Load { .. } | Op::Call(_)) => true,
        Some(Op::Cast { op, a }) => !matches!(op, CastOp::Float) && is_free(body, *a, depth - 1),
        // A number that was made smaller may be too small for the question.
        Some(Op::Bin { op: BinOp::Add | BinOp::Sub, a, b }) => {
            is_free(body, *a, depth - 1) || is_free(body, *b, depth - 1)
        }
        Some(Op::Phi { incoming }) => incoming.iter().any(|(_, value)| is_free(body, *value, depth - 1)),
        _ => false,
    }
}

fn made_by(body: &Function, value: ValueId) -> Option<&Op> {
    match body.values[value].kind {
        ValueKind::Inst(inst) => Some(&body.insts[inst].op),
        _ => None,
    }
}

fn constant(body: &Function, value: ValueId) -> Option<i64> {
    match body.values[value].kind {
        ValueKind::Int(number) => Some(number),
        ValueKind::Null => Some(0),
        _ => None,
    }
}
