//! The release function of another family is replaced by the right one.

use caulk_source::Span;

use super::{Bench, Proposals};
use crate::change::Candidate;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let place = &target.finding.sink;
    let Some(id) = function.calls_at(place.line, place.column).into_iter().next() else { return };
    let call = &function.calls[id];
    let right = &target.finding.release;
    if !call.direct || call.args.len() != 1 || !call.result_ignored || !function.callable_at(right, call.span.start) {
        return;
    }
    let name = Span::new(call.span.start, call.span.start + call.callee.len());
    if function.text(name) != call.callee {
        return;
    }
    let made = function.replace_expr(name, right.clone());
    let title = format!("release {} by `{right}`", target.finding.object);
    all.add(made, |edits| Candidate::new(function, "right-release", title, edits));
}
