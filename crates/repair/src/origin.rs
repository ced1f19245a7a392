//! Edits in positions of the file as it was analysed, although each patch is made on the text that the one before left.
//!
//! ```text
//! original        after patch 1      patch 2
//! 1 a             1 a
//! 2 b             2 x  new
//! 3 c             3 b
//!                 4 c                edit at line 4  ──►  line 3
//! ```
//!
//! # Invariants
//! - The edits of a patch apply to the original file. A patch that changes what an earlier one put there has no such
//!   edits of its own: it is given together with the earlier ones, as one replacement.

use std::path::Path;

use caulk_findings::Edit;
use caulk_source::{EditSet, FileText};

use crate::change::Change;

/// The patches of all files so far, in their order.
#[derive(Debug, Default)]
pub struct Origin {
    changes: Vec<Change>,
}

impl Origin {
    pub fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// The edits of a patch that comes next.
    pub fn edits(&self, set: &EditSet, change: &Change) -> Vec<Edit> {
        let earlier: Vec<&Change> = self.changes.iter().filter(|one| one.file == change.file).collect();
        let original = earlier.first().map_or(&change.before, |first| &first.before);
        let back = |offset: usize| earlier.iter().rev().try_fold(offset, |offset, change| change.origin(offset));
        let own: Option<Vec<Edit>> = set
            .edits()
            .iter()
            .filter(|edit| !(edit.text.is_empty() && edit.span.start == edit.span.end))
            .map(|edit| {
                let (start, end) = (back(edit.span.start)?, back(edit.span.end)?);
                // Text of an earlier patch lies inside the range.
                let same = end.checked_sub(start)? == edit.span.end - edit.span.start;
                same.then(|| at(&change.file, original, start, end, &edit.text))
            })
            .collect();
        let mut edits = own.unwrap_or_else(|| vec![together(&change.file, original, &change.after)]);
        edits.sort_by_key(|edit| (edit.start, edit.end));
        edits
    }
}

fn at(file: &Path, original: &FileText, start: usize, end: usize, text: &[u8]) -> Edit {
    let (start_line, start_column) = original.position_of(start);
    let (end_line, end_column) = original.position_of(end);
    Edit {
        file: file.display().to_string(),
        start: start as u64,
        end: end as u64,
        start_line,
        start_column,
        end_line,
        end_column,
        replacement: String::from_utf8_lossy(text).into_owned(),
    }
}

/// One replacement of whole lines that makes one text of the other.
fn together(file: &Path, original: &FileText, after: &FileText) -> Edit {
    let (old, new) = (&original.bytes[..], &after.bytes[..]);
    let lines = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let common = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let start = lines(&old[..common]);
    let shortest = old.len().min(new.len()) - start;
    let common = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count().min(shortest);
    // From the next line's beginning on, both are the same.
    let tail = &old[old.len() - common..];
    let kept = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| tail.len() - at - 1);
    at(file, original, start, old.len() - kept, &new[start..new.len() - kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "a.c";

    fn change(before: &str, edits: &EditSet) -> Change {
        Change::new(FILE.into(), before.into(), edits).unwrap()
    }

    fn insertion(offset: usize, text: &str) -> EditSet {
        let mut edits = EditSet::new();
        edits.insert(offset, text);
        edits
    }

    /// Applies edits to the original, last first.
    fn apply(text: &str, edits: &[Edit]) -> String {
        let mut text = text.to_owned();
        for edit in edits.iter().rev() {
            text.replace_range(edit.start as usize..edit.end as usize, &edit.replacement);
        }
        text
    }

    #[test]
    fn the_second_patch_is_told_in_lines_of_the_original() {
        let first = change("a\nb\nc\n", &insertion(2, "x\n"));
        assert_eq!(String::from_utf8_lossy(&first.after.bytes), "a\nx\nb\nc\n");
        let edits = insertion(6, "y\n");
        let second = change("a\nx\nb\nc\n", &edits);
        let mut origin = Origin::default();
        origin.push(first);
        let told = origin.edits(&edits, &second);
        assert_eq!((told[0].start_line, told[0].start_column, told[0].start), (3, 1, 4));
        assert_eq!(apply("a\nb\nc\n", &told), "a\nb\ny\nc\n");
    }

    #[test]
    fn a_patch_upon_a_patch_is_told_with_it() {
        let first = change("a\nb\nc\n", &insertion(2, "x\n"));
        let edits = insertion(2, "y\n");
        let second = change("a\nx\nb\nc\n", &edits);
        let mut origin = Origin::default();
        origin.push(first);
        let told = origin.edits(&edits, &second);
        assert_eq!(apply("a\nb\nc\n", &told), "a\ny\nx\nb\nc\n");
    }

    #[test]
    fn a_replacement_of_lines_makes_the_new_text() {
        let texts = ["", "a\n", "a\nb\n", "a\na\na\n", "b\na\n", "a\nb", "x", "a\na\n"];
        for old in texts {
            for new in texts {
                let file = |text: &str| FileText::new(FILE.into(), text.into());
                let edit = together(Path::new(FILE), &file(old), &file(new));
                assert_eq!(apply(old, &[edit]), new, "{old:?} to {new:?}");
            }
        }
    }
}
