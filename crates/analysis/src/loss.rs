//! Objects that nobody here refers to any more: given to somebody who is not seen, or lost.

use caulk_ir::{InstId, ValueId};
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::incident::{IncidentKind, Loss};
use crate::object::{ObjId, ObjState, Object, Status};
use crate::reach::Sought;
use crate::state::State;
use crate::term::{Term, TermId};

impl Engine<'_> {
    /// A released block no longer holds what lay in it.
    pub(crate) fn lose_contents(&mut self, state: &mut State, obj: ObjId, at: InstId) {
        if state.forget_cells(obj) {
            self.collect(state, Some(at), None);
        }
    }

    /// Someone we cannot see may keep the value, and everything reachable from it.
    pub(crate) fn escape(&mut self, state: &mut State, term: TermId) {
        if self.terms.is_number(term) {
            return;
        }
        let reached = self.reachable(state, [term]);
        // Inputs that lie in what escapes go with it, whether or not anyone has looked into them.
        let mut inputs: SmallVec<[TermId; 8]> = SmallVec::new();
        let mut note = |held: TermId| {
            if matches!(self.terms.get(held), Term::Param(_) | Term::Content { epoch: 0, .. }) {
                inputs.push(held);
            }
        };
        if !state.cells.is_empty() {
            reached.iter().for_each(|obj| state.cells_of(obj).for_each(|entry| note(entry.1.term)));
        }
        if !state.weak.is_empty() {
            reached.iter().for_each(|obj| state.weak_of(obj).for_each(&mut note));
        }
        for input in inputs {
            let obj = self.terms.intern_object(Object::Deref(input));
            state.give_away_input(obj, self.memory);
        }
        self.exposed.extend(reached.iter().filter(|id| matches!(self.terms.object(*id), Object::Stack(_))));
        let is_there = |status: Status| status.without(Status::FAILED).join(Status::LIVE);
        for id in reached.iter() {
            if state.obj(id).is_some_and(|obj| !obj.is_given_away() || obj.status != is_there(obj.status))
                && let Some(obj) = state.obj_mut(id)
            {
                obj.give_away();
                obj.status = is_there(obj.status);
            }
        }
        if let Some((obj, _)) = self.terms.pointee(term)
            && matches!(self.terms.object(obj), Object::Deref(_))
        {
            state.give_away_input(obj, self.memory);
        }
    }

    /// Marks objects without a reference as lost and forgets those that no longer matter.
    /// `at`: the instruction that may have destroyed the last reference. `result`: the function
    /// returns this, and its locals are gone.
    pub(crate) fn collect(&mut self, state: &mut State, at: Option<InstId>, result: Option<Option<TermId>>) {
        // Within a block only a loss matters; at its end also what can be forgotten.
        let (mut matters, mut owned) = (false, false);
        let mut blocks: SmallVec<[ObjId; 8]> = SmallVec::new();
        for (id, obj) in state.objs.iter().filter(|(_, obj)| !obj.lost) {
            owned |= obj.owned;
            if self.terms.is_block(*id) {
                blocks.push(*id);
                matters |= at.is_none() || (!obj.escaped && obj.status.may(Status::LIVE));
            }
        }
        if !matters && !owned {
            return;
        }
        let forgotten = self.forgotten.and_then(|var| self.bindings.get(&var));
        // The result of the instruction itself counts as held: it is about to be used.
        let is_held = |value: ValueId| {
            at.is_none_or(|at| {
                self.function.insts[at].result == Some(value)
                    // A variable still holds it: this instruction is not the one that loses it.
                    || (self.bound.contains(value) && !forgotten.is_some_and(|values| values.contains(&value)))
                    || self.cfg.is_live_after(self.block, value, at)
            })
        };
        let visible = |engine: &Self, obj: ObjId| match engine.terms.object(obj) {
            Object::Stack(_) => result.is_none(),
            Object::Global(global) => result.is_none() || !engine.knowledge.only_passes(*global),
            Object::External(_) | Object::Code(_) => true,
            Object::Deref(base) => engine.terms.mentions(*base).is_empty(),
            Object::Heap { .. } => state.obj(obj).is_none_or(|known| known.escaped),
        };
        let mut sought = Sought::new(&self.terms, state, blocks);
        if result.is_none() && !owned {
            // Mostly variables hold all there is: then nobody need look through memory. Where they do not, what lies in
            // memory under a name mostly does.
            let holds = |term: TermId| self.terms.holds_block(term);
            let held = state.env.iter().filter(|entry| holds(entry.1) && is_held(entry.0)).map(|entry| entry.1);
            sought.strike(held.chain(self.pinned.iter().copied()));
            if !sought.left.is_empty() {
                let cells = state.cells.iter().map(|entry| (entry.0.0, entry.1.term)).chain(state.weak.iter().copied());
                sought.strike(cells.filter(|(obj, term)| holds(*term) && visible(self, *obj)).map(|entry| entry.1));
            }
            if sought.left.is_empty() {
                return;
            }
        }
        let mut unreached = sought.left;
        let mut roots: SmallVec<[TermId; 32]> = SmallVec::new();
        match result {
            Some(result) => roots.extend(result),
            None => {
                let held = state.env.iter().filter(|entry| is_held(entry.0)).map(|entry| entry.1);
                roots.extend(held.chain(self.pinned.iter().copied()));
            }
        }
        // Cells are sorted by object.
        let mut last: Option<(ObjId, bool)> = None;
        for ((obj, _), cell) in &state.cells {
            let visible = match last {
                Some((known, visible)) if known == *obj => visible,
                _ => visible(self, *obj),
            };
            last = Some((*obj, visible));
            if visible {
                roots.push(cell.term);
            }
        }
        for (obj, term) in &state.weak {
            if visible(self, *obj) {
                roots.push(*term);
            }
        }
        // What a returned struct holds is returned.
        if let Some(Some(term)) = result
            && let Some((obj, _)) = self.terms.pointee(term)
        {
            roots.extend(state.cells_of(obj).map(|entry| entry.1.term));
        }
        if result.is_some() || owned {
            let mut sought = Sought::new(&self.terms, state, unreached);
            sought.strike(roots.iter().copied());
            unreached = sought.left;
        }
        if !unreached.is_empty() {
            let reached = self.reachable(state, roots.iter().copied());
            unreached.retain(|id| !reached.contains(*id));
        }
        let is_lost = |id: &ObjId| {
            let is_older = matches!(self.terms.object(*id), Object::Heap { older: true, .. });
            state.obj(*id).is_some_and(|obj| {
                !obj.escaped && obj.status.without(Status::FAILED) == Status::LIVE && (!is_older || obj.single)
            })
        };
        let (mut lost, gone): (Vec<ObjId>, Vec<ObjId>) = unreached.into_iter().partition(is_lost);
        for (id, obj) in state.objs.iter().filter(|(_, obj)| obj.owned && !obj.lost) {
            let Object::Deref(base) = *self.terms.object(*id) else { continue };
            if state.facts.range(&self.terms, base).constant() == Some(0) {
                continue;
            }
            let in_place = match *self.terms.get(base) {
                Term::Content { obj: of, off, epoch } => {
                    state.cells.binary_search_by_key(&(of, off), |entry| entry.0).is_err() && state.epoch(of) == epoch
                }
                // The caller still has what it passed.
                _ => true,
            };
            let held = in_place
                || roots.contains(&base)
                || state.cells.iter().any(|(_, cell)| cell.term == base)
                || roots.iter().any(|&root| self.terms.contains(root, &mut |_, part| part == base));
            if !held && obj.status == Status::LIVE && !obj.escaped {
                lost.push(*id);
            }
        }
        for id in lost {
            if let Some(known) = state.obj_mut(id) {
                (known.lost, known.lost_at) = (true, at);
            }
        }
        for obj in gone {
            // Whoever holds an escaped block holds what lies in it.
            if state.obj(obj).is_some_and(|known| known.escaped || known.status.may(Status::LIVE)) {
                let held: Vec<TermId> =
                    state.cells_of(obj).map(|entry| entry.1.term).chain(state.weak_of(obj)).collect();
                for term in held {
                    self.kept_elsewhere(state, term);
                }
            }
            self.forget(state, obj);
        }
    }

    /// Removes all trace of an object that nobody can reach.
    fn forget(&mut self, state: &mut State, obj: ObjId) {
        state.remove_obj(obj);
        state.forget_cells(obj);
        state.epochs.retain(|(of, _)| *of != obj);
    }

    /// Reports what was lost; the path comes to an end or begins again at `at`.
    pub(crate) fn report_lost(
        &mut self,
        state: &mut State,
        at: InstId,
        loss: Loss,
        which: impl Fn(&Self, ObjId, &ObjState) -> bool,
    ) {
        let lost: Vec<(ObjId, ObjState)> =
            state.objs.iter().filter(|(id, obj)| obj.lost && which(self, *id, obj)).copied().collect();
        for (id, obj) in lost {
            let (at, loss) = match (obj.lost_at, self.is_ignored(id)) {
                (Some(at), _) => (at, Loss::Overwritten),
                (None, Some(call)) => (obj.touched.unwrap_or(call), Loss::Ignored),
                (None, None) => (at, loss),
            };
            let kind =
                if self.ends_program && loss == Loss::Return { IncidentKind::LeakAtExit } else { IncidentKind::Leak };
            self.report(kind, state, id, obj.family, at, Some(loss));
            match (self.terms.object(id), state.obj_mut(id)) {
                // It was reported once: our caller, who gave it, has nothing left to say of it.
                (Object::Deref(_), Some(known)) => {
                    (known.lost, known.lost_at, known.owned) = (false, None, false);
                    known.give_away();
                }
                _ => self.forget(state, id),
            }
        }
    }

    /// The allocating call, if no variable ever held its result.
    fn is_ignored(&self, obj: ObjId) -> Option<InstId> {
        let Object::Heap { site, sub: 0, .. } = *self.terms.object(obj) else { return None };
        let result = self.function.insts[site].result?;
        if self.ever_bound.contains(&obj) || self.function.values[result].ty != caulk_ir::Ty::Ptr {
            return None;
        }
        (!self.bound.contains(result) && !self.stored.contains(result)).then_some(site)
    }
}
