//! `return X;` becomes a jump to the cleanup label that already releases the block.

use caulk_source::{Call, DeclId, DeclKind, FunctionSource, Span, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release::{is_deallocator, is_release};

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink else { return };
    let StmtKind::Return { value } = function.stmt(sink).kind else { return };
    for label in function.cleanup_labels() {
        if label.jumps.is_empty() || label.stmts.contains(&sink) || !only_releases(bench, &label.stmts) {
            continue;
        }
        let result = label.ends_in.map(|stmt| match function.stmt(stmt).kind {
            StmtKind::Return { value } => value,
            _ => None,
        });
        let (variable, same) = match (result, value) {
            (Some(Some(there)), Some(value)) => {
                let text = function.text(there);
                let same = text == function.text(value);
                if !(same && means_the_same(function, value, there) || carries(function, &text, value, there)) {
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
        let covers = |call: &&Call| label.stmts.iter().any(|stmt| function.stmt(*stmt).span.covers(call.span));
        let calls = function.calls.iter().filter(covers).map(|call| function.file.position_of(call.span.start));
        let reached: Vec<(u32, u32)> = calls.collect();
        all.add(made, |edits| {
            Candidate::new(function, "cleanup-label", title, edits).without_release().reaching(reached)
        });
    }
}

/// A constant, or one variable of this function: the releases do not change it on the way.
fn means_the_same(function: &FunctionSource, here: Span, there: Span) -> bool {
    let text = function.text(here);
    let inner = text.trim().trim_start_matches(['(', '-']).trim_end_matches(')');
    let own = |decl: DeclId| matches!(function.decls[decl].kind, DeclKind::Local | DeclKind::Parameter);
    let (mine, theirs) = (function.variable_at(inner, here.start), function.variable_at(inner, there.start));
    let shared = mine.is_some_and(|decl| function.decls[decl].kind != DeclKind::EnumConstant && !own(decl));
    is_word(inner) && inner != "errno" && mine == theirs && !shared
}

/// Does the variable that the label's `return` gives back carry any value that the function can return from here to
/// there: one and the same variable of this function, as wide as the result?
fn carries(function: &FunctionSource, text: &str, here: Span, there: Span) -> bool {
    let Some(decl) = function.variable_at(text, here.start) else { return false };
    let known = &function.decls[decl];
    let as_wide = [&known.type_name, &known.canonical_type].contains(&&function.return_type);
    function.variable_at(text, there.start) == Some(decl)
        && matches!(known.kind, DeclKind::Local | DeclKind::Parameter)
        && as_wide
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Nothing happens behind the label but releases and the return: jumping there does nothing else.
fn only_releases(bench: &Bench<'_>, stmts: &[caulk_source::StmtId]) -> bool {
    let function = &bench.target.function;
    stmts.iter().all(|id| {
        let stmt = function.stmt(*id);
        let covered = function.calls.iter().filter(|call| stmt.span.covers(call.span));
        let released = covered.clone().count() > 0
            && covered
                .clone()
                .all(|call| is_release(function, bench.survey, call.span.start) && is_deallocator(bench, &call.callee));
        let assigns = function.assigns.iter().any(|assign| stmt.span.covers(assign.span));
        match stmt.kind {
            StmtKind::Return { .. } => covered.count() == 0,
            StmtKind::Expr | StmtKind::If { .. } | StmtKind::Label { .. } => released && !assigns,
            StmtKind::Null => true,
            _ => false,
        }
    })
}
