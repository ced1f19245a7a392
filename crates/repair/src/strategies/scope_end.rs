//! A release where the block's scope ends: the end of a function, of a loop's body, of the block that declares it,
//! or after the last statement that mentions it.

use caulk_source::{DeclKind, FunctionSource, Snippet, StmtId, StmtKind};

use super::{Bench, Proposals, code_of};
use crate::change::Candidate;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let mut blocks: Vec<StmtId> = Vec::new();
    if let Some(source) = target.source {
        for at in function.ancestors(source) {
            if let StmtKind::For { body } | StmtKind::While { body, .. } | StmtKind::Do { body, .. } =
                function.stmt(at).kind
            {
                blocks.push(body);
            }
        }
    }
    if target.sink_is_end() {
        blocks.insert(0, function.body);
    }
    for holder in target.holders() {
        let decl = target.source.and_then(|source| function.variable_at(root(&holder), function.stmt(source).span.end));
        if let Some(stmt) = decl.and_then(|decl| function.decls[decl].stmt) {
            blocks.push(function.enclosing_block(stmt));
        }
    }
    let mut seen = Vec::new();
    blocks.retain(|block| {
        !seen.contains(block) && {
            seen.push(*block);
            true
        }
    });
    if let Some(block) = target.source.map(|source| function.enclosing_block(source)).filter(|at| !seen.contains(at)) {
        forget_in_branch(bench, all, block);
    }
    for block in blocks {
        end_of(bench, all, block);
    }
    for block in &seen {
        after_last_mention(bench, all, *block);
    }
}

/// The block is made and used up in one branch of a loop's body, by a variable that other branches use and release.
fn forget_in_branch(bench: &Bench<'_>, all: &mut Proposals, branch: StmtId) {
    let function = &bench.target.function;
    let StmtKind::Compound { items } = &function.stmt(branch).kind else { return };
    let is_loop = |at: &StmtId| {
        matches!(function.stmt(*at).kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. })
    };
    let Some(around) = function.ancestors(branch).find(is_loop).map(|at| function.stmt(at).span) else { return };
    let Some(source) = bench.target.source else { return };
    for holder in bench.target.holders() {
        let at = function.stmt(source).span.end;
        let Some(decl) = function.variable_at(&holder, at) else { continue };
        let known = &function.decls[decl];
        let lives_on = known.kind == DeclKind::Local && !around.contains(known.span.start);
        // Who uses it in this branch alone sets it anew before that, or the proof finds out.
        let inside = function.stmt(branch).span;
        let is_own = function.refs.iter().all(|used| used.decl != decl || inside.covers(used.span));
        let mentions = |item: &&StmtId| function.file.mentions(function.stmt(**item).span, root(&holder));
        let Some(last) = items.iter().rev().find(mentions).filter(|_| lives_on) else { continue };
        if bench.is_jump(*last) || matches!(function.stmt(*last).kind, StmtKind::Label { .. } | StmtKind::Case { .. }) {
            continue;
        }
        let place = function.stmt(*last).span.end;
        let none = if bench.target.finding.release == "close" { "-1" } else { "NULL" };
        // What looks at the result of the last use is better off before the release.
        let next = items.iter().position(|item| item == last).and_then(|at| items.get(at + 1));
        let test = next.filter(|next| matches!(function.stmt(**next).kind, StmtKind::If { otherwise: None, .. }));
        for (_, call) in bench.releases_at(place).into_iter().filter(|entry| entry.0 == holder) {
            let code = Snippet::lines(call.split('\n').map(str::to_owned).chain([format!("{holder} = {none};")]));
            for behind in [Some(last), test].into_iter().flatten() {
                if is_own {
                    let made = function.insert_after(*behind, &code_of(&call));
                    let title = format!("release `{holder}` after its last use");
                    all.add(made, |edits| Candidate::new(function, "release-after-last-use", title, edits));
                }
                let made = function.insert_after(*behind, &code);
                let title = format!("release `{holder}` after its last use, and forget it");
                all.add(made, |edits| Candidate::new(function, "release-and-forget", title, edits));
            }
        }
    }
}

fn end_of(bench: &Bench<'_>, all: &mut Proposals, block: StmtId) {
    let function = &bench.target.function;
    let StmtKind::Compound { items } = &function.stmt(block).kind else { return };
    let Some(last) = items.last() else { return };
    let place = function.stmt(*last).span.end;
    for (holder, call) in bench.releases_at(place) {
        let code = code_of(&call);
        let made = if bench.is_jump(*last) {
            function.insert_before(*last, &code)
        } else {
            function.insert_at_end(block, &code)
        };
        let title = format!("release `{holder}` at the end of its block");
        all.add(made, |edits| Candidate::new(function, "release-at-scope-end", title, edits));
        if !bench.is_jump(*last) && outlives_round(function, block, &holder) {
            let none = if bench.target.finding.release == "close" { "-1" } else { "NULL" };
            let code = Snippet::lines([call, format!("{holder} = {none};")]);
            let title = format!("release `{holder}` at the end of each round, and forget it");
            let made = function.insert_at_end(block, &code);
            all.add(made, |edits| Candidate::new(function, "release-and-forget", title, edits));
        }
    }
}

/// The body of a loop, around which the variable lives on: somebody may release it behind the loop.
fn outlives_round(function: &FunctionSource, body: StmtId, holder: &str) -> bool {
    let around = function.stmt(body).parent.map(|parent| &function.stmt(parent).kind);
    let is_body = matches!(around, Some(StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. }));
    let inside = function.stmt(body).span;
    let decl = function.variable_at(holder, inside.start).map(|decl| &function.decls[decl]);
    is_body && decl.is_some_and(|decl| decl.kind == DeclKind::Local && !inside.contains(decl.span.start))
}

fn after_last_mention(bench: &Bench<'_>, all: &mut Proposals, block: StmtId) {
    let function = &bench.target.function;
    let StmtKind::Compound { items } = &function.stmt(block).kind else { return };
    for holder in bench.target.holders() {
        let mentions = |item: &&StmtId| function.file.mentions(function.stmt(**item).span, root(&holder));
        let Some(last) = items.iter().rev().find(mentions) else { continue };
        if bench.is_jump(*last) || matches!(function.stmt(*last).kind, StmtKind::Label { .. } | StmtKind::Case { .. }) {
            continue;
        }
        let place = function.stmt(*last).span.end;
        for (_, call) in bench.releases_at(place).into_iter().filter(|entry| entry.0 == holder) {
            let made = function.insert_after(*last, &code_of(&call));
            let title = format!("release `{holder}` after its last use");
            all.add(made, |edits| Candidate::new(function, "release-after-last-use", title, edits));
        }
    }
}
