//! What `caulk dump` prints of a function, in the words of the source.

use caulk_analysis::show;

use crate::outcomes::MAKE;
use crate::support::{function, with};

/// With debug types: `struct list { int count; struct node *head; }` and `struct node { char *text; struct node *next; }`.
const TYPED: &str = r#"
unit "/src/list.c"
file0 "/src/list.c"
loc0 none:0:0
loc1 file0:7:12
loc2 file0:12:3
ty0 "int" 4 base
ty1 "" 8 pointer ty2
ty2 "node" 16 struct { "text" 0 ty3, "next" 8 ty1 }
ty3 "" 8 pointer
ty4 "list" 16 struct { "count" 0 ty0, "head" 8 ty1 }
ty5 "" 8 pointer ty4
sym0 external define @add = f0
sym1 external declare @malloc noalias_result
f0 @add(v0: ptr, v1: ptr) -> i32 {
  var0 "list" param 0 ty5
  var1 "text" param 1 ty3
bb0:
  v2 = call ptr @malloc(i64 16) @loc1
  v3 = cmp eq v2, null
  branch v3, bb1, bb2
bb1:
  return i32 -1
bb2:
  store v1 to v2
  v4 = offset v0 + 8
  v5 = load ptr v4
  v6 = offset v2 + 8
  store v5 to v6
  store v2 to v4
  return i32 0
}
"#;

#[test]
fn a_summary_speaks_of_parameters_and_fields_by_name() {
    let text = with(TYPED, |analysis| show::summary(&analysis.knowledge, function(analysis.knowledge.program, "add")));
    assert!(text.starts_with("add  list.c\n"), "{text}");
    for line in [
        "    list->head = block 1\n",
        "    block 1.text = text\n",
        "    block 1.next = list->head\n",
        "    allocates block 1: memory, at list.c:7\n",
        ": returns -1\n",
        ": returns 0\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let failed = text.split("  outcome ").find(|part| part.contains("returns -1")).expect("a failure");
    assert!(!failed.contains(" = ") && !failed.contains("allocates"), "{text}");
}

#[test]
fn points_to_names_sites_and_where_they_go() {
    with(MAKE, |analysis| {
        let program = analysis.knowledge.program;
        let make = show::points_to(analysis, function(program, "make"));
        for line in ["malloc allocates at ", ": memory\n", "    stored at ", "    *out = block 1\n"] {
            assert!(make.contains(line), "{line} is not in\n{make}");
        }
        let user = show::points_to(analysis, function(program, "use_it"));
        for line in ["make allocates at ", "released in this function", "free releases at ", ": certain\n"] {
            assert!(user.contains(line), "{line} is not in\n{user}");
        }
        let forgotten = show::points_to(analysis, function(program, "forget_it"));
        assert!(!forgotten.contains("released"), "{forgotten}");
    });
}

#[test]
fn a_function_that_never_returns_is_said_to() {
    let text = "fn @die() {\nbb0:\n  call void @abort()\n  unreachable\n}\n";
    let shown = with(text, |analysis| show::summary(&analysis.knowledge, function(analysis.knowledge.program, "die")));
    assert!(shown.contains("\n  never returns\n"), "{shown}");
}
