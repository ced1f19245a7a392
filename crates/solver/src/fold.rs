//! The smart constructors: constant folding and canonical forms.
//!
//! # Invariants
//! - A rewritten term has the same value as the plain one for every value of its variables, wherever the plain one has
//!   a defined value. The tests try this on random terms.
//! - Every rewrite makes the term smaller or moves a constant to the right, so that they end.

use crate::terms::{BinOp, CastOp, CmpOp, Term, TermId, Terms};
use crate::value::{self, max_signed, max_unsigned, min_signed, normal, signed, unsigned};

pub(crate) fn binary(terms: &mut Terms, op: BinOp, a: TermId, b: TermId) -> TermId {
    let bits = terms.bits(a);
    let (a, b) = if op.commutes() && order(terms, a) > order(terms, b) { (b, a) } else { (a, b) };
    if let (Some(x), Some(y)) = (terms.value(a), terms.value(b))
        && let Some(folded) = value::binary(op, x, y, bits)
    {
        return terms.constant(folded, bits);
    }
    let ones = normal(-1, bits);
    match (op, terms.value(b)) {
        (BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::LShr | BinOp::AShr, Some(0)) => {
            return a;
        }
        (BinOp::And | BinOp::Mul, Some(0)) => return b,
        (BinOp::And, Some(all)) if all == ones => return a,
        (BinOp::Or, Some(all)) if all == ones => return b,
        (BinOp::Xor, Some(all)) if all == ones => return terms.not(a),
        (BinOp::Mul | BinOp::UDiv | BinOp::SDiv, Some(1)) if bits > 1 => return a,
        (BinOp::Sub, Some(k)) => {
            let minus = terms.constant(signed(k, bits).wrapping_neg(), bits);
            return binary(terms, BinOp::Add, a, minus);
        }
        (BinOp::Add, Some(k)) => {
            if let Some((x, j)) = plus(terms, a) {
                let sum = terms.constant(j.wrapping_add(signed(k, bits)), bits);
                return binary(terms, BinOp::Add, x, sum);
            }
        }
        _ => {}
    }
    if a == b {
        match op {
            BinOp::And | BinOp::Or => return a,
            BinOp::Sub | BinOp::Xor => return terms.constant(0, bits),
            _ => {}
        }
    }
    if op == BinOp::Sub
        && let Some(apart) = distance(terms, a, b)
    {
        return terms.constant(apart, bits);
    }
    if matches!(op, BinOp::And | BinOp::Or) && (terms.term(a) == Term::Not { a: b } || terms.term(b) == Term::Not { a })
    {
        return terms.constant(if op == BinOp::And { 0 } else { -1 }, bits);
    }
    terms.intern(Term::Bin { op, a, b }, bits)
}

pub(crate) fn equal(terms: &mut Terms, a: TermId, b: TermId) -> TermId {
    let (a, b) = if order(terms, a) > order(terms, b) { (b, a) } else { (a, b) };
    let bits = terms.bits(a);
    if let Some(apart) = distance(terms, a, b) {
        return terms.truth(normal(apart, bits) == 0);
    }
    if let Some(k) = terms.value(b) {
        if bits == 1 {
            return if k == 1 { a } else { terms.not(a) };
        }
        match terms.term(a) {
            Term::Bin { op: BinOp::Add, a: x, b: j } if terms.value(j).is_some() => {
                let rest = binary(terms, BinOp::Sub, b, j);
                return equal(terms, x, rest);
            }
            Term::Bin { op: BinOp::Xor, a: x, b: j } if terms.value(j).is_some() => {
                let rest = binary(terms, BinOp::Xor, b, j);
                return equal(terms, x, rest);
            }
            Term::Bin { op: BinOp::Sub, a: x, b: y } if k == 0 => return equal(terms, x, y),
            Term::Not { a: x } => {
                let rest = terms.not(b);
                return equal(terms, x, rest);
            }
            Term::Cast { op: op @ (CastOp::Zero | CastOp::Sign), a: x, .. } => {
                let narrow = cast(terms, CastOp::Trunc, b, terms.bits(x));
                return match cast(terms, op, narrow, bits) == b {
                    true => equal(terms, x, narrow),
                    false => terms.truth(false),
                };
            }
            Term::Ite { condition, yes, no } => {
                if let (Some(y), Some(n)) = (terms.value(yes), terms.value(no)) {
                    // The arms differ, or this would be no choice.
                    return match (y == k, n == k) {
                        (true, _) => condition,
                        (_, true) => terms.not(condition),
                        _ => terms.truth(false),
                    };
                }
            }
            _ => {}
        }
    }
    if let Some((_, x, y)) = same_extension(terms, a, b) {
        return equal(terms, x, y);
    }
    terms.intern(Term::Cmp { op: CmpOp::Eq, a, b }, 1)
}

pub(crate) fn less_unsigned(terms: &mut Terms, a: TermId, b: TermId) -> TermId {
    let bits = terms.bits(a);
    if a == b {
        return terms.truth(false);
    }
    match (terms.value(a), terms.value(b)) {
        (Some(x), Some(y)) => return terms.truth(value::compare(CmpOp::Ult, x, y, bits)),
        (_, Some(0)) => return terms.truth(false),
        (_, Some(1)) => {
            let zero = terms.constant(0, bits);
            return equal(terms, a, zero);
        }
        (Some(0), _) => {
            let zero = equal(terms, b, a);
            return terms.not(zero);
        }
        (Some(x), _) if unsigned(x, bits) == max_unsigned(bits) => return terms.truth(false),
        _ => {}
    }
    match (extended(terms, CastOp::Zero, a), extended(terms, CastOp::Zero, b)) {
        (Some((x, from)), Some((y, other))) if from == other => return less_unsigned(terms, x, y),
        (Some((x, from)), _) => {
            if let Some(k) = terms.value(b).map(|k| unsigned(k, bits)) {
                if k > max_unsigned(from) {
                    return terms.truth(true);
                }
                let k = terms.constant(k.cast_signed(), from);
                return less_unsigned(terms, x, k);
            }
        }
        (_, Some((y, from))) => {
            if let Some(k) = terms.value(a).map(|k| unsigned(k, bits)) {
                if k >= max_unsigned(from) {
                    return terms.truth(false);
                }
                let k = terms.constant(k.cast_signed(), from);
                return less_unsigned(terms, k, y);
            }
        }
        _ => {}
    }
    terms.intern(Term::Cmp { op: CmpOp::Ult, a, b }, 1)
}

pub(crate) fn less_signed(terms: &mut Terms, a: TermId, b: TermId) -> TermId {
    let bits = terms.bits(a);
    if a == b {
        return terms.truth(false);
    }
    match (terms.value(a), terms.value(b)) {
        (Some(x), Some(y)) => return terms.truth(value::compare(CmpOp::Slt, x, y, bits)),
        (_, Some(y)) if signed(y, bits) == min_signed(bits) => return terms.truth(false),
        (Some(x), _) if signed(x, bits) == max_signed(bits) => return terms.truth(false),
        _ => {}
    }
    if let Some((op, x, y)) = same_extension(terms, a, b) {
        return if op == CastOp::Zero { less_unsigned(terms, x, y) } else { less_signed(terms, x, y) };
    }
    // What was extended with zeros is never negative: against a constant this is a question of the narrow value.
    if let (Some((x, from)), Some(k)) = (extended(terms, CastOp::Zero, a), terms.value(b)) {
        if k <= 0 || k.cast_unsigned() > max_unsigned(from) {
            return terms.truth(k > 0);
        }
        let k = terms.constant(k, from);
        return less_unsigned(terms, x, k);
    }
    if let (Some(k), Some((y, from))) = (terms.value(a), extended(terms, CastOp::Zero, b)) {
        if k < 0 || k.cast_unsigned() >= max_unsigned(from) {
            return terms.truth(k < 0);
        }
        let k = terms.constant(k, from);
        return less_unsigned(terms, k, y);
    }
    if let (Some((x, from)), Some(k)) = (extended(terms, CastOp::Sign, a), terms.value(b)) {
        if k <= min_signed(from) || k > max_signed(from) {
            return terms.truth(k > max_signed(from));
        }
        let k = terms.constant(k, from);
        return less_signed(terms, x, k);
    }
    if let (Some(k), Some((y, from))) = (terms.value(a), extended(terms, CastOp::Sign, b)) {
        if k < min_signed(from) || k >= max_signed(from) {
            return terms.truth(k < min_signed(from));
        }
        let k = terms.constant(k, from);
        return less_signed(terms, k, y);
    }
    terms.intern(Term::Cmp { op: CmpOp::Slt, a, b }, 1)
}

pub(crate) fn choice(terms: &mut Terms, condition: TermId, yes: TermId, no: TermId) -> TermId {
    if let Some(known) = terms.value(condition) {
        return if known == 1 { yes } else { no };
    }
    if yes == no {
        return yes;
    }
    if let Term::Not { a } = terms.term(condition) {
        return choice(terms, a, no, yes);
    }
    let bits = terms.bits(yes);
    if bits == 1 {
        match (terms.value(yes), terms.value(no)) {
            (Some(1), Some(0)) => return condition,
            (Some(0), Some(1)) => return terms.not(condition),
            (Some(1), _) => return binary(terms, BinOp::Or, condition, no),
            (_, Some(0)) => return binary(terms, BinOp::And, condition, yes),
            _ => {}
        }
    }
    terms.intern(Term::Ite { condition, yes, no }, bits)
}

/// `op` fits the widths: extensions do not cut, and the cut does not extend.
pub(crate) fn cast(terms: &mut Terms, op: CastOp, a: TermId, bits: u32) -> TermId {
    let from = terms.bits(a);
    if from == bits {
        return a;
    }
    if let Some(value) = terms.value(a) {
        let wide = match op {
            CastOp::Zero => unsigned(value, from).cast_signed(),
            CastOp::Sign | CastOp::Trunc => signed(value, from),
        };
        return terms.constant(wide, bits);
    }
    if let Term::Cast { op: inner, a: x, .. } = terms.term(a) {
        let narrow = terms.bits(x);
        match (op, inner) {
            (CastOp::Zero, CastOp::Zero) | (CastOp::Sign, CastOp::Sign) => return cast(terms, op, x, bits),
            (CastOp::Sign, CastOp::Zero) => return cast(terms, CastOp::Zero, x, bits),
            (CastOp::Trunc, CastOp::Trunc) => return cast(terms, CastOp::Trunc, x, bits),
            (CastOp::Trunc, _) if bits <= narrow => return cast(terms, CastOp::Trunc, x, bits),
            (CastOp::Trunc, _) => return cast(terms, inner, x, bits),
            _ => {}
        }
    }
    terms.intern(Term::Cast { op, a, bits }, bits)
}

/// Constants to the right, the rest by age.
fn order(terms: &Terms, id: TermId) -> (bool, TermId) {
    (terms.value(id).is_some(), id)
}

/// `x + k` as `(x, k)`.
fn plus(terms: &Terms, id: TermId) -> Option<(TermId, i64)> {
    match terms.term(id) {
        Term::Bin { op: BinOp::Add, a, b } => Some((a, signed(terms.value(b)?, terms.bits(id)))),
        _ => None,
    }
}

/// `a - b` where it is a constant: both constants, or the same term with constants added.
fn distance(terms: &Terms, a: TermId, b: TermId) -> Option<i64> {
    let bits = terms.bits(a);
    if let (Some(x), Some(y)) = (terms.value(a), terms.value(b)) {
        return Some(signed(x, bits).wrapping_sub(signed(y, bits)));
    }
    let (x, j) = plus(terms, a).unwrap_or((a, 0));
    let (y, k) = plus(terms, b).unwrap_or((b, 0));
    (x == y).then(|| j.wrapping_sub(k))
}

/// The narrow term behind an extension of this kind, and its width.
fn extended(terms: &Terms, kind: CastOp, id: TermId) -> Option<(TermId, u32)> {
    match terms.term(id) {
        Term::Cast { op, a, .. } if op == kind => Some((a, terms.bits(a))),
        _ => None,
    }
}

/// Both sides extended in the same way from the same width.
fn same_extension(terms: &Terms, a: TermId, b: TermId) -> Option<(CastOp, TermId, TermId)> {
    for kind in [CastOp::Zero, CastOp::Sign] {
        if let (Some((x, from)), Some((y, other))) = (extended(terms, kind, a), extended(terms, kind, b))
            && from == other
        {
            return Some((kind, x, y));
        }
    }
    None
}
