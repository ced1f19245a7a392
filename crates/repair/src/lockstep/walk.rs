//! The walk: both functions from one visible act to the next, until all pairs of places are known to agree.

use std::collections::BTreeSet;

use caulk_base::FxHashMap;
use caulk_ir::{Callee, InstId, Op, Ty};

use super::Verdict;
use super::exec::{Lost, Runner};
use super::rules::{Leaves, Rules};
use super::side::{Side, Standing};
use super::state::State;
use super::terms::{Meeting, Member, Term, TermId, Terms, Which};

/// A macro is not longer than so many lines.
const LINES: u32 = 40;

/// Pairs of places that are looked at, for each instruction; more of them, and there is no answer.
const MAX_ROUNDS: usize = 12;

/// States that are kept apart at one pair of places.
const MAX_STATES: usize = 8;

/// What only the new function has written, where they return, and what they return then, if that is one number.
pub type Left = (Vec<(TermId, TermId)>, Option<i64>);

/// Where both functions stand. The old one may be left behind while the new one goes through new text.
type Node = (InstId, InstId, bool);

/// A state that is kept apart from others of its node, because they differ in what only one function has done.
struct Entry {
    meeting: Meeting,
    mark: Mark,
    state: State,
}

/// Old values that lead nowhere any more, addresses that only the new function has written, and whether the old one goes a
/// way of its own, has gone wrong, or has released what the new one has not.
type Mark = (Vec<Member>, Vec<Member>, bool, bool, bool);

pub struct Walk<'a, 'r> {
    pub runner: Runner<'a>,
    pub rules: &'r Rules<'r>,
    /// How many calls deep.
    pub depth: usize,
    /// What is still there of what only the new function has written when both return, for every return so far.
    pub left: Vec<Left>,
    seen: FxHashMap<Node, Vec<Entry>>,
    open: BTreeSet<(Node, usize)>,
    meetings: Meeting,
}

/// Why the walk ends before its end.
pub type Step<T = ()> = Result<T, Verdict>;

/// Where both go on, and the answer to a question on the way there.
type Onward = (caulk_ir::BlockId, caulk_ir::BlockId, Option<(TermId, bool)>);

impl<'a, 'r> Walk<'a, 'r> {
    pub fn new(old: Side<'a>, new: Side<'a>, rules: &'r Rules<'r>, depth: usize) -> Self {
        let runner = Runner { old, new, terms: Terms::default(), only: BTreeSet::new() };
        let (seen, open) = (FxHashMap::default(), BTreeSet::new());
        Self { runner, rules, depth, left: Vec::new(), seen, open, meetings: 0 }
    }

    pub fn run(mut self) -> Verdict {
        let state = State::new(&mut self.runner.terms);
        self.all(state).err().unwrap_or(Verdict::Same)
    }

    /// Walks from the start of both functions.
    pub fn all(&mut self, state: State) -> Step {
        self.arrive(InstId(0), InstId(0), state)?;
        let limit = MAX_ROUNDS * (self.runner.old.function.insts.len() + self.runner.new.function.insts.len()) + 1000;
        for _ in 0..limit {
            let Some((node, at)) = self.open.pop_first() else { return Ok(()) };
            self.meet(node, at)?;
        }
        Err(lost("it is too large to be compared"))
    }

    /// Both functions stand before these instructions.
    pub fn arrive(&mut self, old: InstId, new: InstId, mut state: State) -> Step {
        let new = self.runner.advance(Which::New, new, &mut state).map_err(lost)?;
        if self.runner.new.standing[new.0 as usize] == Standing::Own {
            let mut ahead = state.clone();
            let next = self.runner.advance(Which::Old, old, &mut ahead).map_err(lost)?;
            if !self.is_same(next, new, &ahead) && self.alone(Which::New, old, new, &state).is_some() {
                return self.enter((old, new, true), state);
            }
        }
        let old = self.runner.advance(Which::Old, old, &mut state).map_err(lost)?;
        self.enter((old, new, false), state)
    }

    fn enter(&mut self, node: Node, mut state: State) -> Step {
        self.forget(node, &mut state);
        let mark = self.mark(&state);
        let entries = self.seen.entry(node).or_default();
        let full = entries.len() >= MAX_STATES;
        let found = entries.iter().position(|entry| entry.mark == mark).or(full.then_some(0));
        let Some(at) = found else {
            self.meetings += 1;
            entries.push(Entry { meeting: self.meetings, mark, state });
            self.open.insert((node, entries.len() - 1));
            return Ok(());
        };
        let (meeting, mut known) = (entries[at].meeting, entries[at].state.clone());
        self.level(&mut known, &mut state, node.0);
        let joined = known.joined(&state, meeting, &mut self.runner.terms);
        let joined = joined.ok_or_else(|| lost("what was written or released differs by the way that was taken"))?;
        let entry = &mut self.seen.entry(node).or_default()[at];
        if entry.state != joined {
            entry.state = joined;
            self.open.insert((node, at));
        }
        Ok(())
    }

    fn mark(&self, state: &State) -> Mark {
        let stale = |(member, term): (&Member, &TermId)| {
            (matches!(member, Member::Value(Which::Old, _)) && state.gone.contains(term)).then_some(*member)
        };
        let written = |member: &&Member| matches!(member, Member::Written(_));
        let written = state.values.keys().filter(written).copied().collect();
        (state.values.iter().filter_map(stale).collect(), written, state.parted, state.wrong, !state.owed.is_empty())
    }

    /// Lets go of values that nobody reads any more.
    fn forget(&self, (old, new, _): Node, state: &mut State) {
        let (old, new) = (self.runner.old.live_before(old), self.runner.new.live_before(new));
        state.values.retain(|member, _| match member {
            Member::Value(Which::Old, value) => old.binary_search(value).is_ok(),
            Member::Value(Which::New, value) => new.binary_search(value).is_ok(),
            Member::Written(_) | Member::Cell(..) | Member::Memory => true,
        });
    }

    /// Where only one of two states has written to an address, the other has there what it always had.
    fn level(&mut self, one: &mut State, other: &mut State, at: InstId) {
        self.runner.level_cells(one, other);
        let (first, second) = (one.written(), other.written());
        for (written, to) in [(first, other), (second, one)] {
            for (address, value) in written {
                if self.runner.terms.is_timeless(address) && !to.values.contains_key(&Member::Written(address)) {
                    let ty = self.runner.terms.ty(value);
                    let there = self.runner.load(Which::Old, to, address, ty, at);
                    to.values.insert(Member::Written(address), there);
                }
            }
        }
    }

    fn meet(&mut self, node: Node, at: usize) -> Step {
        let Entry { meeting, state, .. } = &self.seen[&node][at];
        let (old, new, behind) = node;
        let (meeting, mut state) = (*meeting, state.clone());
        if behind {
            let next = self.alone(Which::New, old, new, &state);
            let next = next.ok_or_else(|| lost("what was written or released differs by the way that was taken"))?;
            return next.into_iter().try_for_each(|(at, state)| self.arrive(old, at, state));
        }
        if self.together(old, new, meeting, &state)? {
            return Ok(());
        }
        if let Some(settled) = self.settled(old, &state) {
            if settled.wrong {
                state.wrong = true;
            } else if self.together(old, new, meeting, &settled)? {
                return Ok(());
            }
        }
        if let Some((old, new, state)) = self.disarmed(old, new, &state) {
            return self.arrive(old, new, state);
        }
        let first = if self.is_behind(old, new) { Which::New } else { Which::Old };
        for which in [first, if first == Which::New { Which::Old } else { Which::New }] {
            if let Some(next) = self.alone(which, old, new, &state) {
                for (at, state) in next {
                    match which {
                        Which::Old => self.arrive(at, new, state)?,
                        Which::New => self.arrive(old, at, state)?,
                    }
                }
                return Ok(());
            }
        }
        // What the old function does when it has gone wrong is nothing to keep to.
        if state.wrong { Ok(()) } else { Err(self.difference(old, new, &state)) }
    }

    /// Whether the new function has to go on before the old one may: it stands in new text, or comes to where the old one is.
    fn is_behind(&self, old: InstId, new: InstId) -> bool {
        let (old_side, new_side) = (&self.runner.old, &self.runner.new);
        let (before, after) = (old_side.standing[old.0 as usize], new_side.standing[new.0 as usize]);
        if after == Standing::Own || before == Standing::Own {
            return after == Standing::Own;
        }
        match (new_side.distance(new, before), old_side.distance(old, after)) {
            (Some(to_old), Some(to_new)) => to_old <= to_new,
            (None, Some(_)) => false,
            _ => true,
        }
    }

    /// Whether both functions would do the same.
    fn is_same(&mut self, old: InstId, new: InstId, state: &State) -> bool {
        let (old_op, new_op) = (self.runner.old.op(old), self.runner.new.op(new));
        if !self.is_same_kind((old, old_op), (new, new_op)) {
            return false;
        }
        let before = self.runner.operands(Which::Old, state, old);
        let after = self.runner.operands(Which::New, state, new);
        self.are_same((old, &before), (new, &after), state)
    }

    fn are_same(
        &mut self,
        (old, before): (InstId, &[TermId]),
        (new, after): (InstId, &[TermId]),
        state: &State,
    ) -> bool {
        before.len() == after.len()
            && before
                .iter()
                .zip(after)
                .all(|(a, b)| state.are_same(&mut self.runner.terms, *a, *b) || self.is_line((old, *a), (new, *b)))
    }

    /// `__LINE__`: the number of the line that it stands in, in both texts.
    fn is_line(&self, (old, a): (InstId, TermId), (new, b): (InstId, TermId)) -> bool {
        let in_macro = |side: &Side<'_>, at: InstId| side.unit.locs[side.function.insts[at].loc].in_macro;
        let (old_side, new_side) = (&self.runner.old, &self.runner.new);
        let number = |term: TermId| self.runner.terms.number(term).and_then(|number| u32::try_from(number).ok());
        let same_place = old_side.standing[old.0 as usize] == new_side.standing[new.0 as usize];
        let (Some(a), Some(b)) = (number(a), number(b)) else { return false };
        let (was, is) = (old_side.place(old).1, new_side.place(new).1);
        same_place
            && in_macro(old_side, old)
            && a.abs_diff(was) < LINES
            && i64::from(a) - i64::from(was) == i64::from(b) - i64::from(is)
    }

    /// Does what both functions do, if they do the same.
    fn together(&mut self, old: InstId, new: InstId, meeting: Meeting, state: &State) -> Step<bool> {
        let (old_op, new_op) = (self.runner.old.op(old), self.runner.new.op(new));
        if !self.is_same_kind((old, old_op), (new, new_op)) {
            return Ok(false);
        }
        if old_op.is_terminator() {
            return self.leave_together((old, old_op), (new, new_op), state);
        }
        let before = self.runner.operands(Which::Old, state, old);
        let after = self.runner.operands(Which::New, state, new);
        if !self.are_same((old, &before), (new, &after), state) {
            return Ok(false);
        }
        let behind = match old_op {
            Op::Call(call) => match self.hidden(old, call, &before, state) {
                Some(behind) => behind,
                None => return Ok(false),
            },
            _ => vec![(state.clone(), None)],
        };
        for (mut state, number) in behind {
            if matches!(old_op, Op::Call(_)) {
                self.release(old, &mut state);
            }
            for (which, at) in [(Which::Old, old), (Which::New, new)] {
                let function = self.runner.side(which).function;
                if let Some(result) = function.insts[at].result {
                    let ty = function.values[result].ty;
                    let term = self.runner.terms.put(Term::Result(meeting), ty);
                    state.values.insert(Member::Value(which, result), term);
                    if let Some(number) = number.filter(|_| matches!(ty, Ty::Int(_))) {
                        state.known.insert(term, self.runner.terms.put(Term::Int(number), ty));
                    }
                }
            }
            if let Op::Store { .. } | Op::Copy { .. } | Op::Fill { .. } | Op::Atomic { .. } = old_op {
                self.write(old_op, &before, &mut state)?;
            }
            self.remember(old_op, &before, meeting, &mut state);
            if matches!(old_op, Op::Call(call) if call.noreturn) {
                return Ok(true);
            }
            self.arrive(InstId(old.0 + 1), InstId(new.0 + 1), state)?;
        }
        Ok(true)
    }

    /// Whether two instructions differ in nothing but what they are given.
    fn is_same_kind(&self, (old, old_op): (InstId, &Op), (new, new_op): (InstId, &Op)) -> bool {
        let (old_side, new_side) = (&self.runner.old, &self.runner.new);
        let ty =
            |side: &Side<'_>, at: InstId| side.function.insts[at].result.map(|result| side.function.values[result].ty);
        let placed = old_side.placed[old.0 as usize];
        let same_place = placed.is_some() && placed == new_side.placed[new.0 as usize];
        let same = match (old_op, new_op) {
            (Op::Call(a), Op::Call(b)) => match (&a.callee, &b.callee) {
                (Callee::Symbol(a), Callee::Symbol(b)) => {
                    old_side.symbols[a.0 as usize] == new_side.symbols[b.0 as usize]
                }
                (Callee::Value(_), Callee::Value(_)) => true,
                (Callee::Intrinsic(a), Callee::Intrinsic(b)) => a == b,
                (Callee::Asm(_), Callee::Asm(_)) => same_place,
                _ => false,
            },
            (Op::Alloca { size: a, .. }, Op::Alloca { size: b, .. }) => a == b,
            (Op::Atomic { .. }, Op::Atomic { .. }) | (Op::Opaque { .. }, Op::Opaque { .. }) => same_place,
            _ => std::mem::discriminant(old_op) == std::mem::discriminant(new_op),
        };
        same && ty(old_side, old) == ty(new_side, new)
    }

    /// Both functions decide where to go.
    fn leave_together(
        &mut self,
        (old, old_op): (InstId, &Op),
        (new, new_op): (InstId, &Op),
        state: &State,
    ) -> Step<bool> {
        let before = self.runner.operands(Which::Old, state, old);
        let after = self.runner.operands(Which::New, state, new);
        let terms = &mut self.runner.terms;
        let same = before.len() == after.len() && before.iter().zip(&after).all(|(a, b)| state.are_same(terms, *a, *b));
        let ways: Vec<Onward> = match (old_op, new_op) {
            (Op::Return { .. }, Op::Return { .. }) => {
                if same {
                    self.end(old, new, state)?;
                }
                return Ok(same);
            }
            (Op::Unreachable, Op::Unreachable) => return Ok(true),
            (Op::Branch { then, els, .. }, Op::Branch { then: new_then, els: new_els, .. }) => {
                let other = terms.not(after[0]);
                let (new_then, new_els) = match same {
                    true => (new_then, new_els),
                    false if state.are_same(terms, before[0], other) => (new_els, new_then),
                    false => return Ok(false),
                };
                vec![(*then, *new_then, Some((before[0], true))), (*els, *new_els, Some((before[0], false)))]
            }
            (Op::Switch { cases, default, .. }, Op::Switch { cases: new_cases, default: new_default, .. }) => {
                let to = |value: i64| new_cases.iter().find(|case| case.value == value).map(|case| case.to);
                if !same || cases.len() != new_cases.len() {
                    return Ok(false);
                }
                let mut ways = vec![(*default, *new_default, None)];
                for case in cases {
                    let Some(to) = to(case.value) else { return Ok(false) };
                    let number = terms.put(Term::Int(case.value), terms.ty(before[0]));
                    ways.push((case.to, to, Some((terms.cmp(caulk_ir::CmpOp::Eq, before[0], number), true))));
                }
                ways
            }
            (Op::IndirectJump { targets, .. }, Op::IndirectJump { targets: others, .. }) => {
                if !same || targets.len() != others.len() {
                    return Ok(false);
                }
                targets.iter().zip(others).map(|(a, b)| (*a, *b, None)).collect()
            }
            _ => return Ok(false),
        };
        for (old_to, new_to, condition) in ways {
            let mut state = state.clone();
            if let Some((condition, holds)) = condition
                && !state.assume(&mut self.runner.terms, condition, holds)
            {
                continue;
            }
            let old = self.runner.enter(Which::Old, old, old_to, &mut state);
            let new = self.runner.enter(Which::New, new, new_to, &mut state);
            self.arrive(old, new, state)?;
        }
        Ok(true)
    }

    /// Both functions return: what only one of them has done must be nothing that others find.
    fn end(&mut self, old: InstId, new: InstId, state: &State) -> Step {
        if !state.owed.is_empty() {
            return Err(self.differs(old, new, "something would not be released any more".into()));
        }
        if state.wrong {
            return Ok(());
        }
        let terms = &self.runner.terms;
        let mut written = state.written();
        written.retain(|(at, _)| match *terms.get(terms.root(*at)) {
            Term::Slot(_) | Term::OwnSlot(_) => false,
            // Nobody reads it before this function sets it anew.
            Term::Symbol(symbol, _) => !self.only_passes(symbol),
            _ => true,
        });
        if self.depth == 0 && !written.is_empty() {
            return Err(self.differs(old, new, "callers may look at what is written there".into()));
        }
        let result = self.runner.operands(Which::Old, state, old).first().copied();
        let result = result.map(|result| state.resolved(&mut self.runner.terms, result));
        let number = result.and_then(|result| self.runner.terms.number(result));
        match self.left.iter_mut().find(|(left, _)| *left == written) {
            Some((_, known)) => *known = known.filter(|known| Some(*known) == number),
            None => self.left.push((written, number)),
        }
        Ok(())
    }

    /// Whether a global variable hands something to the callees of this function, and to nobody else.
    fn only_passes(&self, symbol: u32) -> bool {
        let new = &self.runner.new;
        let named = new.symbols.iter().position(|known| *known == symbol);
        let name = named.and_then(|at| new.unit.symbols.iter().nth(at)).map(|symbol| symbol.name.as_str());
        self.depth == 0 && name.is_some_and(|name| self.rules.only_passes(&new.function.name, name))
    }

    /// What both have written is what is there.
    fn write(&mut self, op: &Op, operands: &[TermId], state: &mut State) -> Step {
        let (ptr, ty) = match op {
            Op::Store { .. } => (operands[1], self.runner.terms.ty(operands[0])),
            _ => (operands[0], Ty::Aggregate(u64::MAX >> 1)),
        };
        state.wrong |= state.parted && state.gone.contains(&self.runner.terms.root(ptr));
        let read = matches!(op, Op::Copy { .. }).then(|| (operands[1], ty));
        for (address, value) in state.written() {
            let there = (address, self.runner.terms.ty(value));
            if address == ptr && there.1 == ty {
                state.is_written_by_both(address);
            } else if [Some((ptr, ty)), read].into_iter().flatten().any(|at| !self.runner.are_apart(there, at)) {
                return Err(lost("what only the new function has written may be overwritten"));
            }
        }
        Ok(())
    }

    /// What memory is after an act of both.
    fn remember(&mut self, op: &Op, operands: &[TermId], meeting: Meeting, state: &mut State) {
        let (terms, memory) = (&mut self.runner.terms, state.memory());
        let after = match op {
            Op::Store { .. } => Term::Stored { memory, ptr: operands[1], value: operands[0] },
            Op::Alloca { .. } => return,
            Op::Call(call) => match &call.callee {
                Callee::Symbol(symbol) => match self.rules.leaves(self.runner.old.name_of(*symbol)) {
                    // `deflateEnd(&stream)` writes there.
                    Leaves::Memory if operands.iter().all(|given| !terms.is_named(terms.root(*given))) => return,
                    Leaves::Memory => Term::After(meeting),
                    Leaves::Pointers => Term::Calm(memory, meeting),
                    Leaves::Nothing => Term::After(meeting),
                },
                _ => Term::After(meeting),
            },
            _ => Term::After(meeting),
        };
        let after = terms.put(after, Ty::Void);
        state.values.insert(Member::Memory, after);
    }
}

pub fn lost(why: Lost) -> Verdict {
    Verdict::Unknown { why: why.into() }
}
