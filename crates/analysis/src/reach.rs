//! What can be reached from a value through memory.

use caulk_base::Id;
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::object::{ObjId, Object};
use crate::state::State;
use crate::term::{Term, TermId, Terms};

/// A set of objects, a bit for each that the function has. Many are empty: those have no bits.
pub(crate) struct Objects {
    bits: SmallVec<[u64; 8]>,
}

impl Objects {
    fn none() -> Self {
        Self { bits: SmallVec::new() }
    }

    /// One of `count`. `false`: it was there already.
    fn insert(&mut self, obj: ObjId, count: usize) -> bool {
        if self.bits.is_empty() {
            self.bits.resize(count.div_ceil(64), 0);
        }
        let (word, bit) = (obj.index() / 64, 1 << (obj.index() % 64));
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        is_new
    }

    pub fn contains(&self, obj: ObjId) -> bool {
        self.bits.get(obj.index() / 64).is_some_and(|word| word & (1 << (obj.index() % 64)) != 0)
    }

    /// In the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = ObjId> {
        self.bits.iter().enumerate().flat_map(|(at, &word)| {
            let ones = std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
            let ones = ones.take_while(|&left| left != 0);
            ones.map(move |left| ObjId::new(at * 64 + left.trailing_zeros() as usize))
        })
    }
}

/// Objects that are looked for. Most are held by name, or lie in one that is: they need not be searched for.
pub(crate) struct Sought<'a> {
    terms: &'a Terms,
    state: &'a State,
    /// What was not found yet, in the order of the state.
    pub left: SmallVec<[ObjId; 8]>,
    open: SmallVec<[ObjId; 8]>,
}

impl<'a> Sought<'a> {
    pub fn new(terms: &'a Terms, state: &'a State, left: SmallVec<[ObjId; 8]>) -> Self {
        Self { terms, state, left, open: SmallVec::new() }
    }

    /// Strikes out those of which the terms speak, and what lies in those.
    pub fn strike(&mut self, terms: impl IntoIterator<Item = TermId>) {
        for term in terms {
            if self.left.is_empty() {
                return;
            }
            self.strike_one(term);
        }
        while !self.left.is_empty()
            && let Some(obj) = self.open.pop()
        {
            let state = self.state;
            state.cells_of(obj).for_each(|entry| self.strike_one(entry.1.term));
            state.weak_of(obj).for_each(|term| self.strike_one(term));
        }
    }

    #[inline]
    fn strike_one(&mut self, term: TermId) {
        if self.terms.holds_block(term) {
            for obj in self.terms.mentions(term) {
                if let Some(at) = self.left.iter().position(|id| id == obj) {
                    self.left.remove(at);
                    self.open.push(*obj);
                }
            }
        }
    }
}

impl Engine<'_> {
    /// All objects that can be reached from the terms through memory, themselves included.
    pub(crate) fn reachable(&self, state: &State, roots: impl IntoIterator<Item = TermId>) -> Objects {
        let mut seen = Objects::none();
        let mut open: SmallVec<[ObjId; 16]> = SmallVec::new();
        for term in roots {
            self.add_reached(term, &mut seen, &mut open);
        }
        while let Some(obj) = open.pop() {
            for (_, cell) in state.cells_of(obj) {
                self.add_reached(cell.term, &mut seen, &mut open);
            }
            for term in state.weak_of(obj) {
                self.add_reached(term, &mut seen, &mut open);
            }
            if let Object::Deref(base) = *self.terms.object(obj) {
                self.add_reached(base, &mut seen, &mut open);
            }
        }
        seen
    }

    fn add_reached(&self, term: TermId, seen: &mut Objects, open: &mut SmallVec<[ObjId; 16]>) {
        let pointee = match *self.terms.get(term) {
            Term::Int(_) => return,
            Term::Addr { obj, .. } => Some(obj),
            Term::Elem { base, .. } => match *self.terms.get(base) {
                Term::Addr { obj, .. } => Some(obj),
                _ => self.terms.known_deref(base),
            },
            _ => self.terms.known_deref(term),
        };
        for &obj in self.terms.mentions(term).iter().chain(&pointee) {
            if seen.insert(obj, self.terms.objects()) {
                open.push(obj);
            }
        }
    }
}
