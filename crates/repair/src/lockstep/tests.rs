//! Pairs of functions in the text form. Text from line 100 on is that of one function alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use caulk_ir::{Callee, Op, Program, Target, Unit, parse_unit};

use super::rules::Rules;
use super::terms::Which;
use super::walk::Walk;
use super::{Verdict, side};
use crate::survey::{Spot, Survey, Whole};

fn unit(text: &str) -> Unit {
    let unit = parse_unit(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(caulk_ir::verify(&unit), [], "{text}");
    unit
}

/// A survey in which every call of `free` is a release.
fn survey(text: &str) -> Survey {
    let unit = unit(text);
    let mut survey = Survey { library: BTreeSet::from(["free".to_owned()]), ..Survey::default() };
    for function in unit.functions.iter() {
        survey.functions.insert(function.name.clone());
        for inst in function.insts.iter() {
            let Op::Call(call) = &inst.op else { continue };
            let Callee::Symbol(symbol) = call.callee else { continue };
            let loc = unit.locs[inst.loc];
            let file = loc.file.map(|file| unit.files[file].clone()).unwrap_or_default();
            if unit.symbols[symbol].name == "free" {
                let spot = Spot { file, line: loc.line, column: loc.column, function: function.name.clone() };
                survey.releases.insert(spot, BTreeSet::new());
            }
        }
    }
    let mut program = Program::new(vec![Arc::new(unit)]);
    let unit = Arc::clone(&program.units[caulk_ir::UnitId(0)]);
    let targets = unit.symbols.iter().map(|symbol| match symbol.kind {
        caulk_ir::SymbolKind::Function(local) => {
            Target::Functions(vec![program.function_id(caulk_ir::UnitId(0), local)])
        }
        _ => Target::Extern(caulk_ir::ExternId(0)),
    });
    let targets = targets.collect();
    program.targets.push(targets);
    survey.program = Whole(Arc::new(program));
    survey
}

/// Compares the last function of both texts.
fn compare(old: &str, new: &str) -> Verdict {
    let (before, after) = (survey(old), survey(new));
    let last = |survey: &Survey| {
        let program = &survey.program;
        (program.units.ids().next_back().unwrap(), program.functions.ids().next_back().unwrap())
    };
    let ((old_unit, old_function), (new_unit, new_function)) = (last(&before), last(&after));
    let rules = Rules::new(&before, &after, "free");
    let text = |_: Which, _: &str, line: u32, column: u32| (line < 100).then_some((line, column));
    let (old, new) = (
        (&*before.program.units[old_unit], before.program.function(old_function)),
        (&*after.program.units[new_unit], after.program.function(new_function)),
    );
    let (old, new) = side::pair(old, new, &text);
    Walk::new(old, new, &rules, 0).run()
}

fn same(old: &str, new: &str) {
    assert_eq!(compare(old, new), Verdict::Same);
}

fn differs(old: &str, new: &str, what: &str) {
    match compare(old, new) {
        Verdict::Differs { what: said, .. } => assert!(said.contains(what), "{said}"),
        other => panic!("{other:?}"),
    }
}

const LEAK: &str = "fn @f(v0: ptr) -> i32 {
    bb0:
      v1 = call ptr @strdup(v0) @1:1
      v2 = cmp eq v1, null @2:1
      branch v2, bb1, bb2 @2:1
    bb1:
      return i32 -1 @3:1
    bb2:
      v3 = call i64 @strlen(v1) @4:1
      v4 = trunc i32 v3 @4:1
      return v4 @5:1
    }";

#[test]
fn a_release_may_be_added() {
    same(LEAK, &LEAK.replace("return v4", "call void @free(v1) @100:1\n return v4"));
}

#[test]
fn what_is_returned_must_stay() {
    let freed = LEAK.replace("return v4", "call void @free(v1) @100:1\n return v4");
    differs(LEAK, &freed.replace("return v4", "return i32 4"), "returned");
    differs(LEAK, &freed.replace("return i32 -1", "return i32 1"), "returned");
    let narrow = freed.replace("return v4", "v5 = trunc i8 v4\n v6 = zext i32 v5\n return v6");
    differs(LEAK, &narrow, "returned");
}

#[test]
fn other_calls_must_stay() {
    let spoken = LEAK.replace("return v4", "v5 = call i32 @puts(v1) @100:1\n return v4");
    differs(LEAK, &spoken, "`puts` would be called");
    differs(&spoken, LEAK, "`puts` would not be called");
    differs(LEAK, &LEAK.replace("@strlen(v1)", "@strlen(v0)"), "`strlen` would be given something else");
}

#[test]
fn more_may_be_asked() {
    let asked = LEAK.replace(
        "return v4",
        "v5 = cmp ne v0, null @100:1
         branch v5, bb3, bb4 @100:1
       bb3:
         call void @free(v1) @101:1
         jump bb4
       bb4:
         return v4",
    );
    same(LEAK, &asked);
    let other =
        asked.replace("bb4:\n", "bb4:\n v6 = phi i32 [bb2: v4], [bb3: i32 0]\n").replace("return v4", "return v6");
    differs(LEAK, &other, "returned");
}

const LOOP: &str = "fn @f(v0: ptr, v1: i32) -> i32 {
    bb0:
      jump bb1 @1:1
    bb1:
      v2 = phi i32 [bb0: i32 0], [bb3: v7]
      v3 = cmp slt v2, v1 @2:1
      branch v3, bb2, bb4 @2:1
    bb2:
      v4 = sext i64 v2 @3:1
      v5 = offset v0 + 0 + v4 * 8 @3:1
      v6 = call ptr @strdup(v5) @3:1
      jump bb3 @4:1
    bb3:
      v7 = add i32 v2, i32 1 @5:1
      jump bb1 @5:1
    bb4:
      return v2 @6:1
    }";

#[test]
fn rounds_of_a_loop_are_told_apart() {
    let freed = LOOP.replace("jump bb3 @4:1", "call void @free(v6) @100:1\n jump bb3 @4:1");
    same(LOOP, &freed);
    differs(LOOP, &freed.replace("add i32 v2, i32 1", "add i32 v2, i32 2"), "");
    // The block of the last round is not that of this one.
    let kept = "fn @f(v0: ptr) {
        bb0:
          jump bb1
        bb1:
          v1 = phi ptr [bb0: null], [bb1: v2]
          v2 = call ptr @strdup(v0) @1:1
          call void @put(v2) @2:1
          v3 = cmp ne v2, null @3:1
          branch v3, bb1, bb2 @3:1
        bb2:
          return
        }";
    differs(kept, &kept.replace("@put(v2)", "@put(v1)"), "`put` would be given something else");
}

#[test]
fn memory_counts() {
    let old = "fn @f(v0: ptr, v1: ptr) -> i32 {
        bb0:
          store i32 1 to v0 @1:1
          v2 = load i32 v1 @2:1
          return v2 @3:1
        }";
    differs(old, &old.replace("store i32 1", "store i32 2"), "written");
    differs(old, &old.replace("store i32 1 to v0 @1:1\n", ""), "not be written any more");
    // What is read before the write may be something else.
    let early = "fn @f(v0: ptr, v1: ptr) -> i32 {
        bb0:
          v2 = load i32 v1 @2:1
          store i32 1 to v0 @1:1
          return v2 @3:1
        }";
    differs(old, early, "returned");
    let beside =
        |text: &str| text.replace("load i32 v1", "load i32 v3").replace("bb0:\n", "bb0:\n v3 = offset v0 + 4\n");
    let renumbered = |text: &str| text.replace("v3", "v9").replace("v2", "v3").replace("v9", "v2");
    same(&renumbered(&beside(old)), &renumbered(&beside(early)));
}

#[test]
fn a_use_may_come_before_the_release() {
    let old = "fn @f(v0: ptr) -> i32 {
        bb0:
          call void @free(v0) @1:1
          v1 = load i32 v0 @2:1
          return v1 @2:1
        }";
    let moved = "fn @f(v0: ptr) -> i32 {
        bb0:
          v1 = load i32 v0 @100:1
          call void @free(v0) @1:1
          return v1 @2:1
        }";
    same(old, moved);
    let gone = moved.replace("call void @free(v0) @1:1\n", "");
    differs(old, &gone, "not be released");
    same(&old.replace("@1:1", "@100:1"), &gone);
}

/// `free(p); if (p) free(p);`, and `p = NULL` behind the first.
const TWICE: &str = "fn @f(v0: ptr) -> i32 {
    bb0:
      call void @free(v0) @1:1
      v1 = cmp ne v0, null @2:1
      branch v1, bb1, bb2 @2:1
    bb1:
      call void @free(v0) @3:1
      jump bb2 @3:1
    bb2:
      return i32 0 @4:1
    }";

#[test]
fn null_stands_for_what_is_gone() {
    let null = TWICE.replace("cmp ne v0, null", "cmp ne null, null").replace("@free(v0) @3:1", "@free(null) @3:1");
    same(TWICE, &null);
    let told = |text: &str| text.replace("@free(v0) @3:1", "@tell() @3:1").replace("@free(null) @3:1", "@tell() @3:1");
    differs(&told(TWICE), &told(&null), "`tell` would not be called");
}

/// `free(c->buf); end(c);` with and without `c->buf = NULL` between them.
fn closed(callee: &str) -> (String, String) {
    let with = |between: &str| {
        format!(
            "fn @end(v0: ptr) {{
             bb0:
               v1 = load ptr v0
               {callee}
             }}
             fn @f(v0: ptr) -> i32 {{
             bb0:
               v1 = load ptr v0 @1:1
               call void @free(v1) @1:1
               {between}
               call void @end(v0) @2:1
               return i32 0 @3:1
             }}"
        )
    };
    (with(""), with("store null to v0 @100:1"))
}

#[test]
fn callees_see_what_is_set_to_null() {
    let (old, new) = closed("call void @tell(v1) @20:1\n store null to v0 @21:1\n return");
    differs(&old, &new, "`end` would be given something else");
    let (old, new) = closed("call void @free(v1) @20:1\n store null to v0 @21:1\n return");
    same(&old, &new);
    // Behind the call, callers may look.
    let (old, new) = closed("return");
    differs(&old, &new, "callers may look");
}

#[test]
fn the_number_of_a_line_may_move_with_it() {
    let text = |line: u32, said: u32| {
        format!(
            "unit \"/t.c\"
             file0 \"/t.c\"
             loc0 none:0:0
             loc1 file0:{line}:3 macro
             sym0 external define @f = f0
             sym1 external declare @fail (_)
             f0 @f() -> void {{
             bb0:
               call void @fail(i32 {said}) @loc1
               return
             }}"
        )
    };
    let moved = |said: u32| {
        let (before, after) = (survey(&text(7, 7)), survey(&text(9, said)));
        let rules = Rules::new(&before, &after, "free");
        let lines = |which: Which, _: &str, line: u32, column: u32| {
            Some((if which == Which::Old { line + 2 } else { line }, column))
        };
        let of = |survey: &'_ Survey| survey.program.0.clone();
        let (old, new) = (of(&before), of(&after));
        let (unit, function) = (caulk_ir::UnitId(0), caulk_ir::FuncId(0));
        let (old, new) =
            side::pair((&old.units[unit], old.function(function)), (&new.units[unit], new.function(function)), &lines);
        Walk::new(old, new, &rules, 0).run()
    };
    assert_eq!(moved(9), Verdict::Same);
    assert!(matches!(moved(8), Verdict::Differs { .. }));
}
