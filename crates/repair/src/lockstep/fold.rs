//! What is worked out when a term is made, so that equal values come out as equal terms.

use caulk_ir::{BinOp, CastOp, CmpOp, Ty};

use super::terms::{Term, TermId, Terms};

impl Terms {
    fn bits(&self, id: TermId) -> u32 {
        match self.ty(id) {
            Ty::Int(bits) => bits,
            _ => 64,
        }
    }

    pub fn not(&mut self, id: TermId) -> TermId {
        let truth = self.truth(true);
        self.bin(BinOp::Xor, id, truth, Ty::Int(1))
    }

    /// The condition itself, and whether it holds where the term is true.
    pub fn condition(&self, id: TermId) -> (TermId, bool) {
        match *self.get(id) {
            Term::Bin(BinOp::Xor, a, b) if self.ty(id) == Ty::Int(1) && self.number(b) == Some(-1) => {
                let (inner, holds) = self.condition(a);
                (inner, !holds)
            }
            _ => (id, true),
        }
    }

    pub fn offset(&mut self, base: TermId, bytes: i64, indices: Vec<(TermId, i64)>) -> TermId {
        let (mut bytes, mut open) = (bytes, Vec::new());
        for (index, scale) in indices {
            match self.number(index) {
                Some(number) => bytes = bytes.wrapping_add(number.wrapping_mul(scale)),
                None => open.push((index, scale)),
            }
        }
        if open.is_empty() {
            match self.get(base).clone() {
                _ if bytes == 0 => return base,
                Term::Symbol(name, at) => return self.put(Term::Symbol(name, at.wrapping_add(bytes)), Ty::Ptr),
                Term::Offset(inner, at, open) => {
                    return self.put(Term::Offset(inner, at.wrapping_add(bytes), open), Ty::Ptr);
                }
                _ => {}
            }
        }
        self.put(Term::Offset(base, bytes, open), Ty::Ptr)
    }

    pub fn bin(&mut self, op: BinOp, a: TermId, b: TermId, ty: Ty) -> TermId {
        let commutes = matches!(op, BinOp::Add | BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Xor);
        let (a, b) = if commutes && (self.is_constant(a) || !self.is_constant(b) && a > b) { (b, a) } else { (a, b) };
        let bits = self.bits(a);
        if let (Some(x), Some(y)) = (self.number(a), self.number(b))
            && let Some(value) = computed(op, x, y, bits)
            && let Ty::Int(width) = ty
        {
            return self.int(value, width);
        }
        match (op, self.number(b)) {
            (BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::LShr | BinOp::AShr, Some(0)) => {
                return a;
            }
            (BinOp::And, Some(-1)) | (BinOp::Mul, Some(1)) => return a,
            (BinOp::Xor, Some(-1)) => {
                if let Term::Bin(BinOp::Xor, inner, other) = *self.get(a)
                    && self.number(other) == Some(-1)
                {
                    return inner;
                }
            }
            _ => {}
        }
        self.put(Term::Bin(op, a, b), ty)
    }

    pub fn cmp(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        match op {
            CmpOp::Ne => self.negated(CmpOp::Eq, a, b),
            CmpOp::Ugt => self.cmp(CmpOp::Ult, b, a),
            CmpOp::Uge => self.negated(CmpOp::Ult, a, b),
            CmpOp::Ule => self.negated(CmpOp::Ult, b, a),
            CmpOp::Sgt => self.cmp(CmpOp::Slt, b, a),
            CmpOp::Sge => self.negated(CmpOp::Slt, a, b),
            CmpOp::Sle => self.negated(CmpOp::Slt, b, a),
            _ => self.compared(op, a, b),
        }
    }

    fn negated(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        let plain = self.cmp(op, a, b);
        self.not(plain)
    }

    fn compared(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        let swap = op == CmpOp::Eq && (self.is_constant(a) || !self.is_constant(b) && a > b);
        let (a, b) = if swap { (b, a) } else { (a, b) };
        if let (Some(x), Some(y)) = (self.number(a), self.number(b)) {
            let bits = self.bits(a);
            return self.truth(match op {
                CmpOp::Eq => x == y,
                CmpOp::Ult => unsigned(x, bits) < unsigned(y, bits),
                _ => x < y,
            });
        }
        if a == b && !self.is_lossy(a) {
            return self.truth(op == CmpOp::Eq);
        }
        if op == CmpOp::Eq
            && let Some(number) = self.number(b)
        {
            if self.ty(a) == Ty::Int(1) {
                return if number == 0 { self.not(a) } else { a };
            }
            if number == 0 && self.is_place(a) {
                return self.truth(false);
            }
            if let Term::Cast(CastOp::ZExt, inner) = *self.get(a)
                && self.ty(inner) == Ty::Int(1)
            {
                return match number {
                    0 => self.not(inner),
                    1 => inner,
                    _ => self.truth(false),
                };
            }
        }
        self.put(Term::Cmp(op, a, b), Ty::Int(1))
    }

    /// An address that is never null.
    fn is_place(&self, id: TermId) -> bool {
        matches!(self.get(self.root(id)), Term::Slot(_) | Term::OwnSlot(_) | Term::Private(..))
            && self.ty(id) == Ty::Ptr
    }

    pub fn cast(&mut self, op: CastOp, a: TermId, ty: Ty) -> TermId {
        let from = self.bits(a);
        match (op, self.number(a), ty) {
            (CastOp::Same, _, _) if self.ty(a) == ty => return a,
            (CastOp::Trunc | CastOp::SExt, Some(value), Ty::Int(bits)) => return self.int(value, bits),
            (CastOp::ZExt, Some(value), Ty::Int(bits)) => return self.int(unsigned(value, from) as i64, bits),
            (CastOp::PtrToInt, Some(value), Ty::Int(bits)) => return self.int(value, bits),
            (CastOp::IntToPtr, Some(0), Ty::Ptr) => return self.put(Term::Null, Ty::Ptr),
            _ => {}
        }
        if let Term::Cast(inner, b) = *self.get(a) {
            let widened = matches!(inner, CastOp::ZExt | CastOp::SExt);
            match op {
                CastOp::Trunc if widened && self.ty(b) == ty => return b,
                CastOp::Trunc if inner == CastOp::Trunc => return self.cast(CastOp::Trunc, b, ty),
                CastOp::ZExt | CastOp::SExt if inner == op => return self.cast(op, b, ty),
                _ => {}
            }
        }
        self.put(Term::Cast(op, a), ty)
    }

    pub fn select(&mut self, cond: TermId, a: TermId, b: TermId) -> TermId {
        match self.number(cond) {
            Some(0) => b,
            Some(_) => a,
            None if a == b => a,
            None => {
                let ty = self.ty(a);
                self.put(Term::Select(cond, a, b), ty)
            }
        }
    }
}

pub fn extended(value: i64, bits: u32) -> i64 {
    match bits {
        1..64 => value << (64 - bits) >> (64 - bits),
        _ => value,
    }
}

fn unsigned(value: i64, bits: u32) -> u64 {
    match bits {
        1..64 => value as u64 & ((1 << bits) - 1),
        _ => value as u64,
    }
}

fn computed(op: BinOp, a: i64, b: i64, bits: u32) -> Option<i64> {
    let shift = u32::try_from(b).ok().filter(|shift| *shift < bits && bits <= 64);
    match op {
        BinOp::Add => Some(a.wrapping_add(b)),
        BinOp::Sub => Some(a.wrapping_sub(b)),
        BinOp::Mul => Some(a.wrapping_mul(b)),
        BinOp::And => Some(a & b),
        BinOp::Or => Some(a | b),
        BinOp::Xor => Some(a ^ b),
        BinOp::Shl => Some(a << shift?),
        BinOp::LShr => Some((unsigned(a, bits) >> shift?) as i64),
        BinOp::AShr => Some(a >> shift?),
        _ => None,
    }
    .filter(|_| bits <= 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bool_keeps_one_bit() {
        let mut terms = Terms::default();
        let minus = terms.int(-1, 32);
        let bit = terms.cast(CastOp::Trunc, minus, Ty::Int(1));
        let byte = terms.cast(CastOp::ZExt, bit, Ty::Int(8));
        let back = terms.cast(CastOp::ZExt, byte, Ty::Int(32));
        assert_eq!(terms.number(back), Some(1));
    }

    #[test]
    fn comparisons_are_one_of_three_or_not_that() {
        let mut terms = Terms::default();
        let (a, b) = (terms.put(Term::Param(0), Ty::Int(32)), terms.put(Term::Param(1), Ty::Int(32)));
        let less = terms.cmp(CmpOp::Slt, a, b);
        let more_or_same = terms.cmp(CmpOp::Sle, b, a);
        assert_eq!(terms.condition(more_or_same), (less, false));
        assert_eq!(terms.not(more_or_same), less);
        let (one, other) = (terms.cmp(CmpOp::Eq, a, b), terms.cmp(CmpOp::Eq, b, a));
        assert_eq!(one, other);
    }

    #[test]
    fn offsets_add_up() {
        let mut terms = Terms::default();
        let base = terms.put(Term::Param(0), Ty::Ptr);
        let eight = terms.offset(base, 8, Vec::new());
        let three = terms.int(3, 64);
        let far = terms.offset(eight, 0, vec![(three, 4)]);
        assert_eq!(far, terms.offset(base, 20, Vec::new()));
        assert!(terms.are_apart((eight, Ty::Ptr), (far, Ty::Int(8))));
        assert!(!terms.are_apart((eight, Ty::Ptr), (eight, Ty::Int(8))));
        assert_eq!(terms.root(far), base);
    }
}
