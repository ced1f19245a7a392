//! Reading, writing, copying and filling memory.
//!
//!     struct conf conf = DEFAULTS;      // copy from a constant: its fields are known
//!     memcpy(&copy, &conf, sizeof conf);// the same cells, at the same offsets
//!     memset(&conf, 0, sizeof conf);    // all zero: unlisted cells read as 0

use caulk_ir::{InitValue, InstId, Target, Ty};

use crate::commons::is_common;
use crate::engine::Engine;
use crate::exec::size_of;
use crate::object::{ObjId, ObjState, Object};
use crate::place::Off;
use crate::state::{Cell, State, put};
use crate::term::{Term, TermId, ZERO};
use crate::trace::Event;

/// Of a larger structure only what is known is copied.
const LARGEST_COPY: i64 = 128;

/// Parts of structs up to this size are filled field by field.
pub(crate) const LARGEST_PART: i64 = 256;

impl Engine<'_> {
    /// May somebody else write a number there, seen by one who takes nothing for granted?
    pub(crate) fn may_change(&mut self, state: &State, ptr: TermId, term: TermId) -> bool {
        let Some((obj, _)) = self.terms.pointee(ptr) else { return false };
        let ours = match self.terms.object(obj) {
            Object::Stack(_) => true,
            Object::Heap { .. } => state.obj(obj).is_some_and(|known| !known.escaped),
            _ => false,
        };
        !ours && self.terms.mentions(term).is_empty()
    }

    /// May the number have more bits than these?
    pub(crate) fn is_cut(&self, state: &State, number: TermId, bits: u32) -> bool {
        let range = state.facts.range(&self.terms, number);
        let limit = 1i64 << (bits.clamp(1, 63) - 1);
        bits < 64 && self.terms.mentions(number).is_empty() && (range.lo < -limit || range.hi >= limit)
    }

    /// Reads a value of the type; aggregates become hidden slots.
    pub(crate) fn load_from(&mut self, state: &mut State, ptr: TermId, ty: Ty, id: InstId) -> TermId {
        if let Ty::Aggregate(bytes) = ty {
            let obj = self.terms.intern_object(Object::Stack(id));
            let place = self.terms.addr(obj, 0);
            self.copy(state, place, ptr, Some(bytes as i64), id);
            return place;
        }
        let Some((obj, off)) = self.terms.pointee(ptr) else { return self.terms.sym(id.0, 0) };
        let mut term = state.load(&mut self.terms, obj, off, size_of(ty));
        let since = self.changed_unseen(state, obj, ty == Ty::Ptr);
        if let Term::Content { obj: of, off: at, epoch } = *self.terms.get(term)
            && of == obj
            && at == off
            && epoch < since
        {
            term = self.terms.content(obj, off, since);
        }
        if let Term::Content { obj: of, off: Off::At(at), epoch: 0 } = *self.terms.get(term)
            && of == obj
            && let Object::Global(global) = *self.terms.object(obj)
            && (self.knowledge.is_constant(global) || ty == Ty::Ptr && self.knowledge.comes_first(global))
        {
            return self.initial(global, at).unwrap_or(ZERO);
        }
        self.terms.note_read(term, ty == Ty::Ptr);
        term
    }

    /// Since when something that does not say which object it writes to may have changed this one.
    pub(crate) fn changed_unseen(&self, state: &State, obj: ObjId, pointer: bool) -> u32 {
        let aliased = pointer
            && state.aliased != 0
            && matches!(self.terms.object(obj), Object::Deref(_) | Object::Global(_))
            && !self.is_out_of_reach(obj);
        let stirred = state.stirred != 0 && is_common(&self.terms, obj);
        (if aliased { state.aliased } else { 0 }).max(if stirred { state.stirred } else { 0 })
    }

    /// A variable for a function to which no pointer leads: whoever writes it does so by its name.
    pub(crate) fn is_out_of_reach(&self, obj: ObjId) -> bool {
        matches!(*self.terms.object(obj), Object::Global(global) if self.knowledge.is_hook(global))
    }

    /// Where a global's initialiser says something, and how many bytes it takes there.
    fn initialised(&self, global: caulk_ir::GlobalId) -> Vec<(i64, u64)> {
        let size = |value: &InitValue| match value {
            InitValue::Int(_, bytes) => u64::from(*bytes),
            InitValue::Address(..) => 8,
        };
        self.knowledge.initial(global).init.iter().map(|init| (init.offset as i64, size(&init.value))).collect()
    }

    /// What a global's initialiser holds at an offset; `None` where it says nothing.
    pub(crate) fn initial(&mut self, global: caulk_ir::GlobalId, at: i64) -> Option<TermId> {
        let (unit, _) = self.program.globals[global];
        let program = self.program;
        let init = self.knowledge.initial(global).init.iter().find(|init| init.offset as i64 == at)?;
        match init.value {
            InitValue::Int(value, _) => Some(self.terms.int(value)),
            InitValue::Address(symbol, off) => match program.target(unit, symbol) {
                Target::Functions(all) if all.len() == 1 => Some(self.terms.func(all[0])),
                Target::Globals(all) if !all.is_empty() => {
                    let obj = self.terms.intern_object(Object::Global(all[0]));
                    Some(self.terms.addr(obj, off))
                }
                Target::Extern(id) => {
                    let obj = self.terms.intern_object(Object::External(*id));
                    Some(self.terms.addr(obj, off))
                }
                _ => None,
            },
        }
    }

    pub(crate) fn store_to(&mut self, state: &mut State, ptr: TermId, ty: Ty, term: TermId, id: InstId) {
        if let Ty::Aggregate(bytes) = ty {
            self.copy(state, ptr, term, Some(bytes as i64), id);
            return;
        }
        let Some((obj, off)) = self.terms.pointee(ptr) else {
            self.escape(state, term);
            return;
        };
        if self.is_nameless(ptr, obj) {
            self.escape(state, term);
        }
        let overwrites = state.cells.binary_search_by_key(&(obj, off), |entry| entry.0).is_ok_and(|at| {
            let old = state.cells[at].1.term;
            !self.terms.mentions(old).is_empty() || matches!(self.terms.get(old), Term::Content { .. } | Term::Param(_))
        }) || state.objs.iter().any(|(_, known)| known.owned);
        // Some element of an input, callers cannot be told which: `queue[n++] = words[i];`.
        if let Term::Content { obj: from, off: Off::Elem(..) | Off::Some, .. } = *self.terms.get(term)
            && size_of(ty) == 8
            && from != obj
            && self.terms.is_private(term)
            && !matches!(self.terms.object(obj), Object::Stack(_))
        {
            self.note_sent(state, from, Off::At(0));
        }
        state.store(&self.terms, obj, off, size_of(ty), term);
        self.note_within(state, obj, term, Some(id));
        if ty == Ty::Ptr && off == Off::At(0) && matches!(self.terms.get(ptr), Term::Content { .. }) {
            state.aliased = id.0 + 1;
        }
        for held in self.terms.mentions(term).to_vec() {
            self.ever_bound.insert(held);
            state.record(Event::Store { inst: id, obj: held });
            if let Some(entry) = state.obj_mut(held) {
                entry.touched = Some(id);
            }
        }
        if self.is_shared(state, obj) {
            state.written(id);
        }
        if overwrites {
            self.collect_within(state, id);
        }
    }

    /// One of several places, or one that somebody gave us: whoever it belongs to holds what is put there.
    fn is_nameless(&self, ptr: TermId, obj: ObjId) -> bool {
        let several = |base: TermId| matches!(self.terms.get(base), Term::Ite(..) | Term::Bin(..));
        let unknown = |base: TermId| matches!(self.terms.get(base), Term::Sym { .. } | Term::Pure(_));
        let mut array = ptr;
        while let Term::Elem { base, .. } = *self.terms.get(array) {
            array = base;
        }
        several(array) || matches!(*self.terms.object(obj), Object::Deref(base) if several(base) || unknown(base))
    }

    /// A reference may have been destroyed by this very instruction. Values that are still needed in
    /// this block keep theirs.
    pub(crate) fn collect_within(&mut self, state: &mut State, id: InstId) {
        self.collect(state, Some(id), None);
    }

    /// Can others see what is written there?
    pub(crate) fn is_shared(&self, state: &State, obj: ObjId) -> bool {
        match self.terms.object(obj) {
            Object::Stack(_) => false,
            Object::Heap { .. } => state.obj(obj).is_some_and(|known| known.escaped),
            _ => true,
        }
    }

    pub(crate) fn copy(&mut self, state: &mut State, dst: TermId, src: TermId, len: Option<i64>, id: InstId) {
        self.copy_as_far(state, dst, src, len, None, id);
    }

    /// `reach`: how many bytes are written at most, if that is known.
    pub(crate) fn copy_as_far(
        &mut self,
        state: &mut State,
        dst: TermId,
        src: TermId,
        len: Option<i64>,
        reach: Option<i64>,
        id: InstId,
    ) {
        let (Some((to, to_off)), Some((from, from_off))) = (self.terms.pointee(dst), self.terms.pointee(src)) else {
            return;
        };
        let is_new = matches!(self.terms.object(to), Object::Heap { .. });
        let is_named = match (to_off, from_off) {
            (Off::At(to_at), Off::At(from_at)) => {
                len.is_some_and(|len| len <= LARGEST_COPY) || is_new && (to_at, from_at) == (0, 0)
            }
            _ => false,
        };
        if !is_named {
            // What lies in an input is not told one by one then.
            self.note_sent(state, from, from_off);
        }
        let (Off::At(to_at), Off::At(from_at)) = (to_off, from_off) else {
            let held: Vec<TermId> = state.cells_of(from).map(|entry| entry.1.term).chain(state.weak_of(from)).collect();
            for term in held {
                if self.terms.is_held_by_name(term) {
                    state.add_weak(&self.terms, to, term);
                    self.note_within(state, to, term, None);
                    if self.is_nameless(dst, to) {
                        self.escape(state, term);
                    }
                }
            }
            return;
        };
        let inside = |at: i64| len.is_none_or(|len| at < from_at.saturating_add(len)) && at >= from_at;
        let moved: Vec<(i64, TermId, u64)> = state
            .cells_of(from)
            .filter_map(|((_, off), cell)| match off {
                Off::At(at) if inside(*at) => Some((*at, cell.term, cell.size)),
                _ => None,
            })
            .collect();
        let constant = match *self.terms.object(from) {
            Object::Global(global) if self.knowledge.is_constant(global) => Some(global),
            _ => None,
        };
        let mut moved = moved;
        if let (Some(global), Some(len)) = (constant, len) {
            for (at, size) in self.initialised(global) {
                if at >= from_at
                    && at < from_at.saturating_add(len)
                    && let Some(term) = self.initial(global, at)
                {
                    moved.push((at, term, size));
                }
            }
        }
        let weak: Vec<TermId> = state.weak_of(from).collect();
        // As much as a buffer within a struct takes: what lies behind the buffer is not written.
        // Of a copy that may be shorter than that, what lies further on in the source need not have come along.
        let local = matches!(self.terms.object(to), Object::Stack(_));
        let zeroed =
            constant.is_some() || (state.obj(from).is_some_and(|known| known.zeroed) && state.epoch(from) == 0);
        let reach = reach.filter(|_| !local && !zeroed && (len.is_some() || moved.is_empty()));
        let bounded = len.is_none() && (to_at > 0 || reach.is_some()) && moved.is_empty();
        let end = if bounded { to_at } else { len.map_or(i64::MAX, |len| to_at.saturating_add(len)) };
        state.cells.retain(|((obj, off), _)| *obj != to || !matches!(off, Off::At(at) if *at >= to_at && *at < end));
        if let Some(reach) = reach {
            self.stretch(state, to, to_at, reach, id);
        }
        for (at, term, size) in moved {
            state.store(&self.terms, to, Off::At(at - from_at + to_at), size, term);
            if self.is_nameless(dst, to) {
                self.escape(state, term);
            }
        }
        let unlisted = self.unlisted_words(state, from, from_at, len);
        if is_new && unlisted.is_empty() && len.is_none_or(|len| len > LARGEST_COPY) && (to_at, from_at) == (0, 0) {
            self.move_contents(state, src, to);
        }
        for term in weak {
            state.add_weak(&self.terms, to, term);
        }
        if zeroed && to_at == 0 && matches!(self.terms.object(to), Object::Stack(_)) {
            let family = self.memory;
            state.obj_entry(to, family).zeroed = true;
        } else if let (true, Some(len @ 0..=256)) = (zeroed, len) {
            // What is not listed is zero; remember it where pointers may lie.
            let mut field = (to_at + 7) & !7;
            while field + 8 <= to_at + len {
                let free = |((_, off), cell): &((ObjId, Off), Cell)| !matches!(off, Off::At(at) if *at < field + 8 && field < *at + cell.size as i64);
                if state.cells_of(to).all(free) {
                    state.store(&self.terms, to, Off::At(field), 8, ZERO);
                }
                field += 8;
            }
        } else {
            if reach.is_none() {
                put(&mut state.epochs, to, id.0 + 1);
            }
            for (at, term) in unlisted {
                match reach {
                    // In what has the length of a text, a word is hardly a pointer: it lies somewhere, if it is one.
                    Some(_) => state.add_weak(&self.terms, to, term),
                    None => state.store(&self.terms, to, Off::At(at - from_at + to_at), 8, term),
                }
            }
        }
        if self.is_shared(state, to) {
            state.written(id);
        }
        self.collect_within(state, id);
    }

    /// The words of an input that is copied as a whole, as far as nothing is known of them: pointers may be among them.
    fn unlisted_words(&mut self, state: &State, from: ObjId, start: i64, len: Option<i64>) -> Vec<(i64, TermId)> {
        let Some(len @ 8..=LARGEST_COPY) = len else { return Vec::new() };
        if !matches!(self.terms.object(from), Object::Deref(_)) || state.weak_of(from).next().is_some() {
            return Vec::new();
        }
        let mut words = Vec::new();
        let mut at = (start + 7) & !7;
        while at + 8 <= start + len {
            let is_listed = state.cells_of(from).any(|((_, off), cell)| match *off {
                Off::At(other) => other < at + 8 && at < other + cell.size as i64,
                _ => true,
            });
            if !is_listed {
                words.push((at, state.load(&mut self.terms, from, Off::At(at), 8)));
            }
            at += 8;
        }
        words
    }

    pub(crate) fn fill(&mut self, state: &mut State, dst: TermId, zero: bool, len: Option<i64>, id: InstId) {
        let Some((obj, off)) = self.terms.pointee(dst) else { return };
        let Off::At(at) = off else { return };
        let end = len.map_or(i64::MAX, |len| at.saturating_add(len));
        state.cells.retain(|((of, off), _)| *of != obj || !matches!(off, Off::At(o) if *o >= at && *o < end));
        let local = matches!(self.terms.object(obj), Object::Stack(_) | Object::Heap { older: false, .. });
        if zero && at == 0 && local {
            let from = state.weak.partition_point(|entry| entry.0 < obj);
            let to = state.weak.partition_point(|entry| entry.0 <= obj);
            state.weak.drain(from..to);
            let family = self.memory;
            if let Object::Stack(_) = self.terms.object(obj) {
                state.set_obj(obj, ObjState { zeroed: true, ..ObjState::input(family) });
            } else if let Some(known) = state.obj_mut(obj) {
                known.zeroed = true;
            }
            state.epochs.retain(|entry| entry.0 != obj);
        } else if zero && len.is_some_and(|len| len <= LARGEST_PART) {
            // Fields of someone else's struct: remember the zeros where pointers may lie.
            let mut field = (at + 7) & !7;
            while field + 8 <= end {
                state.store(&self.terms, obj, Off::At(field), 8, ZERO);
                field += 8;
            }
        } else {
            put(&mut state.epochs, obj, id.0 + 1);
        }
        if self.is_shared(state, obj) {
            state.written(id);
        }
        self.collect_within(state, id);
    }
}
