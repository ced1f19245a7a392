//! Ways to repair, from the most natural to the least. Each proposes; the proof decides.

mod apart;
mod close_once;
mod conditional;
mod double_free;
mod exits;
mod frontier;
mod initialise;
mod kept;
mod label;
mod macro_exit;
mod mismatch;
mod nulling;
mod one_more_field;
mod otherwise;
mod overwrite;
mod own_destructor;
mod owner;
mod scope_end;
mod unless;
mod unnamed;
mod use_after_free;
mod valueless;

use std::path::PathBuf;

use caulk_findings::{Place, Rule};
use caulk_source::{CallId, EditSet, FunctionSource, Origin, Refusal, Snippet, Span, StmtId, StmtKind};

use crate::change::{self, Candidate};
use crate::configurations;
use crate::release;
use crate::survey::Survey;
use crate::target::Target;
use crate::workshop::Workshop;

/// More candidates than this are not even weighed.
const MAX_CANDIDATES: usize = 80;

/// What a strategy may look at.
pub struct Bench<'a> {
    pub target: &'a Target<'a>,
    pub survey: &'a Survey,
    pub workshop: &'a dyn Workshop,
    pub patched: &'a [(PathBuf, Vec<u8>)],
}

/// Candidates, or reasons why an edit could not be made.
#[derive(Default)]
pub struct Proposals {
    pub candidates: Vec<Candidate>,
    pub refusals: Vec<String>,
}

impl Proposals {
    pub fn add(&mut self, made: Result<EditSet, Refusal>, candidate: impl FnOnce(EditSet) -> Candidate) {
        match made {
            Ok(edits) if !edits.is_empty() => {
                let candidate = candidate(edits);
                if self.candidates.iter().all(|other| other.edits != candidate.edits || other.file != candidate.file) {
                    self.candidates.push(candidate);
                }
            }
            Ok(_) => {}
            Err(refusal) => self.refusals.push(refusal.to_string()),
        }
    }
}

pub fn propose(bench: &Bench<'_>) -> Proposals {
    let mut all = Proposals::default();
    match bench.target.finding.rule {
        Rule::MemoryLeak | Rule::ResourceLeak => {
            label::propose(bench, &mut all);
            exits::propose(bench, &mut all);
            own_destructor::propose(bench, &mut all);
            // One release at the end of the round, rather than one before each of several assignments.
            if overwrite::is_set_in_many_ways(bench) {
                scope_end::propose(bench, &mut all);
            }
            overwrite::propose(bench, &mut all);
            conditional::propose(bench, &mut all);
            apart::propose(bench, &mut all);
            scope_end::propose(bench, &mut all);
            kept::propose(bench, &mut all);
            unnamed::propose(bench, &mut all);
            otherwise::propose(bench, &mut all);
            frontier::propose(bench, &mut all);
            unless::propose(bench, &mut all);
            macro_exit::propose(bench, &mut all);
            initialise::propose(bench, &mut all);
            one_more_field::propose(bench, &mut all);
            owner::propose(bench, &mut all);
        }
        Rule::DoubleFree => {
            close_once::propose(bench, &mut all);
            double_free::propose(bench, &mut all);
        }
        Rule::UseAfterFree => use_after_free::propose(bench, &mut all),
        Rule::MismatchedRelease => mismatch::propose(bench, &mut all),
        Rule::InvalidFree | Rule::LeakAtExit => {}
    }
    let counted = !release::counting(bench).is_empty();
    let hidden = !release::means_no_more(bench, &bench.target.finding.release);
    for mut candidate in std::mem::take(&mut all.candidates) {
        match configurations::speaks_against(bench, &candidate) {
            Some(reason) => all.refusals.push(reason),
            None if hidden && bench.calls_library(&candidate) => {
                all.refusals.push("its release is a macro of the program, which does more".into())
            }
            None if counted && bench.calls_library(&candidate) => {
                all.refusals.push("the program counts such blocks, and the library's release does not".into())
            }
            None if valueless::is_released(bench, &candidate) => {
                all.refusals.push("the variable may have no value there".into())
            }
            None if bench.is_before_needed(&candidate) => all.refusals.push("what is returned may lead into it".into()),
            None if bench.is_behind_errno(&candidate) => {
                all.refusals.push("it may change `errno`, which is set there".into())
            }
            None => {
                candidate.quiet_if_null = bench.quiet_if_null(&candidate);
                all.candidates.push(candidate);
            }
        }
    }
    all.candidates.truncate(MAX_CANDIDATES);
    all
}

impl Bench<'_> {
    /// Expressions that may hold the block at `offset`, each with the calls that would release it.
    fn releases_at(&self, offset: usize) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for holder in self.target.holders() {
            if self.target.reaches(&holder, offset) {
                let calls = release::calls(self, &holder, offset);
                // Both ends of a pipe at once.
                if let Some(name) = holder.strip_suffix("[0]") {
                    let both = |call: &String| format!("{call}\n{}", call.replace("[0]", "[1]"));
                    found.extend(calls.first().map(|call| (name.to_owned(), both(call))));
                }
                for call in calls {
                    found.push((holder.clone(), call));
                }
            }
        }
        found.truncate(6);
        found
    }

    /// A release before a statement that leaves; where one of several tests may have shown that there is nothing to
    /// release, under the opposite test: `if (fd < 0 || fstat(fd, &st) < 0)`.
    fn code_before(&self, jump: StmtId, holder: &str, call: &str) -> Snippet {
        match self.guard(jump, holder).filter(|_| self.target.finding.release == "close") {
            Some(test) => Snippet::lines([format!("if ({test})"), format!("\t{call}")]),
            None => code_of(call),
        }
    }

    fn guard(&self, jump: StmtId, holder: &str) -> Option<String> {
        let function = &self.target.function;
        let inside = function.stmt(jump).span;
        let mut tests = function.ancestors(jump).filter_map(|at| match function.stmt(at).kind {
            StmtKind::If { cond, then, .. } if function.stmt(then).span.covers(inside) => Some(function.text(cond)),
            _ => None,
        });
        let opposite = |part: &str| {
            let part: String = part.chars().filter(|c| !c.is_whitespace()).collect();
            let test = part.strip_prefix(holder).or_else(|| {
                let set = part.strip_prefix(&format!("({holder}="))?;
                set.starts_with(|c: char| c != '=').then(|| set.rsplit_once(')').map(|split| split.1))?
            });
            match test? {
                "<0" => Some(format!("{holder} >= 0")),
                "==-1" => Some(format!("{holder} != -1")),
                _ => None,
            }
        };
        tests.find_map(|test| {
            let parts = alternatives(&test);
            parts.iter().filter(|_| parts.len() > 1).find_map(|part| opposite(part))
        })
    }

    /// Whether a statement can be reached with the block: it comes later, or once more in a loop.
    fn is_behind_source(&self, stmt: StmtId) -> bool {
        let function = &self.target.function;
        let Some(source) = self.target.source else { return true };
        let (here, made) = (function.stmt(stmt).span, function.stmt(source).span);
        let again = |at: StmtId| {
            let stmt = function.stmt(at);
            matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. })
                && stmt.span.covers(here)
                && stmt.span.covers(made)
        };
        let back = |stmt: &caulk_source::Stmt| match &stmt.kind {
            StmtKind::Goto { label } => {
                let mut labels = function.labels();
                labels.any(|(at, name)| name == label && function.stmt(at).span.start < stmt.span.start)
            }
            StmtKind::IndirectGoto | StmtKind::Other => true,
            _ => false,
        };
        stmt != source && here.end > made.start
            || function.ancestors(source).any(again)
            || function.stmts.iter().any(back)
    }

    /// Whether code that is surely come to behind a statement looks at the value: no place to release it.
    fn is_used_behind(&self, stmt: StmtId, holder: &str) -> bool {
        let function = &self.target.function;
        let mut at = nulling::item_of(function, stmt);
        loop {
            let Some(block) = function.stmt(at).parent else { return false };
            if let StmtKind::Compound { items } = &function.stmt(block).kind {
                for item in items.iter().skip_while(|item| **item != at).skip(1) {
                    let sets = |assign: &caulk_source::Assign| assign.whole && function.text(assign.lhs) == holder;
                    if function.assigns.iter().any(|assign| assign.stmt == *item && sets(assign)) {
                        return false;
                    }
                    if function.file.mentions(function.stmt(*item).span, crate::target::root(holder)) {
                        return true;
                    }
                    if self.is_jump(*item) || matches!(function.stmt(*item).kind, StmtKind::Label { .. }) {
                        return false;
                    }
                }
            }
            at = block;
        }
    }

    /// Whether code is put right before a `return` of something that may lie in what it releases.
    fn is_before_needed(&self, candidate: &Candidate) -> bool {
        let function = &self.target.function;
        let returned = function.stmts.iter().filter_map(|stmt| match stmt.kind {
            StmtKind::Return { value: Some(value) } if stmt.origin == Origin::Written => Some((stmt.span.start, value)),
            _ => None,
        });
        let inserted = |at: usize| {
            candidate.edits.edits().iter().any(|edit| {
                let between = || function.file.slice(Span::new(edit.span.end, at)).iter().all(u8::is_ascii_whitespace);
                edit.span.start == edit.span.end && edit.span.end <= at && between()
            })
        };
        let holders = self.target.holders();
        // `result = fdopen(fd, "w"); if (!result) close(fd); return result;`: null leads nowhere.
        candidate.strategy != change::CONDITIONAL
            && candidate.file == function.file.path
            && returned.into_iter().any(|(at, value)| {
                holders.iter().any(|holder| exits::is_inside(self, value, crate::target::root(holder))) && inserted(at)
            })
    }

    /// Whether a macro has one definition in its file, whatever the configuration: what it does is seen there alone.
    fn is_one_macro(&self, name: &str) -> bool {
        let file = &self.target.function.file;
        let (mut at, mut defined) = (0, Vec::new());
        for line in file.bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line);
            let rest = text.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"));
            let mut words = rest.into_iter().flat_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_'));
            if words.find(|word| !word.is_empty()) == Some(name) {
                defined.push(at);
            }
            at += line.len();
        }
        let everywhere = |at: usize| file.regions.is_unconditional(at);
        matches!(defined.as_slice(), [at] if everywhere(*at))
    }

    /// Destructors in new code that are heard of unless some members are null.
    fn quiet_if_null(&self, candidate: &Candidate) -> Vec<(String, Vec<String>)> {
        let names: std::collections::BTreeSet<String> = change::called(&candidate.edits).into_iter().collect();
        let own = names.into_iter().filter(|name| self.survey.destructors.contains(name));
        let asked = own.filter_map(|name| release::quiet_if_null(self, &name).map(|members| (name, members)));
        asked.filter(|(_, members)| !members.is_empty()).collect()
    }

    /// Whether new code calls the library's own release.
    fn calls_library(&self, candidate: &Candidate) -> bool {
        let release = &self.target.finding.release;
        candidate.edits.edits().iter().any(|edit| {
            let text = String::from_utf8_lossy(&edit.text);
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.any(|word| word == release)
        })
    }

    /// Whether something is released right behind `errno = …;`. Not even of `free` is it certain that it leaves that alone.
    fn is_behind_errno(&self, candidate: &Candidate) -> bool {
        let function = &self.target.function;
        let sets = |assign: &caulk_source::Assign, at: usize| {
            let end = function.stmt(assign.stmt).span.end;
            let between = || function.file.slice(Span::new(end, at)).iter().all(u8::is_ascii_whitespace);
            function.text(assign.lhs) == "errno" && end <= at && between()
        };
        let behind = |at: usize| function.assigns.iter().any(|assign| sets(assign, at));
        // `errno = ENOENT; return failed("reading");`: the number is meant for the call, which comes first.
        let is_told = self.target.sink.is_some_and(|sink| match function.stmt(sink).kind {
            StmtKind::Return { value: Some(value) } => function.calls.iter().any(|call| value.covers(call.span)),
            _ => false,
        });
        !(is_told && self.target.finding.family == "memory")
            && candidate.file == function.file.path
            && candidate.edits.edits().iter().any(|edit| behind(edit.span.start))
    }

    /// Whether control leaves the statement's block there.
    fn is_jump(&self, stmt: StmtId) -> bool {
        matches!(
            self.target.function.stmt(stmt).kind,
            StmtKind::Return { .. } | StmtKind::Goto { .. } | StmtKind::Break | StmtKind::Continue
        )
    }
}

/// The call statement at a place, in whichever function it is.
fn with_call(bench: &Bench<'_>, place: &Place, then: impl FnOnce(&FunctionSource, StmtId, CallId)) {
    let other;
    let function = if place.function == bench.target.function.name {
        &bench.target.function
    } else {
        match bench.workshop.function_at(&place.file, place.line, bench.patched) {
            Ok(found) => {
                other = found;
                &other
            }
            Err(_) => return,
        }
    };
    if !function.in_main_file {
        return;
    }
    let Some(call) = function.calls_at(place.line, place.column).into_iter().next() else { return };
    let stmt = function.calls[call].stmt;
    if matches!(function.stmt(stmt).kind, StmtKind::Expr) && function.calls[call].result_ignored {
        then(function, stmt, call);
    }
}

/// From one item of a block to a later one, with no way in or out in between: what is moved happens as often.
fn is_straight(bench: &Bench<'_>, from: StmtId, to: StmtId) -> bool {
    let function = &bench.target.function;
    let (from, to) = (nulling::item_of(function, from), nulling::item_of(function, to));
    let Some(StmtKind::Compound { items }) = function.stmt(from).parent.map(|block| &function.stmt(block).kind) else {
        return false;
    };
    let place = |stmt: StmtId| items.iter().position(|item| *item == stmt);
    let (Some(first), Some(last)) = (place(from), place(to)) else { return false };
    let leaves = |item: &StmtId| {
        let span = function.stmt(*item).span;
        let inside = function.stmts.iter_ids().filter(|(_, stmt)| span.covers(stmt.span));
        inside.into_iter().any(|(id, stmt)| {
            let joins = matches!(stmt.kind, StmtKind::Label { .. } | StmtKind::Case { .. } | StmtKind::Default { .. });
            bench.is_jump(id) || joins || matches!(stmt.kind, StmtKind::IndirectGoto | StmtKind::Other)
        })
    };
    first < last && !items[first + 1..=last].iter().any(leaves)
}

/// Calls, one on a line.
fn code_of(calls: &str) -> Snippet {
    Snippet::lines(calls.split('\n').map(str::to_owned))
}

/// Replaces a statement by lines, the last of which may be indented further than the statement was.
fn replace(function: &FunctionSource, stmt: StmtId, code: &Snippet) -> Result<EditSet, Refusal> {
    let indented = code.lines.last().is_some_and(|line| line.starts_with(b"\t"));
    let Some((last, before)) = code.lines.split_last().filter(|_| indented) else {
        return function.replace_stmt(stmt, code);
    };
    // The line above it is the head of an `if`: both together stand for the statement.
    let Some((head, before)) = before.split_last() else { return function.replace_stmt(stmt, code) };
    let file = &function.file;
    let indent = file.indent_of(function.stmt(stmt).span.start);
    let mut text = head.clone();
    text.extend_from_slice(file.style.eol.as_bytes());
    text.extend(file.deeper(indent));
    text.extend_from_slice(last.trim_ascii_start());
    let mut lines = before.to_vec();
    lines.push(text);
    function.replace_stmt(stmt, &Snippet { lines, declares: code.declares })
}

/// Whether a declaration may stand right before this statement: first in its block, or where the author mixes.
fn may_declare(function: &FunctionSource, stmt: StmtId) -> bool {
    let parent = function.stmt(stmt).parent.map(|parent| &function.stmt(parent).kind);
    let first = match parent {
        Some(StmtKind::Compound { items }) => {
            items.iter().find(|item| !matches!(function.stmt(**item).kind, StmtKind::Decl { .. })) == Some(&stmt)
        }
        _ => true,
    };
    first || function.mixes_declarations()
}

/// The operands of `||` outside of all parentheses.
fn alternatives(test: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0usize, 0, Vec::new());
    let bytes = test.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'|' if depth == 0 && at >= from && bytes.get(at + 1) == Some(&b'|') => {
                found.push(&test[from..at]);
                from = at + 2;
            }
            _ => {}
        }
    }
    found.push(&test[from..]);
    found
}
