//! What one function may do without the other, and what is said where it may not.

use std::collections::BTreeSet;

use caulk_ir::{BlockId, Call, Callee, Inst, InstId, Op, Ty, ValueId, ValueKind};

use super::Verdict;
use super::rules::Found;
use super::side::Standing;
use super::state::State;
use super::terms::{Member, Term, TermId, Which};
use super::walk::Walk;

/// Where a function goes on, and what is known there.
type Ways = Vec<(InstId, State)>;

impl Walk<'_, '_> {
    /// Lets one function go on while the other stands still, if nobody can tell.
    pub fn alone(&mut self, which: Which, old: InstId, new: InstId, state: &State) -> Option<Ways> {
        let at = if which == Which::Old { old } else { new };
        match self.runner.side(which).op(at) {
            Op::Branch { .. } | Op::Switch { .. } => Some(self.ways(which, at, state)),
            Op::Call(call) if which == Which::New => self.new_release(new, call, state),
            Op::Call(call) => self.old_release(old, call, state, false),
            Op::Store { .. } if which == Which::New => self.new_store(old, new, state),
            _ => None,
        }
    }

    /// All ways from a decision.
    fn ways(&mut self, which: Which, at: InstId, state: &State) -> Ways {
        let operands = self.runner.operands(which, state, at);
        let terms = &mut self.runner.terms;
        let mut ways: Vec<(BlockId, Option<(TermId, bool)>)> = Vec::new();
        match match which {
            Which::Old => self.runner.old.op(at),
            Which::New => self.runner.new.op(at),
        } {
            Op::Branch { then, els, .. } => {
                ways.extend([(*then, Some((operands[0], true))), (*els, Some((operands[0], false)))]);
            }
            Op::Switch { cases, default, .. } => {
                ways.push((*default, None));
                for case in cases {
                    let number = terms.put(Term::Int(case.value), terms.ty(operands[0]));
                    let test = terms.cmp(caulk_ir::CmpOp::Eq, operands[0], number);
                    ways.push((case.to, Some((test, true))));
                }
            }
            _ => {}
        }
        let mut found = Vec::new();
        for (to, condition) in ways {
            let mut state = state.clone();
            if let Some((condition, holds)) = condition
                && !state.assume(&mut self.runner.terms, condition, holds)
            {
                continue;
            }
            state.parted |= which == Which::Old && self.runner.old.standing[at.0 as usize] != Standing::Own;
            found.push((self.runner.enter(which, at, to, &mut state), state));
        }
        found
    }

    /// The name of the function that is called.
    pub fn callee(&self, which: Which, call: &Call) -> Option<&str> {
        match call.callee {
            Callee::Symbol(symbol) => Some(self.runner.side(which).name_of(symbol)),
            _ => None,
        }
    }

    fn is_release(&self, which: Which, at: InstId, call: &Call) -> bool {
        let side = self.runner.side(which);
        let own = side.standing[at.0 as usize] == Standing::Own;
        match self.callee(which, call) {
            Some(callee) => self.rules.is_release(which, &side.function.name, callee, side.place(at)),
            // A release that the program may exchange, in the words of the patch.
            None => own && self.rules.is_spot(which, &side.function.name, side.place(at)),
        }
    }

    /// The pointer that a release is given first.
    fn given(&mut self, which: Which, at: InstId, call: &Call, state: &State) -> Option<TermId> {
        let first = *call.args.first()?;
        let number = u32::from(matches!(call.callee, Callee::Value(_)));
        let term = self.runner.operand(which, state, at, number, first);
        Some(state.resolved(&mut self.runner.terms, term))
    }

    /// One more release.
    fn new_release(&mut self, at: InstId, call: &Call, state: &State) -> Option<Ways> {
        if !self.is_release(Which::New, at, call) {
            return None;
        }
        let given = self.given(Which::New, at, call, state)?;
        let mut state = state.clone();
        state.owed.remove(&given);
        state.freed.insert(given);
        self.unanswered(Which::New, at, &mut state);
        Some(vec![(InstId(at.0 + 1), state)])
    }

    /// One release less: its text is gone, it was given what is released already, or null; or it comes later.
    fn old_release(&mut self, at: InstId, call: &Call, state: &State, disarmed: bool) -> Option<Ways> {
        let callee = self.callee(Which::Old, call)?;
        if !self.is_release(Which::Old, at, call) || !self.rules.is_quiet(callee) {
            return None;
        }
        let given = self.given(Which::Old, at, call, state)?;
        let standing = self.runner.old.standing[at.0 as usize];
        // A pointer that is null, a descriptor that is none.
        let nothing = |walk: &Self, term: TermId| match (walk.runner.terms.number(term), walk.runner.terms.ty(term)) {
            (Some(number), Ty::Int(_)) => number < 0,
            (number, _) => number == Some(0),
        };
        let mut state = state.clone();
        if standing != Standing::Own && !nothing(self, given) && !state.gone.contains(&given) && !disarmed {
            state.owed.insert(given);
        }
        state.gone.insert(given);
        self.unanswered(Which::Old, at, &mut state);
        Some(vec![(InstId(at.0 + 1), state)])
    }

    /// The same release, given something else, or nothing: the old block is not released there any more.
    pub fn disarmed(&mut self, old: InstId, new: InstId, state: &State) -> Option<(InstId, InstId, State)> {
        let (Op::Call(was), Op::Call(is)) = (self.runner.old.op(old), self.runner.new.op(new)) else { return None };
        let (before, after) = (self.runner.old.standing[old.0 as usize], self.runner.new.standing[new.0 as usize]);
        if before != after || before == Standing::Nowhere || self.callee(Which::Old, was) != self.callee(Which::New, is)
        {
            return None;
        }
        let (new, state) = self.new_release(new, is, state)?.pop()?;
        let (old, state) = self.old_release(old, was, &state, true)?.pop()?;
        Some((old, new, state))
    }

    /// The result of what one function did alone equals nothing of the other's.
    fn unanswered(&mut self, which: Which, at: InstId, state: &mut State) {
        let function = self.runner.side(which).function;
        if let Some(result) = function.insts[at].result {
            let term = self.runner.terms.put(Term::Alone(which, at), function.values[result].ty);
            state.values.insert(Member::Value(which, result), term);
        }
    }

    /// What is written again as it is, into a local variable, or as null over a pointer that leads nowhere.
    fn new_store(&mut self, old: InstId, at: InstId, state: &State) -> Option<Ways> {
        let operands = self.runner.operands(Which::New, state, at);
        let (value, ptr) = (operands[0], operands[1]);
        let ty = self.runner.terms.ty(value);
        let there = self.runner.load(Which::Old, state, ptr, ty, at);
        let mut state = state.clone();
        for (address, other) in state.written() {
            let other = self.runner.terms.ty(other);
            if (address != ptr || other != ty) && !self.runner.are_apart((address, other), (ptr, ty)) {
                return None;
            }
        }
        let terms = &mut self.runner.terms;
        let own = matches!(terms.get(terms.root(ptr)), Term::Slot(_) | Term::OwnSlot(_));
        let leads_nowhere = (state.gone.contains(&there) || state.freed.contains(&there)) && {
            let value = state.resolved(terms, value);
            ty == Ty::Ptr && terms.number(value) == Some(0)
        };
        if state.are_same(terms, there, value) {
            state.is_written_by_both(ptr);
        } else if own || leads_nowhere {
            state.values.insert(Member::Written(ptr), value);
            state.unset.remove(&ptr);
            if self.is_never_set(old, at, ptr) {
                state.unset.insert(ptr);
            }
        } else {
            return None;
        }
        Some(vec![(InstId(at.0 + 1), state)])
    }

    /// Whether a store is the first that is heard of a whole variable: both functions are in their first blocks, which are
    /// run once, and the old one has done nothing with the variable there. `char *p;` has any value then, and a function
    /// that looks at it may as well find the one that the new function puts there.
    fn is_never_set(&self, old: InstId, new: InstId, ptr: TermId) -> bool {
        let Term::Slot(number) = *self.runner.terms.get(ptr) else { return false };
        let (side, other) = (&self.runner.old, &self.runner.new);
        let Some((slot, _)) = side.slots.iter().find(|(_, term)| **term == Term::Slot(number)) else { return false };
        let first = side.function.blocks.ids().next();
        let variable = side.function.insts[*slot].result;
        let uses = |inst: &Inst| {
            let mut uses = false;
            inst.op.visit_operands(|value| uses |= Some(value) == variable);
            uses && !matches!(inst.op, Op::Bind { .. })
        };
        let before = |block: BlockId| side.function.block_insts(block).take_while(|(id, _)| id.0 < old.0);
        first == Some(side.block_of(old))
            && first == Some(other.block_of(new))
            && first.is_some_and(|block| !before(block).any(|(_, inst)| uses(inst)))
    }

    /// The pointers that a call of the old function surely releases.
    pub fn released(&mut self, at: InstId, state: &State) -> Vec<TermId> {
        let Op::Call(call) = self.runner.old.op(at) else { return Vec::new() };
        let Some(callee) = self.callee(Which::Old, call) else { return Vec::new() };
        let mut all = Vec::new();
        for found in self.rules.surely_released(callee).iter() {
            all.extend(self.found(at, call, found, state));
        }
        all
    }

    fn found(&mut self, at: InstId, call: &Call, found: &Found, state: &State) -> Option<TermId> {
        match found {
            Found::Argument(number) => {
                let value = *call.args.get(*number)?;
                Some(self.runner.operand(Which::Old, state, at, *number as u32, value))
            }
            Found::At(inner, bytes) => {
                let base = self.found(at, call, inner, state)?;
                let ptr = self.runner.terms.offset(base, *bytes, Vec::new());
                Some(self.runner.load(Which::Old, state, ptr, Ty::Ptr, at))
            }
        }
    }

    /// Before a call that surely releases something a second time: that was null, or the old function goes wrong. `None`
    /// if there is nothing of the kind.
    pub fn settled(&mut self, at: InstId, state: &State) -> Option<State> {
        let again: Vec<TermId> =
            self.released(at, state).into_iter().filter(|pointer| state.gone.contains(pointer)).collect();
        let mut state = state.clone();
        for pointer in &again {
            if self.runner.terms.ty(*pointer) == Ty::Ptr {
                state.wrong |= !state.assume_null(&mut self.runner.terms, *pointer);
            }
        }
        for (address, value) in state.written() {
            let ty = self.runner.terms.ty(value);
            let there = self.runner.load(Which::Old, &state, address, ty, at);
            if state.are_same(&mut self.runner.terms, there, value) {
                state.values.remove(&Member::Written(address));
            }
        }
        (!again.is_empty()).then_some(state)
    }

    /// After a call of both functions, what it has surely released is gone, and what lay in it.
    pub fn release(&mut self, at: InstId, state: &mut State) {
        for pointer in self.released(at, state) {
            for (address, _) in state.written() {
                if self.runner.terms.root(address) == pointer {
                    state.values.remove(&Member::Written(address));
                }
            }
            state.gone.insert(pointer);
        }
    }

    /// Slots of the old function that somebody else may know.
    pub fn lent(&self) -> BTreeSet<u32> {
        let side = &self.runner.old;
        let mut lent = BTreeSet::new();
        for (slot, term) in &side.slots {
            let Term::Slot(number) = term else { continue };
            if self.is_told(side.function.insts[*slot].result.into_iter().collect()) {
                lent.insert(*number);
            }
        }
        lent
    }

    /// Whether a parameter of the old function is put somewhere, so that others come to it who are not given it.
    pub fn is_passed_round(&self, parameter: u32) -> bool {
        let values = self.runner.old.function.values.iter_ids();
        let given = values.filter(|(_, value)| value.kind == ValueKind::Param(parameter)).map(|(id, _)| id);
        self.is_told(given.collect())
    }

    /// Whether somebody else may get to know one of these addresses, and keep it.
    fn is_told(&self, mut derived: BTreeSet<ValueId>) -> bool {
        let function = self.runner.old.function;
        let is_kept = |inst: &Inst, derived: &mut BTreeSet<ValueId>| {
            let mut reads = false;
            inst.op.visit_operands(|value| reads |= derived.contains(&value));
            match &inst.op {
                _ if !reads => false,
                Op::Offset { .. } => {
                    derived.extend(inst.result);
                    false
                }
                Op::Load { .. } | Op::Copy { .. } | Op::Fill { .. } | Op::Bind { .. } | Op::Cmp { .. } => false,
                Op::Store { value, .. } => derived.contains(value),
                Op::Call(call) => {
                    let name = self.callee(Which::Old, call);
                    let kept = |at: usize| name.is_none_or(|name| self.rules.keeps(name, at));
                    (0..call.args.len()).any(|at| derived.contains(&call.args[at]) && kept(at))
                }
                _ => true,
            }
        };
        function.insts.iter().any(|inst| is_kept(inst, &mut derived))
    }

    /// What is said where the two functions part.
    pub fn difference(&mut self, old: InstId, new: InstId, state: &State) -> Verdict {
        let before = self.runner.operands(Which::Old, state, old);
        let after = self.runner.operands(Which::New, state, new);
        if before.iter().chain(&after).any(|term| self.runner.terms.is_lossy(*term)) {
            return Verdict::Unknown { why: "some of its values cannot be compared".into() };
        }
        let name = |which: Which, at: InstId| match self.runner.side(which).op(at) {
            Op::Call(call) => Some(self.callee(which, call).map_or("a function".into(), |name| format!("`{name}`"))),
            _ => None,
        };
        let what =
            match (self.runner.old.op(old), self.runner.new.op(new), name(Which::Old, old), name(Which::New, new)) {
                (_, _, Some(a), Some(b)) if a == b => format!("{a} would be given something else"),
                (_, _, _, Some(name)) => format!("{name} would be called where it was not"),
                (_, _, Some(name), _) => format!("{name} would not be called"),
                (Op::Return { .. }, Op::Return { .. }, ..) => "something else would be returned".into(),
                (_, Op::Store { .. } | Op::Copy { .. } | Op::Fill { .. } | Op::Atomic { .. }, ..) => {
                    "something would be written that was not".into()
                }
                (Op::Store { .. } | Op::Copy { .. } | Op::Fill { .. } | Op::Atomic { .. }, ..) => {
                    "something would not be written any more".into()
                }
                _ => "it would go another way".into(),
            };
        self.differs(old, new, what)
    }

    pub fn differs(&self, old: InstId, new: InstId, what: String) -> Verdict {
        let (old, new) = (self.runner.old.place(old).1, self.runner.new.place(new).1);
        Verdict::Differs { old, new, what }
    }
}
