//! Memory behind globals: what every function sees and no caller asks for by name.
//!
//!     void tick(void) { server.stats->ticks++; prune(server.clients); flush(server.log->buf); … }
//!
//! A function high up in a program touches hundreds of such places through its callees. One by one they would make
//! every summary above it longer, and nobody up there looks at most of them. So a few are told one by one, and more
//! are folded into one fact: what lies behind globals may have changed, or may have been released.
//!
//! # Invariants
//! - Folding forgets, it never invents: a caller that held something behind a global takes it for kept by others,
//!   and for released where something was.
//! - Globals themselves are told one by one: there are only so many of them.

use caulk_ir::InstId;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::merge::BLOCK_SITE;
use crate::object::{ObjId, Object, Status};
use crate::place::Off;
use crate::state::{State, put};
use crate::term::{Term, TermId, Terms};

/// More facts about memory behind globals than this and they become one.
const MAX_FACTS: usize = 24;

/// What happened behind globals, beyond what is told one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Stir {
    #[default]
    Nothing,
    Changed,
    Released,
}

/// Is the object reached from a global through at least one pointer?
pub fn is_common(terms: &Terms, obj: ObjId) -> bool {
    let mut at = obj;
    for _ in 0..16 {
        let Object::Deref(base) = *terms.object(at) else {
            return at != obj && matches!(terms.object(at), Object::Global(_) | Object::External(_));
        };
        let mut base = base;
        while let Term::Elem { base: array, .. } = *terms.get(base) {
            base = array;
        }
        match *terms.get(base) {
            Term::Content { obj, .. } | Term::Addr { obj, .. } => at = obj,
            _ => return false,
        }
    }
    false
}

impl Engine<'_> {
    /// Makes one fact of many, at an exit. Pointers that lay in memory of which nothing is told any more are added to
    /// `hidden`.
    pub(crate) fn fold_commons(&self, state: &mut State, hidden: &mut Vec<TermId>) {
        let terms = &self.terms;
        let count = state.objs.iter().filter(|entry| is_common(terms, entry.0)).count()
            + state.epochs.iter().filter(|entry| is_common(terms, entry.0)).count()
            + state.cells.iter().filter(|entry| is_common(terms, entry.0.0)).count();
        if count <= MAX_FACTS {
            return;
        }
        let mut stir = Stir::Changed;
        state.cells.retain(|((obj, _), cell)| {
            let fold = is_common(terms, *obj);
            if fold && terms.is_told(cell.term) {
                hidden.push(cell.term);
            }
            !fold
        });
        state.weak.retain(|(obj, term)| {
            let fold = is_common(terms, *obj);
            if fold && terms.is_told(*term) {
                hidden.push(*term);
            }
            !fold
        });
        state.epochs.retain(|entry| !is_common(terms, entry.0));
        state.moved.retain(|entry| !is_common(terms, entry.0));
        state.objs.retain(|(obj, known)| {
            let fold = is_common(terms, *obj);
            if fold && known.status.may(Status::FREED) {
                stir = Stir::Released;
            }
            !fold
        });
        state.stir = state.stir.max(stir);
    }

    /// What lies somewhere in a global, at no place that could be named, is the program's own from here on: callers are
    /// told that the global has changed.
    pub(crate) fn leave_in_globals(&mut self, state: &mut State) {
        let terms = &self.terms;
        let global = |obj: ObjId| matches!(terms.object(obj), Object::Global(_) | Object::External(_));
        let mut left: Vec<(ObjId, TermId)> = Vec::new();
        state.weak.retain(|&(obj, term)| {
            let fold = global(obj) && terms.as_int(term).is_none();
            if fold {
                left.push((obj, term));
            }
            !fold
        });
        state.cells.retain(|((obj, off), cell)| {
            let somewhere = matches!(off, Off::Elem(index, _) if terms.is_private(*index));
            let fold = somewhere && global(*obj) && terms.as_int(cell.term).is_none();
            if fold {
                left.push((*obj, cell.term));
            }
            !fold
        });
        for (obj, term) in left {
            put(&mut state.epochs, obj, BLOCK_SITE);
            if self.terms.is_told(term) {
                self.escape(state, term);
            }
        }
    }

    /// A callee has changed or released things behind globals that it does not name.
    pub(crate) fn stir(&mut self, state: &mut State, stir: Stir, id: InstId) {
        if stir == Stir::Nothing {
            return;
        }
        state.stir = state.stir.max(stir);
        state.stirred = id.0 + 1;
        state.written(id);
        let mut held: Vec<TermId> = Vec::new();
        let terms = &self.terms;
        state.cells.retain(|((obj, _), cell)| {
            let common = is_common(terms, *obj);
            if common {
                held.push(cell.term);
            }
            !common
        });
        state.weak.retain(|(obj, term)| {
            let common = is_common(terms, *obj);
            if common {
                held.push(*term);
            }
            !common
        });
        held.sort_unstable();
        held.dedup();
        if stir == Stir::Released {
            let mut roots = held.clone();
            let global = |obj: ObjId| matches!(terms.object(obj), Object::Global(_) | Object::External(_));
            roots.extend(state.cells.iter().filter(|entry| global(entry.0.0)).map(|entry| entry.1.term));
            let reached = self.reachable(state, roots);
            for (obj, known) in &mut state.objs {
                if reached.contains(*obj)
                    && matches!(self.terms.object(*obj), Object::Heap { .. })
                    && known.status.may(Status::LIVE)
                {
                    known.status = known.status.join(Status::FREED);
                    known.freed_at = known.freed_at.or(Some(id));
                }
            }
        }
        for term in held {
            if self.terms.is_told(term) {
                self.escape(state, term);
            }
        }
    }
}
