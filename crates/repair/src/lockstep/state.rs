//! What is known where the two functions stand: which value is which term, what was assumed on the way, and what only one
//! of them has done.
//!
//! ```text
//!                                old            new            known
//!     if (!p) return -1;                                       p = t1 in both, t1 is not null
//!     free(p);                   free(t1)       free(t1)       t1 is gone
//!     p = NULL;                                 p := null      p is t1 in the old, null in the new function
//!     if (p) use(p);             t1 != null?    null != null?  only the old one asks; if t1 is not null, it goes wrong
//! ```
//!
//! # Invariants
//! - Where paths meet, values stay equal only if they were on both, and a name that was made on the way is made anew: two
//!   rounds of a loop never share one.
//! - Joining only ever forgets, so that it comes to an end.

use std::collections::{BTreeMap, BTreeSet};

use caulk_ir::{CmpOp, Ty};

use super::terms::{Meeting, Member, Term, TermId, Terms};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub values: BTreeMap<Member, TermId>,
    /// What terms are known to be, constants all.
    pub known: BTreeMap<TermId, TermId>,
    /// Pointers to blocks that the old function has released, and numbers of what it has closed.
    pub gone: BTreeSet<TermId>,
    /// Pointers to blocks that the new function alone has released.
    pub freed: BTreeSet<TermId>,
    /// Releases of the old function that the new one has yet to do.
    pub owed: BTreeSet<TermId>,
    /// Variables that the new function has given a first value, and nobody has in the old one: there, anything may be found,
    /// and so this value as well.
    pub unset: BTreeSet<TermId>,
    /// The old function has decided something that the new one knows: it goes a way of its own.
    pub parted: bool,
    /// On a way of its own, the old function has looked into a block that it has released, or it has surely released one
    /// again: what comes then is no measure.
    pub wrong: bool,
}

impl State {
    pub fn new(terms: &mut Terms) -> Self {
        let memory = terms.put(Term::Memory, Ty::Void);
        Self {
            values: BTreeMap::from([(Member::Memory, memory)]),
            known: BTreeMap::new(),
            gone: BTreeSet::new(),
            freed: BTreeSet::new(),
            owed: BTreeSet::new(),
            unset: BTreeSet::new(),
            parted: false,
            wrong: false,
        }
    }

    pub fn memory(&self) -> TermId {
        self.values[&Member::Memory]
    }

    /// Addresses at which the new function has written something else.
    pub fn written(&self) -> Vec<(TermId, TermId)> {
        let of = |(member, value): (&Member, &TermId)| match member {
            Member::Written(at) => Some((*at, *value)),
            _ => None,
        };
        self.values.iter().filter_map(of).collect()
    }

    /// Both functions have the same at an address again.
    pub fn is_written_by_both(&mut self, address: TermId) {
        self.values.remove(&Member::Written(address));
        self.unset.remove(&address);
    }

    /// What the new function has put into a variable that has no value in the old one.
    pub fn first_value(&self, address: TermId) -> Option<TermId> {
        self.values.get(&Member::Written(address)).copied().filter(|_| self.unset.contains(&address))
    }

    /// A term, or the constant that it is known to be.
    pub fn resolved(&self, terms: &mut Terms, id: TermId) -> TermId {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        match *terms.get(id) {
            Term::Cmp(op, a, b) => {
                let (x, y) = (self.known.get(&a), self.known.get(&b));
                if x.is_none() && y.is_none() {
                    return id;
                }
                terms.cmp(op, *x.unwrap_or(&a), *y.unwrap_or(&b))
            }
            Term::Bin(caulk_ir::BinOp::Xor, a, b) => {
                let inner = self.resolved(terms, a);
                let ty = terms.ty(id);
                if inner == a { id } else { terms.bin(caulk_ir::BinOp::Xor, inner, b, ty) }
            }
            Term::Cast(op, a) => {
                let inner = self.resolved(terms, a);
                let ty = terms.ty(id);
                if inner == a { id } else { terms.cast(op, inner, ty) }
            }
            _ => id,
        }
    }

    pub fn are_same(&self, terms: &mut Terms, a: TermId, b: TermId) -> bool {
        a == b || self.resolved(terms, a) == self.resolved(terms, b)
    }

    /// Goes on where a condition holds, or does not; false, if that cannot be.
    pub fn assume(&mut self, terms: &mut Terms, condition: TermId, holds: bool) -> bool {
        let (condition, same) = terms.condition(condition);
        let holds = holds == same;
        let now = self.resolved(terms, condition);
        if let Some(number) = terms.number(now) {
            return (number != 0) == holds;
        }
        let truth = terms.truth(holds);
        self.known.insert(condition, truth);
        if let Term::Cmp(CmpOp::Eq, a, b) = *terms.get(condition)
            && holds
            && terms.is_constant(b)
        {
            self.known.insert(a, b);
        }
        true
    }

    /// Assumes that a pointer is null.
    pub fn assume_null(&mut self, terms: &mut Terms, pointer: TermId) -> bool {
        let null = terms.put(Term::Null, Ty::Ptr);
        let test = terms.cmp(CmpOp::Eq, pointer, null);
        self.assume(terms, test, true)
    }

    /// What holds in both states, where they meet. `None`: they cannot be told as one.
    pub fn joined(&self, other: &Self, at: Meeting, terms: &mut Terms) -> Option<Self> {
        let mut join = Join::new(at);
        let plain = |entry: &(&Member, &TermId)| !matches!(entry.0, Member::Written(_));
        for (member, mine) in self.values.iter().filter(plain) {
            if let Some(theirs) = other.values.get(member) {
                join.members.entry((*mine, *theirs)).or_insert(*member);
            }
        }
        let mut values = BTreeMap::new();
        for (member, mine) in self.values.iter().filter(plain) {
            if let Some(theirs) = other.values.get(member) {
                values.insert(*member, join.name(terms, *mine, *theirs)?);
            }
        }
        let here = Names::new(join.named.iter().map(|((mine, _), name)| (*mine, *name)));
        let there = Names::new(join.named.iter().map(|((_, theirs), name)| (*theirs, *name)));
        let (mine, theirs) = (here.written(terms, self)?, there.written(terms, other)?);
        if !mine.keys().eq(theirs.keys()) {
            return None;
        }
        for ((address, mine), theirs) in mine.iter().zip(theirs.values()) {
            if terms.ty(*mine) != terms.ty(*theirs) {
                return None;
            }
            let member = Member::Written(*address);
            join.members.entry((*mine, *theirs)).or_insert(member);
            values.insert(member, join.name(terms, *mine, *theirs)?);
        }
        let (gone, their_gone) = (here.all(terms, &self.gone), there.all(terms, &other.gone));
        let (freed, their_freed) = (here.all(terms, &self.freed), there.all(terms, &other.freed));
        let (owed, their_owed) = (here.all(terms, &self.owed), there.all(terms, &other.owed));
        if owed != their_owed || owed.len() < self.owed.len() || their_owed.len() < other.owed.len() {
            return None;
        }
        let (unset, their_unset) = (here.all(terms, &self.unset), there.all(terms, &other.unset));
        let (known, their_known) = (here.facts(terms, &self.known), there.facts(terms, &other.known));
        Some(Self {
            values,
            known: known.into_iter().filter(|(term, value)| their_known.get(term) == Some(value)).collect(),
            gone: gone.intersection(&their_gone).copied().collect(),
            freed: freed.intersection(&their_freed).copied().collect(),
            owed,
            unset: unset.intersection(&their_unset).copied().collect(),
            parted: self.parted && other.parted,
            wrong: self.wrong && other.wrong,
        })
    }
}

/// The names of pairs of terms, one of each state, that are one value from here on.
struct Join {
    at: Meeting,
    /// The first of those that had such a pair of values.
    members: BTreeMap<(TermId, TermId), Member>,
    named: BTreeMap<(TermId, TermId), TermId>,
}

impl Join {
    fn new(at: Meeting) -> Self {
        Self { at, members: BTreeMap::new(), named: BTreeMap::new() }
    }

    /// `i + 1` of one state and `j + 1` of the other are `k + 1`, if somebody had `i` in one and `j` in the other.
    fn name(&mut self, terms: &mut Terms, mine: TermId, theirs: TermId) -> Option<TermId> {
        if mine == theirs && terms.is_timeless(mine) {
            return Some(mine);
        }
        if let Some(name) = self.named.get(&(mine, theirs)) {
            return Some(*name);
        }
        let member = self.members.get(&(mine, theirs)).copied();
        let whole = terms.paired(mine, theirs, &mut |terms, mine, theirs| self.name(terms, mine, theirs));
        let name = match (whole, member) {
            (Some(whole), _) => whole,
            (None, Some(member)) => terms.put(Term::Joined(self.at, member), terms.ty(mine)),
            (None, None) => return None,
        };
        self.named.insert((mine, theirs), name);
        Some(name)
    }
}

/// How terms of one state are called in the state that it goes into.
struct Names(BTreeMap<TermId, Vec<TermId>>);

impl Names {
    fn new(all: impl Iterator<Item = (TermId, TermId)>) -> Self {
        let mut names: BTreeMap<TermId, Vec<TermId>> = BTreeMap::new();
        for (term, name) in all {
            names.entry(term).or_default().push(name);
        }
        Self(names)
    }

    /// All names of a term: what was one value may be called differently from now on.
    fn of(&self, terms: &mut Terms, term: TermId) -> Vec<TermId> {
        let mut names = self.0.get(&term).cloned().unwrap_or_default();
        let mut first = |part: TermId| self.0.get(&part).and_then(|names| names.first()).copied();
        if let Some(made) = terms.rebuilt(term, &mut first)
            && !names.contains(&made)
        {
            names.push(made);
        }
        names
    }

    /// What the new function has written, by the names of the addresses. `None`: one of them has none.
    fn written(&self, terms: &mut Terms, state: &State) -> Option<BTreeMap<TermId, TermId>> {
        state.written().into_iter().map(|(address, value)| Some((*self.of(terms, address).last()?, value))).collect()
    }

    fn all(&self, terms: &mut Terms, set: &BTreeSet<TermId>) -> BTreeSet<TermId> {
        set.iter().flat_map(|term| self.of(terms, *term)).collect()
    }

    fn facts(&self, terms: &mut Terms, facts: &BTreeMap<TermId, TermId>) -> BTreeMap<TermId, TermId> {
        facts.iter().flat_map(|(term, value)| self.of(terms, *term).into_iter().map(|name| (name, *value))).collect()
    }
}
