//! Memory whose bytes go to somebody or come from somebody: a pipe, a queue, a file.
//!
//!     struct message m = { kind, strdup(text) };   // A: held by m.text
//!     write(fd, &m, sizeof m);                      // whoever reads the pipe has A
//!
//! # Invariants
//! - A pointer among bytes that certainly go is given away. Where it may lie behind them, the block is only lent: it is
//!   still a leak, and nobody releases it in a patch.
//! # Known imprecision
//! - Of an input only its beginning is followed into the callers: not `write(fd, input->part, n)`.

use caulk_models::FunctionModel;

use crate::engine::Engine;
use crate::object::{ObjId, Object};
use crate::place::{INLINE_PLACES, Off};
use crate::state::State;
use crate::term::TermId;

/// The size of a pointer.
const WORD: i64 = 8;

impl Engine<'_> {
    /// Bytes that lie behind so many pointers go.
    pub(crate) fn send_behind(&mut self, state: &mut State, ptr: TermId, size: Option<i64>, depth: u8) {
        if depth == 0 {
            return self.send(state, ptr, size);
        }
        let Some((obj, _)) = self.terms.pointee(ptr) else { return };
        let held: Vec<TermId> = state.cells_of(obj).map(|entry| entry.1.term).chain(state.weak_of(obj)).collect();
        for ptr in held {
            self.send_behind(state, ptr, None, depth - 1);
        }
    }

    /// The bytes from here on go, as many as is said.
    pub(crate) fn send(&mut self, state: &mut State, ptr: TermId, size: Option<i64>) {
        let Some((obj, from)) = self.terms.pointee(ptr) else { return };
        self.note_sent(state, obj, from);
        let is_variable = matches!(self.terms.object(obj), Object::Stack(_));
        let (mut gone, mut maybe): (Vec<TermId>, Vec<TermId>) = (Vec::new(), state.weak_of(obj).collect());
        for ((_, off), cell) in state.cells_of(obj) {
            match (from, *off, size) {
                (_, Off::At(hidden), _) if hidden < INLINE_PLACES / 4 => {}
                (Off::At(from), Off::At(at), _) if at < from => {}
                (Off::At(from), Off::At(at), Some(size)) if at + WORD <= from.saturating_add(size) => {
                    gone.push(cell.term)
                }
                (Off::At(_), Off::At(_), Some(_)) => {}
                // The whole of a variable, most likely.
                (Off::At(0), Off::At(_), None) if is_variable => gone.push(cell.term),
                _ => maybe.push(cell.term),
            }
        }
        for term in gone {
            if !self.terms.mentions(term).is_empty() {
                self.escape(state, term);
            }
        }
        let maybe: Vec<ObjId> = maybe.iter().flat_map(|term| self.terms.mentions(*term).to_vec()).collect();
        self.lend(state, maybe);
    }

    /// Callers are told of an input whose bytes go.
    pub(crate) fn note_sent(&mut self, state: &mut State, obj: ObjId, from: Off) {
        if matches!(self.terms.object(obj), Object::Deref(_)) && matches!(from, Off::At(0) | Off::Elem(_, 0)) {
            let family = self.memory;
            state.obj_entry(obj, family).sent = true;
        }
    }

    /// Data comes in here: a pointer that lies at this very place may be another one now, or still be there.
    pub(crate) fn write_over(&mut self, state: &mut State, ptr: TermId) {
        let Some((obj, off)) = self.terms.pointee(ptr) else { return };
        let Ok(at) = state.cells.binary_search_by_key(&(obj, off), |entry| entry.0) else { return };
        let cell = state.cells[at].1;
        if cell.size as i64 == WORD && !self.terms.mentions(cell.term).is_empty() {
            state.cells.remove(at);
            state.add_weak(&self.terms, obj, cell.term);
        }
    }

    /// Somebody looks at it who may keep what it leads to.
    pub(crate) fn lend_contents(&mut self, state: &mut State, ptr: TermId) {
        let Some((obj, _)) = self.terms.pointee(ptr) else { return };
        let held: Vec<TermId> = state.cells_of(obj).map(|entry| entry.1.term).chain(state.weak_of(obj)).collect();
        let reached: Vec<ObjId> = self.reachable(state, held).iter().collect();
        self.lend(state, reached);
    }

    /// Callers are told of an input that somebody looks at who may keep what it leads to.
    pub(crate) fn note_lent(&mut self, state: &mut State, ptr: TermId) {
        if let Some((obj, Off::At(0))) = self.terms.pointee(ptr)
            && matches!(self.terms.object(obj), Object::Deref(_))
        {
            let family = self.memory;
            state.obj_entry(obj, family).lent = true;
        }
    }

    /// A local variable is given to a library's function, and the model does not speak of what lies in it: whoever keeps a
    /// part of it (`sigev_value.sival_ptr`) has the block.
    pub(crate) fn lend_variables(&mut self, state: &mut State, args: &[TermId], model: &FunctionModel) {
        for (index, &arg) in args.iter().enumerate() {
            let is_variable = self.terms.pointee(arg).is_some_and(|(obj, off)| {
                matches!(self.terms.object(obj), Object::Stack(_)) && matches!(off, Off::At(0) | Off::Elem(_, 0))
            });
            if is_variable && !model.effects.iter().any(|effect| effect.is_about(index as u32)) {
                self.lend_contents(state, arg);
            }
        }
    }

    pub(crate) fn lend(&self, state: &mut State, objects: Vec<ObjId>) {
        for obj in objects {
            if state.obj(obj).is_some_and(|known| !known.lent)
                && let Some(known) = state.obj_mut(obj)
            {
                known.lent = true;
            }
        }
    }
}
