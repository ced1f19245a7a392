//! When it is noticed that a stream is closed, and not left open until the process ends.
//!
//! ```c
//! FILE *log = fopen("/dev/stdout", "a");
//! fputs("first\n", log);                  // still in the buffer
//! return -1;                              // closed here, it is written before what follows; before, at the end of all
//! ```
//!
//! What a stream has in its buffer is written when it is closed. That makes a difference where the same file is written or
//! read by somebody else meanwhile, where a child has a copy of the buffer, and where it fails and `errno` is told.
//!
//! # Known imprecision
//! - Files are the same if they are named by the same expression, here or by a caller. Other programs are not thought of.

use caulk_source::{Call, FunctionSource, Span, StmtId, StmtKind};

use crate::refuse::Bodies;
use crate::sides::{COPIES, Sides};
use crate::target::Target;

/// Functions that see what is in a file.
const OPENING: &[&str] = &[
    "fopen",
    "fopen64",
    "freopen",
    "freopen64",
    "open",
    "open64",
    "openat",
    "openat64",
    "creat",
    "stat",
    "stat64",
    "truncate",
    "truncate64",
];

/// Functions that are given a stream and do not write to it.
const HARMLESS: &[&str] =
    &["fclose", "fileno", "ferror", "feof", "clearerr", "ftell", "ftello", "setvbuf", "setbuf", "flockfile"];

/// Functions that ask what a descriptor is.
const ASKING: &[&str] = &["fstat", "fstat64", "isatty"];

/// Functions that read from a stream.
const READING: &[&str] =
    &["fgets", "fgetc", "getc", "fread", "getline", "getdelim", "fscanf", "fgets_unlocked", "getc_unlocked"];

/// Files that others write to.
const SHARED: &[&str] = &["/dev/std", "/dev/tty", "/dev/fd", "/dev/pts", "/proc/self"];

/// Functions that make a stream of a descriptor.
const FOUNDED: &[&str] = &["fdopen", "fdopendir", "gzdopen"];

/// Functions that make another descriptor of the same open file.
const COPYING: &[&str] = &["dup", "dup2", "dup3", COPIES];

/// Why it matters that a stream is closed earlier.
pub fn is_noticed(target: &Target<'_>, sides: &Sides, body: &Bodies<'_>) -> Option<String> {
    if is_over_a_copy(target, sides) {
        return Some("another descriptor of the file would go on from another place".into());
    }
    if target.finding.release != "fclose" || !is_written(target) {
        return None;
    }
    if sides.children.write_buffers() {
        return Some("a child may write what is in its buffer, too".into());
    }
    if sides.children.is_error_told(&target.function.name) {
        return Some("where it cannot be written, the error that is told would be another".into());
    }
    is_seen_by_others(target, sides, body).then(|| "the same file is used by others: the order would change".into())
}

/// Is the call between the finding's source and its end, perhaps in another round of a loop?
pub fn is_between(target: &Target<'_>, call: &Call) -> bool {
    let function = &target.function;
    let made = target.source.map_or(0, |source| function.stmt(source).span.start);
    let before = target.sink.map_or(function.span.end, |sink| function.stmt(sink).span.start);
    let is_loop = |at: &StmtId| {
        matches!(function.stmt(*at).kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. })
    };
    let mut around = function.ancestors(call.stmt).filter(is_loop);
    let again = |at: StmtId| target.source.is_some_and(|source| function.ancestors(source).any(|one| one == at));
    call.span.start > made && call.span.end <= before || around.any(again)
}

/// The call that made the stream.
fn maker<'a>(target: &'a Target<'_>) -> Option<&'a Call> {
    let (function, place) = (&target.function, &target.finding.source);
    function.calls_at(place.line, place.column).into_iter().last().map(|made| &function.calls[made])
}

/// Is the stream made of a copy of a descriptor? What was read ahead is given back when the stream is closed, and both have
/// one position.
fn is_over_a_copy(target: &Target<'_>, sides: &Sides) -> bool {
    let function = &target.function;
    let is_number = |call: &Call| {
        matches!(call.callee.as_str(), "fileno" | "fileno_unlocked" | "dirfd")
            && target
                .name
                .as_ref()
                .is_some_and(|name| call.args.iter().any(|arg| function.file.mentions(arg.span, name)))
    };
    let copies = |call: &Call| match call.callee.as_str() {
        "fcntl" | "fcntl64" => function.text(call.span).contains("F_DUPFD"),
        callee => COPYING.contains(&callee) || sides.calls_any(callee, COPYING),
    };
    if function.calls.iter().any(is_number) && function.calls.iter().any(copies) {
        return true;
    }
    let Some(made) = maker(target).filter(|made| FOUNDED.contains(&made.callee.as_str())) else { return false };
    let Some(under) = made.args.first() else { return false };
    let name = function.text(under.span);
    let declared = function.decls.iter().filter(|decl| decl.name == name).filter_map(|decl| decl.init);
    let assigned = function.assigns.iter().filter(|assign| function.text(assign.lhs) == name).map(|assign| assign.rhs);
    let mut given = declared.chain(assigned).chain([under.span]);
    given.any(|value| function.calls.iter().any(|call| value.covers(call.span) && copies(call)))
}

/// May something be left in the buffer?
fn is_written(target: &Target<'_>) -> bool {
    let function = &target.function;
    let mode = maker(target).filter(|made| made.callee.contains("open")).and_then(|made| made.args.last());
    let reads =
        mode.map(|mode| function.text(mode.span)).is_some_and(|mode| mode.starts_with("\"r") && !mode.contains('+'));
    let Some(name) = target.name.as_ref().filter(|_| !reads) else { return false };
    // `fstat(fileno(file), &status)` asks about the descriptor, and knows nothing of the stream.
    let number = |span: Span| {
        let mut inside = function.calls.iter().filter(|call| span.covers(call.span));
        inside.any(|call| call.span == span && call.direct && call.callee == "fileno")
    };
    let only_asks = |call: &Call| call.direct && ASKING.contains(&call.callee.as_str());
    let given = |call: &&Call| {
        call.args.iter().any(|arg| function.file.mentions(arg.span, name) && !(only_asks(call) && number(arg.span)))
    };
    let mut calls = function.calls.iter().filter(given).filter(|call| is_between(target, call));
    calls.any(|call| !HARMLESS.contains(&call.callee.as_str()))
}

/// Does somebody else have the file?
fn is_seen_by_others(target: &Target<'_>, sides: &Sides, body: &Bodies<'_>) -> bool {
    let function = &target.function;
    let Some(made) = maker(target).filter(|made| matches!(made.callee.as_str(), "fopen" | "fopen64" | "fdopen")) else {
        return false;
    };
    let Some(file) = made.args.first().map(|arg| function.text(arg.span)) else { return false };
    if SHARED.iter().any(|name| file.contains(name)) || made.callee == "fdopen" && file.starts_with("dup") {
        return true;
    }
    if made.callee == "fdopen" {
        return false;
    }
    if file.starts_with('"') && count(&function.file.bytes, file.as_bytes()) > 1 {
        return true;
    }
    let others = opens(function, sides, &file, &|call| call.span == made.span);
    let Some(at) = parameter(function, &file) else { return others };
    others
        || sides.callers(&function.name).any(|caller| {
            let Some(caller) = body(caller) else { return false };
            caller.calls.iter().filter(|call| call.callee == function.name).any(|call| {
                let given = call.args.get(at).map(|arg| caller.text(arg.span));
                given.is_some_and(|file| opens(&caller, sides, &file, &|call| call.callee == function.name))
            })
        })
}

/// Does the function give the file's name to somebody who opens it, apart from one call?
fn opens(function: &FunctionSource, sides: &Sides, file: &str, apart: &dyn Fn(&Call) -> bool) -> bool {
    function.calls.iter().filter(|call| !apart(call)).any(|call| {
        let named = |span: Span| function.text(span) == file;
        let given = call.args.iter().enumerate().filter(|(_, arg)| named(arg.span));
        given.into_iter().any(|(at, _)| sides.receivers(&call.callee, at).iter().any(|one| OPENING.contains(one)))
    })
}

/// The position of a parameter of this name.
fn parameter(function: &FunctionSource, name: &str) -> Option<usize> {
    let parameters = function.decls.iter().filter(|decl| decl.kind == caulk_source::DeclKind::Parameter);
    parameters.into_iter().position(|decl| decl.name == name)
}

fn count(text: &[u8], word: &[u8]) -> usize {
    text.windows(word.len()).filter(|part| *part == word).count()
}

/// Has the function read from the stream until there was no more? Then whoever wrote to it has come to an end.
pub fn is_read_to_the_end(target: &Target<'_>) -> bool {
    let function = &target.function;
    let (Some(name), Some(sink)) = (&target.name, target.sink) else { return false };
    let end = function.stmt(sink).span;
    let reads = |span: Span| {
        let given = |call: &Call| call.args.iter().any(|arg| function.text(arg.span) == *name);
        let mut calls = function.calls.iter().filter(|call| span.covers(call.span));
        calls.any(|call| READING.contains(&call.callee.as_str()) && given(call))
    };
    let leaves = |body: Span| {
        let early = |kind: &StmtKind| matches!(kind, StmtKind::Break | StmtKind::Goto { .. } | StmtKind::IndirectGoto);
        function.stmts.iter().any(|stmt| body.covers(stmt.span) && early(&stmt.kind))
    };
    let alone = |cond: Span| !function.text(cond).contains("&&") && !function.text(cond).contains("||");
    function.stmts.iter().any(|stmt| match stmt.kind {
        StmtKind::While { cond, body } => {
            stmt.span.end <= end.start && reads(cond) && alone(cond) && !leaves(function.stmt(body).span)
        }
        _ => false,
    })
}
