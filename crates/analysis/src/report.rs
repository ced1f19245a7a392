//! Errors as they are met: what is noted of each, and which are only suspected.

use caulk_ir::{BinOp, InstId, Op, Ty, ValueKind};
use caulk_models::FamilyId;

use crate::engine::Engine;
use crate::facts::Range;
use crate::incident::{Incident, IncidentKind, Loss, Subject};
use crate::merge;
use crate::object::{ObjId, Object, Status};
use crate::place::Off;
use crate::state::State;
use crate::term::{Term, TermId, ZERO};
use crate::trace;
use crate::whole::Constancy;

/// More kinds of arguments than this and it can be any.
const MAX_CASES: usize = 8;
/// States whose conditions are put to the solver: the way past a loop may be impossible, and the one through it not.
const MAX_CONDITIONS: usize = 8;

impl Engine<'_> {
    /// Is the object the same one each time its name comes up?
    fn is_certain(&self, obj: ObjId) -> bool {
        let Object::Deref(base) = *self.terms.object(obj) else { return true };
        !self.terms.contains(base, &mut |part, _| match part {
            Term::Content { off, epoch, obj } => {
                *epoch != 0
                    || !matches!(off, Off::At(_))
                    || matches!(self.terms.object(*obj), Object::Stack(_) | Object::Heap { older: true, .. })
            }
            Term::Pure(_) | Term::Ite(..) | Term::Elem { .. } | Term::Bin(..) => true,
            Term::Sym { site, .. } => *site >= merge::BLOCK_SITE,
            _ => false,
        })
    }

    /// What the parameters are in the state, as far as something is known of them.
    fn arguments(&mut self, state: &State) -> Vec<(u32, Range)> {
        let mut known: Vec<(u32, Range)> = Vec::new();
        for (_, value) in self.function.values.iter_ids() {
            if let ValueKind::Param(index) = value.kind
                && matches!(value.ty, Ty::Ptr | Ty::Int(_))
            {
                let term = self.terms.param(index);
                let range = state.facts.range(&self.terms, term);
                if range != Range::full() {
                    known.push((index, range));
                }
            }
        }
        known
    }

    /// What is returned: the number, or whether it is null.
    fn range_of_result(&self, state: &State, term: TermId) -> Range {
        let range = state.facts.range(&self.terms, term);
        match self.terms.get(term) {
            Term::Addr { obj, .. } if state.obj(*obj).is_some_and(|known| !known.status.may(Status::FAILED)) => {
                Range::except(0)
            }
            _ => range,
        }
    }

    /// Does the state hold only if somebody outside of the library has written one of its variables?
    fn is_foreign(&mut self, state: &State) -> bool {
        let ranges = state.facts.ranges.iter().any(|(term, range)| {
            let at_start = self.at_start(*term, 4);
            at_start.and_then(|term| self.terms.as_int(term)).is_some_and(|value| range.excludes(value))
        });
        ranges
            || state.facts.atoms.iter().any(|&(atom, truth)| {
                let at_start = self.at_start(atom, 4);
                at_start.and_then(|term| self.terms.as_int(term)).is_some_and(|value| (value != 0) != truth)
            })
    }

    /// A term over nothing but unwritten variables, with what they hold at the start.
    fn at_start(&mut self, term: TermId, depth: u32) -> Option<TermId> {
        let depth = depth.checked_sub(1)?;
        match *self.terms.get(term) {
            Term::Int(_) => Some(term),
            Term::Content { obj, off: Off::At(at), .. } => match *self.terms.object(obj) {
                Object::Global(global) if self.knowledge.constancy(global) == Constancy::Unwritten => {
                    Some(self.initial(global, at).unwrap_or(ZERO))
                }
                _ => None,
            },
            Term::Bin(op, a, b) => {
                let (a, b) = (self.at_start(a, depth)?, self.at_start(b, depth)?);
                Some(self.terms.bin(op, a, b))
            }
            Term::Cmp(op, a, b) => {
                let (a, b) = (self.at_start(a, depth)?, self.at_start(b, depth)?);
                Some(self.terms.cmp(op, a, b))
            }
            _ => None,
        }
    }

    /// Remembers how much is asked for: the numbers that a library is given, and those that are worked out as sizes.
    pub(crate) fn note_size(&mut self, state: &State, obj: ObjId, at: InstId, direct: bool) {
        let Op::Call(call) = &self.function.insts[at].op else { return };
        for &arg in &call.args {
            let value = self.function.values[arg];
            if !matches!(value.ty, Ty::Int(_)) || !matches!(value.kind, ValueKind::Inst(_)) {
                continue;
            }
            let size = self.operand(state, arg);
            if direct || matches!(self.terms.get(size), Term::Bin(BinOp::Mul | BinOp::Shl, ..)) {
                self.sizes.entry(obj).or_default().insert(size);
            }
        }
    }

    /// Is it a block of no bytes, as far as the way tells? Nobody makes one on purpose: whoever works out a size knows that
    /// there is something to make it for.
    fn is_empty(&self, state: &State, obj: ObjId) -> bool {
        self.sizes.get(&obj).is_some_and(|sizes| sizes.iter().all(|size| self.is_nothing(state, *size, 6)))
    }

    fn is_nothing(&self, state: &State, number: TermId, depth: u32) -> bool {
        if state.facts.range(&self.terms, number).constant() == Some(0) {
            return true;
        }
        let Some(depth) = depth.checked_sub(1) else { return false };
        match *self.terms.get(number) {
            Term::Bin(BinOp::Mul, a, b) => self.is_nothing(state, a, depth) || self.is_nothing(state, b, depth),
            Term::Bin(BinOp::Add, a, b) => self.is_nothing(state, a, depth) && self.is_nothing(state, b, depth),
            Term::Bin(BinOp::Shl, a, _) | Term::Cast(_, _, a) => self.is_nothing(state, a, depth),
            _ => false,
        }
    }

    pub(crate) fn report(
        &mut self,
        kind: IncidentKind,
        state: &State,
        obj: ObjId,
        family: FamilyId,
        at: InstId,
        loss: Option<Loss>,
    ) {
        let known = state.obj(obj);
        // Where everything was merged, or the object has no certain name, an error is only a suspicion.
        if self.degraded || !self.is_certain(obj) {
            self.suspicions.insert((at, kind));
            return;
        }
        // Asked for no bytes, `realloc` has released the old block.
        let nothing = |asked: &(InstId, TermId)| state.facts.range(&self.terms, asked.1).constant() == Some(0);
        if matches!(kind, IncidentKind::Leak) && self.asked.get(&obj).is_some_and(|sizes| sizes.iter().any(nothing)) {
            return;
        }
        let subject = match *self.terms.object(obj) {
            Object::Heap { site, sub, .. } => Subject::Allocated { site, sub },
            _ => Subject::Input(crate::describe::object(self.program, &self.terms, obj)),
        };
        let key = (kind.clone(), subject.clone(), at);
        let arguments = self.arguments(state);
        let is_leak = matches!(kind, IncidentKind::Leak | IncidentKind::LeakAtExit);
        let foreign = self.is_foreign(state) || (is_leak && self.is_empty(state, obj));
        let result = self.returned.map(|term| self.range_of_result(state, term));
        // What needs no foreign hand says more: the other ways are forgotten for it.
        match self.incidents.get(&key).map(|known| known.foreign) {
            Some(false) if foreign => return,
            Some(true) if !foreign => {
                self.incidents.remove(&key);
                self.traces.remove(&key);
            }
            _ => {}
        }
        self.traces
            .entry(key.clone())
            .and_modify(|known| *known = trace::merge(known, &state.trace))
            .or_insert_with(|| state.trace.clone());
        if let Some(known) = self.incidents.get_mut(&key) {
            match known.arguments.len() {
                0 => {}
                MAX_CASES => known.arguments.clear(),
                _ if known.arguments.contains(&arguments) => {}
                _ => known.arguments.push(arguments),
            }
            match result {
                Some(_) if known.results.is_empty() => {}
                Some(range) if known.results.contains(&range) => {}
                Some(range) if known.results.len() < MAX_CASES => known.results.push(range),
                _ => known.results.clear(),
            }
            // Of a release or use behind another, a merged state says too much.
            if is_leak && known.conditions.len() < MAX_CONDITIONS {
                let condition = crate::summary::export_condition(&mut self.terms, &state.facts);
                if !known.conditions.contains(&condition) {
                    known.conditions.push(condition);
                }
            }
            return;
        }
        if is_leak {
            let holders = self.holders(state, obj);
            self.held.insert(key.clone(), holders);
        }
        let incident = Incident {
            kind,
            function: self.id,
            subject,
            family,
            loss,
            at,
            freed_at: known.and_then(|known| known.freed_at),
            paths: Vec::new(),
            arguments: vec![arguments],
            results: result.into_iter().collect(),
            confirmed: false,
            foreign,
            lent: known.is_some_and(|known| known.lent),
            conditions: vec![crate::summary::export_condition(&mut self.terms, &state.facts)],
        };
        self.incidents.insert(key, incident);
    }
}
