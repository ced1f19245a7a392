//! Code that only other configurations have. The analysis does not see it, so a new release must keep clear of it.
//!
//! ```c
//! #ifdef CACHE
//!     cache = p;              // not compiled here
//! #endif
//!     free(p);                // new: right without CACHE, wrong with it
//!     return 0;
//! ```
//!
//! # Known imprecision
//! - It is a matter of words: a call that only prints the pointer speaks against the release, too, unless compiled code has
//!   a call of the same function that is given it.
//! - Of callees, only those are looked into that the function itself gives the pointer to; of macros, only those
//!   that the same file defines.

use caulk_ir::Program;
use caulk_source::{DeclKind, FileText, FunctionSource, Span, StmtKind, Token, TokenKind};

use crate::change::{self, Candidate};
use crate::decided;
use crate::strategies::Bench;
use crate::target::root;

/// Words that begin a statement, but no declaration.
const NO_TYPES: &[&[u8]] = &[b"return", b"goto", b"else", b"do", b"case", b"extern"];

/// The language itself says what these are, whatever a file has for compilers that do not know them.
const STANDARD: &[&str] = &["NULL", "EOF", "true", "false"];

const JUMPS: &[&str] = &["return", "goto", "break", "continue"];

/// Why the candidate's releases may be wrong in a configuration that was not analysed.
pub fn speaks_against(bench: &Bench<'_>, candidate: &Candidate) -> Option<String> {
    let target = bench.target;
    let function = &target.function;
    if candidate.file != function.file.path || candidate.everywhere {
        return None;
    }
    let holders = target.holders();
    // A release that goes must leave one that every configuration has.
    let deletes = candidate.edits.edits().iter().any(|edit| edit.span.start < edit.span.end && edit.text.is_empty());
    let branches = function.file.regions.branches_beside(function.span, function.span.end);
    let mentioned = |name: &String| branches.iter().any(|branch| function.file.mentions(*branch, root(name)));
    if let Some(name) = holders.iter().find(|name| deletes && mentioned(name)) {
        return Some(format!("`{}` is not the same in every configuration", root(name)));
    }
    for (argument, at) in change::released(&candidate.edits) {
        // `#ifdef LOG char *text = …; #endif`: where there is no such variable, it cannot be released.
        let declared = function.variable_at(root(&argument), at).map(|decl| function.decls[decl].span.start);
        if declared.is_some_and(|declared| !function.file.regions.is_under(at, declared)) {
            return Some(format!("`{}` is not there in every configuration", root(&argument)));
        }
        let others = function.file.regions.branches_beside(function.span, at);
        for branch in others.into_iter().filter(|branch| !is_compiled(function, *branch)) {
            // The block may go by another name there than the one by which it is released.
            let mut names = std::iter::once(&argument).chain(&holders);
            let lent = |tokens: &[Token], place: usize, name: &str| is_only_lent(bench, tokens, place, name);
            if let Some(name) = names.find(|name| concerns(function, branch, name, at, &lent)) {
                return Some(format!("another configuration has more code with `{}`", root(name)));
            }
        }
    }
    None
}

/// What a callee that is given the block does with it in another configuration, or the one that makes it.
pub fn in_callees(bench: &Bench<'_>) -> Option<String> {
    let target = bench.target;
    let function = &target.function;
    let holders = target.holders();
    let place = &target.finding.source;
    let made = function.calls_at(place.line, place.column);
    let concerned = |span: Span| {
        let makes = || made.iter().any(|id| span.covers(function.calls[*id].span));
        let given = |call: &caulk_source::Call| call.args.iter().any(|arg| holders.contains(&function.text(arg.span)));
        makes() || function.calls.iter().any(|call| call.span == span && given(call))
    };
    let macros = function
        .macros
        .iter()
        .filter(|used| concerned(used.span) || used.args.iter().any(|arg| holders.contains(&function.text(*arg))));
    let callees = function.calls.iter().filter(|call| concerned(call.span)).map(|call| &call.callee);
    for name in macros.map(|used| &used.name).chain(callees) {
        // What is defined where this function is not compiled is nothing that it could call.
        let here = definitions(&function.file, name);
        let meant = here.into_iter().filter(|at| !function.file.regions.never_together(*at, function.span.start));
        let elsewhere = || {
            let body = bench.workshop.varying_function(name, bench.patched);
            let body = body.filter(|body| body.file.path != function.file.path);
            body.map_or(0, |body| definitions(&body.file, name).len())
        };
        if meant.count().max(elsewhere()) > 1 {
            return Some(format!("`{name}` is something else in another configuration"));
        }
    }
    let program: &Program = &bench.survey.program;
    if let Some(reason) = by_constant(program, function, &holders, false) {
        return Some(reason);
    }
    for (id, call) in function.calls.iter_ids().filter(|(_, call)| call.direct) {
        let given = |arg: &caulk_source::Argument| holders.contains(&function.text(arg.span));
        let positions: Vec<usize> = (0..call.args.len()).filter(|at| given(&call.args[*at])).collect();
        let is_made = made.contains(&id);
        if positions.is_empty() && !is_made {
            continue;
        }
        let Some(body) = bench.workshop.function_named(&call.callee, bench.patched) else { continue };
        let parameters: Vec<&String> =
            body.decls.iter().filter(|decl| decl.kind == DeclKind::Parameter).map(|decl| &decl.name).collect();
        let mut names: Vec<String> = positions.iter().filter_map(|at| parameters.get(*at).copied().cloned()).collect();
        if is_made {
            names.extend(returned(&body));
        }
        let branches = body.file.regions.branches_beside(body.span, body.span.end);
        let other = |branch: &&Span| !is_compiled(&body, **branch);
        let keeps = |branch: &Span| names.iter().any(|name| concerns(&body, *branch, name, usize::MAX, &NEVER));
        if branches.iter().filter(other).any(keeps) {
            return Some(format!("`{}` does more with it in another configuration", call.callee));
        }
        if let Some(reason) = by_constant(program, &body, &names, is_made) {
            return Some(reason);
        }
    }
    None
}

/// `if (KEEP_LAST) last = p;`, where `KEEP_LAST` is a macro that other configurations define otherwise: the code is there, and
/// is not run here.
fn by_constant(program: &Program, function: &FunctionSource, names: &[String], makes: bool) -> Option<String> {
    let ifs = function.stmts.iter().filter_map(|stmt| match stmt.kind {
        StmtKind::If { cond, .. } => Some((cond, stmt.span)),
        _ => None,
    });
    for (cond, whole) in ifs {
        let used =
            function.macros.iter().filter(|used| cond.covers(used.span) && !STANDARD.contains(&used.name.as_str()));
        let decides = |span: Span, name: &str| is_constant(function, cond, span) || is_configured(&function.file, name);
        let Some(used) = used.into_iter().find(|used| decides(used.span, &used.name)) else { continue };
        let rest = Span::new(cond.end, whole.end);
        // The one that makes the block may get it from elsewhere there.
        let returns = |stmt: &caulk_source::Stmt| {
            rest.covers(stmt.span) && matches!(stmt.kind, StmtKind::Return { value: Some(_) })
        };
        let another = makes && function.stmts.iter().any(returns);
        let concerned = another || names.iter().any(|name| concerns(function, rest, name, usize::MAX, &NEVER));
        if concerned && !decided::is_open(program, function, cond) {
            return Some(format!("`{}` is something else in another configuration", used.name));
        }
    }
    None
}

/// Is the operand of `&&` and `||` in which a macro stands made of constants only?
fn is_constant(function: &FunctionSource, cond: Span, used: Span) -> bool {
    let file = &function.file;
    let tokens = file.tokens_in(cond);
    let is_joint = |at: &usize| {
        let same = |punct: u8| tokens[*at].is(punct) && tokens.get(at + 1).is_some_and(|next| next.is(punct));
        same(b'&') || same(b'|')
    };
    let joints: Vec<usize> = (0..tokens.len()).filter(is_joint).collect();
    let start = joints
        .iter()
        .rev()
        .find(|at| tokens[**at].span.end <= used.start)
        .map_or(cond.start, |at| tokens[*at].span.end);
    let end =
        joints.iter().find(|at| tokens[**at].span.start >= used.end).map_or(cond.end, |at| tokens[*at].span.start);
    let operand = Span::new(start, end);
    !function.refs.iter().any(|read| operand.covers(read.span))
        && !function.calls.iter().any(|call| operand.covers(call.span))
}

/// Does the file define the macro more than once, or under a condition?
fn is_configured(file: &FileText, name: &str) -> bool {
    let (mut depth, mut found) = (0usize, 0usize);
    for line in file.bytes.split(|byte| *byte == b'\n') {
        let Some(line) = line.trim_ascii_start().strip_prefix(b"#").map(<[u8]>::trim_ascii_start) else { continue };
        if line.starts_with(b"if") {
            depth += 1;
        } else if line.starts_with(b"endif") {
            depth = depth.saturating_sub(1);
        } else if let Some(rest) = line.strip_prefix(b"define").map(<[u8]>::trim_ascii_start) {
            let ends = |rest: &[u8]| !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            if rest.strip_prefix(name.as_bytes()).is_some_and(ends) {
                found += 1 + depth.min(1);
            }
        }
    }
    found > 1
}

/// Where a file defines a function or macro, in whatever configuration.
fn definitions(file: &FileText, name: &str) -> Vec<usize> {
    let is_name = |line: &[u8]| {
        let rest = line.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
    };
    let defines = |line: &[u8]| {
        let directive = line.trim_ascii_start().strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
        let defined = directive.and_then(|line| line.strip_prefix(b"define")).map(<[u8]>::trim_ascii_start);
        defined.is_some_and(is_name)
    };
    let (mut found, mut start) = (Vec::new(), 0);
    for line in file.bytes.split_inclusive(|byte| *byte == b'\n') {
        found.extend(defines(line).then_some(start));
        start += line.len();
    }
    let tokens = file.tokens_in(Span::new(0, file.bytes.len()));
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        if token.is(b'{') {
            depth += 1;
        } else if token.is(b'}') {
            depth = depth.saturating_sub(1);
        } else if file.slice(token.span) == name.as_bytes() && depth == 0 && has_body(&tokens[at + 1..]) {
            found.push(token.span.start);
        }
    }
    found
}

/// `(…) {`
fn has_body(tokens: &[Token]) -> bool {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        if token.is(b'(') {
            depth += 1;
        } else if at == 0 {
            return false;
        } else if token.is(b')') {
            depth -= 1;
        }
        if depth == 0 {
            return tokens.get(at + 1).is_some_and(|next| next.is(b'{'));
        }
    }
    false
}

/// The variables that a function returns.
fn returned(body: &FunctionSource) -> Vec<String> {
    let values = body.stmts.iter().filter_map(|stmt| match stmt.kind {
        StmtKind::Return { value: Some(value) } => Some(body.text(value)),
        _ => None,
    });
    let names = values.map(|value| value.trim_matches(['(', ')', ' ']).to_owned());
    names.filter(|name| !name.is_empty() && name == root(name)).collect()
}

fn is_compiled(function: &FunctionSource, branch: Span) -> bool {
    function.stmts.iter().any(|stmt| branch.contains(stmt.span.start))
        || function.refs.iter().any(|used| branch.contains(used.span.start))
}

/// Whether the name at a place among tokens is only lent to a call there.
type Lent<'a> = dyn Fn(&[Token], usize, &str) -> bool + 'a;

const NEVER: fn(&[Token], usize, &str) -> bool = |_, _, _| false;

/// `n = wait_for(p, 0);` in code that is not compiled, where compiled code has `wait_for(p, limit)`, too: a function of the
/// program that keeps and releases nothing on any way through, whatever else it is given, and returns a small number.
fn is_only_lent(bench: &Bench<'_>, tokens: &[Token], place: usize, name: &str) -> bool {
    let (function, survey) = (&bench.target.function, bench.survey);
    let text = |at: usize| tokens.get(at).map(|token| function.file.slice(token.span));
    let is_end = |at: usize| tokens.get(at).is_some_and(|token| token.is(b',') || token.is(b')'));
    // Back to the bracket that the name stands in, counting the arguments before it.
    let (mut depth, mut argument, mut at) = (0usize, 0usize, place);
    loop {
        let Some(before) = at.checked_sub(1) else { return false };
        let token = &tokens[before];
        match () {
            () if token.is(b')') || token.is(b']') => depth += 1,
            () if token.is(b'(') && depth == 0 => break,
            () if token.is(b'(') || token.is(b'[') => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            () if token.is(b',') && depth == 0 => argument += 1,
            () if token.is(b';') || token.is(b'{') || token.is(b'}') => return false,
            () => {}
        }
        at = before;
    }
    let opens = at == place || tokens[place - 1].is(b',');
    let Some(callee) = at.checked_sub(2).and_then(text) else { return false };
    let given = |call: &&caulk_source::Call| {
        call.direct
            && call.callee.as_bytes() == callee
            && call.args.get(argument).is_some_and(|arg| function.text(arg.span) == name)
    };
    let Some(known) = function.calls.iter().find(given) else { return false };
    let is_number = matches!(known.result_type.as_str(), "int" | "unsigned int" | "_Bool" | "bool" | "void");
    opens && is_end(place + 1) && is_number && survey.borrowers.contains(&(known.callee.clone(), argument))
}

/// Code before the release may set, keep or release the pointer, unless it leaves then; code behind it must not even
/// look at it.
fn concerns(function: &FunctionSource, branch: Span, holder: &str, at: usize, lent: &Lent<'_>) -> bool {
    let file = &function.file;
    let (name, part) = (root(holder), holder.rsplit(['>', '.']).next().unwrap_or(holder));
    // `s->other` says nothing of `s->name`.
    let is_part = name == holder || file.mentions(branch, root(part));
    let tokens = file.tokens_in(branch);
    mentions(file, tokens, name).into_iter().any(|place| {
        let token = &tokens[place];
        let next = tokens.get(place + 1);
        let bare = next.is_none_or(|next| [b')', b',', b';', b'='].iter().any(|end| next.is(*end)));
        let is_jump = |token: &Token| JUMPS.iter().any(|jump| file.slice(token.span) == jump.as_bytes());
        let used = bare || is_part && (token.span.start > at || name != holder);
        let harmless = || token.span.start < at && lent(tokens, place, name);
        used && !harmless() && (token.span.start > at || !tokens[place..].iter().any(is_jump))
    })
}

/// Where the name stands, but for blocks that declare another variable of that name: `{ char *p; … }`.
fn mentions(file: &FileText, tokens: &[Token], name: &str) -> Vec<usize> {
    let (mut depth, mut own, mut found) = (0usize, None, Vec::new());
    for (place, token) in tokens.iter().enumerate() {
        if token.is(b'{') {
            depth += 1;
        } else if token.is(b'}') {
            depth = depth.saturating_sub(1);
            own = own.filter(|declared| *declared <= depth);
        } else if file.slice(token.span) == name.as_bytes() && own.is_none() {
            if depth > 0 && is_declared(file, tokens, place) {
                own = Some(depth);
            } else {
                found.push(place);
            }
        }
    }
    found
}

/// `char *p;`: nothing but words and stars between the start of the statement and the name.
fn is_declared(file: &FileText, tokens: &[Token], place: usize) -> bool {
    let is_start = |token: &&Token| token.is(b'{') || token.is(b'}') || token.is(b';');
    let Some(start) = tokens[..place].iter().rposition(|token| is_start(&token)) else { return false };
    let before = &tokens[start + 1..place];
    let is_type =
        |token: &Token| token.is(b'*') || token.kind == TokenKind::Word && !NO_TYPES.contains(&file.slice(token.span));
    let named = before.first().is_some_and(|token| token.kind == TokenKind::Word);
    let ends = tokens.get(place + 1).is_some_and(|next| [b';', b'=', b','].iter().any(|end| next.is(*end)));
    named && ends && before.iter().all(is_type)
}
