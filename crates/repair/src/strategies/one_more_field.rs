//! The program's own destructor forgets a field: it is taught to release one more.
//!
//! ```c
//! static void item_free(struct item *i) {
//!     free(i->key);
//!     free(i->value);        // new
//!     free(i);
//! }
//! ```
//!
//! This is the one strategy that changes what callers see, on purpose. What it must not do is said in the proof:
//! at no call of the destructor, wherever it is, may the field hold what is not the structure's own.

use caulk_source::{CallId, FunctionSource, Snippet, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release::is_release;

/// Destructors that call destructors.
const DEPTH: u32 = 3;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink else { return };
    for call in function.calls_of(sink) {
        in_destructor(bench, all, &function.calls[call].callee, DEPTH);
    }
}

/// The destructor that it calls for the block is asked first: that is where the others release their fields.
fn in_destructor(bench: &Bench<'_>, all: &mut Proposals, callee: &str, depth: u32) {
    if depth == 0 || !bench.survey.destructors.contains(callee) {
        return;
    }
    let Some(body) = bench.workshop.function_named(callee, bench.patched) else { return };
    let Some((name, last)) = releases_itself(bench, &body) else { return };
    in_destructor(bench, all, &body.calls[last].callee, depth - 1);
    // A library's destructor has callers that nobody sees.
    let closed = (body.is_static || bench.survey.has_main()) && !bench.survey.addressed.contains(callee);
    if !closed || !body.in_main_file {
        return;
    }
    for field in fields(bench) {
        let member = format!("{name}->{field}");
        if body.releases_of(&member).is_empty() {
            let code = Snippet::line(format!("{}({member});", bench.target.finding.release));
            let made = body.insert_before(body.calls[last].stmt, &code);
            let title = format!("let `{callee}` release `{field}`, too");
            all.add(made, |edits| Candidate::new(&body, "one-more-field", title, edits).in_destructor());
        }
    }
}

/// The parameter that a destructor releases, and the call that does it.
fn releases_itself(bench: &Bench<'_>, body: &FunctionSource) -> Option<(String, CallId)> {
    let parameter = body.decls.iter().find(|decl| decl.kind == caulk_source::DeclKind::Parameter)?;
    let releases = body.releases_of(&parameter.name);
    let (_, call) = releases.into_iter().find(|(_, call)| {
        let call = &body.calls[*call];
        is_release(body, bench.survey, call.span.start) && matches!(body.stmt(call.stmt).kind, StmtKind::Expr)
    })?;
    Some((parameter.name.clone(), call))
}

/// Fields that the constructor, or the function itself, puts something into.
fn fields(bench: &Bench<'_>) -> Vec<String> {
    let function = &bench.target.function;
    let made = bench.target.source.into_iter().flat_map(|source| function.calls_of(source));
    let constructors =
        made.filter_map(|call| bench.workshop.function_named(&function.calls[call].callee, bench.patched));
    let mut found: Vec<String> = Vec::new();
    let mut collect = |from: &FunctionSource| {
        for assign in from.assigns.iter().filter(|assign| !assign.compound) {
            let left = from.text(assign.lhs);
            let Some((_, field)) = left.split_once("->") else { continue };
            let is_call = from.calls.iter().any(|call| assign.rhs.covers(call.span));
            let plain = field.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if is_call && plain && !found.iter().any(|known| known == field) {
                found.push(field.to_owned());
            }
        }
    };
    for constructor in constructors {
        collect(&constructor);
    }
    collect(function);
    found
}
