//! Uses after a release: the release moves behind the use, or the use before the release.
//!
//! Only what releases and nothing else moves: what else a deallocator does must happen when it did.

use caulk_findings::StepKind;
use caulk_source::{FunctionSource, Placement, Snippet, Span, StmtId, StmtKind, declarator};

use super::exits::{is_pure, is_steady};
use super::nulling::{self, item_of};
use super::{Bench, Proposals, double_free, is_straight, may_declare};
use crate::change::Candidate;
use crate::release;
use crate::survey::Spot;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    let finding = target.finding;
    // When memory goes, nobody sees; a stream that is closed later is written later.
    let Some(sink) = target.sink.filter(|_| finding.family == "memory") else { return };
    let releases = finding.steps.iter().filter(|step| step.kind == StepKind::Release && step.depth == 0);
    for step in releases {
        let Some(call) = function.call_at(step.place.line, step.place.column, &finding.release) else { continue };
        let call = &function.calls[call];
        if !call.result_ignored || !release::is_quiet(bench, &call.callee) {
            continue;
        }
        let from = function.file.position_of(call.span.start);
        let release = call.stmt;
        let text = format!("{};", function.text(call.span));
        let title = format!("release {} only after its last use", finding.object);
        // `if (last) free(p);`: the test goes with the release.
        let (moved, code) = match test_of(function, release, sink) {
            Some((test, cond)) => (test, Snippet::lines([format!("if ({cond})"), format!("\t{text}")])),
            None => (release, Snippet::line(text)),
        };
        if is_set_anew(bench, call, sink) {
            continue;
        }
        if let StmtKind::Return { value: Some(value) } = function.stmt(sink).kind {
            value_first(bench, all, sink, value, release);
            let name = function.fresh_name("result");
            let made = function.delete_stmt(moved).and_then(|mut edits| {
                edits.merge(&function.return_through_temp(sink, &name, &code, Placement::Auto)?);
                Ok(edits)
            });
            all.add(made, |edits| Candidate::new(function, "use-into-temporary", title.clone(), edits).moving(from));
        }
        // On a way that leaves in between nothing is released any more: whether that is lost is seen only of a block that
        // is certain.
        if let Some(item) = item_beside(bench, sink, moved)
            && !bench.is_jump(item)
            && (is_straight(bench, moved, item) || is_certain(bench, from))
        {
            let made = function.delete_stmt(moved).and_then(|mut edits| {
                edits.merge(&function.insert_after(item, &code)?);
                Ok(edits)
            });
            all.add(made, |edits| Candidate::new(function, "move-release", title.clone(), edits).moving(from));
        }
        use_first(bench, all, sink, release);
    }
    // A destructor that looks into what it is given: the use is a release, too.
    if function.calls_of(sink).any(|call| bench.survey.destructors.contains(&function.calls[call].callee)) {
        double_free::propose(bench, all);
    } else {
        let places: Vec<_> =
            finding.steps.iter().filter(|step| step.kind == StepKind::Release).map(|step| &step.place).collect();
        nulling::propose(bench, all, &places);
    }
}

/// Whether nothing speaks against a release of the program as it is.
fn is_certain(bench: &Bench<'_>, (line, column): (u32, u32)) -> bool {
    let here = |spot: &Spot| (spot.line, spot.column) == (line, column) && spot.function == bench.target.function.name;
    bench.survey.releases.iter().filter(|(spot, _)| here(spot)).all(|(_, doubts)| doubts.is_empty())
}

/// The `if` that has nothing but this release, and what it asks, if it can be asked behind the use as well.
fn test_of(function: &FunctionSource, release: StmtId, sink: StmtId) -> Option<(StmtId, String)> {
    let parent = function.stmt(release).parent?;
    let test = match &function.stmt(parent).kind {
        StmtKind::Compound { items } if items[..] == [release] => function.stmt(parent).parent?,
        _ => parent,
    };
    let StmtKind::If { cond, otherwise: None, .. } = function.stmt(test).kind else { return None };
    let (until, end) = (function.stmt(sink).span, function.stmt(test).span.end);
    let between = Span::new(end, until.end.max(end));
    let sets = |assign: &caulk_source::Assign| {
        let name = function.text(assign.lhs);
        between.covers(assign.span) && function.file.mentions(cond, crate::target::root(&name))
    };
    let text = function.text(cond);
    let lasts = is_pure(&text) && is_steady(function, &text) && !text.contains('\n');
    let apart = !function.stmt(test).span.covers(until) && !function.assigns.iter().any(sets);
    (lasts && apart).then_some((test, text))
}

/// Whether the name of what is released means something else before the use is over.
fn is_set_anew(bench: &Bench<'_>, call: &caulk_source::Call, sink: StmtId) -> bool {
    let function = &bench.target.function;
    let Some(argument) = call.args.first().map(|arg| function.text(arg.span)) else { return true };
    let name = crate::target::root(&argument);
    let (from, to) = (call.span.end, function.stmt(sink).span.end.max(call.span.end));
    let between = Span::new(from, to);
    let sets = |assign: &caulk_source::Assign| {
        between.covers(assign.span) && crate::target::root(&function.text(assign.lhs)) == name
    };
    function.assigns.iter().any(sets) || function.text(between).contains(&format!("&{name}"))
}

/// `free(p); return p->size;` becomes `result = p->size; free(p); return result;`
fn value_first(bench: &Bench<'_>, all: &mut Proposals, sink: StmtId, value: Span, release: StmtId) {
    let function = &bench.target.function;
    let items = function.stmt(sink).parent.map(|parent| &function.stmt(parent).kind);
    let Some(StmtKind::Compound { items }) = items else { return };
    if !items.windows(2).any(|pair| pair == [release, sink]) {
        return;
    }
    let name = function.fresh_name("result");
    let Ok(declared) = declarator(&function.spelled(&function.return_type), &name) else { return };
    let text = function.text(value);
    let first = if may_declare(function, release) {
        function.insert_before(release, &Snippet::line(format!("{declared} = {text};")).declaring())
    } else {
        function.declare_in(function.enclosing_block(release), &format!("{declared};")).and_then(|mut edits| {
            edits.merge(&function.insert_before(release, &Snippet::line(format!("{name} = {text};")))?);
            Ok(edits)
        })
    };
    let made = first.and_then(|mut edits| {
        edits.merge(&function.replace_expr(value, name.clone())?);
        Ok(edits)
    });
    let title = format!("read `{text}` before the release");
    all.add(made, |edits| Candidate::new(function, "use-into-temporary", title, edits).without_release());
}

/// `free(n); n = n->next;` becomes `next = n->next; free(n); n = next;`
fn use_first(bench: &Bench<'_>, all: &mut Proposals, sink: StmtId, release: StmtId) {
    let function = &bench.target.function;
    let Some(assign) = function.assigns.iter().find(|assign| assign.stmt == sink && assign.whole && !assign.compound)
    else {
        return;
    };
    let rhs = function.text(assign.rhs);
    let Some(target) = assign.target else { return };
    if !crate::target::is_plain(&rhs) {
        return;
    }
    let block = function.stmt(function.enclosing_block(release)).span;
    if !block.covers(function.stmt(sink).span) {
        return;
    }
    let name = function.fresh_name("next");
    let Ok(declared) = declarator(&function.decls[target].type_name, &name) else { return };
    let made = function.insert_before(release, &Snippet::line(format!("{declared} = {rhs};")).declaring()).and_then(
        |mut edits| {
            edits.merge(&function.replace_expr(assign.rhs, name.clone())?);
            Ok(edits)
        },
    );
    let title = format!("read `{rhs}` before the release");
    all.add(made, |edits| Candidate::new(function, "use-into-temporary", title, edits).without_release());
}

/// The ancestor of `stmt` that stands in the same block as `beside`.
fn item_beside(bench: &Bench<'_>, stmt: StmtId, beside: StmtId) -> Option<StmtId> {
    let function = &bench.target.function;
    let block = function.stmt(item_of(function, beside)).parent?;
    let beside = |at: &StmtId| {
        let item = item_of(function, *at);
        function.stmt(item).parent == Some(block) && matches!(function.stmt(block).kind, StmtKind::Compound { .. })
    };
    function.ancestors(stmt).find(beside)
}
