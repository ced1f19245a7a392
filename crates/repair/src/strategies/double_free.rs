//! Double frees: one release too many is deleted, or the pointer is set to NULL after the first.
//!
//! Only what releases and nothing else is ever deleted: other deallocators must still do what else they do.

use caulk_findings::{Place, StepKind};
use caulk_source::{CallId, EditSet, FunctionSource, Refusal, Slot, Snippet, StmtId, StmtKind};

use super::exits::is_pure;
use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release;
use crate::target::is_plain;

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
    for place in places.iter().rev() {
        with_call(bench, place, |function, stmt, call| {
            if !release::is_quiet(bench, &function.calls[call].callee) || function.stmt(stmt).depth == 0 {
                return;
            }
            let second = **place == finding.sink;
            let probe = if second { probe(function, stmt, call) } else { None };
            if second && probe.is_none() {
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
    for place in &places {
        if **place == finding.sink {
            continue;
        }
        with_call(bench, place, |function, stmt, call| {
            let mut values: Vec<String> =
                function.calls[call].args.iter().take(1).map(|arg| function.text(arg.span)).collect();
            if let Some(name) = &bench.target.name
                && function.name == bench.target.function.name
                && !values.contains(name)
            {
                values.push(name.clone());
            }
            for value in values.iter().filter(|value| is_plain(value) && only_released_behind(function, stmt, value)) {
                let title = format!("set `{value}` to NULL after its release");
                let made = function.set_null_after(stmt, value);
                all.add(made, |edits| Candidate::new(function, "set-to-null", title, edits).without_release());
            }
        });
    }
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

/// Something leaks behind the release wherever it is reached with a pointer that is neither null nor released
/// already: paths end at a double free. Where nothing leaks, the release does nothing that is right.
fn probe(function: &FunctionSource, stmt: StmtId, call: CallId) -> Option<(String, EditSet)> {
    let name = function.fresh_name("caulk_probe");
    let value = function.calls[call].args.first().map(|arg| function.text(arg.span)).filter(|value| is_plain(value));
    let pointer = |value: &String| {
        let decl = function.variable_at(value, function.stmt(stmt).span.start)?;
        function.decls[decl].canonical_type.contains('*').then(|| format!("if ({value}) "))
    };
    let test = value.as_ref().and_then(pointer).unwrap_or_default();
    let code = format!("{test}{{ char *{name} = __builtin_malloc(1); *{name} = 0; }}");
    Some((name, function.insert_after(stmt, &Snippet::line(code)).ok()?))
}

/// The call statement at a place, in whichever function it is.
fn with_call(bench: &Bench<'_>, place: &Place, then: impl FnOnce(&FunctionSource, StmtId, CallId)) {
    let other;
    let function = if place.function == bench.target.function.name {
        &bench.target.function
    } else {
        match bench.workshop.function_at(&place.file, place.line, bench.patched) {
            Ok(found) => {
                other = found;
                &other
            }
            Err(_) => return,
        }
    };
    if !function.in_main_file {
        return;
    }
    let Some(call) = function.calls_at(place.line, place.column).into_iter().next() else { return };
    let stmt = function.calls[call].stmt;
    if matches!(function.stmt(stmt).kind, StmtKind::Expr) && function.calls[call].result_ignored {
        then(function, stmt, call);
    }
}

/// Behind the release, a local variable is only released or assigned again: nobody looks whether it is NULL.
fn only_released_behind(function: &FunctionSource, stmt: StmtId, value: &str) -> bool {
    let from = function.stmt(stmt).span.end;
    function.refs.iter().filter(|used| used.span.start > from && function.text(used.span) == value).all(|used| {
        let assigned = function.assigns.iter().any(|assign| assign.lhs == used.span);
        let passed =
            function.calls.iter().any(|call| call.result_ignored && call.args.iter().any(|arg| arg.span == used.span));
        assigned || passed
    })
}
