//! What a path knows about its values: an interval and excluded values for each
//! term, and comparisons between terms. Contradictions are found in passing; no
//! solver is asked here.

use caulk_ir::{BinOp, CastOp, CmpOp};

use crate::arithmetic::{fold_cmp, negate, swapped};
use crate::clauses::{Clause, News, Pairs};
use crate::object::Object;
pub use crate::range::Range;
use crate::shared::{Draft, Shared};
use crate::term::{Term, TermId, Terms, ZERO};

/// The facts of one path. Both lists are sorted by term.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub ranges: Shared<(TermId, Range)>,
    /// `Eq`, `Slt`, `Ult` and floating comparisons between terms, and whether they hold.
    pub atoms: Shared<(TermId, bool)>,
    /// Pairs of conditions of which one holds, sorted.
    pub clauses: Shared<Clause>,
    pub(crate) news: News,
}

impl PartialEq for Facts {
    fn eq(&self, other: &Self) -> bool {
        self.ranges == other.ranges && self.atoms == other.atoms && self.clauses == other.clauses
    }
}

impl Eq for Facts {}

impl Facts {
    pub fn range(&self, terms: &Terms, id: TermId) -> Range {
        self.range_within(terms, id, 7)
    }

    /// What is told of the term itself: of a plain one that is all there is to know.
    #[inline]
    pub(crate) fn told(&self, id: TermId) -> Option<&Range> {
        let at = self.ranges.binary_search_by_key(&id, |entry| entry.0).ok()?;
        Some(&self.ranges[at].1)
    }

    /// The range of a term that is not in the list.
    fn of_untold(&self, terms: &Terms, id: TermId) -> Range {
        if terms.is_plain(id) { Range::full() } else { self.range(terms, id) }
    }

    fn range_within(&self, terms: &Terms, id: TermId, depth: u32) -> Range {
        if terms.is_plain(id) {
            return self.told(id).cloned().unwrap_or_else(Range::full);
        }
        if let Some(value) = terms.as_int(id) {
            return Range::point(value);
        }
        let mut range = self.told(id).cloned().unwrap_or_else(Range::full);
        if depth == 0 {
            return range;
        }
        match *terms.get(id) {
            Term::Cmp(..) => {
                range.meet(&Range::between(0, 1));
                if let Some(truth) = self.known(terms, id) {
                    range.meet(&Range::point(i64::from(truth)));
                }
            }
            Term::Bin(BinOp::Add, a, b) => {
                let part = self.range_within(terms, a, depth - 1);
                if let Some(k) = terms.as_int(b) {
                    range.meet(&part.shifted(k));
                } else if part.lo >= 0 {
                    let other = self.range_within(terms, b, depth - 1);
                    if other.lo >= 0 {
                        range.meet(&Range::between(part.lo.saturating_add(other.lo), i64::MAX));
                    }
                }
            }
            Term::Bin(BinOp::Sub, a, b) => {
                if let Some(k) = terms.as_int(a) {
                    range.meet(&self.range_within(terms, b, depth - 1).taken_from(k));
                }
            }
            // Sizes do not overflow.
            Term::Bin(BinOp::Mul, a, b) => {
                let (ra, rb) = (self.range_within(terms, a, depth - 1), self.range_within(terms, b, depth - 1));
                if ra.lo >= 0 && rb.lo >= 0 {
                    range.meet(&Range::between(ra.lo.saturating_mul(rb.lo), i64::MAX));
                }
            }
            Term::Bin(BinOp::LShr, _, by) => {
                if let Some(by @ 1..=63) = terms.as_int(by) {
                    range.meet(&Range::between(0, i64::MAX >> (by - 1)));
                }
            }
            Term::Bin(BinOp::URem, _, k) => {
                if let Some(k) = terms.as_int(k).filter(|k| *k > 0) {
                    range.meet(&Range::between(0, k - 1));
                }
            }
            Term::Bin(BinOp::And, a, b) => {
                let top = |r: Range| if r.lo >= 0 { r.hi } else { i64::MAX };
                let (ra, rb) = (self.range_within(terms, a, depth - 1), self.range_within(terms, b, depth - 1));
                if ra.lo >= 0 || rb.lo >= 0 {
                    range.meet(&Range::between(0, top(ra).min(top(rb))));
                }
            }
            Term::Bin(BinOp::Or, a, b) => {
                let (ra, rb) = (self.range_within(terms, a, depth - 1), self.range_within(terms, b, depth - 1));
                if ra.excludes(0) || rb.excludes(0) {
                    range.exclude(0);
                }
                if ra.lo >= 0 && rb.lo >= 0 {
                    range.meet(&Range::between(0, i64::MAX));
                }
            }
            Term::Cast(CastOp::ZExt, bits, a) => {
                let inner = self.range_within(terms, a, depth - 1);
                if inner.lo >= 0 {
                    range.meet(&inner);
                } else {
                    if bits < 63 {
                        range.meet(&Range::between(0, (1i64 << bits) - 1));
                    }
                    if inner.excludes(0) {
                        range.exclude(0);
                    }
                }
            }
            Term::Ite(_, a, b) => {
                let (ra, rb) = (self.range_within(terms, a, depth - 1), self.range_within(terms, b, depth - 1));
                range.meet(&ra.join(&rb));
            }
            Term::Addr { obj, .. } => match terms.object(obj) {
                // Heap objects are the state's business: their allocation may have failed.
                Object::Heap { .. } => {}
                _ => range.exclude(0),
            },
            Term::Elem { .. } | Term::Func(_) => range.exclude(0),
            _ => {}
        }
        range
    }

    /// Is a comparison known to hold or not to hold?
    pub fn known(&self, terms: &Terms, cond: TermId) -> Option<bool> {
        let Term::Cmp(op, a, b) = *terms.get(cond) else {
            let range = self.range(terms, cond);
            return if range.constant() == Some(0) {
                Some(false)
            } else if range.excludes(0) {
                Some(true)
            } else {
                None
            };
        };
        if let Ok(at) = self.atoms.binary_search_by_key(&cond, |atom| atom.0) {
            return Some(self.atoms[at].1);
        }
        if op == CmpOp::Float {
            return None;
        }
        if let Some(answer) = self.known_without_sign(terms, op, a, b) {
            return Some(answer);
        }
        // Other atoms are comparisons of two unknown values: what is compared with a constant lies in the ranges.
        let atoms = if terms.is_constant(a) || terms.is_constant(b) { &[] } else { self.atoms.as_slice() };
        for &(atom, truth) in atoms {
            if let Term::Cmp(known, x, y) = *terms.get(atom)
                && let Some(answer) = implied(known, truth, x == a && y == b, x == b && y == a, op)
            {
                return Some(answer);
            }
        }
        let (ra, rb) = (self.range_within(terms, a, 4), self.range_within(terms, b, 4));
        decide(op, &ra, &rb)
    }

    /// `n > 8`, without a sign, holds of negative numbers as well: no interval, but an atom.
    fn known_without_sign(&self, terms: &Terms, op: CmpOp, a: TermId, b: TermId) -> Option<bool> {
        // That it is not 0 is told by its range.
        let asked = without_sign(op, terms.as_int(b).filter(|&k| k != 0)?)?;
        self.atoms.iter().find_map(|&(atom, truth)| {
            let Term::Cmp(known, x, y) = *terms.get(atom) else { return None };
            if x != a {
                return None;
            }
            let known = without_sign(if truth { known } else { negate(known) }, terms.as_int(y)?)?;
            if known.2 {
                return None;
            }
            let (inside, outside) = (known.0 >= asked.0 && known.1 <= asked.1, known.0 > asked.1 || known.1 < asked.0);
            if inside || outside { Some(inside != asked.2) } else { None }
        })
    }

    /// Adds what the truth of `cond` implies. `false`: contradiction.
    pub fn assume(&mut self, terms: &mut Terms, cond: TermId, truth: bool) -> bool {
        self.assume_plain(terms, cond, truth)
            && (self.clauses.is_empty() || self.news.is_none() || self.propagate(terms))
    }

    pub(crate) fn assume_plain(&mut self, terms: &mut Terms, cond: TermId, truth: bool) -> bool {
        self.assume_within(terms, cond, truth, 8)
    }

    fn assume_within(&mut self, terms: &mut Terms, cond: TermId, truth: bool, depth: u32) -> bool {
        if let Term::Cmp(op, a, b) = *terms.get(cond)
            && let Some(k) = terms.as_int(b)
            && op != CmpOp::Float
            && depth > 0
            && terms.is_plain(a)
        {
            let truth_op = if truth { op } else { negate(op) };
            if !self.atoms.is_empty()
                && let Some(holds) = self.known_without_sign(terms, truth_op, a, b)
            {
                return holds;
            }
            if is_open_above(truth_op, k) && self.told(a).is_none_or(|range| range.lo < 0 && range.hi > 0) {
                self.add_atom(cond, truth);
            }
            return self.bound(a, truth_op, k);
        }
        if let Some(known) = self.known(terms, cond) {
            return known == truth;
        }
        if depth == 0 {
            return true;
        }
        match *terms.get(cond) {
            Term::Cmp(op, a, b) => {
                let (op, truth_op) = if truth { (op, op) } else { (op, negate(op)) };
                if op == CmpOp::Float {
                    self.add_atom(cond, truth);
                    return true;
                }
                if let Some(k) = terms.as_int(b) {
                    if is_open_above(truth_op, k) && self.range(terms, a).lo < 0 {
                        self.add_atom(cond, truth);
                    }
                    return self.restrict(terms, a, truth_op, k, depth - 1);
                }
                if let Some(k) = terms.as_int(a) {
                    return self.restrict(terms, b, swapped(truth_op), k, depth - 1);
                }
                self.add_atom(cond, truth);
                let (ra, rb) = (self.range(terms, a), self.range(terms, b));
                match truth_op {
                    CmpOp::Eq => self.narrow(a, &rb) && self.narrow(b, &ra),
                    CmpOp::Slt => {
                        self.narrow(a, &Range::between(i64::MIN, rb.hi.saturating_sub(1)))
                            && self.narrow(b, &Range::between(ra.lo.saturating_add(1), i64::MAX))
                    }
                    CmpOp::Sle => {
                        self.narrow(a, &Range::between(i64::MIN, rb.hi))
                            && self.narrow(b, &Range::between(ra.lo, i64::MAX))
                    }
                    CmpOp::Sgt => {
                        self.narrow(b, &Range::between(i64::MIN, ra.hi.saturating_sub(1)))
                            && self.narrow(a, &Range::between(rb.lo.saturating_add(1), i64::MAX))
                    }
                    CmpOp::Sge => {
                        self.narrow(b, &Range::between(i64::MIN, ra.hi))
                            && self.narrow(a, &Range::between(rb.lo, i64::MAX))
                    }
                    // Without signs nothing is less than 0.
                    CmpOp::Ult => self.narrow(b, &Range::except(0)),
                    CmpOp::Ugt => self.narrow(a, &Range::except(0)),
                    CmpOp::Ule if ra.excludes(0) => self.narrow(b, &Range::except(0)),
                    CmpOp::Uge if rb.excludes(0) => self.narrow(a, &Range::except(0)),
                    CmpOp::Ne => {
                        let mut ok = true;
                        if let Some(k) = rb.constant() {
                            ok &= self.restrict(terms, a, CmpOp::Ne, k, depth - 1);
                        }
                        if let Some(k) = ra.constant() {
                            ok &= self.restrict(terms, b, CmpOp::Ne, k, depth - 1);
                        }
                        ok
                    }
                    _ => true,
                }
            }
            _ => {
                let op = if truth { CmpOp::Ne } else { CmpOp::Eq };
                self.restrict(terms, cond, op, 0, depth - 1)
            }
        }
    }

    /// `id op k` holds, of a plain value. `false`: contradiction.
    pub fn assume_bound(&mut self, terms: &mut Terms, id: TermId, op: CmpOp, k: i64) -> bool {
        self.bound(id, op, k) && (self.clauses.is_empty() || self.news.is_none() || self.propagate(terms))
    }

    /// Can `id op k` hold, of a plain value?
    pub fn may_be(&self, id: TermId, op: CmpOp, k: i64) -> bool {
        let full = Range::full();
        decide(op, self.told(id).unwrap_or(&full), &Range::point(k)) != Some(false)
    }

    /// `id op k` holds, of a value of which nothing is known but its range: what `known` and `restrict` come to.
    fn bound(&mut self, id: TermId, op: CmpOp, k: i64) -> bool {
        let at = self.ranges.binary_search_by_key(&id, |entry| entry.0);
        let full = Range::full();
        let known = at.map_or(&full, |at| &self.ranges[at].1);
        if let Some(holds) = decide(op, known, &Range::point(k)) {
            return holds;
        }
        let mut range = known.clone();
        if !restricted(&mut range, op, k) {
            return true;
        }
        if range.is_empty() {
            return false;
        }
        self.set_at(at, id, range);
        true
    }

    /// `id op k` holds.
    fn restrict(&mut self, terms: &mut Terms, id: TermId, op: CmpOp, k: i64, depth: u32) -> bool {
        let mut range = self.range(terms, id);
        if !restricted(&mut range, op, k) {
            return true;
        }
        if range.is_empty() {
            return false;
        }
        let constant = range.constant();
        let nonzero = range.excludes(0);
        self.set(id, range);
        if depth == 0 {
            return true;
        }
        // What the parts of the term must then be.
        match (terms.get(id).clone(), constant) {
            (Term::Bin(BinOp::Or, a, b), Some(0)) => {
                self.restrict(terms, a, CmpOp::Eq, 0, depth - 1) && self.restrict(terms, b, CmpOp::Eq, 0, depth - 1)
            }
            (Term::Bin(BinOp::And, a, b), _) if nonzero && (is_bool(terms, a) && is_bool(terms, b)) => {
                self.assume_within(terms, a, true, depth - 1) && self.assume_within(terms, b, true, depth - 1)
            }
            (Term::Bin(BinOp::Add, a, c), _) if terms.as_int(c).is_some() => {
                let c = terms.as_int(c).unwrap_or(0);
                // Without signs the sum wraps at zero: `(unsigned)(c - '0') < 10` bounds `c` on both sides, and its
                // opposite on neither.
                match op {
                    CmpOp::Ult | CmpOp::Ule => {
                        let part = self.range(terms, id).shifted(c.wrapping_neg());
                        return self.narrow(a, &part);
                    }
                    CmpOp::Ugt | CmpOp::Uge => return true,
                    _ => {}
                }
                match k.checked_sub(c) {
                    Some(k) => self.restrict(terms, a, op, k, depth - 1),
                    None => true,
                }
            }
            (Term::Cast(CastOp::ZExt, _, a), _) if matches!(op, CmpOp::Eq | CmpOp::Ne) && k == 0 => {
                self.restrict(terms, a, op, 0, depth - 1)
            }
            (Term::Cmp(..), Some(value)) => self.assume_within(terms, id, value != 0, depth - 1),
            (Term::Ite(cond, a, b), _) => {
                let range = self.range(terms, id);
                let (ra, rb) = (self.range(terms, a), self.range(terms, b));
                let fits = |r: &Range| {
                    let mut both = range.clone();
                    both.meet(r);
                    !both.is_empty()
                };
                match (fits(&ra), fits(&rb)) {
                    (true, false) => self.assume_within(terms, cond, true, depth - 1),
                    (false, true) => self.assume_within(terms, cond, false, depth - 1),
                    (false, false) => false,
                    (true, true) => true,
                }
            }
            _ => true,
        }
    }

    /// `id` lies in `range`. `false`: contradiction.
    pub fn narrow(&mut self, id: TermId, range: &Range) -> bool {
        let at = self.ranges.binary_search_by_key(&id, |entry| entry.0);
        let mut both = at.map_or_else(|_| Range::full(), |at| self.ranges[at].1.clone());
        both.meet(range);
        if both.is_empty() {
            return false;
        }
        self.set_at(at, id, both);
        true
    }

    fn set(&mut self, id: TermId, range: Range) {
        self.set_at(self.ranges.binary_search_by_key(&id, |entry| entry.0), id, range);
    }

    fn set_at(&mut self, at: Result<usize, usize>, id: TermId, range: Range) {
        match at {
            Ok(at) if self.ranges[at].1 == range => return,
            Ok(at) => self.ranges[at].1 = range,
            Err(_) if range.is_full() || id == ZERO => return,
            Err(at) => self.ranges.insert(at, (id, range)),
        }
        self.note(id, false);
    }

    fn add_atom(&mut self, cond: TermId, truth: bool) {
        if let Err(at) = self.atoms.binary_search_by_key(&cond, |atom| atom.0) {
            self.atoms.insert(at, (cond, truth));
            self.note(cond, true);
        }
    }

    /// What both paths know. `pair`: conditions that one of them alone knows become clauses.
    pub fn join(&self, terms: &Terms, other: &Facts, pair: bool) -> Facts {
        let mut pairs = Pairs::new(pair);
        let ranges = if self.ranges.is_same(&other.ranges) {
            self.ranges.clone()
        } else {
            let mut ranges = Draft::of(&self.ranges);
            let mut all_theirs = other.ranges.iter().peekable();
            for entry @ (id, range) in &self.ranges {
                while let Some((only, range)) = all_theirs.next_if(|entry| entry.0 < *id) {
                    let known = self.of_untold(terms, *only);
                    pairs.theirs(self, terms, *only, range, &known);
                    ranges.extend(joined(*only, range, &known));
                }
                let theirs = all_theirs.next_if(|entry| entry.0 == *id);
                if theirs.is_some_and(|(_, theirs)| theirs == range) {
                    ranges.push_copy(entry);
                    continue;
                }
                let known = match theirs {
                    Some((_, theirs)) if terms.is_plain(*id) => theirs.clone(),
                    Some(_) => other.range(terms, *id),
                    None => other.of_untold(terms, *id),
                };
                pairs.mine(other, terms, *id, range, &known);
                if let Some((_, theirs)) = theirs {
                    pairs.both(self, terms, *id, range, theirs);
                }
                ranges.extend(joined(*id, range, &known));
            }
            for (only, range) in all_theirs {
                let known = self.of_untold(terms, *only);
                pairs.theirs(self, terms, *only, range, &known);
                ranges.extend(joined(*only, range, &known));
            }
            ranges.finish()
        };
        let clauses = self.join_clauses(terms, other, pairs);
        let mut atoms = self.atoms.clone();
        if !self.atoms.is_same(&other.atoms) {
            atoms.retain(|atom| other.atoms.binary_search(atom).is_ok());
        }
        Facts { ranges, atoms, clauses, news: News::default() }
    }

    /// Says the same about other terms.
    pub fn rename(&mut self, mut name: impl FnMut(TermId) -> TermId) {
        self.ranges.iter_mut().for_each(|entry| entry.0 = name(entry.0));
        self.atoms.iter_mut().for_each(|entry| entry.0 = name(entry.0));
        for Clause(a, b) in &mut self.clauses {
            (a.term, b.term) = (name(a.term), name(b.term));
        }
        self.ranges.sort_by_key(|entry| entry.0);
        self.ranges.dedup_by_key(|entry| entry.0);
        self.atoms.sort_unstable();
        self.atoms.dedup_by_key(|entry| entry.0);
        self.clauses.sort_unstable();
        self.news = News::default();
    }

    /// Forgets facts about terms for which `keep` says no.
    pub fn retain(&mut self, mut keep: impl FnMut(TermId) -> bool) {
        self.ranges.retain(|(id, _)| keep(*id));
        self.atoms.retain(|(id, _)| keep(*id));
        self.clauses.retain(|clause| keep(clause.0.term) && keep(clause.1.term));
        self.news = News::default();
    }
}

/// Is it one of the comparisons that say, of numbers without a sign, more than that they are not 0, and that hold of
/// negative ones with a sign?
fn is_open_above(op: CmpOp, k: i64) -> bool {
    matches!(op, CmpOp::Ugt if k > 0) || matches!(op, CmpOp::Uge if k > 1)
}

/// The numbers without a sign for which `op k` holds, from and to, or does not: `true`.
fn without_sign(op: CmpOp, k: i64) -> Option<(u64, u64, bool)> {
    let k = k as u64;
    match op {
        CmpOp::Eq => Some((k, k, false)),
        CmpOp::Ne => Some((k, k, true)),
        CmpOp::Ult => Some((0, k.checked_sub(1)?, false)),
        CmpOp::Ule => Some((0, k, false)),
        CmpOp::Ugt => Some((k.checked_add(1)?, u64::MAX, false)),
        CmpOp::Uge => Some((k, u64::MAX, false)),
        _ => None,
    }
}

/// Leaves in the range what is `op k`. `false`: that says nothing.
fn restricted(range: &mut Range, op: CmpOp, k: i64) -> bool {
    match op {
        CmpOp::Eq => range.meet(&Range::point(k)),
        CmpOp::Ne => range.exclude(k),
        CmpOp::Slt => range.meet(&Range::between(i64::MIN, k.saturating_sub(1))),
        CmpOp::Sle => range.meet(&Range::between(i64::MIN, k)),
        CmpOp::Sgt => range.meet(&Range::between(k.saturating_add(1), i64::MAX)),
        CmpOp::Sge => range.meet(&Range::between(k, i64::MAX)),
        CmpOp::Ult if k > 0 => range.meet(&Range::between(0, k - 1)),
        CmpOp::Ule if k >= 0 => range.meet(&Range::between(0, k)),
        CmpOp::Ugt if k >= 0 => {
            if range.lo >= 0 {
                range.meet(&Range::between(k.saturating_add(1), i64::MAX));
            }
            range.exclude(0);
        }
        CmpOp::Uge if k > 0 => {
            if range.lo >= 0 {
                range.meet(&Range::between(k, i64::MAX));
            }
            range.exclude(0);
        }
        _ => return false,
    }
    true
}

/// What is left of a range where another path knows something else.
fn joined(id: TermId, range: &Range, known: &Range) -> Option<(TermId, Range)> {
    if known.is_full() {
        return None;
    }
    let both = range.join(known);
    (!both.is_full()).then_some((id, both))
}

fn is_bool(terms: &Terms, id: TermId) -> bool {
    matches!(terms.get(id), Term::Cmp(..))
}

/// What one known comparison of the same two terms says about another.
fn implied(known: CmpOp, truth: bool, same: bool, crossed: bool, asked: CmpOp) -> Option<bool> {
    if !same && !crossed {
        return None;
    }
    let known = if truth { known } else { negate(known) };
    let known = if crossed { swapped(known) } else { known };
    if known == CmpOp::Float {
        return None;
    }
    // Try both sides of each possible order; signed and unsigned are kept apart.
    let signed = |op: CmpOp| matches!(op, CmpOp::Slt | CmpOp::Sle | CmpOp::Sgt | CmpOp::Sge);
    let unsigned = |op: CmpOp| matches!(op, CmpOp::Ult | CmpOp::Ule | CmpOp::Ugt | CmpOp::Uge);
    if (signed(known) && unsigned(asked)) || (unsigned(known) && signed(asked)) {
        return None;
    }
    let mut answers = [(1, 2), (2, 2), (2, 1)].into_iter().filter(|&(x, y)| fold_cmp(known, x, y));
    let first = answers.next().map(|(x, y)| fold_cmp(asked, x, y))?;
    answers.all(|(x, y)| fold_cmp(asked, x, y) == first).then_some(first)
}

/// Does the comparison hold for every pair of values of the two ranges?
fn decide(op: CmpOp, a: &Range, b: &Range) -> Option<bool> {
    match op {
        CmpOp::Eq => match (a.constant(), b.constant()) {
            (Some(x), Some(y)) => Some(x == y),
            (Some(x), None) if b.excludes(x) => Some(false),
            (None, Some(y)) if a.excludes(y) => Some(false),
            _ if a.hi < b.lo || b.hi < a.lo => Some(false),
            _ => None,
        },
        CmpOp::Ne => decide(CmpOp::Eq, a, b).map(|truth| !truth),
        CmpOp::Slt if a.hi < b.lo => Some(true),
        CmpOp::Slt if a.lo >= b.hi => Some(false),
        CmpOp::Sle if a.hi <= b.lo => Some(true),
        CmpOp::Sle if a.lo > b.hi => Some(false),
        CmpOp::Sgt | CmpOp::Sge => decide(swapped(op), b, a),
        CmpOp::Ult | CmpOp::Ule | CmpOp::Ugt | CmpOp::Uge if a.lo >= 0 && b.lo >= 0 => {
            let signed = match op {
                CmpOp::Ult => CmpOp::Slt,
                CmpOp::Ule => CmpOp::Sle,
                CmpOp::Ugt => CmpOp::Sgt,
                _ => CmpOp::Sge,
            };
            decide(signed, a, b)
        }
        _ => None,
    }
}
