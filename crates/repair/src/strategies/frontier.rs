//! A release at other ways out of the block's life: jumps behind the allocation, ends of branches.

use caulk_source::{Snippet, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let Some(source) = target.source else { return };
    let from = function.stmt(source).span.end;
    for (id, stmt) in function.stmts.iter_ids() {
        if stmt.span.start < from || target.sink == Some(id) {
            continue;
        }
        let leaves = matches!(stmt.kind, StmtKind::Break | StmtKind::Continue | StmtKind::Goto { .. });
        let branch = match &stmt.kind {
            StmtKind::Compound { items }
                if stmt.parent.is_some_and(|parent| matches!(function.stmt(parent).kind, StmtKind::If { .. })) =>
            {
                items.last().copied().filter(|last| !bench.is_jump(*last))
            }
            _ => None,
        };
        if !leaves && branch.is_none() {
            continue;
        }
        let place = branch.map_or(stmt.span.start, |last| function.stmt(last).span.end);
        for (holder, call) in bench.releases_at(place).into_iter().take(2) {
            let title = format!("release `{holder}` where it is last known");
            if branch.is_some() && !function.file.mentions(stmt.span, root(&holder)) {
                continue;
            }
            let code = Snippet::line(call);
            let made =
                if branch.is_some() { function.insert_at_end(id, &code) } else { function.insert_before(id, &code) };
            all.add(made, |edits| Candidate::new(function, "release-before-exit", title, edits));
        }
    }
}
