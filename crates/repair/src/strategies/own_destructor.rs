//! The owner is released by `free`, and what it owns is lost with it: the program's own destructor releases both.
//!
//! ```c
//! free(key);      ──►      key_free(key);
//! ```

use caulk_source::{Span, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release::{destructors, is_deallocator, is_release};
use crate::target::is_plain;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink.filter(|sink| matches!(function.stmt(*sink).kind, StmtKind::Expr)) else {
        return;
    };
    for call in function.calls_of(sink).map(|id| &function.calls[id]) {
        let [argument] = &call.args[..] else { continue };
        let owner = function.text(argument.span);
        if !call.direct || !is_plain(&owner) || !is_release(function, bench.survey, call.span.start) {
            continue;
        }
        let name = Span::new(call.span.start, call.span.start + call.callee.len());
        if function.text(name) != call.callee {
            continue;
        }
        for destructor in destructors(function, bench.survey, &owner, call.span.start) {
            if destructor == call.callee || !is_deallocator(bench, &destructor) {
                continue;
            }
            let made = function.replace_expr(name, destructor.clone());
            let title = format!("release `{owner}` by `{destructor}`, together with what it owns");
            all.add(made, |edits| Candidate::new(function, "own-destructor", title, edits));
        }
    }
}
