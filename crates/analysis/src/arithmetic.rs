//! Calculating with terms: constants are folded, and what can be told of the bits and bounds of a term is used.
//!
//!     (x + 4) + 4 = x + 8      (flags | 2) & 2 = 2      &block + 8 - &block = 8

use caulk_ir::{BinOp, CastOp, CmpOp};

use crate::term::{Bits, ONE, Term, TermId, Terms, ZERO};

impl Terms {
    pub fn cast(&mut self, op: CastOp, from_bits: u32, to_bits: u32, a: TermId) -> TermId {
        match op {
            CastOp::Same | CastOp::SExt | CastOp::PtrToInt | CastOp::IntToPtr => a,
            CastOp::Trunc => match *self.get(a) {
                Term::Int(value) => self.int(sign_extend(value, to_bits)),
                Term::Cmp(..) => a,
                Term::Cast(CastOp::ZExt, inner_bits, inner) if inner_bits == to_bits => inner,
                // A handle or pointer kept in a narrower integer keeps its identity.
                _ if to_bits >= 32 => a,
                _ => self.intern(Term::Cast(CastOp::Trunc, to_bits, a)),
            },
            CastOp::ZExt => match *self.get(a) {
                Term::Int(value) => self.int(zero_extend(value, from_bits)),
                Term::Cmp(..) => a,
                _ if from_bits == 1 => a,
                _ => self.intern(Term::Cast(CastOp::ZExt, from_bits, a)),
            },
            CastOp::Float => self.intern(Term::Cast(CastOp::Float, to_bits, a)),
        }
    }

    /// The lower bits of a number, of which nothing is known.
    pub fn cut(&mut self, a: TermId, to_bits: u32) -> TermId {
        self.intern(Term::Cast(CastOp::Trunc, to_bits, a))
    }

    /// The bits of a number that are known, whatever its parts are: fields of one word.
    pub fn known_bits(&self, id: TermId, depth: u32) -> Bits {
        let constant = |id: TermId| self.as_int(id).and_then(|by| u32::try_from(by).ok()).filter(|by| *by < 64);
        if depth == 0 {
            return Bits::default();
        }
        match *self.get(id) {
            Term::Int(value) => Bits { zeros: !(value as u64), ones: value as u64 },
            Term::Cmp(..) => Bits { zeros: !1, ones: 0 },
            Term::Bin(op, a, b) => {
                let (x, y) = (self.known_bits(a, depth - 1), self.known_bits(b, depth - 1));
                match (op, constant(b)) {
                    (BinOp::And, _) => Bits { zeros: x.zeros | y.zeros, ones: x.ones & y.ones },
                    (BinOp::Or, _) => Bits { zeros: x.zeros & y.zeros, ones: x.ones | y.ones },
                    (BinOp::Shl, Some(by)) => Bits { zeros: !(!x.zeros << by), ones: x.ones << by },
                    (BinOp::LShr, Some(by)) if x.zeros >> 63 == 1 => {
                        Bits { zeros: !(!x.zeros >> by), ones: x.ones >> by }
                    }
                    // How wide the number is, is not known: a bit that repeats its sign is none of its own.
                    (BinOp::LShr, Some(by)) if x.ones >> 63 == 0 => Bits { zeros: x.zeros >> by, ones: x.ones >> by },
                    _ => Bits::default(),
                }
            }
            Term::Cast(CastOp::ZExt, bits @ 1..=63, a) => {
                let (inner, low) = (self.known_bits(a, depth - 1), (1u64 << bits) - 1);
                Bits { zeros: (inner.zeros & low) | !low, ones: inner.ones & low }
            }
            _ => Bits::default(),
        }
    }

    pub fn bin(&mut self, op: BinOp, a: TermId, b: TermId) -> TermId {
        if let (Some(x), Some(y)) = (self.as_int(a), self.as_int(b))
            && let Some(value) = fold_bin(op, x, y)
        {
            return self.int(value);
        }
        // `(c ? 8 : 0) & 64`
        if let (Term::Ite(cond, x, y), Some(k)) = (self.get(a).clone(), self.as_int(b))
            && let (Some(x), Some(y)) = (self.as_int(x), self.as_int(y))
            && let (Some(x), Some(y)) = (fold_bin(op, x, k), fold_bin(op, y, k))
        {
            let (x, y) = (self.int(x), self.int(y));
            return self.ite(cond, x, y);
        }
        match op {
            BinOp::Add => match (self.as_int(a), self.as_int(b)) {
                (_, Some(k)) => return self.add_const(a, k),
                (Some(k), _) => return self.add_const(b, k),
                _ => {}
            },
            BinOp::Sub => {
                if let Some(k) = self.as_int(b) {
                    return self.add_const(a, k.wrapping_neg());
                }
                if a == b {
                    return ZERO;
                }
                if let (Term::Addr { obj, off: x }, Term::Addr { obj: of, off: y }) = (self.get(a), self.get(b))
                    && obj == of
                {
                    let distance = x.wrapping_sub(*y);
                    return self.int(distance);
                }
            }
            BinOp::Mul => match (self.as_int(a), self.as_int(b)) {
                (Some(0), _) | (_, Some(0)) => return ZERO,
                (_, Some(1)) => return a,
                (Some(1), _) => return b,
                _ => {}
            },
            BinOp::And => {
                if a == ZERO || b == ZERO {
                    return ZERO;
                }
                if a == b {
                    return a;
                }
                // Flags: `(x & c) & d` and `(x | c) & d`.
                if let Some(d) = self.as_int(b) {
                    let bits = self.known_bits(a, 6);
                    if (bits.zeros | bits.ones) & d as u64 == d as u64 {
                        return self.int((bits.ones & d as u64) as i64);
                    }
                    match *self.get(a) {
                        Term::Bin(BinOp::And, x, c) if self.as_int(c).is_some() => {
                            let both = self.int(self.as_int(c).unwrap_or(0) & d);
                            return self.bin(BinOp::And, x, both);
                        }
                        Term::Bin(BinOp::Or, x, c) if self.as_int(c).is_some() => {
                            let both = self.int(self.as_int(c).unwrap_or(0) & d);
                            let rest = self.bin(BinOp::And, x, b);
                            return self.bin(BinOp::Or, rest, both);
                        }
                        _ => {}
                    }
                } else if self.as_int(a).is_some() {
                    return self.bin(BinOp::And, b, a);
                }
            }
            BinOp::Or => {
                if b == ZERO || a == b {
                    return a;
                }
                if a == ZERO {
                    return b;
                }
            }
            BinOp::Xor => {
                if b == ZERO {
                    return a;
                }
                if a == b {
                    return ZERO;
                }
                // `!flag` on a boolean.
                if let (Term::Cmp(cmp, x, y), Some(1 | -1)) = (self.get(a).clone(), self.as_int(b)) {
                    return self.cmp(negate(cmp), x, y);
                }
            }
            BinOp::Shl | BinOp::LShr | BinOp::AShr if b == ZERO => return a,
            _ => {}
        }
        self.intern(Term::Bin(op, a, b))
    }

    fn add_const(&mut self, a: TermId, k: i64) -> TermId {
        if k == 0 {
            return a;
        }
        match *self.get(a) {
            Term::Int(value) => self.int(value.wrapping_add(k)),
            Term::Addr { .. } | Term::Elem { .. } => self.ptr_add(a, k),
            Term::Bin(BinOp::Add, inner, c) if self.as_int(c).is_some() => {
                let sum = self.as_int(c).unwrap_or(0).wrapping_add(k);
                self.add_const(inner, sum)
            }
            _ => {
                let k = self.int(k);
                self.intern(Term::Bin(BinOp::Add, a, k))
            }
        }
    }

    pub fn cmp(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        if op == CmpOp::Float {
            return self.intern(Term::Cmp(op, a, b));
        }
        if let (Some(x), Some(y)) = (self.as_int(a), self.as_int(b)) {
            return if fold_cmp(op, x, y) { ONE } else { ZERO };
        }
        if a == b {
            return match op {
                CmpOp::Eq | CmpOp::Ule | CmpOp::Uge | CmpOp::Sle | CmpOp::Sge => ONE,
                _ => ZERO,
            };
        }
        if let (Term::Func(_), Term::Func(_)) = (self.get(a), self.get(b))
            && matches!(op, CmpOp::Eq | CmpOp::Ne)
        {
            return if op == CmpOp::Ne { ONE } else { ZERO };
        }
        // Constants go to the right, so that one comparison has one term.
        if self.as_int(a).is_some() || (self.as_int(b).is_none() && b < a && matches!(op, CmpOp::Eq | CmpOp::Ne)) {
            return self.cmp_ordered(swapped(op), b, a);
        }
        self.cmp_ordered(op, a, b)
    }

    fn cmp_ordered(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        if let Some(k) = self.as_int(b) {
            // `(x cmp y) != 0` and its like are the comparison itself.
            if let Term::Cmp(inner, x, y) = *self.get(a) {
                match (op, k) {
                    (CmpOp::Ne, 0) | (CmpOp::Eq, 1) | (CmpOp::Sgt, 0) | (CmpOp::Ugt, 0) => return a,
                    (CmpOp::Eq, 0) | (CmpOp::Ne, 1) => return self.cmp(negate(inner), x, y),
                    _ => {}
                }
            }
            if let Term::Cast(CastOp::ZExt, bits, inner) = *self.get(a)
                && matches!(op, CmpOp::Eq | CmpOp::Ne)
                && (0..=i64::MAX >> 64u32.saturating_sub(bits).min(63)).contains(&k)
            {
                // Without a sign, and taken for a larger number: it is not meant to be past its end and back at 0. Short
                // counters come there soon.
                if k == 0 && bits >= 32 && self.least_of_sum(inner).is_some_and(|least| least > 0) {
                    return if op == CmpOp::Ne { ONE } else { ZERO };
                }
                let k = self.int(sign_extend(k, bits));
                return self.cmp(op, inner, k);
            }
            // `x + c == k` is `x == k - c`.
            if let Term::Bin(BinOp::Add, inner, c) = *self.get(a)
                && let Some(c) = self.as_int(c)
                && matches!(op, CmpOp::Eq | CmpOp::Ne)
            {
                let k = self.int(k.wrapping_sub(c));
                return self.cmp(op, inner, k);
            }
            match (op, k) {
                (CmpOp::Ult, 1) => return self.cmp(CmpOp::Eq, a, ZERO),
                (CmpOp::Ugt, 0) | (CmpOp::Uge, 1) => return self.cmp(CmpOp::Ne, a, ZERO),
                (CmpOp::Uge, 0) => return ONE,
                (CmpOp::Ult, 0) => return ZERO,
                _ => {}
            }
        }
        self.intern(Term::Cmp(op, a, b))
    }

    /// What is added to other numbers in a sum of which nothing is taken away.
    fn least_of_sum(&self, id: TermId) -> Option<i64> {
        match *self.get(id) {
            Term::Int(value) => Some(value),
            Term::Bin(BinOp::Add, a, b) => self.least_of_sum(a)?.checked_add(self.least_of_sum(b)?),
            Term::Bin(BinOp::Sub, ..) => None,
            _ => Some(0),
        }
    }

    /// A comparison as it stands, without simplification: for handing conditions to the solver.
    pub(crate) fn raw_cmp(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        self.intern(Term::Cmp(op, a, b))
    }
}

/// The comparison that holds where this one does not.
pub fn negate(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Eq => CmpOp::Ne,
        CmpOp::Ne => CmpOp::Eq,
        CmpOp::Ult => CmpOp::Uge,
        CmpOp::Ule => CmpOp::Ugt,
        CmpOp::Ugt => CmpOp::Ule,
        CmpOp::Uge => CmpOp::Ult,
        CmpOp::Slt => CmpOp::Sge,
        CmpOp::Sle => CmpOp::Sgt,
        CmpOp::Sgt => CmpOp::Sle,
        CmpOp::Sge => CmpOp::Slt,
        CmpOp::Float => CmpOp::Float,
    }
}

/// The same comparison read from the right.
pub fn swapped(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Ult => CmpOp::Ugt,
        CmpOp::Ule => CmpOp::Uge,
        CmpOp::Ugt => CmpOp::Ult,
        CmpOp::Uge => CmpOp::Ule,
        CmpOp::Slt => CmpOp::Sgt,
        CmpOp::Sle => CmpOp::Sge,
        CmpOp::Sgt => CmpOp::Slt,
        CmpOp::Sge => CmpOp::Sle,
        CmpOp::Eq | CmpOp::Ne | CmpOp::Float => op,
    }
}

pub fn fold_cmp(op: CmpOp, x: i64, y: i64) -> bool {
    match op {
        CmpOp::Eq => x == y,
        CmpOp::Ne => x != y,
        CmpOp::Ult => (x as u64) < y as u64,
        CmpOp::Ule => x as u64 <= y as u64,
        CmpOp::Ugt => x as u64 > y as u64,
        CmpOp::Uge => x as u64 >= y as u64,
        CmpOp::Slt => x < y,
        CmpOp::Sle => x <= y,
        CmpOp::Sgt => x > y,
        CmpOp::Sge => x >= y,
        CmpOp::Float => false,
    }
}

fn fold_bin(op: BinOp, x: i64, y: i64) -> Option<i64> {
    Some(match op {
        BinOp::Add => x.wrapping_add(y),
        BinOp::Sub => x.wrapping_sub(y),
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::SDiv => x.checked_div(y)?,
        BinOp::SRem => x.checked_rem(y)?,
        BinOp::UDiv => (x as u64).checked_div(y as u64)? as i64,
        BinOp::URem => (x as u64).checked_rem(y as u64)? as i64,
        BinOp::And => x & y,
        BinOp::Or => x | y,
        BinOp::Xor => x ^ y,
        BinOp::Shl => x.checked_shl(u32::try_from(y).ok()?)?,
        BinOp::LShr if x >= 0 => x.checked_shr(u32::try_from(y).ok()?)?,
        BinOp::AShr => x.checked_shr(u32::try_from(y).ok()?)?,
        BinOp::LShr | BinOp::Float => return None,
    })
}

fn sign_extend(value: i64, bits: u32) -> i64 {
    if bits == 0 || bits >= 64 {
        return value;
    }
    let shift = 64 - bits;
    (value << shift) >> shift
}

fn zero_extend(value: i64, bits: u32) -> i64 {
    if bits == 0 || bits >= 64 {
        return value;
    }
    value & ((1i64 << bits) - 1)
}
