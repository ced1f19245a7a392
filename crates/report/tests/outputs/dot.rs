use caulk_findings::{Graph, GraphEdge};
use caulk_report::to_dot;

use crate::sample;

#[test]
fn the_graph_for_graphviz() {
    let mut graph = sample::leak().graph.unwrap();
    graph.nodes[0].label = "say \"hi\\n\"".into();
    graph.edges.push(GraphEdge { from: 0, to: 99, label: String::new(), on_path: true });
    insta::assert_snapshot!(to_dot(&graph, sample::ROOT));
}

#[test]
fn steps_alone_make_a_chain() {
    let graph = Graph::from_steps(&sample::double_free().steps);
    let edges: Vec<_> = graph.edges.iter().map(|edge| (edge.from, edge.to, edge.label.as_str())).collect();
    assert_eq!(edges, [(0, 1, ""), (1, 2, "true")]);
    assert_eq!(Graph::from_steps(&[]), Graph::default());
}
