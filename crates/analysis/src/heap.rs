//! What happens to objects: uses, releases, escapes, and the loss of the last reference.

use caulk_ir::{BinOp, Callee, InstId, Op, Target, Ty, ValueId};
use caulk_models::FamilyId;
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::incident::{Doubt, IncidentKind, Loss, NotHeap, Use};
use crate::merge::{BLOCK_SITE, deref_depth};
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::state::{Cell, State};
use crate::term::{Term, TermId};
use crate::trace::Event;

/// Chains of pointers longer than this are not told apart any more.
const MAX_DEPTH: u32 = 4;

impl Engine<'_> {
    /// The pointer is dereferenced. `false`: it is null, the path ends in a crash.
    pub(crate) fn touch(&mut self, state: &mut State, ptr: TermId, at: InstId, how: Use) -> bool {
        let Some((obj, _)) = self.terms.pointee(ptr) else {
            return self.terms.as_int(ptr) != Some(0);
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
                    self.report(IncidentKind::UseAfterFree(how), state, obj, known.family, at, None);
                    return false;
                }
                if known.status.may(Status::FREED) {
                    self.suspicions.insert((at, IncidentKind::UseAfterFree(how)));
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
                if state.obj(obj).is_some_and(|known| known.status.may(Status::FREED) && known.status != Status::FREED)
                {
                    self.suspicions.insert((at, IncidentKind::UseAfterFree(how)));
                }
                if let Some(known) = state.obj(obj)
                    && known.status == Status::FREED
                {
                    let family = known.family;
                    self.report(IncidentKind::UseAfterFree(how), state, obj, family, at, None);
                    return false;
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

    /// `ptr` is given to a releasing function of `family`. `false`: the path ends here.
    pub(crate) fn release(&mut self, state: &mut State, ptr: TermId, family: FamilyId, at: InstId) -> bool {
        self.weigh_release(state, ptr, at);
        let spec = &self.models.families[family];
        if spec.is_integer && self.terms.as_int(ptr) == Some(0) {
            // No pointer, but the standard input.
            self.releases.entry(at).or_default().insert(Doubt::NotOurs);
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
        let Some((obj, off)) = self.terms.pointee(ptr) else { return true };
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
                    if let Some(entry) = state.obj_mut(obj) {
                        entry.status = entry.status.join(Status::FREED);
                        entry.freed_at = Some(at);
                    }
                    return true;
                }
                let bare = known.status.without(Status::FAILED);
                if bare.may(Status::FREED) && bare != Status::FREED {
                    self.suspicions.insert((at, IncidentKind::DoubleFree));
                }
                if bare == Status::FREED {
                    self.report(IncidentKind::DoubleFree, state, obj, known.family, at, None);
                    return false;
                }
                if off != Off::At(0) && !spec.is_integer && bare == Status::LIVE && !known.escaped {
                    // Allocators with headers of several sizes shift pointers back and forth in functions of
                    // their own: only what is plain to see here counts.
                    if matches!(off, Off::At(_)) && self.is_direct(obj) && self.is_library_call(at) {
                        self.report(IncidentKind::InvalidFree(NotHeap::Interior), state, obj, known.family, at, None);
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
                if self.is_loop_value(base) || deref_depth(&self.terms, obj) > MAX_DEPTH {
                    self.drained = true;
                }
                if !matches!(self.terms.get(base), Term::Param(_)) {
                    self.may_release_parameters(state, at);
                }
                let entry = state.obj_entry(obj, family);
                let known = *entry;
                if known.status == Status::FREED {
                    if !matches!(off, Off::At(0)) {
                        return true;
                    }
                    self.report(IncidentKind::DoubleFree, state, obj, family, at, None);
                    return false;
                }
                if let Some(entry) = state.obj_mut(obj) {
                    entry.status = Status::FREED;
                    entry.family = family;
                    entry.freed_at = Some(at);
                    entry.freed_off = match off {
                        Off::At(at) => at,
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

    pub(crate) fn is_library_call(&self, at: InstId) -> bool {
        let Op::Call(call) = &self.function.insts[at].op else { return false };
        match &call.callee {
            Callee::Symbol(symbol) => matches!(self.program.target(self.unit, *symbol), Target::Extern(_)),
            _ => false,
        }
    }

    /// What speaks against releasing this pointer here.
    pub(crate) fn weigh_release(&mut self, state: &State, ptr: TermId, at: InstId) {
        let mut doubts: Vec<Doubt> = Vec::new();
        if self.terms.as_int(ptr) != Some(0) {
            match self.terms.pointee(ptr) {
                Some((obj, Off::At(0))) => match (self.terms.object(obj), state.obj(obj)) {
                    (Object::Heap { older: false, .. }, Some(known)) => {
                        if known.is_given_away() {
                            doubts.push(Doubt::Escaped);
                        }
                        let through_pointer = matches!(&self.function.insts[at].op,
                            Op::Call(call) if matches!(call.callee, Callee::Value(_)));
                        if known.chosen && !through_pointer {
                            doubts.push(Doubt::Chosen);
                        }
                        if known.lent {
                            doubts.push(Doubt::Lent);
                        }
                        let nothing = self.may_be_asked_for_nothing(state, obj, at);
                        if known.status.may(Status::FREED) || known.drained || known.doubted || nothing {
                            doubts.push(Doubt::MayBeReleased);
                        }
                        if known.unsettled {
                            doubts.push(Doubt::Unsettled);
                        }
                        if known.retained > 0
                            || self.is_referenced_outside(state, obj)
                            || self.is_looked_into(state, obj, known.family, at)
                        {
                            doubts.push(Doubt::StillReferenced);
                        }
                    }
                    (Object::Deref(_), _) if self.is_own_part(state, ptr, at) => doubts.push(Doubt::Part),
                    (Object::Deref(_), _) => doubts.push(Doubt::NotOurs),
                    _ => doubts.push(Doubt::Blurred),
                },
                _ if self.is_own_part(state, ptr, at) => doubts.push(Doubt::Part),
                _ => doubts.push(Doubt::Blurred),
            }
        }
        self.releases.entry(at).or_default().extend(doubts);
    }

    /// A block was to become larger, and was not.
    pub(crate) fn note_asked(&mut self, old: TermId, at: InstId, arg: u32, args: &[TermId]) {
        let (Some((obj, _)), Op::Call(call)) = (self.terms.pointee(old), &self.function.insts[at].op) else { return };
        for (&value, &size) in call.args.iter().zip(args).skip(arg as usize + 1) {
            if matches!(self.function.values[value].ty, Ty::Int(_)) {
                self.asked.entry(obj).or_default().insert((at, size));
            }
        }
    }

    /// Who asks for no bytes gets null, and the old block is gone all the same.
    fn may_be_asked_for_nothing(&self, state: &State, obj: ObjId, at: InstId) -> bool {
        let before = |asked: &(InstId, TermId)| asked.0 != at && self.may_be_none(state, asked.1);
        self.asked.get(&obj).is_some_and(|sizes| sizes.iter().any(before))
    }

    /// May the number be 0? That it runs over is another error.
    fn may_be_none(&self, state: &State, size: TermId) -> bool {
        if state.facts.range(&self.terms, size).excludes(0) {
            return false;
        }
        match *self.terms.get(size) {
            Term::Bin(BinOp::Mul, a, b) => self.may_be_none(state, a) || self.may_be_none(state, b),
            Term::Bin(BinOp::Shl, a, _) | Term::Cast(_, _, a) => self.may_be_none(state, a),
            Term::Bin(BinOp::Add, a, b) => !(self.is_positive(a) || self.is_positive(b)),
            _ => true,
        }
    }

    fn is_positive(&self, term: TermId) -> bool {
        self.terms.as_int(term).is_some_and(|value| value > 0)
    }

    /// What the library put into a resource goes with it: does anybody still need a pointer that was read there
    /// (`return found->ai_addr;`)?
    fn is_looked_into(&self, state: &State, obj: ObjId, family: FamilyId, at: InstId) -> bool {
        let spec = &self.models.families[family];
        if spec.is_memory || spec.is_integer {
            return false;
        }
        let inside = |term: TermId| {
            self.terms.contains(term, &mut |part, _| matches!(part, Term::Content { obj: of, .. } if *of == obj))
        };
        let needed = |value: ValueId| {
            self.function.values.get(value).is_some_and(|known| known.ty == Ty::Ptr)
                && self.cfg.is_live_after(self.block, value, at)
        };
        let outside = |holder: ObjId| match *self.terms.object(holder) {
            Object::Stack(_) => false,
            Object::Deref(base) => !inside(base),
            _ => holder != obj,
        };
        let held = |holder: ObjId, cell: &Cell| cell.size == 8 && outside(holder) && inside(cell.term);
        let may_lead = |term: TermId| inside(term) && state.facts.range(&self.terms, term).constant() != Some(0);
        state.env.iter().any(|(value, term)| needed(*value) && may_lead(*term))
            || state.cells.iter().any(|((holder, _), cell)| held(*holder, cell))
    }

    /// Does memory that outlives this function, or a block that is still in use, point to the object?
    fn is_referenced_outside(&self, state: &State, obj: ObjId) -> bool {
        let outlives = |holder: ObjId| match self.terms.object(holder) {
            Object::Stack(_) => false,
            Object::Heap { .. } => {
                holder != obj && state.obj(holder).is_some_and(|known| known.status.may(Status::LIVE))
            }
            _ => true,
        };
        state.cells.iter().any(|((holder, _), cell)| self.terms.mentions(cell.term).contains(&obj) && outlives(*holder))
            || state.weak.iter().any(|(holder, term)| self.terms.mentions(*term).contains(&obj) && outlives(*holder))
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

    /// The value is put into an object.
    pub(crate) fn note_within(&mut self, state: &mut State, holder: ObjId, term: TermId) {
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
            self.ever_within.entry(held).or_default().insert(holder);
        }
    }

    /// The object that held a lost one on this path, and those that held that one, on any.
    pub(crate) fn holders(&self, state: &State, obj: ObjId) -> Vec<ObjId> {
        let holds = |entry: &&((ObjId, Off), Cell)| self.terms.mentions(entry.1.term).contains(&obj);
        let within = state.obj(obj).and_then(|known| known.within);
        let within = within.or_else(|| state.cells.iter().find(holds).map(|entry| entry.0.0));
        let mut all: Vec<ObjId> = within.into_iter().collect();
        let mut at = 0;
        while at < all.len() && all.len() < 8 {
            for holder in self.ever_within.get(&all[at]).into_iter().flatten() {
                if !all.contains(holder) {
                    all.push(*holder);
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
            }
            _ => {}
        }
    }

    /// A released block no longer holds what lay in it.
    fn lose_contents(&mut self, state: &mut State, obj: ObjId, at: InstId) {
        let before = state.cells.len() + state.weak.len();
        state.cells.retain(|((of, _), _)| *of != obj);
        state.weak.retain(|(of, _)| *of != obj);
        if state.cells.len() + state.weak.len() != before {
            self.collect(state, Some(at), None);
        }
    }

    fn is_loop_value(&self, term: TermId) -> bool {
        self.terms.contains(term, &mut |part, _| match part {
            Term::Sym { site, .. } => *site >= BLOCK_SITE,
            Term::Content { epoch, .. } => *epoch >= BLOCK_SITE,
            _ => false,
        })
    }

    /// Someone we cannot see may keep the value, and everything reachable from it.
    pub(crate) fn escape(&mut self, state: &mut State, term: TermId) {
        if self.terms.is_number(term) {
            return;
        }
        let reached = self.reachable(state, [term]);
        // Inputs that lie in what escapes go with it, whether or not anyone has looked into them.
        let mut inputs: Vec<TermId> = Vec::new();
        if !reached.is_empty() {
            for ((obj, _), cell) in &state.cells {
                if reached.contains(*obj)
                    && matches!(self.terms.get(cell.term), Term::Param(_) | Term::Content { epoch: 0, .. })
                {
                    inputs.push(cell.term);
                }
            }
            for (obj, held) in &state.weak {
                if reached.contains(*obj)
                    && matches!(self.terms.get(*held), Term::Param(_) | Term::Content { epoch: 0, .. })
                {
                    inputs.push(*held);
                }
            }
        }
        for input in inputs {
            let obj = self.terms.intern_object(Object::Deref(input));
            state.give_away_input(obj, self.memory);
        }
        let is_there = |status: Status| status.without(Status::FAILED).join(Status::LIVE);
        let changes = |id: ObjId, obj: &ObjState| {
            reached.contains(id) && !(obj.is_given_away() && obj.status == is_there(obj.status))
        };
        for (id, obj) in state.objs.edit_if(|(id, obj)| !reached.is_empty() && changes(*id, obj)) {
            if reached.contains(*id) {
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
        let matters = |id: ObjId, obj: &ObjState| {
            !obj.lost
                && (obj.owned
                    || (matches!(self.terms.object(id), Object::Heap { .. })
                        && (at.is_none() || (!obj.escaped && obj.status.may(Status::LIVE)))))
        };
        if !state.objs.iter().any(|(id, obj)| matters(*id, obj)) {
            return;
        }
        let mut roots: SmallVec<[TermId; 32]> = SmallVec::new();
        let forgotten = self.forgotten.and_then(|var| self.bindings.get(&var));
        match result {
            Some(result) => roots.extend(result),
            // The result of the instruction itself counts as held: it is about to be used.
            None => roots.extend(
                state
                    .env
                    .iter()
                    .filter(|entry| {
                        at.is_none_or(|at| {
                            entry.0.0 > u32::MAX / 2
                                || self.function.insts[at].result == Some(entry.0)
                                // A variable still holds it: this instruction is not the one that loses it.
                                || (self.bound.contains(&entry.0) && !forgotten.is_some_and(|values| values.contains(&entry.0)))
                                || self.cfg.is_live_after(self.block, entry.0, at)
                        })
                    })
                    .map(|entry| entry.1),
            ),
        }
        let visible = |engine: &Self, obj: ObjId| match engine.terms.object(obj) {
            Object::Stack(_) => result.is_none(),
            Object::Global(global) => result.is_none() || !engine.knowledge.only_passes(*global),
            Object::External(_) | Object::Code(_) => true,
            Object::Deref(base) => engine.terms.mentions(*base).is_empty(),
            Object::Heap { .. } => state.obj(obj).is_none_or(|known| known.escaped),
        };
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
        let reached = self.reachable(state, roots.iter().copied());
        let (mut lost, mut gone): (Vec<ObjId>, Vec<ObjId>) = (Vec::new(), Vec::new());
        for (id, obj) in &state.objs {
            let (is_heap, older) = match *self.terms.object(*id) {
                Object::Heap { older, .. } => (true, older),
                _ => (false, false),
            };
            if is_heap {
                if reached.contains(*id) || obj.lost {
                    continue;
                }
                let live = obj.status.without(Status::FAILED) == Status::LIVE;
                if live && !obj.escaped && !older {
                    lost.push(*id);
                } else {
                    gone.push(*id);
                }
            } else if obj.owned && !obj.lost {
                let Object::Deref(base) = *self.terms.object(*id) else { continue };
                if state.facts.range(&self.terms, base).constant() == Some(0) {
                    continue;
                }
                let in_place = match *self.terms.get(base) {
                    Term::Content { obj: of, off, epoch } => {
                        state.cells.binary_search_by_key(&(of, off), |entry| entry.0).is_err()
                            && state
                                .epochs
                                .binary_search_by_key(&of, |entry| entry.0)
                                .map_or(0, |at| state.epochs[at].1)
                                == epoch
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
        state.cells.retain(|((of, _), _)| *of != obj);
        state.weak.retain(|(of, _)| *of != obj);
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
            self.forget(state, id);
        }
    }

    /// The allocating call, if no variable ever held its result.
    fn is_ignored(&self, obj: ObjId) -> Option<InstId> {
        let Object::Heap { site, sub: 0, .. } = *self.terms.object(obj) else { return None };
        let result = self.function.insts[site].result?;
        if self.ever_bound.contains(&obj) || self.function.values[result].ty != caulk_ir::Ty::Ptr {
            return None;
        }
        (!self.bound.contains(&result) && !self.stored.contains(&result)).then_some(site)
    }
}
