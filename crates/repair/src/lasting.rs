//! What lasts only as long as a resource is open, though nobody has its number or its name any more.
//!
//! ```c
//! int set_latency(int us) {
//!     int fd = open("/dev/cpu_dma_latency", O_WRONLY);
//!     …write(fd, &us, sizeof us)…
//!     return 0;                           // fd is lost, and the setting holds
//! }
//! ```
//!
//! Where the function says that it has failed, nobody counts on it.
//!
//! # Known imprecision
//! - Files are the same if they are named by the same expression, here, by a caller or in a variable. One whose name is put
//!   together in a buffer is taken for no other.

use std::collections::BTreeSet;

use caulk_source::{Call, DeclKind, FunctionSource, StmtKind};

use crate::refuse::{Bodies, LOCKING, given_to_any};
use crate::sides::Sides;
use crate::target::{Target, root};

/// Functions that open a file, and which argument is its path.
const OPENING: &[(&str, usize)] = &[
    ("open", 0),
    ("open64", 0),
    ("openat", 1),
    ("creat", 0),
    ("fopen", 0),
    ("fopen64", 0),
    ("mkfifo", 0),
    ("mknod", 0),
];

const WRITING: &[&str] = &["write", "pwrite", "pwrite64", "dprintf"];

/// Functions that write a number into a text.
const TELLING: &[&str] = &["sprintf", "snprintf", "asprintf", "__sprintf_chk", "__snprintf_chk", "__asprintf_chk"];

/// Why it must stay open, for the user.
pub fn reason(target: &Target<'_>, sides: &Sides, body: &Bodies<'_>) -> Option<String> {
    let (finding, function) = (target.finding, &target.function);
    let place = &finding.source;
    let made = function.calls_at(place.line, place.column).into_iter().last().map(|made| &function.calls[made]);
    let aliases = aliases(target);
    let locks = |call: &Call| {
        aliases.iter().any(|name| given_to_any(function, name, sides, call, LOCKING))
            || call.args.iter().any(|arg| is_whole(function, &function.text(arg.span), &aliases))
                && sides.calls_any(&call.callee, LOCKING)
    };
    if function.calls.iter().any(locks) {
        return Some("a lock is held through it".into());
    }
    let made_by = |name: &str| made.is_some_and(|made| made.callee == name);
    let first = made.and_then(|made| made.args.first()).map(|arg| function.text(arg.span));
    if made_by("signalfd") && first.is_some_and(|first| first.replace(' ', "") != "-1") {
        return Some("it may be the descriptor that was there before".into());
    }
    let tells = |call: &Call| aliases.iter().any(|name| given_to_any(function, name, sides, call, TELLING));
    if finding.release == "close" && (function.calls.iter().any(tells) || is_a_certain_number(target)) {
        return Some("somebody else may need what it stands for".into());
    }
    if made.is_some_and(|made| is_locked_elsewhere(function, made, sides, body)) {
        return Some("a lock on the same file ends when any descriptor of it is closed".into());
    }
    if is_failure(target) {
        return None;
    }
    if made_by("forkpty") {
        return Some("somebody may be at the other end".into());
    }
    let path = made.and_then(|made| path(function, made));
    let lasts = |call: &Call| {
        let given = call.args.iter().any(|arg| aliases.contains(&function.text(arg.span)));
        let second = call.args.get(1).map(|arg| function.text(arg.span)).unwrap_or_default();
        match call.callee.as_str() {
            "ioctl" => given && is_setting(&second),
            "setsockopt" => given && call.args.iter().any(|arg| is_joining(&function.text(arg.span))),
            "timer_settime" | "mq_notify" => given,
            name if WRITING.contains(&name) => {
                given && path.as_deref().is_some_and(|path| path.starts_with("\"/dev/") && path != "\"/dev/null\"")
            }
            _ => false,
        }
    };
    if function.calls.iter().any(lasts) {
        return Some("what was set by it may last only as long as it is open".into());
    }
    // `open(path, O_RDONLY)`, `open(path, O_WRONLY)`: who has both ends of a named pipe does not see the end of the file.
    let again = |call: &Call| made.is_some_and(|made| made.span != call.span) && self::path(function, call) == path;
    if path.is_some() && finding.release == "close" && function.calls.iter().any(again) {
        return Some("somebody may be at the other end".into());
    }
    None
}

/// Does the function say with its return that it has failed, or does it not return at all there?
pub fn is_failure(target: &Target<'_>) -> bool {
    let function = &target.function;
    let Some(sink) = target.sink else { return false };
    match function.stmt(sink).kind {
        StmtKind::Return { value: Some(value) } => {
            let text = function.text(value);
            let text = text.trim_matches(['(', ')', ' ']);
            text.starts_with('-') || matches!(text, "NULL" | "false" | "FALSE" | "INVALID_SOCKET")
        }
        StmtKind::Goto { .. } | StmtKind::Continue => true,
        _ => false,
    }
}

/// The names of what the finding is about: its own, those it was copied to, and variables in which it lies.
fn aliases(target: &Target<'_>) -> Vec<String> {
    let function = &target.function;
    let mut all: Vec<String> = target.name.iter().cloned().collect();
    let mut at = 0;
    while let Some(name) = all.get(at).cloned() {
        at += 1;
        let is_it = |text: &str| text == name || text.starts_with('(') && text.ends_with(&format!("){name}"));
        let mut found: Vec<String> = Vec::new();
        if root(&name) != name {
            found.push(root(&name).to_owned());
        }
        for decl in function.decls.iter().filter(|decl| decl.kind != DeclKind::Parameter) {
            let within = |init: caulk_source::Span| {
                let text = function.text(init);
                is_it(&text) || text.starts_with('{') && function.file.mentions(init, &name)
            };
            if decl.init.is_some_and(within) {
                found.push(decl.name.clone());
            }
        }
        for assign in function.assigns.iter().filter(|assign| is_it(&function.text(assign.rhs))) {
            found.push(function.text(assign.lhs));
        }
        for name in found {
            if !all.contains(&name) && all.len() < 16 {
                all.push(name);
            }
        }
    }
    all
}

/// `&guard`: whoever is given it has what lies in it.
fn is_whole(function: &FunctionSource, text: &str, aliases: &[String]) -> bool {
    let Some(name) = text.strip_prefix('&') else { return false };
    let number = |decl: &caulk_source::Decl| decl.name == name && !crate::target::is_number(&decl.canonical_type);
    aliases.iter().any(|alias| alias == name) && function.decls.iter().any(number)
}

/// `TUNSETIFF`, but not `TIOCGWINSZ`, and nothing that is done to a network's interface.
fn is_setting(request: &str) -> bool {
    const ASKING: &[&str] = &["GET", "_G", "READ", "SIOC", "TIOCG", "TCGET", "FIONBIO", "CLEX", "QUERY", "INFO"];
    !ASKING.iter().any(|part| request.contains(part))
}

fn is_joining(option: &str) -> bool {
    option.contains("MEMBERSHIP") || option.contains("JOIN")
}

/// `fd == 3`: others know it by that number.
fn is_a_certain_number(target: &Target<'_>) -> bool {
    let function = &target.function;
    let Some(name) = &target.name else { return false };
    let file = &function.file;
    let tokens = file.tokens_in(function.span);
    tokens.windows(4).any(|around| {
        file.slice(around[0].span) == name.as_bytes()
            && around[1].is(b'=')
            && around[2].is(b'=')
            && file.slice(around[3].span).first().is_some_and(u8::is_ascii_digit)
    })
}

/// The path that is opened, or made, as it is written there.
fn path(function: &FunctionSource, call: &Call) -> Option<String> {
    let (_, at) = OPENING.iter().find(|(name, _)| *name == call.callee)?;
    call.args.get(*at).map(|arg| function.text(arg.span))
}

/// Does the program lock as POSIX does, and open the same file in another place, too? Those locks end when the process
/// closes any descriptor of the file, whoever has it.
fn is_locked_elsewhere(function: &FunctionSource, made: &Call, sides: &Sides, body: &Bodies<'_>) -> bool {
    let Some(path) = path(function, made).filter(|_| !sides.locking().is_empty()) else { return false };
    let mine = meant(function, &path, sides, body, DEEPEST);
    let opening: BTreeSet<&str> = OPENING.iter().flat_map(|(name, _)| sides.callers(name)).collect();
    !mine.is_empty()
        && opening.into_iter().filter_map(body).any(|other| {
            let apart = |call: &&Call| other.name != function.name || call.span != made.span;
            let mut paths = other.calls.iter().filter(apart).filter_map(|call| self::path(&other, call));
            paths.any(|path| !meant(&other, &path, sides, body, DEEPEST).is_disjoint(&mine))
        })
}

/// So many steps from a name to what it stands for.
const DEEPEST: u32 = 4;

/// What an expression stands for, as it is written where it means the same everywhere: what callers give for a parameter,
/// what a variable is set to.
fn meant(function: &FunctionSource, text: &str, sides: &Sides, body: &Bodies<'_>, depth: u32) -> BTreeSet<String> {
    let own = |decl: &&caulk_source::Decl| decl.name == root(text) && !text.starts_with('"');
    let Some(decl) = function.decls.iter().filter(own).find(|decl| decl.kind != DeclKind::Global) else {
        return BTreeSet::from([text.to_owned()]);
    };
    if text != decl.name || depth == 0 {
        return BTreeSet::new();
    }
    let set = function.assigns.iter().filter(|assign| function.text(assign.lhs) == text).map(|assign| assign.rhs);
    let mut all = BTreeSet::new();
    for value in decl.init.into_iter().chain(set) {
        all.extend(meant(function, &function.text(value), sides, body, depth - 1));
    }
    let mut parameters = function.decls.iter().filter(|decl| decl.kind == DeclKind::Parameter);
    if let Some(at) = parameters.position(|parameter| parameter.name == text) {
        for caller in sides.callers(&function.name).filter_map(body) {
            for call in caller.calls.iter().filter(|call| call.callee == function.name) {
                let given = call.args.get(at).map(|arg| caller.text(arg.span));
                all.extend(given.into_iter().flat_map(|text| meant(&caller, &text, sides, body, depth - 1)));
            }
        }
    }
    all
}
