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
//! - It is a matter of words: a call that only prints the pointer speaks against the release, too.

use caulk_source::{FunctionSource, Span, Token};

use crate::change::{self, Candidate};
use crate::target::{Target, root};

const JUMPS: &[&str] = &["return", "goto", "break", "continue"];

/// Why the candidate's releases may be wrong in a configuration that was not analysed.
pub fn speaks_against(target: &Target<'_>, candidate: &Candidate) -> Option<String> {
    let function = &target.function;
    if candidate.file != function.file.path {
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
        let others = function.file.regions.branches_beside(function.span, at);
        for branch in others.into_iter().filter(|branch| !is_compiled(function, *branch)) {
            // The block may go by another name there than the one by which it is released.
            let mut names = std::iter::once(&argument).chain(&holders);
            if let Some(name) = names.find(|name| concerns(function, branch, name, at)) {
                return Some(format!("another configuration has more code with `{}`", root(name)));
            }
        }
    }
    None
}

fn is_compiled(function: &FunctionSource, branch: Span) -> bool {
    function.stmts.iter().any(|stmt| branch.contains(stmt.span.start))
        || function.refs.iter().any(|used| branch.contains(used.span.start))
}

/// Code before the release may set, keep or release the pointer, unless it leaves then; code behind it must not even
/// look at it.
fn concerns(function: &FunctionSource, branch: Span, holder: &str, at: usize) -> bool {
    let file = &function.file;
    let (name, part) = (root(holder), holder.rsplit(['>', '.']).next().unwrap_or(holder));
    // `s->other` says nothing of `s->name`.
    let is_part = name == holder || file.mentions(branch, root(part));
    let tokens = file.tokens_in(branch);
    tokens.iter().enumerate().filter(|(_, token)| file.slice(token.span) == name.as_bytes()).any(|(place, token)| {
        let next = tokens.get(place + 1);
        let bare = next.is_none_or(|next| [b')', b',', b';', b'='].iter().any(|end| next.is(*end)));
        let is_jump = |token: &Token| JUMPS.iter().any(|jump| file.slice(token.span) == jump.as_bytes());
        let used = bare || is_part && (token.span.start > at || name != holder);
        used && (token.span.start > at || !tokens[place..].iter().any(is_jump))
    })
}
