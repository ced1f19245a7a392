//! Double frees: one release too many is deleted, or the pointer is set to NULL after the first.
//!
//! Only what releases and nothing else is ever deleted: other deallocators must still do what else they do.

use caulk_analysis::RIGHT;
use caulk_findings::{Place, StepKind};
use caulk_source::{
    Call, CallId, DeclKind, EditSet, FunctionSource, Refusal, Slot, Snippet, Span, StmtId, StmtKind, Token,
};

use super::exits::is_pure;
use super::{Bench, Proposals, is_straight, nulling, with_call};
use crate::change::Candidate;
use crate::release;
use crate::takes;
use crate::target::{is_plain, root};

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let finding = bench.target.finding;
    let mut places: Vec<&Place> = Vec::new();
    for step in finding.steps.iter().filter(|step| step.kind == StepKind::Release && step.depth == 0) {
        if !places.contains(&&step.place) {
            places.push(&step.place);
        }
    }
    if !places.contains(&&finding.sink) {
        places.push(&finding.sink);
    }
    straight(bench, all, &places);
    for place in places.iter().rev() {
        with_call(bench, place, |function, stmt, call| {
            if !release::is_quiet(bench, &function.calls[call].callee) || function.stmt(stmt).depth == 0 {
                return;
            }
            // A release that only may have happened before is no reason to take this one away.
            let value = function.calls[call].args.first().map(|arg| function.text(arg.span)).unwrap_or_default();
            if takes::perhaps(bench.survey, function, &value) {
                return;
            }
            let second = **place == finding.sink;
            if second && places.iter().any(|first| is_elsewhere(function, first, stmt)) {
                return;
            }
            // On the ways on which it is set anew in between, the first release is the only one that its old block has.
            let first = &function.calls[call];
            if !second
                && function
                    .calls_at(finding.sink.line, finding.sink.column)
                    .first()
                    .is_none_or(|&last| is_set_between(bench, function, first, &function.calls[last], &value))
            {
                return;
            }
            let probe = if second { probe(function, stmt, call) } else { first_probe(bench, function, stmt, call) };
            if probe.is_none() {
                return;
            }
            let which = if second { "second" } else { "first" };
            let title = format!("delete the {which} release of {}", finding.object);
            all.add(delete(function, stmt), |edits| {
                let candidate = Candidate::new(function, "delete-release", title, edits).without_release();
                Candidate { probe, ..candidate }
            });
        });
    }
    let earlier: Vec<&Place> = places.into_iter().filter(|place| **place != finding.sink).collect();
    nulling::propose(bench, all, &earlier);
}

/// May what is released be set anew between two releases, by an assignment or by somebody who is called? Where the second
/// stands before the first, a loop leads there, and all that is not between them lies on its way.
fn is_set_between(bench: &Bench<'_>, function: &FunctionSource, first: &Call, second: &Call, value: &str) -> bool {
    let between = |span: Span| match first.span.end <= second.span.start {
        true => span.start >= first.span.end && span.end <= second.span.start,
        false => span.start >= first.span.end || span.end <= second.span.start,
    };
    let found_by_others = !is_own_variable(function, value, first.span.start);
    let last = |place: &str| place.rsplit(['.', '>']).next().map(str::to_owned);
    let sets = |lhs: Span| {
        let place = function.text(lhs);
        let by_another_name = || place.starts_with('*') || place.ends_with(']') || last(&place) == last(value);
        value.starts_with(place.as_str()) || found_by_others && by_another_name()
    };
    let assigned = function.assigns.iter().any(|assign| between(assign.span) && sets(assign.lhs));
    let may_set = |call: &Call| {
        call.args.iter().any(|arg| function.text(arg.span).starts_with('&'))
            || found_by_others && !leaves_alone(bench, function, call, value)
    };
    assigned || function.calls.iter().any(|call| between(call.span) && may_set(call))
}

/// A variable of the function whose address nobody has asked for.
fn is_own_variable(function: &FunctionSource, value: &str, at: usize) -> bool {
    let own = |decl| matches!(function.decls[decl].kind, DeclKind::Local | DeclKind::Parameter);
    let name = value.as_bytes();
    let tokens = function.file.tokens_in(function.span);
    let asked = |pair: &[Token]| pair[0].is(b'&') && function.file.slice(pair[1].span) == name;
    value == root(value) && function.variable_at(value, at).is_some_and(own) && !tokens.windows(2).any(asked)
}

/// Whoever is called writes no pointer, or, of a library, has nothing that leads to the value.
fn leaves_alone(bench: &Bench<'_>, function: &FunctionSource, call: &Call, value: &str) -> bool {
    let survey = bench.survey;
    let leads_there = |arg: &caulk_source::Argument| {
        let text = function.text(arg.span);
        function.file.mentions(arg.span, root(value)) || survey.functions.contains(&text)
    };
    match survey.functions.contains(&call.callee) {
        true => call.direct && survey.calm.contains(&call.callee),
        false => call.direct && (call.callee == bench.target.finding.release || !call.args.iter().any(leads_there)),
    }
}

/// `free(p); …; free(p);` with no way in or out in between: the second does nothing that is right, whatever came
/// before.
fn straight(bench: &Bench<'_>, all: &mut Proposals, places: &[&Place]) {
    let (function, finding) = (&bench.target.function, bench.target.finding);
    let call_at = |place: &Place| {
        let call = function.calls_at(place.line, place.column).into_iter().next()?;
        (place.function == function.name && function.calls[call].result_ignored).then_some(&function.calls[call])
    };
    let Some(second) = call_at(&finding.sink).filter(|call| release::is_quiet(bench, &call.callee)) else { return };
    let Some(value) = second.args.first().map(|arg| function.text(arg.span)).filter(|value| is_plain(value)) else {
        return;
    };
    for first in places.iter().filter_map(|place| call_at(place)) {
        if is_straight(bench, first.stmt, second.stmt)
            && takes::surely(bench.survey, function, first, &value, &finding.release)
            && !is_set_between(bench, function, first, second, &value)
        {
            let title = format!("delete the second release of {}", finding.object);
            all.add(delete(function, second.stmt), |edits| {
                Candidate::new(function, "delete-release", title, edits).without_release()
            });
        }
    }
}

/// The first release stands in a branch that the second is not in: there are ways to the second without it.
fn is_elsewhere(function: &FunctionSource, first: &Place, second: StmtId) -> bool {
    let Some(call) = function.calls_at(first.line, first.column).into_iter().next() else { return false };
    let (first, here) = (function.calls[call].stmt, function.stmt(second).span);
    let leaves = |at: &StmtId| {
        let branches = matches!(function.stmt(*at).kind, StmtKind::If { .. } | StmtKind::Switch { .. });
        branches && !function.stmt(*at).span.covers(here)
    };
    function.ancestors(first).any(|at| leaves(&at))
}

/// Deletes a statement together with the `if`s that it would leave without a body.
fn delete(function: &FunctionSource, stmt: StmtId) -> Result<EditSet, Refusal> {
    let here = function.stmt(stmt);
    let alone = here.parent.filter(|parent| match &function.stmt(*parent).kind {
        StmtKind::Compound { items } => items.len() == 1 && function.stmt(*parent).slot == Slot::Then,
        StmtKind::If { .. } => true,
        _ => false,
    });
    let Some(parent) = alone else { return function.delete_stmt(stmt) };
    match &function.stmt(parent).kind {
        StmtKind::Compound { .. } => delete(function, parent),
        StmtKind::If { cond, otherwise: None, .. } if is_pure(&function.text(*cond)) => delete(function, parent),
        _ => Err(Refusal::Shape("the release is all that a branch does")),
    }
}

/// A block is allocated in the place of the first release and released with the second: it leaks if there is a way
/// from the one that does not come to the other.
fn first_probe(bench: &Bench<'_>, function: &FunctionSource, first: StmtId, call: CallId) -> Option<(String, EditSet)> {
    let second = bench.target.sink?;
    let value = function.calls[call].args.first().map(|arg| function.text(arg.span))?;
    let behind = function.stmt(first).span.end;
    let changed = |assign: &caulk_source::Assign| {
        assign.span.start > behind && value.starts_with(function.text(assign.lhs).as_str())
    };
    if function.name != bench.target.function.name || function.assigns.iter().any(changed) {
        return None;
    }
    let name = function.fresh_name("caulk_probe");
    let mut edits = function.declare_in(function.body, &format!("char *{name} = 0;")).ok()?;
    edits.merge(&function.replace_stmt(first, &Snippet::line(format!("{name} = __builtin_malloc(1);"))).ok()?);
    edits.merge(&function.insert_after(second, &Snippet::line(format!("__builtin_free({name});"))).ok()?);
    Some((name, edits))
}

/// Something leaks behind the release wherever it is reached with a pointer that is neither null nor released
/// already. Where nothing leaks, the release does nothing that is right.
fn probe(function: &FunctionSource, stmt: StmtId, call: CallId) -> Option<(String, EditSet)> {
    let name = function.fresh_name("caulk_probe");
    let value = function.calls[call].args.first().map(|arg| function.text(arg.span)).filter(|value| is_plain(value));
    let pointer = |value: &String| {
        let decl = function.variable_at(value, function.stmt(stmt).span.start)?;
        function.decls[decl].canonical_type.contains('*').then(|| format!("if ({value}) "))
    };
    let test = value.as_ref().and_then(pointer).unwrap_or_default();
    let leak = format!("{test}{{ char *{name} = __builtin_malloc(1); *{name} = 0; }}");
    let code = format!("{{ extern void {RIGHT}(void); {RIGHT}(); {leak} }}");
    Some((name, function.insert_after(stmt, &Snippet::line(code)).ok()?))
}
