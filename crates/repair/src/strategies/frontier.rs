//! A release at other ways out of the block's life: jumps behind the allocation, ends of branches.

use caulk_source::{Snippet, StmtId, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release::is_release;
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
            let with_owner = branch.is_some() && owner_goes(bench, id, &holder);
            all.add(made, |edits| {
                let candidate = Candidate::new(function, "release-before-exit", title, edits);
                if with_owner { candidate.overwriting() } else { candidate }
            });
        }
    }
}

/// The block hangs in a structure that is released behind the branch, with no way out in between: the structure's
/// pointer to it is not looked at any more.
fn owner_goes(bench: &Bench<'_>, branch: StmtId, holder: &str) -> bool {
    let function = &bench.target.function;
    let Some((owner, _)) = holder.rsplit_once("->") else { return false };
    let (Some(sink), Some(test)) = (bench.target.sink, function.stmt(branch).parent) else { return false };
    let beside = function.stmt(test).parent;
    let Some(StmtKind::Compound { items }) = beside.map(|block| &function.stmt(block).kind) else { return false };
    let place = |stmt: StmtId| items.iter().position(|item| *item == stmt);
    let (Some(from), Some(to)) = (place(test), place(sink)) else { return false };
    let releases = |call: &caulk_source::Call| {
        call.stmt == sink
            && call.args.len() == 1
            && function.text(call.args[0].span) == owner
            && is_release(function, bench.survey, call.span.start)
    };
    let jumps = |item: &StmtId| {
        let span = function.stmt(*item).span;
        let inside = function.stmts.iter_ids().filter(|(_, stmt)| span.covers(stmt.span));
        let mut inside = inside.map(|(id, stmt)| bench.is_jump(id) || matches!(stmt.kind, StmtKind::Label { .. }));
        inside.any(|leaves| leaves)
    };
    from < to && function.calls.iter().any(releases) && !items[from + 1..to].iter().any(jumps)
}
