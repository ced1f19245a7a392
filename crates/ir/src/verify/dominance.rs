//! Dominators by the iterative method of Cooper, Harvey and Kennedy.

use caulk_base::{Id, IdVec};

use crate::{BlockId, Function};

pub struct Dominance {
    /// Position in reverse postorder; `None`: never reached.
    order: IdVec<BlockId, Option<u32>>,
    /// The immediate dominator of each reached block; the entry's is itself.
    parent: IdVec<BlockId, BlockId>,
    /// Reached predecessors, each once, in order.
    predecessors: IdVec<BlockId, Vec<BlockId>>,
}

impl Dominance {
    /// The function's blocks must be well-formed and not empty.
    pub fn of(function: &Function) -> Self {
        let count = function.blocks.len();
        let successors: IdVec<BlockId, Vec<BlockId>> = function
            .blocks
            .ids()
            .map(|block| {
                let mut successors = Vec::new();
                function.terminator(block).1.op.visit_successors(|next| successors.push(next));
                successors.sort();
                successors.dedup();
                successors
            })
            .collect();
        let postorder = postorder(&successors);
        let mut order = IdVec::filled(count, None);
        let mut predecessors = IdVec::filled(count, Vec::new());
        for (position, &block) in postorder.iter().rev().enumerate() {
            order[block] = Some(position as u32);
        }
        for block in function.blocks.ids().filter(|&block| order[block].is_some()) {
            for &next in &successors[block] {
                predecessors[next].push(block);
            }
        }
        let parent = parents(&postorder, &order, &predecessors);
        Self { order, parent, predecessors }
    }

    pub fn is_reachable(&self, block: BlockId) -> bool {
        self.order[block].is_some()
    }

    pub fn predecessors(&self, block: BlockId) -> &[BlockId] {
        &self.predecessors[block]
    }

    /// Whether every way to `block` leads through `over`. An unreached block dominates nothing.
    pub fn dominates(&self, over: BlockId, block: BlockId) -> bool {
        let mut at = block;
        while self.order[over].is_some() && self.order[at] > self.order[over] {
            at = self.parent[at];
        }
        at == over
    }
}

fn postorder(successors: &IdVec<BlockId, Vec<BlockId>>) -> Vec<BlockId> {
    let mut done = Vec::new();
    let mut seen = IdVec::<BlockId, bool>::filled(successors.len(), false);
    let mut stack = vec![(BlockId(0), 0)];
    seen[BlockId(0)] = true;
    while let Some((block, next)) = stack.last_mut() {
        match successors[*block].get(*next) {
            Some(&to) => {
                *next += 1;
                if !seen[to] {
                    seen[to] = true;
                    stack.push((to, 0));
                }
            }
            None => {
                done.push(*block);
                stack.pop();
            }
        }
    }
    done
}

fn parents(
    postorder: &[BlockId],
    order: &IdVec<BlockId, Option<u32>>,
    predecessors: &IdVec<BlockId, Vec<BlockId>>,
) -> IdVec<BlockId, BlockId> {
    let mut parent: IdVec<BlockId, Option<BlockId>> = IdVec::filled(order.len(), None);
    parent[BlockId(0)] = Some(BlockId(0));
    let mut changed = true;
    while changed {
        changed = false;
        for &block in postorder.iter().rev().filter(|block| block.index() != 0) {
            let mut best: Option<BlockId> = None;
            for &from in predecessors[block].iter().filter(|&&from| parent[from].is_some()) {
                best = Some(best.map_or(from, |other| meet(from, other, order, &parent)));
            }
            if parent[block] != best {
                parent[block] = best;
                changed = true;
            }
        }
    }
    parent.iter().map(|parent| parent.unwrap_or(BlockId(0))).collect()
}

/// The nearest common dominator.
fn meet(
    mut a: BlockId,
    mut b: BlockId,
    order: &IdVec<BlockId, Option<u32>>,
    parent: &IdVec<BlockId, Option<BlockId>>,
) -> BlockId {
    while a != b {
        if order[a] > order[b] {
            a = parent[a].unwrap_or(BlockId(0));
        } else {
            b = parent[b].unwrap_or(BlockId(0));
        }
    }
    a
}
