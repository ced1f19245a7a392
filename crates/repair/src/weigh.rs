//! Many candidates at once: what would speak against releasing here, and here, and here?
//!
//! ```c
//! if (a < 0) {
//!     __caulk_weigh(1, p);        // candidate 1: free(p);
//!     return -1;
//! }
//! if (b < 0) {
//!     __caulk_weigh(2, p);        // candidate 2
//!     goto out;
//! }
//! ```
//!
//! The call does nothing: the analysis only notes the doubts that a release would have there. So one program that is
//! never shown to anybody tells which candidates cannot be proved, and only the others are built.
//!
//! # Invariants
//! - Weighing only refuses. What it lets pass is proved like everything else.

use caulk_analysis::{Doubt, WEIGH};
use caulk_source::{Edit, EditSet, FileText};

use crate::change::Candidate;
use crate::survey::Survey;
use crate::target::is_plain;

/// Candidates in one program; the number of each call says which of them it stands for.
#[derive(Default)]
pub struct Scales {
    pub edits: EditSet,
    /// By the number of a call: the candidate.
    asked: Vec<usize>,
}

impl Scales {
    /// Those of the candidates, all of one file, that only put releases somewhere: each program for as many as go
    /// together. What stands in an `else` goes apart from what stands behind the `if`.
    pub fn of(candidates: &[Candidate]) -> Vec<Self> {
        let Some(file) = candidates.first().map(|first| &first.file) else { return Vec::new() };
        let mut all = [Self::default(), Self::default()];
        for (at, candidate) in candidates.iter().enumerate() {
            let expect = candidate.expect;
            if candidate.file != *file || !expect.releases || expect.in_destructor || expect.moved.is_some() {
                continue;
            }
            let otherwise = candidate.edits.edits().iter().find(|edit| is_else(&edit.text)).map(|edit| edit.span.start);
            let scales = &mut all[usize::from(otherwise.is_some())];
            let taken = |edit: &Edit| Some(edit.span.start) == otherwise;
            if otherwise.is_some() && scales.edits.edits().iter().any(taken) {
                continue;
            }
            let Some((edits, calls)) = weighed(&candidate.edits, scales.asked.len()) else { continue };
            let mut merged = scales.edits.clone();
            merged.merge(&edits);
            if merged.conflict().is_none() {
                scales.edits = merged;
                scales.asked.extend(std::iter::repeat_n(at, calls));
            }
        }
        let several = |scales: &Self| scales.asked.iter().any(|at| Some(at) != scales.asked.first());
        all.into_iter().filter(several).collect()
    }

    /// Candidates and the pointer that each would release, where they are not all the same: of such a program it is not
    /// certain that a pointer is needed later because of the candidate itself, and not of another one's call.
    ///
    /// ```c
    /// __caulk_weigh(1, list);
    /// __caulk_weigh(2, node);         // `node` leads into the list: needed behind the first call
    /// ```
    pub fn mixed(&self, candidates: &[Candidate]) -> Vec<(usize, String)> {
        let of = |at: usize| candidates[at].edits.edits().iter().find_map(|edit| argument(&edit.text));
        let mut named: Vec<(usize, String)> = self.asked.iter().filter_map(|at| Some((*at, of(*at)?))).collect();
        named.dedup();
        let several = named.iter().any(|(_, name)| *name != named[0].1);
        if several { named } else { Vec::new() }
    }

    /// Candidates and what speaks against them.
    pub fn read(&self, survey: &Survey, text: &FileText) -> Vec<(usize, Doubt)> {
        let written = String::from_utf8_lossy(&text.bytes);
        let file = text.path.display().to_string();
        let mut found = Vec::new();
        for (number, at) in self.asked.iter().enumerate() {
            let Some(offset) = written.find(&call(number)) else { continue };
            let (line, column) = text.position_of(offset);
            let doubts = survey.release_at(&file, line, column);
            found.extend(doubts.into_iter().flatten().map(|doubt| (*at, *doubt)));
        }
        found
    }
}

fn is_else(text: &[u8]) -> bool {
    String::from_utf8_lossy(text).lines().any(|line| line.trim_start_matches(['}', ' ', '\t']).starts_with("else"))
}

/// The start of a call, which stands in the text once.
fn call(number: usize) -> String {
    format!("{WEIGH}({number},")
}

/// The same edits with every release weighed instead, and how many there are; `None` if they do anything else.
fn weighed(edits: &EditSet, first: usize) -> Option<(EditSet, usize)> {
    let mut made = EditSet::new();
    let mut calls = 0;
    for edit in edits.edits() {
        if edit.shared {
            made.put(edit.clone());
            continue;
        }
        if edit.span.start != edit.span.end {
            return None;
        }
        let text = std::str::from_utf8(&edit.text).ok()?;
        let mut lines = String::new();
        for line in text.split_inclusive('\n') {
            let code = line.trim();
            if let Some(argument) = released(code) {
                let weighing = format!("{{ extern void {WEIGH}(int, ...); {} {argument}); }}", call(first + calls));
                lines.push_str(&line.replacen(code, &weighing, 1));
                calls += 1;
            } else if code.is_empty() || matches!(code, "{" | "}" | "else" | "} else") || code.starts_with("if (") {
                lines.push_str(line);
            } else {
                return None;
            }
        }
        made.put(Edit { text: lines.into_bytes(), ..edit.clone() });
    }
    (calls > 0).then_some((made, calls))
}

/// The first pointer that new code releases.
fn argument(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|line| released(line.trim())).map(str::to_owned)
}

/// `p` of `free(p);`
fn released(code: &str) -> Option<&str> {
    let (name, argument) = code.strip_suffix(");")?.split_once('(')?;
    let is_name = name.trim_end().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let argument = argument.trim();
    let plain = argument.strip_prefix("(void *)").unwrap_or(argument);
    (is_name && name.trim_end() != "if" && is_plain(plain)).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_releases_are_weighed() {
        assert_eq!(released("free(p->name);"), Some("p->name"));
        assert_eq!(released("free (p);"), Some("p"));
        assert_eq!(released("free( p );"), Some("p"));
        assert_eq!(released("if (p);"), None);
        assert_eq!(released("p = f(x);"), None);
        assert_eq!(released("free(f(x));"), None);
    }

    #[test]
    fn what_does_more_is_left_to_the_proof() {
        let mut edits = EditSet::new();
        edits.insert(3, "if (n < 0)\n\tfree(p);\n");
        let (made, calls) = weighed(&edits, 4).unwrap();
        assert_eq!(calls, 1);
        let text = String::from_utf8_lossy(&made.edits()[0].text).into_owned();
        assert!(text.starts_with("if (n < 0)\n\t{ extern void "), "{text}");
        assert!(text.contains(&format!("{WEIGH}(4, p);")), "{text}");
        edits.insert(9, "p = NULL;\n");
        assert!(weighed(&edits, 0).is_none());
    }
}
