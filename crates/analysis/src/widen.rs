//! What keeps loops finite: values that would be another one in each round get one name for all rounds.
//!
//!     for (i = 0; i < n; i++)        // i: some value, from the second round on
//!         list->room[list->n++] = s; // list->n likewise: the cell is a counter
//!
//! A flag that is set to constants is no counter and keeps them apart; so does a counter whose next value ends
//! the loop (`for (once = 0; once < 1; once++)`).

use caulk_base::{FxHashSet, Id};
use caulk_ir::{BinOp, BlockId, CmpOp, Function, InstId, Op, ValueId, ValueKind};

use crate::arithmetic::{fold_cmp, swapped};
use crate::engine::Engine;
use crate::facts::Range;
use crate::merge::{BLOCK_SITE, block_site, input_object};
use crate::object::{ObjId, Object};
use crate::place::{HANDED_OUT, Off};
use crate::state::State;
use crate::summary::Summary;
use crate::term::{DEEP, Term, TermId};

impl Engine<'_> {
    /// The value a phi of a loop head gets when another round begins.
    pub(crate) fn carried(&mut self, head: BlockId, phi: ValueId, value: ValueId, term: TermId) -> TermId {
        if !self.is_counted(phi, value) {
            return term;
        }
        match *self.terms.get(term) {
            Term::Int(now) if self.ends_loop(head, phi, now) => term,
            Term::Int(now) => {
                let own = self.terms.sym(block_site(head), phi.0);
                self.floors.push((own, Range::between(now, i64::MAX)));
                own
            }
            Term::Addr { obj, .. } if !self.terms.mentions(term).is_empty() => {
                let index = self.terms.sym(block_site(head), phi.0);
                let base = self.terms.addr(obj, 0);
                self.terms.elem(base, index, 0)
            }
            _ => term,
        }
    }

    /// Does the value come from the phi itself by arithmetic, whatever way the round takes?
    fn is_counted(&mut self, phi: ValueId, value: ValueId) -> bool {
        if let Some(&known) = self.counted.get(&(phi, value)) {
            return known;
        }
        let counted = comes_round(self.function, phi, value);
        self.counted.insert((phi, value), counted);
        counted
    }

    /// Is this the value with which the loop's own condition sends the path out?
    fn ends_loop(&self, head: BlockId, phi: ValueId, now: i64) -> bool {
        let Op::Branch { cond, then, els } = self.function.terminator(head).1.op else { return false };
        let ValueKind::Inst(test) = self.function.values[cond].kind else { return false };
        let Op::Cmp { op, a, b } = self.function.insts[test].op else { return false };
        let constant = |value: ValueId| match self.function.values[value].kind {
            ValueKind::Int(value) => Some(value),
            _ => None,
        };
        let holds = match (constant(a), constant(b)) {
            _ if op == CmpOp::Float => return false,
            (None, Some(bound)) if a == phi => fold_cmp(op, now, bound),
            (Some(bound), None) if b == phi => fold_cmp(op, bound, now),
            _ => return false,
        };
        !self.cfg.is_in_loop(head, block_site(if holds { then } else { els }))
    }

    /// A cell is given a computed value: within a loop it counts.
    pub(crate) fn note_counter(&mut self, obj: ObjId, off: Off, at: InstId) {
        if self.cfg.is_in_some_loop(at) {
            self.counters.insert((obj, off, at));
        }
    }

    /// Is the value worked out by arithmetic from what lay in memory, or from the round before? (`tail = &element->next`
    /// is not, where the element is a new one: that is one place in each round.)
    pub(crate) fn is_computed(&self, value: ValueId) -> bool {
        let mut value = value;
        let mut computed = false;
        loop {
            let ValueKind::Inst(inst) = self.function.values[value].kind else { return false };
            match &self.function.insts[inst].op {
                Op::Cast { a, .. } => value = *a,
                Op::Offset { base, .. } => (value, computed) = (*base, true),
                Op::Call(_) | Op::Alloca { .. } => return false,
                op => return computed || is_arithmetic(op),
            }
        }
    }

    /// A new round of the loop begins: a value that came up in the last round is no longer the one that comes up
    /// at the same place in this one. What is still held of the last round gets a name of the loop head.
    pub(crate) fn begin_round(&mut self, state: &mut State, head: BlockId) {
        let site = block_site(head);
        let stale_object = |engine: &Self, obj: ObjId| matches!(engine.terms.object(obj), Object::Deref(t) if engine.is_stale(head, *t));
        // An element of the last round is one of the elements from here on.
        let mut elements: Vec<(ObjId, TermId)> = Vec::new();
        let mut lost: Vec<TermId> = Vec::new();
        let engine = &*self;
        state.cells.retain(|((obj, off), cell)| {
            if stale_object(engine, *obj) {
                lost.push(cell.term);
                return false;
            }
            let old = matches!(off, Off::Elem(index, _) if engine.is_stale(head, *index));
            if old && engine.terms.is_held_by_name(cell.term) {
                elements.push((*obj, cell.term));
            }
            !old
        });
        state.weak.retain(|(obj, term)| {
            let old = stale_object(engine, *obj);
            if old {
                lost.push(*term);
            }
            !old
        });
        for (obj, term) in elements {
            state.add_weak(&self.terms, obj, term);
        }
        for term in lost {
            self.kept_elsewhere(state, term);
        }
        let mut floors = std::mem::take(&mut self.floors);
        let compared = self.compared(state, head);
        let mut carried: Vec<(TermId, bool)> = Vec::new();
        for at in 0..state.env.len() {
            let (value, term) = state.env[at];
            let is_own = matches!(*self.terms.get(term), Term::Sym { site: at, slot } if (at, slot) == (site, value.0));
            if !is_own && !self.is_stale(head, term) {
                continue;
            }
            let own = self.terms.sym(site, value.0);
            let renewed = self.renewed(head, term, own);
            if renewed == own {
                floors.extend(self.floor(state, term, own));
                self.say_of(&compared, term, own, &mut carried);
            }
            if renewed != term {
                state.env[at].1 = renewed;
            }
        }
        let counted: FxHashSet<(ObjId, Off)> = self
            .counters
            .iter()
            .filter(|(.., at)| self.cfg.is_in_loop(head, at.0))
            .map(|&(obj, off, _)| (obj, off))
            .collect();
        for at in 0..state.cells.len() {
            let (place @ (obj, off), cell) = state.cells[at];
            let is_own = matches!(*self.terms.get(cell.term), Term::Content { obj, off, epoch } if (obj, off) == place && epoch == site);
            if !is_own && !counted.contains(&place) && !self.is_stale(head, cell.term) {
                continue;
            }
            let own = self.terms.content(obj, off, site);
            let renewed = match *self.terms.get(cell.term) {
                Term::Int(now) if counted.contains(&place) => {
                    floors.push((own, Range::between(now, i64::MAX)));
                    own
                }
                Term::Addr { obj: of, .. }
                    if counted.contains(&place) && !self.terms.mentions(cell.term).is_empty() =>
                {
                    let base = self.terms.addr(of, 0);
                    self.terms.elem(base, own, 0)
                }
                _ => self.renewed(head, cell.term, own),
            };
            if renewed == own {
                floors.extend(self.floor(state, cell.term, own));
                self.say_of(&compared, cell.term, own, &mut carried);
            }
            if renewed != cell.term {
                state.cells[at].1.term = renewed;
            }
        }
        let engine = &*self;
        state.objs.retain(|(obj, _)| !stale_object(engine, *obj));
        state.epochs.retain(|(obj, _)| !stale_object(engine, *obj));
        state.moved.retain(|(from, _)| !stale_object(engine, *from));
        state.facts.retain(|id| !engine.is_stale(head, id));
        for (own, range) in floors {
            state.facts.narrow(own, &range);
        }
        for (atom, truth) in carried {
            state.facts.assume(&mut self.terms, atom, truth);
        }
    }

    /// Comparisons of a value that came up within the loop with one that did not: they hold of the same value in the
    /// next round, whatever it is called there. `if (i == n) { skip(); continue; }` ends a loop `while (i < n)`.
    fn compared(&self, state: &State, head: BlockId) -> Vec<(CmpOp, TermId, TermId, bool)> {
        let mut found = Vec::new();
        for &(atom, truth) in &state.facts.atoms {
            let Term::Cmp(op, a, b) = *self.terms.get(atom) else { continue };
            match (op, self.is_stale(head, a), self.is_stale(head, b)) {
                (CmpOp::Float, ..) => {}
                (_, true, false) => found.push((op, a, b, truth)),
                (_, false, true) => found.push((swapped(op), b, a, truth)),
                _ => {}
            }
        }
        found
    }

    /// What is known of `term` is true of `own` from here on.
    fn say_of(
        &mut self,
        compared: &[(CmpOp, TermId, TermId, bool)],
        term: TermId,
        own: TermId,
        carried: &mut Vec<(TermId, bool)>,
    ) {
        for &(op, _, with, truth) in compared.iter().filter(|entry| entry.1 == term) {
            carried.push((self.terms.cmp(op, own, with), truth));
        }
    }

    /// What stays true of a value that gets a name for all rounds: a counter that only grows has a least value, and
    /// what was not null in the last round is not null.
    fn floor(&self, state: &State, term: TermId, own: TermId) -> Option<(TermId, Range)> {
        if !self.terms.mentions(term).is_empty() || self.terms.as_int(term).is_some() {
            return None;
        }
        let known = state.facts.range(&self.terms, term);
        // A bound that moves down would do so in every round; one that moves up is held by what is known at the head.
        let before = state.facts.range(&self.terms, own).lo;
        let lo = if known.lo >= before { known.lo } else { i64::MIN };
        let mut range = Range::between(lo, i64::MAX);
        if known.excludes(0) && lo <= 0 {
            range = Range { not: Range::except(0).not, ..range };
        }
        (lo > i64::MIN || known.excludes(0)).then_some((own, range))
    }

    /// The name for all rounds of a value that holds something of the last one.
    fn renewed(&mut self, head: BlockId, term: TermId, own: TermId) -> TermId {
        if term == own || !self.is_stale(head, term) {
            return term;
        }
        if self.terms.mentions(term).is_empty() {
            return own;
        }
        match *self.terms.get(term) {
            Term::Elem { base, index, .. }
                if index != own && self.is_stale(head, index) && !self.is_stale(head, base) =>
            {
                let handed_out = self.handed_out_again(term, base);
                handed_out.unwrap_or_else(|| self.terms.elem(base, own, 0))
            }
            _ => term,
        }
    }

    /// The name for all rounds of a pointer into the middle of a block that the block's maker returned.
    fn handed_out_again(&mut self, term: TermId, base: TermId) -> Option<TermId> {
        let (obj, _) = self.terms.pointee(term)?;
        self.handed_out.get(&obj)?.contains(&term).then(|| {
            let index = self.terms.content(obj, HANDED_OUT, 0);
            let again = self.terms.elem(base, index, 0);
            self.handed_out.entry(obj).or_default().insert(again);
            again
        })
    }

    /// The value lay in memory that has no name any more.
    pub(crate) fn kept_elsewhere(&mut self, state: &mut State, term: TermId) {
        for obj in self.terms.mentions(term).to_vec() {
            if state.obj(obj).is_some_and(|known| !known.lost) {
                state.give_away(obj);
            }
        }
        let memory = self.memory;
        if matches!(self.terms.get(term), Term::Param(_)) {
            let object = self.terms.intern_object(Object::Deref(term));
            state.give_away_input(object, memory);
        } else if let Some(object) = input_object(&self.terms, term) {
            state.give_away_input(object, memory);
        }
    }

    /// Does the term speak of something that came up within the loop?
    /// Terms do not change: each is looked into once for each loop.
    fn is_stale(&self, head: BlockId, id: TermId) -> bool {
        let mut known = self.stale.borrow_mut();
        if known.is_empty() {
            known.resize_with(self.function.blocks.len(), Vec::new);
        }
        let known = &mut known[head.index()];
        if known.len() <= id.index() {
            known.resize(self.terms.len(), None);
        }
        *known[id.index()].get_or_insert_with(|| self.comes_up_within(head, id))
    }

    fn comes_up_within(&self, head: BlockId, id: TermId) -> bool {
        let cfg = &self.cfg;
        self.terms.contains(id, &mut |term, _| match term {
            // What lies in a formula that was too deep is not known any more.
            Term::Sym { site: DEEP, .. } => true,
            Term::Sym { site, .. } => cfg.is_in_loop(head, *site),
            Term::Content { epoch: 0, .. } => false,
            Term::Content { epoch, .. } if *epoch >= BLOCK_SITE => cfg.is_in_loop(head, *epoch),
            Term::Content { epoch, .. } => cfg.is_in_loop(head, *epoch - 1),
            Term::Pure(call) => call.version != 0 && cfg.is_in_loop(head, call.version.saturating_sub(1)),
            _ => false,
        })
    }
}

fn is_arithmetic(op: &Op) -> bool {
    match op {
        // Flags are set and cleared by these: they take few values.
        Op::Bin { op: BinOp::And | BinOp::Or | BinOp::Xor, .. } => false,
        Op::Bin { .. } | Op::Offset { .. } => true,
        _ => false,
    }
}

/// Is there a way from the phi through arithmetic back to the value it gets in the next round?
fn comes_round(function: &Function, phi: ValueId, value: ValueId) -> bool {
    let mut seen: FxHashSet<(ValueId, bool)> = FxHashSet::default();
    let mut open = vec![(value, false)];
    while let Some((at, computed)) = open.pop() {
        if at == phi && computed {
            return true;
        }
        if at == phi || !seen.insert((at, computed)) {
            continue;
        }
        let ValueKind::Inst(inst) = function.values[at].kind else { continue };
        match &function.insts[inst].op {
            Op::Phi { incoming } => open.extend(incoming.iter().map(|entry| (entry.1, computed))),
            Op::Select { a, b, .. } => open.extend([(*a, computed), (*b, computed)]),
            Op::Cast { a, .. } => open.push((*a, computed)),
            op @ Op::Bin { a, b, .. } => {
                let computed = computed || is_arithmetic(op);
                open.extend([(*a, computed), (*b, computed)]);
            }
            Op::Offset { base, .. } => open.push((*base, true)),
            _ => {}
        }
    }
    false
}

/// Does a summary's term hold arithmetic, so that each call gives another value?
pub(crate) fn is_computed_term(summary: &Summary, term: TermId) -> bool {
    match summary.terms[term.index()] {
        Term::Bin(op, ..) => !matches!(op, BinOp::And | BinOp::Or | BinOp::Xor),
        // A place in a new block, or in what is handed over, is one place.
        Term::Addr { off, obj } => {
            off != 0
                && matches!(summary.objects[obj.index()], Object::Deref(base)
                    if !matches!(summary.terms[base.index()], Term::Param(_)))
        }
        Term::Elem { .. } => true,
        _ => false,
    }
}
