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
    for block in blocks {
        end_of(bench, all, block);
    }
    for block in seen {
        after_last_mention(bench, all, block);
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
