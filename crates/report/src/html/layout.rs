//! Places the nodes of a slice graph: layers from top to bottom, few crossings.
//!
//! The usual layered drawing, kept small: back edges are set aside, a node's
//! layer is its longest way from a root, nodes in a layer are ordered by the
//! mean position of their neighbours. The path to the error is kept in the first
//! column, so that it reads as one straight line.
//!
//! # Invariants
//! - The same graph gives the same drawing.
//! - Works on any graph, also with cycles and loose nodes.

use caulk_findings::Graph;

/// Where a node sits: column and row of a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub column: usize,
    pub row: usize,
}

/// A cell for every node.
pub fn layout(graph: &Graph) -> Vec<Cell> {
    let count = graph.nodes.len();
    let mut next = vec![Vec::new(); count];
    for (from, to, _) in graph.edges_within().filter(|(from, to, _)| from != to) {
        next[from].push(to);
    }
    let rows = longest_ways(count, &next);
    let height = rows.iter().max().map_or(0, |row| row + 1);
    let mut layers = vec![Vec::new(); height];
    for (node, row) in rows.iter().enumerate() {
        layers[*row].push(node);
    }
    order(graph, &next, &mut layers);
    let mut cells = vec![Cell::default(); count];
    let on_path = graph.on_path();
    let any = on_path.contains(&true);
    for (row, layer) in layers.iter().enumerate() {
        // The first column belongs to the path, also below its end.
        let first = usize::from(any && layer.first().is_some_and(|node| !on_path[*node]));
        for (column, node) in layer.iter().enumerate() {
            cells[*node] = Cell { column: first + column, row };
        }
    }
    cells
}

/// The row of each node: its longest way from a root over edges that close no cycle.
fn longest_ways(count: usize, next: &[Vec<usize>]) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut seen = vec![Seen::No; count];
    let mut finished = Vec::with_capacity(count);
    let mut forward = vec![Vec::new(); count];
    for root in 0..count {
        if seen[root] != Seen::No {
            continue;
        }
        seen[root] = Seen::Open;
        let mut stack = vec![(root, 0)];
        while let Some((node, at)) = stack.pop() {
            let Some(to) = next[node].get(at).copied() else {
                seen[node] = Seen::Done;
                finished.push(node);
                continue;
            };
            stack.push((node, at + 1));
            if seen[to] != Seen::Open {
                forward[node].push(to);
            }
            if seen[to] == Seen::No {
                seen[to] = Seen::Open;
                stack.push((to, 0));
            }
        }
    }
    let mut rows = vec![0; count];
    for node in finished.into_iter().rev() {
        for to in &forward[node] {
            rows[*to] = rows[*to].max(rows[node] + 1);
        }
    }
    rows
}

fn order(graph: &Graph, next: &[Vec<usize>], layers: &mut [Vec<usize>]) {
    let mut position = vec![0usize; graph.nodes.len()];
    let on_path = graph.on_path();
    for layer in layers.iter() {
        for (place, node) in layer.iter().enumerate() {
            position[*node] = place;
        }
    }
    let mut neighbours = vec![Vec::new(); graph.nodes.len()];
    for (from, targets) in next.iter().enumerate() {
        for to in targets {
            neighbours[from].push(*to);
            neighbours[*to].push(from);
        }
    }
    for _ in 0..4 {
        for layer in layers.iter_mut() {
            // Mean in thousandths, so that the order does not hang on rounding of floats.
            let mean = |node: usize| match neighbours[node].len() {
                0 => position[node] * 1000,
                number => neighbours[node].iter().map(|other| position[*other] * 1000).sum::<usize>() / number,
            };
            layer.sort_by_key(|node| (!on_path[*node], mean(*node), *node));
            for (place, node) in layer.iter().enumerate() {
                position[*node] = place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caulk_findings::{GraphEdge, GraphNode, Place, StepKind};

    fn graph(on_path: &[bool], edges: &[(u32, u32)]) -> Graph {
        Graph {
            nodes: on_path
                .iter()
                .map(|on| GraphNode {
                    kind: StepKind::Use,
                    label: String::new(),
                    place: Place::default(),
                    state: String::new(),
                    step: on.then_some(0),
                })
                .collect(),
            edges: edges
                .iter()
                .map(|(from, to)| {
                    let on = |node: &u32| on_path.get(*node as usize) == Some(&true);
                    GraphEdge { from: *from, to: *to, label: String::new(), on_path: on(from) && on(to) }
                })
                .collect(),
        }
    }

    fn cells(graph: &Graph) -> Vec<(usize, usize)> {
        layout(graph).iter().map(|cell| (cell.column, cell.row)).collect()
    }

    #[test]
    fn the_path_is_the_first_column() {
        // 0 -> {1 beside, 2 on path} -> 3
        let diamond = graph(&[true, false, true, true], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
        assert_eq!(cells(&diamond), [(0, 0), (1, 1), (0, 1), (0, 2)]);
    }

    #[test]
    fn what_follows_beside_the_path_stays_beside_it() {
        // 0 -> {1 on path, 2 beside}; 2 -> 3
        let beside = graph(&[true, true, false, false], &[(0, 1), (0, 2), (2, 3)]);
        assert_eq!(cells(&beside), [(0, 0), (0, 1), (1, 1), (1, 2)]);
    }

    #[test]
    fn cycles_loops_and_strays_are_placed() {
        let odd = graph(&[true; 4], &[(0, 1), (1, 0), (1, 1), (1, 2), (9, 0)]);
        assert_eq!(cells(&odd), [(0, 0), (0, 1), (0, 2), (1, 0)]);
        assert_eq!(cells(&graph(&[], &[])), []);
    }
}
