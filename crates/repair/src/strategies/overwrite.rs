//! A release before the assignment that forgets the block, and the temporary that `realloc` wants.

use caulk_source::{Assign, DeclKind, FunctionSource, Snippet, Span, StmtId, StmtKind, declarator};

use super::exits::is_pure;
use super::{Bench, Proposals, code_of, may_declare};
use crate::change::Candidate;
use crate::release;
use crate::target::is_plain;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let target = bench.target;
    let function = &target.function;
    for holder in target.holders() {
        for assign in function.assigns.iter().filter(|assign| !assign.compound) {
            if function.text(assign.lhs) != holder || !(assign.whole || is_first_in_test(function, assign, &holder)) {
                continue;
            }
            let start = function.stmt(assign.stmt).span.start;
            let grown = target.finding.source == target.finding.sink;
            if !target.reaches(&holder, start) || !grown && !bench.is_behind_source(assign.stmt) {
                continue;
            }
            let rhs = function.text(assign.rhs);
            let plain = without_cast(&rhs);
            if !assign.whole && (plain.starts_with("realloc") || rhs.contains(&holder)) {
                continue;
            }
            if plain.starts_with("realloc(") || plain.starts_with("reallocarray(") {
                realloc(bench, all, assign, &holder, plain);
                continue;
            }
            let needed = without_sizes(&rhs);
            let mentioned =
                function.file.mentions(assign.rhs, crate::target::root(&holder)) && needed.contains(&holder);
            if mentioned {
                through(bench, all, assign, &holder, &rhs);
                continue;
            }
            for call in release::calls(bench, &holder, start) {
                let made = function.insert_before(assign.stmt, &code_of(&call));
                let title = format!("release the old `{holder}` before it is overwritten");
                all.add(made, |edits| Candidate::new(function, "release-before-overwrite", title, edits).overwriting());
            }
        }
    }
    owner(bench, all);
}

/// Whether a loop's body gives the block's variable something new by several assignments.
pub fn is_set_in_many_ways(bench: &Bench<'_>) -> bool {
    let function = &bench.target.function;
    let (Some(source), Some(name)) = (bench.target.source, &bench.target.name) else { return false };
    let is_loop = |at: &StmtId| {
        matches!(function.stmt(*at).kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Do { .. })
    };
    let Some(around) = function.ancestors(source).find(is_loop).map(|at| function.stmt(at).span) else { return false };
    let sets = |assign: &&Assign| {
        let new = function.calls.iter().any(|call| assign.rhs.covers(call.span));
        assign.whole && !assign.compound && new && around.covers(assign.span) && function.text(assign.lhs) == *name
    };
    function.assigns.iter().filter(sets).count() > 1
}

/// `if (!(p = make(x)))`: whenever the test is come to, the old value goes before anything looks at it.
fn is_first_in_test(function: &FunctionSource, assign: &Assign, holder: &str) -> bool {
    let StmtKind::If { cond, .. } = function.stmt(assign.stmt).kind else { return false };
    let before = Span::new(cond.start, assign.span.start);
    let always = |call: &caulk_source::Call| call.unconditional && assign.rhs.covers(call.span);
    cond.covers(assign.span)
        && function.calls.iter().any(always)
        && !function.file.mentions(before, crate::target::root(holder))
}

/// `realloc(p, n)` of `(char *) realloc(p, n)`.
fn without_cast(code: &str) -> &str {
    let cast = code.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    match cast {
        Some((kind, rest)) if kind.trim_end().ends_with('*') => rest.trim_start(),
        _ => code,
    }
}

/// Without `sizeof *p` and the like, which need no value.
fn without_sizes(code: &str) -> String {
    let mut parts = code.split("sizeof");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| {
        let part = part.trim_start().trim_start_matches(['(', ' ', '*']);
        part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '>' | '.'))
    });
    rest.fold(first, |all, part| all + part)
}

/// What must not be zero for the old block to be still there: `realloc(p, 0)` may release it and return null. `None` if
/// that cannot be asked once more.
fn asked(function: &FunctionSource, assign: &Assign) -> Option<Vec<String>> {
    let call = function.calls.iter().find(|call| call.direct && assign.rhs.covers(call.span))?;
    let sizes = call.args.get(1..)?.iter().map(|arg| function.text(arg.span).trim().to_owned());
    let open: Vec<String> = sizes.flat_map(|size| unsure_factors(&size)).collect();
    let simple = |factor: &String| is_plain(factor) || is_pure(factor) && !factor.contains(['\n', '&', '|', '?', ',']);
    let shown = |factor: String| if is_plain(&factor) { factor } else { format!("({factor})") };
    open.iter().all(simple).then(|| open.into_iter().map(shown).collect())
}

/// Factors of a size that may be zero, as far as its text tells: `n` of `n * sizeof(int)`, nothing of `n + 1`. That a
/// sum of sizes runs over is another error.
fn unsure_factors(size: &str) -> Vec<String> {
    let size = size.trim();
    let number = size.trim_end_matches(['u', 'U', 'l', 'L']);
    if number.starts_with(|c: char| ('1'..='9').contains(&c)) && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    if parts(size, '-').len() > 1 || size.contains(['?', '&', '|', '%', '/', '<']) {
        return vec![size.to_owned()];
    }
    if let [_, _, ..] = parts(size, '+')[..] {
        let is_sure = parts(size, '+').into_iter().any(|part| unsure_factors(part).is_empty());
        return if is_sure { Vec::new() } else { vec![size.to_owned()] };
    }
    if let [_, _, ..] = parts(size, '*')[..] {
        return parts(size, '*').into_iter().flat_map(unsure_factors).collect();
    }
    match size.strip_prefix("sizeof") {
        Some(rest) if rest.starts_with(['(', ' ', '*']) => Vec::new(),
        _ => match size.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(inner) if !inner.contains([')', '*']) || parts(inner, '*').len() > 1 => unsure_factors(inner),
            _ => vec![size.to_owned()],
        },
    }
}

/// The operands of a binary operator outside of all parentheses; of `sizeof *p`, none.
fn parts(code: &str, operator: char) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0usize, 0, Vec::new());
    for (at, byte) in code.char_indices() {
        match byte {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if byte == operator && depth == 0 => {
                let before = code[from..at].trim_end();
                let binary = before.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ')' | ']'));
                if binary && !before.ends_with("sizeof") && !code[at + 1..].starts_with(['+', '>', '-', '=']) {
                    found.push(&code[from..at]);
                    from = at + 1;
                }
            }
            _ => {}
        }
    }
    found.push(&code[from..]);
    found
}

fn realloc(bench: &Bench<'_>, all: &mut Proposals, assign: &caulk_source::Assign, holder: &str, rhs: &str) {
    let function = &bench.target.function;
    let type_name = assign.target.map_or("void *".to_owned(), |decl| function.decls[decl].type_name.clone());
    let name = function.fresh_name("grown");
    let Ok(declared) = declarator(&type_name, &name) else { return };
    let release = &bench.target.finding.release;
    let Some(asked) = asked(function, assign) else { return };
    let test = std::iter::once(format!("!{name}")).chain(asked).collect::<Vec<_>>().join(" && ");
    let release = release::as_the_author(function, format!("{release}({holder});"));
    let tail = [format!("if ({test})"), format!("\t{release}"), format!("{holder} = {name};")];
    let title = || format!("keep the result of `realloc` apart, so that `{holder}` can be released when it fails");
    let mut lines = vec![format!("{declared} = {rhs};")];
    lines.extend(tail.iter().cloned());
    let made = if may_declare(function, assign.stmt) {
        function.replace_stmt(assign.stmt, &Snippet::lines(lines).declaring())
    } else {
        function.declare_in(function.enclosing_block(assign.stmt), &format!("{declared};")).and_then(|mut edits| {
            let mut lines = vec![format!("{name} = {rhs};")];
            lines.extend(tail.iter().cloned());
            edits.merge(&function.replace_stmt(assign.stmt, &Snippet::lines(lines))?);
            Ok(edits)
        })
    };
    // What the analysis itself calls lost when this very call fails.
    let grown = bench.target.finding.source == bench.target.finding.sink;
    all.add(made, |edits| {
        let candidate = Candidate::new(function, "realloc-temporary", title(), edits);
        let candidate = if grown { candidate.growing() } else { candidate };
        // A variable that outlives the function points to the block until the next line.
        let kind = assign.target.map(|decl| function.decls[decl].kind);
        if matches!(kind, Some(DeclKind::Global | DeclKind::StaticLocal)) { candidate.overwriting() } else { candidate }
    });
}

/// `list = join(list, s);` becomes `joined = join(list, s); free(list); list = joined;`
fn through(bench: &Bench<'_>, all: &mut Proposals, assign: &caulk_source::Assign, holder: &str, rhs: &str) {
    let function = &bench.target.function;
    let Some(target) = assign.target else { return };
    let start = function.stmt(assign.stmt).span.start;
    let name = function.fresh_name("next");
    let Ok(declared) = declarator(&function.decls[target].type_name, &name) else { return };
    for call in release::calls(bench, holder, start) {
        let tail = [call, format!("{holder} = {name};")];
        let made = if may_declare(function, assign.stmt) {
            let lines = std::iter::once(format!("{declared} = {rhs};")).chain(tail);
            function.replace_stmt(assign.stmt, &Snippet::lines(lines).declaring())
        } else {
            function.declare_in(function.enclosing_block(assign.stmt), &format!("{declared};")).and_then(|mut edits| {
                let lines = std::iter::once(format!("{name} = {rhs};")).chain(tail);
                edits.merge(&function.replace_stmt(assign.stmt, &Snippet::lines(lines))?);
                Ok(edits)
            })
        };
        let title = format!("release the old `{holder}` once the new one is made");
        all.add(made, |edits| Candidate::new(function, "release-before-overwrite", title, edits).overwriting());
    }
}

/// The block is lost with its owner: released before the owner is, or before whatever else loses it.
fn owner(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink else { return };
    if !matches!(function.stmt(sink).kind, StmtKind::Expr) {
        return;
    }
    let start = function.stmt(sink).span.start;
    for (holder, call) in bench.releases_at(start) {
        if function.assigns.iter().any(|assign| assign.stmt == sink) {
            continue;
        }
        // The callee puts something else there.
        let address = format!("&{holder}");
        let given = |call: &caulk_source::Call| call.args.iter().any(|arg| function.text(arg.span) == address);
        let replaced = function.calls_of(sink).any(|id| given(&function.calls[id]));
        let title = || match replaced {
            true => format!("release the old `{holder}` before it is overwritten"),
            false => format!("release `{holder}` before its owner goes"),
        };
        let made = function.insert_before(sink, &code_of(&call));
        all.add(made, |edits| Candidate::new(function, "release-with-owner", title(), edits).overwriting());
        // The owner's own destructor might look at it.
        if holder.contains("->") {
            let made = function.insert_before(sink, &Snippet::lines([call, format!("{holder} = NULL;")]));
            all.add(made, |edits| Candidate::new(function, "release-with-owner", title(), edits).overwriting());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_may_be_zero() {
        for sure in [
            "n + 1",
            "strlen(s) + 2",
            "4096",
            "16UL",
            "sizeof *p",
            "2 * sizeof(int)",
            "(n + 1) * sizeof(*p)",
            "sizeof(x) * (n + 1)",
        ] {
            assert_eq!(unsure_factors(sure), Vec::<String>::new(), "{sure}");
        }
        assert_eq!(unsure_factors("n"), ["n"]);
        assert_eq!(unsure_factors("s->size"), ["s->size"]);
        assert_eq!(unsure_factors("n * sizeof(int)"), ["n"]);
        assert_eq!(unsure_factors("a * b"), ["a", "b"]);
        assert_eq!(unsure_factors("a + b"), ["a + b"]);
        assert_eq!(unsure_factors("n - 1"), ["n - 1"]);
        assert_eq!(unsure_factors("n - 2 + 1"), ["n - 2 + 1"]);
        assert_eq!(unsure_factors("sizeof(int) - 4"), ["sizeof(int) - 4"]);
        assert_eq!(unsure_factors("a << 1 + 2"), ["a << 1 + 2"]);
        assert_eq!(unsure_factors("0"), ["0"]);
        assert_eq!(unsure_factors("(size_t) n"), ["(size_t) n"]);
        assert_eq!(unsure_factors("(a) * (b)"), ["a", "b"]);
    }
}
