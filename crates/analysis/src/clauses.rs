//! What is left of two conditions when their paths meet: one of the two holds.
//!
//!     if (n == NULL || l->count >= 1)
//!         return -1;               // here: n == 0, or count >= 1
//!
//! A joined path has forgotten both conditions; without the clause, a caller that knows `n != NULL` and `count == 0`
//! would believe that the function can fail.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Range};
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

impl Facts {
    /// Does the literal hold, or can it not hold?
    fn decides(&self, terms: &Terms, literal: &Literal) -> Option<bool> {
        if matches!(terms.get(literal.term), Term::Cmp(..)) {
            return self.known(terms, literal.term).map(|truth| !literal.range.excludes(i64::from(truth)));
        }
        let now = self.range(terms, literal.term);
        if now.is_disjoint(&literal.range) {
            Some(false)
        } else if now.is_within(&literal.range) {
            Some(true)
        } else {
            None
        }
    }

    pub fn add_clause(&mut self, clause: Clause) {
        if self.clauses.len() < MAX_CLAUSES
            && let Err(at) = self.clauses.binary_search(&clause)
        {
            self.clauses.insert(at, clause);
        }
    }

    /// Draws what follows from the clauses. `false`: a contradiction.
    pub(crate) fn propagate(&mut self, terms: &mut Terms) -> bool {
        let mut at = 0;
        while at < self.clauses.len() {
            let Clause(a, b) = &self.clauses[at];
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
        true
    }

    fn accept(&mut self, terms: &mut Terms, literal: &Literal) -> bool {
        if matches!(terms.get(literal.term), Term::Cmp(..)) {
            let truth = literal.range.excludes(0);
            return self.assume_plain(terms, literal.term, truth);
        }
        self.narrow(literal.term, &literal.range)
    }

    /// The clauses of two paths that meet, where `new` says whether conditions that only one of them knows may be paired.
    pub(crate) fn join_clauses(&self, terms: &Terms, other: &Facts, new: bool) -> Vec<Clause> {
        let holds_in = |facts: &Facts, clause: &Clause| {
            facts.clauses.binary_search(clause).is_ok()
                || facts.decides(terms, &clause.0) == Some(true)
                || facts.decides(terms, &clause.1) == Some(true)
        };
        let mut joined: Vec<Clause> = self.clauses.iter().filter(|clause| holds_in(other, clause)).cloned().collect();
        joined.extend(other.clauses.iter().filter(|clause| holds_in(self, clause)).cloned());
        if new {
            let (mine, theirs) = (self.beyond(terms, other), other.beyond(terms, self));
            for a in &mine {
                for b in &theirs {
                    if a.term != b.term {
                        let (first, second) = if a <= b { (a, b) } else { (b, a) };
                        joined.push(Clause(first.clone(), second.clone()));
                    }
                }
            }
        }
        joined.sort_unstable();
        joined.dedup();
        // Of one value: below or above, as in the `else` of `if (0 <= i && i < n)`.
        let mut opposite = if new { self.opposites(other) } else { Vec::new() };
        opposite.retain(|clause| joined.binary_search(clause).is_err());
        opposite.truncate(MAX_CLAUSES);
        joined.truncate(MAX_CLAUSES - opposite.len());
        joined.append(&mut opposite);
        joined.sort_unstable();
        joined
    }

    /// Values that lie on one side of a gap here and on the other side there.
    fn opposites(&self, other: &Facts) -> Vec<Clause> {
        let mut found = Vec::new();
        for (term, range) in &self.ranges {
            if let Ok(at) = other.ranges.binary_search_by_key(term, |entry| entry.0)
                && range.is_opposite(&other.ranges[at].1)
            {
                let (mine, theirs) = (range.clone(), other.ranges[at].1.clone());
                let (low, high) = if mine <= theirs { (mine, theirs) } else { (theirs, mine) };
                found.push(Clause(Literal { term: *term, range: low }, Literal { term: *term, range: high }));
            }
        }
        found
    }

    /// Conditions of inputs that this path knows and the other does not.
    fn beyond(&self, terms: &Terms, other: &Facts) -> Vec<Literal> {
        let known = |term: &TermId, range: &Range| {
            let at = other.ranges.binary_search_by_key(term, |entry| entry.0);
            at.is_ok_and(|at| other.ranges[at].1 == *range)
        };
        let ranges = self.ranges.iter().filter(|(term, range)| !known(term, range));
        let ranges = ranges.map(|(term, range)| Literal { term: *term, range: range.clone() });
        let atoms = self.atoms.iter().filter(|atom| other.atoms.binary_search(atom).is_err());
        let atoms = atoms.map(|(term, truth)| Literal { term: *term, range: Range::point(i64::from(*truth)) });
        ranges
            .chain(atoms)
            .filter(|literal| terms.mentions(literal.term).is_empty() && other.decides(terms, literal) != Some(true))
            .take(MAX_SIDE)
            .collect()
    }
}
