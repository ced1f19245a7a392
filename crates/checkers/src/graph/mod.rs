//! The slice graph of a finding: all that happens to its object in the function of the error, on every way.
//!
//! ```text
//! p = malloc(n)   0 allocate
//! if (!p)         1 branch      true -> 2 "the allocation failed"
//! put(q, p) < 0   3 call        fails -> 4 branch … -> 5 lose     the path of the finding
//!                               keeps it -> 6 return, stored      where it goes well
//! ```
//!
//! The walk follows the control flow from the allocation (or, where there is none in this function, from the first
//! release) with the object's phase, once along the finding's path and once everywhere else. What the path does is
//! known from the analysis; beside it, calls are taken at their summaries' word, and a branch on the result of such a
//! call goes only where that outcome goes.
//!
//! # Invariants
//! - Node 0 is where the object comes from; the error is the last node of the path.
//! - Ways on which the object is neither released, kept, returned nor reported are not drawn: what the analysis knows
//!   of them is more than this walk does.
//!
//! # Known imprecision
//! - Conditions beside the path are not compared with each other: a way that is drawn may be impossible.

mod conditions;
mod fate;
mod slice;
mod trim;
mod walk;

use std::collections::VecDeque;

use caulk_analysis::{Analysis, Event, Incident, IncidentKind, Subject, successors};
use caulk_findings::{Graph, Step};
use caulk_ir::{BlockId, Function, InstId, Op};

use crate::naming::Names;
use slice::Slice;
use walk::Walker;

/// `None` where the object has no place of its own to begin at: then the steps are all there is.
pub fn graph(analysis: &Analysis<'_>, incident: &Incident, names: &Names<'_>, steps: &[Step]) -> Option<Graph> {
    if matches!(incident.kind, IncidentKind::InvalidFree(_)) {
        return None;
    }
    let start = match incident.subject {
        Subject::Allocated { site, .. } => site,
        Subject::Input(_) => incident.freed_at?,
    };
    let slice = Slice::of(analysis, incident)?;
    let path = blocks_of(names.function, incident, start)?;
    let mut walker = Walker::new(analysis, incident, names, &slice, start);
    walker.along(&path);
    walker.everywhere()?;
    let (graph, insts, ends) = walker.done();
    let (mut graph, was) = trim::trim(graph, &ends);
    for (node, was) in graph.nodes.iter_mut().zip(was) {
        match &names.function.insts[insts[was]].op {
            Op::Branch { cond, .. } if node.label.is_empty() => node.label = names.condition(*cond),
            Op::Switch { value, .. } if node.label.is_empty() => {
                node.label = format!("switch ({})", names.condition(*value));
            }
            _ => {}
        }
    }
    number(&mut graph, steps);
    (graph.nodes.len() > 1).then_some(graph)
}

/// The blocks of the finding's path, the one of `start` first.
fn blocks_of(function: &Function, incident: &Incident, start: InstId) -> Option<Vec<BlockId>> {
    let events = incident.paths.first()?;
    let begins = |event: &Event| {
        matches!(event, Event::Alloc { inst, .. } | Event::Release { inst, .. } | Event::Outcome { inst, .. }
            if *inst == start)
    };
    let after = events.iter().rposition(begins).map_or(0, |at| at + 1);
    let mut blocks = vec![block_of(function, start)?];
    for event in &events[after..] {
        if let Event::Branch { inst, to, .. } = event {
            go(function, &mut blocks, block_of(function, *inst)?)?;
            blocks.push(*to);
        }
    }
    let end = block_of(function, incident.at)?;
    let elsewhere = incident.at < start || blocks.len() > 1 || end != blocks[0];
    if elsewhere && go(function, &mut blocks, end).is_none() {
        // That an allocation failed, and the old block is lost, shows only at a later test.
        let behind = blocks.iter().position(|block| *block == end)?;
        blocks.truncate(behind + 1);
    }
    Some(blocks)
}

/// Extends the path to `end` by the shortest way.
fn go(function: &Function, blocks: &mut Vec<BlockId>, end: BlockId) -> Option<()> {
    let start = *blocks.last()?;
    if start == end {
        return Some(());
    }
    let mut from: Vec<Option<BlockId>> = vec![None; function.blocks.len()];
    let mut open = VecDeque::from([start]);
    while let Some(block) = open.pop_front() {
        for to in successors(&function.terminator(block).1.op) {
            if from[to.0 as usize].is_none() && to != start {
                from[to.0 as usize] = Some(block);
                open.push_back(to);
            }
        }
    }
    let mut way = vec![end];
    let mut at = end;
    while let Some(before) = from[at.0 as usize] {
        if before == start {
            blocks.extend(way.into_iter().rev());
            return Some(());
        }
        way.push(before);
        at = before;
    }
    None
}

fn block_of(function: &Function, inst: InstId) -> Option<BlockId> {
    let blocks = function.blocks.as_slice();
    let at = blocks.partition_point(|block| block.end <= inst);
    blocks.get(at).filter(|block| block.first <= inst).map(|_| BlockId(at as u32))
}

/// Says which step of the finding a node is.
fn number(graph: &mut Graph, steps: &[Step]) {
    let on_path = |graph: &Graph, node: usize| {
        node == 0
            || graph.edges.iter().any(|edge| edge.on_path && (edge.from as usize == node || edge.to as usize == node))
    };
    for (index, step) in steps.iter().enumerate() {
        let found = (0..graph.nodes.len()).find(|&node| {
            let entry = &graph.nodes[node];
            entry.step.is_none() && entry.place == step.place && entry.kind == step.kind && on_path(graph, node)
        });
        if let Some(node) = found {
            graph.nodes[node].step = Some(index as u32);
        }
    }
}
