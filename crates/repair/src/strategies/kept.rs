//! The constructor puts the block away on some ways only, and tells by a member of it: `if (b->owner != NULL)
//! add(b->owner, b);`. Whoever made it without an owner has it alone.
//!
//! ```c
//! b = block_new(owner);                b = block_new(owner);
//! b->name = strdup("-");               b->name = strdup("-");
//! announce(owner);             ──►     announce(owner);
//!                                      if (b->owner == NULL)
//!                                          block_free(b);
//! ```
//!
//! # Invariants
//! - The member is looked at only where the author has looked into the block before, on every way.

use caulk_source::{FunctionSource, Snippet, StmtId, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let (Some(source), place) = (target.source, &target.finding.source) else { return };
    let Some(call) = function.calls_at(place.line, place.column).into_iter().next() else { return };
    let callee = &function.calls[call].callee;
    let Some(constructor) = bench.workshop.function_named(callee, bench.patched) else { return };
    let block = function.enclosing_block(source);
    let StmtKind::Compound { items } = &function.stmt(block).kind else { return };
    let Some(last) = items.last() else { return };
    for member in tested_members(&constructor) {
        let at = function.stmt(*last).span.end;
        let holders = bench.target.holders().into_iter().filter(|holder| bench.target.reaches(holder, at));
        let released = holders.flat_map(|holder| {
            let calls = release::by_destructor(bench, &holder, at);
            let calls = calls.unwrap_or_else(|| release::calls(bench, &holder, at));
            calls.into_iter().map(move |call| (holder.clone(), call))
        });
        for (holder, release) in released.collect::<Vec<_>>() {
            if holder != root(&holder) || !looked_into(function, items, source, &holder) {
                continue;
            }
            let code = Snippet::lines([format!("if ({holder}->{member} == NULL)"), format!("\t{release}")]);
            let made = if bench.is_jump(*last) {
                function.insert_before(*last, &code)
            } else {
                function.insert_at_end(block, &code)
            };
            let title = format!("release `{holder}` where it has no `{member}`, and so nobody else has it");
            all.add(made, |edits| Candidate::new(function, "release-unless-kept", title, edits));
        }
    }
}

/// Members of what a function returns that it tests for null itself.
fn tested_members(constructor: &FunctionSource) -> Vec<String> {
    let returned = constructor.stmts.iter().filter_map(|stmt| match stmt.kind {
        StmtKind::Return { value: Some(value) } => Some(constructor.text(value)),
        _ => None,
    });
    let returned: Vec<String> = returned
        .map(|value| value.trim_matches(['(', ')', ' ']).to_owned())
        .filter(|name| name == root(name))
        .collect();
    let mut found: Vec<String> = Vec::new();
    for stmt in constructor.stmts.iter() {
        let StmtKind::If { cond, .. } = stmt.kind else { continue };
        let text = constructor.text(cond);
        let tested = text.strip_suffix("!= NULL").unwrap_or(&text).trim();
        let member = returned.iter().find_map(|name| tested.strip_prefix(name.as_str())?.strip_prefix("->"));
        if let Some(member) = member.filter(|member| *member == root(member))
            && !found.iter().any(|known| known == member)
        {
            found.push(member.to_owned());
        }
    }
    found
}

/// A statement of the block between the source and its end surely looks into what the holder points to.
fn looked_into(function: &FunctionSource, items: &[StmtId], source: StmtId, holder: &str) -> bool {
    let start = function.stmt(source).span.end;
    items.iter().any(|item| {
        let stmt = function.stmt(*item);
        let writes = |assign: &caulk_source::Assign| {
            assign.stmt == *item && function.text(assign.lhs).starts_with(&format!("{holder}->"))
        };
        matches!(stmt.kind, StmtKind::Expr) && stmt.span.start >= start && function.assigns.iter().any(writes)
    })
}
