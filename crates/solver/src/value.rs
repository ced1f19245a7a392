//! Numbers of a fixed width, as they are kept in an `i64`.
//!
//! A value of `bits` bits is kept sign-extended, except one bit, which is 0 or 1: `true` prints as 1.
//!
//! # Invariants
//! - Every function here takes and gives normal values (see [`normal`]); what C and LLVM leave undefined (division by
//!   zero, a shift too far) has no result, so that nothing is ever concluded from it.

use crate::terms::{BinOp, CmpOp};

/// Cuts a number down to its width.
pub(crate) fn normal(value: i64, bits: u32) -> i64 {
    match bits {
        1 => value & 1,
        2..=63 => (value << (64 - bits)) >> (64 - bits),
        _ => value,
    }
}

/// The value read as signed.
pub(crate) fn signed(value: i64, bits: u32) -> i64 {
    if bits == 1 { -value } else { value }
}

/// The value read as unsigned.
pub(crate) fn unsigned(value: i64, bits: u32) -> u64 {
    value.cast_unsigned() & max_unsigned(bits)
}

pub(crate) fn max_unsigned(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

pub(crate) fn max_signed(bits: u32) -> i64 {
    (max_unsigned(bits) >> 1).cast_signed()
}

pub(crate) fn min_signed(bits: u32) -> i64 {
    -max_signed(bits) - 1
}

pub(crate) fn binary(op: BinOp, a: i64, b: i64, bits: u32) -> Option<i64> {
    let (ua, ub) = (unsigned(a, bits), unsigned(b, bits));
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    let in_width = ub < u64::from(bits);
    let shift = u32::try_from(ub).unwrap_or(u32::MAX);
    let result = match op {
        BinOp::Add => sa.wrapping_add(sb),
        BinOp::Sub => sa.wrapping_sub(sb),
        BinOp::Mul => sa.wrapping_mul(sb),
        BinOp::UDiv => ua.checked_div(ub)?.cast_signed(),
        BinOp::URem => ua.checked_rem(ub)?.cast_signed(),
        BinOp::SDiv if sa == min_signed(bits) && sb == -1 => return None,
        BinOp::SRem if sa == min_signed(bits) && sb == -1 => return None,
        BinOp::SDiv => sa.checked_div(sb)?,
        BinOp::SRem => sa.checked_rem(sb)?,
        BinOp::And => sa & sb,
        BinOp::Or => sa | sb,
        BinOp::Xor => sa ^ sb,
        BinOp::Shl | BinOp::LShr | BinOp::AShr if !in_width => return None,
        BinOp::Shl => sa << shift,
        BinOp::LShr => (ua >> shift).cast_signed(),
        BinOp::AShr => sa >> shift,
    };
    Some(normal(result, bits))
}

pub(crate) fn compare(op: CmpOp, a: i64, b: i64, bits: u32) -> bool {
    let (ua, ub) = (unsigned(a, bits), unsigned(b, bits));
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Ult => ua < ub,
        CmpOp::Ule => ua <= ub,
        CmpOp::Ugt => ua > ub,
        CmpOp::Uge => ua >= ub,
        CmpOp::Slt => sa < sb,
        CmpOp::Sle => sa <= sb,
        CmpOp::Sgt => sa > sb,
        CmpOp::Sge => sa >= sb,
    }
}
