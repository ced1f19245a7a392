//! Descriptors that are closed twice: under two names for one, or once more where closing failed.
//!
//! ```c
//! close(in);                          close(in);
//! close(out);                 ──►     if (out != in)
//!                                         close(out);
//!
//! if (close(fd) == -1)                if (close(fd) == -1) {
//!     goto fail;              ──►         fd = -1;
//! …                                       goto fail;
//! fail:                               }
//!     if (fd != -1)
//!         close(fd);
//!
//! if (put(fd) < 0 ||                  if (put(fd) < 0 ||
//!     close(fd) != 0) {       ──►         (close(fd) != 0 && (fd = -1))) {
//!     close(fd);                          if (fd != -1)
//!                                             close(fd);
//! ```
//!
//! # Invariants
//! - What was closed is closed as before, once: numbers may be compared, and `close(-1)` does nothing.

use caulk_findings::{Place, StepKind};
use caulk_source::{Call, DeclKind, EditSet, FunctionSource, Snippet, StmtId, StmtKind};

use super::{Bench, Proposals, alternatives, is_straight, replace};
use crate::change::Candidate;
use crate::target::{is_plain, root};

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let (function, finding) = (&bench.target.function, bench.target.finding);
    if finding.release != "close" {
        return;
    }
    let call_at = |place: &Place| {
        let mut calls = function.calls_at(place.line, place.column).into_iter().map(|id| &function.calls[id]);
        calls.find(|call| place.function == function.name && call.callee == "close" && call.args.len() == 1)
    };
    let releases = finding.steps.iter().filter(|step| step.kind == StepKind::Release && step.depth == 0);
    for first in releases.filter(|step| step.place != finding.sink).filter_map(|step| call_at(&step.place)) {
        if let Some(second) = call_at(&finding.sink) {
            under_two_names(bench, all, first, second);
        }
        where_it_failed(bench, all, first);
    }
}

fn under_two_names(bench: &Bench<'_>, all: &mut Proposals, first: &Call, second: &Call) {
    let function = &bench.target.function;
    let (one, other) = (function.text(first.args[0].span), function.text(second.args[0].span));
    let plain = is_plain(&one) && is_plain(&other) && one != other;
    let between = |start: usize| start >= first.span.end && start < second.span.start;
    let names = [root(&one), root(&other)];
    let changed = function
        .assigns
        .iter()
        .any(|assign| between(assign.span.start) && names.iter().any(|name| function.file.mentions(assign.lhs, name)));
    let given = function.calls.iter().any(|call| between(call.span.start) && call.callee != "close");
    if !plain || changed || given || !second.result_ignored || !is_straight(bench, first.stmt, second.stmt) {
        return;
    }
    let statement = function.text(function.stmt(second.stmt).core);
    let code = Snippet::lines([format!("if ({other} != {one})"), format!("\t{statement};")]);
    let from = function.file.position_of(second.span.start);
    let title = format!("close `{other}` unless it is `{one}`, which is closed already");
    // Of two calls that follow each other in every configuration, the second may not close what the first has closed.
    let together = !function.file.regions.directive_between(first.span.start, second.span.end);
    all.add(replace(function, second.stmt, &code), |edits| {
        let candidate = Candidate::new(function, "close-once", title, edits);
        let candidate = candidate.moving(from).without_release();
        if together { candidate.everywhere() } else { candidate }
    });
}

/// On Linux, the descriptor is gone whatever `close` returns.
fn where_it_failed(bench: &Bench<'_>, all: &mut Proposals, first: &Call) {
    let function = &bench.target.function;
    let name = function.text(first.args[0].span);
    let StmtKind::If { cond, then, .. } = function.stmt(first.stmt).kind else { return };
    let text = function.text(cond);
    let tests = [" == -1", " != 0", " < 0", " == EOF", ""].map(|test| format!("{}{test}", function.text(first.span)));
    let local = |decl: caulk_source::DeclId| function.decls[decl].kind == DeclKind::Local;
    if name != root(&name) || !function.variable_at(&name, cond.start).is_some_and(local) {
        return;
    }
    if !tests.contains(&text) {
        let last = alternatives(&text).last().map_or("", |last| last.trim());
        if tests.iter().any(|test| test == last) && first.span.start + last.len() == cond.end {
            as_one_of_several(bench, all, first, (cond.end, then));
        }
        return;
    }
    let jump = match &function.stmt(then).kind {
        StmtKind::Compound { items } => items.last().copied(),
        _ => Some(then),
    };
    let Some(jump) = jump.filter(|jump| leads_to_close(function, *jump, &name)) else { return };
    let title = format!("forget `{name}` where closing it failed: it is gone all the same");
    let made: Result<EditSet, _> = function.insert_before(jump, &Snippet::line(format!("{name} = -1;")));
    all.add(made, |edits| Candidate::new(function, "close-once", title, edits).without_release());
}

/// `if (write_all(fd) < 0 || close(fd) != 0) { …close(fd);… return -1; }`: only the test itself knows which of them failed.
fn as_one_of_several(bench: &Bench<'_>, all: &mut Proposals, first: &Call, (end, then): (usize, StmtId)) {
    let function = &bench.target.function;
    let name = function.text(first.args[0].span);
    let StmtKind::Compound { items } = &function.stmt(then).kind else { return };
    let Some(last) = items.last().copied() else { return };
    let left = match function.stmt(last).kind {
        StmtKind::Return { .. } => true,
        _ => leads_to_close(function, last, &name),
    };
    let inside = function.stmt(then).span;
    if !left || !is_only_closed(function, &name, |at| inside.contains(at)) {
        return;
    }
    let closes = |call: &&Call| inside.covers(call.span) && call.callee == "close" && call.result_ignored;
    let [second] = function.calls.iter().filter(closes).collect::<Vec<_>>()[..] else { return };
    let statement = function.text(function.stmt(second.stmt).core);
    let code = Snippet::lines([format!("if ({name} != -1)"), format!("\t{statement};")]);
    let from = function.file.position_of(second.span.start);
    let made = function.check_stmt(first.stmt).and_then(|()| {
        let mut edits = replace(function, second.stmt, &code)?;
        edits.insert(first.span.start, "(");
        edits.insert(end, format!(" && ({name} = -1))"));
        Ok(edits)
    });
    let title = format!("forget `{name}` where closing it failed: it is gone all the same");
    all.add(made, |edits| Candidate::new(function, "close-once", title, edits).moving(from).without_release());
}

/// Behind the label that a `goto` leads to, the descriptor is tested or closed, and nothing else.
fn leads_to_close(function: &FunctionSource, jump: StmtId, name: &str) -> bool {
    let StmtKind::Goto { label } = &function.stmt(jump).kind else { return false };
    let Some((target, _)) = function.labels().find(|(_, name)| name == label) else { return false };
    let from = function.stmt(target).span.start;
    from > function.stmt(jump).span.start && is_only_closed(function, name, |at| at >= from)
}

/// Whether all that is done with a descriptor in some part of the function is to test whether it is one, and to close it.
fn is_only_closed(function: &FunctionSource, name: &str, part: impl Fn(usize) -> bool) -> bool {
    let closed = |span: caulk_source::Span| {
        function.calls.iter().any(|call| {
            call.callee == "close" && call.result_ignored && call.args.first().is_some_and(|arg| arg.span == span)
        })
    };
    let tested = |span: caulk_source::Span| {
        function.stmts.iter().any(|stmt| match stmt.kind {
            StmtKind::If { cond, .. } => {
                let text = function.text(cond);
                cond.covers(span) && [" != -1", " >= 0", " > -1"].iter().any(|test| text == format!("{name}{test}"))
            }
            _ => false,
        })
    };
    let used = function.refs.iter().filter(|used| part(used.span.start) && function.text(used.span) == name);
    used.map(|used| used.span).all(|span| closed(span) || tested(span))
}
