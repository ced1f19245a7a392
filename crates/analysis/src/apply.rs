//! A callee's outcomes, told in the caller's terms.
//!
//!     if (push(q, s) < 0)      // outcome 0: returns -1, nothing else
//!         return -1;           //   -> s is still ours, and lost here
//!                              // outcome 1: returns 0, q->head = obj, obj->s = s

use caulk_base::Id;
use caulk_ir::{BinOp, Call, CmpOp, FuncId, Inst, InstId, Ty, ValueId};
use smallvec::SmallVec;

use crate::clauses::{Clause, Literal};
use crate::counted;
use crate::engine::Engine;
use crate::facts::Range;
use crate::incident::Use;
use crate::merge;
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::state::{Cell, State};
use crate::summary::{Outcome, Summary};
use crate::term::{Term, TermId};
use crate::trace::Event;
use crate::translate::Translation;
use crate::trust::tells_of_another;
use crate::widen;

impl Engine<'_> {
    #[expect(clippy::too_many_arguments, reason = "a call and its callee")]
    pub(crate) fn apply(
        &mut self,
        mut state: State,
        id: InstId,
        inst: &Inst,
        call: &Call,
        _args: &[TermId],
        callee: FuncId,
        summary: &Summary,
    ) -> Vec<State> {
        for (index, object) in summary.objects.iter().enumerate() {
            if matches!(object, Object::Heap { older: false, .. }) {
                self.make_room(&mut state, id, index as u32);
            }
        }
        let args: Vec<TermId> = call.args.iter().map(|&arg| self.operand(&state, arg)).collect();
        if args.iter().any(|&arg| !self.terms.mentions(arg).is_empty()) {
            for name in &summary.assumed {
                if !self.assumed.contains(name) {
                    self.assumed.insert(name.clone());
                }
            }
        }
        self.calls_unknown |= summary.calls_unknown;
        self.draws |= summary.draws;
        self.asks |= summary.asks;
        let extra = self.program.function(callee).param_count as usize;
        if args.len() > extra && self.knowledge.keeps_variadic(callee) {
            for &arg in &args[extra..] {
                self.escape(&mut state, arg);
            }
        }
        self.note_stored(&mut state, summary, &args);
        if summary.incomplete || self.is_recursive(callee) {
            self.unsettle(&mut state, &args, callee, summary.incomplete);
        }
        if summary.degraded {
            // Its paths were not told apart: what one of them keeps, all may keep.
            self.blur(&mut state, &args, summary.cut);
        }
        let ignored = self.ignores_result(inst);
        let steady = !(summary.draws || self.limits.wary && summary.asks);
        let pure = steady && summary.is_effect_free();
        let mut states = Vec::new();
        let many = summary.outcomes.len() > 1;
        let mut absurd: Vec<usize> = Vec::new();
        // What the callee's terms are here does not depend on the outcome.
        let mut translation = Translation::new(summary, callee, &args, id, pure, state.version);
        for (number, outcome) in summary.outcomes.iter().enumerate() {
            if ignored && many && !self.limits.wary && tells_of_another(summary, outcome) {
                continue;
            }
            if many && self.is_absurd(&state, outcome, &mut translation) {
                absurd.push(number);
                continue;
            }
            if let Some(next) = self.ending_in(&state, inst, number, &mut translation) {
                states.push((outcome, next));
            }
        }
        if states.is_empty() {
            for number in absurd {
                if let Some(next) = self.ending_in(&state, inst, number, &mut translation) {
                    states.push((&summary.outcomes[number], next));
                }
            }
        }
        let untested = inst.result.is_some_and(|result| {
            let pointer = self.function.values[result].ty == Ty::Ptr;
            pointer && self.needed.contains(result) && !self.tested.contains(result)
        });
        if untested && !ignored && !self.limits.wary {
            // Whoever uses a pointer as it comes knows that it is not null, unless memory runs out.
            let is_null = |outcome: &Outcome| {
                !outcome.starved && outcome.result.is_some_and(|term| summary.terms[term.index()] == Term::Int(0))
            };
            if states.iter().any(|(outcome, _)| !is_null(outcome)) {
                states.retain(|(outcome, _)| !is_null(outcome));
            }
        }
        if (ignored || inst.result.is_none()) && !self.limits.wary {
            self.trust_release(&mut states, &args, summary);
            let is_number = |value: &ValueId| matches!(self.function.values[*value].ty, Ty::Int(_));
            let numbers: Vec<bool> = call.args.iter().map(is_number).collect();
            self.trust_taking(&state, &mut states, &args, ignored, (summary, &numbers));
        }
        let told = states.into_iter().map(|(outcome, next)| State { starved: next.starved | outcome.starved, ..next });
        let mut states: Vec<State> = told.collect();
        if self.limits.wary && summary.incomplete {
            // Whether it may keep what it was given, is another doubt.
            let term = self.terms.sym(id.0, 0);
            self.clobber_globals(&mut state, id);
            self.bind_result(&mut state, inst, term);
            states.push(state);
        }
        states
    }

    /// The state after the call, if it ends in this outcome.
    fn ending_in(
        &mut self,
        before: &State,
        inst: &Inst,
        number: usize,
        translation: &mut Translation<'_>,
    ) -> Option<State> {
        let outcomes = &translation.summary.outcomes;
        let mut next = before.clone();
        if outcomes.len() > 1 {
            next.record(Event::Outcome { inst: translation.site, outcome: number as u32 });
        }
        let next = self.outcome(next, before, inst, &outcomes[number], translation);
        // Also where it has turned out to be impossible halfway.
        self.pinned.clear();
        next
    }

    /// Would the outcome release the middle of a block, or what is none? Where there is another one, a condition that tells them apart was
    /// lost: `if (o->encoding == RAW) free(o->ptr); free(o);` of an `o` that holds its text.
    fn is_absurd(&mut self, before: &State, outcome: &Outcome, translation: &mut Translation<'_>) -> bool {
        outcome.objs.iter().any(|(obj, known)| {
            known.status == Status::FREED
                && self.input_pointer(before, translation, *obj).is_some_and(|ptr| {
                    let block = self.terms.ptr_add(ptr, known.freed_off.into());
                    self.terms.pointee(block).is_some_and(|(target, off)| match self.terms.object(target) {
                        Object::Heap { .. } => matches!(off, Off::At(at) if at != 0),
                        Object::Stack(_) | Object::Global(_) => true,
                        _ => false,
                    })
                })
        })
    }

    /// Is the callee part of the recursion that is being analysed?
    fn is_recursive(&self, callee: FuncId) -> bool {
        callee == self.id || !self.knowledge.is_earlier(callee)
    }

    fn outcome(
        &mut self,
        mut state: State,
        before: &State,
        inst: &Inst,
        outcome: &Outcome,
        translation: &mut Translation<'_>,
    ) -> Option<State> {
        let id = translation.site;
        let mut unforeseen: Vec<ObjId> = Vec::new();
        // When does it happen? Facts about new objects come with the objects.
        for &(term, lo, hi, ref not) in &outcome.ranges {
            if translation.is_fresh(term) {
                continue;
            }
            let original = &translation.summary.terms[term.index()];
            let is_argument = matches!(original, Term::Param(_));
            let part = term;
            let term = self.translate(before, translation, part);
            let raised = hi <= 0 && counted::is_raised(&self.terms, term);
            let hidden = counted::is_hidden(&self.terms, term);
            if raised || hidden {
                let range = Range { lo, hi, not: not.as_slice().into() };
                let decided = counted::decided_by(translation.summary, part, &range);
                if raised && decided.is_some() {
                    return None;
                }
                unforeseen.extend(decided.filter(|_| hidden));
            }
            // `resize(p, count * size)`: what is worked out as a size is not taken to be 0.
            if is_argument
                && (lo, hi) == (0, 0)
                && matches!(self.terms.get(term), Term::Bin(BinOp::Mul | BinOp::Shl, ..))
            {
                return None;
            }
            if !self.assume_range(&mut state, term, lo, hi, not, id) {
                return None;
            }
        }
        for &(term, truth) in &outcome.atoms {
            let term = self.translate(before, translation, term);
            if self.limits.wary && matches!(self.terms.get(term), Term::Cmp(CmpOp::Float, ..)) {
                continue;
            }
            if !self.assume(&mut state, term, truth, id) {
                return None;
            }
        }
        for clause in &outcome.clauses {
            state = self.assume_either(state, before, translation, clause)?;
        }
        // What must still be alive for it, or have been there before.
        for (obj, known) in &outcome.objs {
            if known.found
                && let Some(ptr) = self.input_pointer(before, translation, *obj)
                && self.is_new_to_memory(before, ptr)
            {
                return None;
            }
            if !known.used && !known.passed {
                continue;
            }
            let Some(ptr) = self.input_pointer(before, translation, *obj) else { continue };
            if !known.used {
                self.check_freed(&mut state, ptr, id);
            } else if !self.touch(&mut state, ptr, id, Use::Passed) {
                return None;
            }
            if known.passed && matches!(self.terms.get(ptr), Term::Param(_) | Term::Content { epoch: 0, .. }) {
                let input = self.terms.intern_object(Object::Deref(ptr));
                if !state.obj(input).is_some_and(|known| known.passed) {
                    state.obj_entry(input, self.memory).passed = true;
                }
            }
        }
        let changed: SmallVec<[Option<TermId>; 8]> =
            outcome.changed.iter().map(|obj| self.input_pointer(before, translation, *obj)).collect();
        let rewired: SmallVec<[Option<TermId>; 8]> =
            outcome.rewired.iter().map(|obj| self.input_pointer(before, translation, *obj)).collect();
        // Values are worked out before anything is written: they speak of memory as it was.
        let computed: SmallVec<[bool; 8]> =
            outcome.writes.iter().map(|write| widen::is_computed_term(translation.summary, write.term)).collect();
        let moved: SmallVec<[(TermId, ObjId); 2]> = outcome
            .moved
            .iter()
            .filter_map(|&(from, to)| {
                let Object::Heap { older, .. } = translation.summary.objects[to.index()] else { return None };
                let to = self.terms.intern_object(Object::Heap { site: id, sub: to.0, older });
                Some((self.input_pointer(before, translation, from)?, to))
            })
            .collect();
        let writes: SmallVec<[(TermId, Off, u64, TermId); 8]> = outcome
            .writes
            .iter()
            .map(|write| {
                let obj = self.translate_object(before, translation, write.obj);
                let off = self.translate_off(before, translation, write.off);
                (obj, off, write.size, self.translate(before, translation, write.term))
            })
            .collect();
        let weak: SmallVec<[(TermId, TermId); 4]> = outcome
            .weak
            .iter()
            .map(|&(obj, term)| {
                (self.translate_object(before, translation, obj), self.translate(before, translation, term))
            })
            .collect();
        let result = outcome.result.map(|term| self.translate(before, translation, term));
        if let Some(term) = result
            && self.terms.as_int(term).is_none()
            && !self.limits.wary
        {
            // A number that is worked out is none of the codes by which other outcomes tell that they failed; where
            // something comes with it, and never with a code, the caller takes it for a number beyond all of them. One
            // that is written down (`return odd ? -1 : 0;`) is what it says, also where ways met that returned one or
            // another: it lies between them then.
            let values = merge::values(&self.terms, term);
            let told = state.facts.range(&self.terms, term);
            let may_be = |code: i64| {
                values.as_ref().is_none_or(|all| all.iter().any(|value| self.terms.as_int(*value) == Some(code)))
                    || (told.lo == code && told.hi < i64::from(i32::MAX))
            };
            let hands_out = |outcome: &Outcome| outcome.hands_out(translation.summary);
            let beyond = self.terms.mentions(term).is_empty()
                && state.facts.range(&self.terms, term).hi >= 0
                && hands_out(outcome)
                && !translation.summary.failures().any(|(_, failed)| hands_out(failed));
            for (code, _) in translation.summary.failures().filter(|(code, _)| !may_be(*code)) {
                let other = if beyond { Range::between(0, i64::MAX) } else { Range::except(code) };
                if !state.facts.narrow(term, &other) {
                    return None;
                }
            }
        }

        for &family in &outcome.swept {
            self.sweep(&mut state, family);
        }
        for (obj, known) in &outcome.objs {
            if let Object::Heap { older, .. } = translation.summary.objects[obj.index()] {
                let fresh = ObjState { freed_at: None, lost: false, lost_at: None, ..*known };
                if older {
                    let id = self.terms.intern_object(Object::Heap { site: id, sub: obj.0, older: true });
                    let joined = state.obj(id).map_or(fresh, |old| ObjState { single: false, ..old.join(fresh) });
                    state.set_obj(id, joined);
                } else {
                    self.allocate(&mut state, id, obj.0, fresh, false);
                }
            }
        }
        for (from, to) in moved {
            self.move_contents(&mut state, from, to);
        }
        // The result is held from now on, so that nothing counts as lost while the effects go in.
        if let Some(term) = result {
            self.bind_result(&mut state, inst, term);
            self.note_handed_out(term, id);
        }
        let inputs: SmallVec<[(TermId, &ObjState, ObjId); 8]> = outcome
            .objs
            .iter()
            .filter_map(|(obj, known)| Some((self.input_pointer(before, translation, *obj)?, known, *obj)))
            .collect();
        let held = writes.iter().map(|write| write.3).chain(weak.iter().map(|entry| entry.1));
        let held = held.chain(inputs.iter().map(|entry| entry.0));
        self.pinned.extend(held);
        if translation.summary.drains_with(outcome, |other| self.suits(before, translation, other)) {
            let released: Vec<TermId> =
                inputs.iter().filter(|entry| entry.1.status == Status::FREED).map(|entry| entry.0).collect();
            let args = translation.args.clone();
            self.drain(&mut state, translation.summary, &args, &released, id);
        }
        let mut released: SmallVec<[(TermId, bool); 4]> = SmallVec::new();
        for (ptr, known, of) in inputs {
            // Two elements that the callee takes for different ones, and that are one here: it has seen them at two times.
            let element = is_element(translation.summary, of);
            if known.status == Status::FREED {
                if released.iter().any(|&(other, too)| other == ptr && (element || too)) {
                    continue;
                }
                released.push((ptr, element));
            }
            let inline = self.models.families[known.family].is_inline;
            if inline && known.status == Status::FREED && !self.holds_inline(&state, ptr) {
                continue;
            }
            if known.status == Status::FREED {
                // A destructor that calls itself for what its argument leads to goes through the whole structure.
                state.drains |= self.is_recursive(translation.callee);
                self.drained |= state.drains;
                self.note_release(ptr);
                if self.models.families[known.family].is_integer
                    && let Object::Deref(base) = translation.summary.objects[of.index()]
                    && let Term::Param(arg) = translation.summary.terms[base.index()]
                    && self.is_worked_out(id, &caulk_models::Place::Arg(arg))
                {
                    self.sweep(&mut state, known.family);
                }
                let block = self.terms.ptr_add(ptr, known.freed_off.into());
                if !self.release(&mut state, block, known.family, id) {
                    return None;
                }
                if unforeseen.contains(&of)
                    && let Some((target, _)) = self.terms.pointee(ptr)
                    && let Some(entry) = state.obj_mut(target)
                {
                    entry.status = entry.status.join(Status::LIVE);
                }
            } else if known.status.may(Status::FREED)
                && let Some((target, _)) = self.terms.pointee(ptr)
            {
                self.note_release(ptr);
                let family = known.family;
                let entry = state.obj_entry(target, family);
                entry.status = entry.status.join(Status::FREED);
                entry.freed_at = entry.freed_at.or(Some(id));
            }
            if known.escaped {
                self.escape(&mut state, ptr);
            }
            let told = |entry: &ObjState| entry.doubted >= known.doubted && entry.unsettled >= known.unsettled;
            if (known.doubted || known.unsettled)
                && let Some((target, _)) = self.terms.pointee(ptr)
                && !self.is_left_alone(before, &translation.args, translation.callee, target)
                && !state.obj(target).is_some_and(told)
            {
                let entry = state.obj_entry(target, known.family);
                (entry.doubted, entry.unsettled) = (entry.doubted || known.doubted, entry.unsettled || known.unsettled);
            }
            if known.lent
                && let Some((target, _)) = self.terms.pointee(ptr)
            {
                if let Some(entry) = state.obj_mut(target) {
                    entry.lent = true;
                }
                self.note_lent(&mut state, ptr);
                self.lend_contents(&mut state, ptr);
            }
            if known.sent {
                self.send(&mut state, ptr, None);
            }
        }
        self.stir(&mut state, outcome.stir, id);
        for ptr in changed.into_iter().flatten() {
            if let Some((obj, _)) = self.terms.pointee(ptr) {
                self.scribble_behind(&mut state, obj, i64::MIN, id);
            }
        }
        for ptr in rewired.into_iter().flatten() {
            state.aliased = id.0 + 1;
            self.clobber(&mut state, ptr, id);
        }
        for ((base, off, size, term), computed) in writes.into_iter().zip(computed) {
            let Some((obj, at)) = self.terms.pointee(base) else {
                self.escape(&mut state, term);
                continue;
            };
            let off = at.plus(off);
            if computed {
                self.note_counter(obj, off, id);
            }
            match (off, Cell { term, size }.is_stretch()) {
                (Off::At(at), true) => self.note_stretch(&mut state, (obj, at), size, term, id),
                _ => state.store(&self.terms, obj, off, size, term),
            }
            self.note_within(&mut state, obj, term, Some(id));
            if size == 8 && off == Off::At(0) && matches!(self.terms.get(base), Term::Content { .. }) {
                state.aliased = id.0 + 1;
            }
            for held in self.terms.mentions(term).to_vec() {
                self.ever_bound.insert(held);
                state.record(Event::Store { inst: id, obj: held });
            }
            self.note_written(&mut state, obj, id);
        }
        for (base, term) in weak {
            if let Some((obj, _)) = self.terms.pointee(base) {
                state.add_weak(&self.terms, obj, term);
                self.note_within(&mut state, obj, term, None);
            }
        }
        self.pinned.clear();
        if outcome.objs.iter().any(|(obj, _)| makes(translation.summary, *obj)) {
            self.leave_with_owner(&mut state, result, id);
        }
        if let (Some(term), Some(original)) = (result, outcome.result) {
            for &(fact, lo, hi, ref not) in &outcome.ranges {
                if fact == original
                    && !translation.is_fresh(fact)
                    && !self.assume_range(&mut state, term, lo, hi, not, id)
                {
                    return None;
                }
            }
        }
        for &arg in &translation.args {
            for &obj in self.terms.mentions(arg) {
                state.touch(obj, id);
            }
        }
        self.collect_within(&mut state, id);
        if outcome.starved || gives_nothing_back(translation.summary, outcome) {
            // Whose these are now is not for us to say.
            for obj in self.exchanged(before, id, translation.summary) {
                if let Some(known) = state.obj_mut(obj) {
                    (known.lost, known.lost_at) = (false, None);
                    known.give_away();
                }
            }
        }
        Some(state)
    }

    /// New blocks that the callee put into a structure of our caller, and neither returned nor stored through the
    /// address of a local: they belong to that structure, whose own functions will release them. What lies in an
    /// out-parameter is our caller's, who has asked for it.
    fn leave_with_owner(&mut self, state: &mut State, result: Option<TermId>, id: InstId) {
        let is_new = |engine: &Self, obj: ObjId| {
            engine.terms.is_block(obj)
                && matches!(engine.terms.object(obj), Object::Heap { site, older: false, .. } if *site == id)
        };
        if !state.objs.iter().any(|(obj, known)| !known.escaped && is_new(self, *obj)) {
            return;
        }
        let mut roots: Vec<TermId> = result.into_iter().collect();
        for ((obj, _), cell) in &state.cells {
            let ours = match self.terms.object(*obj) {
                Object::Stack(_) => true,
                Object::Heap { site, .. } => *site != id && state.obj(*obj).is_some_and(|known| !known.escaped),
                _ => false,
            };
            if ours {
                roots.push(cell.term);
            }
        }
        let reached = self.reachable(state, roots);
        let left: Vec<ObjId> = state
            .objs
            .iter()
            .filter(|(obj, known)| !known.escaped && is_new(self, *obj) && !reached.contains(*obj))
            .map(|entry| entry.0)
            .collect();
        let handed_out = {
            let out =
                state.cells.iter().filter(|((holder, off), _)| *off == Off::At(0) && self.is_out_parameter(*holder));
            self.reachable(state, out.map(|entry| entry.1.term).collect::<Vec<_>>())
        };
        for obj in left {
            if !handed_out.contains(obj) {
                state.give_away(obj);
            }
        }
    }

    /// Is it what a parameter points to that was declared as a pointer to a pointer?
    fn is_out_parameter(&self, obj: ObjId) -> bool {
        let Object::Deref(base) = *self.terms.object(obj) else { return false };
        let Term::Param(index) = *self.terms.get(base) else { return false };
        let unit = &self.program.units[self.unit];
        self.function.vars.iter().any(|var| var.param == Some(index) && unit.is_pointer_to_pointer(var.ty))
    }

    fn assume_range(&mut self, state: &mut State, term: TermId, lo: i64, hi: i64, not: &[i64], id: InstId) -> bool {
        if self.terms.is_plain(term) {
            return self.assume_bounds(state, term, lo, hi, not);
        }
        if lo == hi {
            let k = self.terms.int(lo);
            let cond = self.compare(state, CmpOp::Eq, term, k);
            return self.assume(state, cond, true, id);
        }
        if lo != i64::MIN {
            let k = self.terms.int(lo);
            let cond = self.terms.cmp(CmpOp::Sge, term, k);
            if !self.assume(state, cond, true, id) {
                return false;
            }
        }
        if hi != i64::MAX {
            let k = self.terms.int(hi);
            let cond = self.terms.cmp(CmpOp::Sle, term, k);
            if !self.assume(state, cond, true, id) {
                return false;
            }
        }
        for &value in not {
            let k = self.terms.int(value);
            let cond = self.compare(state, CmpOp::Ne, term, k);
            if !self.assume(state, cond, true, id) {
                return false;
            }
        }
        true
    }

    /// The same of a plain value: nothing follows from it for objects or for parts of the value.
    fn assume_bounds(&mut self, state: &mut State, term: TermId, lo: i64, hi: i64, not: &[i64]) -> bool {
        let mut bound = |op: CmpOp, k: i64| state.facts.assume_bound(&mut self.terms, term, op, k);
        if lo == hi {
            return bound(CmpOp::Eq, lo);
        }
        (lo == i64::MIN || bound(CmpOp::Sge, lo))
            && (hi == i64::MAX || bound(CmpOp::Sle, hi))
            && not.iter().all(|&value| bound(CmpOp::Ne, value))
    }

    fn state_with(&mut self, state: &State, literal: &Literal, id: InstId) -> Option<State> {
        let mut next = state.clone();
        let Range { lo, hi, not } = &literal.range;
        self.assume_range(&mut next, literal.term, *lo, *hi, not, id).then_some(next)
    }

    /// Can a bound of a plain value hold? `None`: that takes a closer look (`assume_range`), to which this says the same.
    fn may_hold(&self, state: &State, literal: &Literal) -> Option<bool> {
        let Range { lo, hi, not } = &literal.range;
        let term = literal.term;
        let (op, k) = match (*lo, *hi, not.as_slice()) {
            (lo, hi, []) if lo == hi => (CmpOp::Eq, lo),
            (lo, i64::MAX, []) if lo != i64::MIN => (CmpOp::Sge, lo),
            (i64::MIN, hi, []) if hi != i64::MAX => (CmpOp::Sle, hi),
            (i64::MIN, i64::MAX, &[value]) => (CmpOp::Ne, value),
            _ => return None,
        };
        if !self.terms.is_plain(term) || !state.facts.is_of_no_clause(&self.terms, term) {
            return None;
        }
        Some(state.facts.may_be(term, op, k))
    }

    /// One of two conditions of the callee holds.
    fn assume_either(
        &mut self,
        mut state: State,
        before: &State,
        translation: &mut Translation<'_>,
        clause: &Clause,
    ) -> Option<State> {
        if translation.is_fresh(clause.0.term) || translation.is_fresh(clause.1.term) {
            return Some(state);
        }
        let mut side = |engine: &mut Self, literal: &Literal| {
            let term = engine.translate(before, translation, literal.term);
            let literal = Literal { term, range: literal.range.clone() };
            match engine.may_hold(&state, &literal) {
                Some(possible) => (literal, possible.then_some(None)),
                None => {
                    let next = engine.state_with(&state, &literal, translation.site);
                    (literal, next.map(Some))
                }
            }
        };
        let (a, b) = (side(self, &clause.0), side(self, &clause.1));
        match (a, b) {
            ((_, None), (_, None)) => None,
            ((_, Some(Some(next))), (_, None)) | ((_, None), (_, Some(Some(next)))) => Some(next),
            ((literal, Some(None)), (_, None)) | ((_, None), (literal, Some(None))) => {
                self.state_with(&state, &literal, translation.site)
            }
            ((a, Some(_)), (b, Some(_))) => {
                let plain = |engine: &Self, literal: &Literal| {
                    engine.terms.mentions(literal.term).is_empty() && engine.terms.as_int(literal.term).is_none()
                };
                if plain(self, &a) && plain(self, &b) {
                    state.facts.add_clause(&self.terms, if a <= b { Clause(a, b) } else { Clause(b, a) });
                }
                Some(state)
            }
        }
    }
}

/// Does a function that moves what it is given into a larger block return nothing here?
fn gives_nothing_back(summary: &Summary, outcome: &Outcome) -> bool {
    outcome.result.is_some_and(|term| summary.terms[term.index()] == Term::Int(0))
        && summary.outcomes.iter().any(|other| !other.moved.is_empty())
}

/// Is it a block that the callee has just made?
fn makes(summary: &Summary, obj: ObjId) -> bool {
    matches!(summary.objects[obj.index()], Object::Heap { older: false, .. })
}

/// Is it what an element of an array points to, at an index that the callee does not know?
fn is_element(summary: &Summary, obj: ObjId) -> bool {
    let Object::Deref(base) = summary.objects[obj.index()] else { return false };
    matches!(summary.terms[base.index()], Term::Content { off: Off::Elem(..), .. })
}
