//! What is not to be repaired, however safe a patch would be.

use caulk_findings::{Finding, Rule};
use caulk_source::{Call, DeclKind, FunctionSource, MacroUse, Span, StmtId, StmtKind};

use crate::assertions;
use crate::flushing;
use crate::lasting;
use crate::sides::{LOCKS, SPLITS, Sides};
use crate::target::Target;

const MEANT: &[&str] = &[
    "intention",
    "deliberate",
    "on purpose",
    "by design",
    "never free",
    "never be free",
    "never releas",
    "not freed",
    "don't free",
    "do not free",
    "must not be freed",
    "not be freed",
    "ok to leak",
    "fine to leak",
    "okay to leak",
    "leak is ok",
    "leak is fine",
    "leak is harmless",
    "we leak",
    "leak it",
    "leak this",
    "let it leak",
    "meant to leak",
    "just to leak",
    "just leak",
    "leaks on purpose",
    "leaked on",
    "lives until exit",
    "lives forever",
    "kept until",
    "kept open",
    "keep it open",
    "stays open",
    "no need to free",
    "no need to close",
    "when the process ex",
    "at process exit",
];

pub const LOCKING: &[&str] = &["flock", "lockf", "lockf64", LOCKS];
const BINDING: &[&str] = &["bind"];
const PAIRED: &[&str] = &["pipe", "pipe2", "socketpair", "openpty"];
const FORKING: &[&str] = &["fork", "vfork", "clone", "posix_spawn", "posix_spawnp", "forkpty"];
/// Those of them whose children are not followed.
const UNFOLLOWED: &[&str] = &["clone"];
const STANDARD: &[&str] = &["STDIN_FILENO", "STDOUT_FILENO", "STDERR_FILENO", "stdin", "stdout", "stderr"];

/// Functions that return twice: what variables that were set in between hold then is not known.
const COMING_BACK: &[&str] = &["setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "getcontext"];

/// How far a pointer is followed that may be written down as a text.
const TEXT_DEPTH: u32 = 3;

/// The definition of a function of the program.
pub type Bodies<'a> = dyn Fn(&str) -> Option<FunctionSource> + 'a;

/// The reason, for the user.
pub fn reason(target: &Target<'_>, sides: &Sides, body: &Bodies<'_>) -> Option<String> {
    let Target { finding, function, .. } = target;
    if finding.rule == Rule::LeakAtExit {
        return Some("the process ends here, and the system takes everything back".into());
    }
    if finding.at_exit.is_some() {
        return Some("it is lost just before the process ends, and the system takes everything back".into());
    }
    if says_meant(target) {
        return Some("a comment says that it is meant".into());
    }
    let leak = matches!(finding.rule, Rule::MemoryLeak | Rule::ResourceLeak);
    if function.calls.iter().any(|call| COMING_BACK.contains(&call.callee.as_str())) {
        return Some("a jump comes back to it, and its variables may be what they were before".into());
    }
    if finding.rule == Rule::MemoryLeak && is_shown_to_others(target, sides) {
        return Some("it lay where another thread or a signal handler may have found it".into());
    }
    if leak && is_marked(target) {
        return Some("it is marked as a leak that is meant".into());
    }
    if !leak && assertions::has_any(function) {
        return Some(assertions::may_be_left_out(&function.name));
    }
    if leak
        && sides.splits_elsewhere()
        && target
            .name
            .as_ref()
            .is_some_and(|name| function.calls.iter().any(|call| given_to_any(function, name, sides, call, &[SPLITS])))
    {
        return Some("`strtok` may go on in it elsewhere".into());
    }
    if leak && target.name.as_ref().is_some_and(|name| is_told_as_text(function, name, body, TEXT_DEPTH)) {
        return Some("who reads the text has its address".into());
    }
    if finding.rule == Rule::ResourceLeak {
        if finding.release == "pclose" && !(is_read_from(target) && flushing::is_read_to_the_end(target)) {
            return Some("whoever closes it waits for the program at the other end".into());
        }
        if is_other_end_needed(target, sides) {
            return Some("somebody may be at the other end".into());
        }
        if finding.release == "fclose" && is_in_a_child(target, sides) {
            return Some("a child has what is in its buffer, too".into());
        }
        if let Some(reason) = flushing::is_noticed(target, sides, body) {
            return Some(reason);
        }
        if finding.release == "dlclose" {
            return Some("the library's code may be in use".into());
        }
        if holds_lock(target, sides) {
            return Some("a lock is held through it".into());
        }
        if holds_name(target, sides) {
            return Some("while it is open, nobody else can have its address".into());
        }
        if standard_stream(finding, function) {
            return Some("it is a stream over a standard descriptor".into());
        }
        if may_stand_in(target) {
            return Some("it may be opened to be a standard descriptor".into());
        }
        if let Some(reason) = lasting::reason(target, sides, body) {
            return Some(reason);
        }
        if is_known_by_number(target) || is_copied(target) {
            return Some("somebody else may need what it stands for".into());
        }
    }
    None
}

/// `snprintf(handle, size, "%p", p)`, here or in a function that is given it: who reads the text has the block again.
fn is_told_as_text(function: &FunctionSource, name: &str, body: &Bodies<'_>, depth: u32) -> bool {
    let names = spelled_anew(function, name);
    function.calls.iter().any(|call| {
        let format = call.args.iter().position(|arg| {
            let text = function.text(arg.span);
            text.contains("%p") || text.contains("PTR")
        });
        let is_given =
            |arg: &caulk_source::Argument| names.iter().any(|(name, _)| function.file.mentions(arg.span, name));
        let writes = || call.callee.contains("printf") && !is_shown(&call.callee) || writes_text(call, body);
        if let Some(at) = format
            && call.args[at + 1..].iter().any(is_given)
            && writes()
        {
            return true;
        }
        // `"%lx", (unsigned long)p`: as a number, by whatever format.
        let is_number = |arg: &caulk_source::Argument| {
            let text = function.text(arg.span);
            names.iter().any(|(name, number)| *number && text == *name || is_cast_to_number(&text, name))
        };
        if call.args.iter().any(is_number) && writes() {
            return true;
        }
        let Some(at) = call.args.iter().position(|arg| function.text(arg.span) == name) else { return false };
        let callee = if depth > 0 { body(&call.callee) } else { None };
        callee.is_some_and(|callee| {
            let parameter = callee.decls.iter().filter(|decl| decl.kind == DeclKind::Parameter).nth(at);
            parameter.is_some_and(|parameter| is_told_as_text(&callee, &parameter.name, body, depth - 1))
        })
    })
}

/// The name itself, and variables that are set to it: whether as numbers.
fn spelled_anew(function: &FunctionSource, name: &str) -> Vec<(String, bool)> {
    let mut names = vec![(name.to_owned(), false)];
    let set = |text: String| {
        let number = is_cast_to_number(&text, name);
        (number || text == name || text.starts_with('(') && text.ends_with(&format!("){name}"))).then_some(number)
    };
    for decl in function.decls.iter() {
        if let Some(number) = decl.init.and_then(|init| set(function.text(init))) {
            names.push((decl.name.clone(), number));
        }
    }
    for assign in &function.assigns {
        if let Some(number) = set(function.text(assign.rhs)) {
            names.push((function.text(assign.lhs), number));
        }
    }
    names
}

/// `(uintptr_t)p`
fn is_cast_to_number(text: &str, name: &str) -> bool {
    let before = text.strip_suffix(name).map(str::trim_end);
    let inside = before.and_then(|before| before.strip_prefix('(')?.strip_suffix(')'));
    inside.is_some_and(|inside| !inside.contains('*') && (inside.contains("long") || inside.contains("_t")))
}

fn is_shown(callee: &str) -> bool {
    matches!(callee, "printf" | "vprintf" | "fprintf" | "vfprintf" | "__printf_chk" | "__fprintf_chk")
}

/// A function of the program that writes what it is given into a text, and does not show that.
fn writes_text(call: &Call, body: &Bodies<'_>) -> bool {
    let Some(callee) = body(&call.callee) else { return false };
    let writes = |call: &Call| matches!(call.callee.as_str(), "vsprintf" | "vsnprintf" | "vasprintf");
    let shows =
        |call: &Call| matches!(call.callee.as_str(), "fprintf" | "fputs" | "fwrite" | "write" | "puts" | "syslog");
    callee.calls.iter().any(writes) && !callee.calls.iter().any(shows)
}

/// `popen(command, "r")`.
fn is_read_from(target: &Target<'_>) -> bool {
    let (function, place) = (&target.function, &target.finding.source);
    let made = function.calls_at(place.line, place.column).into_iter().last().map(|made| &function.calls[made]);
    made.and_then(|made| made.args.get(1)).is_some_and(|mode| function.text(mode.span).starts_with("\"r"))
}

/// One end of a pipe, where somebody else may have the other one by then: a child, or whoever it was stored for.
/// A callee that forks may fail when its child runs already; a child that nobody has told of the pipe, and that does not come
/// back here, has both ends and does not know.
fn is_other_end_needed(target: &Target<'_>, sides: &Sides) -> bool {
    let (function, place) = (&target.function, &target.finding.source);
    let made = function.calls_at(place.line, place.column).into_iter().last().map(|made| &function.calls[made]);
    let is_pair = |made: &&Call| PAIRED.contains(&made.callee.as_str()) || sides.calls_any(&made.callee, PAIRED);
    let Some(made) = made.filter(is_pair) else { return false };
    let before = target.sink.map_or(function.span.end, |sink| function.stmt(sink).span.start);
    let ends: Vec<String> =
        made.args.iter().map(|arg| function.text(arg.span).trim_start_matches('&').to_owned()).collect();
    let is_end = |text: String| ends.iter().any(|end| text.split('[').next() == Some(end.as_str()));
    // Who was forked before the pipe was there has no end of it, unless the function comes round again.
    let first = if may_come_again(function, made) { function.span.start } else { made.span.end };
    let between = |span: Span| span.start >= first && span.end <= before;
    let told = is_told(function, made, &ends, before);
    let forks = |call: &Call| match FORKING.contains(&call.callee.as_str()) {
        true => !has_failed(target, call),
        false if !told && call.direct => {
            sides.children.comes_back(&call.callee) || sides.calls_any(&call.callee, UNFOLLOWED)
        }
        false => sides.calls_any(&call.callee, FORKING),
    };
    let mut calls = function.calls.iter().filter(|call| between(call.span));
    let mut stores = function.assigns.iter().filter(|assign| between(assign.span));
    calls.any(forks) || stores.any(|assign| is_end(function.text(assign.rhs)))
}

/// Whether anybody was given the ends of a pair, or its address, before a place. Whatever closes one of them may.
fn is_told(function: &FunctionSource, made: &Call, ends: &[String], before: usize) -> bool {
    let names = |span: Span| {
        let is_named = |end: &String| {
            let name = end.split('[').next().unwrap_or(end);
            match function.variable_at(name, made.span.start) {
                // A member may have the same name. What a macro does with it is not seen here.
                Some(decl) => {
                    let in_macro =
                        |used: &MacroUse| span.overlaps(used.span) && function.file.mentions(used.span, name);
                    function.refs.iter().any(|used| used.decl == decl && span.covers(used.span))
                        || function.macros.iter().any(in_macro)
                }
                None => function.file.mentions(span, name),
            }
        };
        span.end <= before && ends.iter().any(is_named)
    };
    let tells = |call: &Call| call.span != made.span && call.callee != "close" && names(call.span);
    function.calls.iter().any(tells)
        || function.decls.iter().any(|decl| decl.init.is_some_and(names))
        || function.assigns.iter().any(|assign| assign.rhs != made.span && names(assign.rhs))
}

/// Whether a call stands in a loop, or behind a label that a later jump leads to.
fn may_come_again(function: &FunctionSource, call: &Call) -> bool {
    let is_loop = |at: StmtId| {
        matches!(function.stmt(at).kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. })
    };
    let goes_back = |stmt: &caulk_source::Stmt| match &stmt.kind {
        StmtKind::Goto { label } => function.labels().any(|(at, name)| {
            name == label && function.stmt(at).span.start < call.span.start && stmt.span.start > call.span.start
        }),
        StmtKind::IndirectGoto | StmtKind::Other => true,
        _ => false,
    };
    let own = function.stmt(call.stmt);
    let inside = matches!(own.kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. });
    inside || function.ancestors(call.stmt).any(is_loop) || function.stmts.iter().any(goes_back)
}

/// A stream behind `fork`: who of the two closes it first writes the buffer, and moves on in the file, for both.
fn is_in_a_child(target: &Target<'_>, sides: &Sides) -> bool {
    let function = &target.function;
    let forks = |call: &&Call| FORKING.contains(&call.callee.as_str()) || sides.children.comes_back(&call.callee);
    let mut calls = function.calls.iter().filter(|call| flushing::is_between(target, call));
    calls.any(|call| forks(&call) && !has_failed(target, call))
}

/// The finding's end is under a test that shows that a call has failed: `if (pid < 0)`, `case -1:`.
fn has_failed(target: &Target<'_>, call: &Call) -> bool {
    let function = &target.function;
    let Some(sink) = target.sink else { return false };
    let kept =
        function.assigns.iter().find(|assign| assign.rhs.covers(call.span)).map(|assign| function.text(assign.lhs));
    let made = function.decls.iter().find(|decl| decl.init.is_some_and(|init| init.covers(call.span)));
    let name = kept.or_else(|| made.map(|decl| decl.name.clone()));
    if is_failed_case(function, sink, call) {
        return true;
    }
    let Some(name) = name else { return false };
    let failures = [format!("{name} < 0"), format!("{name} == -1")];
    function.ancestors(sink).any(|at| match function.stmt(at).kind {
        StmtKind::If { cond, then, .. } => {
            let text = function.text(cond);
            let within = cond.covers(call.span) && (text.ends_with(") < 0") || text.ends_with(") == -1"));
            function.stmt(then).span.covers(function.stmt(sink).span) && (within || failures.contains(&text))
        }
        _ => false,
    })
}

/// `switch (fork()) { case -1: …`, the call being all that is asked, and no other case running into this one.
fn is_failed_case(function: &FunctionSource, sink: StmtId, call: &Call) -> bool {
    let asked = |at: StmtId| match function.stmt(at).kind {
        StmtKind::Switch { cond, body } => {
            let kept = function.assigns.iter().find(|assign| cond.covers(assign.span) && !assign.compound);
            let asks = kept.map_or(is_all(function, cond, call.span), |assign| {
                is_all(function, cond, assign.span) && is_all(function, assign.rhs, call.span)
            });
            asks.then_some(body)
        }
        _ => None,
    };
    let Some(body) = function.ancestors(sink).find_map(asked) else { return false };
    let StmtKind::Compound { items } = &function.stmt(body).kind else { return false };
    let inside = function.stmt(sink).span;
    let Some(at) = items.iter().position(|item| function.stmt(*item).span.covers(inside)) else { return false };
    let is_label =
        |item: &StmtId| matches!(function.stmt(*item).kind, StmtKind::Case { .. } | StmtKind::Default { .. });
    let Some(first) = items[..=at].iter().rposition(is_label) else { return false };
    let failed = |item: StmtId| {
        let StmtKind::Case { value, body } = function.stmt(item).kind else { return false };
        let other = body
            .is_some_and(|body| matches!(function.stmt(body).kind, StmtKind::Case { .. } | StmtKind::Default { .. }));
        function.text(value) == "-1" && !other
    };
    // Labels in the middle of the case are come to from elsewhere.
    let joined = items[first..=at].iter().any(|item| {
        let span = function.stmt(*item).span;
        function.labels().any(|(label, _)| span.covers(function.stmt(label).span))
    });
    let before = first.checked_sub(1).map(|before| &function.stmt(items[before]).kind);
    let left = matches!(before, None | Some(StmtKind::Return { .. } | StmtKind::Break | StmtKind::Goto { .. }));
    failed(items[first]) && left && !joined
}

/// Whether a piece of text is nothing but another one, and brackets around it.
fn is_all(function: &FunctionSource, whole: Span, part: Span) -> bool {
    let around = [Span::new(whole.start, part.start), Span::new(part.end, whole.end)];
    let bracket = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'(' | b')');
    whole.covers(part) && around.iter().all(|span| function.file.slice(*span).iter().all(bracket))
}

fn says_meant(target: &Target<'_>) -> bool {
    let function = &target.function;
    let places = target.source.into_iter().chain(target.sink).collect::<Vec<_>>();
    let comments = places.iter().flat_map(|stmt| {
        let span = function.stmt(*stmt).span;
        function.comment_near(span.start)
    });
    // In a small block of its own, any comment may speak of it.
    let lines = |block: &caulk_source::StmtId| {
        let span = function.stmt(*block).span;
        function.file.line_of(span.end) - function.file.line_of(span.start)
    };
    let block = target.source.map(|source| function.enclosing_block(source));
    let block = block.filter(|block| *block != function.body && lines(block) < 30);
    let around = block.into_iter().flat_map(|block| function.comments_beside(function.stmt(block).span));
    let comments = comments.chain(around);
    comments.map(|comment| comment.to_ascii_lowercase()).any(|comment| MEANT.iter().any(|word| comment.contains(word)))
}

/// `UNLEAK(p);`, `__lsan_ignore_object(p);`: the author tells those who look for leaks.
fn is_marked(target: &Target<'_>) -> bool {
    const MARKS: &[&str] = &["leak", "lsan_ignore"];
    let function = &target.function;
    let Some(name) = &target.name else { return false };
    let marks = |called: &str| MARKS.iter().any(|mark| called.to_ascii_lowercase().contains(mark));
    let is_it = |span: caulk_source::Span| function.text(span).trim_start_matches('&') == name.as_str();
    function.macros.iter().any(|used| marks(&used.name) && used.args.iter().any(|arg| is_it(*arg)))
        || function.calls.iter().any(|call| marks(&call.callee) && call.args.iter().any(|arg| is_it(arg.span)))
}

/// Does the block lie in a global variable for a while? Who runs beside the function may have read that; who reads and
/// writes it in one is sure to be there.
fn is_shown_to_others(target: &Target<'_>, sides: &Sides) -> bool {
    let function = &target.function;
    let Some(name) = &target.name else { return false };
    let names = spelled_anew(function, name);
    let is_it = |text: &str| names.iter().any(|(name, _)| name == text);
    let exchanges =
        |called: &str| called.starts_with("atomic_") || called.starts_with("__atomic") || called.starts_with("__sync");
    let is_local = |text: &str| {
        let own = |kind: DeclKind| matches!(kind, DeclKind::Parameter | DeclKind::Local);
        function.decls.iter().any(|decl| own(decl.kind) && decl.name == crate::target::root(text))
    };
    let mut puts = function.assigns.iter().filter(|assign| is_it(&function.text(assign.rhs)));
    function.macros.iter().any(|used| exchanges(&used.name) && used.args.iter().any(|arg| is_it(&function.text(*arg))))
        || function
            .calls
            .iter()
            .any(|call| exchanges(&call.callee) && call.args.iter().any(|arg| is_it(&function.text(arg.span))))
        || sides.has_company() && puts.any(|assign| !is_local(&function.text(assign.lhs)))
}

fn holds_lock(target: &Target<'_>, sides: &Sides) -> bool {
    let Some(name) = &target.name else { return false };
    let function = &target.function;
    name.to_ascii_lowercase().contains("lock")
        || function.calls.iter().any(|call| given_to_any(function, name, sides, call, LOCKING))
}

/// A socket that is bound where the function does not say that it has failed: it may be there to be the only one.
fn holds_name(target: &Target<'_>, sides: &Sides) -> bool {
    let function = &target.function;
    let Some(name) = &target.name else { return target.sink.is_none() };
    let binds = |call: &Call| given_to_any(function, name, sides, call, BINDING);
    target.sink.is_none() || !lasting::is_failure(target) && function.calls.iter().any(binds)
}

/// Does the call hand what the finding is about to one of these functions, itself or through others?
pub fn given_to_any(function: &FunctionSource, name: &str, sides: &Sides, call: &Call, names: &[&str]) -> bool {
    let given = call.args.iter().enumerate().filter(|(_, arg)| function.file.mentions(arg.span, name));
    given.into_iter().any(|(at, _)| sides.receivers(&call.callee, at).iter().any(|one| names.contains(one)))
        || names.contains(&LOCKS) && locks(function, name, call)
}

fn locks(function: &FunctionSource, name: &str, call: &Call) -> bool {
    const ASKING: &[&str] = &["F_GET", "F_SETFL", "F_SETFD", "F_DUPFD", "F_OFD_GETLK", "F_SETPIPE", "F_ADD_SEALS"];
    let asks = |text: &str| ASKING.iter().any(|word| text.starts_with(word));
    let command = call.args.get(1).map(|arg| function.text(arg.span));
    matches!(call.callee.as_str(), "fcntl" | "fcntl64")
        && command.is_some_and(|command| {
            let given = || call.args.first().is_some_and(|arg| function.file.mentions(arg.span, name));
            command.contains("SETLK") || !asks(&command) && given()
        })
}

/// `while (fd < 3)`: who opens descriptors until the standard ones are taken wants them to stay. `dup2(fd, 1)`: if the
/// standard output was closed, `fd` may be it already.
fn may_stand_in(target: &Target<'_>) -> bool {
    let Target { finding, function, .. } = target;
    let Some(name) = target.name.as_ref().filter(|_| finding.release == "close") else { return false };
    let is_copied = |call: &Call| {
        matches!(call.callee.as_str(), "dup" | "dup2" | "dup3")
            && call.args.first().is_some_and(|arg| function.text(arg.span) == name.as_str())
    };
    let makes_room = |call: &Call| {
        matches!(call.callee.as_str(), "close" | "fclose")
            && call.args.first().is_some_and(|arg| is_standard(&function.text(arg.span)))
    };
    if function.calls.iter().any(|call| is_copied(call) || makes_room(call)) {
        return true;
    }
    let file = &function.file;
    let tokens = file.tokens_in(function.span);
    tokens.iter().enumerate().filter(|(_, token)| file.slice(token.span) == name.as_bytes()).any(|(at, _)| {
        let compared = tokens.get(at + 1).is_some_and(|token| token.is(b'<') || token.is(b'>'));
        let with = tokens[at + 1..].iter().skip(1).find(|token| !token.is(b'=')).map(|token| file.slice(token.span));
        compared && with.is_some_and(|with| matches!(with, b"1" | b"2" | b"3") || with.ends_with(b"_FILENO"))
    })
}

fn is_standard(text: &str) -> bool {
    matches!(text.trim(), "0" | "1" | "2") || STANDARD.iter().any(|name| text.contains(name))
}

/// `connections[fd].open = 1;`, or the number goes into a text, or the descriptor of a stream to somebody else.
fn is_known_by_number(target: &Target<'_>) -> bool {
    let function = &target.function;
    let Some(name) = &target.name else { return false };
    let file = &function.file;
    let tokens = file.tokens_in(function.span);
    let is_index = target.finding.release == "close"
        && tokens
            .windows(3)
            .any(|around| around[0].is(b'[') && file.slice(around[1].span) == name.as_bytes() && around[2].is(b']'));
    let given = |call: &Call| call.args.iter().any(|arg| function.text(arg.span) == name.as_str());
    let written = |call: &Call| call.callee.contains("sprintf") || call.callee.contains("snprintf");
    let formatted = |call: &Call| (written(call) || call.callee.ends_with("asprintf")) && given(call);
    let inherits = |call: &Call| {
        call.callee == "fcntl"
            && given(call)
            && call.args.get(1).is_some_and(|arg| function.text(arg.span).contains("SETFD"))
    };
    let leaves = |call: &Call| {
        let assigned = function.assigns.iter().any(|assign| assign.rhs == call.span);
        let returned =
            matches!(function.stmt(call.stmt).kind, StmtKind::Return { value: Some(value) } if value == call.span);
        matches!(call.callee.as_str(), "fileno" | "dirfd") && given(call) && (assigned || returned)
    };
    let number = target.finding.release == "close";
    is_index || function.calls.iter().any(|call| number && (formatted(call) || inherits(call)) || leaves(call))
}

/// A resource that lies in a struct is copied with it: `*out = stream;`.
fn is_copied(target: &Target<'_>) -> bool {
    let function = &target.function;
    let Some(name) = &target.name else { return false };
    let structs = function.decls.iter().any(|decl| {
        decl.name == *name
            && !decl.canonical_type.contains(['*', '['])
            && !crate::target::is_number(&decl.canonical_type)
    });
    let address = format!("&{name}");
    let moves = |call: &Call| {
        matches!(call.callee.as_str(), "memcpy" | "memmove")
            && call.args.get(1).is_some_and(|arg| function.text(arg.span) == address)
    };
    let whole = format!("*{name}");
    let taken = function
        .assigns
        .iter()
        .map(|assign| function.text(assign.rhs))
        .any(|rhs| rhs == whole || structs && rhs == *name);
    taken || structs && function.calls.iter().any(moves)
}

fn standard_stream(finding: &Finding, function: &FunctionSource) -> bool {
    let calls = function.calls_at(finding.source.line, finding.source.column);
    calls.iter().map(|id| &function.calls[*id]).any(|call| {
        matches!(call.callee.as_str(), "fdopen" | "fdopendir" | "gzdopen")
            && call.args.first().is_some_and(|arg| is_standard(&function.text(arg.span)))
    })
}
