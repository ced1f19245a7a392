//! A callee's terms and objects in the caller's words: parameters are the arguments, what lay in memory is what lies there
//! before the call, new blocks are blocks of the call.

use caulk_base::Id;
use caulk_ir::{FuncId, InstId};

use crate::commons::is_common;
use crate::engine::Engine;
use crate::object::{ObjId, Object};
use crate::place::Off;
use crate::state::State;
use crate::summary::Summary;
use crate::term::{Term, TermId, ZERO};

/// Numbers of unknown values made by one call begin here.
const CALLEE_VALUES: u32 = 16;

/// The caller's terms for the callee's.
pub(crate) struct Translation<'s> {
    pub summary: &'s Summary,
    pub callee: FuncId,
    pub args: Vec<TermId>,
    pub terms: Vec<Option<TermId>>,
    pub site: InstId,
    /// Nothing but the result depends on what is unknown: calling again gives the same.
    pub pure: bool,
    pub version: u32,
}

impl Engine<'_> {
    /// The caller's pointer to an input object of the callee; `None` for the callee's own objects.
    pub(crate) fn input_pointer(
        &mut self,
        before: &State,
        translation: &mut Translation<'_>,
        obj: ObjId,
    ) -> Option<TermId> {
        match translation.summary.objects[obj.index()] {
            Object::Heap { .. } | Object::Stack(_) | Object::Code(_) => None,
            _ => Some(self.translate_object(before, translation, obj)),
        }
    }

    /// The caller's pointer to an object of the callee.
    pub(crate) fn translate_object(&mut self, before: &State, translation: &mut Translation<'_>, obj: ObjId) -> TermId {
        let object = match translation.summary.objects[obj.index()].clone() {
            Object::Deref(base) => return self.translate(before, translation, base),
            Object::Heap { older, .. } => Object::Heap { site: translation.site, sub: obj.0, older },
            // A struct returned by value lies in a hidden slot of the call.
            Object::Stack(_) => Object::Stack(translation.site),
            other => other,
        };
        let object = self.terms.intern_object(object);
        self.terms.addr(object, 0)
    }

    pub(crate) fn translate_off(&mut self, before: &State, translation: &mut Translation<'_>, off: Off) -> Off {
        match off {
            Off::Elem(index, bytes) => {
                let index = self.translate(before, translation, index);
                match self.terms.as_int(index) {
                    Some(constant) => Off::At(bytes.saturating_add(constant)),
                    None => Off::Elem(index, bytes),
                }
            }
            other => other,
        }
    }

    pub(crate) fn translate(&mut self, before: &State, translation: &mut Translation<'_>, id: TermId) -> TermId {
        if let Some(known) = translation.terms[id.index()] {
            return known;
        }
        let term = match translation.summary.terms[id.index()].clone() {
            Term::Int(value) => self.terms.int(value),
            Term::Param(index) => match translation.args.get(index as usize) {
                Some(&arg) => arg,
                None => self.terms.sym(translation.site.0, CALLEE_VALUES + id.0),
            },
            Term::Content { obj, off, epoch: 0 } => {
                let base = self.translate_object(before, translation, obj);
                let off = self.translate_off(before, translation, off);
                let as_number = translation.summary.numbers.binary_search(&id).is_ok();
                self.read(before, base, off, as_number)
            }
            Term::Addr { obj, off } => {
                let base = self.translate_object(before, translation, obj);
                self.terms.ptr_add(base, off)
            }
            Term::Elem { base, index, bytes } => {
                let base = self.translate(before, translation, base);
                let index = self.translate(before, translation, index);
                self.terms.elem(base, index, bytes)
            }
            Term::Func(id) => self.terms.func(id),
            Term::Bin(op, a, b) => {
                let (a, b) = (self.translate(before, translation, a), self.translate(before, translation, b));
                self.terms.bin(op, a, b)
            }
            Term::Cmp(op, a, b) => {
                let (a, b) = (self.translate(before, translation, a), self.translate(before, translation, b));
                self.compare(before, op, a, b)
            }
            Term::Cast(op, bits, a) => {
                let a = self.translate(before, translation, a);
                self.terms.cast(op, bits, bits, a)
            }
            Term::Ite(c, a, b) => {
                let c = self.translate(before, translation, c);
                let (a, b) = (self.translate(before, translation, a), self.translate(before, translation, b));
                self.terms.ite(c, a, b)
            }
            Term::Sym { .. } | Term::Content { .. } | Term::Pure(_) => {
                if translation.pure {
                    let mut name = translation.callee.0.to_le_bytes().to_vec();
                    name.extend(id.0.to_le_bytes());
                    let args = translation.args.clone();
                    self.pure_result(&name, &args, translation.version)
                } else {
                    self.terms.sym(translation.site.0, CALLEE_VALUES + id.0)
                }
            }
        };
        translation.terms[id.index()] = Some(term);
        term
    }

    /// What lies at an offset from a pointer in the state before the call.
    /// A pointer that was put somewhere unknown has changed no number: what the function has found out about the number
    /// still holds of what the callee reads.
    fn read(&mut self, before: &State, base: TermId, off: Off, as_number: bool) -> TermId {
        let Some((obj, at)) = self.terms.pointee(base) else { return ZERO };
        let off = at.plus(off);
        if let Ok(at) = before.cells.binary_search_by_key(&(obj, off), |entry| entry.0) {
            return before.cells[at].1.term;
        }
        if let (Object::Global(global), Off::At(at)) = (self.terms.object(obj).clone(), off)
            && self.knowledge.is_constant(global)
        {
            return self.initial(global, at).unwrap_or(ZERO);
        }
        let stirred = if before.stirred != 0 && is_common(&self.terms, obj) { before.stirred } else { 0 };
        let aliased = if before.aliased != 0 && self.is_out_of_reach(obj) { 0 } else { before.aliased };
        let as_it_was = before.epoch(obj).max(stirred);
        let mut epoch = as_it_was.max(aliased);
        if as_number && epoch != as_it_was {
            let number = self.terms.content(obj, off, as_it_was);
            if before.facts.ranges.binary_search_by_key(&number, |known| known.0).is_ok() {
                epoch = as_it_was;
            }
        }
        if let (Object::Global(global), Off::At(at), 0, false) = (self.terms.object(obj).clone(), off, epoch, as_number)
            && self.knowledge.comes_first(global)
        {
            return self.initial(global, at).unwrap_or(ZERO);
        }
        let term = match before.load(&mut self.terms, obj, off, 8) {
            term if epoch == 0 || term == ZERO => term,
            _ => self.terms.content(obj, off, epoch),
        };
        if matches!(self.terms.get(term), Term::Content { .. }) {
            self.terms.note_read(term, !as_number);
        }
        term
    }
}

impl<'s> Translation<'s> {
    pub fn new(summary: &'s Summary, callee: FuncId, args: &[TermId], site: InstId, pure: bool, version: u32) -> Self {
        Self { summary, callee, args: args.to_vec(), terms: vec![None; summary.terms.len()], site, pure, version }
    }

    /// Is the term the address of an object the callee made?
    pub fn is_fresh(&self, id: TermId) -> bool {
        match self.summary.terms[id.index()] {
            Term::Addr { obj, .. } => matches!(self.summary.objects[obj.index()], Object::Heap { .. }),
            _ => false,
        }
    }
}
