//! The slice graph of one finding: the points that matter to its object, in
//! control-flow order.
//!
//! ```text
//! 0 allocate  p = malloc(n)        allocated
//! 1 branch    fill(p) < 0          allocated     1 -true-> 2, 1 -false-> 3
//! 2 lose      return -1            lost          on the path
//! 3 release   free(p)              released      beside it
//! ```
//!
//! A checker fills in the real use-flow graph; without one, [`Graph::from_steps`]
//! draws the path alone.
//!
//! # Invariants
//! - Edges name nodes by index; an edge to a node that is not there is skipped
//!   by every reader.

use serde::{Deserialize, Serialize};

use crate::{Place, Step, StepKind};

/// One point of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNode {
    pub kind: StepKind,
    /// Short: the code, or what happens there.
    pub label: String,
    pub place: Place,
    /// The object's state after this point.
    pub state: String,
    /// Which step of the finding's path this is, from 0.
    pub step: Option<u32>,
}

/// Control flow between two points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphEdge {
    pub from: u32,
    pub to: u32,
    /// `true`, `false`, the outcome of a call, or nothing.
    pub label: String,
    /// Part of the path that leads to the error.
    pub on_path: bool,
}

/// A slice graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

impl Graph {
    /// The path as a chain, one node a step.
    pub fn from_steps(steps: &[Step]) -> Graph {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let nodes = steps
            .iter()
            .enumerate()
            .map(|(index, step)| GraphNode {
                kind: step.kind,
                label: step.decision.as_ref().map_or_else(|| step.text.clone(), |d| d.condition.clone()),
                place: step.place.clone(),
                state: step.state.clone(),
                step: Some(number(index)),
            })
            .collect();
        let edges = steps
            .windows(2)
            .enumerate()
            .map(|(index, pair)| GraphEdge {
                from: number(index),
                to: number(index + 1),
                label: pair[0].decision.as_ref().map_or_else(String::new, |d| d.taken.to_string()),
                on_path: true,
            })
            .collect();
        Graph { nodes, edges }
    }

    /// For each node whether the path to the error goes through it.
    pub fn on_path(&self) -> Vec<bool> {
        let mut on_path: Vec<bool> = self.nodes.iter().map(|node| node.step.is_some()).collect();
        for (from, to, _) in self.edges_within().filter(|(_, _, edge)| edge.on_path) {
            on_path[from] = true;
            on_path[to] = true;
        }
        on_path
    }

    /// The edges whose two ends exist, as indices.
    pub fn edges_within(&self) -> impl Iterator<Item = (usize, usize, &GraphEdge)> {
        let count = self.nodes.len();
        self.edges
            .iter()
            .map(|edge| (edge.from as usize, edge.to as usize, edge))
            .filter(move |(from, to, _)| *from < count && *to < count)
    }
}

impl StepKind {
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Allocate => "allocate",
            StepKind::Copy => "copy",
            StepKind::Store => "store",
            StepKind::Call => "call",
            StepKind::Branch => "branch",
            StepKind::Release => "release",
            StepKind::Use => "use",
            StepKind::Lose => "lose",
            StepKind::Return => "return",
        }
    }
}
