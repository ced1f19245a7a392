//! Which call releases a block here: what the author already calls, the program's own destructor, the family's.

use caulk_source::{DeclKind, FunctionSource, MacroUse, Origin, Stmt, StmtKind};

use crate::strategies::Bench;
use crate::survey::{Spot, Survey};
use crate::target::{is_structure, root};

/// Calls, as statements, that would release `expression` at `offset`, best first.
pub fn calls(bench: &Bench<'_>, expression: &str, offset: usize) -> Vec<String> {
    let (target, survey) = (bench.target, bench.survey);
    let function = &target.function;
    let mut found: Vec<String> = Vec::new();
    let mut push = |text: String| {
        if !found.contains(&text) {
            found.push(text);
        }
    };
    let is_left = |stmt: &Stmt| {
        stmt.span.start == offset
            && matches!(stmt.kind, StmtKind::Return { .. })
            && !function.file.mentions(stmt.span, root(expression))
    };
    let leaves = function.stmts.iter().any(is_left);
    for (callee, id) in function.releases_of(expression) {
        let call = &function.calls[id];
        let Some(further) = further(function, call, expression) else { continue };
        if !is_release(function, survey, call.span.start) {
            continue;
        }
        if let Some(name) = macro_around(function, call, expression, leaves)
            && is_deallocator(bench, &callee)
        {
            push(format!("{name}({expression});"));
        }
        let written = as_written(function, call);
        if function.callable_at(written, offset) && may_be_called(bench, &callee) {
            push(format!("{written}({expression}{further});"));
        }
    }
    // A resource that lies in a variable itself: `deflateEnd(&stream)`.
    let structure = is_structure(function, expression, offset);
    let address = format!("&{expression}");
    for (callee, id) in function.releases_of(&address).into_iter().filter(|_| structure) {
        let call = &function.calls[id];
        if call.args.len() == 1 && is_release(function, survey, call.span.start) && is_deallocator(bench, &callee) {
            push(format!("{callee}({address});"));
        }
    }
    // `list_free(&list)`, as the author writes it elsewhere: the variable is null afterwards, so only where it is not
    // looked at again.
    let pointer = |decl: caulk_source::DeclId| {
        let known = &function.decls[decl];
        matches!(known.kind, DeclKind::Local | DeclKind::Parameter) && known.canonical_type.ends_with('*')
    };
    let local = expression == root(expression) && function.variable_at(expression, offset).is_some_and(pointer);
    for (callee, id) in function.releases_of(&address).into_iter().filter(|_| leaves && local) {
        let call = &function.calls[id];
        let alone = call.args.len() == 1 && is_release(function, survey, call.span.start);
        if alone && function.callable_at(&callee, offset) && is_deallocator(bench, &callee) {
            push(format!("{callee}({address});"));
        }
    }
    for callee in destructors(function, survey, expression, offset) {
        if may_be_called(bench, &callee) {
            push(format!("{callee}({expression});"));
        }
    }
    for callee in untyped_destructors(bench, expression, offset) {
        push(format!("{callee}({expression});"));
    }
    let family = &target.finding.release;
    let counting = counting(bench);
    for callee in counting.iter().filter(|callee| function.callable_at(callee, offset) && is_deallocator(bench, callee))
    {
        push(format!("{callee}({expression});"));
    }
    if !counting.is_empty() {
        return spaced(function, found);
    }
    if let Some(spelling) = spelling(bench, family, leaves).filter(|_| !structure) {
        push(format!("{spelling}({expression});"));
    }
    if takes_one(function, family) && function.callable_at(family, offset) && !has_own_end(bench, expression, offset) {
        if structure {
            // A variable is no block; what lies in it has a name of its own.
            if target.finding.family != "memory" {
                push(format!("{family}(&{expression});"));
            }
        } else if is_const(function, expression, offset) {
            push(format!("{family}((void *){expression});"));
        } else {
            push(format!("{family}({expression});"));
        }
    }
    spaced(function, found)
}

/// The name by which the author calls a function: `#define text_free own_text_free`.
fn as_written<'a>(function: &'a FunctionSource, call: &'a caulk_source::Call) -> &'a str {
    let alone = |used: &&MacroUse| {
        used.outermost && used.args.is_empty() && used.span.start == call.span.start && used.span.end < call.span.end
    };
    let used = function.macros.iter().find(alone).filter(|used| function.text(used.span) == used.name);
    used.map_or(call.callee.as_str(), |used| used.name.as_str())
}

/// What a release is given behind the block, where that means the same everywhere: `, 0` of `list_free(list, 0)`.
fn further(function: &FunctionSource, call: &caulk_source::Call, expression: &str) -> Option<String> {
    let (first, rest) = call.args.split_first()?;
    let mut text = String::new();
    for argument in rest {
        let value = function.text(argument.span);
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        if !digits && value != "NULL" {
            return None;
        }
        text.push_str(", ");
        text.push_str(&value);
    }
    (function.text(first.span) == expression).then_some(text)
}

/// As the author writes calls.
fn spaced(function: &FunctionSource, calls: Vec<String>) -> Vec<String> {
    calls.into_iter().map(|call| as_the_author(function, call)).collect()
}

/// `free (p);` and `free( p );` for `free(p);`, where calls are written so.
pub fn as_the_author(function: &FunctionSource, mut call: String) -> String {
    if pads_arguments(function)
        && let Some((name, rest)) = call.split_once('(')
        && let Some(arguments) = rest.strip_suffix(");")
    {
        call = format!("{name}( {arguments} );");
    }
    if spaces_calls(function) { call.replacen('(', " (", 1) } else { call }
}

/// Functions of the program that release any block, and keep the books that whoever made this one keeps, too: where there
/// is one, the library's own release would leave them wrong.
pub fn counting(bench: &Bench<'_>) -> Vec<String> {
    let (function, place) = (&bench.target.function, &bench.target.finding.source);
    let Some(made) = function.calls_at(place.line, place.column).into_iter().last() else { return Vec::new() };
    let maker = &function.calls[made].callee;
    let is_untyped = |name: &&String| {
        let declared = function.names.top_level.get(*name);
        declared.is_some_and(|found| found.is_function && found.type_name == "void (void *)")
    };
    let sides = &bench.survey.sides;
    let fits = bench.survey.destructors.iter().filter(is_untyped).filter(|name| sides.keep_same_books(maker, name));
    // Not one that is called back for a structure of its own.
    let is_general = |name: &&String| {
        let body = bench.workshop.function_named(name, bench.patched);
        body.is_some_and(|body| !body.decls.iter().any(|decl| decl.canonical_type.starts_with("struct ")))
    };
    fits.filter(is_general).cloned().collect()
}

/// Whether the program makes and releases such blocks by functions of its own, and has given this one to others before it
/// comes here: it may have got parts, and the block alone is not what the author would release.
pub fn has_own_end(bench: &Bench<'_>, expression: &str, offset: usize) -> bool {
    let (function, place) = (&bench.target.function, &bench.target.finding.source);
    let Some(made) = function.calls_at(place.line, place.column).into_iter().last() else { return false };
    let made = &function.calls[made];
    // The end of a function is told as the place where it begins.
    let offset = if offset < made.span.end { function.span.end } else { offset };
    let is_own = |callee: &str| bench.workshop.function_named(callee, bench.patched).is_some();
    let releases = |call: &caulk_source::Call| is_release(function, bench.survey, call.span.start);
    // Bytes have no parts; whoever ends them wipes them, or keeps books that their maker keeps, too.
    let bytes =
        function.variable_at(expression, offset).filter(|_| expression == root(expression)).is_some_and(|decl| {
            let kind = function.decls[decl].canonical_type.trim_start_matches("const ");
            matches!(kind, "char *" | "unsigned char *" | "signed char *")
        });
    let ends = |(callee, id): &(String, caulk_source::CallId)| {
        let own = bench.survey.destructors.contains(callee) && releases(&function.calls[*id]) && is_own(callee);
        own && (!bytes || bench.survey.sides.keep_same_books(&made.callee, callee))
    };
    let is_end = |call: &caulk_source::Call| bench.survey.destructors.contains(&call.callee);
    let is_between = |call: &caulk_source::Call| (made.span.end..offset).contains(&call.span.start);
    let given = |call: &caulk_source::Call| call.args.iter().any(|arg| function.text(arg.span) == expression);
    let meant_for_it = destructors(function, bench.survey, expression, made.span.end);
    made.result_type != "void *"
        && is_own(&made.callee)
        && (meant_for_it.iter().any(|name| is_named_for_it(name)) || function.releases_of(expression).iter().any(ends))
        && function.calls.iter().any(|call| is_between(call) && given(call) && !is_end(call))
}

/// The macro that the call is all of, given the expression alone.
fn macro_around(
    function: &FunctionSource,
    call: &caulk_source::Call,
    expression: &str,
    leaves: bool,
) -> Option<String> {
    let (Origin::WholeMacro(id) | Origin::InMacro(id)) = function.stmt(call.stmt).origin else { return None };
    let used = &function.macros[id];
    let alone = used.args.len() == 1 && function.text(used.args[0]) == expression;
    (alone && used.outermost && only_releases(function, used, leaves)).then(|| used.name.clone())
}

/// Not a macro that also leaves, tells somebody or keeps a result: what is released there is all that it does. One that
/// sets its argument to null hides from the proof that somebody looks at it later, unless the function is left at once.
fn only_releases(function: &FunctionSource, used: &MacroUse, left: bool) -> bool {
    let leaves = |stmt: &Stmt| {
        let jumps = matches!(stmt.kind, StmtKind::Goto { .. } | StmtKind::Break | StmtKind::Continue);
        jumps || matches!(stmt.kind, StmtKind::Return { .. } | StmtKind::IndirectGoto)
    };
    let mut calls = function.calls.iter().filter(|call| used.span.covers(call.span));
    let released = calls.next().map(|call| &call.callee);
    let mut assigns = function.assigns.iter().filter(|assign| used.span.covers(assign.span));
    let cleared = used.args.first().map(|argument| function.text(*argument));
    let is_cleared = |name: &str| cleared.as_deref().is_some_and(|cleared| root(cleared) == name);
    let is_inside = |stmt: &Stmt| match stmt.origin {
        Origin::WholeMacro(id) | Origin::InMacro(id) => function.macros[id].span == used.span,
        _ => false,
    };
    !function.stmts.iter().any(|stmt| is_inside(stmt) && leaves(stmt))
        && calls.all(|call| Some(&call.callee) == released)
        && assigns.all(|assign| left && assign.target.is_some_and(|decl| is_cleared(&function.decls[decl].name)))
}

/// The macro by which the file calls the family's function, where it does so more often than by its name: a project's
/// own `close` may be another function elsewhere.
fn spelling(bench: &Bench<'_>, family: &str, leaves: bool) -> Option<String> {
    let function = &bench.target.function;
    let file = function.file.path.display().to_string();
    let mut written: Vec<(usize, &str, u32)> = Vec::new();
    for (name, spot) in written_releases(bench) {
        if name != family && !(name.contains(family) && function.names.macros.contains(name)) {
            continue;
        }
        match written.iter_mut().find(|entry| entry.1 == name) {
            Some(entry) => entry.0 += 1,
            None => written.push((1, name, spot.line)),
        }
    }
    let (_, name, line) = written.into_iter().max_by_key(|entry| entry.0).filter(|entry| entry.1 != family)?;
    let user = bench.workshop.function_at(&file, line, bench.patched).ok()?;
    let mut used = user.macros.iter().filter(|used| used.name == name && user.file.line_of(used.span.start) == line);
    // `#define own_close close`: another name for it, and nothing else.
    let renames = |used: &MacroUse| {
        let named = |call: &caulk_source::Call| call.span.start == used.span.start && call.callee == family;
        used.args.is_empty() && user.text(used.span) == name && user.calls.iter().any(named)
    };
    let releases = |used: &MacroUse| used.args.len() == 1 && only_releases(&user, used, leaves) || renames(used);
    used.next().is_some_and(releases).then(|| name.to_owned())
}

/// Where the file releases something, and by which name.
fn written_releases<'a>(bench: &'a Bench<'_>) -> impl Iterator<Item = (&'a str, &'a Spot)> {
    let source = &bench.target.function.file;
    let file = source.path.display().to_string();
    bench.survey.releases.keys().filter(move |spot| spot.file == file).filter_map(|spot| {
        let text = &source.bytes[source.offset_of(spot.line, spot.column)?..];
        let length = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let name = std::str::from_utf8(&text[..length]).ok()?;
        (text.get(length) == Some(&b'(')).then_some((name, spot))
    })
}

/// `#define free(p) counted_free(p)`: the library's name stands for functions of the program, and where the author has
/// written it, these do nothing but release.
pub fn means_no_more(bench: &Bench<'_>, family: &str) -> bool {
    let function = &bench.target.function;
    if !function.names.macros.contains(family) {
        return true;
    }
    let Some((_, spot)) = written_releases(bench).find(|(name, _)| *name == family) else { return false };
    let Ok(user) = bench.workshop.function_at(&spot.file, spot.line, bench.patched) else { return false };
    let Some(at) = user.file.offset_of(spot.line, spot.column) else { return false };
    let Some(used) = user.macros.iter().find(|used| used.name == family && used.span.start == at) else { return false };
    let called = |call: &&caulk_source::Call| used.span.covers(call.span) || call.span.start == at;
    user.calls.iter().filter(called).all(|call| call.callee == family || is_deallocator(bench, &call.callee))
}

/// Whether the author writes `free (p)`.
fn spaces_calls(function: &FunctionSource) -> bool {
    let written = |call: &&caulk_source::Call| call.direct && call.origin == caulk_source::Origin::Written;
    let behind = |call: &caulk_source::Call| function.file.bytes.get(call.span.start + call.callee.len()).copied();
    let spaced = function.calls.iter().filter(written).filter(|call| behind(call) == Some(b' ')).count();
    spaced * 2 > function.calls.iter().filter(written).count()
}

/// Whether the author writes `free( p )`.
fn pads_arguments(function: &FunctionSource) -> bool {
    let written = |call: &&caulk_source::Call| call.direct && call.origin == Origin::Written && !call.args.is_empty();
    let is_blank = |at: usize| function.file.bytes.get(at) == Some(&b' ');
    let pads = |call: &&caulk_source::Call| {
        let ends = call.args.first().zip(call.args.last());
        ends.is_some_and(|(first, last)| is_blank(first.span.start.wrapping_sub(1)) && is_blank(last.span.end))
    };
    let padded = function.calls.iter().filter(written).filter(pads).count();
    padded * 2 > function.calls.iter().filter(written).count()
}

/// Whether the call that starts at an offset releases something, as the analysis sees it.
pub fn is_release(function: &FunctionSource, survey: &Survey, offset: usize) -> bool {
    let (line, column) = function.file.position_of(offset);
    survey.release_at(&function.file.path.display().to_string(), line, column).is_some()
}

/// Parts of names that say that releasing is what the function is for.
const RELEASING: &[&str] = &[
    "free", "destroy", "delete", "release", "unref", "close", "drop", "dispose", "clean", "clear", "deinit", "dealloc",
    "discard",
];

/// Words that say so, but parts of other words, too.
const RELEASING_WORDS: &[&str] = &["fini", "finish", "del", "put", "done"];

/// Releases and nothing else, or is named for it: not something that also prints, sends or counts its argument.
pub fn is_deallocator(bench: &Bench<'_>, callee: &str) -> bool {
    (is_named_for_it(callee) || is_quiet(bench, callee)) && !is_heard(bench, callee, &[])
}

/// The same, or it would be, were some members of its argument null: then the proof must show that they are.
fn may_be_called(bench: &Bench<'_>, callee: &str) -> bool {
    (is_named_for_it(callee) || is_quiet(bench, callee)) && quiet_if_null(bench, callee).is_some()
}

fn is_named_for_it(callee: &str) -> bool {
    let name = callee.to_ascii_lowercase();
    let is_word = |word: &str| RELEASING_WORDS.contains(&word);
    RELEASING.iter().any(|part| name.contains(part)) || name.split('_').any(is_word)
}

/// Calls of the program's own destructors for the type of a variable that release it. `None`: there are no destructors.
pub fn by_destructor(bench: &Bench<'_>, expression: &str, offset: usize) -> Option<Vec<String>> {
    let all = destructors(&bench.target.function, bench.survey, expression, offset);
    let fits = |callee: &&String| is_named_for_it(callee) && quiet_if_null(bench, callee).is_some();
    let function = &bench.target.function;
    let call = |callee: &String| as_the_author(function, format!("{callee}({expression});"));
    (!all.is_empty()).then(|| all.iter().filter(fits).map(call).collect())
}

/// Members of what a destructor is given that must be null for it to do nothing but release: calls that are heard of stand
/// under tests of them. Empty if it never does more, `None` if it does whatever they are.
pub fn quiet_if_null(bench: &Bench<'_>, callee: &str) -> Option<Vec<String>> {
    if !is_heard(bench, callee, &[]) {
        return Some(Vec::new());
    }
    let body = bench.workshop.function_named(callee, bench.patched)?;
    let mut tested = tested_members(&body);
    let left_out = |members: &[String]| -> Vec<String> {
        members.iter().flat_map(|member| under_test(bench, &body, member)).collect()
    };
    tested.retain(|member| !under_test(bench, &body, member).is_empty());
    if tested.is_empty() || is_heard(bench, callee, &left_out(&tested)) {
        return None;
    }
    // No more of them than are needed.
    let mut at = 0;
    while at < tested.len() {
        let left = tested.remove(at);
        if is_heard(bench, callee, &left_out(&tested)) {
            tested.insert(at, left);
            at += 1;
        }
    }
    Some(tested)
}

/// `member` of `if (parameter->member != NULL)`, and of `if (parameter->member)`.
fn tested_members(body: &FunctionSource) -> Vec<String> {
    let Some(parameter) = body.decls.iter().find(|decl| decl.kind == DeclKind::Parameter) else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for stmt in body.stmts.iter() {
        let StmtKind::If { cond, .. } = stmt.kind else { continue };
        let text = body.text(cond);
        let value = text.strip_suffix("!= NULL").unwrap_or(&text).trim_end();
        let member = value.strip_prefix(parameter.name.as_str()).and_then(|rest| rest.strip_prefix("->"));
        if let Some(member) =
            member.filter(|member| *member == root(member) && !found.iter().any(|known| known == *member))
        {
            found.push(member.to_owned());
        }
    }
    found
}

/// Functions that are called nowhere but under `if (parameter->member != NULL)`, where nobody gives the member a value.
fn under_test(bench: &Bench<'_>, body: &FunctionSource, member: &str) -> Vec<String> {
    let Some(parameter) = body.decls.iter().find(|decl| decl.kind == DeclKind::Parameter) else { return Vec::new() };
    let value = format!("{}->{member}", parameter.name);
    let sets = |body: &FunctionSource| {
        let ends = [format!("->{member}"), format!(".{member}")];
        let mut places = body.assigns.iter().map(|assign| body.text(assign.lhs));
        places.any(|place| place == parameter.name || ends.iter().any(|end| place.ends_with(end.as_str())))
    };
    let given = body.calls.iter().filter(|call| call.args.iter().any(|arg| body.text(arg.span) == parameter.name));
    let mut called = given.filter_map(|call| bench.workshop.function_named(&call.callee, bench.patched));
    if sets(body) || called.any(|callee| sets(&callee)) {
        return Vec::new();
    }
    let tests = [format!("{value} != NULL"), value];
    let is_tested = |call: &caulk_source::Call| {
        body.ancestors(call.stmt).any(|above| match body.stmt(above).kind {
            StmtKind::If { cond, then, .. } => {
                tests.contains(&body.text(cond)) && body.stmt(then).span.covers(body.stmt(call.stmt).span)
            }
            _ => false,
        })
    };
    let names = body.calls.iter().filter(|call| call.direct).map(|call| &call.callee);
    names.filter(|name| body.calls.iter().filter(|call| call.callee == **name).all(is_tested)).cloned().collect()
}

/// Whoever calls it where nobody did before does something that was not done before.
fn is_heard(bench: &Bench<'_>, callee: &str, left_out: &[String]) -> bool {
    let (function, place) = (&bench.target.function, &bench.target.finding.source);
    let made = function.calls_at(place.line, place.column).into_iter().last();
    let sides = &bench.survey.sides;
    // What does nothing but call the library's release spoils no more than that does.
    let alone = || sides.only_calls(callee, &[bench.target.finding.release.clone()].into());
    sides.is_heard(callee, made.map(|id| function.calls[id].callee.as_str()), left_out)
        || sides.spoils_error(&function.name, callee) && !alone()
}

/// The program's own function for ending what the expression means, where it does more than that.
pub fn unwanted(bench: &Bench<'_>, expression: &str, offset: usize) -> Option<String> {
    let function = &bench.target.function;
    let written = function.releases_of(expression).into_iter().map(|(callee, _)| callee);
    let mut all = written.chain(destructors(function, bench.survey, expression, offset));
    all.find(|callee| bench.survey.destructors.contains(callee) && quiet_if_null(bench, callee).is_none())
}

/// Whether a function only releases: called earlier, later or not at all, nothing else changes.
pub fn is_quiet(bench: &Bench<'_>, callee: &str) -> bool {
    let Some(body) = bench.workshop.function_named(callee, bench.patched) else {
        return callee == bench.target.finding.release;
    };
    let releases = |call: &caulk_source::Call| is_release(&body, bench.survey, call.span.start);
    let shared = |used: &caulk_source::VarRef| {
        matches!(body.decls[used.decl].kind, caulk_source::DeclKind::Global | caulk_source::DeclKind::StaticLocal)
    };
    body.calls.iter().all(releases) && !body.refs.iter().any(shared) && !bench.survey.sides.writes_outward(callee)
}

fn takes_one(function: &FunctionSource, name: &str) -> bool {
    function.names.top_level.get(name).is_none_or(|found| found.is_function && !found.type_name.contains(','))
}

fn is_const(function: &FunctionSource, expression: &str, offset: usize) -> bool {
    expression == root(expression)
        && function
            .variable_at(expression, offset)
            .is_some_and(|decl| function.decls[decl].canonical_type.starts_with("const "))
}

/// Functions that are given a `void *`, as callbacks are, and release it as this type.
fn untyped_destructors(bench: &Bench<'_>, expression: &str, offset: usize) -> Vec<String> {
    let function = &bench.target.function;
    let Some(decl) = function.variable_at(expression, offset).filter(|_| expression == root(expression)) else {
        return Vec::new();
    };
    let wanted = &function.decls[decl].canonical_type;
    if !wanted.starts_with("struct ") {
        return Vec::new();
    }
    let untyped = |name: &str| {
        let found = function.names.top_level.get(name);
        found.is_some_and(|found| found.is_function && found.type_name == "void (void *)")
    };
    let fits = |name: &&String| {
        let lower = name.to_ascii_lowercase();
        RELEASING.iter().any(|part| lower.contains(part))
            && untyped(name)
            && !is_heard(bench, name, &[])
            && **name != function.name
            && function.callable_at(name, offset)
            && bench.workshop.function_named(name, bench.patched).is_some_and(|body| {
                let given = body.decls.iter().find(|decl| decl.kind == DeclKind::Parameter).map(|decl| &decl.name);
                body.is_static
                    && body.file.path == function.file.path
                    && body.decls.iter().any(|decl| {
                        decl.canonical_type == *wanted && decl.init.map(|init| body.text(init)).as_ref() == given
                    })
            })
    };
    bench.survey.destructors.iter().filter(fits).cloned().collect()
}

/// Functions of the program that release exactly this type.
pub fn destructors(function: &FunctionSource, survey: &Survey, expression: &str, offset: usize) -> Vec<String> {
    if expression != root(expression) {
        return Vec::new();
    }
    let Some(decl) = function.variable_at(expression, offset) else { return Vec::new() };
    let decl = &function.decls[decl];
    if matches!(decl.canonical_type.as_str(), "char *" | "void *" | "unsigned char *" | "int") {
        return Vec::new();
    }
    let wanted = [format!("({})", decl.type_name), format!("({})", decl.canonical_type)];
    let fits = |name: &&String| {
        function.names.top_level.get(*name).is_some_and(|found| {
            found.is_function && wanted.iter().any(|params| found.type_name.ends_with(params.as_str()))
        }) && **name != function.name
            && function.callable_at(name, offset)
    };
    survey.destructors.iter().filter(fits).cloned().collect()
}
