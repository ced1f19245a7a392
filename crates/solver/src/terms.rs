//! Terms: fixed-width numbers, comparisons and choices over variables, each kept once.
//!
//! Terms are built through [`Terms`], which folds constants and brings what means the same into the same form, so that
//! most conditions of a path are decided, or recognised as each other's negation, without any search:
//!
//! ```text
//! zext(x < 3) != 0   is   x < 3
//! x + 4 == 9         is   x == 5
//! a >= b             is   not (a < b)
//! ```
//!
//! # Invariants
//! - A term's parts have smaller ids than the term.
//! - A comparison that is kept is `Eq`, `Ult` or `Slt`; the others are written with these and `Not`.
//! - Both sides of an operation have the same width, 1 to 64. A part that does not fit is cut or extended with zeros.

use std::fmt;

use caulk_base::{FxHashMap, Id, IdVec};

use crate::fold;
use crate::value::normal;

/// A term of one arena. Prints as `t7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(u32);

impl Id for TermId {
    fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for TermId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

impl fmt::Display for TermId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    And,
    Or,
    Xor,
    Shl,
    LShr,
    AShr,
}

impl BinOp {
    pub(crate) fn commutes(self) -> bool {
        matches!(self, Self::Add | Self::Mul | Self::And | Self::Or | Self::Xor)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmpOp {
    Eq,
    Ne,
    Ult,
    Ule,
    Ugt,
    Uge,
    Slt,
    Sle,
    Sgt,
    Sge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CastOp {
    /// Extended with zeros.
    Zero,
    /// Extended with its sign.
    Sign,
    /// Cut to its low bits.
    Trunc,
}

/// What a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// Kept sign-extended; one bit is 0 or 1.
    Const {
        value: i64,
        bits: u32,
    },
    Var {
        id: u32,
        bits: u32,
    },
    Bin {
        op: BinOp,
        a: TermId,
        b: TermId,
    },
    Cmp {
        op: CmpOp,
        a: TermId,
        b: TermId,
    },
    /// Every bit turned over; for one bit, the logical negation.
    Not {
        a: TermId,
    },
    Ite {
        condition: TermId,
        yes: TermId,
        no: TermId,
    },
    Cast {
        op: CastOp,
        a: TermId,
        bits: u32,
    },
}

/// The arena.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: IdVec<TermId, (Term, u32)>,
    known: FxHashMap<Term, TermId>,
}

impl Terms {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn term(&self, id: TermId) -> Term {
        self.nodes[id].0
    }

    /// The width of a term's value.
    pub fn bits(&self, id: TermId) -> u32 {
        self.nodes[id].1
    }

    /// The value of a constant.
    pub fn value(&self, id: TermId) -> Option<i64> {
        match self.term(id) {
            Term::Const { value, .. } => Some(value),
            _ => None,
        }
    }

    pub fn constant(&mut self, value: i64, bits: u32) -> TermId {
        let bits = bits.clamp(1, 64);
        self.intern(Term::Const { value: normal(value, bits), bits }, bits)
    }

    pub fn truth(&mut self, value: bool) -> TermId {
        self.constant(i64::from(value), 1)
    }

    /// The variable of this number; the same number with another width is another variable.
    pub fn var(&mut self, id: u32, bits: u32) -> TermId {
        let bits = bits.clamp(1, 64);
        self.intern(Term::Var { id, bits }, bits)
    }

    pub fn bin(&mut self, op: BinOp, a: TermId, b: TermId) -> TermId {
        let b = self.fit(b, self.bits(a));
        fold::binary(self, op, a, b)
    }

    pub fn cmp(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        let b = self.fit(b, self.bits(a));
        match op {
            CmpOp::Eq => fold::equal(self, a, b),
            CmpOp::Ult => fold::less_unsigned(self, a, b),
            CmpOp::Slt => fold::less_signed(self, a, b),
            CmpOp::Ugt => fold::less_unsigned(self, b, a),
            CmpOp::Sgt => fold::less_signed(self, b, a),
            CmpOp::Ne => self.negated(CmpOp::Eq, a, b),
            CmpOp::Ule => self.negated(CmpOp::Ult, b, a),
            CmpOp::Sle => self.negated(CmpOp::Slt, b, a),
            CmpOp::Uge => self.negated(CmpOp::Ult, a, b),
            CmpOp::Sge => self.negated(CmpOp::Slt, a, b),
        }
    }

    fn negated(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        let positive = self.cmp(op, a, b);
        self.not(positive)
    }

    pub fn not(&mut self, a: TermId) -> TermId {
        let bits = self.bits(a);
        match self.term(a) {
            Term::Const { value, .. } => self.constant(!value, bits),
            Term::Not { a } => a,
            _ => self.intern(Term::Not { a }, bits),
        }
    }

    pub fn and(&mut self, a: TermId, b: TermId) -> TermId {
        self.bin(BinOp::And, a, b)
    }

    pub fn or(&mut self, a: TermId, b: TermId) -> TermId {
        self.bin(BinOp::Or, a, b)
    }

    /// `condition ? yes : no`. The condition is cut to one bit.
    pub fn ite(&mut self, condition: TermId, yes: TermId, no: TermId) -> TermId {
        let condition = self.fit(condition, 1);
        let no = self.fit(no, self.bits(yes));
        fold::choice(self, condition, yes, no)
    }

    pub fn zext(&mut self, a: TermId, bits: u32) -> TermId {
        self.cast(CastOp::Zero, a, bits)
    }

    pub fn sext(&mut self, a: TermId, bits: u32) -> TermId {
        self.cast(CastOp::Sign, a, bits)
    }

    pub fn trunc(&mut self, a: TermId, bits: u32) -> TermId {
        self.cast(CastOp::Trunc, a, bits)
    }

    /// A cast to a width on the wrong side (an extension to fewer bits, a cut to more) becomes the one that fits.
    fn cast(&mut self, op: CastOp, a: TermId, bits: u32) -> TermId {
        let bits = bits.clamp(1, 64);
        let op = match op {
            _ if bits < self.bits(a) => CastOp::Trunc,
            CastOp::Trunc => CastOp::Zero,
            op => op,
        };
        fold::cast(self, op, a, bits)
    }

    fn fit(&mut self, a: TermId, bits: u32) -> TermId {
        self.cast(CastOp::Zero, a, bits)
    }

    /// Keeps a term as it is. Only for terms that are already in their final form.
    pub(crate) fn intern(&mut self, term: Term, bits: u32) -> TermId {
        if let Some(&id) = self.known.get(&term) {
            return id;
        }
        let id = self.nodes.push((term, bits));
        self.known.insert(term, id);
        id
    }

    /// The direct parts of a term.
    pub(crate) fn parts(&self, id: TermId) -> impl Iterator<Item = TermId> + use<> {
        let parts = match self.term(id) {
            Term::Const { .. } | Term::Var { .. } => [None, None, None],
            Term::Bin { a, b, .. } | Term::Cmp { a, b, .. } => [Some(a), Some(b), None],
            Term::Not { a } | Term::Cast { a, .. } => [Some(a), None, None],
            Term::Ite { condition, yes, no } => [Some(condition), Some(yes), Some(no)],
        };
        parts.into_iter().flatten()
    }

    /// All terms that these are made of, themselves included, parts first.
    pub(crate) fn cone(&self, roots: &[TermId]) -> Vec<TermId> {
        let mut seen = caulk_base::FxHashSet::default();
        let mut work: Vec<TermId> = roots.to_vec();
        let mut cone = Vec::new();
        while let Some(id) = work.pop() {
            if seen.insert(id) {
                cone.push(id);
                work.extend(self.parts(id));
            }
        }
        cone.sort_unstable();
        cone
    }

    /// The term in words: `v1 + 4 < v2`.
    pub fn display(&self, id: TermId) -> String {
        // Terms share parts: without a bound a small term could print as an enormous text.
        self.text(id, 12)
    }

    fn text(&self, id: TermId, depth: u32) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "…".to_owned() };
        let part = |id| match self.term(id) {
            Term::Bin { .. } | Term::Cmp { .. } | Term::Ite { .. } => format!("({})", self.text(id, depth)),
            _ => self.text(id, depth),
        };
        match self.term(id) {
            Term::Const { value, bits: 1 } => if value == 1 { "true" } else { "false" }.to_owned(),
            Term::Const { value, .. } => value.to_string(),
            Term::Var { id, .. } => format!("v{id}"),
            Term::Bin { op, a, b } => format!("{} {} {}", part(a), symbol(op), part(b)),
            Term::Cmp { op, a, b } => {
                let symbol = match op {
                    CmpOp::Eq => "==",
                    CmpOp::Slt => "<",
                    _ => "<u",
                };
                format!("{} {symbol} {}", part(a), part(b))
            }
            Term::Not { a } => format!("{}{}", if self.bits(a) == 1 { "!" } else { "~" }, part(a)),
            Term::Ite { condition, yes, no } => format!("{} ? {} : {}", part(condition), part(yes), part(no)),
            Term::Cast { op, a, bits } => {
                let name = match op {
                    CastOp::Zero => "zext",
                    CastOp::Sign => "sext",
                    CastOp::Trunc => "trunc",
                };
                format!("{name}{bits}({})", self.text(a, depth))
            }
        }
    }
}

fn symbol(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::UDiv => "/u",
        BinOp::SDiv => "/",
        BinOp::URem => "%u",
        BinOp::SRem => "%",
        BinOp::And => "&",
        BinOp::Or => "|",
        BinOp::Xor => "^",
        BinOp::Shl => "<<",
        BinOp::LShr => ">>u",
        BinOp::AShr => ">>",
    }
}
