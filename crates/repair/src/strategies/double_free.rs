//! Double frees: one release too many is deleted, or the pointer is set to NULL after the first.
//!
//! Only what releases and nothing else is ever deleted: other deallocators must still do what else they do.

use caulk_findings::{Place, StepKind};
use caulk_source::{CallId, FunctionSource, StmtId, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release;
use crate::target::is_plain;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let finding = bench.target.finding;
    let mut places: Vec<&Place> = Vec::new();
    for step in finding.steps.iter().filter(|step| step.kind == StepKind::Release) {
        if !places.contains(&&step.place) {
            places.push(&step.place);
        }
    }
    if !places.contains(&&finding.sink) {
        places.push(&finding.sink);
    }
    for place in places.iter().rev() {
        with_call(bench, place, |function, stmt, call| {
            if release::is_quiet(bench, &function.calls[call].callee) && function.stmt(stmt).depth > 0 {
                let title = format!("delete the second release of {}", finding.object);
                let made = function.delete_stmt(stmt);
                all.add(made, |edits| Candidate::new(function, "delete-release", title, edits).without_release());
            }
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
