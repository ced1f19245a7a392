//! The values of a function that may hold one object, and what each call does with it.
//!
//! ```text
//! v1 = call malloc          the root: v1 holds it
//! v2 = phi [v1], [null]     v2 may: which way was taken decides
//! store v2 -> v0+8          the cell (param 0, 8) holds it, and so does every load of that cell
//! call @put(v0, v2)         the summary of `put` says: outcome 1 keeps argument 1, outcome 2 does not
//! ```
//!
//! # Known imprecision
//! - Cells hold what was ever put into them: loads before the store count, too.

use caulk_analysis::{Analysis, Incident, Object, Off, Subject, Term, TermId};
use caulk_base::{FxHashSet, Id};
use caulk_ir::{Call, Callee, FuncId, Function, InstId, Op, SymbolId, Target, ValueId, ValueKind};
use caulk_models::{Effect, FunctionModel, Place};

use crate::graph::fate::{Ending, Fate, Known, endings_by_model, fate_by_outcome, known, succeeds};

/// A cell of memory: where its address starts, and the steps from there.
type Cell = (Root, Vec<i64>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Root {
    Value(ValueId),
    Symbol(SymbolId),
}

/// A step to an element that is not known.
const SOMEWHERE: i64 = i64::MAX;
/// Cells further away than this are not followed.
const MAX_STEPS: usize = 6;

pub struct Slice<'a> {
    analysis: &'a Analysis<'a>,
    id: FuncId,
    function: &'a Function,
    holds: Vec<bool>,
    /// Those of them that hold it from the start, not only when it was stored somewhere.
    exact: Vec<bool>,
    cells: FxHashSet<Cell>,
    /// Those of them that are filled by the allocation, or are locals.
    exact_cells: FxHashSet<Cell>,
    /// What the allocating call may return when it allocates, if that is not the object itself.
    success: Vec<Known>,
}

impl<'a> Slice<'a> {
    /// `None`: it is not known where the object is.
    pub fn of(analysis: &'a Analysis<'a>, incident: &Incident) -> Option<Self> {
        let function = analysis.knowledge.program.function(incident.function);
        let mut slice = Slice {
            analysis,
            id: incident.function,
            function,
            holds: vec![false; function.values.len()],
            exact: vec![false; function.values.len()],
            cells: FxHashSet::default(),
            exact_cells: FxHashSet::default(),
            success: Vec::new(),
        };
        match incident.subject {
            Subject::Allocated { site, sub } => slice.allocated(site, sub),
            Subject::Input(_) => slice.released_at(incident.freed_at?),
        }
        if slice.cells.is_empty() && !slice.holds.contains(&true) {
            return None;
        }
        slice.exact.clone_from(&slice.holds);
        slice.exact_cells.clone_from(&slice.cells);
        slice.close();
        Some(slice)
    }

    fn allocated(&mut self, site: InstId, sub: u32) {
        let Op::Call(call) = &self.function.insts[site].op else { return };
        let result = self.function.insts[site].result;
        if let Some(model) = self.model(call) {
            let places = model.effects.iter().filter_map(|effect| match effect {
                Effect::Allocates { place, .. } | Effect::Replaces { place, .. } => Some(place.clone()),
                Effect::Reallocates { .. } => Some(Place::Return),
                _ => None,
            });
            match places.clone().nth(sub as usize) {
                Some(Place::Return) => self.holds_it(result),
                Some(Place::Arg(n)) => self.holds_it(call.args.get(n as usize).copied()),
                Some(Place::Deref(n)) => self.cell_holds_it(call, n, 0),
                Some(Place::Field(n, at)) => self.cell_holds_it(call, n, at),
                None => self.holds_it(result),
            }
            self.success = vec![succeeds(&model.returns)];
            return;
        }
        let mut found = false;
        for target in self.targets(site, call) {
            let Some(summary) = self.analysis.knowledge.summary(target) else { continue };
            let is_it =
                |term: TermId| matches!(summary.terms.get(term.index()), Some(Term::Addr { obj, .. }) if obj.0 == sub);
            for outcome in &summary.outcomes {
                if outcome.objs.iter().any(|(obj, _)| obj.0 == sub) {
                    self.success.push(outcome.result.map_or(Known::Any, |term| known(&summary, term)));
                }
                if outcome.result.is_some_and(is_it) {
                    self.holds_it(result);
                    found = true;
                }
                for write in outcome.writes.iter().filter(|write| is_it(write.term)) {
                    let at = match write.off {
                        Off::At(at) => at,
                        _ => SOMEWHERE,
                    };
                    match summary.objects.get(write.obj.index()) {
                        Some(Object::Deref(base)) => {
                            if let Some(Term::Param(n)) = summary.terms.get(base.index()) {
                                self.cell_holds_it(call, *n, at);
                                found = true;
                            }
                        }
                        // A part of another block that the call made.
                        Some(Object::Heap { .. }) => {
                            if let Some(cell) = result.and_then(|value| self.cell(value, at)) {
                                self.cells.insert(cell);
                                found = true;
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        if !found {
            self.holds_it(result);
        }
    }

    /// The object is what the call releases.
    fn released_at(&mut self, site: InstId) {
        let Op::Call(call) = &self.function.insts[site].op else { return };
        for n in 0..call.args.len() {
            if self.endings_of_argument(site, call, n as u32, None).iter().any(|ending| ending.fate == Fate::Released) {
                let value = call.args[n];
                self.holds_it(Some(value));
                // Other loads of the same cell hold it, too.
                if let ValueKind::Inst(inst) = self.function.values[self.base(value)].kind
                    && let Op::Load { ptr } = self.function.insts[inst].op
                    && let Some(cell) = self.cell(ptr, 0)
                {
                    self.cells.insert(cell);
                }
                return;
            }
        }
    }

    fn holds_it(&mut self, value: Option<ValueId>) {
        if let Some(slot) = value.and_then(|value| self.holds.get_mut(value.index())) {
            *slot = true;
        }
    }

    fn cell_holds_it(&mut self, call: &Call, argument: u32, at: i64) {
        if let Some(cell) = call.args.get(argument as usize).and_then(|&value| self.cell(value, at)) {
            self.cells.insert(cell);
        }
    }

    /// Everything that is made of a holder holds it.
    fn close(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for (id, inst) in self.function.insts.iter_ids() {
                let holds = |value: &ValueId| (self.holds[value.index()], self.exact[value.index()]);
                let either = |a: (bool, bool), b: (bool, bool)| (a.0 || b.0, a.1 || b.1);
                let (made, exact) = match &inst.op {
                    Op::Cast { a, .. } => holds(a),
                    Op::Offset { base, .. } => holds(base),
                    Op::Select { a, b, .. } => either(holds(a), holds(b)),
                    Op::Phi { incoming } => incoming.iter().map(|(_, value)| holds(value)).fold((false, false), either),
                    Op::Load { ptr } => self
                        .cell(*ptr, 0)
                        .map_or((false, false), |cell| (self.cells.contains(&cell), self.exact_cells.contains(&cell))),
                    Op::Call(call) => (self.returns_holder(id, call), true),
                    Op::Store { ptr, value } if holds(value).0 => {
                        let exact = holds(value).1 && !self.outlives(*ptr);
                        if let Some(cell) = self.cell(*ptr, 0) {
                            changed |= exact && self.exact_cells.insert(cell.clone());
                            changed |= self.cells.insert(cell);
                        }
                        continue;
                    }
                    _ => continue,
                };
                if let Some(result) = inst.result.filter(|_| made) {
                    let known = (&mut self.holds[result.index()], &mut self.exact[result.index()]);
                    changed |= !*known.0 || (exact && !*known.1);
                    *known.0 = true;
                    *known.1 |= exact;
                }
            }
        }
    }

    /// `strcpy(p, s)` is `p`.
    fn returns_holder(&self, id: InstId, call: &Call) -> bool {
        let held = |n: u32| call.args.get(n as usize).is_some_and(|value| self.holds[value.index()]);
        if !call.args.iter().any(|value| self.holds[value.index()]) {
            return false;
        }
        match self.model(call) {
            Some(model) => model.returns.argument.is_some_and(held),
            None => self.targets(id, call).into_iter().any(|target| {
                self.analysis.knowledge.summary(target).is_some_and(|summary| {
                    summary.outcomes.iter().any(|outcome| {
                        outcome.result.is_some_and(
                            |term| matches!(summary.terms.get(term.index()), Some(Term::Param(n)) if held(*n)),
                        )
                    })
                })
            }),
        }
    }

    /// May the value hold the object, given the phis that do not on this way? `stored`: something outside refers to it.
    pub fn holds(&self, value: ValueId, stored: bool, dead: &[ValueId]) -> bool {
        let index = value.index();
        self.holds[index] && (stored || self.exact[index]) && !dead.contains(&self.base(value))
    }

    /// What the allocating call returns when it allocates; empty if that is the object itself, or not known.
    pub fn success(&self) -> &[Known] {
        &self.success
    }

    /// What a value was computed from by casts and offsets.
    fn base(&self, value: ValueId) -> ValueId {
        let mut at = value;
        while let ValueKind::Inst(inst) = self.function.values[at].kind {
            match &self.function.insts[inst].op {
                Op::Cast { a, .. } => at = *a,
                Op::Offset { base, .. } => at = *base,
                _ => break,
            }
        }
        at
    }

    /// Does memory behind this pointer outlive the function, as far as its root tells?
    pub fn outlives(&self, ptr: ValueId) -> bool {
        match self.cell(ptr, 0) {
            Some((Root::Value(root), steps)) => match self.function.values[root].kind {
                ValueKind::Inst(inst) => steps.len() > 1 || !matches!(self.function.insts[inst].op, Op::Alloca { .. }),
                _ => true,
            },
            _ => true,
        }
    }

    /// The cell behind `ptr + at`.
    fn cell(&self, ptr: ValueId, at: i64) -> Option<Cell> {
        let mut steps = vec![at];
        let mut value = ptr;
        loop {
            match self.function.values[value].kind {
                ValueKind::Address(symbol, offset) => {
                    let last = steps.last_mut()?;
                    *last = last.saturating_add(offset);
                    steps.reverse();
                    return Some((Root::Symbol(symbol), steps));
                }
                ValueKind::Inst(inst) => match &self.function.insts[inst].op {
                    Op::Offset { base, bytes, indices, .. } => {
                        let last = steps.last_mut()?;
                        *last = if indices.is_empty() { last.saturating_add(*bytes) } else { SOMEWHERE };
                        value = *base;
                    }
                    Op::Cast { a, .. } => value = *a,
                    Op::Load { ptr } if steps.len() < MAX_STEPS => {
                        steps.push(0);
                        value = *ptr;
                    }
                    _ => break,
                },
                ValueKind::Param(_) => break,
                _ => return None,
            }
        }
        steps.reverse();
        Some((Root::Value(value), steps))
    }

    /// What the call may do with the object; empty if it is not given it.
    pub fn endings(&self, id: InstId, call: &Call, stored: bool, dead: &[ValueId]) -> Vec<Ending> {
        let mut endings = Vec::new();
        for (n, &value) in call.args.iter().enumerate() {
            let found = if self.holds(value, stored, dead) {
                self.endings_of_argument(id, call, n as u32, None)
            } else if let Some(at) = self.held_behind(value) {
                self.endings_of_argument(id, call, n as u32, Some(at))
            } else {
                continue;
            };
            // What is done to one of several arguments that hold it is done to it.
            let is_news = |found: &[Ending]| found.iter().any(|ending| ending.fate != Fate::Looked);
            if endings.is_empty() || (is_news(&found) && !is_news(&endings)) {
                endings = found;
            }
        }
        endings
    }

    /// The offset behind a pointer at which the object is kept.
    fn held_behind(&self, pointer: ValueId) -> Option<i64> {
        let (root, steps) = self.cell(pointer, 0)?;
        let (last, before) = steps.split_last()?;
        let mut found: Vec<i64> = self
            .cells
            .iter()
            .filter(|(other, path)| *other == root && path.len() == steps.len() && path.starts_with(before))
            .filter_map(|(_, path)| path.last()?.checked_sub(*last).filter(|at| (0..4096).contains(at)))
            .collect();
        found.sort_unstable();
        found.first().copied()
    }

    fn endings_of_argument(&self, id: InstId, call: &Call, n: u32, behind: Option<i64>) -> Vec<Ending> {
        let one = |fate| vec![Ending { fate, results: vec![Known::Any], outcomes: Vec::new() }];
        if matches!(call.callee, Callee::Intrinsic(_)) {
            return one(Fate::Looked);
        }
        if let Some(model) = self.model(call) {
            return endings_by_model(model, n, behind);
        }
        let targets = self.targets(id, call);
        let [target] = targets.as_slice() else { return one(if behind.is_some() { Fate::Looked } else { Fate::Kept }) };
        let Some(summary) = self.analysis.knowledge.summary(*target) else { return one(Fate::Kept) };
        let mut endings: Vec<Ending> = Vec::new();
        for (number, outcome) in summary.outcomes.iter().enumerate() {
            let fate = fate_by_outcome(&summary, outcome, n, behind);
            let result = outcome.result.map_or(Known::Any, |term| known(&summary, term));
            match endings.iter_mut().find(|ending| ending.fate == fate) {
                Some(ending) => {
                    ending.results.push(result);
                    ending.outcomes.push(number as u32);
                }
                None => endings.push(Ending { fate, results: vec![result], outcomes: vec![number as u32] }),
            }
        }
        endings
    }

    fn model(&self, call: &Call) -> Option<&'a FunctionModel> {
        let Callee::Symbol(symbol) = call.callee else { return None };
        let program = self.analysis.knowledge.program;
        match program.target(program.unit_of(self.id), symbol) {
            Target::Extern(id) => self.analysis.knowledge.model(*id),
            _ => self.analysis.knowledge.user_model(&program.units[program.unit_of(self.id)].symbols[symbol].name),
        }
    }

    fn targets(&self, id: InstId, call: &Call) -> Vec<FuncId> {
        let program = self.analysis.knowledge.program;
        match call.callee {
            Callee::Symbol(symbol) => match program.target(program.unit_of(self.id), symbol) {
                Target::Functions(all) => all.clone(),
                _ => Vec::new(),
            },
            Callee::Value(_) => {
                self.analysis.knowledge.indirect(self.id, id).map(|found| found.functions.clone()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Is the callee a library function whose model says that it only looks?
    pub fn only_looks(&self, call: &Call) -> bool {
        matches!(call.callee, Callee::Intrinsic(_)) || self.model(call).is_some()
    }
}
