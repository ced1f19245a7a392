//! Tells which positions stand on a macro's name.
//!
//! Debug information gives the place where a macro is used, not that it is one. So the names defined in the files a
//! unit read, and on its command line, are collected, and a position is in a macro when the word that stands there
//! is one of them:
//!
//! ```text
//! #define CHECK(x) if (!(x)) return -1     names: CHECK
//!     CHECK(p);                            column 5: `CHECK` -> in a macro
//!     free(p);                             column 5: `free`  -> not
//! ```
//!
//! # Known imprecision
//! - A name counts wherever it stands, also before its `#define`, after its `#undef`, and without the parentheses a
//!   function-like macro needs.
//! - An operator or literal inside a macro's argument stands at the macro's name as well, since clang says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caulk_base::{FxHashMap, FxHashSet, Id};
use caulk_ir::{FileId, Unit};

use crate::files::Files;

/// The macro names of one file.
pub type MacroNames = FxHashSet<Box<[u8]>>;

/// Collects the names after every `#define`.
pub fn names(bytes: &[u8]) -> MacroNames {
    bytes.split(|&byte| byte == b'\n').filter_map(defined_name).map(Into::into).collect()
}

fn defined_name(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start().strip_prefix(b"#")?.trim_ascii_start().strip_prefix(b"define")?;
    line.first().filter(|byte| byte.is_ascii_whitespace())?;
    word(line.trim_ascii_start())
}

fn word(bytes: &[u8]) -> Option<&[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$' || *byte >= 0x80;
    let length = bytes.iter().take_while(|byte| is_word(byte)).count();
    (length > 0 && !bytes[0].is_ascii_digit()).then(|| &bytes[..length])
}

/// Sets `in_macro` on every position of the unit that stands on the name of a macro, and `at_return` on
/// those of `return` statements.
/// `replaced` are files that were read with other contents than on disk.
pub fn mark(unit: &mut Unit, read: &[PathBuf], flags: &[String], replaced: &[(PathBuf, String)], files: &Files) {
    let text_of = |path: &Path| replaced.iter().find(|(name, _)| name == path).map(|(_, text)| text.as_bytes());
    let names_of = |path: &PathBuf| match text_of(path) {
        Some(text) => Some(Arc::new(names(text))),
        None => files.macros(path),
    };
    let sets: Vec<Arc<MacroNames>> = read.iter().filter_map(names_of).collect();
    let command_line: MacroNames = command_line_names(flags);
    let mut texts: FxHashMap<FileId, Text> = FxHashMap::default();
    let mut decided: FxHashMap<Box<[u8]>, bool> = FxHashMap::default();
    let paths = &unit.files;
    for loc in unit.locs.iter_mut() {
        let Some(file) = loc.file.filter(|file| file.index() < paths.len()) else { continue };
        let text = texts.entry(file).or_insert_with(|| {
            let path = Path::new(&paths[file]);
            Text::new(text_of(path).map_or_else(|| std::fs::read(path).unwrap_or_default(), <[u8]>::to_vec))
        });
        let Some(word) = text.word_at(loc.line, loc.column) else { continue };
        loc.at_return = word == b"return";
        loc.in_macro = match decided.get(word) {
            Some(&known) => known,
            None => {
                let found = command_line.contains(word) || sets.iter().any(|names| names.contains(word));
                decided.insert(word.into(), found);
                found
            }
        };
    }
}

fn command_line_names(flags: &[String]) -> MacroNames {
    let mut names = MacroNames::default();
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let definition = match flag.as_str() {
            "-D" => flags.next().map(String::as_str),
            _ => flag.strip_prefix("-D"),
        };
        names.extend(definition.and_then(|text| word(text.as_bytes())).map(Box::from));
    }
    names
}

struct Text {
    bytes: Vec<u8>,
    lines: Vec<usize>,
}

impl Text {
    fn new(bytes: Vec<u8>) -> Text {
        let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        Text { bytes, lines }
    }

    fn word_at(&self, line: u32, column: u32) -> Option<&[u8]> {
        let start = self.lines.get((line as usize).checked_sub(1)?)?;
        word(self.bytes.get(start + (column as usize).checked_sub(1)?..)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caulk_ir::Loc;

    #[test]
    fn names_are_those_after_define() {
        let found = names(b"#define A 1\n  #  define B(x) x\n#undef C\n#defined D\n/* E */\n#define\n#define F\r\n");
        let mut found: Vec<_> = found.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        found.sort();
        assert_eq!(found, ["A", "B", "F"]);
    }

    #[test]
    fn positions_on_macro_names_are_marked() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("a.c");
        std::fs::write(&source, "#define CHECK(x) x\nvoid f() { CHECK(g()); FLAG; free(0); }\n").unwrap();
        let mut unit = Unit::default();
        let file = Some(unit.files.push(source.display().to_string()));
        for (line, column) in [(0, 0), (2, 12), (2, 24), (2, 30), (9, 1), (2, 900)] {
            unit.locs.push(Loc { file, line, column, scope: None, in_macro: false, at_return: false });
        }
        mark(&mut unit, &[source], &["-D".into(), "FLAG=1".into()], &[], &Files::new());
        assert_eq!(
            unit.locs.iter().map(|loc| loc.in_macro).collect::<Vec<_>>(),
            [false, true, true, false, false, false]
        );
    }
}
