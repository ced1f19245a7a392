//! A variable that owns the block, where its name is sometimes something else or out of scope:
//! `T *owned = NULL;` at the start, set where the block is allocated, released where it would be lost.

use caulk_findings::Confidence;
use caulk_source::{DeclId, DeclKind, FunctionSource, Placement, Snippet, Span, StmtKind, declarator};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release;
use crate::takes;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let (Some(source), Some(sink), Some(name)) = (target.source, target.sink, &target.name) else { return };
    if name != root(name) || !target.finding.family.eq("memory") {
        return;
    }
    // Of the blocks of many rounds, the variable would own the last only.
    let many = function.ancestors(source).map(|at| function.stmt(at)).any(|stmt| {
        matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. })
            && !stmt.span.covers(function.stmt(sink).span)
    });
    if many {
        return;
    }
    // Somebody else may own it already, and only the call knows. So much text is not for an error that may be none.
    if takes::perhaps(bench.survey, function, name) || target.finding.confidence != Confidence::High {
        return;
    }
    let Some(decl) = function.variable_at(name, function.stmt(source).span.end) else { return };
    let type_name = function.decls[decl].type_name.replace("const ", "");
    let owned = function.fresh_name("owned");
    let Ok(declared) = declarator(&type_name, &owned) else { return };
    let release = &target.finding.release;
    let start = function.stmt(sink).span.start;
    if !function.callable_at(release, start) || release::has_own_end(bench, name, start) {
        return;
    }
    let code = Snippet::line(format!("{release}({owned});"));
    for clearing in [false, true] {
        let made = function.declare_in(function.body, &format!("{declared} = NULL;")).and_then(|mut edits| {
            edits.merge(&function.insert_after(source, &Snippet::line(format!("{owned} = {name};")))?);
            let at_end = target.sink_is_end();
            let released = match function.stmt(sink).kind {
                _ if at_end => function.insert_at_end(function.body, &code)?,
                StmtKind::Return { value: Some(value) } if !stays(function, value) => {
                    let result = function.fresh_name_besides("result", std::slice::from_ref(&owned));
                    function.return_through_temp(sink, &result, &code, Placement::Auto)?
                }
                _ => function.insert_before(sink, &code)?,
            };
            edits.merge(&released);
            if clearing {
                for holder in target.holders() {
                    let meant = |at: usize| function.variable_at(root(&holder), at);
                    for (_, call) in function.releases_of(&holder) {
                        let call = &function.calls[call];
                        // Another variable of that name is another matter.
                        if meant(call.span.start) != meant(function.stmt(source).span.end) {
                            continue;
                        }
                        if release::is_release(function, bench.survey, call.span.start) && call.result_ignored {
                            edits.merge(&function.set_null_after(call.stmt, &owned)?);
                        }
                    }
                }
            }
            Ok(edits)
        });
        let title = "keep the block in a variable of its own, and release it before it is lost".to_string();
        all.add(made, |edits| Candidate::new(function, "owner-variable", title, edits));
    }
}

/// Is the value the same behind the release: a constant, or a variable that only this function has?
fn stays(function: &FunctionSource, value: Span) -> bool {
    let text = function.text(value);
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')').trim_start_matches('-');
    let word = !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let shared = |decl: DeclId| matches!(function.decls[decl].kind, DeclKind::StaticLocal | DeclKind::Global);
    word && inner != "errno" && !function.variable_at(inner, value.start).is_some_and(shared)
}
