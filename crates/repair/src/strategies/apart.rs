//! Two calls in one test, of which the first makes the block: the tests are made one after the other.
//!
//! ```c
//! if (load(&a, one) || load(&b, two))        if (load(&a, one))
//!     return -1;                                 return -1;
//!                                    ──►     if (load(&b, two)) {
//!                                                free(a.text);
//!                                                return -1;
//!                                            }
//! ```

use caulk_source::{EditSet, Origin, Refusal, Span, StmtId, StmtKind};

use super::{Bench, Proposals, alternatives, code_of};
use crate::change::Candidate;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let Some(exit) = target.sink.filter(|sink| bench.is_jump(*sink)) else { return };
    let Some(test) = function.ancestors(exit).find(|at| matches!(function.stmt(*at).kind, StmtKind::If { .. })) else {
        return;
    };
    let Some(gap) = gap(bench, test, exit) else { return };
    for (holder, call) in bench.releases_at(function.stmt(exit).span.start) {
        let made = apart(bench, (test, gap), exit, &call);
        let title = format!("test one after the other, and release `{holder}` where the second fails");
        all.add(made, |edits| Candidate::new(function, "tests-apart", title, edits).calling(&call));
    }
}

/// What stands between the part of the test that makes the block and the next one.
fn gap(bench: &Bench<'_>, test: StmtId, exit: StmtId) -> Option<Span> {
    let (function, place) = (&bench.target.function, &bench.target.finding.source);
    let StmtKind::If { cond, then, otherwise: None } = function.stmt(test).kind else { return None };
    let alone = match &function.stmt(then).kind {
        StmtKind::Compound { items } => items[..] == [exit],
        _ => then == exit,
    };
    let in_block = function.stmt(test).parent.map(|parent| &function.stmt(parent).kind);
    let is_item = matches!(in_block, Some(StmtKind::Compound { items }) if items.contains(&test));
    let made = function.file.offset_of(place.line, place.column.max(1)).filter(|at| cond.contains(*at))?;
    if !alone || !is_item || function.stmt(test).origin != Origin::Written {
        return None;
    }
    let text = function.text(cond);
    let mut start = cond.start;
    let mut parts = Vec::new();
    for part in alternatives(&text) {
        parts.push(Span::new(start, start + part.len()));
        start += part.len() + 2;
    }
    let at = parts.iter().position(|part| part.contains(made))?;
    let (before, behind) = (parts[at], *parts.get(at + 1)?);
    let trimmed = |span: Span| String::from_utf8_lossy(function.file.slice(span)).into_owned();
    let (head, tail) = (trimmed(before), trimmed(behind));
    let end = before.start + head.trim_end().len();
    Some(Span::new(end, behind.end - tail.trim_start().len()))
}

fn apart(bench: &Bench<'_>, (test, gap): (StmtId, Span), exit: StmtId, call: &str) -> Result<EditSet, Refusal> {
    let function = &bench.target.function;
    let file = &function.file;
    let mut edits = function.insert_before(exit, &code_of(call))?;
    let jump = function.text(function.stmt(exit).span);
    let indent = file.indent_of(function.stmt(test).span.start).to_vec();
    let mut text = b")".to_vec();
    let lines = [(file.deeper(&indent), format!("{};", jump.trim_end_matches(';'))), (indent, "if (".to_owned())];
    for (indent, line) in lines {
        text.extend_from_slice(file.style.eol.as_bytes());
        text.extend(indent);
        text.extend_from_slice(line.as_bytes());
    }
    edits.replace(gap, text);
    Ok(edits)
}
