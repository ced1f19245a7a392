//! `return X;` becomes a jump to the cleanup label that already releases the block.

use caulk_source::StmtKind;

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release::is_release;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink else { return };
    let StmtKind::Return { value } = function.stmt(sink).kind else { return };
    for label in function.cleanup_labels() {
        if label.jumps.is_empty() || label.stmts.contains(&sink) || !only_releases(bench, &label.stmts) {
            continue;
        }
        let result = label.ends_in.map(|stmt| match function.stmt(stmt).kind {
            StmtKind::Return { value } => value.map(|value| function.text(value)),
            _ => None,
        });
        let (variable, same) = match (result, value) {
            (Some(Some(text)), Some(value)) => {
                let same = text == function.text(value);
                let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                    && text.starts_with(|c: char| !c.is_ascii_digit());
                if !same && (!is_name || function.variable_at(&text, function.stmt(sink).span.start).is_none()) {
                    continue;
                }
                (text, same)
            }
            (Some(None) | None, None) => (String::new(), true),
            _ => continue,
        };
        let made = if same {
            function.replace_stmt(sink, &caulk_source::Snippet::line(format!("goto {};", label.name)))
        } else {
            function.return_to_goto(sink, &variable, &label.name)
        };
        let title =
            format!("leave through the cleanup label `{}`, which releases {}", label.name, bench.target.finding.object);
        all.add(made, |edits| Candidate::new(function, "cleanup-label", title, edits).without_release());
    }
}

/// Nothing happens behind the label but releases and the return: jumping there does nothing else.
fn only_releases(bench: &Bench<'_>, stmts: &[caulk_source::StmtId]) -> bool {
    let function = &bench.target.function;
    stmts.iter().all(|id| {
        let stmt = function.stmt(*id);
        let covered = function.calls.iter().filter(|call| stmt.span.covers(call.span));
        let released = covered.clone().count() > 0
            && covered.clone().all(|call| is_release(function, bench.survey, call.span.start));
        let assigns = function.assigns.iter().any(|assign| stmt.span.covers(assign.span));
        match stmt.kind {
            StmtKind::Return { .. } => covered.count() == 0,
            StmtKind::Expr | StmtKind::If { .. } | StmtKind::Label { .. } => released && !assigns,
            StmtKind::Null => true,
            _ => false,
        }
    })
}
