//! An `else` for the `if` that takes the block only sometimes.
//!
//! ```c
//! if (p != NULL && fits(p))
//!     slot = p;
//! else                        // new
//!     free(p);
//! ```

use caulk_source::{StmtId, StmtKind};

use super::initialise::{self, with_value};
use super::{Bench, Proposals, code_of};
use crate::change::Candidate;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let Some(source) = target.source else { return };
    let from = function.stmt(source).span.start;
    for (id, stmt) in function.stmts.iter_ids() {
        let StmtKind::If { then, otherwise: None, .. } = stmt.kind else { continue };
        if stmt.span.start < from {
            continue;
        }
        for (holder, call) in bench.releases_at(stmt.span.start) {
            if !takes(bench, then, &holder) || call.contains('\n') {
                continue;
            }
            if holder == root(&holder) && bench.is_used_behind(id, &holder) {
                continue;
            }
            let title = format!("release `{holder}` where it is not taken");
            let left = leaves(bench, then);
            let made = if left { function.insert_after(id, &code_of(&call)) } else { function.insert_else(id, &call) };
            // `if (n != 0 && (p = malloc(n)) && fill(p))`: where `n` is 0, the variable has no value yet.
            let decl = function.variable_at(root(&holder), stmt.span.start).map(|decl| &function.decls[decl]);
            let without_value =
                decl.filter(|decl| !left && holder == decl.name && initialise::unset(decl) == Some("NULL"));
            let set = without_value.zip(made.clone().ok()).map(|(decl, edits)| with_value(edits, decl, "NULL"));
            all.add(made, |edits| Candidate::new(function, "release-otherwise", title, edits).calling(&call));
            if let Some(edits) = set {
                let title = format!("let `{holder}` be NULL until it is set, and release it where it is not taken");
                all.add(Ok(edits), |edits| Candidate::new(function, "release-otherwise", title, edits));
            }
        }
    }
}

/// The branch stores the block, or gives it to somebody.
fn takes(bench: &Bench<'_>, branch: StmtId, holder: &str) -> bool {
    let function = &bench.target.function;
    let span = function.stmt(branch).span;
    let assigned = function.assigns.iter().filter(|assign| span.covers(assign.span));
    let mut given = function.calls.iter().filter(|call| span.covers(call.span)).flat_map(|call| &call.args);
    assigned.into_iter().any(|assign| function.text(assign.rhs) == holder)
        || given.any(|arg| function.text(arg.span) == holder)
}

fn leaves(bench: &Bench<'_>, branch: StmtId) -> bool {
    match &bench.target.function.stmt(branch).kind {
        StmtKind::Compound { items } => items.last().is_some_and(|last| bench.is_jump(*last)),
        _ => bench.is_jump(branch),
    }
}
