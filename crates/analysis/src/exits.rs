//! The ways out of a function: what is left of a state when the frame is gone, and which ways callers need not tell
//! apart.
//!
//!     void *xrealloc(void *p, size_t n) {
//!         void *q = realloc(p, n);          // two blocks, from two calls; to a caller both are
//!         if (!q && !n) q = realloc(p, 1);  // "the block that it returns": they get one name,
//!         if (!q) die();                    // and the two ways are one outcome
//!         return q;
//!     }

use caulk_models::FamilyId;

use crate::engine::{Engine, Exit};
use crate::keys::key;
use crate::merge::{self, Grain, RESULT};
use crate::object::{ObjId, Object, Status};
use crate::place::Off;
use crate::state::State;
use crate::term::{Term, TermId, Terms};

/// Access paths and conditions that nest deeper than this do not leave the function.
const MAX_PATH: u32 = 5;
/// Chains of pointers of an input that are followed one by one; what changes beyond is folded into one fact.
const MAX_CHAIN: u32 = 2;
/// Outcomes with more cells and objects in all than this are merged earlier.
const LARGE: usize = 100;
/// More new objects, or values at unknown places, than this and the deeper ones are not followed by callers.
const MAX_OBJECTS: usize = 12;

impl Engine<'_> {
    /// The function's ways out, as far as they are told apart.
    pub(crate) fn merged_exits(&mut self) -> Vec<State> {
        let mut exits = std::mem::take(&mut self.exits);
        crate::counted::soften_releases(&self.terms, &mut exits);
        let mut states: Vec<State> = exits.into_iter().map(|exit| self.exit_state(exit)).collect();
        self.name_blocks_alike(&mut states);
        let block = caulk_ir::BlockId(self.function.blocks.len() as u32);
        let size: usize = states.iter().map(|state| state.cells.len() + state.objs.len() + state.epochs.len()).sum();
        // Every caller pays for every outcome: where they are large, fewer are kept apart.
        let enough = if size > LARGE { self.limits.outcomes / 2 } else { self.limits.outcomes };
        let released = released_params(&self.terms, &states);
        for grain in [Grain::Effect, Grain::Fine, Grain::Owned, Grain::Result, Grain::One] {
            let allowed = match grain {
                // Ways that differ in nothing but when they are taken.
                Grain::Effect => 1,
                Grain::One => self.limits.outcomes,
                _ => enough,
            };
            if states.len() <= allowed {
                continue;
            }
            let mut merged: Vec<((u64, Vec<bool>), State)> = Vec::new();
            for state in states {
                let nulls: Vec<bool> = released.iter().map(|&param| is_null(&self.terms, &state, param)).collect();
                let key =
                    if grain == Grain::One { (0, Vec::new()) } else { (key(&state, &self.terms, grain, false), nulls) };
                match merged.iter_mut().find(|entry| entry.0 == key) {
                    Some(entry) => entry.1 = merge::join(&mut self.terms, self.memory, &entry.1, &state, block, false),
                    None => merged.push((key, state)),
                }
            }
            states = merged.into_iter().map(|entry| entry.1).collect();
        }
        states
    }

    /// Blocks that play the same part on several ways out get one name.
    fn name_blocks_alike(&mut self, states: &mut [State]) {
        let mut names: Vec<(ObjId, FamilyId, i32)> = Vec::new();
        for state in states {
            let blocks = self.new_blocks(state);
            for (part, &block) in blocks.iter().enumerate() {
                let Some(known) = state.obj(block).copied() else { continue };
                match names.get(part) {
                    None => names.push((block, known.family, known.failure)),
                    Some(&(name, family, failure)) => {
                        let taken = blocks.contains(&name) || state.obj(name).is_some();
                        if !taken && (family, failure) == (known.family, known.failure) {
                            state.rename_block(&mut self.terms, block, name);
                        }
                    }
                }
            }
        }
    }

    /// The blocks that a caller gets, in the order in which it comes to them: from the result, from what it can name,
    /// and from there on.
    fn new_blocks(&self, state: &State) -> Vec<ObjId> {
        let mut found: Vec<ObjId> = Vec::new();
        let add = |found: &mut Vec<ObjId>, term: TermId| {
            for &obj in self.terms.mentions(term) {
                if matches!(self.terms.object(obj), Object::Heap { older: false, .. }) && !found.contains(&obj) {
                    found.push(obj);
                }
            }
        };
        state.value(RESULT).into_iter().for_each(|term| add(&mut found, term));
        for ((holder, _), cell) in &state.cells {
            if !matches!(self.terms.object(*holder), Object::Heap { .. }) {
                add(&mut found, cell.term);
            }
        }
        let mut at = 0;
        while at < found.len() {
            for (_, cell) in state.cells_of(found[at]) {
                add(&mut found, cell.term);
            }
            at += 1;
        }
        found
    }

    /// What is left of an exit's state when the function's own frame is gone.
    fn exit_state(&mut self, exit: Exit) -> State {
        let Exit { mut state, result } = exit;
        state.env.clear();
        self.leave_in_globals(&mut state);
        let aggregate = matches!(self.function.ret, caulk_ir::Ty::Aggregate(_));
        let returned = result.and_then(|term| match *self.terms.get(term) {
            Term::Addr { obj, .. } if aggregate => Some(obj),
            _ => None,
        });
        let reached = {
            let mut roots: Vec<TermId> = result.into_iter().collect();
            roots.extend(state.cells.iter().filter(|((obj, _), _)| self.is_visible(*obj)).map(|entry| entry.1.term));
            roots.extend(state.weak.iter().filter(|(obj, _)| self.is_visible(*obj)).map(|entry| entry.1));
            self.reachable(&state, roots)
        };
        if let Some(result) = result {
            state.bind(RESULT, result);
        }
        self.forget_unlinked(&mut state);
        let mut hidden: Vec<TermId> = Vec::new();
        // Whoever holds a block that is not seen holds what lies in it.
        let escaped: Vec<ObjId> = state.objs.iter().filter(|(_, known)| known.escaped).map(|entry| entry.0).collect();
        let terms = &self.terms;
        let unnameable = |obj: ObjId| matches!(terms.object(obj), Object::Deref(base) if is_hidden(terms, *base));
        state.cells.retain(|((obj, off), cell)| {
            let keep = match terms.object(*obj) {
                Object::Stack(_) => Some(*obj) == returned,
                Object::Heap { .. } => reached.contains(*obj),
                _ => true,
            };
            if (keep && unnameable(*obj)) || (!keep && escaped.contains(obj)) {
                hidden.push(cell.term);
                return false;
            }
            let unchanged = matches!(terms.get(cell.term),
                Term::Content { obj: of, off: at, epoch: 0 } if of == obj && at == off);
            keep && !unchanged
        });
        state.weak.retain(|(obj, term)| {
            let keep = match terms.object(*obj) {
                Object::Stack(_) => Some(*obj) == returned,
                Object::Heap { .. } => reached.contains(*obj),
                _ => true,
            };
            if keep && unnameable(*obj) {
                hidden.push(*term);
                return false;
            }
            keep
        });
        let fresh = state.objs.iter().filter(|(obj, _)| reached.contains(*obj)).count();
        if fresh > MAX_OBJECTS || state.weak.len() > 4 * MAX_OBJECTS {
            // Keep what the caller gets hold of directly; what lies inside it is no longer followed.
            let mut direct: Vec<ObjId> = Vec::new();
            let mut note = |term: TermId| direct.extend(terms.mentions(term));
            result.into_iter().for_each(&mut note);
            for ((obj, _), cell) in &state.cells {
                if !matches!(terms.object(*obj), Object::Heap { .. }) {
                    note(cell.term);
                }
            }
            direct.truncate(MAX_OBJECTS);
            let inner = |obj: &ObjId| matches!(terms.object(*obj), Object::Heap { .. }) && !direct.contains(obj);
            state.objs.retain(|(obj, _)| !inner(obj));
            state.cells.retain(|((obj, _), _)| !inner(obj));
            state.weak.retain(|(obj, _)| !inner(obj));
            state.weak.truncate(4 * MAX_OBJECTS);
        }
        self.fold_commons(&mut state, &mut hidden);
        // Deep inside of an input, what was changed or kept is not told apart.
        let mut rewired: Vec<ObjId> = Vec::new();
        let mut changed: Vec<ObjId> = Vec::new();
        state.cells.retain(|((obj, _), cell)| match fold(terms, *obj) {
            None => true,
            Some(part) => {
                // Also a pointer that the caller had elsewhere may be in there now.
                let pointer = cell.size == 8 && terms.as_int(cell.term).is_none() && !terms.is_private(cell.term);
                if pointer || terms.is_held_by_name(cell.term) {
                    hidden.push(cell.term);
                }
                if cell.size == 8 {
                    rewired.push(part)
                } else {
                    changed.push(part)
                }
                false
            }
        });
        state.weak.retain(|(obj, term)| match fold(terms, *obj) {
            None => true,
            Some(part) => {
                hidden.push(*term);
                rewired.push(part);
                false
            }
        });
        state.epochs.retain(|(obj, _)| match fold(terms, *obj) {
            None => true,
            Some(part) => {
                rewired.push(part);
                false
            }
        });
        for part in changed {
            crate::state::put(&mut state.epochs, part, merge::BLOCK_SITE);
        }
        // What went into memory that the caller cannot name has escaped.
        for term in hidden {
            self.escape(&mut state, term);
        }
        let terms = &self.terms;
        state.objs.retain(|(obj, known)| match fold(terms, *obj) {
            Some(part) if known.status == Status::LIVE => {
                if known.escaped {
                    rewired.push(part);
                }
                false
            }
            _ => true,
        });
        // A new block that somebody else holds has what lay in an input; so has one that was made of an input's part
        // which has no name any more.
        for &(from, to) in &state.moved {
            if !reached.contains(to) && escaped.contains(&to) {
                rewired.push(from);
            } else if let Object::Deref(base) = *terms.object(from)
                && let Term::Content { obj, .. } = *terms.get(base)
                && is_hidden(terms, base)
            {
                rewired.push(obj);
            }
        }
        rewired.retain(|obj| matches!(terms.object(*obj), Object::Deref(base) if !is_hidden(terms, *base)));
        rewired.sort_unstable();
        rewired.dedup();
        state.rewired = rewired.into();
        state.drains |= state.objs.iter().any(|(obj, known)| {
            known.status.may(Status::FREED)
                && matches!(terms.object(*obj), Object::Deref(base) if terms.depth(*base) > MAX_PATH)
        });
        self.drained |= state.drains;
        state.objs.retain(|(obj, known)| match terms.object(*obj) {
            Object::Stack(_) | Object::Code(_) => false,
            Object::Heap { .. } => reached.contains(*obj),
            Object::Deref(base) => {
                !is_hidden(terms, *base)
                    && (known.status != Status::LIVE
                        || known.used
                        || known.passed
                        || known.escaped
                        || known.lent
                        || known.sent
                        || known.found
                        || known.doubted
                        || known.unsettled)
            }
            Object::Global(_) | Object::External(_) => known.status != Status::LIVE,
        });
        state.epochs.retain(|(obj, _)| match terms.object(*obj) {
            Object::Stack(_) => false,
            Object::Heap { .. } => reached.contains(*obj),
            Object::Deref(base) => !is_hidden(terms, *base),
            _ => true,
        });
        state.moved.retain(|(from, to)| {
            reached.contains(*to) && matches!(terms.object(*from), Object::Deref(base) if !is_hidden(terms, *base))
        });
        let kept: Vec<TermId> = result.into_iter().chain(state.cells.iter().map(|entry| entry.1.term)).collect();
        state.facts.retain(|id| kept.contains(&id) || !is_hidden(terms, id));
        for (_, known) in &mut state.objs {
            known.touched = None;
            known.within = None;
        }
        state
    }

    /// What is released after a store through a pointer that was read from memory (`*item->prev = item->next;`) was
    /// unlinked by it, for all that is known: what led to it may lead elsewhere now.
    fn forget_unlinked(&mut self, state: &mut State) {
        if state.aliased == 0 {
            return;
        }
        let mut places: Vec<(ObjId, Off)> = Vec::new();
        for (obj, known) in &state.objs {
            if known.status == Status::FREED
                && let Object::Deref(base) = *self.terms.object(*obj)
                && let Term::Content { obj: holder, off: off @ Off::At(_), epoch: 0 } = *self.terms.get(base)
                && matches!(self.terms.object(holder), Object::Deref(_) | Object::Global(_))
                && merge::deref_depth(&self.terms, holder) <= MAX_CHAIN
                && state.epoch(holder) == 0
                && state.obj(holder).is_none_or(|known| known.status == Status::LIVE)
                && state.cells.binary_search_by_key(&(holder, off), |entry| entry.0).is_err()
            {
                places.push((holder, off));
            }
        }
        for (holder, off) in places {
            let later = self.terms.content(holder, off, state.aliased);
            state.store(&self.terms, holder, off, 8, later);
        }
    }

    fn is_visible(&self, obj: ObjId) -> bool {
        match self.terms.object(obj) {
            Object::Stack(_) | Object::Heap { .. } => false,
            Object::Deref(base) => self.terms.mentions(*base).is_empty(),
            _ => true,
        }
    }
}

/// Does the term mean nothing outside the function, or lie too deep to be told apart there?
fn is_hidden(terms: &Terms, id: TermId) -> bool {
    terms.depth(id) > MAX_PATH || terms.is_private(id)
}

/// Parameters of which some outcome releases what they point to: where they are null, there is nothing to release, and
/// that is another outcome than one that leaves it.
fn released_params(terms: &Terms, states: &[State]) -> Vec<TermId> {
    let mut params: Vec<TermId> = Vec::new();
    for (obj, known) in states.iter().flat_map(|state| &state.objs) {
        if let Object::Deref(base) = *terms.object(*obj)
            && known.status.may(Status::FREED)
            && matches!(terms.get(base), Term::Param(_))
            && !params.contains(&base)
        {
            params.push(base);
        }
    }
    params
}

fn is_null(terms: &Terms, state: &State, param: TermId) -> bool {
    state.facts.range(terms, param).constant() == Some(0)
}

/// The part of an input structure in which chains of pointers are no longer told apart, for an object beyond it.
fn fold(terms: &Terms, obj: ObjId) -> Option<ObjId> {
    let mut at = obj;
    let mut beyond = merge::deref_depth(terms, obj).checked_sub(MAX_CHAIN).filter(|beyond| *beyond > 0)?;
    while beyond > 0 {
        let Object::Deref(base) = *terms.object(at) else { return None };
        let (Term::Content { obj, .. } | Term::Addr { obj, .. }) = *terms.get(base) else { return None };
        at = obj;
        beyond -= 1;
    }
    Some(at)
}
