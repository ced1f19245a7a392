//! The slice graph of findings: the path to the error, and what happens to the object beside it.

use serde_json::Value;

use crate::run::run;

/// The graph of the first finding of a rule, one line a node: kind, label, line, state, and its edges; `=>` is the path.
fn drawn(rule: &str, source: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("x.c"), source).expect("a source can be written");
    let ran = run(folder.path(), &["check", "x.c", "--format", "json", "--no-cache"]).expect_code(1);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let graph = &findings.iter().find(|finding| finding["rule"] == rule).expect("a finding")["graph"];
    let edges = graph["edges"].as_array().expect("edges");
    let nodes = graph["nodes"].as_array().expect("nodes");
    let line = |(index, node): (usize, &Value)| {
        let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
        let out = edges.iter().filter(|edge| edge["from"].as_u64() == Some(index as u64)).map(|edge| {
            let arrow = if edge["on_path"] == true { "=>" } else { "->" };
            format!(" {}{arrow}{}", edge["label"].as_str().unwrap_or_default(), edge["to"])
        });
        let place = &node["location"]["line"];
        format!("{index} {} {}:{place} {};{}", text("kind"), text("label"), text("state"), out.collect::<String>())
    };
    nodes.iter().enumerate().map(line).collect()
}

#[test]
fn a_leak_shows_where_it_is_released_kept_and_returned_on_other_ways() {
    let found = drawn(
        "memory-leak",
        "#include <stdlib.h>
#include <string.h>
struct box { char *items[4]; int n; };
static int put(struct box *b, char *s) { if (b->n >= 4) return -1; b->items[b->n++] = s; return 0; }
char *take(struct box *b, const char *s, int mode) {
    char *copy = strdup(s);
    if (!copy)
        return NULL;
    if (mode == 3) {
        free(copy);
        return NULL;
    }
    if (mode == 4)
        return copy;
    if (put(b, copy) < 0)
        return NULL;
    return \"kept\";
}
",
    );
    assert_eq!(
        found,
        [
            "0 allocate copy = strdup(…):6 allocated; =>1",
            "1 branch copy != NULL:7 allocated; true=>2 false->6",
            "2 branch mode == 3:9 allocated; false=>3 true->9",
            "3 branch mode == 4:13 allocated; false=>4 true->8",
            "4 call put(…):15 allocated; leaves it=>5 keeps it->7",
            "5 lose return:16 lost;",
            "6 return the allocation failed:8 not allocated;",
            "7 return return:17 stored;",
            "8 return return it:14 handed to the caller;",
            "9 release free(…):10 released;",
        ]
    );
}

#[test]
fn a_failed_realloc_and_a_branch_that_decides_nothing() {
    let found = drawn(
        "memory-leak",
        "#include <stdlib.h>
#include <stdio.h>
int grow(int n) {
    char *p = malloc(8);
    if (!p)
        return -1;
    if (n > 2)
        puts(\"more\");
    p = realloc(p, n);
    if (!p)
        return -1;
    free(p);
    return 0;
}
",
    );
    assert_eq!(
        found,
        [
            "0 allocate p = malloc(…):4 allocated; =>1",
            "1 branch p != NULL:5 allocated; true=>2 false->4",
            "2 call realloc(…):9 allocated; leaves it=>3 releases it->5",
            "3 lose p = …:9 lost;",
            "4 return the allocation failed:6 not allocated;",
            "5 release released by realloc:9 released;",
        ]
    );
}

#[test]
fn a_double_free_shows_the_way_on_which_it_is_released_once() {
    let found = drawn(
        "double-free",
        "#include <stdlib.h>
void f(int a, int b) {
    char *p = malloc(8);
    if (a)
        free(p);
    if (b)
        return;
    free(p);
}
",
    );
    assert_eq!(
        found[..5],
        [
            "0 allocate p = malloc(…):3 allocated; =>1",
            "1 branch a != 0:4 allocated; true=>2 false->5",
            "2 release free(…):5 released; =>3",
            "3 branch b != 0:6 released; false=>4 true->9",
            "4 release free(…):8 released twice;",
        ]
    );
    assert_eq!(found[9], "9 return return:7 released;");
}
