//! What is told apart: return values and what happened before them.

use caulk_analysis::{IncidentKind, Off, Status, Term};
use caulk_base::Id;

use crate::support::{errors, summary, with};

/// A queue that takes an item, unless there is no memory.
pub const PUSH: &str = r#"
fn @push(v0: ptr, v1: ptr) -> i32 {
  var0 "queue" param 0
  var1 "text" param 1
bb0:
  v2 = call ptr @malloc(i64 16) @4:3
  v3 = cmp eq v2, null
  branch v3, bb1, bb2
bb1:
  return i32 -1 @5:5
bb2:
  store v1 to v2
  v4 = load ptr v0
  v5 = offset v2 + 8
  store v4 to v5
  store v2 to v0
  return i32 0 @9:3
}
fn @careless(v0: ptr, v1: ptr) -> i32 {
  var0 "copy"
bb0:
  v2 = call ptr @strdup(v1) @12:3
  bind var0, v2
  v3 = cmp eq v2, null
  branch v3, bb1, bb2
bb1:
  return i32 -1
bb2:
  v4 = call i32 @push(v0, v2) @13:3
  return v4 @14:3
}
fn @careful(v0: ptr, v1: ptr) -> i32 {
  var0 "copy"
bb0:
  v2 = call ptr @strdup(v1) @20:3
  bind var0, v2
  v3 = cmp eq v2, null
  branch v3, bb1, bb2
bb1:
  return i32 -1
bb2:
  v4 = call i32 @push(v0, v2) @21:3
  v5 = cmp slt v4, i32 0
  branch v5, bb3, bb4
bb3:
  call void @free(v2) @22:3
  return i32 -1 @23:3
bb4:
  return i32 0 @24:3
}
"#;

#[test]
fn taking_and_not_taking_are_two_outcomes() {
    with(PUSH, |analysis| {
        let push = summary(analysis, "push");
        assert_eq!(push.0.outcomes.len(), 2, "{:#?}", push.0);
        let failed = push.returning(-1);
        assert!(failed.writes.is_empty() && failed.objs.iter().all(|(_, known)| !known.escaped), "{failed:#?}");
        let done = push.returning(0);
        let head = done.writes.iter().find(|write| push.is_behind(&push.0.objects[write.obj.index()], 0));
        let head = head.expect("the queue is written");
        assert_eq!(head.off, Off::At(0));
        assert!(push.is_new(head.term), "{done:#?}");
        let text = done.writes.iter().find(|write| *push.term(write.term) == Term::Param(1));
        assert_eq!(text.map(|write| write.off), Some(Off::At(0)), "{done:#?}");
    });
}

#[test]
fn who_ignores_that_it_was_not_taken_leaks() {
    with(PUSH, |analysis| {
        assert_eq!(errors(analysis, "careless"), [IncidentKind::Leak]);
        assert_eq!(errors(analysis, "careful"), []);
    });
}

pub const MAKE: &str = r#"
fn @make(v0: ptr) -> i32 {
  var0 "out" param 0
bb0:
  v1 = call ptr @malloc(i64 8) @2:3
  v2 = cmp eq v1, null
  branch v2, bb1, bb2
bb1:
  return i32 -1
bb2:
  store v1 to v0
  return i32 0
}
fn @use_it() -> i32 {
  var0 "p"
bb0:
  v0 = alloca 8 var0
  v1 = call i32 @make(v0) @10:3
  v2 = cmp ne v1, i32 0
  branch v2, bb1, bb2
bb1:
  return i32 1
bb2:
  v3 = load ptr v0
  call void @free(v3) @12:3
  return i32 0
}
fn @forget_it() -> i32 {
  var0 "p"
bb0:
  v0 = alloca 8 var0
  v1 = call i32 @make(v0) @20:3
  v2 = cmp ne v1, i32 0
  branch v2, bb1, bb2
bb1:
  return i32 1
bb2:
  return i32 0 @22:3
}
"#;

#[test]
fn an_out_parameter_is_filled_on_success_only() {
    with(MAKE, |analysis| {
        let make = summary(analysis, "make");
        assert!(make.returning(-1).writes.is_empty());
        let [write] = make.returning(0).writes[..] else { panic!("one cell: {:#?}", make.0) };
        assert!(make.is_behind(&make.0.objects[write.obj.index()], 0) && make.is_new(write.term), "{:#?}", make.0);
        assert_eq!(errors(analysis, "use_it"), []);
        assert_eq!(errors(analysis, "forget_it"), [IncidentKind::Leak]);
    });
}

/// `grow` keeps the old block when `realloc` fails; the `%s` is what it does then.
fn realloc(on_failure: &str) -> String {
    format!(
        r#"
fn @grow() -> i32 {{
  var0 "p"
bb0:
  v0 = call ptr @malloc(i64 8) @2:3
  bind var0, v0
  v1 = cmp eq v0, null
  branch v1, bb1, bb2
bb1:
  return i32 1
bb2:
  v2 = call ptr @realloc(v0, i64 64) @4:3
  v3 = cmp eq v2, null
  branch v3, bb3, bb4
bb3:
  {on_failure}
  return i32 2 @6:3
bb4:
  call void @free(v2) @8:3
  return i32 0
}}
"#
    )
}

#[test]
fn a_failed_realloc_leaves_the_old_block() {
    with(&realloc("call void @free(v0) @5:3"), |analysis| assert_eq!(errors(analysis, "grow"), []));
    with(&realloc(""), |analysis| assert_eq!(errors(analysis, "grow"), [IncidentKind::Leak]));
    let old = realloc("call void @free(v0) @5:3").replace("free(v2) @8", "free(v0) @8");
    with(&old, |analysis| assert!(errors(analysis, "grow").contains(&IncidentKind::DoubleFree)));
    let dropped = realloc("call void @free(v0) @5:3").replace("call void @free(v2) @8:3", "");
    with(&dropped, |analysis| assert_eq!(errors(analysis, "grow"), [IncidentKind::Leak]));
}

#[test]
fn releasing_is_told_by_must_and_may() {
    let text = r#"
fn @always(v0: ptr) {
bb0:
  call void @free(v0)
  return
}
fn @sometimes(v0: ptr, v1: i32) {
bb0:
  v2 = cmp eq v1, i32 7
  branch v2, bb1, bb2
bb1:
  call void @free(v0)
  jump bb2
bb2:
  return
}
"#;
    with(text, |analysis| {
        let always = summary(analysis, "always");
        let freed = |seen: &crate::support::Seen| -> Vec<bool> {
            let of = |outcome: &caulk_analysis::Outcome| {
                outcome.objs.iter().any(|(obj, known)| {
                    seen.is_behind(&seen.0.objects[obj.index()], 0) && known.status.must(Status::FREED)
                })
            };
            seen.0.outcomes.iter().map(of).collect()
        };
        assert!(freed(&always).contains(&true), "{:#?}", always.0);
        let mut sometimes = freed(&summary(analysis, "sometimes"));
        sometimes.sort_unstable();
        sometimes.dedup();
        assert_eq!(sometimes, [false, true], "the two ways are kept apart");
    });
}

#[test]
fn over_the_limit_outcomes_become_one_that_may_be_either() {
    let program = crate::support::program(PUSH);
    let models = caulk_models::Models::builtin();
    let limits = caulk_analysis::Limits { outcomes: 1, ..caulk_analysis::Limits::default() };
    let analysis = caulk_analysis::analyse(&program, &models, limits);
    let push = summary(&analysis, "push");
    let [only] = &push.0.outcomes[..] else { panic!("{:#?}", push.0) };
    let result = only.result.map(|result| push.term(result).clone());
    assert!(!matches!(result, Some(Term::Int(_))), "{result:?} is not the only possible result");
}
