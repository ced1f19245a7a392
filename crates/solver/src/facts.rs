//! What follows at once from a list of conditions: the check in linear time.
//!
//! Conditions are taken apart into atoms. Equal terms are put into one class (union-find); a class knows its constant
//! and its range; the terms are computed upwards from what is known, in a fixed number of rounds.
//!
//! ```text
//! v1 == v2          v1, v2: one class
//! v2 < 3            the class: … to 2
//! !(v1 < 3)         the class: 3 to 2   -> contradiction
//! ```
//!
//! # Invariants
//! - `conflict` means that no values of the variables make all conditions true.
//! - Work is bounded by the size of the terms times [`ROUNDS`].
//! # Known imprecision
//! - No reasoning over sums, disjunctions or chains of orders longer than the rounds: that is the solver's.

use caulk_base::FxHashMap;

use crate::range::Range;
use crate::terms::{BinOp, CastOp, CmpOp, Term, TermId, Terms};
use crate::value;

const ROUNDS: usize = 4;

pub(crate) struct Facts<'t> {
    terms: &'t Terms,
    /// The terms of the conditions, parts first; a term is called by its place here.
    cone: Vec<TermId>,
    slots: FxHashMap<TermId, usize>,
    parent: Vec<usize>,
    /// By class.
    constants: Vec<Option<i64>>,
    ranges: Vec<Range>,
    /// The conditions that were taken apart already.
    asserted: Vec<bool>,
    apart: Vec<(usize, usize)>,
    orders: Vec<Order>,
    pub conflict: bool,
    changed: bool,
}

/// `a < b`, or `a <= b` if not strict.
#[derive(Clone, Copy)]
struct Order {
    a: usize,
    b: usize,
    is_signed: bool,
    strict: bool,
}

impl<'t> Facts<'t> {
    pub fn of(terms: &'t Terms, conjuncts: &[TermId]) -> Self {
        let cone = terms.cone(conjuncts);
        let slots = cone.iter().enumerate().map(|(slot, &id)| (id, slot)).collect();
        let mut facts = Self {
            terms,
            slots,
            parent: (0..cone.len()).collect(),
            constants: cone.iter().map(|&id| terms.value(id)).collect(),
            ranges: cone.iter().map(|&id| own_range(terms, id)).collect(),
            asserted: vec![false; cone.len()],
            cone,
            apart: Vec::new(),
            orders: Vec::new(),
            conflict: false,
            changed: true,
        };
        for &condition in conjuncts {
            let slot = facts.slot(condition);
            facts.assert(slot, true);
        }
        for _ in 0..ROUNDS {
            if facts.conflict || !std::mem::take(&mut facts.changed) {
                break;
            }
            facts.compute();
            facts.compare();
        }
        facts
    }

    fn slot(&self, id: TermId) -> usize {
        self.slots.get(&id).copied().unwrap_or(0)
    }

    fn find(&mut self, mut slot: usize) -> usize {
        while self.parent[slot] != slot {
            self.parent[slot] = self.parent[self.parent[slot]];
            slot = self.parent[slot];
        }
        slot
    }

    fn constant(&mut self, slot: usize) -> Option<i64> {
        let class = self.find(slot);
        self.constants[class]
    }

    fn union(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        if one == other {
            return;
        }
        let (root, leaf) = (one.min(other), one.max(other));
        self.parent[leaf] = root;
        self.changed = true;
        let range = self.ranges[leaf];
        let constant = self.constants[leaf];
        self.narrow(root, |own| own.meet(&range));
        if let Some(value) = constant {
            self.fix(root, value);
        }
    }

    /// The class of `slot` has this value.
    fn fix(&mut self, slot: usize, value: i64) {
        let class = self.find(slot);
        match self.constants[class] {
            Some(own) => self.conflict |= own != value,
            None => {
                self.constants[class] = Some(value);
                self.changed = true;
                let only = Range::only(value, self.ranges[class].bits);
                self.narrow(class, |own| own.meet(&only));
            }
        }
    }

    fn narrow(&mut self, slot: usize, change: impl FnOnce(&mut Range)) {
        let class = self.find(slot);
        let before = self.ranges[class];
        change(&mut self.ranges[class]);
        let after = self.ranges[class];
        self.changed |= before != after;
        self.conflict |= after.is_empty() || self.constants[class].is_some_and(|value| !after.contains(value));
        if !self.conflict
            && self.constants[class].is_none()
            && let Some(value) = after.single()
        {
            self.fix(class, value);
        }
    }

    /// Takes a condition of one bit apart.
    fn assert(&mut self, slot: usize, value: bool) {
        let mut work = vec![(slot, value)];
        while let Some((slot, value)) = work.pop() {
            self.fix(slot, i64::from(value));
            if std::mem::replace(&mut self.asserted[slot], true) {
                continue;
            }
            match self.terms.term(self.cone[slot]) {
                Term::Not { a } => work.push((self.slot(a), !value)),
                Term::Bin { op: BinOp::And, a, b } if value => {
                    work.extend([(self.slot(a), true), (self.slot(b), true)]);
                }
                Term::Bin { op: BinOp::Or, a, b } if !value => {
                    work.extend([(self.slot(a), false), (self.slot(b), false)]);
                }
                Term::Cmp { op, a, b } => {
                    let (a, b) = (self.slot(a), self.slot(b));
                    let is_signed = op == CmpOp::Slt;
                    match (op, value) {
                        (CmpOp::Eq, true) => self.union(a, b),
                        (CmpOp::Eq, false) => self.apart.push((a, b)),
                        (_, true) => self.orders.push(Order { a, b, is_signed, strict: true }),
                        (_, false) => self.orders.push(Order { a: b, b: a, is_signed, strict: false }),
                    }
                }
                _ => {}
            }
        }
    }

    /// One pass upwards: values from values, equal terms from equal parts, conditions that became known.
    fn compute(&mut self) {
        let mut same: FxHashMap<(std::mem::Discriminant<Term>, u32, [usize; 3]), usize> = FxHashMap::default();
        for slot in 0..self.cone.len() {
            let id = self.cone[slot];
            let term = self.terms.term(id);
            if let Some(value) = self.evaluate(term) {
                self.fix(slot, value);
            }
            if let Term::Ite { condition, yes, no } = term
                && let Some(known) = self.constant(self.slot(condition))
            {
                self.union(slot, self.slot(if known == 1 { yes } else { no }));
            }
            let range = self.range(id, term);
            self.narrow(slot, |own| own.meet(&range));
            if let Some(tag) = tag(term, self.terms.bits(id)) {
                let mut key = [usize::MAX; 3];
                for (part, own) in self.terms.parts(id).zip(&mut key) {
                    *own = self.find(self.slot(part));
                }
                if let Some(other) = same.insert((std::mem::discriminant(&term), tag, key), slot) {
                    self.union(slot, other);
                }
            }
            if self.terms.bits(id) == 1
                && !self.asserted[slot]
                && let Some(value) = self.constant(slot)
            {
                self.assert(slot, value == 1);
            }
            if self.conflict {
                return;
            }
        }
    }

    fn evaluate(&mut self, term: Term) -> Option<i64> {
        match term {
            Term::Const { .. } | Term::Var { .. } | Term::Ite { .. } => None,
            Term::Bin { op, a, b } => {
                let (x, y) = (self.constant(self.slot(a)), self.constant(self.slot(b)));
                match (op, x, y) {
                    (BinOp::And | BinOp::Mul, Some(0), _) | (BinOp::And | BinOp::Mul, _, Some(0)) => Some(0),
                    (BinOp::Or, Some(1), _) | (BinOp::Or, _, Some(1)) if self.terms.bits(a) == 1 => Some(1),
                    _ => value::binary(op, x?, y?, self.terms.bits(a)),
                }
            }
            Term::Cmp { op, a, b } => self.decide(op, self.slot(a), self.slot(b)).map(i64::from),
            Term::Not { a } => {
                let bits = self.terms.bits(a);
                self.constant(self.slot(a)).map(|value| value::normal(!value, bits))
            }
            Term::Cast { op, a, bits } => {
                let from = self.terms.bits(a);
                let value = self.constant(self.slot(a))?;
                let wide = match op {
                    CastOp::Zero => value::unsigned(value, from).cast_signed(),
                    CastOp::Sign | CastOp::Trunc => value::signed(value, from),
                };
                Some(value::normal(wide, bits))
            }
        }
    }

    /// A comparison that the ranges decide.
    fn decide(&mut self, op: CmpOp, a: usize, b: usize) -> Option<bool> {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return Some(op == CmpOp::Eq);
        }
        let (x, y) = (self.ranges[a], self.ranges[b]);
        let signed_before = x.high < y.low;
        let unsigned_before = x.unsigned_high < y.unsigned_low;
        match op {
            CmpOp::Eq if signed_before || unsigned_before => Some(false),
            CmpOp::Eq if y.high < x.low || y.unsigned_high < x.unsigned_low => Some(false),
            CmpOp::Eq => Some(self.constants[a]? == self.constants[b]?),
            CmpOp::Slt if signed_before => Some(true),
            CmpOp::Slt if x.low >= y.high => Some(false),
            CmpOp::Ult if unsigned_before => Some(true),
            CmpOp::Ult if x.unsigned_low >= y.unsigned_high => Some(false),
            _ => None,
        }
    }

    /// A range that follows from the ranges of the parts.
    fn range(&mut self, id: TermId, term: Term) -> Range {
        let bits = self.terms.bits(id);
        let mut of = |part: TermId| {
            let class = self.find(self.slot(part));
            self.ranges[class]
        };
        match term {
            Term::Cast { op: CastOp::Zero, a, .. } => {
                let part = of(a);
                let mut range = Range::full(bits);
                (range.unsigned_low, range.unsigned_high) = (part.unsigned_low, part.unsigned_high);
                range.agree();
                range
            }
            Term::Cast { op: CastOp::Sign, a, .. } => {
                let part = of(a);
                let mut range = Range::full(bits);
                (range.low, range.high) = (part.low, part.high);
                range.agree();
                range
            }
            Term::Bin { op: BinOp::And, a, b } => Range::below(of(a).unsigned_high.min(of(b).unsigned_high), bits),
            Term::Bin { op: BinOp::LShr | BinOp::UDiv, a, .. } if bits > 1 => Range::below(of(a).unsigned_high, bits),
            Term::Bin { op: BinOp::Add, a, b } if bits > 1 => {
                let (x, y) = (of(a), of(b));
                let mut range = Range::full(bits);
                // Only where nothing can wrap around.
                if let (Some(low), Some(high)) = (x.low.checked_add(y.low), x.high.checked_add(y.high))
                    && low >= range.low
                    && high <= range.high
                {
                    (range.low, range.high) = (low, high);
                    range.agree();
                }
                range
            }
            Term::Ite { yes, no, .. } => {
                let (x, y) = (of(yes), of(no));
                Range {
                    bits,
                    low: x.low.min(y.low),
                    high: x.high.max(y.high),
                    unsigned_low: x.unsigned_low.min(y.unsigned_low),
                    unsigned_high: x.unsigned_high.max(y.unsigned_high),
                }
            }
            _ => Range::full(bits),
        }
    }

    /// One pass over orders and inequalities.
    fn compare(&mut self) {
        for index in 0..self.orders.len() {
            let Order { a, b, is_signed, strict } = self.orders[index];
            let (a, b) = (self.find(a), self.find(b));
            self.conflict |= a == b && strict;
            let (x, y) = (self.ranges[a], self.ranges[b]);
            let gap = u64::from(strict);
            if is_signed {
                let (high, low) = (y.high.checked_sub_unsigned(gap), x.low.checked_add_unsigned(gap));
                self.conflict |= high.is_none() || low.is_none();
                self.narrow(a, |own| own.high = own.high.min(high.unwrap_or(i64::MIN)));
                self.narrow(b, |own| own.low = own.low.max(low.unwrap_or(i64::MAX)));
            } else {
                let (high, low) = (y.unsigned_high.checked_sub(gap), x.unsigned_low.checked_add(gap));
                self.conflict |= high.is_none() || low.is_none();
                self.narrow(a, |own| own.unsigned_high = own.unsigned_high.min(high.unwrap_or(0)));
                self.narrow(b, |own| own.unsigned_low = own.unsigned_low.max(low.unwrap_or(u64::MAX)));
            }
            self.narrow(a, Range::agree);
            self.narrow(b, Range::agree);
        }
        for index in 0..self.apart.len() {
            let (a, b) = self.apart[index];
            let (a, b) = (self.find(a), self.find(b));
            self.conflict |= a == b;
            match (self.constants[a], self.constants[b]) {
                (Some(x), Some(y)) => self.conflict |= x == y,
                (Some(x), None) => self.narrow(b, |own| own.exclude(x)),
                (None, Some(y)) => self.narrow(a, |own| own.exclude(y)),
                (None, None) => {}
            }
        }
        self.conflict |= self.opposed();
    }

    /// `a < b` and `b < a` (or `b <= a`).
    fn opposed(&mut self) -> bool {
        let mut seen: FxHashMap<(usize, usize, bool), bool> = FxHashMap::default();
        for index in 0..self.orders.len() {
            let Order { a, b, is_signed, strict } = self.orders[index];
            let (a, b) = (self.find(a), self.find(b));
            if seen.get(&(b, a, is_signed)).is_some_and(|other| strict || *other) {
                return true;
            }
            *seen.entry((a, b, is_signed)).or_default() |= strict;
        }
        false
    }

    /// Looks for values of the variables that make all conditions true: a proof that they can be.
    pub fn witness(&mut self, conjuncts: &[TermId]) -> bool {
        (0..4).any(|attempt| {
            let mut values: Vec<Option<i64>> = vec![None; self.cone.len()];
            for slot in 0..self.cone.len() {
                let id = self.cone[slot];
                values[slot] = match self.terms.term(id) {
                    Term::Var { .. } => Some(self.guess(slot, attempt)),
                    term => calculate(self.terms, term, &|part| values[self.slot(part)]),
                };
            }
            conjuncts.iter().all(|&condition| values[self.slot(condition)] == Some(1))
        })
    }

    /// A value for a variable that fits what is known of its class; each attempt guesses differently.
    fn guess(&mut self, slot: usize, attempt: u32) -> i64 {
        let class = self.find(slot);
        let range = self.ranges[class];
        if let Some(value) = self.constants[class] {
            return value;
        }
        let wish = match attempt {
            0 => 0,
            // Different for each class, and unlike the constants that programs compare with.
            1 => i64::try_from(class).unwrap_or(0).wrapping_mul(16).wrapping_add(0x1_0000),
            2 => range.low,
            _ => range.high,
        };
        let wish = wish.clamp(range.low, range.high.max(range.low));
        let excluded: Vec<i64> = self.excluded(class);
        // One more than there are excluded values is enough, upwards or downwards.
        let tries = 0..=i64::try_from(excluded.len()).unwrap_or(i64::MAX);
        let normal = |value: i64| value::normal(value, range.bits);
        tries
            .flat_map(|step| [wish.wrapping_add(step), wish.wrapping_sub(step)])
            .map(normal)
            .find(|value| range.contains(*value) && !excluded.contains(value))
            .unwrap_or(normal(wish))
    }

    fn excluded(&mut self, class: usize) -> Vec<i64> {
        let mut excluded = Vec::new();
        for index in 0..self.apart.len() {
            let (a, b) = self.apart[index];
            let (a, b) = (self.find(a), self.find(b));
            if a == class {
                excluded.extend(self.constants[b]);
            } else if b == class {
                excluded.extend(self.constants[a]);
            }
        }
        excluded
    }
}

/// The value of a term from the values of its parts.
fn calculate(terms: &Terms, term: Term, of: &dyn Fn(TermId) -> Option<i64>) -> Option<i64> {
    match term {
        Term::Const { value, .. } => Some(value),
        Term::Var { .. } => None,
        Term::Bin { op, a, b } => value::binary(op, of(a)?, of(b)?, terms.bits(a)),
        Term::Cmp { op, a, b } => Some(i64::from(value::compare(op, of(a)?, of(b)?, terms.bits(a)))),
        Term::Not { a } => Some(value::normal(!of(a)?, terms.bits(a))),
        Term::Ite { condition, yes, no } => of(if of(condition)? == 1 { yes } else { no }),
        Term::Cast { op: CastOp::Zero, a, bits } => {
            Some(value::normal(value::unsigned(of(a)?, terms.bits(a)).cast_signed(), bits))
        }
        Term::Cast { a, bits, .. } => Some(value::normal(value::signed(of(a)?, terms.bits(a)), bits)),
    }
}

/// What a term's form says of its value.
fn own_range(terms: &Terms, id: TermId) -> Range {
    let bits = terms.bits(id);
    match terms.term(id) {
        Term::Const { value, .. } => Range::only(value, bits),
        Term::Bin { op: BinOp::URem, b, .. } => match terms.value(b) {
            Some(divisor) if divisor != 0 => Range::below(value::unsigned(divisor, bits) - 1, bits),
            _ => Range::full(bits),
        },
        _ => Range::full(bits),
    }
}

/// Terms with the same tag and equal parts are equal; variables and constants are only themselves.
fn tag(term: Term, bits: u32) -> Option<u32> {
    match term {
        Term::Const { .. } | Term::Var { .. } => None,
        Term::Bin { op, .. } => Some(op as u32),
        Term::Cmp { op, .. } => Some(op as u32),
        Term::Not { .. } | Term::Ite { .. } => Some(0),
        Term::Cast { op, .. } => Some(op as u32 * 64 + bits),
    }
}
