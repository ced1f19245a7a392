//! Edits of one file's bytes.
//!
//! ```text
//! text:   if (x) return -1;
//! edits:  at 6 " {\n\t"      rank of an opening brace: first of all that meet here
//!         at 7 "free(p);\n\t"
//!         at 17 "\n}"        rank of a closing brace: last
//! ```
//!
//! # Invariants
//! - Replaced ranges never overlap; insertions at one place keep their order, braces outermost.
//! - A shared edit (a brace) that two edit sets both need is made once.

use std::cmp::Ordering;
use std::path::Path;

use crate::error::SourceError;
use crate::lex::Span;

/// Replaces a range of bytes; an empty range is an insertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub text: Vec<u8>,
    /// Order among insertions at one place: opening braces below 0, closing ones above.
    pub rank: i32,
    /// Needed once however many edits ask for it.
    pub shared: bool,
}

/// Edits of one file, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditSet {
    edits: Vec<Edit>,
}

impl EditSet {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    pub fn put(&mut self, edit: Edit) {
        self.edits.push(edit);
    }

    pub fn insert(&mut self, offset: usize, text: impl Into<Vec<u8>>) {
        self.replace(Span::new(offset, offset), text);
    }

    pub fn replace(&mut self, span: Span, text: impl Into<Vec<u8>>) {
        self.edits.push(Edit { span, text: text.into(), rank: 0, shared: false });
    }

    pub fn delete(&mut self, span: Span) {
        self.replace(span, Vec::new());
    }

    pub(crate) fn brace(&mut self, span: Span, text: impl Into<Vec<u8>>, rank: i32) {
        let edit = Edit { span, text: text.into(), rank, shared: true };
        if !self.edits.contains(&edit) {
            self.edits.push(edit);
        }
    }

    /// Adds another set made on the same text. Braces that both need are kept once.
    pub fn merge(&mut self, other: &EditSet) {
        for edit in &other.edits {
            if !(edit.shared && self.edits.contains(edit)) {
                self.edits.push(edit.clone());
            }
        }
    }

    /// The first offset where two edits contradict each other.
    pub fn conflict(&self) -> Option<usize> {
        self.sorted().windows(2).find_map(|pair| {
            let (first, second) = (&pair[0].span, &pair[1].span);
            (second.start < first.end).then_some(second.start)
        })
    }

    /// The new contents.
    pub fn apply(&self, path: &Path, bytes: &[u8]) -> Result<Vec<u8>, SourceError> {
        let overlap = |offset| SourceError::Overlap { file: path.to_path_buf(), offset };
        if let Some(offset) = self.conflict() {
            return Err(overlap(offset));
        }
        let mut result = Vec::with_capacity(bytes.len() + 256);
        let mut at = 0;
        for edit in self.sorted() {
            result.extend_from_slice(bytes.get(at..edit.span.start).ok_or(overlap(edit.span.start))?);
            result.extend_from_slice(&edit.text);
            at = edit.span.end;
        }
        result.extend_from_slice(bytes.get(at..).ok_or(overlap(at))?);
        Ok(result)
    }

    fn sorted(&self) -> Vec<&Edit> {
        let mut edits: Vec<&Edit> = self.edits.iter().collect();
        // The sort is stable: equal places and ranks keep the order of asking.
        edits.sort_by(|a, b| order(a, b));
        edits
    }
}

fn order(a: &Edit, b: &Edit) -> Ordering {
    (a.span.start, a.span.end, a.rank).cmp(&(b.span.start, b.span.end, b.rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(edits: &EditSet, text: &str) -> String {
        String::from_utf8(edits.apply(Path::new("a.c"), text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn insertions_keep_their_order_and_braces_stay_outside() {
        let mut first = EditSet::new();
        first.brace(Span::new(1, 1), "{", -10);
        first.insert(1, "x");
        first.insert(2, "y");
        first.brace(Span::new(2, 2), "}", 10);
        let mut second = EditSet::new();
        second.brace(Span::new(1, 1), "{", -10);
        second.insert(1, "u");
        second.insert(2, "v");
        second.brace(Span::new(2, 2), "}", 10);
        first.merge(&second);
        assert_eq!(apply(&first, "abc"), "a{xubyv}c");
    }

    #[test]
    fn overlapping_replacements_are_refused() {
        let mut edits = EditSet::new();
        edits.replace(Span::new(0, 3), "x");
        edits.delete(Span::new(2, 4));
        assert_eq!(edits.conflict(), Some(2));
        assert!(edits.apply(Path::new("a.c"), b"abcdef").is_err());
    }

    #[test]
    fn an_insertion_inside_a_replaced_range_is_refused() {
        let mut edits = EditSet::new();
        edits.replace(Span::new(0, 3), "x");
        edits.insert(1, "y");
        assert_eq!(edits.conflict(), Some(1));
    }

    #[test]
    fn an_edit_behind_the_end_is_refused_not_a_panic() {
        let mut edits = EditSet::new();
        edits.insert(9, "x");
        assert!(edits.apply(Path::new("a.c"), b"abc").is_err());
    }
}
