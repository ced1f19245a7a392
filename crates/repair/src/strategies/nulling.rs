//! A pointer is set to NULL where its block was released or handed over, so that a later release or a later test
//! of it does nothing.
//!
//! ```c
//! if (put(box, p) < 0)                 if (put(box, p) < 0)
//!     free(p);                             free(p);
//! …                            ──►     p = NULL;
//! free(p);                             …
//! ```
//!
//! # Invariants
//! - Wherever the NULL can get to, it is assigned over or released by somebody who can live with it. Where the block
//!   was released, it may be handed back, or what looks at it is skipped as a whole: that was an error. Where it was
//!   handed over, others may look at it, and must see what they saw.

use caulk_findings::Place;
use caulk_source::{Call, DeclId, FunctionSource, Slot, Snippet, Span, StmtId, StmtKind};

use super::{Bench, Proposals, with_call};
use crate::change::Candidate;
use crate::release;
use crate::takes;
use crate::target::{is_plain, root};
use crate::watched::is_watched;

/// Copies of copies that are followed.
const COPIES: u32 = 2;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals, releases: &[&Place]) {
    for place in releases {
        with_call(bench, place, |function, stmt, call| {
            let mut values: Vec<String> =
                function.calls[call].args.iter().take(1).map(|arg| function.text(arg.span)).collect();
            if let Some(name) = &bench.target.name
                && function.name == bench.target.function.name
                && !values.contains(name)
            {
                values.push(name.clone());
            }
            let release = &bench.target.finding.release;
            let freed = values.first().cloned().unwrap_or_default();
            let gone = takes::surely(bench.survey, function, &function.calls[call], &freed, release);
            for value in values.iter().filter(|value| is_plain(value)) {
                if let Some(test) = handed_in_test(bench, function, stmt, value) {
                    after(bench, all, function, (test, Block::Alive), value);
                }
                // Another name of the block goes with it, and so does a part of what was given.
                if gone || *value != freed && takes::surely_parts(bench.survey, &function.calls[call]) {
                    after(bench, all, function, (stmt, Block::Gone), value);
                }
            }
        });
    }
    handed_over(bench, all);
}

/// What a pointer leads to behind a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// Nothing any more: whoever looks at it is wrong.
    Gone,
    /// Perhaps a block of somebody else: it may be looked at, but not released.
    Alive,
}

fn after(
    bench: &Bench<'_>,
    all: &mut Proposals,
    function: &FunctionSource,
    (stmt, block): (StmtId, Block),
    value: &str,
) {
    if is_set_behind(function, stmt, value) || !harmless(bench, function, (stmt, block), value, COPIES) {
        return;
    }
    let (title, made) = if has_pointer(function, value, function.stmt(stmt).span.end) {
        (format!("set `{value}` to NULL once its block is gone"), function.set_null_after(stmt, value))
    } else {
        let closed = Snippet::line(format!("{value} = -1;"));
        (format!("set `{value}` to -1 once it is closed"), function.insert_after(stmt, &closed))
    };
    all.add(made, |edits| Candidate::new(function, "set-to-null", title, edits).without_release().calling(value));
}

/// The next statement sets it anyway.
fn is_set_behind(function: &FunctionSource, stmt: StmtId, value: &str) -> bool {
    let item = item_of(function, stmt);
    let block = function.stmt(item).parent.map(|block| &function.stmt(block).kind);
    let Some(StmtKind::Compound { items }) = block else { return false };
    let next = items.iter().skip_while(|one| **one != item).nth(1);
    next.is_some_and(|next| {
        function.assigns.iter().any(|assign| assign.stmt == *next && assign.whole && function.text(assign.lhs) == value)
    })
}

/// `if (put(box, p) < 0) free(p);`: either way, the pointer is of no more use behind the `if`.
fn handed_in_test(bench: &Bench<'_>, function: &FunctionSource, stmt: StmtId, value: &str) -> Option<StmtId> {
    let parent = function.stmt(stmt).parent?;
    let test = match &function.stmt(parent).kind {
        StmtKind::Compound { items } if items[..] == [stmt] => function.stmt(parent).parent?,
        _ => parent,
    };
    let StmtKind::If { cond, otherwise: None, .. } = function.stmt(test).kind else { return None };
    let takes = |call: &Call| cond.covers(call.span) && takes::unless(bench.survey, function, call, value, cond);
    function.calls.iter().any(takes).then_some(test)
}

/// Behind calls that may have taken the block.
fn handed_over(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let (Some(sink), Some(name)) = (target.sink, &target.name) else { return };
    let until = function.stmt(sink).span.start;
    for call in function.calls.iter().filter(|call| call.span.end <= until) {
        let takes = takes::surely(bench.survey, function, call, name, &target.finding.release);
        let stands = match function.stmt(call.stmt).kind {
            StmtKind::Expr => call.unconditional,
            StmtKind::If { cond, .. } => cond.covers(call.span) && call.unconditional,
            _ => false,
        };
        let within = function.stmt(call.stmt).span.covers(function.stmt(sink).span);
        if takes && stands && !within {
            after(bench, all, function, (call.stmt, Block::Alive), name);
        }
    }
}

/// Whether nothing but errors would notice that `value` is NULL behind a statement.
fn harmless(
    bench: &Bench<'_>,
    function: &FunctionSource,
    (stmt, block): (StmtId, Block),
    value: &str,
    copies: u32,
) -> bool {
    let end = function.stmt(stmt).span.end;
    let Some(decl) = function.variable_at(root(value), end) else { return false };
    // A descriptor has no NULL, but -1.
    let is_number = value == root(value) && !has_pointer(function, value, end);
    if is_number && !(bench.target.finding.release == "close" && function.decls[decl].canonical_type == "int") {
        return false;
    }
    let around = loops_around(function, stmt, decl);
    let until = next_value(function, stmt, value).unwrap_or(function.span.end);
    let reached = |span: &Span| (end..until).contains(&span.start) || around.is_some_and(|around| around.covers(*span));
    // Whoever is given the structure, and callers, may ask for the member.
    if value != root(value) && is_watched(&bench.survey.watched, &function.decls[decl].canonical_type, value) {
        return false;
    }
    uses(function, decl, value).iter().filter(|span| reached(span)).all(|span| {
        let span = *span;
        let looked_at = || is_returned(function, span) || is_guarded(function, span, value) || is_out(function, span);
        assigned(function, span)
            || is_released(bench, function, span)
            || block == Block::Gone && looked_at()
            || copies > 0 && is_copied(bench, function, span, block, copies)
    })
}

/// Whether what has this name is a pointer, or a member of something.
fn has_pointer(function: &FunctionSource, value: &str, at: usize) -> bool {
    let decl = function.variable_at(root(value), at);
    value != root(value) || decl.is_some_and(|decl| function.decls[decl].canonical_type.contains('*'))
}

/// Where the variable surely has another value: at an assignment that every way from the statement comes to.
fn next_value(function: &FunctionSource, stmt: StmtId, value: &str) -> Option<usize> {
    let end = function.stmt(stmt).span.end;
    let blocks: Vec<StmtId> = function.ancestors(stmt).skip(1).collect();
    let sets = |assign: &&caulk_source::Assign| {
        assign.whole
            && !assign.compound
            && function.text(assign.lhs) == value
            && function.stmt(assign.stmt).span.start >= end
            && function.stmt(assign.stmt).slot == Slot::Item
            && function.stmt(assign.stmt).parent.is_some_and(|block| blocks.contains(&block))
    };
    let first = function.assigns.iter().filter(sets).map(|assign| function.stmt(assign.stmt).span.end).min()?;
    let leaves = function.stmts.iter().any(|one| {
        let jumps = matches!(
            one.kind,
            StmtKind::Goto { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::IndirectGoto | StmtKind::Other
        );
        one.span.start >= end && one.span.end <= first && jumps
    });
    (!leaves).then_some(first)
}

/// The outermost loop that keeps the variable's value from one round to the next.
fn loops_around(function: &FunctionSource, stmt: StmtId, decl: DeclId) -> Option<Span> {
    let is_loop = |at: &StmtId| {
        let stmt = function.stmt(*at);
        matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. })
            && !stmt.span.covers(function.decls[decl].span)
    };
    function.ancestors(stmt).filter(is_loop).last().map(|at| function.stmt(at).span)
}

/// Where an expression over a variable stands in the text.
fn uses(function: &FunctionSource, decl: DeclId, value: &str) -> Vec<Span> {
    let stars = value.len() - value.trim_start_matches('*').len();
    let refs = function.refs.iter().filter(|used| used.decl == decl);
    let whole = refs.filter_map(|used| {
        let start = used.span.start.checked_sub(stars)?;
        let span = Span::new(start, start + value.len());
        let inside = span.end <= function.span.end && function.text(span) == value;
        // A whole structure that is passed on or looked at otherwise is seen by its own name.
        inside.then_some(span)
    });
    whole.collect()
}

fn assigned(function: &FunctionSource, span: Span) -> bool {
    function.assigns.iter().any(|assign| assign.lhs == span && !assign.compound)
}

/// Released by somebody who can live with NULL.
fn is_released(bench: &Bench<'_>, function: &FunctionSource, span: Span) -> bool {
    let fits = |call: &Call| {
        let is_free = call.callee == "free" || call.callee == bench.target.finding.release;
        let takes_null = || bench.survey.null_takers.contains(&(call.callee.clone(), 0));
        let destroys = || bench.survey.destructors.contains(&call.callee) && release::is_quiet(bench, &call.callee);
        call.result_ignored
            && call.direct
            && call.args.first().is_some_and(|arg| arg.span == span)
            && (is_free || takes_null() && destroys())
    };
    function.calls.iter().any(fits)
}

fn is_returned(function: &FunctionSource, span: Span) -> bool {
    function.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Return { value: Some(value) } if value == span))
}

/// `if (p) …p…;`, or `if (fd >= 0)`, without `else`: a block that is gone was looked at there, and now is not.
fn is_guarded(function: &FunctionSource, span: Span, value: &str) -> bool {
    let pointer = ["", " != NULL", " != 0"].map(|test| format!("{value}{test}"));
    let number = [" >= 0", " != -1", " > -1"].map(|test| format!("{value}{test}"));
    let swapped = ["NULL != ", "0 <= ", "-1 != ", "-1 < "].map(|test| format!("{test}{value}"));
    let kind = if has_pointer(function, value, span.start) { pointer } else { number };
    let tests: Vec<String> = kind.into_iter().chain(swapped).collect();
    function.stmts.iter().any(|stmt| match stmt.kind {
        StmtKind::If { cond, then, otherwise: None } => {
            let body = function.stmt(then).span;
            (cond.covers(span) || body.covers(span))
                && tests.contains(&function.text(cond))
                && first_mentions(function, then, value)
        }
        _ => false,
    })
}

fn first_mentions(function: &FunctionSource, stmt: StmtId, value: &str) -> bool {
    match &function.stmt(stmt).kind {
        StmtKind::Compound { items } => items.first().is_some_and(|first| first_mentions(function, *first, value)),
        StmtKind::Expr => {
            let set = function.assigns.iter().any(|assign| assign.stmt == stmt && function.text(assign.lhs) == value);
            !set && function.file.mentions(function.stmt(stmt).span, root(value))
        }
        _ => false,
    }
}

/// `&p`: to be set.
fn is_out(function: &FunctionSource, span: Span) -> bool {
    function.calls.iter().flat_map(|call| &call.args).any(|arg| {
        let text = function.text(arg.span);
        arg.span.end == span.end && text.strip_prefix('&').is_some_and(|rest| rest.trim() == function.text(span))
    })
}

fn is_copied(bench: &Bench<'_>, function: &FunctionSource, span: Span, block: Block, copies: u32) -> bool {
    let assigned = function.assigns.iter().filter(|assign| assign.rhs == span && assign.whole && !assign.compound);
    let mut into = assigned.filter_map(|assign| assign.target.map(|target| (assign.stmt, target)));
    into.any(|(stmt, target)| {
        let name = function.decls[target].name.clone();
        harmless(bench, function, (stmt, block), &name, copies - 1)
    })
}

/// The statement and its labels, as an item of its block.
pub fn item_of(function: &FunctionSource, stmt: StmtId) -> StmtId {
    let labelled = |at: &StmtId| matches!(function.stmt(*at).slot, Slot::AfterLabel | Slot::AfterCase);
    function.ancestors(stmt).find(|at| !labelled(at)).unwrap_or(stmt)
}
