//! Names what has no name: `append(a, strdup(s));` becomes `char *item = strdup(s);` and a test. What nobody wants is
//! released at once.

use caulk_source::{
    Call, CallId, EditSet, FunctionSource, Origin, Placement, Snippet, Span, StmtKind, TokenKind, declarator,
};

use super::conditional::conditions;
use super::exits::is_pure;
use super::{Bench, Proposals, may_declare, replace};
use crate::change::Candidate;
use crate::release;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    in_macro_argument(bench, all);
    let place = &target.finding.source;
    let Some(inner) = function.calls_at(place.line, place.column).into_iter().last() else { return };
    let call = &function.calls[inner];
    let stmt = function.stmt(call.stmt);
    let library = &target.finding.release;
    if !function.callable_at(library, stmt.span.start) || !call.result_type.contains('*') {
        return;
    }
    if call.result_ignored {
        // Nobody looks whether there is something to release.
        if library == "free" {
            at_once(bench, all, call);
        }
        return;
    }
    let Some(outer) = outer(bench, inner) else { return };
    let outer = &function.calls[outer];
    if outer.args.iter().any(|arg| arg.span != call.span && is_busy(function, arg.span)) {
        return;
    }
    let name = function.fresh_name_in(function.enclosing_block(call.stmt), wanted_name(&call.result_type));
    let title = || format!("name the result of `{}`, so that it can be released", call.callee);
    let code = release::as_the_author(function, format!("{library}({name});"));
    if matches!(stmt.kind, StmtKind::Expr | StmtKind::Decl { .. }) {
        let made = function.hoist_call(inner, None, &name, &Snippet::default(), Placement::Auto);
        let made = made.and_then(|mut edits| {
            edits.merge(&function.insert_after(call.stmt, &Snippet::line(code.clone()))?);
            Ok(edits)
        });
        all.add(made, |edits| Candidate::new(function, "name-the-unnamed", title(), edits));
    }
    if outer.result_ignored
        && matches!(stmt.kind, StmtKind::Expr)
        && let Ok(declared) = declarator(&call.result_type, &name)
    {
        let before = function.text(Span::new(outer.span.start, call.span.start));
        let behind = function.text(Span::new(call.span.end, outer.span.end));
        let head = format!("{declared} = {};", function.text(call.span));
        for (prefix, suffix) in conditions(&outer.result_type) {
            let test = format!("if ({prefix}{before}{name}{behind}{suffix})");
            let lines = [head.clone(), test, format!("\t{code}")];
            let made = replace(function, call.stmt, &Snippet::lines(lines).declaring());
            if outer.result_type != "void" {
                all.add(made, |edits| Candidate::new(function, "name-the-unnamed", title(), edits));
            }
        }
    }
    if let StmtKind::If { then, otherwise, .. } = stmt.kind {
        // Which branch knows that it was not taken, the proof finds out.
        for branch in [Some(then), otherwise].into_iter().flatten() {
            let made = function.hoist_call(inner, None, &name, &Snippet::default(), Placement::Auto);
            let made = made.and_then(|mut edits| {
                let code = Snippet::line(code.clone());
                edits.merge(&match function.stmt(branch).kind {
                    StmtKind::Compound { .. } => function.insert_at_start(branch, &code)?,
                    _ => function.insert_before(branch, &code)?,
                });
                Ok(edits)
            });
            all.add(made, |edits| Candidate::new(function, "name-the-unnamed", title(), edits));
        }
    }
}

/// `LOG("%s", make(x));`, where the macro is the whole statement and evaluates its argument once: the value is made before it
/// and released behind it. That nothing else changes, whatever the macro does, the proof finds out.
fn in_macro_argument(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let callee = target.finding.object.strip_prefix("the result of `").and_then(|rest| rest.strip_suffix('`'));
    let (Some(callee), Some(source)) = (callee, target.source) else { return };
    let stmt = function.stmt(source);
    let Origin::WholeMacro(id) = stmt.origin else { return };
    let used = &function.macros[id];
    let is_made = |call: &&Call| call.stmt == source && call.callee == callee && used.args.contains(&call.span);
    let [call] = function.calls.iter().filter(is_made).collect::<Vec<_>>()[..] else { return };
    let library = &target.finding.release;
    let file = &function.file;
    let words = file.tokens_in(used.span).iter().filter(|token| file.slice(token.span) == callee.as_bytes()).count();
    let settled = matches!(stmt.kind, StmtKind::Expr) && call.unconditional && call.result_type.contains('*');
    if !settled || words != 1 || used.args.iter().any(|arg| *arg != call.span && is_busy(function, *arg)) {
        return;
    }
    if !function.callable_at(library, stmt.span.start) {
        return;
    }
    let name = function.fresh_name_in(function.enclosing_block(source), wanted_name(&call.result_type));
    let Ok(declared) = declarator(&function.spelled(&call.result_type), &name) else { return };
    let made =
        function.check_stmt(source).and_then(|()| {
            let value = function.text(call.span);
            let mut edits = if may_declare(function, source) {
                function.insert_before(source, &Snippet::line(format!("{declared} = {value};")).declaring())?
            } else {
                let mut edits = function.declare_in(function.enclosing_block(source), &format!("{declared};"))?;
                edits.merge(&function.insert_before(source, &Snippet::line(format!("{name} = {value};")))?);
                edits
            };
            edits.replace(call.span, name.clone());
            edits.merge(&function.insert_after(
                source,
                &Snippet::line(release::as_the_author(function, format!("{library}({name});"))),
            )?);
            Ok(edits)
        });
    let title = format!("name the result of `{callee}`, so that it can be released");
    all.add(made, |edits| Candidate::new(function, "name-the-unnamed", title, edits));
}

/// Whether an argument may do something or see what is done: in which order arguments are evaluated is the compiler's choice,
/// and what is evaluated before the others must not matter to them.
fn is_busy(function: &FunctionSource, arg: Span) -> bool {
    let tokens = function.file.tokens_in(arg);
    let is_text = !tokens.is_empty() && tokens.iter().all(|token| token.kind == TokenKind::Literal);
    !is_text && !is_pure(&function.text(arg))
}

fn wanted_name(type_name: &str) -> &'static str {
    if matches!(type_name, "char *" | "const char *") { "text" } else { "item" }
}

/// `make(x);` becomes `free(make(x));`
fn at_once(bench: &Bench<'_>, all: &mut Proposals, call: &Call) {
    let function = &bench.target.function;
    let stmt = function.stmt(call.stmt);
    if stmt.core != call.span || !matches!(stmt.kind, StmtKind::Expr) {
        return;
    }
    let made = function.check_stmt(call.stmt).map(|()| {
        let mut edits = EditSet::new();
        edits.insert(call.span.start, format!("{}(", bench.target.finding.release));
        edits.insert(call.span.end, ")");
        edits
    });
    let title = format!("release what `{}` returns", call.callee);
    all.add(made, |edits| Candidate::new(function, "release-ignored-result", title, edits));
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
