//! Whether conditions can hold together: contradiction first, then a guess, then z3, within a budget.

use crate::facts::Facts;
use crate::smt::{self, Answer};
use crate::terms::{TermId, Terms};

/// The answer to "can all of these be true at once?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Feasible,
    Infeasible,
    /// The budget ended first.
    Undecided,
}

/// How much may be asked of z3. Both limits are counts, never time, so that the answers are the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Questions in all.
    pub queries: u32,
    /// z3's steps (`rlimit`) for one question; about ten million are a second.
    pub steps: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { queries: 200, steps: 500_000 }
    }
}

/// What a solver was asked, and who answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// All questions.
    pub checks: u64,
    /// Infeasible by a contradiction in linear time.
    pub by_contradiction: u64,
    /// Feasible by values found without search.
    pub by_witness: u64,
    /// Questions that went to z3.
    pub queries: u64,
    /// Of these, infeasible.
    pub by_smt: u64,
    /// Left open: no budget, or z3 gave up.
    pub undecided: u64,
}

impl std::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.checks += other.checks;
        self.by_contradiction += other.by_contradiction;
        self.by_witness += other.by_witness;
        self.queries += other.queries;
        self.by_smt += other.by_smt;
        self.undecided += other.undecided;
    }
}

/// Whether the conditions contradict each other in a way that linear time shows. `false` says nothing.
pub fn contradiction(terms: &Terms, conjuncts: &[TermId]) -> bool {
    Facts::of(terms, conjuncts).conflict
}

/// Answers questions about one thing, a function say, within one budget.
#[derive(Clone, Debug)]
pub struct Solver {
    budget: Budget,
    statistics: Statistics,
}

impl Solver {
    pub fn new(budget: Budget) -> Self {
        Self { budget, statistics: Statistics::default() }
    }

    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Whether all conditions, terms of one bit, can be true at once.
    pub fn check(&mut self, terms: &Terms, conjuncts: &[TermId]) -> Verdict {
        self.statistics.checks += 1;
        let mut facts = Facts::of(terms, conjuncts);
        if facts.conflict {
            self.statistics.by_contradiction += 1;
            return Verdict::Infeasible;
        }
        if facts.witness(conjuncts) {
            self.statistics.by_witness += 1;
            return Verdict::Feasible;
        }
        match self.ask(terms, conjuncts) {
            Answer::Satisfiable => Verdict::Feasible,
            Answer::Unsatisfiable(_) => {
                self.statistics.by_smt += 1;
                Verdict::Infeasible
            }
            Answer::Unknown => {
                self.statistics.undecided += 1;
                Verdict::Undecided
            }
        }
    }

    fn ask(&mut self, terms: &Terms, conjuncts: &[TermId]) -> Answer {
        if self.statistics.queries >= u64::from(self.budget.queries) {
            return Answer::Unknown;
        }
        self.statistics.queries += 1;
        smt::ask(terms, conjuncts, self.budget.steps)
    }

    /// Places of conjuncts that cannot all be true, as few as found cheaply: leave any one of a contradiction out and
    /// it shows no more. Empty if the conditions are not known to be infeasible.
    pub fn explain(&mut self, terms: &Terms, conjuncts: &[TermId]) -> Vec<usize> {
        let all: Vec<usize> = (0..conjuncts.len()).collect();
        let pick = |places: &[usize]| places.iter().map(|&place| conjuncts[place]).collect::<Vec<_>>();
        let conflicts = |places: &[usize]| contradiction(terms, &pick(places));
        if conflicts(&all) {
            return shrink(all, &conflicts);
        }
        let Answer::Unsatisfiable(core) = self.ask(terms, conjuncts) else { return Vec::new() };
        if conflicts(&core) {
            return shrink(core, &conflicts);
        }
        let mut core = core;
        // z3's core is not the smallest: leave out what is not needed, as far as the budget goes.
        let mut place = 0;
        while place < core.len() && core.len() <= 16 {
            let mut fewer = core.clone();
            fewer.remove(place);
            match self.ask(terms, &pick(&fewer)) {
                Answer::Unsatisfiable(smaller) => {
                    core = smaller.into_iter().map(|index| fewer[index]).collect();
                    place = 0;
                }
                _ => place += 1,
            }
        }
        core
    }
}

/// The fewest places that still conflict when none can be left out (QuickXplain).
fn shrink(places: Vec<usize>, conflicts: &dyn Fn(&[usize]) -> bool) -> Vec<usize> {
    if places.is_empty() {
        return places;
    }
    let mut core = part(&[], false, &places, conflicts);
    core.sort_unstable();
    core
}

fn part(kept: &[usize], grown: bool, rest: &[usize], conflicts: &dyn Fn(&[usize]) -> bool) -> Vec<usize> {
    if grown && conflicts(kept) {
        return Vec::new();
    }
    if let &[only] = rest {
        return vec![only];
    }
    let (first, second) = rest.split_at(rest.len() / 2);
    let with_first = [kept, first].concat();
    let from_second = part(&with_first, !first.is_empty(), second, conflicts);
    let with_second = [kept, &from_second].concat();
    let from_first = part(&with_second, !from_second.is_empty(), first, conflicts);
    [from_first, from_second].concat()
}
