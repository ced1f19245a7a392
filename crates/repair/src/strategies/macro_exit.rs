//! An exit inside a macro statement whose condition cannot be evaluated twice.
//!
//! ```c
//! FAIL_IF(!h || init(h, mode), "no handle");      if (h && init(h, mode)) {
//!                                           ──►       free(h);
//!                                                     h = NULL;
//!                                                 }
//!                                                 FAIL_IF(!h, "no handle");
//! ```
//!
//! The macro's body stays as it is; its own test of the pointer takes the exit.

use caulk_source::{EditSet, Origin, Snippet};

use super::{Bench, Proposals};
use crate::change::Candidate;
use crate::target::root;

pub fn propose(bench: &Bench<'_>, all: &mut Proposals) {
    let function = &bench.target.function;
    let Some(sink) = bench.target.sink else { return };
    let Origin::WholeMacro(id) = function.stmt(sink).origin else { return };
    let used = &function.macros[id];
    if !bench.is_one_macro(&used.name) {
        return;
    }
    for (holder, release) in bench.releases_at(function.stmt(sink).span.start) {
        if holder != root(&holder) {
            continue;
        }
        for argument in &used.args {
            let text = function.text(*argument);
            let Some((test, rest)) = text.split_once("||") else { continue };
            let is_test = [format!("!{holder}"), format!("{holder} == NULL"), format!("NULL == {holder}")];
            // What comes first is evaluated alone: a `||` of a nested expression is not one of the condition.
            if !is_test.iter().any(|one| one == test.trim()) || !is_closed(rest) {
                continue;
            }
            let rest = rest.trim();
            let rest = if rest.contains("||") || rest.contains('?') { format!("({rest})") } else { rest.to_owned() };
            let code = Snippet::lines([
                format!("if ({holder} && {rest}) {{"),
                format!("\t{release}"),
                format!("\t{holder} = NULL;"),
                "}".to_owned(),
            ]);
            let made = function.insert_before(sink, &code).map(|mut edits: EditSet| {
                edits.replace(*argument, test.trim());
                edits
            });
            let title = format!("release `{holder}` where `{}` leaves", used.name);
            all.add(made, |edits| Candidate::new(function, "release-before-macro-exit", title, edits));
        }
    }
}

/// Brackets are opened and closed in order, and nothing is assigned or listed at the top.
fn is_closed(text: &str) -> bool {
    let mut depth = 0i32;
    for letter in text.chars() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => return false,
            '"' | '\'' => return false,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}
