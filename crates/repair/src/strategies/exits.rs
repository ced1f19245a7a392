//! A release right before the statement that leaves: `return`, `goto`, `break`, `continue`, or a macro that does.

use caulk_source::{Assign, Call, DeclKind, FunctionSource, Origin, Placement, Snippet, Span, StmtId, StmtKind};

use super::{Bench, Proposals, code_of};
use crate::change::{BEFORE_EXIT, Candidate};
use crate::target::{is_number, is_plain, root};

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let Some(sink) = target.sink else { return };
    let stmt = function.stmt(sink);
    if let Origin::WholeMacro(id) = stmt.origin {
        before_macro(bench, all, id);
        return;
    }
    if !bench.is_jump(sink) {
        return;
    }
    let place = before_errno(function, sink);
    for (holder, call) in bench.releases_at(stmt.span.start) {
        let place = if is_needed_there(function, place, &holder) { sink } else { place };
        let code = bench.code_before(sink, &holder, &call);
        let title = || format!("release `{holder}` before the {}", what(&stmt.kind));
        if is_shared(function, &holder, stmt.span.start) && holder == root(&holder) && !call.contains('\n') {
            let none = if target.finding.release == "close" { "-1" } else { "NULL" };
            let mut lines = code.lines.clone();
            lines.push(format!("{holder} = {none};").into_bytes());
            let forgets = Snippet { lines, declares: false };
            let reads = match stmt.kind {
                StmtKind::Return { value: Some(value) } => function.file.mentions(value, &holder),
                _ => false,
            };
            if !reads {
                let title = format!("{}, and forget it", title());
                let made = function.insert_before(place, &forgets);
                all.add(made, |edits| Candidate::new(function, "release-and-forget", title, edits).overwriting());
            }
        }
        let StmtKind::Return { value: Some(value) } = stmt.kind else {
            let made = function.insert_before(place, &code);
            all.add(made, |edits| Candidate::new(function, BEFORE_EXIT, title(), edits).calling(&call));
            continue;
        };
        let text = function.text(value);
        let inner = without_cast(text.trim()).trim_start_matches('(').trim_end_matches(')');
        let mentioned = [root(&holder), "errno"].iter().any(|name| function.file.mentions(value, name));
        let looks = mentioned || inner.contains(['(', '*', '[', '>', '.']);
        if looks && is_inside(bench, value, root(&holder)) {
            continue;
        }
        if looks && !mentioned && target.finding.family == "memory" && is_told_the_same(bench, value) {
            let made = function.insert_before(place, &code);
            all.add(made, |edits| Candidate::new(function, BEFORE_EXIT, title(), edits).calling(&call));
        }
        if looks {
            let name = function.fresh_name("result");
            let made = function.return_through_temp(sink, &name, &code, Placement::Auto);
            let title = format!("keep the result, release `{holder}`, then return");
            all.add(made, |edits| Candidate::new(function, BEFORE_EXIT, title, edits).calling(&call));
        } else {
            let made = function.insert_before(place, &code);
            all.add(made, |edits| Candidate::new(function, BEFORE_EXIT, title(), edits).calling(&call));
        }
    }
}

/// A variable that is still there when the function has returned.
fn is_shared(function: &FunctionSource, name: &str, offset: usize) -> bool {
    let decl = function.variable_at(name, offset).map(|decl| function.decls[decl].kind);
    matches!(decl, Some(DeclKind::Global | DeclKind::StaticLocal))
}

/// What a release comes before: the exit, or `errno = saved;` right before it. A release may change `errno`.
fn before_errno(function: &FunctionSource, exit: StmtId) -> StmtId {
    let parent = function.stmt(exit).parent.map(|parent| &function.stmt(parent).kind);
    let Some(StmtKind::Compound { items }) = parent else { return exit };
    let before = items.iter().position(|item| *item == exit).and_then(|at| at.checked_sub(1)).map(|at| items[at]);
    let sets = |item: &StmtId| {
        let stmt = function.stmt(*item);
        let steady = |value: Span| !function.file.mentions(value, "errno") && !function.text(value).contains('(');
        let is_errno = |assign: &Assign| function.text(assign.lhs) == "errno" && !assign.compound && steady(assign.rhs);
        let is_it = |assign: &Assign| assign.stmt == *item && assign.whole && is_errno(assign);
        stmt.origin == Origin::Written && matches!(stmt.kind, StmtKind::Expr) && function.assigns.iter().any(is_it)
    };
    before.filter(sets).unwrap_or(exit)
}

/// `errno = request->error;`: what it is set to lies in the block.
fn is_needed_there(function: &FunctionSource, set: StmtId, holder: &str) -> bool {
    function.file.mentions(function.stmt(set).span, root(holder))
}

/// `(char *)p`: it is `p` that counts.
fn without_cast(text: &str) -> &str {
    let is_type = |inner: &str| {
        inner.ends_with('*') && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_ *".contains(&byte))
    };
    match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((inner, rest)) if is_type(inner) => rest.trim_start(),
        _ => text,
    }
}

/// `return error("…", name);`: a call of the program's that tells nobody which error was the last one. Nothing that is
/// released before it changes what it does.
fn is_told_the_same(bench: &Bench<'_>, value: Span) -> bool {
    let function = &bench.target.function;
    let text = function.text(value);
    let called = function.calls.iter().find(|call| call.span == value && call.direct);
    let known = |call: &&Call| bench.workshop.function_named(&call.callee, bench.patched).is_some();
    let inside = function.calls.iter().filter(|call| value.covers(call.span));
    called.filter(known).is_some()
        && !text.contains(['=', '+', '-', '['])
        && inside.into_iter().all(|call| !bench.survey.sides.tells_error(&call.callee) && known(&call))
}

/// A pointer that the function returns may lead into what is released: read from a struct that a library has filled, or
/// given by a call that was given the block.
pub fn is_inside(bench: &Bench<'_>, value: Span, holder: &str) -> bool {
    let function = &bench.target.function;
    if !function.return_type.contains('*') || function.file.mentions(value, "errno") {
        return false;
    }
    let text = function.text(value);
    let variable = root(text.trim_start_matches(['(', '&', '*', ' ']));
    let own = function.variable_at(variable, value.start).map(|decl| &function.decls[decl]);
    let filled = own.is_some_and(|decl| decl.kind == DeclKind::Local && !is_number(&decl.canonical_type));
    let given = function.calls.iter().any(|call| value.covers(call.span) && function.file.mentions(call.span, holder));
    let is_library = |call: &Call| bench.workshop.function_named(&call.callee, bench.patched).is_none();
    let library = function.calls.iter().any(|call| value.covers(call.span) && is_library(call));
    filled && text.contains(['.', '[']) && !text.contains('(') || given && library
}

pub fn what(kind: &StmtKind) -> &'static str {
    match kind {
        StmtKind::Goto { .. } => "`goto`",
        StmtKind::Break => "`break`",
        StmtKind::Continue => "`continue`",
        _ => "return",
    }
}

/// `n == 3` for `n != 3`, as an author would write it. Not for `<`: a number that is none is not less, nor greater or equal.
fn opposite(test: &str) -> String {
    let is_operand = |text: &str| is_plain(text) || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let turned = [("!=", "=="), ("==", "!=")].into_iter().find_map(|(sign, other)| {
        let (a, b) = test.split_once(sign)?;
        let (a, b) = (a.trim(), b.trim());
        (is_operand(a) && is_operand(b)).then(|| format!("{a} {other} {b}"))
    });
    match test.strip_prefix('!').map(str::trim) {
        _ if is_plain(test) => format!("!{test}"),
        Some(rest) if is_plain(rest) => rest.to_owned(),
        _ => turned.unwrap_or_else(|| format!("!({test})")),
    }
}

/// The macro stays as it is: the block is released before it, under the condition that one of its arguments is.
fn before_macro(bench: &Bench<'_>, all: &mut Proposals, id: caulk_source::MacroId) {
    if !bench.is_one_macro(&bench.target.function.macros[id].name) {
        return;
    }
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink else { return };
    let used = &function.macros[id];
    for (holder, call) in bench.releases_at(function.stmt(sink).span.start) {
        let title = || format!("release `{holder}` where `{}` leaves", used.name);
        for argument in &used.args {
            let text = function.text(*argument);
            if !is_pure(&text) || !is_steady(function, &text) {
                continue;
            }
            for condition in [format!("if ({})", opposite(&text)), format!("if ({text})")] {
                let code = Snippet::lines([condition, format!("\t{call}")]);
                let made = function.insert_before(sink, &code);
                all.add(made, |edits| Candidate::new(function, "release-before-macro-exit", title(), edits));
            }
        }
        // A macro that always leaves.
        let made = function.insert_before(sink, &code_of(&call));
        all.add(made, |edits| Candidate::new(function, "release-before-macro-exit", title(), edits));
    }
}

/// Has no `volatile` variable, whose value may be another one the second time.
pub fn is_steady(function: &FunctionSource, text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_volatile = |word: &str| {
        function.decls.iter().any(|decl| decl.name == word && decl.canonical_type.contains("volatile"))
            || function.names.top_level.get(word).is_some_and(|found| found.type_name.contains("volatile"))
    };
    !words.any(is_volatile)
}

/// Can be evaluated twice: no call, no assignment, no literal text.
pub fn is_pure(text: &str) -> bool {
    let plain = text.replace("==", " ").replace("!=", " ").replace("<=", " ").replace(">=", " ");
    let bytes = plain.as_bytes();
    let calls = bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'('
            && bytes[..at]
                .iter()
                .rev()
                .find(|b| !b.is_ascii_whitespace())
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    });
    !calls
        && !plain.contains('=')
        && !plain.contains("++")
        && !plain.contains("--")
        && !plain.contains('"')
        && !text.trim().is_empty()
}
