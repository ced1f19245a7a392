//! A candidate: edits of one file, and what is claimed about them.

use std::path::PathBuf;

use caulk_source::{EditSet, FileText, FunctionSource};

/// What a candidate expects of the proof beyond what all must show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// It adds a release, which must be found again in the patched program.
    pub releases: bool,
    /// The next statement overwrites the very place that still points to the block.
    pub overwrites: bool,
    /// It lets a destructor release one more part of what it is given.
    pub in_destructor: bool,
    /// A release was moved from here: it may have the doubts that it had.
    pub moved: Option<(u32, u32)>,
}

#[derive(Clone, Debug)]
pub struct Candidate {
    pub strategy: &'static str,
    pub title: String,
    pub why: Vec<String>,
    pub file: PathBuf,
    pub edits: EditSet,
    pub expect: Expect,
    /// For a deleted release: a program in which the variable of this name leaks exactly where the release does
    /// something.
    pub probe: Option<(String, EditSet)>,
}

impl Candidate {
    pub fn new(function: &FunctionSource, strategy: &'static str, title: String, edits: EditSet) -> Self {
        Self {
            strategy,
            title,
            why: Vec::new(),
            file: function.file.path.clone(),
            edits,
            expect: Expect { releases: true, ..Expect::default() },
            probe: None,
        }
    }

    pub fn overwriting(mut self) -> Self {
        self.expect.overwrites = true;
        self
    }

    pub fn in_destructor(mut self) -> Self {
        self.expect.in_destructor = true;
        self
    }

    pub fn moving(mut self, from: (u32, u32)) -> Self {
        self.expect.moved = Some(from);
        self
    }

    pub fn without_release(mut self) -> Self {
        self.expect.releases = false;
        self
    }
}

/// A file before and after an edit, and how places map.
#[derive(Clone, Debug)]
pub struct Change {
    pub file: PathBuf,
    pub before: FileText,
    pub after: FileText,
    /// Replaced ranges and the length of their replacements, by start.
    moves: Vec<(usize, usize, usize)>,
}

impl Change {
    pub fn new(file: PathBuf, before: Vec<u8>, edits: &EditSet) -> Result<Self, String> {
        if let Some(offset) = edits.conflict() {
            return Err(format!("two edits meet at byte {offset}"));
        }
        let after = edits.apply(&file, &before).map_err(|error| error.to_string())?;
        let mut moves: Vec<(usize, usize, usize)> =
            edits.edits().iter().map(|edit| (edit.span.start, edit.span.end, edit.text.len())).collect();
        // A shared edit is applied once: lengths are taken from the texts where that makes a difference.
        let grown: usize = moves.iter().map(|entry| entry.2).sum();
        let shrunk: usize = moves.iter().map(|entry| entry.1 - entry.0).sum();
        if before.len() + grown - shrunk != after.len() {
            moves.dedup();
        }
        moves.sort_unstable();
        Ok(Self { before: FileText::new(file.clone(), before), after: FileText::new(file.clone(), after), file, moves })
    }

    pub fn is_empty(&self) -> bool {
        self.before.bytes == self.after.bytes
    }

    /// Where an old offset lies now; what was replaced lies at the end of its replacement.
    pub fn offset(&self, old: usize) -> usize {
        let mut shift = 0isize;
        for (start, end, length) in &self.moves {
            if *end <= old && *start <= old {
                shift += *length as isize - (end - start) as isize;
            } else if *start < old {
                return (*start as isize + shift + *length as isize).max(0) as usize;
            }
        }
        (old as isize + shift).max(0) as usize
    }

    /// Where a new offset lay before; `None` in new text, and at its edges, where it is not certain which side is meant.
    pub fn origin(&self, new: usize) -> Option<usize> {
        let mut shift = 0isize;
        for (start, end, length) in &self.moves {
            let from = *start as isize + shift;
            if (new as isize) < from {
                break;
            }
            if new as isize <= from + *length as isize {
                return None;
            }
            shift += *length as isize - (end - start) as isize;
        }
        usize::try_from(new as isize - shift).ok()
    }

    /// Where a line and column lie now.
    pub fn position(&self, line: u32, column: u32) -> (u32, u32) {
        match self.before.offset_of(line, column.max(1)) {
            Some(old) => {
                let (line, new) = self.after.position_of(self.offset(old));
                (line, if column == 0 { 0 } else { new })
            }
            None => (line, column),
        }
    }

    /// Whether text at a place of the new file was put there by the edit.
    pub fn is_new(&self, line: u32, column: u32) -> bool {
        let Some(at) = self.after.offset_of(line, column.max(1)) else { return false };
        let mut shift = 0isize;
        for (start, end, length) in &self.moves {
            let from = *start as isize + shift;
            if (from..from + *length as isize).contains(&(at as isize)) {
                return true;
            }
            shift += *length as isize - (end - start) as isize;
        }
        false
    }
}
