//! Takes out of a walked graph what says nothing: ways that end nowhere, and branches that decide nothing.

use caulk_base::{FxHashMap, FxHashSet};
use caulk_findings::{Graph, GraphEdge, StepKind};

/// A drawing with more nodes than this helps nobody: only what touches the path is kept.
const MAX_NODES: usize = 40;

/// `ends`: the nodes in which the object's story ends. Node 0 is where it begins.
/// Gives, too, which node each one was.
pub fn trim(mut graph: Graph, ends: &[u32]) -> (Graph, Vec<usize>) {
    let mut was: Vec<usize> = (0..graph.nodes.len()).collect();
    let alive = reaching(&graph, ends);
    keep(&mut graph, &mut was, |node| node == 0 || alive[node as usize]);
    bypass(&mut graph, &mut was);
    if graph.nodes.len() > MAX_NODES {
        let on_path: FxHashSet<u32> =
            graph.edges.iter().filter(|edge| edge.on_path).flat_map(|edge| [edge.from, edge.to]).collect();
        graph.edges.retain(|edge| on_path.contains(&edge.from));
        let near: FxHashSet<u32> = graph.edges.iter().map(|edge| edge.to).collect();
        keep(&mut graph, &mut was, |node| on_path.contains(&node) || near.contains(&node));
    }
    (graph, was)
}

fn reaching(graph: &Graph, ends: &[u32]) -> Vec<bool> {
    let mut before = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        before[edge.to as usize].push(edge.from);
    }
    let mut alive = vec![false; graph.nodes.len()];
    let mut open = ends.to_vec();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut alive[node as usize], true) {
            open.extend(&before[node as usize]);
        }
    }
    alive
}

/// Takes out branches all of whose sides lead to the same node, until there are none.
fn bypass(graph: &mut Graph, was: &mut Vec<usize>) {
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        next[edge.from as usize].push(edge.to);
    }
    // Where one ends up who goes to a node; itself unless it was taken out.
    let mut goes: Vec<u32> = (0..graph.nodes.len() as u32).collect();
    let resolve = |goes: &[u32], mut node: u32| {
        while goes[node as usize] != node {
            node = goes[node as usize];
        }
        node
    };
    let mut changed = true;
    while changed {
        changed = false;
        // What comes late was found late: the ends first.
        for node in (1..graph.nodes.len()).rev() {
            let own = node as u32;
            if graph.nodes[node].kind != StepKind::Branch || goes[node] != own {
                continue;
            }
            let mut targets = next[node].iter().map(|to| resolve(&goes, *to)).filter(|to| *to != own);
            if let Some(first) = targets.next().filter(|first| targets.all(|to| to == *first)) {
                goes[node] = first;
                changed = true;
            }
        }
    }
    graph.edges.retain(|edge| goes[edge.from as usize] == edge.from);
    for edge in &mut graph.edges {
        edge.to = resolve(&goes, edge.to);
    }
    keep(graph, was, |node| goes[node as usize] == node);
}

fn keep(graph: &mut Graph, was: &mut Vec<usize>, wanted: impl Fn(u32) -> bool) {
    let mut numbers: Vec<Option<u32>> = Vec::with_capacity(graph.nodes.len());
    let mut next = 0;
    for node in 0..graph.nodes.len() as u32 {
        numbers.push(wanted(node).then_some(next));
        next += u32::from(wanted(node));
    }
    let mut index = 0;
    graph.nodes.retain(|_| {
        index += 1;
        numbers[index - 1].is_some()
    });
    let mut index = 0;
    was.retain(|_| {
        index += 1;
        numbers[index - 1].is_some()
    });
    let mut known: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    let mut edges: Vec<GraphEdge> = Vec::new();
    for edge in graph.edges.drain(..) {
        let (Some(from), Some(to)) = (numbers[edge.from as usize], numbers[edge.to as usize]) else { continue };
        // A way around nothing says nothing.
        if from == to && graph.nodes[from as usize].kind == StepKind::Branch {
            continue;
        }
        match known.get(&(from, to)) {
            Some(&place) => {
                if edge.on_path && !edges[place].on_path {
                    edges[place] = GraphEdge { from, to, ..edge };
                }
            }
            None => {
                known.insert((from, to), edges.len());
                edges.push(GraphEdge { from, to, ..edge });
            }
        }
    }
    graph.edges = edges;
}

#[cfg(test)]
mod tests {
    use super::*;
    use caulk_findings::{GraphNode, Place};

    fn graph(kinds: &[StepKind], edges: &[(u32, u32, bool)]) -> Graph {
        let node = |kind: &StepKind| GraphNode {
            kind: *kind,
            label: String::new(),
            place: Place::default(),
            state: String::new(),
            step: None,
        };
        let edge = |&(from, to, on_path): &(u32, u32, bool)| GraphEdge { from, to, label: String::new(), on_path };
        Graph { nodes: kinds.iter().map(node).collect(), edges: edges.iter().map(edge).collect() }
    }

    fn shape(graph: &Graph) -> (Vec<StepKind>, Vec<(u32, u32, bool)>) {
        let edges = graph.edges.iter().map(|edge| (edge.from, edge.to, edge.on_path)).collect();
        (graph.nodes.iter().map(|node| node.kind).collect(), edges)
    }

    #[test]
    fn ways_that_end_nowhere_go_and_branches_that_decide_nothing_with_them() {
        use StepKind::{Allocate, Branch, Lose, Release, Use};
        // 0 -> 1 -> {2, 3 -> 4 (no end)}; 2 -> {5 loses, 6 releases}
        let walked = graph(
            &[Allocate, Branch, Branch, Use, Use, Lose, Release],
            &[(0, 1, true), (1, 2, true), (1, 3, false), (3, 4, false), (2, 5, true), (2, 6, false)],
        );
        let expected = (vec![Allocate, Branch, Lose, Release], vec![(0, 1, true), (1, 2, true), (1, 3, false)]);
        assert_eq!(shape(&trim(walked, &[5, 6]).0), expected);
    }

    #[test]
    fn loops_of_branches_alone_disappear() {
        use StepKind::{Allocate, Branch, Lose};
        let walked =
            graph(&[Allocate, Branch, Branch, Lose], &[(0, 1, true), (1, 2, false), (2, 1, false), (1, 3, true)]);
        assert_eq!(shape(&trim(walked, &[3]).0), (vec![Allocate, Lose], vec![(0, 1, true)]));
    }
}
