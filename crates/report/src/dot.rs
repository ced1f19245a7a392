//! A slice graph in the language of Graphviz.

use caulk_findings::{Graph, StepKind};

use crate::paths::shown;
use crate::words::clean;

/// The graph as a `digraph`; the path to the error is drawn bold.
pub fn to_dot(graph: &Graph, root: &str) -> String {
    let mut out = String::from(
        "digraph slice {\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n  edge [fontname=\"monospace\"];\n",
    );
    let on_path = graph.on_path();
    for (index, node) in graph.nodes.iter().enumerate() {
        let mut lines = vec![match node.step {
            Some(step) => format!("{}. {}", step + 1, node.label),
            None => node.label.clone(),
        }];
        if node.place.line > 0 {
            lines.push(format!("{}:{}", shown(root, &node.place.file), node.place.line));
        }
        if !node.state.is_empty() {
            lines.push(format!("[{}]", node.state));
        }
        let label: Vec<String> = lines.iter().map(|line| escape(line)).collect();
        let mut attributes = format!("label=\"{}\"", label.join("\\n"));
        if let Some(shape) = shape(node.kind) {
            attributes += &format!(", shape={shape}, style=\"\"");
        }
        if on_path[index] {
            attributes += ", penwidth=2";
        }
        out.push_str(&format!("  n{index} [{attributes}];\n"));
    }
    for (from, to, edge) in graph.edges_within() {
        let mut attributes = Vec::new();
        if !edge.label.is_empty() {
            attributes.push(format!("label=\"{}\"", escape(&edge.label)));
        }
        attributes.push(if edge.on_path { "penwidth=2, color=red".to_owned() } else { "style=dashed".to_owned() });
        out.push_str(&format!("  n{from} -> n{to} [{}];\n", attributes.join(", ")));
    }
    out.push_str("}\n");
    out
}

fn shape(kind: StepKind) -> Option<&'static str> {
    match kind {
        StepKind::Branch => Some("diamond"),
        StepKind::Lose => Some("octagon"),
        _ => None,
    }
}

fn escape(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}
