//! What is left of two conditions when their paths meet: one of the two holds.
//!
//!     if (n == NULL || l->count >= 1)
//!         return -1;               // here: n == 0, or count >= 1
//!
//! A joined path has forgotten both conditions; without the clause, a caller that knows `n != NULL` and `count == 0`
//! would believe that the function can fail.

use caulk_ir::{BinOp, CastOp};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::facts::{Facts, Range};
use crate::shared::Shared;
use crate::term::{Term, TermId, Terms};

/// More than this and the later ones are not kept.
const MAX_CLAUSES: usize = 6;
/// How many conditions of each path are paired.
const MAX_SIDE: usize = 3;

/// The term lies in the range. A comparison is true in 1..1 and false in 0..0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Literal {
    pub term: TermId,
    pub range: Range,
}

/// At least one of the two holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Clause(pub Literal, pub Literal);

/// What has changed since what follows from the clauses was drawn: a clause of which nothing has changed still says
/// nothing.
#[derive(Clone, Debug)]
pub(crate) struct News {
    /// The terms of which more is known; `None`: of all, for all that is known.
    terms: Option<SmallVec<[TermId; MAX_NEWS]>>,
    /// Some comparison was added, and may imply others.
    atoms: bool,
}

const MAX_NEWS: usize = 6;
/// Deeper formulas count as changed.
const NEWS_DEPTH: u32 = 5;

impl Default for News {
    fn default() -> Self {
        Self { terms: None, atoms: true }
    }
}

impl News {
    fn nothing() -> Self {
        Self { terms: Some(SmallVec::new()), atoms: false }
    }

    pub(crate) fn is_none(&self) -> bool {
        !self.atoms && self.terms.as_ref().is_some_and(|terms| terms.is_empty())
    }

    /// May more be known of the term? See `Facts::range`, on which parts it depends.
    fn concerns(&self, terms: &Terms, id: TermId) -> bool {
        self.terms.as_ref().is_none_or(|changed| self.reaches(terms, changed, id, NEWS_DEPTH))
    }

    fn reaches(&self, terms: &Terms, changed: &[TermId], id: TermId, depth: u32) -> bool {
        if changed.contains(&id) {
            return true;
        }
        let (a, b) = match *terms.get(id) {
            Term::Cmp(_, a, b) if !self.atoms => (a, b),
            Term::Cmp(..) => return true,
            Term::Bin(BinOp::Add | BinOp::Mul | BinOp::And | BinOp::Or, a, b) | Term::Ite(_, a, b) => (a, b),
            Term::Cast(CastOp::ZExt, _, a) => (a, a),
            _ => return false,
        };
        depth == 0 || self.reaches(terms, changed, a, depth - 1) || self.reaches(terms, changed, b, depth - 1)
    }
}

impl Facts {
    /// More is known of a term, or of a comparison.
    pub(crate) fn note(&mut self, id: TermId, atom: bool) {
        // A new clause makes everything news.
        if self.clauses.is_empty() {
            return;
        }
        self.news.atoms |= atom;
        if let Some(terms) = &mut self.news.terms {
            if terms.len() < MAX_NEWS {
                terms.push(id);
            } else {
                self.news.terms = None;
            }
        }
    }

    /// Would more knowledge of the term tell nothing beyond it?
    pub(crate) fn is_of_no_clause(&self, terms: &Terms, term: TermId) -> bool {
        let news = News { terms: Some(SmallVec::from_slice(&[term])), atoms: false };
        let concerns = |clause: &Clause| news.concerns(terms, clause.0.term) || news.concerns(terms, clause.1.term);
        self.clauses.is_empty() || (self.news.is_none() && !self.clauses.iter().any(concerns))
    }

    /// Does the literal hold, or can it not hold?
    fn decides(&self, terms: &Terms, literal: &Literal) -> Option<bool> {
        if matches!(terms.get(literal.term), Term::Cmp(..)) {
            return self.known(terms, literal.term).map(|truth| !literal.range.excludes(i64::from(truth)));
        }
        let (full, derived);
        let now = if terms.is_plain(literal.term) {
            full = Range::full();
            self.told(literal.term).unwrap_or(&full)
        } else {
            derived = self.range(terms, literal.term);
            &derived
        };
        if now.is_disjoint(&literal.range) {
            Some(false)
        } else if now.is_within(&literal.range) {
            Some(true)
        } else {
            None
        }
    }

    pub fn add_clause(&mut self, terms: &Terms, clause: Clause) {
        let open = |literal: &Literal| self.decides(terms, literal).is_none();
        let settled = self.news.is_none() || self.clauses.is_empty();
        let settled = settled && open(&clause.0) && open(&clause.1);
        if self.clauses.len() < MAX_CLAUSES
            && let Err(at) = self.clauses.binary_search(&clause)
        {
            self.clauses.insert(at, clause);
            self.news = if settled { News::nothing() } else { News::default() };
        }
    }

    /// Draws what follows from the clauses. `false`: a contradiction.
    pub(crate) fn propagate(&mut self, terms: &mut Terms) -> bool {
        let mut at = 0;
        while at < self.clauses.len() {
            let Clause(a, b) = &self.clauses[at];
            if !self.news.concerns(terms, a.term) && !self.news.concerns(terms, b.term) {
                at += 1;
                continue;
            }
            let implied = match (self.decides(terms, a), self.decides(terms, b)) {
                (Some(false), Some(false)) => return false,
                (Some(true), _) | (_, Some(true)) => None,
                (Some(false), None) => Some(b.clone()),
                (None, Some(false)) => Some(a.clone()),
                (None, None) => {
                    at += 1;
                    continue;
                }
            };
            self.clauses.remove(at);
            if let Some(literal) = implied {
                if !self.accept(terms, &literal) {
                    return false;
                }
                // What is known now may decide those before it.
                at = 0;
            }
        }
        self.news = News::nothing();
        true
    }

    fn accept(&mut self, terms: &mut Terms, literal: &Literal) -> bool {
        if matches!(terms.get(literal.term), Term::Cmp(..)) {
            let truth = literal.range.excludes(0);
            return self.assume_plain(terms, literal.term, truth);
        }
        self.narrow(literal.term, &literal.range)
    }

    /// The clauses of two paths that meet, with the conditions that only one of them knows.
    pub(crate) fn join_clauses(&self, terms: &Terms, other: &Facts, mut pairs: Pairs) -> Shared<Clause> {
        let holds_in = |facts: &Facts, clause: &Clause| {
            facts.clauses.binary_search(clause).is_ok()
                || facts.decides(terms, &clause.0) == Some(true)
                || facts.decides(terms, &clause.1) == Some(true)
        };
        if pairs.wanted {
            pairs.mine.extend(self.atoms_beyond(terms, other, MAX_SIDE - pairs.mine.len()));
            pairs.theirs.extend(other.atoms_beyond(terms, self, MAX_SIDE - pairs.theirs.len()));
        }
        let same = self.clauses == other.clauses;
        let news = !pairs.opposite.is_empty() || !(pairs.mine.is_empty() || pairs.theirs.is_empty());
        if same && !news && self.clauses.len() <= MAX_CLAUSES && self.clauses.is_sorted_by(|a, b| a < b) {
            return self.clauses.clone();
        }
        // Most are not kept: they are copied when that is known.
        let mut joined: SmallVec<[(&Literal, &Literal); 24]> = SmallVec::new();
        joined.extend(self.clauses.iter().filter(|clause| same || holds_in(other, clause)).map(sides));
        joined.extend(other.clauses.iter().filter(|clause| !same && holds_in(self, clause)).map(sides));
        if pairs.wanted {
            for a in &pairs.mine {
                for b in pairs.theirs.iter().filter(|b| a.term != b.term) {
                    joined.push(if a <= b { (a, b) } else { (b, a) });
                }
            }
        }
        joined.sort_unstable();
        joined.dedup();
        // Of one value: below or above, as in the `else` of `if (0 <= i && i < n)`.
        pairs.opposite.retain(|clause| joined.binary_search(&sides(clause)).is_err());
        pairs.opposite.truncate(MAX_CLAUSES);
        if joined.len() > MAX_CLAUSES {
            joined.sort_by_cached_key(|clause| weight(terms, clause.0.term).max(weight(terms, clause.1.term)));
        }
        joined.truncate(MAX_CLAUSES - pairs.opposite.len());
        joined.extend(pairs.opposite.iter().map(sides));
        joined.sort_unstable();
        if joined.iter().copied().eq(self.clauses.iter().map(sides)) {
            return self.clauses.clone();
        }
        joined.into_iter().map(|(a, b)| Clause(a.clone(), b.clone())).collect()
    }

    /// Comparisons of inputs that this path knows and the other does not, a few of them.
    fn atoms_beyond(&self, terms: &Terms, other: &Facts, most: usize) -> Vec<Literal> {
        if most == 0 || self.atoms.is_same(&other.atoms) {
            return Vec::new();
        }
        let atoms = self.atoms.iter().filter(|atom| other.atoms.binary_search(atom).is_err());
        let atoms = atoms.map(|(term, truth)| Literal { term: *term, range: Range::point(i64::from(*truth)) });
        atoms.filter(|literal| is_beyond(other, terms, literal)).take(most).collect()
    }
}

fn sides(clause: &Clause) -> (&Literal, &Literal) {
    (&clause.0, &clause.1)
}

/// A condition that another path does not know to hold.
fn is_beyond(other: &Facts, terms: &Terms, literal: &Literal) -> bool {
    terms.mentions(literal.term).is_empty() && other.decides(terms, literal) != Some(true)
}

/// Conditions of inputs that only one of two paths knows, a few of each. They are found while ranges are joined.
pub(crate) struct Pairs {
    wanted: bool,
    mine: SmallVec<[Literal; MAX_SIDE]>,
    theirs: SmallVec<[Literal; MAX_SIDE]>,
    /// Values that lie on one side of a gap here and on the other side there.
    opposite: Vec<Clause>,
}

impl Pairs {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted, mine: SmallVec::new(), theirs: SmallVec::new(), opposite: Vec::new() }
    }

    /// A range of this path, where the other knows another one of the term.
    pub(crate) fn mine(&mut self, other: &Facts, terms: &Terms, term: TermId, range: &Range, known: &Range) {
        if self.wanted {
            add(&mut self.mine, other, terms, term, range, known);
        }
    }

    /// A range of the other path, where this one knows another one of the term.
    pub(crate) fn theirs(&mut self, other: &Facts, terms: &Terms, term: TermId, range: &Range, known: &Range) {
        if self.wanted {
            add(&mut self.theirs, other, terms, term, range, known);
        }
    }

    /// Both paths have a range of the term, and not the same.
    pub(crate) fn both(&mut self, mine: &Facts, terms: &Terms, term: TermId, range: &Range, theirs: &Range) {
        if !self.wanted {
            return;
        }
        let known = mine.range(terms, term);
        add(&mut self.theirs, mine, terms, term, theirs, &known);
        if range.is_opposite(theirs) {
            let (low, high) = if range <= theirs { (range, theirs) } else { (theirs, range) };
            let side = |range: &Range| Literal { term, range: range.clone() };
            self.opposite.push(Clause(side(low), side(high)));
        }
    }
}

/// What callers can be told is worth more than what only this function knows, and an argument more than what lies far
/// behind it.
fn weight(terms: &Terms, term: TermId) -> (bool, u32) {
    (terms.is_private(term), terms.depth(term))
}

/// `known`: what the other path's facts say of the term.
fn add(
    side: &mut SmallVec<[Literal; MAX_SIDE]>,
    other: &Facts,
    terms: &Terms,
    term: TermId,
    range: &Range,
    known: &Range,
) {
    if !terms.mentions(term).is_empty() {
        return;
    }
    let heaviest = || side.iter().enumerate().max_by_key(|(_, literal)| weight(terms, literal.term));
    let place = if side.len() < MAX_SIDE {
        side.len()
    } else {
        match heaviest() {
            Some((place, heaviest)) if weight(terms, term) < weight(terms, heaviest.term) => place,
            _ => return,
        }
    };
    let literal = || Literal { term, range: range.clone() };
    let holds = match terms.get(term) {
        Term::Cmp(..) => !is_beyond(other, terms, &literal()),
        _ => !known.is_disjoint(range) && known.is_within(range),
    };
    if !holds && place < side.len() {
        side[place] = literal();
    } else if !holds {
        side.push(literal());
    }
}
