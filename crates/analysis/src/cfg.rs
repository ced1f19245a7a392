//! The order in which a function's blocks are visited, its loop heads, and which
//! values are still needed at each block's start.

use caulk_base::{FxHashMap, Id, IdVec};
use caulk_ir::{BlockId, Callee, Function, InstId, Op, Ty, ValueId, ValueKind};

pub struct Cfg {
    /// Position of each block in reverse post-order.
    pub order: IdVec<BlockId, u32>,
    /// Some edge comes back to this block.
    pub loop_head: IdVec<BlockId, bool>,
    /// Values of instructions and parameters that are read later.
    live_in: IdVec<BlockId, ValueSet>,
    /// For each loop head, the blocks of its loop.
    loops: FxHashMap<BlockId, Vec<bool>>,
    /// Blocks of any loop.
    in_loop: IdVec<BlockId, bool>,
    /// The block of each instruction.
    pub block_of: Vec<BlockId>,
    /// Those that are read behind the block.
    live_out: IdVec<BlockId, ValueSet>,
    /// The last instruction of the block that reads each value.
    last_use: IdVec<BlockId, FxHashMap<ValueId, InstId>>,
}

impl Cfg {
    /// Is the instruction or block that a symbol comes from part of the loop?
    pub fn is_in_loop(&self, head: BlockId, site: u32) -> bool {
        let Some(body) = self.loops.get(&head) else { return false };
        let block = match site.checked_sub(crate::merge::BLOCK_SITE) {
            Some(block) => Some(BlockId(block)),
            None => self.block_of.get(site as usize).copied(),
        };
        block.is_some_and(|block| body.get(block.index()).copied().unwrap_or(false))
    }

    pub fn is_in_some_loop(&self, at: InstId) -> bool {
        self.block_of.get(at.index()).is_some_and(|block| self.in_loop[*block])
    }

    /// Is the value read in the block or behind it?
    pub fn is_live_in(&self, block: BlockId, value: ValueId) -> bool {
        self.live_in[block].contains(value)
    }

    /// Is the value read after `at`, an instruction of `block`?
    pub fn is_live_after(&self, block: BlockId, value: ValueId, at: InstId) -> bool {
        self.live_out[block].contains(value) || self.last_use[block].get(&value).is_some_and(|&last| last > at)
    }
}

/// Values that are compared with null, returned or written to memory, and what they come from.
pub fn tested(function: &Function) -> ValueSet {
    let is_null =
        |value: ValueId| matches!(function.values[value].kind, ValueKind::Null | ValueKind::Zero | ValueKind::Int(0));
    let mut open: Vec<ValueId> = Vec::new();
    for inst in function.insts.iter() {
        match inst.op {
            Op::Cmp { a, b, .. } if is_null(b) => open.push(a),
            Op::Cmp { a, b, .. } if is_null(a) => open.push(b),
            Op::Return { value: Some(value) } | Op::Store { value, .. } | Op::Insert { value, .. } => open.push(value),
            Op::Atomic { value, .. } => open.push(value),
            // As a number it can be compared in many ways.
            Op::Cast { a, .. } if inst.result.is_some_and(|result| function.values[result].ty != Ty::Ptr) => {
                open.push(a);
            }
            _ => {}
        }
    }
    let mut tested = ValueSet::new(function.values.len());
    while let Some(value) = open.pop() {
        if tested.contains(value) {
            continue;
        }
        tested.insert(value);
        if let ValueKind::Inst(inst) = function.values[value].kind {
            match &function.insts[inst].op {
                Op::Phi { incoming } => open.extend(incoming.iter().map(|entry| entry.1)),
                Op::Select { a, b, .. } => open.extend([*a, *b]),
                Op::Cast { a, .. } => open.push(*a),
                _ => {}
            }
        }
    }
    tested
}

pub fn successors(op: &Op) -> Vec<BlockId> {
    match op {
        Op::Jump { to } => vec![*to],
        Op::Branch { then, els, .. } => vec![*then, *els],
        Op::Switch { cases, default, .. } => {
            let mut all: Vec<BlockId> = cases.iter().map(|case| case.to).collect();
            all.push(*default);
            all.sort_unstable();
            all.dedup();
            all
        }
        Op::IndirectJump { targets, .. } => {
            let mut all = targets.clone();
            all.sort_unstable();
            all.dedup();
            all
        }
        _ => Vec::new(),
    }
}

pub fn build(function: &Function) -> Cfg {
    let count = function.blocks.len();
    let next: IdVec<BlockId, Vec<BlockId>> =
        function.blocks.ids().map(|block| successors(&function.terminator(block).1.op)).collect();

    // Depth-first, without recursion: functions can have tens of thousands of blocks.
    let mut post: Vec<BlockId> = Vec::with_capacity(count);
    let mut seen = IdVec::filled(count, false);
    let mut stack: Vec<(BlockId, usize)> = Vec::new();
    if count > 0 {
        seen[BlockId(0)] = true;
        stack.push((BlockId(0), 0));
    }
    while let Some((block, child)) = stack.pop() {
        if let Some(&to) = next[block].get(child) {
            stack.push((block, child + 1));
            if !seen[to] {
                seen[to] = true;
                stack.push((to, 0));
            }
        } else {
            post.push(block);
        }
    }
    let mut order = IdVec::filled(count, u32::MAX);
    for (position, &block) in post.iter().rev().enumerate() {
        order[block] = position as u32;
    }
    let mut loop_head = IdVec::filled(count, false);
    for &block in &post {
        for &to in &next[block] {
            if order[to] <= order[block] {
                loop_head[to] = true;
            }
        }
    }
    let mut block_of = vec![BlockId(0); function.insts.len()];
    for (block, range) in function.blocks.iter_ids() {
        for inst in range.first.0..range.end.0 {
            block_of[inst as usize] = block;
        }
    }
    let loops = loops(&next, &order, &post);
    let mut in_loop = IdVec::filled(count, false);
    for body in loops.values() {
        for (at, _) in body.iter().enumerate().filter(|(_, inside)| **inside) {
            in_loop[BlockId::new(at)] = true;
        }
    }
    let (live_in, live_out) = liveness(function, &post, &next);
    let last_use = last_uses(function);
    Cfg { order, loop_head, live_in, loops, in_loop, block_of, live_out, last_use }
}

/// Natural loops: what reaches an edge back to the head without passing the head.
fn loops(
    next: &IdVec<BlockId, Vec<BlockId>>,
    order: &IdVec<BlockId, u32>,
    post: &[BlockId],
) -> FxHashMap<BlockId, Vec<bool>> {
    let mut before: IdVec<BlockId, Vec<BlockId>> = IdVec::filled(next.len(), Vec::new());
    for &block in post {
        for &to in &next[block] {
            before[to].push(block);
        }
    }
    let mut loops: FxHashMap<BlockId, Vec<bool>> = FxHashMap::default();
    for &block in post {
        for &head in &next[block] {
            if order[head] > order[block] {
                continue;
            }
            let body = loops.entry(head).or_insert_with(|| vec![false; next.len()]);
            body[head.index()] = true;
            let mut open = vec![block];
            while let Some(at) = open.pop() {
                if !body[at.index()] {
                    body[at.index()] = true;
                    open.extend(&before[at]);
                }
            }
        }
    }
    loops
}

fn last_uses(function: &Function) -> IdVec<BlockId, FxHashMap<ValueId, InstId>> {
    function
        .blocks
        .ids()
        .map(|block| {
            let mut last: FxHashMap<ValueId, InstId> = FxHashMap::default();
            for (id, inst) in function.block_insts(block) {
                if !matches!(inst.op, Op::Phi { .. } | Op::Bind { .. }) {
                    for_each_operand(&inst.op, |value| {
                        last.insert(value, id);
                    });
                }
            }
            last
        })
        .collect()
}

/// A set of values as bits.
#[derive(Clone, PartialEq)]
pub struct ValueSet(Vec<u64>);

impl ValueSet {
    /// None of so many.
    pub fn new(count: usize) -> Self {
        ValueSet(vec![0; count.div_ceil(64)])
    }
    pub fn insert(&mut self, value: ValueId) {
        self.0[value.index() / 64] |= 1 << (value.index() % 64);
    }
    fn remove(&mut self, value: ValueId) {
        self.0[value.index() / 64] &= !(1 << (value.index() % 64));
    }
    pub fn contains(&self, value: ValueId) -> bool {
        self.0.get(value.index() / 64).is_some_and(|word| word & (1 << (value.index() % 64)) != 0)
    }
    fn union(&mut self, other: &ValueSet) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }
}

/// The values that are read in each block or behind it, and those that are read behind it.
fn liveness(
    function: &Function,
    post: &[BlockId],
    next: &IdVec<BlockId, Vec<BlockId>>,
) -> (IdVec<BlockId, ValueSet>, IdVec<BlockId, ValueSet>) {
    let values = function.values.len();
    let mut live_in: IdVec<BlockId, ValueSet> = IdVec::filled(function.blocks.len(), ValueSet::new(values));
    let mut live_out = live_in.clone();
    let tracked = |value: ValueId| {
        matches!(function.values.get(value).map(|v| v.kind), Some(ValueKind::Param(_) | ValueKind::Inst(_)))
    };
    let mut changed = true;
    while changed {
        changed = false;
        for &block in post {
            // They only grow.
            let set = &mut live_out[block];
            for &to in &next[block] {
                set.union(&live_in[to]);
                // A phi reads its operand at the end of the block it comes from.
                for (_, inst) in function.block_insts(to) {
                    let Op::Phi { incoming } = &inst.op else {
                        if matches!(inst.op, Op::Bind { .. }) {
                            continue;
                        }
                        break;
                    };
                    for &(from, value) in incoming {
                        if from == block && tracked(value) {
                            set.insert(value);
                        }
                    }
                }
            }
            let mut set = set.clone();
            for (_, inst) in function.block_insts(block).rev() {
                if let Some(result) = inst.result {
                    set.remove(result);
                }
                if !matches!(inst.op, Op::Phi { .. } | Op::Bind { .. }) {
                    for_each_operand(&inst.op, |value| {
                        if tracked(value) {
                            set.insert(value);
                        }
                    });
                }
            }
            if set != live_in[block] {
                live_in[block] = set;
                changed = true;
            }
        }
    }
    (live_in, live_out)
}

/// Calls `visit` for every value the instruction reads.
pub fn for_each_operand(op: &Op, mut visit: impl FnMut(ValueId)) {
    match op {
        Op::Alloca { count, .. } => count.iter().copied().for_each(visit),
        Op::Load { ptr } => visit(*ptr),
        Op::Store { ptr, value } | Op::Atomic { ptr, value } => {
            visit(*ptr);
            visit(*value);
        }
        Op::Offset { base, indices, .. } => {
            visit(*base);
            indices.iter().for_each(|&(index, _)| visit(index));
        }
        Op::Cmp { a, b, .. } | Op::Bin { a, b, .. } => {
            visit(*a);
            visit(*b);
        }
        Op::Cast { a, .. } => visit(*a),
        Op::Select { cond, a, b } => {
            visit(*cond);
            visit(*a);
            visit(*b);
        }
        Op::Phi { incoming } => incoming.iter().for_each(|&(_, value)| visit(value)),
        Op::Call(call) => {
            if let Callee::Value(value) = call.callee {
                visit(value);
            }
            call.args.iter().copied().for_each(visit);
        }
        Op::Copy { dst, src, len } => [*dst, *src, *len].into_iter().for_each(visit),
        Op::Fill { dst, byte, len } => [*dst, *byte, *len].into_iter().for_each(visit),
        Op::Extract { aggregate, .. } => visit(*aggregate),
        Op::Insert { aggregate, value, .. } => {
            visit(*aggregate);
            visit(*value);
        }
        Op::VaArg { list } => visit(*list),
        Op::Opaque { operands, .. } => operands.iter().copied().for_each(visit),
        Op::Bind { value, .. } => visit(*value),
        Op::Return { value } => value.iter().copied().for_each(visit),
        Op::Branch { cond, .. } => visit(*cond),
        Op::Switch { value, .. } => visit(*value),
        Op::IndirectJump { address, .. } => visit(*address),
        Op::Jump { .. } | Op::Unreachable => {}
    }
}

/// The parameters that values may be, or that variables hold whose addresses they are.
pub(crate) fn parameters_among(function: &Function, values: &[ValueId]) -> Vec<u32> {
    let mut seen: Vec<ValueId> = Vec::new();
    let mut open = values.to_vec();
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        if function.values[value].ty != Ty::Ptr || seen.contains(&value) {
            continue;
        }
        seen.push(value);
        let inst = match function.values[value].kind {
            ValueKind::Param(index) => {
                found.push(index);
                continue;
            }
            ValueKind::Inst(inst) => inst,
            _ => continue,
        };
        match &function.insts[inst].op {
            Op::Alloca { .. } => open.extend(function.insts.iter().filter_map(|inst| match inst.op {
                Op::Store { ptr, value: stored } if ptr == value => Some(stored),
                _ => None,
            })),
            Op::Load { ptr } if is_variable(function, *ptr) => open.push(*ptr),
            Op::Phi { incoming } => open.extend(incoming.iter().map(|entry| entry.1)),
            Op::Select { a, b, .. } => open.extend([*a, *b]),
            Op::Cast { a, .. } => open.push(*a),
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn is_variable(function: &Function, ptr: ValueId) -> bool {
    matches!(function.values[ptr].kind, ValueKind::Inst(inst) if matches!(function.insts[inst].op, Op::Alloca { .. }))
}
