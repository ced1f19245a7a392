//! A release at other ways out of the block's life: jumps behind the allocation, ends of branches.

use caulk_findings::StepKind;
use caulk_source::{Span, Stmt, StmtId, StmtKind};

use super::exits::what;
use super::{Bench, Proposals, code_of};
use crate::change::{Candidate, LAST_KNOWN};
use crate::release::is_release;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let Some(source) = target.source else { return };
    // The call may stand in the condition of what holds the way out.
    let place = &target.finding.source;
    let written = function.file.offset_of(place.line, place.column.max(1)).filter(|_| place.column > 0);
    let from = written.unwrap_or(function.stmt(source).span.end);
    let mut ways: Vec<(StmtId, &Stmt)> = function.stmts.iter_ids().collect();
    ways.sort_by_key(|(id, _)| place_on_path(bench, *id).unwrap_or(usize::MAX));
    for (id, stmt) in ways {
        if stmt.span.start < from || target.sink == Some(id) {
            continue;
        }
        let leaves = matches!(stmt.kind, StmtKind::Break | StmtKind::Continue | StmtKind::Goto { .. });
        let in_if = stmt.parent.is_some_and(|parent| matches!(function.stmt(parent).kind, StmtKind::If { .. }));
        let branch = match &stmt.kind {
            StmtKind::Compound { items } if in_if => items.last().copied().filter(|last| !bench.is_jump(*last)),
            StmtKind::Expr if in_if => Some(id),
            _ => None,
        };
        if !leaves && branch.is_none() {
            continue;
        }
        let place = branch.map_or(stmt.span.start, |last| function.stmt(last).span.end);
        for (holder, call) in bench.releases_at(place).into_iter().take(2) {
            let title = match branch {
                Some(_) => format!("release `{holder}` where it is last known"),
                None => format!("release `{holder}` before the {}", what(&stmt.kind)),
            };
            let near = stmt.parent.map_or(stmt.span, |parent| function.stmt(parent).span);
            let concerned = || function.file.mentions(near, root(&holder)) || asks_taker(bench, id, &holder);
            if branch.is_some() && !concerned() || is_null_here(bench, id, &holder) {
                continue;
            }
            if branch.is_some() && holder == root(&holder) && bench.is_used_behind(id, &holder) {
                continue;
            }
            let code = if branch.is_none() { bench.code_before(id, &holder, &call) } else { code_of(&call) };
            let made = match branch {
                Some(alone) if alone == id => function.insert_after(id, &code),
                Some(_) => function.insert_at_end(id, &code),
                None => function.insert_before(id, &code),
            };
            let with_owner = branch.is_some() && owner_goes(bench, id, &holder);
            all.add(made, |edits| {
                let candidate = Candidate::new(function, LAST_KNOWN, title, edits).calling(&call);
                if with_owner { candidate.overwriting() } else { candidate }
            });
        }
    }
}

/// How late on the finding's path the test is asked that a jump stands under, counted from the end.
fn place_on_path(bench: &Bench<'_>, id: StmtId) -> Option<usize> {
    let function = &bench.target.function;
    let steps = bench.target.finding.steps.iter().rev();
    let mut branches = steps.filter(|step| step.kind == StepKind::Branch && step.depth == 0);
    let test = function.ancestors(id).find_map(|at| match function.stmt(at).kind {
        StmtKind::If { cond, .. } => Some(cond),
        _ => None,
    });
    let lines = test.map(|cond| function.file.line_of(cond.start)..=function.file.line_of(cond.end))?;
    bench.is_jump(id).then(|| branches.position(|step| lines.contains(&step.place.line)))?
}

/// The branch of a test how a call went that was given the block: `r = pair(a, b); if (r == NULL) free(a);`
fn asks_taker(bench: &Bench<'_>, branch: StmtId, holder: &str) -> bool {
    let function = &bench.target.function;
    let Some(StmtKind::If { cond, .. }) = function.stmt(branch).parent.map(|parent| &function.stmt(parent).kind) else {
        return false;
    };
    let given = |value: Span| {
        let mut calls = function.calls.iter().filter(|call| value.covers(call.span));
        calls.any(|call| call.args.iter().any(|arg| function.text(arg.span) == holder))
    };
    let told = |name: &str| function.file.mentions(*cond, name);
    function.assigns.iter().any(|assign| given(assign.rhs) && told(root(&function.text(assign.lhs))))
        || function.decls.iter().any(|decl| decl.init.is_some_and(given) && told(&decl.name))
}

/// Under a test that the pointer is null.
pub fn is_null_here(bench: &Bench<'_>, stmt: StmtId, holder: &str) -> bool {
    let function = &bench.target.function;
    let nulls =
        [format!("{holder} == NULL"), format!("!{holder}"), format!("NULL == {holder}"), format!("{holder} < 0")];
    function.ancestors(stmt).any(|at| match function.stmt(at).kind {
        StmtKind::If { cond, then, .. } => {
            let text = function.text(cond);
            let inside = function.stmt(then).span.covers(function.stmt(stmt).span);
            inside && nulls.iter().any(|null| says(&text, null)) && !text.contains("||")
        }
        _ => false,
    })
}

/// Whether a test is there word by word: `!f` is no part of `!fgets(…)`, nor of `!f->next`.
fn says(text: &str, test: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '[' | '(');
    text.match_indices(test).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + test.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '>'))
            && !behind.is_some_and(goes_on)
    })
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
