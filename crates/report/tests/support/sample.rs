//! A small project with hand-made findings, for every output's tests.

use caulk_base::{Gap, GapKind};
use caulk_findings::{
    AllocClass, Confidence, Decision, Edit, Finding, Findings, Fingerprint, Graph, GraphEdge, GraphNode, MemorySources,
    Patch, PatchStatus, Place, Rule, RunStats, RunSummary, SiteCount, Step, StepKind,
};

pub const ROOT: &str = "/p";

pub const LOAD_C: &str = r#"#include "list.h"

int load(struct list *l, int n)
{
	char *buf;
	buf = malloc(n);
	if (buf == NULL)
		return -1;
	if (append(l, buf) < 0) {
		log_error("could not append");
		return -1;
	}
	return 0;
}

void drop(char *p, int twice)
{
	free(p);
	if (twice)
		free(p);
}
"#;

pub const LIST_C: &str = r#"#include "list.h"

int append(struct list *l, char *item)
{
	struct node *n = malloc(sizeof *n);
	if (n == NULL)
		return -1;
	n->item = item;
	n->next = l->head;
	l->head = n;
	return 0;
}
"#;

/// A file that wants to break out of the page.
pub const HOSTILE_C: &str = r#"/* </script><script>alert(1)</script> <img src=x onerror=alert(2)> */
void hostile(void)
{
	char *s = strdup("</script><img src=x onerror=alert(3)>");
	puts(s); /* --> ]]> & &amp; "quotes" 'single' */
}

int filler0;
int filler1;
int filler2;
int filler3;
int filler4;
int filler5;
int filler6;
int filler7;
int filler8;
int filler9;
/* </script><script>alert(8)</script> <img src=x onerror=alert(9)> */
const char *tail = "</code></div><img src=x onerror=alert(10)>";
"#;

pub fn sources() -> MemorySources {
    MemorySources::new([("/p/src/load.c", LOAD_C), ("/p/src/list.c", LIST_C), ("/p/src/<b>/hostile.c", HOSTILE_C)])
}

pub fn place(file: &str, line: u32, column: u32, function: &str) -> Place {
    Place { file: format!("{ROOT}/{file}"), line, column, function: function.into(), in_macro: false }
}

fn step(kind: StepKind, place: Place, text: &str, depth: u32, state: &str) -> Step {
    Step { kind, place, text: text.into(), depth, decision: None, state: state.into() }
}

fn branch(place: Place, condition: &str, taken: bool, text: &str, depth: u32, state: &str) -> Step {
    let decision = Some(Decision { condition: condition.into(), taken });
    Step { decision, ..step(StepKind::Branch, place, text, depth, state) }
}

/// Across two files, with a callee, a decision, doubts, assumptions and a graph.
pub fn leak() -> Finding {
    let load = |line, column| place("src/load.c", line, column, "load");
    let append = |line, column| place("src/list.c", line, column, "append");
    let steps = vec![
        step(StepKind::Allocate, load(6, 8), "allocated here", 0, "allocated"),
        branch(load(7, 6), "buf == NULL", false, "the allocation succeeds", 0, "allocated"),
        step(StepKind::Call, load(9, 6), "passed to `append`", 0, "allocated"),
        branch(append(6, 6), "n == NULL", true, "`malloc` fails here", 1, "allocated"),
        step(StepKind::Return, append(7, 3), "`append` returns -1, so it was not stored", 1, "allocated"),
        branch(load(9, 6), "append(l, buf) < 0", true, "", 0, "allocated"),
        step(StepKind::Lose, load(11, 3), "the last reference is lost here", 0, "lost"),
    ];
    let mut graph = Graph::from_steps(&steps);
    graph.nodes.push(GraphNode {
        kind: StepKind::Store,
        label: "n->item = item".into(),
        place: append(8, 10),
        state: "stored".into(),
        step: None,
    });
    graph.edges.push(GraphEdge { from: 3, to: 7, label: "false".into(), on_path: false });
    Finding {
        rule: Rule::MemoryLeak,
        confidence: Confidence::Medium,
        doubts: vec!["`log_error` has no model".into()],
        message: "`buf` is never released when `append` fails".into(),
        object: "buf".into(),
        family: "memory".into(),
        release: "free".into(),
        source: load(6, 8),
        sink: load(11, 3),
        steps,
        assumptions: vec!["`log_error` keeps none of its arguments".into()],
        fingerprint: Fingerprint("00c0ffee00c0ffee".into()),
        graph: Some(graph),
        at_exit: None,
    }
}

pub fn double_free() -> Finding {
    let drop = |line, column| place("src/load.c", line, column, "drop");
    Finding {
        rule: Rule::DoubleFree,
        confidence: Confidence::High,
        doubts: vec![],
        message: "`p` is released twice when `twice` is set".into(),
        object: "p".into(),
        family: "memory".into(),
        release: "free".into(),
        source: drop(16, 6),
        sink: drop(20, 3),
        steps: vec![
            step(StepKind::Release, drop(18, 2), "released here", 0, "released"),
            branch(drop(19, 6), "twice", true, "", 0, "released"),
            step(StepKind::Release, drop(20, 3), "released again here", 0, "released twice"),
        ],
        assumptions: vec![],
        fingerprint: Fingerprint("0d0ub1ef4ee00001".into()),
        graph: None,
        at_exit: None,
    }
}

/// Every string is an attack on a page.
pub fn hostile() -> Finding {
    let here = |line, column| place("src/<b>/hostile.c", line, column, "hostile<i>");
    Finding {
        rule: Rule::MemoryLeak,
        confidence: Confidence::Low,
        doubts: vec!["<img src=x onerror=alert(4)>".into()],
        message: "`s` </script><script>alert(5)</script> leaks".into(),
        object: "\"><img src=x onerror=alert(6)>".into(),
        family: "memory".into(),
        release: "free".into(),
        source: here(4, 12),
        sink: here(6, 1),
        steps: vec![
            step(StepKind::Allocate, here(4, 12), "<img src=x onerror=alert(7)>", 0, "<u>allocated"),
            branch(here(5, 2), "a < b && c > \"d\"", true, "", 0, "allocated"),
            step(StepKind::Lose, here(6, 1), "lost </script>", 0, "lost"),
        ],
        assumptions: vec!["</script>".into()],
        fingerprint: Fingerprint("0bad0bad0bad0bad".into()),
        graph: None,
        at_exit: None,
    }
}

pub fn patch() -> Patch {
    Patch {
        fingerprint: leak().fingerprint,
        status: PatchStatus::Fixed,
        strategy: "release-before-exit".into(),
        title: "release `buf` before the early return".into(),
        why_safe: vec![
            "`append` stores `buf` only when it returns 0".into(),
            "no other reference to the block exists at line 11".into(),
        ],
        diff: "--- a/src/load.c\n+++ b/src/load.c\n@@ -8,6 +8,7 @@\n \t\treturn -1;\n \tif (append(l, buf) < 0) {\n \t\tlog_error(\"could not append\");\n+\t\tfree(buf);\n \t\treturn -1;\n \t}\n \treturn 0;\n".into(),
        edits: vec![Edit {
            file: "/p/src/load.c".into(),
            start: 171,
            end: 171,
            start_line: 11,
            start_column: 3,
            end_line: 11,
            end_column: 3,
            replacement: "free(buf);\n\t\t".into(),
        }],
        tried: Vec::new(),
    }
}

pub fn refusal() -> Patch {
    Patch::refused(double_free().fingerprint, "the release lies in a macro body")
}

pub fn summary() -> RunSummary {
    let class = |class, sites, reported| SiteCount { class, sites, reported };
    RunSummary {
        units: 13,
        units_failed: 1,
        units_passed_over: 2,
        functions: 412,
        alloc_sites: 98,
        stats: RunStats {
            classes: vec![
                class(AllocClass::NeverFreedLocalInMain, 3, 0),
                class(AllocClass::NeverFreedLocal, 1, 1),
                class(AllocClass::NeverFreedShared, 12, 0),
                class(AllocClass::AlwaysFreed, 70, 0),
                class(AllocClass::SometimesFreed, 10, 2),
                class(AllocClass::Unknown, 2, 0),
            ],
            decided_in_stage_one: 97,
            candidates: 5,
            refuted_by_contradiction: 2,
            smt_queries: 1,
            refuted_by_smt: 0,
            functions_analysed: 14,
            phases: vec![
                ("capture".into(), 640),
                ("clang".into(), 4_200_000),
                ("summaries".into(), 812_300),
                ("paths".into(), 12_345),
            ],
            unmodelled: vec![("log_error".into(), 31), ("hook_run".into(), 4)],
        },
    }
}

pub fn gaps() -> Vec<Gap> {
    vec![
        Gap::new(GapKind::Unit, "/p/src/broken.c", "fatal error: 'config.h' file not found"),
        Gap::new(GapKind::Limit, "/p/src/big.c: parse", "more than 64 outcomes; merged"),
    ]
}

pub fn findings() -> Findings {
    Findings { findings: vec![leak(), double_free(), hostile()], summary: summary(), gaps: gaps() }
}
