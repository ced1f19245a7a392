//! Structures: destructors of trees, lists that are drained, fields of constructors.

use caulk_analysis::{IncidentKind, Use};

use crate::support::{errors, summary, with};

fn tree(body: &str) -> String {
    format!(
        r#"
fn @destroy(v0: ptr) {{
  var0 "node" param 0
bb0:
  v1 = cmp eq v0, null
  branch v1, bb1, bb2
bb1:
  return
bb2:
  v2 = load ptr v0
  call void @destroy(v2) @3:3
  v3 = offset v0 + 8
  v4 = load ptr v3
  call void @destroy(v4) @4:3
  call void @free(v0) @5:3
  return
}}
fn @user() -> i32 {{
  var0 "root"
bb0:
  v0 = call ptr @calloc(i64 1, i64 16) @10:3
  bind var0, v0
  v1 = cmp eq v0, null
  branch v1, bb1, bb2
bb1:
  return i32 1
bb2:
  {body}
  return i32 0 @13:3
}}
"#
    )
}

#[test]
fn a_tree_destructor_releases_its_root() {
    with(&tree("call void @destroy(v0) @11:3"), |analysis| {
        assert!(!summary(analysis, "destroy").0.outcomes.is_empty(), "recursion ends");
        assert_eq!(errors(analysis, "destroy"), []);
        assert_eq!(errors(analysis, "user"), []);
    });
    with(&tree(""), |analysis| assert_eq!(errors(analysis, "user"), [IncidentKind::Leak]));
    with(&tree("call void @destroy(v0) @11:3\n  call void @destroy(v0) @12:3"), |analysis| {
        // It looks at the root before it would release it once more.
        assert_eq!(errors(analysis, "user"), [IncidentKind::UseAfterFree(Use::Passed)]);
    });
}

/// A constructor with an inner block, and a destructor that knows of it or not.
fn object(destructor: &str) -> String {
    format!(
        r#"
fn @create() -> ptr {{
  var0 "object"
  var1 "inner"
bb0:
  v0 = call ptr @malloc(i64 16) @1:3
  bind var0, v0
  v1 = cmp eq v0, null
  branch v1, bb1, bb2
bb1:
  return null
bb2:
  v2 = call ptr @malloc(i64 8) @2:3
  bind var1, v2
  v3 = cmp eq v2, null
  branch v3, bb3, bb4
bb3:
  call void @free(v0) @3:3
  return null
bb4:
  v4 = offset v0 + 8
  store v2 to v4
  return v0
}}
fn @destroy(v0: ptr) {{
bb0:
  {destructor}
  call void @free(v0) @6:3
  return
}}
fn @user() -> i32 {{
  var0 "object"
bb0:
  v0 = call ptr @create() @10:3
  bind var0, v0
  v1 = cmp eq v0, null
  branch v1, bb1, bb2
bb1:
  return i32 1
bb2:
  call void @destroy(v0) @11:3
  return i32 0 @12:3
}}
"#
    )
}

#[test]
fn an_inner_block_goes_with_its_owner_or_leaks() {
    let whole = object("v1 = offset v0 + 8\n  v2 = load ptr v1\n  call void @free(v2) @5:3");
    with(&whole, |analysis| {
        assert_eq!(errors(analysis, "create"), []);
        assert_eq!(errors(analysis, "user"), []);
    });
    with(&object(""), |analysis| assert_eq!(errors(analysis, "user"), [IncidentKind::Leak]));
}

#[test]
fn a_use_after_the_release_is_seen_through_a_field() {
    let text = |order: &str| {
        format!(
            "fn @f(v0: ptr) -> i32 {{\n  var0 \"s\" param 0\nbb0:\n  v1 = offset v0 + 8\n  v2 = load ptr v1\n  {order}\n  \
             return v3\n}}\n"
        )
    };
    with(&text("v3 = load i32 v2 @2:3\n  call void @free(v2) @3:3"), |analysis| assert_eq!(errors(analysis, "f"), []));
    with(&text("call void @free(v2) @2:3\n  v3 = load i32 v2 @3:3"), |analysis| {
        assert_eq!(errors(analysis, "f"), [IncidentKind::UseAfterFree(Use::Read)]);
    });
}
