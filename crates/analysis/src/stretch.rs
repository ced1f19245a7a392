//! Bytes that were written by a copy of which more is not known than how far it reaches.
//!
//!     struct link { int error; char text[128]; int fd; };
//!
//!     if (n > sizeof link->text - 1)
//!         n = sizeof link->text - 1;
//!     memcpy(link->text, message, n);      // 127 bytes from *arg0 + 4 on: unknown     link->fd: as it was
//!
//! Without an end in sight everything in the object is unknown behind such a copy. A stretch is a cell of more bytes than
//! a value has, so callers hear of it as of other cells.
//!
//! # Invariants
//! - Stretches overlap no other cell: a value that is written into one cuts it, and one that may or may not be
//!   overwritten stays, if it may hold on to something.

use caulk_ir::InstId;

use crate::engine::Engine;
use crate::merge::BLOCK_SITE;
use crate::object::ObjId;
use crate::place::Off;
use crate::state::{Cell, State, is_summary, put};
use crate::term::{Term, TermId, Terms};

/// The longest value.
const VALUE: u64 = 16;
/// Longer copies are seldom parts of a struct.
const LONGEST: i64 = 4096;
/// The name of what a copy leaves there, beside other values of the instruction.
const COPIED: u32 = 9;

impl Cell {
    pub fn is_stretch(&self) -> bool {
        self.size > VALUE
    }

    /// What is left of a stretch where a value is written into it.
    pub(crate) fn cut(&self, at: i64, by: i64, size: u64) -> impl Iterator<Item = (i64, Cell)> + use<> {
        let end = at.saturating_add_unsigned(self.size);
        let parts = [(at, by), (by.saturating_add_unsigned(size), end)];
        let term = self.term;
        parts.into_iter().filter(|(from, to)| from < to).map(move |(from, to)| {
            // Of a word somebody could think that it is a pointer.
            let size = match (to - from) as u64 {
                8 => 7,
                other => other,
            };
            (from, Cell { term, size })
        })
    }
}

impl State {
    /// Since when the bytes there are unknown, if a stretch covers them.
    pub(crate) fn stretched(&self, terms: &Terms, obj: ObjId, off: Off, size: u64) -> Option<u32> {
        let covered = |at: i64, cell: &Cell| match off {
            Off::At(from) => at < from.saturating_add_unsigned(size) && from < at.saturating_add_unsigned(cell.size),
            Off::Elem(_, from) => from < at.saturating_add_unsigned(cell.size),
            Off::Some => true,
        };
        let found = self.cells_of(obj).find_map(|((_, at), cell)| match at {
            Off::At(at) if cell.is_stretch() && covered(*at, cell) => Some(cell.term),
            _ => None,
        })?;
        Some(match *terms.get(found) {
            Term::Content { epoch, .. } => epoch,
            Term::Sym { site, .. } if site >= BLOCK_SITE => site,
            Term::Sym { site, .. } => site + 1,
            _ => u32::MAX - size as u32,
        })
    }

    /// Notes a stretch. Cells in it that hold something stay: it may not have come so far.
    pub(crate) fn stretch(&mut self, terms: &Terms, obj: ObjId, at: i64, size: u64, term: TermId) {
        let end = at.saturating_add_unsigned(size);
        let meets = |off: Off, cell: &Cell| matches!(off, Off::At(from) if from < end && at < from.saturating_add_unsigned(cell.size));
        self.cells.retain(|((of, off), cell)| *of != obj || !meets(*off, cell) || terms.is_held_by_name(cell.term));
        let stays: Vec<(i64, i64)> = self
            .cells_of(obj)
            .filter_map(|((_, off), cell)| match off {
                Off::At(from) if meets(*off, cell) => Some((*from, from.saturating_add_unsigned(cell.size))),
                _ => None,
            })
            .collect();
        let mut from = at;
        for (start, stop) in stays.into_iter().chain([(end, end)]) {
            if from < start {
                let cell = Cell { term, size: (start - from) as u64 };
                put(&mut self.cells, (obj, Off::At(from)), cell);
            }
            from = from.max(stop);
        }
    }
}

impl Engine<'_> {
    /// How many bytes a copy of this length writes at most, as far as that is of use.
    pub(crate) fn reach(&self, state: &State, len: TermId) -> Option<i64> {
        // A struct is copied as a whole.
        if self.terms.as_int(len).is_some_and(|len| len % 8 == 0) {
            return None;
        }
        let range = state.facts.range(&self.terms, len);
        (!self.limits.wary && range.lo >= 0 && (VALUE as i64 + 1..=LONGEST).contains(&range.hi)).then_some(range.hi)
    }

    /// So many bytes are unknown since this copy.
    pub(crate) fn stretch(&mut self, state: &mut State, obj: ObjId, at: i64, reach: i64, id: InstId) {
        let term = self.terms.sym(id.0, COPIED);
        self.note_stretch(state, (obj, at), reach as u64, term, id);
    }

    /// The same, as a callee has left it.
    pub(crate) fn note_stretch(
        &mut self,
        state: &mut State,
        (obj, at): (ObjId, i64),
        size: u64,
        term: TermId,
        id: InstId,
    ) {
        if is_summary(&self.terms, obj) {
            put(&mut state.epochs, obj, id.0 + 1);
            return;
        }
        self.terms.has_stretches = true;
        state.stretch(&self.terms, obj, at, size, term);
    }
}
