//! The slice graph as SVG; every node leads to its line.

use caulk_findings::{Graph, GraphEdge, GraphNode, Rule, StepKind};
use maud::{Markup, html};

use crate::html::layout::{Cell, layout};

const WIDTH: usize = 224;
const HEIGHT: usize = 46;
const GAP_X: usize = 32;
const GAP_Y: usize = 34;
const MARGIN: usize = 26;
/// Characters that fit into a node.
const LABEL: usize = 26;

/// `link` says where a node leads, `shown` how a file is called.
pub fn svg(
    graph: &Graph,
    rule: Rule,
    link: &dyn Fn(&GraphNode) -> Option<String>,
    shown: &dyn Fn(&str) -> String,
) -> Markup {
    let cells = layout(graph);
    let columns = cells.iter().map(|cell| cell.column + 1).max().unwrap_or(0);
    let rows = cells.iter().map(|cell| cell.row + 1).max().unwrap_or(0);
    // The last gap is room for edges around the last column, and their labels.
    let width = 2 * MARGIN + columns * (WIDTH + GAP_X);
    let height = 2 * MARGIN + rows * (HEIGHT + GAP_Y) - GAP_Y.min(rows * GAP_Y);
    let last = graph.nodes.iter().filter_map(|node| node.step).max();
    html! {
        svg.graph xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
            role="group" aria-label={ "Slice graph of " (graph.nodes.len()) " points, " (rule.id()) } {
            defs {
                (arrow("arrow-on", "tip on"))
                (arrow("arrow-off", "tip"))
            }
            // Those beside the path first, so that the path lies on top.
            @for on_path in [false, true] {
                @for (from, to, edge) in graph.edges_within().filter(|(_, _, edge)| edge.on_path == on_path) {
                    (edge_path(cells[from], cells[to], edge))
                }
            }
            @for ((node, cell), on_path) in graph.nodes.iter().zip(&cells).zip(graph.on_path()) {
                @let error = node.step.is_some() && node.step == last;
                @match link(node) {
                    Some(href) => a href=(href) class=(class(node, on_path, error)) data-node=[node.step.map(|step| step + 1)]
                        aria-label=(spoken(node, shown)) { (shape(node, *cell, shown)) },
                    None => g class=(class(node, on_path, error)) { (shape(node, *cell, shown)) },
                }
            }
        }
    }
}

fn arrow(id: &str, class: &str) -> Markup {
    html! {
        marker id=(id) viewBox="0 0 8 8" refX="7" refY="4" markerWidth="10" markerHeight="10" markerUnits="userSpaceOnUse" orient="auto-start-reverse" {
            path class=(class) d="M0 0L8 4L0 8z" {}
        }
    }
}

fn class(node: &GraphNode, on_path: bool, error: bool) -> String {
    let path = if on_path { " on" } else { "" };
    let end = match node.kind {
        _ if error => " error",
        _ if on_path => "",
        StepKind::Release => " good",
        StepKind::Return if node.state != "not allocated" => " good",
        StepKind::Lose => " bad",
        _ => "",
    };
    format!("node kind-{}{path}{end}", node.kind.name())
}

fn spoken(node: &GraphNode, shown: &dyn Fn(&str) -> String) -> String {
    let step = node.step.map_or_else(String::new, |step| format!("Step {}: ", step + 1));
    format!("{step}{}, {}, line {}, state {}", node.label, shown(&node.place.file), node.place.line, node.state)
}

fn corner(cell: Cell) -> (usize, usize) {
    (MARGIN + cell.column * (WIDTH + GAP_X), MARGIN + cell.row * (HEIGHT + GAP_Y))
}

fn shape(node: &GraphNode, cell: Cell, shown: &dyn Fn(&str) -> String) -> Markup {
    let (x, y) = corner(cell);
    let round = if node.kind == StepKind::Branch { HEIGHT / 2 } else { 5 };
    let file = shown(&node.place.file);
    let name = file.rsplit('/').next().unwrap_or_default();
    let mut below = match node.place.line {
        0 => String::new(),
        line => format!("{name}:{line}"),
    };
    if !node.state.is_empty() {
        below += &format!(" · {}", node.state);
    }
    html! {
        title { (node.label) }
        rect x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx=(round) {}
        text.label x=(x + 14) y=(y + 19) {
            @if let Some(step) = node.step { tspan.num { (step + 1) } " " }
            (short(&node.label, LABEL))
        }
        text.below x=(x + 14) y=(y + 36) { (short(&below, LABEL + 8)) }
    }
}

fn short(text: &str, limit: usize) -> String {
    let text = text.replace('`', "");
    match text.chars().count() > limit {
        true => text.chars().take(limit - 1).chain(['…']).collect(),
        false => text,
    }
}

fn edge_path(from: Cell, to: Cell, edge: &GraphEdge) -> Markup {
    let ((from_x, from_y), (to_x, to_y)) = (corner(from), corner(to));
    let (class, tip) = if edge.on_path { ("edge on", "url(#arrow-on)") } else { ("edge", "url(#arrow-off)") };
    let down = to.row > from.row;
    let (path, label) = if down && (to.row == from.row + 1 || to.column != from.column) {
        let (x1, y1, x2, y2) = (from_x + WIDTH / 2, from_y + HEIGHT, to_x + WIDTH / 2, to_y);
        let bend = GAP_Y / 2 + 4;
        (
            format!("M{x1} {y1}C{x1} {} {x2} {} {x2} {y2}", y1 + bend, y2 - bend),
            (x1.midpoint(x2) + 6, y1.midpoint(y2) + 4),
        )
    } else if down {
        // Past other nodes of the column: around them on the right.
        let (x, y1, y2) = (from_x + WIDTH, from_y + HEIGHT / 2, to_y + HEIGHT / 2);
        (format!("M{x} {y1}C{0} {y1} {0} {y2} {x} {y2}", x + GAP_X), (x + 4, y1 - 4))
    } else {
        // Back up: around on the left.
        let (x1, y1, x2, y2) = (from_x, from_y + HEIGHT / 2, to_x, to_y + HEIGHT / 2 + 6);
        let left = x1.min(x2).saturating_sub(MARGIN);
        (format!("M{x1} {y1}C{left} {y1} {left} {y2} {x2} {y2}"), (left + 2, y1 - 4))
    };
    html! {
        path class=(class) d=(path) marker-end=(tip) {}
        @if !edge.label.is_empty() { text.turn.on[edge.on_path] x=(label.0) y=(label.1) { (short(&edge.label, 18)) } }
    }
}
