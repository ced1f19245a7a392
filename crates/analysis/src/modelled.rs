//! Calls of functions that a model describes.

use caulk_ir::{Call, Callee, CmpOp, Inst, InstId, Op, Target, Ty, ValueKind};
use caulk_models::{Condition, Effect, FunctionModel, Place, ReturnModel};

use crate::engine::Engine;
use crate::facts::Range;
use crate::incident::Use;
use crate::memory::LARGEST_PART;
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::{LENT, NUMBER, Off};
use crate::state::State;
use crate::term::{Term, TermId, ZERO};

/// The bit of a protection that allows writing.
const PROT_WRITE: i64 = 2;

/// How a modelled call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Not told apart.
    Either,
    Success,
    Failure,
}

impl Engine<'_> {
    pub(crate) fn modelled(
        &mut self,
        mut state: State,
        id: InstId,
        inst: &Inst,
        call: &Call,
        args: &[TermId],
        model: &FunctionModel,
    ) -> Vec<State> {
        let returns = &model.returns;
        self.draws |= returns.draws;
        self.asks |= !returns.pure;
        if returns.never || call.noreturn {
            return Vec::new();
        }
        if let Some(arg) = returns.never_if_nonzero
            && let Some(&term) = args.get(arg as usize)
        {
            let zero = self.terms.cmp(caulk_ir::CmpOp::Eq, term, ZERO);
            if !self.assume(&mut state, zero, true, id) {
                return Vec::new();
            }
        }
        for (index, &arg) in args.iter().enumerate() {
            let released = model.effects.iter().any(|effect| match effect {
                Effect::Releases { place: Place::Arg(n), .. } | Effect::Reallocates { arg: n, .. } => {
                    *n as usize == index
                }
                _ => false,
            });
            let pointer = matches!(self.function.values[call.args[index]].ty, Ty::Ptr);
            if released || (!pointer && self.terms.mentions(arg).is_empty()) {
                continue;
            }
            self.check_freed(&mut state, arg, id);
            if matches!(self.terms.get(arg), Term::Param(_) | Term::Content { epoch: 0, .. }) {
                let obj = self.terms.intern_object(Object::Deref(arg));
                let family = self.memory;
                state.obj_entry(obj, family).passed = true;
            }
        }
        for &needed in &model.needs {
            if let Some(&arg) = args.get(needed as usize)
                && !self.touch(&mut state, arg, id, Use::Passed)
            {
                return Vec::new();
            }
        }
        // A pointer variable passed by address to a function that only reads: its bytes are sent somewhere.
        if model.effects.is_empty() {
            for &arg in args {
                if let Some((obj, off)) = self.terms.pointee(arg)
                    && matches!(self.terms.object(obj), Object::Stack(_))
                    && let Ok(at) = state.cells.binary_search_by_key(&(obj, off), |entry| entry.0)
                {
                    let held = state.cells[at].1.term;
                    if !self.terms.mentions(held).is_empty() {
                        self.escape(&mut state, held);
                    }
                }
            }
        }
        if !model.keeps_nothing && !returns.pure {
            self.lend_variables(&mut state, args, model);
        }
        self.grows_released(&mut state, id, args, model);
        let can_fail =
            returns.fails.is_some() || returns.fails_nonzero || returns.fails_negative || returns.fails_nonpositive;
        let split = can_fail && model.effects.iter().any(needs_split);
        let mut ends = Vec::new();
        // `realloc` fails in a loop: nothing is made, and the block of an earlier round is still the latest one.
        let fails_first = split && model.effects.iter().any(|effect| matches!(effect, Effect::Reallocates { .. }));
        if fails_first {
            ends.extend(self.failing(state.clone(), id, inst, args, model));
        }
        // Room is made before arguments are looked at again: an argument may be the older block.
        // What is there already is kept: no new block.
        let replaces = |effect: &Effect| match effect {
            Effect::Replaces { place, .. } => {
                let old = self.value_at(&state, args, place);
                old.is_some_and(|old| state.facts.range(&self.terms, old).constant() == Some(0))
            }
            _ => true,
        };
        let mut made = model.effects.iter().filter(|effect| allocates(effect));
        let args: Vec<TermId> = if made.any(replaces) {
            for sub in 0..4 {
                self.make_room(&mut state, id, sub);
            }
            call.args.iter().map(|&arg| self.operand(&state, arg)).collect()
        } else {
            args.to_vec()
        };
        if returns.twice {
            return self.returning_twice(state, id, inst, &args, model);
        }
        let sure = returns.sure.and_then(|arg| args.get(arg as usize)).is_some_and(|&arg| self.is_literal(arg));
        // Whoever does not ask whether it was taken could not foresee that it was not.
        let trusted = !self.limits.wary && self.ignores_result(inst) && !model.effects.iter().any(allocates);
        let sure = sure || trusted;
        if split && !sure && !fails_first {
            ends.extend(self.failing(state.clone(), id, inst, &args, model));
        }
        let ending = if split || sure { Ending::Success } else { Ending::Either };
        ends.extend(self.ending(state, id, inst, &args, model, ending));
        ends
    }

    fn failing(
        &mut self,
        state: State,
        id: InstId,
        inst: &Inst,
        args: &[TermId],
        model: &FunctionModel,
    ) -> Option<State> {
        let mut failed = self.ending(state, id, inst, args, model, Ending::Failure)?;
        failed.starved |= model.effects.iter().any(allocates);
        Some(failed)
    }

    /// The handle of a resource of this function.
    fn lender(&self, state: &State, term: TermId) -> Option<ObjId> {
        let Term::Addr { obj, off: 0 } = *self.terms.get(term) else { return None };
        let spec = &self.models.families[state.obj(obj)?.family];
        (matches!(self.terms.object(obj), Object::Heap { .. }) && !spec.is_memory && !spec.is_integer).then_some(obj)
    }

    /// Is it the address of a string that was written down in the source?
    fn is_literal(&self, term: TermId) -> bool {
        let Term::Addr { obj, .. } = *self.terms.get(term) else { return false };
        matches!(*self.terms.object(obj), Object::Global(global) if self.knowledge.initial(global).is_literal)
    }

    /// Was the memory asked for without the right to write it, which nobody gives it later in this function?
    pub(crate) fn is_write_protected(&self, obj: ObjId) -> bool {
        let Object::Heap { site, .. } = *self.terms.object(obj) else { return false };
        let protection = |inst: InstId| {
            let Op::Call(call) = &self.function.insts[inst].op else { return None };
            let Callee::Symbol(symbol) = call.callee else { return None };
            let Target::Extern(external) = self.program.target(self.unit, symbol) else { return None };
            call.args.get(self.knowledge.model(*external)?.protection? as usize).copied()
        };
        let Some(asked) = protection(site) else { return false };
        let others = self.function.insts.ids().any(|inst| inst != site && protection(inst).is_some());
        !others && matches!(self.function.values[asked].kind, ValueKind::Int(bits) if bits & PROT_WRITE == 0)
    }

    /// `setjmp`: the second time it comes back, the code behind the first return has run as far as somebody's `longjmp`.
    /// It may have released and put away whatever there is.
    fn returning_twice(
        &mut self,
        state: State,
        id: InstId,
        inst: &Inst,
        args: &[TermId],
        model: &FunctionModel,
    ) -> Vec<State> {
        let mut ends = Vec::new();
        for second in [false, true] {
            let Some(mut next) = self.ending(state.clone(), id, inst, args, model, Ending::Either) else { continue };
            if second {
                for (_, known) in &mut next.objs {
                    known.give_away();
                    known.status = known.status.join(Status::FREED);
                    known.freed_at = known.freed_at.or(Some(id));
                }
            }
            let result = inst.result.and_then(|result| next.value(result));
            let is_zero = result.map(|result| self.compare(&next, CmpOp::Eq, result, ZERO));
            if is_zero.is_none_or(|is_zero| self.assume(&mut next, is_zero, !second, id)) {
                ends.push(next);
            }
        }
        ends
    }

    fn ending(
        &mut self,
        mut state: State,
        id: InstId,
        inst: &Inst,
        args: &[TermId],
        model: &FunctionModel,
        ending: Ending,
    ) -> Option<State> {
        let mut result: Option<TermId> = None;
        let mut sub = 0;
        // First what goes, then what comes: `realloc` releases before it allocates.
        for effect in &model.effects {
            if !self.effect_out(&mut state, id, args, effect, ending)? {
                continue;
            }
        }
        for effect in &model.effects {
            self.effect_in(&mut state, id, args, effect, ending, &model.returns, &mut sub, &mut result);
        }
        let result = match result {
            Some(term) => term,
            None => self.returned(&mut state, id, args, model, ending)?,
        };
        for effect in &model.effects {
            if let Effect::Stores { arg, into: Place::Return, when } = effect
                && self.applies(&state, *when, ending, args)
                && let (Some(&held), Some((owner, _))) = (args.get(*arg as usize), self.terms.pointee(result))
            {
                state.add_weak(&self.terms, owner, held);
            }
        }
        self.note_foundation(&mut state, args, model, result);
        self.note_address(&mut state, args, model, result);
        self.bind_result(&mut state, inst, result);
        self.collect_within(&mut state, id);
        Some(state)
    }

    /// `mmap(base, …)`: whoever has the address knows what is there now. Where it is null, nobody has.
    fn note_address(&mut self, state: &mut State, args: &[TermId], model: &FunctionModel, result: TermId) {
        let Some(&base) = args.first().filter(|_| model.protection.is_some()) else { return };
        let range = state.facts.range(&self.terms, base);
        if range.constant() != Some(0)
            && let Some((obj, _)) = self.terms.pointee(result)
            && let Some(known) = state.obj_mut(obj)
        {
            known.lent = true;
            if range.excludes(0) {
                known.give_away();
            }
        }
    }

    fn applies(&self, state: &State, when: Condition, ending: Ending, args: &[TermId]) -> bool {
        let null = |n: u32| args.get(n as usize).map(|&arg| state.facts.range(&self.terms, arg));
        match when {
            Condition::Always => true,
            Condition::OnSuccess => ending != Ending::Failure,
            Condition::OnFailure => ending != Ending::Success,
            Condition::ArgNull(n) => null(n).is_some_and(|range| range.constant() == Some(0)),
            Condition::ArgNotNull(n) => null(n).is_none_or(|range| range.constant() != Some(0)),
            Condition::Unless(n, at) => !args.get(n as usize).is_some_and(|&arg| self.is_filled(state, arg, at)),
        }
    }

    /// Has the caller put something there, at so many bytes of what the pointer leads to?
    fn is_filled(&self, state: &State, ptr: TermId, at: i64) -> bool {
        let (obj, off) = match *self.terms.get(ptr) {
            Term::Addr { obj, off } => (obj, off),
            _ => match self.terms.known_deref(ptr) {
                Some(obj) => (obj, 0),
                None => return false,
            },
        };
        let place = (obj, Off::At(off + at));
        state.cells.binary_search_by_key(&place, |entry| entry.0).is_ok_and(|found| {
            let held = state.cells[found].1.term;
            state.facts.range(&self.terms, held).constant() != Some(0)
        })
    }

    /// The pointer to a place.
    fn place(&mut self, args: &[TermId], place: &Place) -> Option<TermId> {
        match place {
            Place::Return => None,
            Place::Arg(n) | Place::Deref(n) => args.get(*n as usize).copied(),
            Place::Field(n, off) => args.get(*n as usize).copied().map(|arg| self.terms.ptr_add(arg, *off)),
        }
    }

    /// The value at a place.
    fn value_at(&mut self, state: &State, args: &[TermId], place: &Place) -> Option<TermId> {
        let term = self.place(args, place)?;
        match place {
            Place::Arg(_) => Some(term),
            _ => {
                let (obj, off) = self.terms.pointee(term)?;
                if let Ok(at) = state.cells.binary_search_by_key(&(obj, off), |entry| entry.0) {
                    return Some(state.cells[at].1.term);
                }
                Some(state.load(&mut self.terms, obj, off, 8))
            }
        }
    }

    /// Releases and hand-overs. `None`: the path ends here.
    fn effect_out(
        &mut self,
        state: &mut State,
        id: InstId,
        args: &[TermId],
        effect: &Effect,
        ending: Ending,
    ) -> Option<bool> {
        match effect {
            Effect::Releases { family, place, when, null_ok } if self.applies(state, *when, ending, args) => {
                let inline = self.models.families[*family].is_inline;
                let term = if inline {
                    let ptr = self.place(args, place)?;
                    let Some((obj, _)) = self.terms.pointee(ptr) else { return Some(true) };
                    state.load(&mut self.terms, obj, Self::inline_place(*family), 8)
                } else {
                    match self.value_at(state, args, place) {
                        Some(term) => term,
                        None => return Some(true),
                    }
                };
                if inline && !self.holds_inline(state, term) {
                    return Some(true);
                }
                if !null_ok && term == ZERO {
                    return None;
                }
                self.note_release(term);
                if self.models.families[*family].is_integer {
                    self.undermine_by_number(state, term);
                    if self.is_worked_out(id, place) {
                        self.sweep(state, *family);
                    }
                }
                if !self.release(state, term, *family, id) {
                    return None;
                }
            }
            Effect::Sweeps { family, place: Place::Return } => self.sweep(state, *family),
            Effect::Sweeps { family, place } => {
                let term = self.value_at(state, args, place);
                if self.is_worked_out(id, place) || term.is_some_and(|term| self.is_worked_out_term(term)) {
                    self.sweep(state, *family);
                }
            }
            Effect::Takes { place, when } if self.applies(state, *when, ending, args) => {
                if let Some(term) = self.value_at(state, args, place) {
                    let gone = |obj: &ObjId| state.obj(*obj).is_some_and(|known| known.is_given_away());
                    if self.terms.mentions(term).iter().any(gone) {
                        self.undermine(state);
                    }
                    self.escape(state, term);
                }
            }
            Effect::Sends { arg, size, depth } => {
                if let Some(&ptr) = args.get(*arg as usize) {
                    let size = size.and_then(|size| self.terms.as_int(*args.get(size as usize)?));
                    self.send_behind(state, ptr, size, *depth);
                }
            }
            Effect::Retains { place, .. } => {
                if let Some(term) = self.value_at(state, args, place)
                    && let Some((obj, _)) = self.terms.pointee(term)
                    && let Some(known) = state.obj_mut(obj)
                {
                    known.retained = known.retained.saturating_add(1);
                }
            }
            Effect::Registers { data: Some(data), .. } => {
                if let Some(&term) = args.get(*data as usize) {
                    self.escape(state, term);
                }
            }
            Effect::Calls { data: Some(data), .. } => {
                if let Some(&term) = args.get(*data as usize) {
                    self.escape(state, term);
                    self.clobber(state, term, id);
                }
            }
            Effect::Stores { arg, into, when }
                if self.applies(state, *when, ending, args) && *into != Place::Return =>
            {
                if let (Some(&held), Some(ptr)) = (args.get(*arg as usize), self.place(args, into))
                    && let Some((owner, _)) = self.terms.pointee(ptr)
                {
                    state.add_weak(&self.terms, owner, held);
                    let variable = self.terms.pointee(held).map(|(obj, _)| obj);
                    self.exposed.extend(variable.filter(|obj| matches!(self.terms.object(*obj), Object::Stack(_))));
                }
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Allocations and writes.
    #[expect(clippy::too_many_arguments, reason = "one effect of one ending of one call")]
    fn effect_in(
        &mut self,
        state: &mut State,
        id: InstId,
        args: &[TermId],
        effect: &Effect,
        ending: Ending,
        returns: &ReturnModel,
        sub: &mut u32,
        result: &mut Option<TermId>,
    ) {
        match effect {
            Effect::Allocates { family, place, when, zeroed } => {
                if ending == Ending::Failure || !self.applies(state, *when, ending, args) {
                    return;
                }
                // An out-parameter that is null receives nothing.
                if *place != Place::Return && self.place(args, place).is_none_or(|ptr| ptr == ZERO) {
                    return;
                }
                let may_fail = ending == Ending::Either && !returns.nonnull && returns.fails.is_some();
                let failure = returns.fails.and_then(|value| i32::try_from(value).ok()).unwrap_or(0);
                let raw = !zeroed && self.models.families[*family].is_memory && self.is_given_numbers_only(id);
                let known = ObjState { zeroed: *zeroed, raw, failure, ..ObjState::fresh(*family, may_fail) };
                let term = self.allocate(state, id, *sub, known, true);
                *sub += 1;
                if self.models.families[*family].is_integer && self.is_for_standard(id) {
                    self.escape(state, term);
                }
                if *place == Place::Return {
                    *result = Some(term);
                } else if let Some(ptr) = self.place(args, place) {
                    let inline = self.models.families[*family].is_inline;
                    if inline {
                        // Its numbers (how many paths `glob` found) are filled in with it.
                        self.scribble(state, ptr, id);
                        if let Some((obj, _)) = self.terms.pointee(ptr) {
                            state.store(&self.terms, obj, Self::inline_place(*family), 8, term);
                        }
                    } else {
                        let size = if self.models.families[*family].is_integer { 4 } else { 8 };
                        self.set_cell(state, ptr, term, size, id);
                    }
                }
            }
            Effect::Reallocates { family, arg, frees_on_failure } => {
                let Some(&old) = args.get(*arg as usize) else { return };
                if ending == Ending::Failure {
                    *result = Some(ZERO);
                    self.note_asked(old, id, *arg, args);
                    if *frees_on_failure {
                        self.note_release(old);
                        self.release(state, old, *family, id);
                    } else if let Some((obj, _)) = self.terms.pointee(old)
                        && matches!(self.terms.object(obj), Object::Deref(_))
                    {
                        // From here on the caller's old block is ours to watch.
                        let family = *family;
                        let known = state.obj_entry(obj, family);
                        if known.status == Status::LIVE {
                            known.owned = true;
                            known.family = family;
                        }
                    }
                    return;
                }
                // The contents move to the new block before the old one is gone.
                let known = ObjState::fresh(*family, false);
                let term = self.allocate(state, id, *sub, known, true);
                *sub += 1;
                if let Some((new, _)) = self.terms.pointee(term) {
                    self.move_contents(state, old, new);
                }
                *result = Some(term);
                self.bind_pending(state, id, term);
                self.note_release(old);
                self.release(state, old, *family, id);
            }
            Effect::Replaces { family, place } => {
                let Some(old) = self.value_at(state, args, place) else { return };
                if state.facts.range(&self.terms, old).constant() == Some(0)
                    && let Some(ptr) = self.place(args, place)
                {
                    let term = self.allocate(state, id, *sub, ObjState::fresh(*family, false), true);
                    *sub += 1;
                    self.set_cell(state, ptr, term, 8, id);
                }
            }
            Effect::Points { place, into } => {
                let target = self.value_at(state, args, into).filter(|target| *target != ZERO);
                if let (Some(ptr), Some(target)) = (self.place(args, place), target) {
                    let index = self.terms.sym(id.0, 7);
                    let alias = self.terms.elem(target, index, 0);
                    self.set_cell(state, ptr, alias, 8, id);
                }
            }
            Effect::Copies { from, to } => {
                if let (Some(&from), Some(&to)) = (args.get(*from as usize), args.get(*to as usize)) {
                    self.copy(state, to, from, None, id);
                }
            }
            Effect::Writes { arg, nonzero } => {
                if let Some(&ptr) = args.get(*arg as usize) {
                    self.write_over(state, ptr);
                    self.scribble(state, ptr, id);
                    if *nonzero {
                        // A cell of its own, so that callers hear of it.
                        let written = self.load_from(state, ptr, caulk_ir::Ty::Int(64), id);
                        self.set_cell(state, ptr, written, 8, id);
                        state.facts.narrow(written, &Range::except(0));
                    }
                }
            }
            Effect::Zeroes { arg, size } => {
                let Some(&ptr) = args.get(*arg as usize) else { return };
                let size = args.get(*size as usize).and_then(|&size| self.terms.as_int(size));
                // A part of somebody's struct: the other parts are what they were.
                let of = self.terms.pointee(ptr).map(|(obj, _)| self.terms.object(obj));
                if matches!(of, Some(Object::Deref(_))) && size.is_some_and(|size| (0..=LARGEST_PART).contains(&size)) {
                    self.fill(state, ptr, true, size, id);
                } else {
                    self.scribble(state, ptr, id);
                }
            }
            Effect::WritesRest { from } => {
                for &ptr in args.iter().skip(*from as usize) {
                    self.write_over(state, ptr);
                    self.scribble(state, ptr, id);
                }
            }
            _ => {}
        }
    }

    /// `return -errno;` tells of a failure: the number is never negative, unless the program has put such a one there.
    fn note_error_number(&mut self, state: &mut State, ptr: TermId, at: InstId) {
        let number = self.load_from(state, ptr, Ty::Int(32), at);
        let never_negative = Range::between(0, i64::from(i32::MAX));
        if !self.limits.wary && !state.facts.range(&self.terms, number).is_disjoint(&never_negative) {
            state.facts.narrow(number, &never_negative);
        }
    }

    /// Keeps a new block alive while the rest of its call is worked out.
    fn bind_pending(&mut self, state: &mut State, id: InstId, term: TermId) {
        if let Some(result) = self.function.insts[id].result {
            state.bind(result, term);
        }
    }

    pub(crate) fn note_release(&mut self, term: TermId) {
        for obj in self.terms.mentions(term).to_vec() {
            if let Object::Heap { site, sub, .. } = *self.terms.object(obj)
                && let Some(site) = self.sites.get_mut(&(site, sub))
            {
                site.released = true;
            }
        }
    }

    /// The descriptor of `stdin`, `stdout` or `stderr`.
    fn standard_stream(&self, stream: TermId) -> Option<i64> {
        let Term::Content { obj, off: Off::At(0), .. } = *self.terms.get(stream) else { return None };
        let Object::External(external) = *self.terms.object(obj) else { return None };
        ["stdin", "stdout", "stderr"]
            .iter()
            .position(|name| self.program.externs[external] == *name)
            .map(|at| at as i64)
    }

    /// The result where no allocation gives it.
    fn returned(
        &mut self,
        state: &mut State,
        id: InstId,
        args: &[TermId],
        model: &FunctionModel,
        ending: Ending,
    ) -> Option<TermId> {
        let returns = &model.returns;
        if ending == Ending::Failure {
            if let Some(value) = returns.fails {
                return Some(self.terms.int(value));
            }
            let term = self.terms.sym(id.0, 0);
            let range = if returns.fails_negative {
                Range::between(i64::MIN, -1)
            } else if returns.fails_nonpositive {
                Range::between(i64::MIN, 0)
            } else {
                Range::except(0)
            };
            state.facts.narrow(term, &range);
            return Some(term);
        }
        if let Some(arg) = returns.argument
            && let Some(&term) = args.get(arg as usize)
        {
            let failure = returns.fails.filter(|_| ending != Ending::Success);
            let Some(failure) = failure.map(|value| self.terms.int(value)) else { return Some(term) };
            // `fgets`: the argument, or null. `dup2`: the argument, or -1.
            let found = self.terms.sym(id.0, 0);
            return Some(self.terms.ite(found, term, failure));
        }
        if let Some(number) = returns.number_of.and_then(|arg| self.standard_stream(*args.get(arg as usize)?)) {
            return Some(self.terms.int(number));
        }
        if let Some(&stream) = returns.number_of.and_then(|arg| args.get(arg as usize))
            && let Term::Addr { obj, off: 0 } = *self.terms.get(stream)
        {
            return Some(self.terms.content(obj, NUMBER, 0));
        }
        let given = returns.interior.and_then(|arg| args.get(arg as usize).copied());
        let inside = match (given, returns.interior_deref) {
            // `strtok_r(NULL, ":", &rest)` goes on where it was.
            (None | Some(ZERO), Some(arg)) => self.value_at(state, args, &Place::Deref(arg)),
            (given, _) => given,
        };
        if let Some(base) = inside {
            let index =
                if returns.pure { self.looked_at(state, model.name.as_bytes(), args) } else { self.terms.sym(id.0, 0) };
            let place = self.terms.elem(base, index, 0);
            if returns.nonnull {
                return Some(place);
            }
            let found = self.terms.cmp(caulk_ir::CmpOp::Ne, index, ZERO);
            return Some(self.terms.ite(found, place, ZERO));
        }
        let lender = args.first().and_then(|first| self.lender(state, *first)).filter(|_| returns.borrowed);
        let term = match lender {
            // What a handle lends goes with it.
            Some(handle) => self.terms.content(handle, lent_at(id), 0),
            None if returns.pure => self.looked_at(state, model.name.as_bytes(), args),
            None => self.terms.sym(id.0, 0),
        };
        if returns.nonnull {
            state.facts.narrow(term, &Range::except(0));
        }
        if returns.nonnegative {
            state.facts.narrow(term, &Range::between(0, i64::MAX));
        }
        if returns.error_number {
            self.note_error_number(state, term, id);
        }
        if ending == Ending::Success {
            let range = if returns.fails_nonzero || returns.zero {
                Range::point(0)
            } else if returns.fails_negative {
                Range::between(0, i64::MAX)
            } else if returns.fails_nonpositive {
                Range::between(1, i64::MAX)
            } else if let Some(value) = returns.fails {
                if value == -1 { Range::between(0, i64::MAX) } else { Range::except(value) }
            } else {
                Range::full()
            };
            if let Some(value) = range.constant() {
                return Some(self.terms.int(value));
            }
            if !state.facts.narrow(term, &range) {
                return None;
            }
        }
        Some(term)
    }
}

/// The hidden cell of a handle for what a call was lent.
fn lent_at(call: InstId) -> Off {
    Off::At(LENT + i64::from(call.0))
}

fn allocates(effect: &Effect) -> bool {
    matches!(effect, Effect::Allocates { .. } | Effect::Reallocates { .. } | Effect::Replaces { .. })
}

/// Effects for which success and failure must be told apart at once.
fn needs_split(effect: &Effect) -> bool {
    match effect {
        Effect::Allocates { place, .. } => *place != Place::Return,
        Effect::Reallocates { .. } => true,
        Effect::Releases { when, .. } | Effect::Takes { when, .. } | Effect::Stores { when, .. } => {
            matches!(when, Condition::OnSuccess | Condition::OnFailure)
        }
        _ => false,
    }
}
