//! Names what has no name: `append(a, strdup(s));` becomes `char *item = strdup(s);` and a test.

use caulk_source::{CallId, Placement, Snippet, StmtKind, declarator};

use super::conditional::conditions;
use super::{Bench, Proposals, replace};
use crate::change::Candidate;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    if target.name.is_some() {
        return;
    }
    let place = &target.finding.source;
    let Some(inner) = function.calls_at(place.line, place.column).into_iter().last() else { return };
    let call = &function.calls[inner];
    let stmt = function.stmt(call.stmt);
    let release = &target.finding.release;
    if !function.callable_at(release, stmt.span.start) {
        return;
    }
    let name = function.fresh_name("item");
    let title = || format!("name the result of `{}`, so that it can be released", call.callee);
    let code = format!("{release}({name});");
    if let Some(outer) = outer(bench, inner)
        && function.calls[outer].result_ignored
        && matches!(stmt.kind, StmtKind::Expr)
        && let Ok(declared) = declarator(&call.result_type, &name)
    {
        let outer = &function.calls[outer];
        let before = function.text(caulk_source::Span::new(outer.span.start, call.span.start));
        let behind = function.text(caulk_source::Span::new(call.span.end, outer.span.end));
        let head = format!("{declared} = {};", function.text(call.span));
        for (prefix, suffix) in conditions(&outer.result_type) {
            let test = format!("if ({prefix}{before}{name}{behind}{suffix})");
            let lines = [head.clone(), test, format!("\t{code}")];
            let made = replace(function, call.stmt, &Snippet::lines(lines).declaring());
            if outer.result_type != "void" {
                all.add(made, |edits| Candidate::new(function, "name-the-unnamed", title(), edits));
            }
        }
        let made =
            function.hoist_call(inner, None, &name, &Snippet::default(), Placement::Auto).and_then(|mut edits| {
                edits.merge(&function.insert_after(call.stmt, &Snippet::line(code.clone()))?);
                Ok(edits)
            });
        all.add(made, |edits| Candidate::new(function, "name-the-unnamed", title(), edits));
    }
}

/// The call that the inner one is an argument of.
fn outer(bench: &Bench<'_>, inner: CallId) -> Option<CallId> {
    let calls = &bench.target.function.calls;
    let span = calls[inner].span;
    calls
        .iter_ids()
        .filter(|(id, call)| *id != inner && call.args.iter().any(|arg| arg.span == span))
        .map(|(id, _)| id)
        .next()
}
