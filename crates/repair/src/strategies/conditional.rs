//! A release under the condition that the callee did not take the block: `if (put(b, copy) < 0) free(copy);`

use caulk_source::{Call, CallId, Placement, Snippet, StmtKind};

use super::{Bench, Proposals};
use crate::change::{CONDITIONAL, Candidate};

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    for holder in bench.target.holders() {
        for (id, call) in function.calls.iter_ids() {
            let given = |at: &usize| function.text(call.args[*at].span) == holder;
            let takes_it = (0..call.args.len()).filter(given).any(|at| !bench.survey.only_looks(call, at));
            if takes_it && bench.target.reaches(&holder, call.span.start) {
                tested(bench, all, id, call, &holder);
            }
        }
    }
}

/// What a result may say when the callee failed.
pub fn conditions(result_type: &str) -> &'static [(&'static str, &'static str)] {
    if result_type.contains('*') || result_type == "_Bool" || result_type == "bool" {
        &[("!", "")]
    } else {
        &[("", " < 0"), ("", " != 0"), ("!", "")]
    }
}

fn tested(bench: &Bench<'_>, all: &mut Proposals, id: CallId, call: &Call, holder: &str) {
    let function = &bench.target.function;
    let stmt = call.stmt;
    let calls = bench.releases_at(function.stmt(stmt).span.start);
    for (_, release) in calls.into_iter().filter(|entry| entry.0 == holder) {
        let title = || format!("release `{holder}` when `{}` did not take it", call.callee);
        for (prefix, suffix) in conditions(&call.result_type) {
            let body = Snippet::line(release.clone());
            if call.result_ignored {
                let made = function.test_ignored_result(id, prefix, suffix, &body);
                all.add(made, |edits| Candidate::new(function, CONDITIONAL, title(), edits));
            } else if matches!(function.stmt(stmt).kind, StmtKind::Return { .. }) {
                let name = function.fresh_name("result");
                let code = Snippet::lines([format!("if ({prefix}{name}{suffix})"), format!("\t{release}")]);
                let made = function.return_through_temp(stmt, &name, &code, Placement::Auto);
                all.add(made, |edits| Candidate::new(function, CONDITIONAL, title(), edits));
            }
        }
    }
}
