//! Calls: which function, and what is assumed of one that nobody knows.

use std::collections::BTreeSet;

use caulk_ir::{Call, Callee, CmpOp, FuncId, FunctionAttrs, Inst, InstId, SymbolKind, Target, Ty};
use caulk_models::FamilyId;
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::incident::{IncidentKind, Loss, Use};
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::{INLINE_PLACES, Off};
use crate::slots::Targets;
use crate::state::{State, put};
use crate::summary::SiteFact;
use crate::term::{Term, TermId};
use crate::trace::Event;

/// A function that repair calls in programs of its own: it does nothing, and what would speak against releasing its
/// second argument there is noted as for a release.
pub const WEIGH: &str = "__caulk_weigh";

/// A function that programs do not have: only ways on which nothing is wrong yet lead past it.
pub const RIGHT: &str = "__caulk_right";

impl Engine<'_> {
    /// All states in which the call may end; none if it does not return.
    pub(crate) fn call(&mut self, mut state: State, id: InstId, inst: &Inst, call: &Call) -> Vec<State> {
        let args: Vec<TermId> = call.args.iter().map(|&arg| self.operand(&state, arg)).collect();
        let program = self.program;
        match &call.callee {
            Callee::Symbol(symbol) => {
                let symbol = *symbol;
                match program.target(self.unit, symbol) {
                    Target::Functions(all) => {
                        let all = all.clone();
                        if let Some(model) = self.knowledge.user_model(&program.units[self.unit].symbols[symbol].name) {
                            return self.modelled(state, id, inst, call, &args, model);
                        }
                        self.call_all(state, id, inst, call, &args, &all)
                    }
                    Target::Extern(external) if program.externs[*external] == WEIGH => {
                        if let Some(&asked) = args.get(1) {
                            self.weigh_release(&state, asked, id);
                        }
                        vec![state]
                    }
                    Target::Extern(external) if program.externs[*external] == RIGHT => {
                        if state.objs.iter().any(|(_, known)| known.wrong) { Vec::new() } else { vec![state] }
                    }
                    Target::Extern(external) => match self.knowledge.model(*external) {
                        Some(model) => self.modelled(state, id, inst, call, &args, model),
                        None => {
                            let symbol = &program.units[self.unit].symbols[symbol];
                            let attrs = match &symbol.kind {
                                SymbolKind::DeclaredFunction(attrs) => Some(attrs),
                                _ => None,
                            };
                            let name = program.externs[*external].clone();
                            self.unknown(state, id, inst, call, &args, attrs, Some(name))
                        }
                    },
                    Target::Globals(_) => self.unknown(state, id, inst, call, &args, None, None),
                }
            }
            Callee::Value(value) => {
                let pointer = self.operand(&state, *value);
                if self.never_returns(pointer) {
                    return Vec::new();
                }
                // Code of a loaded library: once it has run, others may know of it, and it has to stay.
                if self
                    .terms
                    .pointee(pointer)
                    .is_some_and(|(obj, _)| matches!(self.terms.object(obj), Object::Heap { .. }))
                {
                    self.escape(&mut state, pointer);
                }
                // What only has the right signature may as well be another function that is not ours.
                let known = self.targets(pointer, id).filter(|targets| !targets.guessed);
                let Some(Targets { functions, library, .. }) = known else {
                    return self.unknown(state, id, inst, call, &args, None, None);
                };
                let mut states = Vec::new();
                for external in library {
                    if let Some(model) = self.knowledge.model(external) {
                        states.extend(self.modelled(state.clone(), id, inst, call, &args, model));
                    }
                }
                let several = functions.len() > 1;
                for one in functions {
                    let mut state = state.clone();
                    if !several || self.is_target(&mut state, pointer, one) {
                        states.extend(self.call_all(state, id, inst, call, &args, &[one]));
                    }
                }
                let certain = matches!(self.terms.get(pointer), Term::Func(_) | Term::Addr { .. });
                let made = |obj: ObjId| matches!(self.terms.object(obj), Object::Heap { site, .. } if *site == id);
                for state in states.iter_mut().filter(|_| !certain) {
                    for (obj, known) in state.objs.edit_if(|(obj, known)| made(*obj) && !known.chosen) {
                        known.chosen |= made(*obj);
                    }
                }
                states
            }
            Callee::Intrinsic(_) => {
                let term = self.terms.sym(id.0, 0);
                self.bind_result(&mut state, inst, term);
                vec![state]
            }
            Callee::Asm(_) => {
                for &arg in &args {
                    self.escape(&mut state, arg);
                    self.clobber(&mut state, arg, id);
                }
                let term = self.terms.sym(id.0, 0);
                self.bind_result(&mut state, inst, term);
                vec![state]
            }
        }
    }

    /// A handler that, as it was initialised, does not come back.
    fn never_returns(&mut self, pointer: TermId) -> bool {
        let target = match *self.terms.get(pointer) {
            Term::Func(_) => Some(pointer),
            Term::Content { obj, off: Off::At(at), epoch: 0 } => match *self.terms.object(obj) {
                Object::Global(global) => self.initial(global, at),
                _ => None,
            },
            _ => None,
        };
        target
            .is_some_and(|target| matches!(*self.terms.get(target), Term::Func(id) if self.knowledge.never_returns(id)))
    }

    /// The functions a pointer may mean here; `None`: too many, or nobody knows.
    fn targets(&mut self, pointer: TermId, id: InstId) -> Option<Targets> {
        if let Term::Func(one) = *self.terms.get(pointer) {
            return self.knowledge.is_earlier(one).then(|| Targets { functions: vec![one], ..Targets::default() });
        }
        if let Term::Addr { obj, off: 0 } = *self.terms.get(pointer)
            && let Object::External(external) = *self.terms.object(obj)
        {
            let modelled = self.knowledge.model(external).is_some();
            return modelled.then(|| Targets { library: vec![external], ..Targets::default() });
        }
        self.knowledge.indirect(id).cloned()
    }

    /// Which function an input's pointer means decides what happens: callers who know it know that.
    fn is_target(&mut self, state: &mut State, pointer: TermId, one: FuncId) -> bool {
        if !matches!(self.terms.get(pointer), Term::Content { epoch: 0, .. } | Term::Param(_)) {
            return true;
        }
        let function = self.terms.func(one);
        let same = self.terms.cmp(CmpOp::Eq, pointer, function);
        state.facts.assume(&mut self.terms, same, true)
    }

    fn call_all(
        &mut self,
        state: State,
        id: InstId,
        inst: &Inst,
        call: &Call,
        args: &[TermId],
        all: &[FuncId],
    ) -> Vec<State> {
        self.suspect_dangling(&state, id, args, all);
        let returning: Vec<FuncId> = all.iter().copied().filter(|&one| !self.knowledge.never_returns(one)).collect();
        let all = returning.as_slice();
        if let [one] = all {
            return match self.knowledge.summary(*one) {
                Some(summary) if summary.degraded && summary.outcomes.is_empty() => {
                    self.unknown(state, id, inst, call, args, None, None)
                }
                Some(summary) => self.apply(state, id, inst, call, args, *one, &summary),
                // Part of this recursion and not yet known: no way back from there yet.
                None => Vec::new(),
            };
        }
        let mut states = Vec::new();
        for &one in all {
            match self.knowledge.summary(one) {
                Some(summary) if summary.degraded && summary.outcomes.is_empty() => {
                    states.extend(self.unknown(state.clone(), id, inst, call, args, None, None));
                }
                Some(summary) => states.extend(self.apply(state.clone(), id, inst, call, args, one, &summary)),
                None => {}
            }
        }
        states
    }

    /// Summaries say what all paths of a callee use; one of them may use what only dangles here.
    fn suspect_dangling(&mut self, state: &State, id: InstId, args: &[TermId], callees: &[FuncId]) {
        let freed = |obj: ObjId| state.obj(obj).is_some_and(|known| known.status.may(Status::FREED));
        if !state.objs.iter().any(|(obj, _)| freed(*obj)) {
            return;
        }
        let written = |at: usize| callees.iter().all(|&one| self.only_writes(one, at as u32));
        let looked_at: Vec<TermId> =
            args.iter().enumerate().filter(|(at, _)| !written(*at)).map(|entry| *entry.1).collect();
        let mut dangling: BTreeSet<ObjId> = self.reachable(state, looked_at).iter().filter(|obj| freed(*obj)).collect();
        let shared = |holder: ObjId| !matches!(self.terms.object(holder), Object::Stack(_) | Object::Heap { .. });
        let left_alone = |holder: ObjId| match *self.terms.object(holder) {
            Object::Global(global) => callees.iter().all(|&one| self.knowledge.leaves_alone(one, global)),
            _ => false,
        };
        let cells = state.cells.iter().map(|((holder, _), cell)| (*holder, cell.term));
        for (holder, term) in cells.chain(state.weak.iter().copied()) {
            let gone: SmallVec<[ObjId; 2]> =
                self.terms.mentions(term).iter().copied().filter(|obj| freed(*obj)).collect();
            if !gone.is_empty() && shared(holder) && !left_alone(holder) {
                dangling.extend(gone);
            }
        }
        for obj in dangling {
            if let Some(known) = state.obj(obj) {
                self.suspect(IncidentKind::UseAfterFree(Use::Passed), (obj, known), id);
            }
        }
    }

    pub(crate) fn bind_result(&mut self, state: &mut State, inst: &Inst, term: TermId) {
        if let Some(result) = inst.result {
            state.bind(result, term);
        }
    }

    /// A function of which nothing is known: it may keep what it is given, unless its declaration
    /// says it only looks at it.
    #[expect(clippy::too_many_arguments, reason = "a call and what is known of its callee")]
    fn unknown(
        &mut self,
        mut state: State,
        id: InstId,
        inst: &Inst,
        call: &Call,
        args: &[TermId],
        attrs: Option<&FunctionAttrs>,
        name: Option<String>,
    ) -> Vec<State> {
        if call.noreturn || attrs.is_some_and(|attrs| attrs.noreturn) {
            return Vec::new();
        }
        for (index, &arg) in args.iter().enumerate() {
            if !matches!(self.function.values[call.args[index]].ty, Ty::Ptr) && self.terms.mentions(arg).is_empty() {
                // The number may be a descriptor of a caller's.
                if matches!(self.terms.get(arg), Term::Param(_)) {
                    self.escape(&mut state, arg);
                }
                continue;
            }
            self.check_freed(&mut state, arg, id);
            let known = attrs.and_then(|attrs| attrs.params.get(index).copied()).unwrap_or_default();
            if let (Some(name), false) = (&name, self.terms.mentions(arg).is_empty()) {
                self.assumed.insert(name.clone());
            }
            if known.nocapture || known.pointer_to_const || known.byval {
                for obj in self.terms.mentions(arg).to_vec() {
                    if let Some(entry) = state.obj_mut(obj) {
                        entry.lent |= !known.nocapture && !known.byval;
                        entry.touched = Some(id);
                    }
                }
                if !known.nocapture && !known.byval {
                    self.note_lent(&mut state, arg);
                }
                self.lend_contents(&mut state, arg);
            } else {
                self.escape(&mut state, arg);
            }
            if !known.readonly && !known.pointer_to_const && !known.byval {
                self.clobber(&mut state, arg, id);
            }
        }
        if name.is_none() {
            // A function of the program through a pointer: it sees what any function sees.
            self.calls_unknown = true;
            self.clobber_globals(&mut state, id);
        }
        let pure = attrs.is_some_and(|attrs| attrs.readnone || attrs.readonly);
        let term = match (&name, pure) {
            (Some(name), true) => self.pure_result(name.as_bytes(), args, state.version),
            _ => self.terms.sym(id.0, 0),
        };
        self.bind_result(&mut state, inst, term);
        vec![state]
    }

    pub(crate) fn pure_result(&mut self, name: &[u8], args: &[TermId], version: u32) -> TermId {
        let hash = caulk_base::ContentHash::of(name).0;
        let mut short = [0; 8];
        short.copy_from_slice(&hash[..8]);
        self.terms.pure_call(u64::from_le_bytes(short), args.to_vec(), version)
    }

    /// What a library function finds that only looks at its arguments and at the memory they point to: the same as
    /// before, as long as nobody has written there.
    pub(crate) fn looked_at(&mut self, state: &State, name: &[u8], args: &[TermId]) -> TermId {
        let (mut outside, mut anywhere) = (false, false);
        let mut all = args.to_vec();
        for &arg in args {
            if self.terms.is_number(arg) {
                continue;
            }
            match self.terms.pointee(arg) {
                Some((obj, _)) if self.is_unchangeable(obj) => {}
                Some((obj, _)) if self.is_shared(state, obj) => outside = true,
                // Since when its contents are what they are.
                Some((obj, _)) if !has_characters(state, obj) => {
                    all.push(self.terms.content(obj, Off::Some, state.epoch(obj)));
                }
                _ => anywhere = true,
            }
        }
        let version = match (outside, anywhere) {
            (_, true) => state.version,
            (true, false) => state.outside,
            (false, false) => 0,
        };
        self.pure_result(name, &all, version)
    }

    /// A released object may be passed on.
    pub(crate) fn check_freed(&mut self, state: &mut State, arg: TermId, id: InstId) {
        let Some((obj, _)) = self.terms.pointee(arg) else { return };
        let Some(known) = state.obj(obj).copied() else { return };
        state.touch(obj, id);
        if known.status.without(Status::FAILED) == Status::FREED {
            self.tell(state, IncidentKind::UseAfterFree(Use::Passed), obj, id);
        } else if known.status.may(Status::FREED) {
            self.suspect(IncidentKind::UseAfterFree(Use::Passed), (obj, &known), id);
        }
    }

    /// What the pointer leads to may have been written: its contents are unknown from here on.
    pub(crate) fn clobber(&mut self, state: &mut State, ptr: TermId, id: InstId) {
        if self.terms.pointee(ptr).is_none() {
            return;
        }
        for obj in self.reachable(state, [ptr]).iter() {
            if self.is_unchangeable(obj) {
                continue;
            }
            if self.is_shared(state, obj) {
                state.outside = id.0 + 1;
            }
            for term in state.havoc(obj, id) {
                self.escape(state, term);
            }
            if let Some(entry) = state.obj_mut(obj) {
                entry.zeroed = false;
            }
        }
        state.version = id.0 + 1;
    }

    /// Code, string literals and other constants.
    fn is_unchangeable(&self, obj: ObjId) -> bool {
        match *self.terms.object(obj) {
            Object::Code(_) => true,
            Object::Global(global) => self.knowledge.is_constant(global),
            _ => false,
        }
    }

    pub(crate) fn clobber_globals(&mut self, state: &mut State, id: InstId) {
        let mut globals: Vec<ObjId> = state
            .cells
            .iter()
            .map(|entry| entry.0.0)
            .filter(|obj| matches!(self.terms.object(*obj), Object::Global(_)))
            .collect();
        globals.dedup();
        for obj in globals {
            for term in state.havoc(obj, id) {
                self.escape(state, term);
            }
        }
        state.written(id);
    }

    /// A new object at this call. An earlier one of the same call becomes one of the older ones.
    pub(crate) fn allocate(
        &mut self,
        state: &mut State,
        id: InstId,
        sub: u32,
        known: ObjState,
        direct: bool,
    ) -> TermId {
        self.make_room(state, id, sub);
        let obj = self.terms.intern_object(Object::Heap { site: id, sub, older: false });
        self.note_size(state, obj, id, direct);
        state.set_obj(obj, ObjState { touched: Some(id), ..known });
        state.record(Event::Alloc { inst: id, obj });
        // What a callee makes and keeps is none of this function's.
        if direct || !known.escaped {
            let fact = SiteFact { inst: id, sub, family: known.family, direct, released: false, shared: false };
            self.sites.entry((id, sub)).or_insert(fact);
        }
        self.terms.addr(obj, 0)
    }

    pub(crate) fn make_room(&mut self, state: &mut State, id: InstId, sub: u32) {
        let recent = self.terms.intern_object(Object::Heap { site: id, sub, older: false });
        if state.obj(recent).is_none() {
            if self.cfg.is_in_some_loop(id) {
                for term in state.forget_inside(&self.terms, recent) {
                    self.kept_elsewhere(state, term);
                }
            }
            return;
        }
        self.report_lost(state, id, Loss::Overwritten, |_, obj, _| obj == recent);
        if state.obj(recent).is_some() {
            let older = self.terms.intern_object(Object::Heap { site: id, sub, older: true });
            for term in state.rename(&mut self.terms, recent, older) {
                self.kept_elsewhere(state, term);
            }
        }
    }

    /// The hidden cell by which a struct holds a resource of an inline family: one for the whole struct, wherever in it
    /// the resource lies.
    pub(crate) fn inline_place(family: FamilyId) -> Off {
        Off::At(INLINE_PLACES + i64::from(family.0))
    }

    /// Is there a resource in a hidden cell? In what a caller gave, one may be, until it was released.
    pub(crate) fn holds_inline(&mut self, state: &State, held: TermId) -> bool {
        if !self.terms.mentions(held).is_empty() {
            return true;
        }
        match *self.terms.get(held) {
            Term::Content { obj, epoch: 0, .. } if !matches!(self.terms.object(obj), Object::Stack(_)) => {
                let inner = self.terms.intern_object(Object::Deref(held));
                state.obj(inner).is_none_or(|known| known.status == Status::LIVE)
            }
            _ => false,
        }
    }

    pub(crate) fn set_cell(&mut self, state: &mut State, ptr: TermId, term: TermId, size: u64, id: InstId) {
        if let Some((obj, off)) = self.terms.pointee(ptr) {
            state.store(&self.terms, obj, off, size, term);
            self.note_written(state, obj, id);
        }
    }

    /// The object was written to.
    pub(crate) fn note_written(&self, state: &mut State, obj: ObjId, id: InstId) {
        if self.is_shared(state, obj) {
            state.written(id);
        } else if !matches!(self.terms.object(obj), Object::Stack(_)) {
            state.version = id.0 + 1;
        }
    }

    /// Numbers behind the pointer are no longer known; pointers may still be there. A library writes where it is told
    /// to and further on: what a header in front holds stays.
    pub(crate) fn scribble(&mut self, state: &mut State, ptr: TermId, id: InstId) {
        let Some((obj, off)) = self.terms.pointee(ptr) else { return };
        let front = if let Off::At(at) = off { at } else { i64::MIN };
        self.scribble_behind(state, obj, front, id);
    }

    /// Numbers in the object, from an offset on, are no longer known.
    pub(crate) fn scribble_behind(&mut self, state: &mut State, obj: ObjId, front: i64, id: InstId) {
        if self.is_unchangeable(obj) {
            return;
        }
        let terms = &self.terms;
        let stays = |off: Off, size: u64, term: TermId| {
            let in_front = matches!(off, Off::At(at) if at.saturating_add_unsigned(size) <= front);
            in_front || terms.is_held_by_name(term)
        };
        if state.cells_of(obj).any(|((_, off), cell)| !stays(*off, cell.size, cell.term)) {
            state.cells.retain(|((of, off), cell)| *of != obj || stays(*off, cell.size, cell.term));
        }
        if state.epoch(obj) != id.0 + 1 {
            put(&mut state.epochs, obj, id.0 + 1);
        }
        state.version = id.0 + 1;
        if self.is_shared(state, obj) {
            state.outside = id.0 + 1;
        }
    }
}

/// Were single characters of the object written by the function itself?
fn has_characters(state: &State, obj: ObjId) -> bool {
    state.weak_of(obj).next().is_some()
        || state.cells_of(obj).any(|((_, off), cell)| cell.size == 1 || !matches!(off, Off::At(_)))
}
