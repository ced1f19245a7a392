//! A release of the block unless its name means something else: `if (out != stdout) fclose(out);` where the stream is
//! sometimes a standard one, `if (p != q) free(p);` where another name that is released is sometimes the same block.

use caulk_findings::Rule;
use caulk_source::{Snippet, StmtKind};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::release::is_release;
use crate::target::{is_plain, root};

const STREAMS: [&str; 3] = ["stdout", "stdin", "stderr"];

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    if bench.target.finding.rule == Rule::ResourceLeak {
        unless_standard(bench, all);
    }
    unless_released(bench, all);
}

/// Before the exit, where one of the values that the name takes is a standard stream.
fn unless_standard(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink.filter(|sink| bench.is_jump(*sink)) else { return };
    for (holder, call) in bench.releases_at(function.stmt(sink).span.start) {
        let assigned = function.assigns.iter().filter(|assign| function.text(assign.lhs) == holder);
        let declared = function.decls.iter().filter(|decl| decl.name == holder).filter_map(|decl| decl.init);
        let values: Vec<_> = assigned.map(|assign| assign.rhs).chain(declared).collect();
        for stream in STREAMS.iter().filter(|name| values.iter().any(|value| function.file.mentions(*value, name))) {
            let code = Snippet::lines([format!("if ({holder} != {stream})"), format!("\t{call}")]);
            let title = format!("release `{holder}` unless it is {stream}");
            // A value that looks at the stream would look at a closed one.
            if let StmtKind::Return { value: Some(value) } = function.stmt(sink).kind
                && function.file.mentions(value, root(&holder))
            {
                continue;
            }
            let made = function.insert_before(sink, &code);
            all.add(made, |edits| Candidate::new(function, "release-unless-other", title, edits));
        }
    }
}

/// Before the release of another name that may mean the same block.
fn unless_released(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(name) = &bench.target.name else { return };
    for call in function.calls.iter().filter(|call| call.result_ignored && call.args.len() == 1) {
        let start = function.stmt(call.stmt).span.start;
        let other = function.text(call.args[0].span);
        let aliased = function.assigns.iter().any(|assign| {
            let (left, right) = (function.text(assign.lhs), function.text(assign.rhs));
            (left == other && right == *name) || (left == *name && right == other)
        });
        if !aliased || other == *name || !is_plain(&other) || !is_release(function, bench.survey, call.span.start) {
            continue;
        }
        for (holder, release) in bench.releases_at(start).into_iter().filter(|entry| entry.0 == *name) {
            let code = Snippet::lines([format!("if ({holder} != {other})"), format!("\t{release}")]);
            let made = function.insert_before(call.stmt, &code);
            let title = format!("release `{holder}` unless `{other}`, which is released here, is the same block");
            all.add(made, |edits| Candidate::new(function, "release-unless-other", title, edits));
        }
    }
}
