//! What happens to objects: uses, releases, and what is put into them.

use std::collections::BTreeSet;

use caulk_ir::{Callee, InstId, Op, Target};
use caulk_models::{Effect, FamilyId, FunctionModel};

use crate::engine::Engine;
use crate::incident::{Doubt, IncidentKind, NotHeap, Use};
use crate::later::is_behind;
use crate::merge::{self, BLOCK_SITE, deref_depth};
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::state::{Cell, State};
use crate::term::{Term, TermId};
use crate::trace::{self, Event};

/// Chains of pointers longer than this are not told apart any more.
const MAX_DEPTH: u32 = 4;
/// Addresses below this are what a null pointer and a member's offset make.
const FIRST_PAGE: i64 = 4096;

/// What an object is in every round of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    Call(InstId, u32),
    Other(ObjId),
}

impl Engine<'_> {
    /// Reports what is wrong with an object, once on each way. The way goes on as programs mostly do: what else happens there
    /// counts as well, and whoever calls the function may see it return.
    pub(crate) fn tell(&mut self, state: &mut State, kind: IncidentKind, obj: ObjId, at: InstId) {
        let Some(known) = state.obj(obj).copied() else { return };
        self.blame(obj, &known, at);
        if known.wrong {
            return;
        }
        // What is returned may be all right, if nobody looks at it.
        let is_returned = kind == IncidentKind::UseAfterFree(Use::Returned);
        self.report(kind, state, obj, known.family, at, None);
        if let Some(entry) = state.obj_mut(obj) {
            entry.wrong = !is_returned;
        }
    }

    /// Something may be wrong with an object that may have been released: whoever did so comes too early, for all that is known.
    pub(crate) fn suspect(&mut self, kind: IncidentKind, (obj, known): (ObjId, &ObjState), at: InstId) {
        self.suspicions.insert((at, kind));
        self.blame(obj, known, at);
    }

    /// The releases of an object speak against themselves where it is of use to somebody later. That there is an error with
    /// another one of them already, at the same place, is no excuse; where ways have met, any of them may have been the one.
    fn blame(&mut self, obj: ObjId, known: &ObjState, at: InstId) {
        let others = self.released.get(&self.origin(obj)).into_iter().flatten().copied();
        let all: BTreeSet<InstId> = others.chain(known.freed_at).filter(|release| *release != at).collect();
        for release in all {
            // What a callee made and released on some of its ways is looked at where it did so.
            let Some(doubts) = self.releases.get_mut(&release) else { continue };
            if doubts.contains(&Doubt::StillReferenced) {
                continue;
            }
            let (function, cfg) = (self.function, &self.cfg);
            let mut behind =
                || *self.behind.entry((release, at)).or_insert_with(|| is_behind(function, cfg, at, release));
            if known.freed_at == Some(release) || behind() {
                doubts.insert(Doubt::StillReferenced);
            }
        }
    }

    /// Blocks of one call are one, whatever the round.
    fn origin(&self, obj: ObjId) -> Origin {
        match *self.terms.object(obj) {
            Object::Heap { site, sub, .. } => Origin::Call(site, sub),
            _ => Origin::Other(obj),
        }
    }

    /// The pointer is dereferenced. `false`: it is null, the path ends in a crash.
    pub(crate) fn touch(&mut self, state: &mut State, ptr: TermId, at: InstId, how: Use) -> bool {
        let Some((obj, _)) = self.terms.pointee(ptr) else {
            return !self.is_near_null(ptr);
        };
        match *self.terms.object(obj) {
            Object::Heap { .. } => {
                let Some(&known) = state.obj(obj) else { return true };
                if known.status.may(Status::FAILED)
                    && known.status != Status::FAILED
                    && let Some(entry) = state.obj_mut(obj)
                {
                    entry.status = known.status.without(Status::FAILED);
                }
                if known.status.without(Status::FAILED) == Status::FREED && !self.models.families[known.family].opaque {
                    self.tell(state, IncidentKind::UseAfterFree(how), obj, at);
                    return true;
                }
                if known.status.may(Status::FREED) {
                    self.suspect(IncidentKind::UseAfterFree(how), (obj, &known), at);
                }
                if how == Use::Write && known.family != self.memory && self.is_write_protected(obj) {
                    return false;
                }
                if known.touched < Some(at)
                    && let Some(entry) = state.obj_mut(obj)
                {
                    entry.touched = Some(at);
                }
                true
            }
            Object::Deref(base) => {
                let family = self.memory;
                let perhaps = |known: &ObjState| known.status.may(Status::FREED) && known.status != Status::FREED;
                if let Some(known) = state.obj(obj).copied().filter(perhaps) {
                    self.suspect(IncidentKind::UseAfterFree(how), (obj, &known), at);
                }
                if state.obj(obj).is_some_and(|known| known.status == Status::FREED) {
                    self.tell(state, IncidentKind::UseAfterFree(how), obj, at);
                    return true;
                }
                if !state.obj(obj).is_some_and(|known| known.used) && deref_depth(&self.terms, obj) <= MAX_DEPTH {
                    state.obj_entry(obj, family).used = true;
                }
                let nonnull = crate::facts::Range::except(0);
                let known = state.facts.range(&self.terms, base);
                if known.constant() == Some(0) {
                    return false;
                }
                known.excludes(0) || state.facts.narrow(base, &nonnull)
            }
            _ => true,
        }
    }

    /// Null, a member of what is null, or an element of it: nothing lies in the first page.
    fn is_near_null(&self, ptr: TermId) -> bool {
        match *self.terms.get(ptr) {
            Term::Int(value) => (0..FIRST_PAGE).contains(&value),
            Term::Elem { base, .. } => self.is_near_null(base),
            _ => false,
        }
    }

    /// `ptr` is given to a releasing function of `family`. `false`: the path ends here.
    pub(crate) fn release(&mut self, state: &mut State, ptr: TermId, family: FamilyId, at: InstId) -> bool {
        self.weigh_release(state, ptr, at);
        let spec = &self.models.families[family];
        if spec.is_integer && self.terms.as_int(ptr) == Some(0) {
            // No pointer, but the standard input.
            self.releases.entry(at).or_default().insert(Doubt::NotOurs);
        }
        if spec.is_integer && self.is_worked_out_term(ptr) {
            self.sweep(state, family);
        }
        if let Some(value) = self.terms.as_int(ptr) {
            // free(NULL), close(-1): nothing to do. A constant descriptor is one of the standard ones.
            return spec.is_integer || value == 0 || spec.is_memory;
        }
        self.note_emptied(ptr, None);
        // A value read from one of several places may be any of what lies there.
        for candidate in state.candidates(&self.terms, ptr) {
            for obj in self.terms.mentions(candidate).to_vec() {
                if let Some(entry) = state.obj_mut(obj) {
                    entry.status = entry.status.join(Status::FREED);
                    entry.freed_at = entry.freed_at.or(Some(at));
                }
            }
        }
        self.may_release_inputs(state, ptr, at);
        let Some((obj, off)) = self.terms.pointee(ptr) else { return true };
        self.released.entry(self.origin(obj)).or_default().insert(at);
        match *self.terms.object(obj) {
            Object::Heap { older, .. } => {
                let Some(known) = state.obj(obj).copied() else { return true };
                if known.retained > 0 {
                    if let Some(entry) = state.obj_mut(obj) {
                        entry.retained -= 1;
                    }
                    return true;
                }
                if older || off == Off::Some {
                    if known.status.without(Status::FAILED) == Status::FREED && known.freed_at != Some(at) {
                        self.suspect(IncidentKind::DoubleFree, (obj, &known), at);
                    }
                    let is_it = known.single && off == Off::At(0) && known.status == Status::LIVE;
                    if let Some(entry) = state.obj_mut(obj) {
                        entry.status = if is_it { Status::FREED } else { entry.status.join(Status::FREED) };
                        entry.freed_at = Some(at);
                    }
                    return true;
                }
                if spec.is_integer && known.is_given_away() {
                    self.undermine(state);
                }
                self.note_closed(obj, known.family, at);
                let bare = known.status.without(Status::FAILED);
                if bare.may(Status::FREED) && bare != Status::FREED {
                    self.suspect(IncidentKind::DoubleFree, (obj, &known), at);
                }
                if bare == Status::FREED {
                    if self.is_tried_again(&known, at) {
                        return true;
                    }
                    self.tell(state, IncidentKind::DoubleFree, obj, at);
                    return true;
                }
                if off != Off::At(0) && !spec.is_integer && bare == Status::LIVE && !known.escaped {
                    // Allocators with headers of several sizes shift pointers back and forth in functions of
                    // their own: only what is plain to see here counts.
                    if matches!(off, Off::At(_)) && self.is_direct(obj) && self.is_library_call(at) {
                        self.tell(state, IncidentKind::InvalidFree(NotHeap::Interior), obj, at);
                        return false;
                    }
                } else if !self.models.compatible(known.family, family) && bare == Status::LIVE && !known.escaped {
                    let kind = IncidentKind::Mismatched { allocated: known.family, released: family };
                    self.report(kind, state, obj, known.family, at, None);
                }
                state.record(Event::Release { inst: at, obj });
                if let Some(entry) = state.obj_mut(obj) {
                    let failed = known.status.may(Status::FAILED);
                    let freed = if bare.must(Status::LIVE) { Status::FREED } else { bare.join(Status::FREED) };
                    entry.status = if failed { freed.join(Status::FAILED) } else { freed };
                    entry.freed_at = Some(at);
                    entry.touched = Some(at);
                }
                self.lose_contents(state, obj, at);
                true
            }
            Object::Deref(base) => {
                // Releasing a value of some loop round, or deep inside a structure: the structure is drained.
                let drains = self.is_loop_value(base) || self.is_found_each_round(base, at);
                if drains || deref_depth(&self.terms, obj) > MAX_DEPTH {
                    (self.drained, state.drains) = (true, true);
                }
                if !matches!(self.terms.get(base), Term::Param(_)) {
                    self.may_release_parameters(state, at);
                }
                let entry = state.obj_entry(obj, family);
                let known = *entry;
                if known.status == Status::FREED {
                    if !matches!(off, Off::At(0)) || self.is_tried_again(&known, at) {
                        return true;
                    }
                    self.tell(state, IncidentKind::DoubleFree, obj, at);
                    return true;
                }
                if let Some(entry) = state.obj_mut(obj) {
                    entry.status = Status::FREED;
                    entry.family = family;
                    entry.freed_at = Some(at);
                    entry.freed_off = match off {
                        Off::At(at) => i32::try_from(at).unwrap_or(0),
                        _ => 0,
                    };
                }
                state.record(Event::Release { inst: at, obj });
                self.lose_contents(state, obj, at);
                true
            }
            Object::Stack(_) | Object::Global(_) | Object::External(_) | Object::Code(_) => {
                if spec.is_memory && !spec.is_integer && matches!(off, Off::At(_)) {
                    let what = match self.terms.object(obj) {
                        Object::Stack(_) => NotHeap::Stack,
                        Object::Code(_) => NotHeap::Function,
                        _ => NotHeap::Global,
                    };
                    if self.is_other_than_initial(state, obj) {
                        self.suspicions.insert((at, IncidentKind::InvalidFree(what)));
                    } else {
                        self.report(IncidentKind::InvalidFree(what), state, obj, family, at, None);
                    }
                    return false;
                }
                true
            }
        }
    }

    /// `realloc` is given what is released already. Asked before room is made: in a loop the block of the round before is
    /// one of many afterwards (`free(old); p = realloc(p, n); old = p;`).
    pub(crate) fn grows_released(&mut self, state: &mut State, id: InstId, args: &[TermId], model: &FunctionModel) {
        for effect in &model.effects {
            let Effect::Reallocates { arg, .. } = effect else { continue };
            let Some((obj, _)) = args.get(*arg as usize).and_then(|&old| self.terms.pointee(old)) else { continue };
            let Some(known) = state.obj(obj).copied() else { continue };
            let bare = known.status.without(Status::FAILED);
            match *self.terms.object(obj) {
                Object::Heap { older: false, .. } if bare == Status::FREED && known.retained == 0 => {
                    self.tell(state, IncidentKind::DoubleFree, obj, id);
                }
                Object::Heap { .. } if bare.may(Status::FREED) => {
                    self.suspect(IncidentKind::DoubleFree, (obj, &known), id);
                }
                _ => {}
            }
        }
    }

    /// A merged value may be one of the caller's blocks.
    fn may_release_inputs(&mut self, state: &mut State, ptr: TermId, at: InstId) {
        if !matches!(self.terms.get(ptr), Term::Ite(..)) {
            return;
        }
        let Some(values) = merge::values(&self.terms, ptr) else {
            self.may_release_parameters(state, at);
            return;
        };
        for value in values {
            if matches!(self.terms.get(value), Term::Param(_) | Term::Content { .. }) {
                let (input, family) = (self.terms.intern_object(Object::Deref(value)), self.memory);
                state.obj_entry(input, family).doubted = true;
            }
        }
    }

    /// What is released has no certain name: where it was read from a variable that a parameter was put into, it may be
    /// that one. No finding rests on it, but no release either.
    fn may_release_parameters(&mut self, state: &mut State, at: InstId) {
        let Op::Call(call) = &self.function.insts[at].op else { return };
        for param in crate::cfg::parameters_among(self.function, &call.args) {
            let term = self.terms.param(param);
            let (input, family) = (self.terms.intern_object(Object::Deref(term)), self.memory);
            state.obj_entry(input, family).doubted = true;
        }
    }

    /// Has the way here found something else in a global than what it was initialised with? A result that is the address
    /// of an empty one (`return &nothing;`) was told apart so.
    fn is_other_than_initial(&mut self, state: &State, obj: ObjId) -> bool {
        let Object::Global(global) = *self.terms.object(obj) else { return false };
        state.facts.ranges.iter().any(|(id, range)| match *self.terms.get(*id) {
            Term::Content { obj: of, off: Off::At(at), .. } if of == obj => {
                let initial = self.initial(global, at).map_or(Some(0), |term| self.terms.as_int(term));
                initial.is_some_and(|initial| range.excludes(initial))
            }
            _ => false,
        })
    }

    /// Allocated by a library function that this function calls itself.
    fn is_direct(&self, obj: ObjId) -> bool {
        let Object::Heap { site, sub, .. } = *self.terms.object(obj) else { return false };
        self.sites.get(&(site, sub)).is_some_and(|site| site.direct)
    }

    /// `while (close(fd) == -1 && errno == EINTR) {}`: a descriptor is released by the same call once more, because of how
    /// that went. Libraries do so, whatever the system makes of it.
    fn is_tried_again(&self, known: &ObjState, at: InstId) -> bool {
        known.freed_at == Some(at)
            && self.models.families[known.family].is_integer
            && self.function.insts[at].result.is_some_and(|result| self.used.contains(result))
    }

    pub(crate) fn is_library_call(&self, at: InstId) -> bool {
        let Op::Call(call) = &self.function.insts[at].op else { return false };
        match &call.callee {
            Callee::Symbol(symbol) => matches!(self.program.target(self.unit, *symbol), Target::Extern(_)),
            _ => false,
        }
    }

    /// The most recent block of the same site: all blocks of a site stand for one array.
    fn recent(&mut self, obj: ObjId) -> ObjId {
        match *self.terms.object(obj) {
            Object::Heap { site, sub, older: true } => {
                self.terms.intern_object(Object::Heap { site, sub, older: false })
            }
            _ => obj,
        }
    }

    /// The value is put into an object, by a store that its way tells of or anyhow.
    pub(crate) fn note_within(&mut self, state: &mut State, holder: ObjId, term: TermId, at: Option<InstId>) {
        if self.exposed.contains(&holder) {
            self.lend(state, self.terms.mentions(term).to_vec());
        }
        if !matches!(self.terms.object(holder), Object::Stack(_)) {
            self.put_away.extend(crate::drain::parameters_in(&self.terms, term));
            self.note_emptied(term, Some(holder));
        }
        let holder = self.recent(holder);
        for held in self.terms.mentions(term).to_vec() {
            if let Some(known) = state.obj_mut(held) {
                known.within = Some(holder);
            }
            let held = self.recent(held);
            self.ever_within.entry(held).or_default().insert((holder, at));
        }
    }

    /// The object that held a lost one on this path, and those that held that one, as far as it was put anywhere on a way
    /// here: what a block that was just made is put into later holds nothing of it yet.
    pub(crate) fn holders(&self, state: &State, obj: ObjId) -> Vec<ObjId> {
        let holds = |entry: &&((ObjId, Off), Cell)| self.terms.mentions(entry.1.term).contains(&obj);
        let within = state.obj(obj).and_then(|known| known.within);
        let within = within.or_else(|| state.cells.iter().find(holds).map(|entry| entry.0.0));
        let mut all: Vec<ObjId> = within.into_iter().collect();
        let mut at = 0;
        while at < all.len() && all.len() < 8 {
            for &(holder, by) in self.ever_within.get(&all[at]).into_iter().flatten() {
                let is_store = |event: &Event| matches!(event, Event::Store { inst, .. } if Some(*inst) == by);
                if !all.contains(&holder) && (by.is_none() || trace::any(&state.trace, is_store)) {
                    all.push(holder);
                }
            }
            at += 1;
        }
        all
    }

    /// What was read from an array, wherever in it, is released or put into something else.
    fn note_emptied(&mut self, term: TermId, into: Option<ObjId>) {
        if let Term::Content { obj, off: Off::Elem(..), .. } = *self.terms.get(term)
            && into != Some(obj)
        {
            let array = self.recent(obj);
            self.emptied.insert(array);
        }
    }

    /// Leaks of elements of an array whose elements are taken out one by one elsewhere in the function: the path on
    /// which the loop that does so does not run, or runs too few rounds, is one that the program does not take.
    pub(crate) fn drop_emptied(&mut self) {
        let mut emptied = std::mem::take(&mut self.emptied);
        loop {
            let before = emptied.len();
            for &(old, new) in &self.grown {
                if emptied.contains(&old) || emptied.contains(&new) {
                    emptied.extend([old, new]);
                }
            }
            if emptied.len() == before {
                break;
            }
        }
        self.incidents.retain(|key, _| {
            !self.held.get(key).is_some_and(|holders| holders.iter().any(|holder| emptied.contains(holder)))
        });
    }

    /// What lies behind `old` lies in the block `new` from here on.
    pub(crate) fn move_contents(&mut self, state: &mut State, old: TermId, new: ObjId) {
        let Some((from, Off::At(_))) = self.terms.pointee(old) else { return };
        let cells: Vec<(Off, Cell)> = state.cells_of(from).map(|((_, off), cell)| (*off, *cell)).collect();
        let weak: Vec<TermId> = state.weak_of(from).collect();
        for (off, cell) in cells {
            state.store(&self.terms, new, off, cell.size, cell.term);
        }
        for held in weak {
            state.add_weak(&self.terms, new, held);
        }
        match self.terms.object(from) {
            Object::Deref(_) if !state.moved.contains(&(from, new)) => {
                state.moved.push((from, new));
                state.moved.sort_unstable();
            }
            Object::Heap { .. } => {
                let pair = (self.recent(from), self.recent(new));
                self.grown.insert(pair);
                // What was grown before is grown still.
                let before: Vec<(ObjId, ObjId)> = state.moved.iter().filter(|entry| entry.1 == from).copied().collect();
                for (first, _) in before {
                    if !state.moved.contains(&(first, new)) {
                        state.moved.push((first, new));
                        state.moved.sort_unstable();
                    }
                }
            }
            _ => {}
        }
    }

    /// `while ((item = next(&iterator))) free(item);`: what a callee has found somewhere, with each round another one.
    fn is_found_each_round(&self, term: TermId, at: InstId) -> bool {
        let Term::Sym { site, .. } = *self.terms.get(term) else { return false };
        let call = |inst: InstId| match &self.function.insts.get(inst)?.op {
            Op::Call(call) => Some(call),
            _ => None,
        };
        site < BLOCK_SITE
            && self.cfg.is_in_some_loop(at)
            && self.cfg.is_in_some_loop(InstId(site))
            && call(InstId(site)).is_some_and(|call| match call.callee {
                Callee::Symbol(symbol) => {
                    matches!(self.program.target(self.unit, symbol), Target::Functions(_))
                }
                _ => false,
            })
    }

    fn is_loop_value(&self, term: TermId) -> bool {
        self.terms.contains(term, &mut |part, _| match part {
            Term::Sym { site, .. } => *site >= BLOCK_SITE,
            Term::Content { epoch, .. } => *epoch >= BLOCK_SITE,
            _ => false,
        })
    }
}
