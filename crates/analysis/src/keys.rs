//! By what states are told apart: those with equal keys are merged where they meet.
//!
//!     if (y) p = malloc(8);      // p: addr obj0, obj0 live    |    p: null
//!     log(y);                    // two keys: two states go on
//!     if (y) free(p);
//!
//! States that come from one another share most of their lists; what a list adds to the key is worked out once, and
//! remembered by the list.

use std::hash::{Hash, Hasher};

use caulk_base::FxHasher;

use crate::counted;
use crate::merge::{Grain, RESULT, deref_depth};
use crate::object::{ObjId, ObjState, Object, Status};
use crate::state::State;
use crate::term::{Term, TermId, Terms};

/// What states are told apart by where they meet.
pub struct Keys {
    grain: Grain,
    loop_head: bool,
}

impl Keys {
    pub fn new(grain: Grain, loop_head: bool) -> Self {
        Self { grain, loop_head }
    }

    /// What a list of cells is asked for: it adds the same to some keys.
    fn of_cells(&self) -> u8 {
        let exact = u8::from(matches!(self.grain, Grain::Effect | Grain::Fine));
        let owned = u8::from(self.grain == Grain::Owned);
        exact | u8::from(exact != 0 && self.loop_head) << 1 | owned << 2
    }

    /// States with equal keys may be merged.
    pub fn of(&self, state: &State, terms: &Terms) -> u64 {
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
        let objs = state.objs.key(0, || objects_key(state, terms));
        let cells = || cells_key(state, terms, grain, loop_head);
        // To tell effects apart, the facts are asked, too.
        let cells = if grain == Grain::Effect { cells() } else { state.cells.key(self.of_cells(), cells) };
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
            let said = u32::from_be_bytes([4, obj.status.0, u8::from(obj.escaped), obj.retained]);
            hasher.write_u64(u64::from(id.0) << 32 | u64::from(said));
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
