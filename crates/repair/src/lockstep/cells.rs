//! Local structures that nobody else knows: what one function keeps in them is as good as a variable of its own.
//!
//! ```c
//! return parse(copy);                struct point result = parse(copy);      a new structure, and copies of it
//!                            ──►     free(copy);
//!                                    return result;
//! ```
//!
//! # Invariants
//! - Cells of one slot do not overlap. What no cell covers was never written.

use caulk_ir::{InstId, Op, Ty, ValueId, ValueKind};

use super::exec::Runner;
use super::side::Side;
use super::state::State;
use super::terms::{Member, Term, TermId, Which, size};

/// A range of bytes in a slot.
type Range = (i64, i64);

impl Runner<'_> {
    /// The slot that an address lies in, if nobody else knows it, and the offset.
    pub fn private(&self, ptr: TermId) -> Option<(InstId, i64)> {
        let (root, at) = self.terms.place(ptr);
        match *self.terms.get(root) {
            Term::Private(_, slot) => at.map(|at| (slot, at)),
            _ => None,
        }
    }

    /// What an instruction reads or copies from a slot.
    pub fn load_cell(&mut self, which: Which, state: &State, (slot, at): (InstId, i64), ty: Ty) -> TermId {
        let length = self.length(which, (slot, at), ty);
        self.load_range(which, state, slot, (at, length), ty)
    }

    fn load_range(&mut self, which: Which, state: &State, slot: InstId, range: Range, ty: Ty) -> TermId {
        let inside = cells(which, slot, state).into_iter().filter(|(cell, _)| meet(*cell, range));
        let inside: Vec<(Range, TermId)> = inside.collect();
        match inside[..] {
            [] => self.terms.put(Term::Undef, ty),
            [(cell, term)] if cell == range && self.terms.ty(term) == ty => term,
            [(cell, term)] if cell.0 <= range.0 && end(range) <= end(cell) => self.cut(term, range.0 - cell.0, ty),
            _ => {
                let parts = self.parts(&inside, range).into_iter().map(|((at, _), part)| (at, part)).collect();
                self.terms.put(Term::Parts(parts), ty)
            }
        }
    }

    /// What of the cells lies in a range, counted from its start.
    fn parts(&mut self, inside: &[(Range, TermId)], range: Range) -> Vec<(Range, TermId)> {
        let mut parts = Vec::new();
        for (cell, term) in inside {
            let (from, to) = (cell.0.max(range.0), end(*cell).min(end(range)));
            let whole = (from, to - from) == *cell;
            let part = if whole { *term } else { self.cut(*term, from - cell.0, bytes(to - from)) };
            parts.push(((from - range.0, to - from), part));
        }
        parts
    }

    /// What an instruction writes to a slot.
    pub fn store_cell(&mut self, which: Which, state: &mut State, (slot, at): (InstId, i64), value: TermId) {
        let length = self.length(which, (slot, at), self.terms.ty(value));
        self.store_range(which, state, slot, (at, length), value);
    }

    fn store_range(&mut self, which: Which, state: &mut State, slot: InstId, range: Range, value: TermId) {
        self.clear_cells(which, state, slot, range);
        if range.1 > 0 {
            state.values.insert(Member::Cell(which, slot, range.0, range.1), value);
        }
    }

    /// How many bytes a value takes up. Floating types do not tell: it is as far as the next part.
    fn length(&self, which: Which, (slot, at): (InstId, i64), ty: Ty) -> i64 {
        let next = || self.side(which).edges.get(&slot)?.iter().find(|edge| **edge > at);
        match ty {
            Ty::Float => next().map_or(size(ty), |next| (next - at).min(size(ty))),
            _ => size(ty),
        }
    }

    /// Cuts a range out of all cells.
    fn clear_cells(&mut self, which: Which, state: &mut State, slot: InstId, (at, length): Range) {
        for (cell, term) in cells(which, slot, state) {
            if !meet(cell, (at, length)) {
                continue;
            }
            state.values.remove(&Member::Cell(which, slot, cell.0, cell.1));
            for (from, to) in [(cell.0, at), (at + length, end(cell))] {
                if from < to {
                    let part = self.cut(term, from - cell.0, bytes(to - from));
                    state.values.insert(Member::Cell(which, slot, from, to - from), part);
                }
            }
        }
    }

    /// Copies into a slot, from another one or from memory.
    pub fn copy_cells(
        &mut self,
        which: Which,
        state: &mut State,
        to: (InstId, i64),
        src: TermId,
        length: i64,
        at: InstId,
    ) {
        let Some((from, start)) = self.private(src) else {
            let value = self.load(which, state, src, bytes(length), at);
            return self.store_cell(which, state, to, value);
        };
        let range = (start, length);
        let inside = cells(which, from, state).into_iter().filter(|(cell, _)| meet(*cell, range));
        let inside: Vec<(Range, TermId)> = inside.collect();
        let moved = self.parts(&inside, range);
        self.clear_cells(which, state, to.0, (to.1, length));
        for ((offset, length), term) in moved {
            self.store_range(which, state, to.0, (to.1 + offset, length), term);
        }
    }

    pub fn fill_cells(&mut self, which: Which, state: &mut State, to: (InstId, i64), byte: TermId, length: i64) {
        let value = self.terms.put(Term::Filled(byte), bytes(length));
        self.store_cell(which, state, to, value);
    }

    /// A part of a value.
    fn cut(&mut self, whole: TermId, at: i64, ty: Ty) -> TermId {
        match *self.terms.get(whole) {
            Term::Filled(byte) if self.terms.number(byte) == Some(0) => match ty {
                Ty::Int(bits) => self.terms.int(0, bits),
                Ty::Ptr => self.terms.put(Term::Null, Ty::Ptr),
                _ => self.terms.put(Term::Filled(byte), ty),
            },
            Term::Filled(byte) if matches!(ty, Ty::Aggregate(_)) => self.terms.put(Term::Filled(byte), ty),
            Term::Undef => self.terms.put(Term::Undef, ty),
            Term::Extract(inner, before) if at >= 0 => self.terms.put(Term::Extract(inner, before + at as u64), ty),
            _ => self.terms.put(Term::Extract(whole, at.max(0) as u64), ty),
        }
    }

    /// Gives two states the same cells, so that they can be joined.
    pub fn level_cells(&mut self, one: &mut State, other: &mut State) {
        let (first, second) = (all_cells(one), all_cells(other));
        for (wanted, to) in [(first, &mut *other), (second, &mut *one)] {
            for (member, term) in wanted {
                let Member::Cell(which, slot, at, length) = member else { continue };
                let ty = self.terms.ty(term);
                if to.values.contains_key(&member) {
                    continue;
                }
                let value = self.load_range(which, to, slot, (at, length), ty);
                self.store_range(which, to, slot, (at, length), value);
            }
        }
    }
}

fn all_cells(state: &State) -> Vec<(Member, TermId)> {
    let cell = |entry: &(&Member, &TermId)| matches!(entry.0, Member::Cell(..));
    state.values.iter().filter(cell).map(|(member, term)| (*member, *term)).collect()
}

/// The cells of one slot, in order.
fn cells(which: Which, slot: InstId, state: &State) -> Vec<(Range, TermId)> {
    let all = Member::Cell(which, slot, i64::MIN, 0)..=Member::Cell(which, slot, i64::MAX, i64::MAX);
    let of = |(member, term): (&Member, &TermId)| match member {
        Member::Cell(_, _, at, length) => Some(((*at, *length), *term)),
        _ => None,
    };
    state.values.range(all).filter_map(of).collect()
}

fn end(range: Range) -> i64 {
    range.0.saturating_add(range.1)
}

fn meet(a: Range, b: Range) -> bool {
    a.0 < end(b) && b.0 < end(a)
}

fn bytes(length: i64) -> Ty {
    Ty::Aggregate(u64::try_from(length).unwrap_or(0))
}

/// Slots whose address goes nowhere, and of which every part that is read or written is known by its place; with the
/// offsets of these parts, and the end.
pub fn private_slots(side: &Side<'_>) -> Vec<(InstId, Vec<i64>)> {
    let function = side.function;
    let number = |value: ValueId| matches!(function.values[value].kind, ValueKind::Int(_));
    let mut found = Vec::new();
    for (id, slot) in function.insts.iter_ids() {
        let Op::Alloca { size, count: None, .. } = slot.op else { continue };
        let mut derived: Vec<(ValueId, i64)> = slot.result.into_iter().map(|result| (result, 0)).collect();
        let knows = |derived: &[(ValueId, i64)], value: &ValueId| derived.iter().any(|entry| entry.0 == *value);
        let known = function.insts.iter().all(|inst| {
            let mut reads = false;
            inst.op.visit_operands(|value| reads |= knows(&derived, &value));
            match &inst.op {
                _ if !reads => true,
                Op::Offset { base, bytes, indices, .. } => {
                    let start = derived.iter().find(|entry| entry.0 == *base).map(|entry| entry.1);
                    derived.extend(inst.result.zip(start.map(|start| start.saturating_add(*bytes))));
                    start.is_some() && indices.is_empty()
                }
                Op::Load { .. } | Op::Bind { .. } => true,
                Op::Store { value, .. } => !knows(&derived, value),
                Op::Copy { len, .. } | Op::Fill { len, .. } => number(*len),
                _ => false,
            }
        });
        if known {
            let mut edges: Vec<i64> = derived.into_iter().map(|entry| entry.1).collect();
            edges.push(i64::try_from(size).unwrap_or(i64::MAX));
            edges.sort_unstable();
            found.push((id, edges));
        }
    }
    found
}
