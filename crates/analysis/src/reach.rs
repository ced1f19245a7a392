//! What can be reached from a value through memory.

use caulk_base::Id;
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::object::{ObjId, ObjState, Object};
use crate::state::State;
use crate::term::{Term, TermId};

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

    /// The objects of a state for which `is_asked` says yes and which cannot be reached from the terms.
    pub(crate) fn unreached(
        &self,
        state: &State,
        roots: &[TermId],
        is_asked: impl Fn(ObjId, &ObjState) -> bool,
    ) -> SmallVec<[ObjId; 8]> {
        // Most are held by name, or lie in one that is: they need not be searched for.
        let mut left = self.unnamed(state, roots.iter().copied(), is_asked);
        if !left.is_empty() {
            let reached = self.reachable(state, roots.iter().copied());
            left.retain(|id| !reached.contains(*id));
        }
        left
    }

    /// The objects of a state for which `is_asked` says yes and of which the terms do not speak, nor what lies in those
    /// of which they do.
    pub(crate) fn unnamed(
        &self,
        state: &State,
        roots: impl IntoIterator<Item = TermId>,
        is_asked: impl Fn(ObjId, &ObjState) -> bool,
    ) -> SmallVec<[ObjId; 8]> {
        let asked = state.objs.iter().filter(|(id, obj)| is_asked(*id, obj));
        let mut left: SmallVec<[ObjId; 8]> = asked.map(|entry| entry.0).collect();
        let mut open: SmallVec<[ObjId; 8]> = SmallVec::new();
        let mut strike = |term: TermId, open: &mut SmallVec<[ObjId; 8]>| {
            if self.terms.holds_block(term) {
                for obj in self.terms.mentions(term) {
                    if let Some(at) = left.iter().position(|id| id == obj) {
                        left.remove(at);
                        open.push(*obj);
                    }
                }
            }
            !left.is_empty()
        };
        let mut some_left = roots.into_iter().all(|term| strike(term, &mut open));
        while some_left && let Some(obj) = open.pop() {
            some_left = state.cells_of(obj).all(|entry| strike(entry.1.term, &mut open))
                && state.weak_of(obj).all(|term| strike(term, &mut open));
        }
        left
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
