//! A variable that some ways to the exit have not set yet gets a value that releases nothing, so that the exit may
//! release it:
//!
//! ```c
//! char *text;            ──►      char *text = NULL;
//! …                               …
//! return -1;                      free(text);
//!                                 return -1;
//! ```
//!
//! A program that is right never reads what was not set, so the new value is seen by the new release only.

use caulk_source::{Decl, DeclKind, Edit, EditSet, Origin, Snippet, Span, StmtKind};

use super::exits::what;
use super::{Bench, Proposals, code_of, frontier};
use crate::change::Candidate;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let Some(sink) = target.sink.filter(|sink| bench.is_jump(*sink) || target.sink_is_end()) else { return };
    let at_end = target.sink_is_end();
    let place = if at_end { function.span.end.saturating_sub(1) } else { function.stmt(sink).span.start };
    for (holder, call) in bench.releases_at(place) {
        let name = root(&holder);
        if holder != name || call.contains('\n') {
            continue;
        }
        let Some(decl) = function.variable_at(name, place).map(|decl| &function.decls[decl]) else { continue };
        let Some((value, code)) = unset(decl).map(|value| (value, guarded(value, &holder, &call))) else { continue };
        // The value is evaluated before the release, and must not need what is gone.
        if let StmtKind::Return { value: Some(value) } = function.stmt(sink).kind
            && ([name, "errno"].iter().any(|name| function.file.mentions(value, name))
                || function.text(value).contains(['*', '[', '>']))
        {
            continue;
        }
        let released =
            if at_end { function.insert_at_end(function.body, &code) } else { function.insert_before(sink, &code) };
        let made = released.map(|edits| with_value(edits, decl, value));
        let title = format!("let `{holder}` be {value} until it is set, and release it at the exit");
        all.add(made, |edits| Candidate::new(function, "initialise-and-release", title, edits).calling(&call));
    }
    before_jump(bench, all);
}

/// Where the exit may not release it, because it was released on another way there: before the jump that loses it.
fn before_jump(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(source) = bench.target.source else { return };
    for (id, stmt) in function.stmts.iter_ids() {
        let leaves = matches!(stmt.kind, StmtKind::Break | StmtKind::Continue | StmtKind::Goto { .. });
        if !leaves || stmt.span.start < function.stmt(source).span.start {
            continue;
        }
        for (holder, call) in bench.releases_at(stmt.span.start) {
            let decl = function.variable_at(root(&holder), stmt.span.start).map(|decl| &function.decls[decl]);
            let Some(decl) = decl.filter(|decl| decl.name == holder && unset(decl) == Some("NULL")) else { continue };
            if call.contains('\n') || frontier::is_null_here(bench, id, &holder) {
                continue;
            }
            let made = function.insert_before(id, &code_of(&call)).map(|edits| with_value(edits, decl, "NULL"));
            let title =
                format!("let `{holder}` be NULL until it is set, and release it before the {}", what(&stmt.kind));
            all.add(made, |edits| Candidate::new(function, "initialise-and-release", title, edits).calling(&call));
        }
    }
}

/// The same edits, and a value where the variable is declared.
pub fn with_value(mut edits: EditSet, decl: &Decl, value: &str) -> EditSet {
    let behind = Span::new(decl.span.end, decl.span.end);
    let text = format!(" = {value}").into_bytes();
    edits.put(Edit { span: behind, text, rank: 0, shared: true });
    edits
}

/// What a local variable without a value is given: nothing that could be released.
pub fn unset(decl: &Decl) -> Option<&'static str> {
    let plain = decl.kind == DeclKind::Local && decl.init.is_none() && decl.origin == Origin::Written;
    match decl.canonical_type.as_str() {
        _ if !plain => None,
        "int" => Some("-1"),
        kind if kind.ends_with('*') => Some("NULL"),
        _ => None,
    }
}

fn guarded(value: &str, holder: &str, call: &str) -> Snippet {
    match value {
        "NULL" => code_of(call),
        _ => Snippet::lines([format!("if ({holder} != {value})"), format!("\t{call}")]),
    }
}
