//! Loops that run as often as is written there, and do nothing but move values about.
//!
//!     for (i = 1; i < 9; i++)     // eight rounds, each for itself: v[1] = v[2]; v[2] = v[3]; ...
//!         v[i] = v[i + 1];        // in any other loop, `i` would be some value from the second round on
//!
//! # Invariants
//! - Only where each round has one way and calls nobody: so many rounds cost no more than so many lines.

use caulk_ir::{BinOp, BlockId, CmpOp, Function, Op, ValueId, ValueKind};

use crate::arithmetic::fold_cmp;
use crate::engine::Engine;
use crate::merge::block_site;
use crate::state::State;

/// Rounds that are run one by one.
const ROUNDS: usize = 16;
/// Blocks and instructions of one round.
const BLOCKS: usize = 3;
const LENGTH: u32 = 32;

/// The counter of such a loop, and its value in the next round.
pub(crate) type Counter = (ValueId, ValueId);

impl Engine<'_> {
    /// Does the state, which goes back to the head of a loop or has come there, run it round by round?
    pub(crate) fn runs_by_number(&mut self, head: BlockId, state: &State, next: bool) -> bool {
        let Some((counter, value)) = self.short(head) else { return false };
        let term = self.operand(state, if next { value } else { counter });
        self.terms.as_int(term).is_some()
    }

    /// Follows a state that has come to the head of such a loop to where it leaves it. `None`: it is another loop.
    pub(crate) fn run_through(&mut self, head: BlockId, state: &State) -> Option<Vec<(BlockId, State)>> {
        if !self.runs_by_number(head, state, false) {
            return None;
        }
        let (mut block, mut states) = (head, vec![state.clone()]);
        for _ in 0..=BLOCKS * (ROUNDS + 1) {
            let mut leaving = Vec::new();
            self.run_block(block, states, &mut leaving);
            let stays = leaving.iter().any(|(to, _)| self.cfg.is_in_loop(head, block_site(*to)));
            if !stays {
                return Some(leaving);
            }
            let (to, state) = leaving.pop().filter(|_| leaving.is_empty())?;
            let (to, state) = self.cross(block, to, state)?;
            (block, states) = (to, vec![state]);
        }
        None
    }

    fn short(&mut self, head: BlockId) -> Option<Counter> {
        if let Some(&known) = self.short.get(&head) {
            return known;
        }
        let found = self.find_short(head);
        self.short.insert(head, found);
        found
    }

    fn find_short(&self, head: BlockId) -> Option<Counter> {
        let function = self.function;
        let inside = |block: BlockId| self.cfg.is_in_loop(head, block_site(block));
        let Op::Branch { cond, then, els } = function.terminator(head).1.op else { return None };
        let (body, truth) = match (inside(then), inside(els)) {
            (true, false) => (then, true),
            (false, true) => (els, false),
            _ => return None,
        };
        // Nothing but the head and one block, which may be followed by the one that counts.
        let mut blocks = vec![head, body];
        while let Op::Jump { to } = function.terminator(*blocks.last()?).1.op
            && to != head
        {
            blocks.push(to);
            if blocks.len() > BLOCKS {
                return None;
            }
        }
        let goes_back = matches!(function.terminator(*blocks.last()?).1.op, Op::Jump { to } if to == head);
        let is_plain = |block: &BlockId| {
            function.block_insts(*block).all(|(_, inst)| {
                !matches!(inst.op, Op::Call(_) | Op::Opaque { .. } | Op::Atomic { .. })
                    && (*block == head || !matches!(inst.op, Op::Phi { .. }))
            })
        };
        let length: u32 =
            blocks.iter().map(|block| function.blocks[*block].end.0 - function.blocks[*block].first.0).sum();
        if !goes_back || length > LENGTH || !blocks.iter().all(is_plain) {
            return None;
        }
        let (counter, op, bound) = compared(function, cond)?;
        let ValueKind::Inst(phi) = function.values[counter].kind else { return None };
        let Op::Phi { incoming } = &function.insts[phi].op else { return None };
        if self.cfg.block_of.get(phi.0 as usize) != Some(&head) {
            return None;
        }
        let (back, entering): (Vec<_>, Vec<_>) = incoming.iter().partition(|entry| inside(entry.0));
        let [(_, value)] = back.as_slice() else { return None };
        let step = step(function, counter, *value)?;
        let few = |first: i64| {
            let mut now = first;
            for _ in 0..=ROUNDS {
                if fold_cmp(op, now, bound) != truth {
                    return true;
                }
                now = now.wrapping_add(step);
            }
            false
        };
        let is_few = |value: ValueId| matches!(function.values[value].kind, ValueKind::Int(first) if few(first));
        entering.iter().all(|entry| is_few(entry.1)).then_some((counter, *value))
    }
}

/// `counter < 9`
fn compared(function: &Function, cond: ValueId) -> Option<(ValueId, CmpOp, i64)> {
    let ValueKind::Inst(test) = function.values[cond].kind else { return None };
    match function.insts[test].op {
        Op::Cmp { op: CmpOp::Float, .. } => None,
        Op::Cmp { op, a, b } => match function.values[b].kind {
            ValueKind::Int(bound) => Some((a, op, bound)),
            _ => None,
        },
        _ => None,
    }
}

/// By how much the counter changes in a round.
fn step(function: &Function, counter: ValueId, next: ValueId) -> Option<i64> {
    let ValueKind::Inst(inst) = function.values[next].kind else { return None };
    let Op::Bin { op, a, b } = function.insts[inst].op else { return None };
    let ValueKind::Int(by) = function.values[b].kind else { return None };
    match op {
        BinOp::Add if a == counter => Some(by),
        BinOp::Sub if a == counter => Some(-by),
        _ => None,
    }
}
