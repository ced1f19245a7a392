//! What can be reached from a value through memory.

use caulk_base::Id;
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::object::{ObjId, Object};
use crate::state::State;
use crate::term::{Term, TermId, Terms};

/// So many objects are a list.
const FEW: usize = 8;

/// A set of objects: mostly a few, in the order of their ids, otherwise a bit for each that the function has.
pub(crate) struct Objects {
    few: SmallVec<[ObjId; FEW]>,
    bits: Vec<u64>,
}

impl Objects {
    fn none() -> Self {
        Self { few: SmallVec::new(), bits: Vec::new() }
    }

    /// One of `count`. `false`: it was there already.
    fn insert(&mut self, obj: ObjId, count: usize) -> bool {
        if self.bits.is_empty() {
            let Err(at) = self.few.binary_search(&obj) else { return false };
            if self.few.len() < FEW {
                self.few.insert(at, obj);
                return true;
            }
            self.bits.resize(count.div_ceil(64), 0);
            for obj in std::mem::take(&mut self.few) {
                self.bits[obj.index() / 64] |= 1 << (obj.index() % 64);
            }
        }
        let (word, bit) = (obj.index() / 64, 1 << (obj.index() % 64));
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        is_new
    }

    pub fn contains(&self, obj: ObjId) -> bool {
        self.few.contains(&obj)
            || self.bits.get(obj.index() / 64).is_some_and(|word| word & (1 << (obj.index() % 64)) != 0)
    }

    /// In the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = ObjId> {
        let many = self.bits.iter().enumerate().flat_map(|(at, &word)| {
            let ones = std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
            let ones = ones.take_while(|&left| left != 0);
            ones.map(move |left| ObjId::new(at * 64 + left.trailing_zeros() as usize))
        });
        self.few.iter().copied().chain(many)
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
