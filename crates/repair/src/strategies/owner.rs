//! A variable that owns the block, where its name is sometimes something else or out of scope:
//! `T *to_free = NULL;` at the start, set where the block is allocated, released where it would be lost. Where somebody takes
//! the block on some ways, it is null from there on, though the block's own name is still looked at.
//!
//! ```c
//! if (keep)
//!     add(list, text);            // takes `text`:            text_to_free = NULL;
//! show(text);
//! return 0;                       //                          free(text_to_free);
//! ```

use caulk_findings::Confidence;
use caulk_source::{DeclId, DeclKind, FunctionSource, Placement, Snippet, Span, StmtId, StmtKind, declarator};

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
    let owned = function.fresh_name(&format!("{name}_to_free"));
    let Ok(declared) = declarator(&type_name, &owned) else { return };
    let release = &target.finding.release;
    let start = function.stmt(sink).span.start;
    if !function.callable_at(release, start) || release::has_own_end(bench, name, start) {
        return;
    }
    let code = Snippet::line(format!("{release}({owned});"));
    for clearing in [Clearing::Nowhere, Clearing::Released, Clearing::Taken] {
        // Where the block is made in a declaration, the owner is declared behind it.
        let at_once = matches!(function.stmt(source).kind, StmtKind::Decl { .. })
            && function.stmt(source).parent == Some(function.body);
        let begun = if at_once {
            function.insert_after(source, &Snippet::line(format!("{declared} = {name};")).declaring())
        } else {
            let set = function.insert_after(source, &Snippet::line(format!("{owned} = {name};")));
            function.declare_in(function.body, &format!("{declared} = NULL;")).and_then(|mut edits| {
                edits.merge(&set?);
                Ok(edits)
            })
        };
        let made = begun.and_then(|mut edits| {
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
            for stmt in ends(bench, source, clearing) {
                edits.merge(&function.set_null_after(stmt, &owned)?);
            }
            Ok(edits)
        });
        let title = "keep the block in a variable of its own, and release it before it is lost".to_string();
        all.add(made, |edits| Candidate::new(function, "owner-variable", title, edits));
    }
}

/// Behind which calls the variable owns nothing any more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clearing {
    Nowhere,
    Released,
    Taken,
}

/// Statements that end the block, or its being ours.
fn ends(bench: &Bench<'_>, source: StmtId, clearing: Clearing) -> Vec<StmtId> {
    let function = &bench.target.function;
    if clearing == Clearing::Nowhere {
        return Vec::new();
    }
    let mut found: Vec<StmtId> = Vec::new();
    for holder in bench.target.holders() {
        let meant = |at: usize| function.variable_at(root(&holder), at);
        // Another variable of that name is another matter.
        let same = |at: usize| meant(at) == meant(function.stmt(source).span.end);
        for (_, call) in function.releases_of(&holder) {
            let call = &function.calls[call];
            if same(call.span.start)
                && release::is_release(function, bench.survey, call.span.start)
                && call.result_ignored
            {
                found.push(call.stmt);
            }
        }
        for call in function.calls.iter().filter(|_| clearing == Clearing::Taken) {
            let alone = matches!(function.stmt(call.stmt).kind, StmtKind::Expr) && call.result_ignored;
            if alone
                && same(call.span.start)
                && !found.contains(&call.stmt)
                && takes::surely(bench.survey, function, call, &holder, &bench.target.finding.release)
            {
                found.push(call.stmt);
            }
        }
    }
    // Where the function is left at once, nobody looks any more.
    found.retain(|stmt| !is_left_behind(bench, *stmt));
    found
}

/// `free(p); return -1;`
fn is_left_behind(bench: &Bench<'_>, stmt: StmtId) -> bool {
    let function = &bench.target.function;
    let Some(StmtKind::Compound { items }) = function.stmt(stmt).parent.map(|block| &function.stmt(block).kind) else {
        return false;
    };
    let behind = items.iter().skip_while(|item| **item != stmt).skip(1);
    let is_release = |item: &StmtId| {
        let mut calls = function.calls_of(*item).map(|id| &function.calls[id]);
        matches!(function.stmt(*item).kind, StmtKind::Expr)
            && calls.all(|call| release::is_release(function, bench.survey, call.span.start))
    };
    let next = behind.into_iter().find(|item| !is_release(item));
    next.is_some_and(|next| {
        matches!(function.stmt(*next).kind, StmtKind::Return { .. }) && Some(*next) != bench.target.sink
    })
}

/// Is the value the same behind the release: a constant, or a variable that only this function has?
fn stays(function: &FunctionSource, value: Span) -> bool {
    let text = function.text(value);
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')').trim_start_matches('-');
    let word = !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let shared = |decl: DeclId| matches!(function.decls[decl].kind, DeclKind::StaticLocal | DeclKind::Global);
    word && inner != "errno" && !function.variable_at(inner, value.start).is_some_and(shared)
}
