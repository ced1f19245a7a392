//! What goes through calls: depth, recursion, pointers to functions, functions that never return.

use std::fmt::Write;
use std::sync::Arc;

use caulk_analysis::{Incident, IncidentKind, Limits, Summary, analyse};
use caulk_ir::Program;
use caulk_models::Models;

use crate::outcomes::{MAKE, PUSH};
use crate::support::{errors, function, program, summary, with};

/// Eight functions around `malloc` and eight around `free`.
fn wrappers(body: &str) -> String {
    let mut text = String::new();
    for depth in 0..8 {
        let (make, drop) = match depth {
            0 => ("malloc".to_owned(), "free".to_owned()),
            _ => (format!("make{}", depth - 1), format!("drop{}", depth - 1)),
        };
        let _ = write!(
            text,
            "fn @make{depth}(v0: i64) -> ptr {{\nbb0:\n  v1 = call ptr @{make}(v0)\n  return v1\n}}\n\
             fn @drop{depth}(v0: ptr) {{\nbb0:\n  call void @{drop}(v0)\n  return\n}}\n"
        );
    }
    let _ = write!(
        text,
        "fn @user() -> i32 {{\n  var0 \"p\"\nbb0:\n  v0 = call ptr @make7(i64 8) @90:3\n  bind var0, v0\n  {body}\n  \
         return i32 0 @99:3\n}}\n"
    );
    text
}

#[test]
fn eight_wrappers_hide_nothing() {
    with(&wrappers("call void @drop7(v0) @91:3"), |analysis| {
        assert_eq!(errors(analysis, "user"), []);
        let made = summary(analysis, "make7");
        assert!(made.0.outcomes.iter().any(|outcome| outcome.result.is_some_and(|result| made.is_new(result))));
    });
    with(&wrappers(""), |analysis| assert_eq!(errors(analysis, "user"), [IncidentKind::Leak]));
    with(&wrappers("call void @drop7(v0) @91:3\n  call void @drop3(v0) @92:3"), |analysis| {
        assert_eq!(errors(analysis, "user"), [IncidentKind::DoubleFree]);
    });
}

/// `%s` is what is done where there is no memory for the second block.
fn dying(end: &str) -> String {
    format!(
        r#"
fn @die(v0: i32) {{
bb0:
  call void @exit(v0) @1:3
  unreachable
}}
fn @fail() {{
bb0:
  call void @die(i32 1) @2:3
  return
}}
fn @no_memory() {{
bb0:
  call void @fail() @3:3
  return
}}
fn @warn() {{
bb0:
  return
}}
fn @two() -> i32 {{
  var0 "a"
  var1 "b"
bb0:
  v0 = call ptr @malloc(i64 8) @10:3
  bind var0, v0
  v1 = cmp eq v0, null
  branch v1, bb1, bb2
bb1:
  call void @no_memory() @11:3
  jump bb4
bb2:
  v2 = call ptr @malloc(i64 8) @12:3
  bind var1, v2
  v3 = cmp eq v2, null
  branch v3, bb3, bb5
bb3:
  call void @{end}() @13:3
  jump bb4
bb4:
  return i32 1 @14:3
bb5:
  call void @free(v0) @15:3
  call void @free(v2) @16:3
  return i32 0
}}
"#
    )
}

#[test]
fn a_function_that_calls_one_that_never_returns_does_not_return() {
    with(&dying("no_memory"), |analysis| {
        for name in ["die", "fail", "no_memory"] {
            assert!(summary(analysis, name).0.outcomes.is_empty(), "{name} returns");
        }
        assert!(!summary(analysis, "warn").0.outcomes.is_empty());
        assert_eq!(errors(analysis, "two"), []);
    });
    with(&dying("warn"), |analysis| assert_eq!(errors(analysis, "two"), [IncidentKind::Leak]));
}

fn table(body: &str) -> String {
    format!(
        r#"
global internal @ops size 16 const init {{ 0: @make, 8: @drop }}
fn internal @make() -> ptr {{
bb0:
  v0 = call ptr @malloc(i64 8) @1:3
  return v0
}}
fn internal @drop(v0: ptr) {{
bb0:
  call void @free(v0) @2:3
  return
}}
fn @user(v0: ptr) -> i32 {{
  var0 "ops" param 0
  var1 "p"
bb0:
  v1 = load ptr @ops
  v2 = call ptr *v1() @10:3
  bind var1, v2
  {body}
  return i32 0 @13:3
}}
"#
    )
}

#[test]
fn the_slots_of_a_constant_table_are_kept_apart() {
    let good = table("v3 = offset @ops + 8\n  v4 = load ptr v3\n  call void *v4(v2) @11:3");
    with(&good, |analysis| {
        let knowledge = &analysis.knowledge;
        let user = function(knowledge.program, "user");
        let mut targets: Vec<&str> = Vec::new();
        for (inst, _) in knowledge.program.function(user).insts.iter_ids() {
            for &target in knowledge.indirect(user, inst).into_iter().flat_map(|found| &found.functions) {
                targets.push(&knowledge.program.function(target).name);
            }
        }
        assert_eq!(targets, ["make", "drop"]);
        assert_eq!(errors(analysis, "user"), []);
    });
    with(&table(""), |analysis| assert_eq!(errors(analysis, "user"), [IncidentKind::Leak]));
}

#[test]
fn an_unknown_function_may_keep_what_it_is_given() {
    let text = |params: &str| {
        format!(
            "sym0 external declare @mystery {params}\nfn @f() -> i32 {{\n  var0 \"p\"\nbb0:\n  \
             v0 = call ptr @malloc(i64 8) @1:3\n  bind var0, v0\n  v1 = call i32 @mystery(v0) @2:3\n  \
             v2 = call i32 @mystery(v0) @3:3\n  return i32 0 @4:3\n}}\n"
        )
    };
    with(&text("(_)"), |analysis| {
        assert_eq!(errors(analysis, "f"), []);
        assert_eq!(caulk_analysis::unmodelled(&analysis.knowledge), [("mystery".to_owned(), 2)]);
    });
    with(&text("(nocapture pointer_to_const)"), |analysis| {
        assert_eq!(errors(analysis, "f"), [IncidentKind::Leak]);
    });
}

type Everything = (Vec<Arc<Incident>>, Vec<Option<Arc<Summary>>>, Vec<String>);

/// What is found out with so many threads.
fn found_with(program: &Program, threads: usize) -> Everything {
    let models = Models::builtin();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let analysis = analyse(program, &models, Limits::default());
        let texts = program.functions.ids().map(|id| caulk_analysis::show::points_to(&analysis, id)).collect();
        let summaries = program.functions.ids().map(|id| analysis.knowledge.summary(id)).collect();
        (analysis.incidents, summaries, texts)
    })
}

#[test]
fn the_result_is_the_same_with_one_thread_and_with_two() {
    let text = [PUSH, MAKE, &dying("warn"), &wrappers("")].concat().replace("fn @make(", "fn @fill(");
    let text = text.replace("@make(v0) @10:3", "@fill(v0) @10:3").replace("@make(v0) @20:3", "@fill(v0) @20:3");
    let program = program(&text);
    let one = found_with(&program, 1);
    assert!(!one.0.is_empty());
    for _ in 0..3 {
        assert!(found_with(&program, 2) == one);
    }
}

#[test]
fn a_large_recursion_is_worked_out_the_same_by_several_threads() {
    let ring = |at: usize| {
        let end = if at == 3 { "call void @free(v0) @2:3" } else { "" };
        format!(
            "fn @r{at}(v0: ptr, v1: i32) -> i32 {{\n  var0 \"p\"\nbb0:\n  v2 = call ptr @malloc(i64 8) @1:3\n  \
             bind var0, v2\n  v3 = cmp eq v1, i32 {at}\n  branch v3, bb1, bb2\nbb1:\n  {end}\n  return i32 {at} @3:3\n\
             bb2:\n  v4 = call i32 @r{}(v0, v1) @4:3\n  v5 = call i32 @r{}(v2, v4) @5:3\n  return v5 @6:3\n}}\n",
            (at + 1) % 9,
            (at + 4) % 9
        )
    };
    let program = program(&(0..9).map(ring).collect::<String>());
    let one = found_with(&program, 1);
    assert!(!one.0.is_empty());
    for threads in [2, 3, 4] {
        assert!(found_with(&program, threads) == one);
    }
}
