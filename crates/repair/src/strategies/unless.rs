//! A release of the block unless its name means something else: `if (out != stdout) fclose(out);` where the stream is
//! sometimes a standard one, `if (p != q) free(p);` where another name that is released is sometimes the same block.

use caulk_findings::Rule;
use caulk_source::{Snippet, StmtKind};

use super::exits::{is_pure, is_steady};
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
    under_conditions(bench, all);
}

/// Before the exit, under the condition that another release of the block has, or unless the pointer means what is
/// not the function's own: `if (p != list->saved) free(p);` where `p = list->saved;` stands elsewhere.
fn under_conditions(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink.filter(|sink| bench.is_jump(*sink)) else { return };
    let start = function.stmt(sink).span.start;
    for (holder, call) in bench.releases_at(start) {
        for condition in conditions(bench, &holder) {
            // What the condition looks at must be what it was.
            let known =
                |word: &str| function.variable_at(word, start).is_some() || function.names.macros.contains(word);
            if words(&condition).iter().any(|word| !known(word)) {
                continue;
            }
            let code = Snippet::lines([format!("if ({condition})"), format!("\t{call}")]);
            let title = format!("release `{holder}` if `{condition}`");
            let made = function.insert_before(sink, &code);
            all.add(made, |edits| Candidate::new(function, "release-unless-other", title, edits));
        }
    }
}

/// Variables of an expression; members go with them.
fn words(text: &str) -> Vec<&str> {
    let plain = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '>')));
    let roots = plain.map(|word| word.trim_matches(['-', '>', '.'])).map(root);
    roots.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')).collect()
}

fn conditions(bench: &Bench<'_>, holder: &str) -> Vec<String> {
    let function = &bench.target.function;
    let mut found: Vec<String> = Vec::new();
    for (_, call) in function.releases_of(holder) {
        let stmt = function.calls[call].stmt;
        let Some(parent) = function.stmt(stmt).parent else { continue };
        let test = match &function.stmt(parent).kind {
            StmtKind::Compound { items } if items[..] == [stmt] => function.stmt(parent).parent,
            _ => Some(parent),
        };
        let test = test.map(|test| &function.stmt(test).kind);
        let Some(StmtKind::If { cond, otherwise: None, .. }) = test else { continue };
        found.push(function.text(*cond));
    }
    for assign in function.assigns.iter().filter(|assign| function.text(assign.lhs) == holder) {
        let value = function.text(assign.rhs);
        if is_plain(&value) && value != "NULL" {
            found.push(format!("{holder} != {value}"));
        }
    }
    found.retain(|condition| is_pure(condition) && is_steady(function, condition) && !condition.contains('\n'));
    found.dedup();
    found.truncate(3);
    found
}

/// Before the exit, where one of the values that the name takes is a standard stream.
fn unless_standard(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let at_end = bench.target.sink_is_end();
    let sink = bench.target.sink.filter(|sink| bench.is_jump(*sink));
    let place = match sink {
        Some(sink) => function.stmt(sink).span.start,
        None if at_end => function.span.end.saturating_sub(1),
        None => return,
    };
    for (holder, call) in bench.releases_at(place) {
        let assigned = function.assigns.iter().filter(|assign| function.text(assign.lhs) == holder);
        let declared = function.decls.iter().filter(|decl| decl.name == holder).filter_map(|decl| decl.init);
        let values: Vec<_> = assigned.map(|assign| assign.rhs).chain(declared).collect();
        for stream in STREAMS.iter().filter(|name| values.iter().any(|value| function.file.mentions(*value, name))) {
            let code = Snippet::lines([format!("if ({holder} != {stream})"), format!("\t{call}")]);
            let title = format!("release `{holder}` unless it is {stream}");
            // A value that looks at the stream would look at a closed one.
            if let Some(StmtKind::Return { value: Some(value) }) = sink.map(|sink| &function.stmt(sink).kind)
                && function.file.mentions(*value, root(&holder))
            {
                continue;
            }
            let made = match sink {
                Some(sink) => function.insert_before(sink, &code),
                None => function.insert_at_end(function.body, &code),
            };
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
