//! One symbolic state: what a path knows of values, memory and objects.
//!
//!     char *p = malloc(8);       // env p: addr obj0     obj0: live|failed
//!     if (!p) return -1;         // here obj0: failed; below obj0: live
//!     s->buf = p;                // cell (*arg0, 8): addr obj0
//!
//! # Invariants
//! - All vectors are sorted by their key, so that equal states compare equal and
//!   nothing depends on the order of arrival.
//! - A cell that is not listed holds its initial content (or, after an unknown
//!   write, the content named by the object's epoch).

use caulk_base::FxHashMap;
use caulk_ir::{InstId, ValueId};
use caulk_models::FamilyId;

use crate::commons::Stir;
use crate::facts::Facts;
use crate::object::{ObjId, ObjState, Object};
use crate::place::Off;
use crate::shared::Shared;
use crate::term::{Term, TermId, Terms, ZERO};
use crate::trace::{Event, Trace};

/// What a cell holds and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    pub term: TermId,
    pub size: u64,
}

#[derive(Clone, Debug, Default)]
pub struct State {
    pub env: Shared<(ValueId, TermId)>,
    pub cells: Shared<((ObjId, Off), Cell)>,
    /// Values that lie somewhere in an object, we do not know where.
    pub weak: Shared<(ObjId, TermId)>,
    pub objs: Shared<(ObjId, ObjState)>,
    /// Inputs that were exchanged for a new block which holds what lay in them: `realloc`.
    pub moved: Shared<(ObjId, ObjId)>,
    /// At an exit: inputs whose inner pointers were rearranged.
    pub rewired: Shared<ObjId>,
    /// Since when an object's unlisted contents are unknown.
    pub epochs: Shared<(ObjId, u32)>,
    pub facts: Facts,
    /// The last write to memory that others see: the version of memory for pure calls.
    pub version: u32,
    /// The last write to memory that is not this function's own: no local, no block that only it knows.
    pub outside: u32,
    /// The last store through a pointer that was itself read from memory (`*link->prev = next`): it may
    /// have changed a pointer anywhere in what callers see.
    pub aliased: u32,
    /// Something could not be allocated or opened, whichever way led here.
    pub starved: bool,
    /// What callees did behind globals, beyond what they told one by one, and the last call that did.
    pub stir: Stir,
    pub stirred: u32,
    /// Parts of inputs that have no name were released on the way.
    pub drains: bool,
    /// Families of which whatever there was may have been released on the way, whoever had it; sorted.
    pub swept: Shared<FamilyId>,
    pub trace: Trace,
}

impl State {
    pub fn value(&self, id: ValueId) -> Option<TermId> {
        self.env.binary_search_by_key(&id, |entry| entry.0).ok().map(|at| self.env[at].1)
    }

    pub fn bind(&mut self, id: ValueId, term: TermId) {
        put(&mut self.env, id, term);
    }

    pub fn obj(&self, id: ObjId) -> Option<&ObjState> {
        self.objs.binary_search_by_key(&id, |entry| entry.0).ok().map(|at| &self.objs[at].1)
    }

    pub fn obj_mut(&mut self, id: ObjId) -> Option<&mut ObjState> {
        self.objs.binary_search_by_key(&id, |entry| entry.0).ok().map(|at| &mut self.objs[at].1)
    }

    /// The object's state, made as an input's on first sight.
    pub fn obj_entry(&mut self, id: ObjId, family: FamilyId) -> &mut ObjState {
        let at = match self.objs.binary_search_by_key(&id, |entry| entry.0) {
            Ok(at) => at,
            Err(at) => {
                self.objs.insert(at, (id, ObjState::input(family)));
                at
            }
        };
        &mut self.objs[at].1
    }

    pub fn set_obj(&mut self, id: ObjId, state: ObjState) {
        put(&mut self.objs, id, state);
    }

    /// The instruction does something with the object, if it is known.
    pub fn touch(&mut self, id: ObjId, at: InstId) {
        if self.obj(id).is_some_and(|known| known.touched != Some(at))
            && let Some(known) = self.obj_mut(id)
        {
            known.touched = Some(at);
        }
    }

    /// Memory was written that others see.
    pub fn written(&mut self, at: InstId) {
        (self.version, self.outside) = (at.0 + 1, at.0 + 1);
    }

    /// Someone we cannot see may hold the object, if it is known.
    pub fn give_away(&mut self, id: ObjId) {
        if self.obj(id).is_some_and(|known| !known.is_given_away())
            && let Some(known) = self.obj_mut(id)
        {
            known.give_away();
        }
    }

    /// The same of an input, which is made on first sight.
    pub fn give_away_input(&mut self, id: ObjId, family: FamilyId) {
        if !self.obj(id).is_some_and(ObjState::is_given_away) {
            self.obj_entry(id, family).give_away();
        }
    }

    pub fn remove_obj(&mut self, id: ObjId) {
        if let Ok(at) = self.objs.binary_search_by_key(&id, |entry| entry.0) {
            self.objs.remove(at);
        }
    }

    pub fn record(&mut self, event: Event) {
        self.trace = crate::trace::push(&self.trace, event);
    }

    pub fn epoch(&self, obj: ObjId) -> u32 {
        self.epochs.binary_search_by_key(&obj, |entry| entry.0).map_or(0, |at| self.epochs[at].1)
    }

    pub fn cells_of(&self, obj: ObjId) -> impl Iterator<Item = &((ObjId, Off), Cell)> {
        let from = self.cells.partition_point(|entry| entry.0.0 < obj);
        self.cells[from..].iter().take_while(move |entry| entry.0.0 == obj)
    }

    pub fn weak_of(&self, obj: ObjId) -> impl Iterator<Item = TermId> + '_ {
        let from = self.weak.partition_point(|entry| entry.0 < obj);
        self.weak[from..].iter().take_while(move |entry| entry.0 == obj).map(|entry| entry.1)
    }

    /// What lies in the object is gone; was there something?
    pub fn forget_cells(&mut self, obj: ObjId) -> bool {
        let (cells, weak) = (self.cells_of(obj).next().is_some(), self.weak_of(obj).next().is_some());
        if cells {
            self.cells.retain(|((of, _), _)| *of != obj);
        }
        if weak {
            self.weak.retain(|(of, _)| *of != obj);
        }
        cells || weak
    }

    pub fn add_weak(&mut self, terms: &Terms, obj: ObjId, term: TermId) {
        // Values that nobody can ask for are all alike: something lies there.
        let term = if terms.is_told(term) { term } else { ZERO };
        // Beyond this nobody tells the values apart any more; they stay where they are.
        if let Err(at) = self.weak.binary_search(&(obj, term))
            && self.weak.len() < 256
        {
            self.weak.insert(at, (obj, term));
        }
    }

    /// Reads a cell.
    pub fn load(&self, terms: &mut Terms, obj: ObjId, off: Off, size: u64) -> TermId {
        if let Ok(at) = self.cells.binary_search_by_key(&(obj, off), |entry| entry.0) {
            let cell = self.cells[at].1;
            if cell.size == size {
                return cell.term;
            }
            let since = self.stretched(terms, obj, off, size).unwrap_or(u32::MAX - size as u32);
            return terms.content(obj, off, since);
        }
        if terms.has_stretches
            && let Some(since) = self.stretched(terms, obj, off, size)
        {
            return terms.content(obj, off, since);
        }
        let epoch = self.epoch(obj);
        let disturbed = || {
            self.weak_of(obj).next().is_some()
                || self.cells_of(obj).any(|((_, at), cell)| match (*at, off) {
                    (Off::At(_), Off::At(_)) => false,
                    (Off::Elem(_, start), Off::At(at)) => at + size as i64 > start && (size == 1) == (cell.size == 1),
                    _ => true,
                })
        };
        if epoch == 0 && self.obj(obj).is_some_and(|state| state.zeroed) && !disturbed() {
            return ZERO;
        }
        terms.content(obj, off, epoch)
    }

    /// Values that a term read from a disturbed object may be.
    pub fn candidates(&self, terms: &Terms, term: TermId) -> Vec<TermId> {
        let Term::Content { obj, off, .. } = *terms.get(term) else { return Vec::new() };
        let mut all: Vec<TermId> = self.weak_of(obj).collect();
        for ((_, at), cell) in self.cells_of(obj) {
            if *at != off && !matches!((at, off), (Off::At(_), Off::At(_))) {
                all.push(cell.term);
            }
        }
        all
    }

    /// Writes a cell. Returns the terms that were overwritten for certain.
    pub fn store(&mut self, terms: &Terms, obj: ObjId, off: Off, size: u64, term: TermId) {
        if is_summary(terms, obj) || off == Off::Some {
            self.add_weak(terms, obj, term);
            return;
        }
        if !matches!(off, Off::At(_)) {
            self.lose_count(terms, term);
        }
        let from = self.cells.partition_point(|entry| entry.0.0 < obj);
        let mut demoted: Vec<TermId> = Vec::new();
        let mut cut: Vec<(i64, Cell)> = Vec::new();
        let mut at = from;
        while at < self.cells.len() && self.cells[at].0.0 == obj {
            let ((_, other), cell) = self.cells[at];
            let clash = match (other, off) {
                (Off::At(a), Off::At(b)) => a < b + size as i64 && b < a + cell.size as i64,
                (Off::Elem(i, a), Off::Elem(j, b)) if i == j => a < b + size as i64 && b < a + cell.size as i64,
                // A character of an array is no part of a pointer or number beside the array.
                (Off::Elem(..), Off::At(_)) | (Off::At(_), Off::Elem(..)) if (size == 1) != (cell.size == 1) => false,
                // Whichever element it is: this one is the same as before.
                (Off::Elem(..), _) | (Off::At(_), Off::Elem(..)) if (cell.term, cell.size) == (term, size) => false,
                // Elements lie behind the place where the array begins.
                (Off::At(a), Off::Elem(_, start)) if a + cell.size as i64 <= start => false,
                (Off::Elem(_, start), Off::At(a)) if a + size as i64 <= start => false,
                (Off::Elem(..), _) | (Off::At(_), Off::Elem(..)) => {
                    demoted.push(cell.term);
                    true
                }
                _ => false,
            };
            if clash {
                if let (Off::At(from), Off::At(by), true) = (other, off, cell.is_stretch()) {
                    cut.extend(cell.cut(from, by, size));
                }
                self.cells.remove(at);
            } else {
                at += 1;
            }
        }
        for old in demoted {
            self.add_weak(terms, obj, old);
        }
        for (at, rest) in cut {
            put(&mut self.cells, (obj, Off::At(at)), rest);
        }
        put(&mut self.cells, (obj, off), Cell { term, size });
    }

    /// The value lies in an element: which one it is, is not known any more.
    fn lose_count(&mut self, terms: &Terms, term: TermId) {
        for &block in terms.mentions(term) {
            if self.obj(block).is_some_and(|known| known.single)
                && let Some(known) = self.obj_mut(block)
            {
                known.single = false;
            }
        }
    }

    /// The object's contents become unknown as of `inst`. Returns the terms that lay in it.
    pub fn havoc(&mut self, obj: ObjId, inst: InstId) -> Vec<TermId> {
        let mut held = Vec::new();
        let from = self.cells.partition_point(|entry| entry.0.0 < obj);
        while from < self.cells.len() && self.cells[from].0.0 == obj {
            held.push(self.cells.remove(from).1.term);
        }
        let from = self.weak.partition_point(|entry| entry.0 < obj);
        while from < self.weak.len() && self.weak[from].0 == obj {
            held.push(self.weak.remove(from).1);
        }
        put(&mut self.epochs, obj, inst.0 + 1);
        held
    }

    /// The allocation failed: the object never existed, its address is `value`.
    pub fn fail(&mut self, terms: &mut Terms, obj: ObjId, value: TermId) {
        let address = terms.addr(obj, 0);
        for entry in self.env.edit_if(|entry| entry.1 == address) {
            if entry.1 == address {
                entry.1 = value;
            }
        }
        for (_, cell) in self.cells.edit_if(|(_, cell)| cell.term == address) {
            if cell.term == address {
                cell.term = value;
            }
        }
        self.weak.retain(|(_, term)| *term != address);
        self.cells.retain(|((of, _), _)| *of != obj);
        self.weak.retain(|(of, _)| *of != obj);
        self.epochs.retain(|(of, _)| *of != obj);
        self.moved.retain(|(_, to)| *to != obj);
        self.remove_obj(obj);
        let terms = &*terms;
        self.facts.retain(|id| !terms.mentions(id).contains(&obj));
    }

    /// Replaces one object by another everywhere: a site's recent block becomes one of its older ones.
    /// Returns what `forget_inside` does.
    pub fn rename(&mut self, terms: &mut Terms, from: ObjId, to: ObjId) -> Vec<TermId> {
        let mut renamer = Renamer { terms, from, to, done: FxHashMap::default() };
        for entry in &mut self.env {
            entry.1 = renamer.term(entry.1);
        }
        let cells = std::mem::take(&mut self.cells);
        let weak = std::mem::take(&mut self.weak);
        let mut moved = Vec::new();
        for &((obj, off), cell) in &cells {
            let cell = Cell { term: renamer.term(cell.term), ..cell };
            if obj == from {
                moved.push(cell.term);
            } else {
                self.cells.push(((obj, off), cell));
            }
        }
        for &(obj, term) in &weak {
            let term = renamer.term(term);
            self.weak.push((if obj == from { to } else { obj }, term));
        }
        self.weak.sort_unstable();
        self.weak.dedup();
        for term in moved {
            self.add_weak(renamer.terms, to, term);
        }
        for entry in &mut self.moved {
            if entry.1 == from {
                entry.1 = to;
            }
        }
        if let Some(state) = self.obj(from).copied() {
            self.remove_obj(from);
            let named = |(place, cell): &((ObjId, Off), Cell)| {
                !renamer.terms.mentions(cell.term).contains(&to)
                    || matches!(place.1, Off::At(_)) && !is_summary(renamer.terms, place.0)
            };
            let within = |(_, term): &(ObjId, TermId)| renamer.terms.mentions(*term).contains(&to);
            let single = self.cells.iter().all(named) && !self.weak.iter().any(within);
            let joined =
                self.obj(to).map_or(ObjState { single, ..state }, |old| ObjState { single: false, ..old.join(state) });
            self.set_obj(to, joined);
        }
        self.forget_inside(renamer.terms, from)
    }

    /// Gives a block a name that no block of this state has.
    pub fn rename_block(&mut self, terms: &mut Terms, from: ObjId, to: ObjId) {
        let mut renamer = Renamer { terms, from, to, done: FxHashMap::default() };
        let name = |obj: &mut ObjId| {
            if *obj == from {
                *obj = to;
            }
        };
        self.env.iter_mut().for_each(|entry| entry.1 = renamer.term(entry.1));
        for ((obj, _), cell) in &mut self.cells {
            name(obj);
            cell.term = renamer.term(cell.term);
        }
        for (obj, term) in &mut self.weak {
            name(obj);
            *term = renamer.term(*term);
        }
        self.objs.iter_mut().for_each(|entry| name(&mut entry.0));
        self.epochs.iter_mut().for_each(|entry| name(&mut entry.0));
        self.moved.iter_mut().for_each(|entry| name(&mut entry.1));
        self.facts.rename(|term| renamer.term(term));
        self.cells.sort_unstable_by_key(|entry| entry.0);
        self.weak.sort_unstable();
        self.objs.sort_unstable_by_key(|entry| entry.0);
        self.epochs.sort_unstable();
        self.moved.sort_unstable();
    }

    /// What lay in an old block is not what lies in a new one of its name. Returns the values that were put into memory
    /// reached from there, which has no name any more.
    pub fn forget_inside(&mut self, terms: &Terms, from: ObjId) -> Vec<TermId> {
        if !terms.has_contents(from) {
            // Nothing was ever read from it: there is nothing behind it.
            self.epochs.retain(|(obj, _)| *obj != from);
            self.facts.retain(|id| !terms.mentions(id).contains(&from));
            return Vec::new();
        }
        let inside = |obj: ObjId| {
            terms.is_nameless(obj) && matches!(terms.object(obj), Object::Deref(base) if terms.speaks_of(*base, from))
        };
        self.objs.retain(|(obj, _)| !inside(*obj));
        let mut held: Vec<TermId> = Vec::new();
        let mut stays = |obj: ObjId, term: TermId| {
            let inside = inside(obj);
            if inside {
                held.push(term);
            }
            !inside
        };
        self.cells.retain(|((obj, _), cell)| stays(*obj, cell.term));
        self.weak.retain(|(obj, term)| stays(*obj, *term));
        self.epochs.retain(|(obj, _)| *obj != from && !inside(*obj));
        self.facts.retain(|id| !terms.mentions(id).contains(&from) && !terms.speaks_of(id, from));
        held
    }
}

/// Inserts or replaces in a vector sorted by key.
pub fn put<K: Ord + Copy, V>(list: &mut Vec<(K, V)>, key: K, value: V) {
    if list.last().is_none_or(|last| last.0 < key) {
        list.push((key, value));
        return;
    }
    match list.binary_search_by(|entry| entry.0.cmp(&key)) {
        Ok(at) => list[at].1 = value,
        Err(at) => list.insert(at, (key, value)),
    }
}

/// One abstract object for many: its cells are updated weakly.
pub fn is_summary(terms: &Terms, obj: ObjId) -> bool {
    matches!(terms.object(obj), Object::Heap { older: true, .. })
}

struct Renamer<'a> {
    terms: &'a mut Terms,
    from: ObjId,
    to: ObjId,
    done: FxHashMap<TermId, TermId>,
}

impl Renamer<'_> {
    fn term(&mut self, id: TermId) -> TermId {
        if !self.terms.mentions(id).contains(&self.from) && !self.terms.speaks_of(id, self.from) {
            return id;
        }
        if let Some(&done) = self.done.get(&id) {
            return done;
        }
        let renamed = self.renamed(id);
        self.done.insert(id, renamed);
        renamed
    }

    fn object(&mut self, obj: ObjId) -> ObjId {
        match *self.terms.object(obj) {
            _ if obj == self.from => self.to,
            Object::Deref(base) => {
                let base = self.term(base);
                self.terms.intern_object(Object::Deref(base))
            }
            _ => obj,
        }
    }

    fn renamed(&mut self, id: TermId) -> TermId {
        match self.terms.get(id).clone() {
            Term::Addr { obj, off } if obj == self.from => self.terms.addr(self.to, off),
            Term::Addr { obj, off } => match *self.terms.object(obj) {
                Object::Deref(base) => {
                    let base = self.term(base);
                    self.terms.ptr_add(base, off)
                }
                _ => id,
            },
            Term::Content { obj, off, epoch } => {
                let obj = self.object(obj);
                self.terms.content(obj, off, epoch)
            }
            Term::Elem { base, index, bytes } => {
                let (base, index) = (self.term(base), self.term(index));
                self.terms.elem(base, index, bytes)
            }
            Term::Bin(op, a, b) => {
                let (a, b) = (self.term(a), self.term(b));
                self.terms.bin(op, a, b)
            }
            Term::Cast(op, bits, a) => {
                let a = self.term(a);
                self.terms.cast(op, bits, bits, a)
            }
            Term::Ite(c, a, b) => {
                let (a, b) = (self.term(a), self.term(b));
                self.terms.ite(c, a, b)
            }
            _ => id,
        }
    }
}
