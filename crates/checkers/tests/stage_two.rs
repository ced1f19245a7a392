//! A leak on a path that no values can take is no finding; on one that some can, it is.

use std::sync::Arc;

use caulk_base::{Id, IdVec};
use caulk_checkers::{Options, check};
use caulk_findings::{Findings, Rule};
use caulk_ir::{ExternId, Program, SymbolKind, Target, UnitId, parse_unit};
use caulk_models::Models;

/// One unit of functions; what it declares is a library's.
fn checked(text: &str) -> Findings {
    let unit = Arc::new(parse_unit(text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut program = Program::new(vec![Arc::clone(&unit)]);
    let mut targets = IdVec::new();
    for symbol in unit.symbols.iter() {
        targets.push(match symbol.kind {
            SymbolKind::Function(local) => Target::Functions(vec![program.function_id(UnitId(0), local)]),
            _ => {
                program.externs.push(symbol.name.clone());
                Target::Extern(ExternId::new(program.externs.len() - 1))
            }
        });
    }
    program.targets.push(targets);
    check(&program, &Models::builtin(), &Options::default())
}

/// Returns without releasing when `2 * n == k`.
fn twice(k: i64) -> Findings {
    checked(&format!(
        r#"
unit "/src/t.c"
fn @f(v0: i64) -> i32 {{
  var0 "n" param 0
  var1 "p"
bb0:
  v1 = call ptr @malloc(i64 8) @3:13
  bind var1, v1
  v2 = cmp eq v1, null
  branch v2, bb1, bb2
bb1:
  return i32 1 @4:3
bb2:
  v3 = mul i64 v0, i64 2
  v4 = cmp eq v3, i64 {k}
  branch v4, bb3, bb4
bb3:
  return i32 2 @6:3
bb4:
  call void @free(v1) @7:3
  return i32 0 @8:3
}}
"#
    ))
}

#[test]
fn a_path_that_needs_half_a_number_is_no_finding() {
    let odd = twice(5);
    assert_eq!(odd.findings, []);
    let stats = &odd.summary.stats;
    assert_eq!((stats.candidates, stats.refuted_by_contradiction + stats.refuted_by_smt), (1, 1));
    let even = twice(6);
    let rules: Vec<Rule> = even.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::MemoryLeak]);
    assert_eq!(even.summary.stats.refuted_by_smt + even.summary.stats.refuted_by_contradiction, 0);
    assert!(even.findings[0].doubts.is_empty());
}

#[test]
fn a_site_without_a_candidate_is_decided_without_a_formula() {
    let clean =
        checked("fn @f() {\nbb0:\n  v0 = call ptr @malloc(i64 8) @1:3\n  call void @free(v0) @2:3\n  return\n}\n");
    assert_eq!(clean.findings, []);
    let stats = &clean.summary.stats;
    assert_eq!((clean.summary.alloc_sites, stats.decided_in_stage_one, stats.candidates), (1, 1, 0));
    assert_eq!(twice(6).summary.stats.decided_in_stage_one, 0);
}
