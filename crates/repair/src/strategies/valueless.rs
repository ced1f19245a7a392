//! A release of a variable that may have no value yet.
//!
//! ```c
//! char *text;                                 // no value
//! while ((c = getc(f)) != EOF) {
//!     if (c == 'U')
//!         text = letter(f);
//!     free(text);                             // in the first round, of nobody knows what
//!     text = NULL;
//! }
//! ```
//!
//! Where paths meet on some of which the variable is null, and on the others without a value, `mem2reg` takes it for null on
//! all: whatever it was is as good as null. So the analysis never hears of it, and it is looked for here, in the text.

use caulk_source::{Assign, FunctionSource, Span, StmtKind};

use super::initialise::unset;
use super::{Bench, nulling};
use crate::change::{self, Candidate};
use crate::target::root;

/// Whether new code releases a local variable that is set to null somewhere and not surely set on the way there.
pub fn is_released(bench: &Bench<'_>, candidate: &Candidate) -> bool {
    let function = &bench.target.function;
    candidate.file == function.file.path
        && change::released(&candidate.edits).iter().any(|(released, at)| {
            let name = root(released);
            let Some(decl) = function.variable_at(name, *at).map(|decl| &function.decls[decl]) else { return false };
            let gets_value =
                |edit: &caulk_source::Edit| edit.span.start == decl.span.end && edit.text.starts_with(b" =");
            let new_null = |edit: &caulk_source::Edit| {
                let text = String::from_utf8_lossy(&edit.text).into_owned();
                text.contains(&format!("{name} = NULL;")) || text.contains(&format!("{name} = -1;"))
            };
            let edits = candidate.edits.edits();
            let null = |assign: &Assign| sets(function, assign, name) && is_null(&function.text(assign.rhs));
            unset(decl).is_some()
                && !edits.iter().any(gets_value)
                && (edits.iter().any(new_null) || function.assigns.iter().any(null))
                && !is_surely_set(function, name, *at)
        })
}

fn sets(function: &FunctionSource, assign: &Assign, name: &str) -> bool {
    !assign.compound && function.text(assign.lhs) == name
}

fn is_null(value: &str) -> bool {
    matches!(value.trim_matches(['(', ')', ' ']), "NULL" | "0" | "-1" | "void *)0" | "void*)0" | "void *) 0")
}

/// Whether an assignment stands before the place in a block around it, and nobody jumps over that.
fn is_surely_set(function: &FunctionSource, name: &str, at: usize) -> bool {
    function.assigns.iter().filter(|assign| sets(function, assign, name) && assign.span.end <= at).any(|assign| {
        let item = nulling::item_of(function, assign.stmt);
        let around = function.stmt(item).parent.is_some_and(|block| function.stmt(block).span.contains(at));
        around && is_evaluated(function, assign) && !is_jumped_over(function, assign.span, at)
    })
}

/// A statement of its own, or the first thing that a test does.
fn is_evaluated(function: &FunctionSource, assign: &Assign) -> bool {
    match function.stmt(assign.stmt).kind {
        StmtKind::Expr => assign.whole,
        StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => {
            let before = function.text(Span::new(cond.start, assign.span.start.max(cond.start)));
            cond.covers(assign.span) && !["&&", "||", "?"].iter().any(|sign| before.contains(sign))
        }
        _ => false,
    }
}

fn is_jumped_over(function: &FunctionSource, set: Span, at: usize) -> bool {
    let between = |start: usize| start >= set.end && start <= at;
    function.stmts.iter_ids().any(|(id, stmt)| match &stmt.kind {
        StmtKind::Label { name, .. } if between(stmt.span.start) => {
            function.stmts.iter().any(|jump| match &jump.kind {
                StmtKind::Goto { label } => label == name && jump.span.start < set.end,
                StmtKind::IndirectGoto => true,
                _ => false,
            })
        }
        StmtKind::Case { .. } | StmtKind::Default { .. } if between(stmt.span.start) => {
            let choice = |at: &caulk_source::StmtId| matches!(function.stmt(*at).kind, StmtKind::Switch { .. });
            let switch = function.ancestors(id).find(choice);
            switch.is_none_or(|switch| function.stmt(switch).span.start < set.end)
        }
        _ => false,
    })
}
