//! By what states are told apart: those with equal keys are merged where they meet.
//!
//!     if (y) p = malloc(8);      // p: addr obj0, obj0 live    |    p: null
//!     log(y);                    // two keys: two states go on
//!     if (y) free(p);
//!
//! States that come from one another share most of their lists; what a list adds to the key is worked out once.

use std::hash::{Hash, Hasher};

use caulk_base::FxHasher;
use smallvec::SmallVec;

use crate::counted;
use crate::merge::{Grain, RESULT, deref_depth};
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::shared::Shared;
use crate::state::{Cell, State};
use crate::term::{Term, TermId, Terms};

/// The keys of states that may have lists in common: those of a list are worked out once.
pub struct Keys {
    grain: Grain,
    loop_head: bool,
    objs: Known<(ObjId, ObjState)>,
    cells: Known<((ObjId, Off), Cell)>,
}

/// The keys of lists, as far as they are remembered.
struct Known<T> {
    lists: SmallVec<[(Shared<T>, u64); REMEMBERED]>,
    next: usize,
}

const REMEMBERED: usize = 4;

impl<T: 'static> Known<T> {
    fn nothing() -> Self {
        Self { lists: SmallVec::new(), next: 0 }
    }

    fn key(&mut self, list: &Shared<T>, key: impl FnOnce() -> u64) -> u64 {
        if let Some((_, key)) = self.lists.iter().find(|(known, _)| known.is_same(list)) {
            return *key;
        }
        let key = key();
        if self.lists.len() < REMEMBERED {
            self.lists.push((list.clone(), key));
        } else {
            self.lists[self.next] = (list.clone(), key);
            self.next = (self.next + 1) % REMEMBERED;
        }
        key
    }
}

impl Keys {
    pub fn new(grain: Grain, loop_head: bool) -> Self {
        Self { grain, loop_head, objs: Known::nothing(), cells: Known::nothing() }
    }

    /// States with equal keys may be merged.
    pub fn of(&mut self, state: &State, terms: &Terms) -> u64 {
        let (grain, loop_head) = (self.grain, self.loop_head);
        let mut hasher = FxHasher::default();
        match grain {
            Grain::One => return 0,
            Grain::Result => return result_key(state, terms),
            Grain::Lost => {
                let lost = |(_, obj): &&(ObjId, ObjState)| obj.lost;
                state.objs.iter().filter(lost).for_each(|(id, _)| id.hash(&mut hasher));
                return hasher.finish();
            }
            Grain::Effect => effects(state, terms, &mut hasher),
            Grain::Fine | Grain::Coarse | Grain::Owned => {}
        }
        let objs = self.objs.key(&state.objs, || objects_key(state, terms));
        let cells = || cells_key(state, terms, grain, loop_head);
        // To tell effects apart, the facts are asked, too.
        let cells = if grain == Grain::Effect { cells() } else { self.cells.key(&state.cells, cells) };
        (objs, cells).hash(&mut hasher);
        let exact = matches!(grain, Grain::Effect | Grain::Fine);
        for (value, term) in &state.env {
            let constant = (exact || *value == RESULT) && terms.is_constant(*term);
            if constant || terms.is_param(*term) || terms.holds_block(*term) {
                (1u8, value, term).hash(&mut hasher);
            }
        }
        for (obj, term) in &state.weak {
            if terms.holds_block(*term) {
                (3u8, obj, term).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// The key of a state that has nothing to do with others.
pub fn key(state: &State, terms: &Terms, grain: Grain, loop_head: bool) -> u64 {
    Keys::new(grain, loop_head).of(state, terms)
}

fn result_key(state: &State, terms: &Terms) -> u64 {
    state.value(RESULT).map_or(1, |term| match terms.as_int(term) {
        Some(value) => (value.signum() + 10) as u64,
        None => match terms.get(term) {
            // It returns its argument.
            Term::Param(index) => u64::from(*index) + 100,
            _ => u64::from(!terms.mentions(term).is_empty()) + 2,
        },
    })
}

fn objects_key(state: &State, terms: &Terms) -> u64 {
    let mut hasher = FxHasher::default();
    for (id, obj) in &state.objs {
        let matters = match terms.object(*id) {
            _ if obj.status == Status::LIVE && !obj.escaped && !terms.is_block(*id) => false,
            Object::Heap { .. } => true,
            // Whether an argument was kept is what callers ask.
            Object::Deref(base) if obj.escaped && matches!(terms.get(*base), Term::Param(_)) => true,
            Object::Deref(_) => obj.status != Status::LIVE && deref_depth(terms, *id) <= 2,
            _ => obj.status != Status::LIVE,
        };
        if matters || obj.owned {
            (4u8, id, obj.status, obj.escaped, obj.retained).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn cells_key(state: &State, terms: &Terms, grain: Grain, loop_head: bool) -> u64 {
    let mut hasher = FxHasher::default();
    let exact = matches!(grain, Grain::Effect | Grain::Fine);
    for (place, cell) in &state.cells {
        let small = |value: i64| !loop_head || (-1..=1).contains(&value);
        let constant = exact && terms.is_constant(cell.term) && terms.as_int(cell.term).is_some_and(small);
        let stored =
            grain != Grain::Owned && terms.is_param(cell.term) && !matches!(terms.object(place.0), Object::Stack(_));
        let counted = grain == Grain::Effect && counted::is_bounded(state, terms, *place, cell.term);
        if constant || stored || counted || terms.holds_block(cell.term) {
            // The hasher does not count zeros it begins with.
            (2u8, place, cell.term).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// What a caller sees of an exit beside objects and constants: which input is returned or lies elsewhere now, on which
/// side of 0 the result is, which arguments must be alive, and whether it is for want of memory.
fn effects(state: &State, terms: &Terms, hasher: &mut FxHasher) {
    let input = |term: TermId| !terms.is_private(term) && terms.as_int(term).is_none();
    if let Some(result) = state.value(RESULT) {
        let range = state.facts.range(terms, result);
        (range.lo > 0, range.lo >= 0, range.hi < 0, range.hi <= 0, range.excludes(0)).hash(hasher);
        if input(result) {
            result.hash(hasher);
        }
    }
    for (place, cell) in &state.cells {
        if cell.size == 8 && input(cell.term) {
            (place, cell.term).hash(hasher);
        }
    }
    for (id, obj) in &state.objs {
        let needed = match terms.object(*id) {
            Object::Deref(base) => match terms.get(*base) {
                Term::Param(_) => obj.used || obj.passed,
                // What lies in an argument: whether it was handed on.
                Term::Content { epoch: 0, .. } => obj.passed && deref_depth(terms, *id) <= 2,
                _ => false,
            },
            _ => false,
        };
        if obj.zeroed || needed || obj.found {
            (id, obj.zeroed, needed, obj.found).hash(hasher);
        }
    }
    (&state.moved, &state.rewired, state.stir, state.starved, state.drains, &state.swept).hash(hasher);
}
