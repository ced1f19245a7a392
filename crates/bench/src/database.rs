//! The units of a project, with the few flags that every compiler here understands.
//!
//! Read independently of caulk's own reader: a benchmark that shares code with
//! what it measures would share its mistakes. Only flags that say what the
//! program *is* are kept (macros, include folders, language), so that clang, gcc
//! and cppcheck see the same text.
//!
//! # Invariants
//! - Each pair of file and flags comes once, in the order of the database.
//! - C files only.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unit {
    pub directory: PathBuf,
    pub file: PathBuf,
    pub flags: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    pub directory: PathBuf,
    pub file: PathBuf,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// Where the database of a folder is, if it has one.
pub(crate) fn find(folder: &Path) -> Option<PathBuf> {
    ["compile_commands.json", "build/compile_commands.json"]
        .into_iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}

pub(crate) fn read(path: &Path) -> Result<Vec<Unit>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let entries: Vec<Entry> =
        serde_json::from_str(&text).with_context(|| format!("{} is not a compile database", path.display()))?;
    let mut seen = HashSet::new();
    let mut units = Vec::new();
    for entry in entries {
        if entry.file.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let arguments = if entry.arguments.is_empty() { split(&entry.command) } else { entry.arguments };
        let unit = Unit {
            file: entry.directory.join(&entry.file),
            flags: keep(arguments.into_iter().skip(1)),
            directory: entry.directory,
        };
        if seen.insert(unit.clone()) {
            units.push(unit);
        }
    }
    if units.is_empty() {
        bail!("{} names no C file", path.display());
    }
    Ok(units)
}

/// Writes a database for C files that have none.
pub(crate) fn write(path: &Path, directory: &Path, files: &[PathBuf], flags: &[String]) -> Result<()> {
    let entries: Vec<Entry> = files
        .iter()
        .map(|file| {
            let mut arguments = vec!["cc".to_owned(), "-c".to_owned()];
            arguments.extend_from_slice(flags);
            arguments.push(file.display().to_string());
            Entry { directory: directory.to_owned(), file: file.clone(), arguments, command: String::new() }
        })
        .collect();
    std::fs::write(path, serde_json::to_vec_pretty(&entries)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn keep(arguments: impl Iterator<Item = String>) -> Vec<String> {
    const WITH_VALUE: [&str; 9] =
        ["-D", "-U", "-I", "-iquote", "-isystem", "-idirafter", "-include", "-imacros", "--sysroot"];
    const ALONE: [&str; 9] = [
        "-std=",
        "-ansi",
        "-pthread",
        "-fsigned-char",
        "-funsigned-char",
        "-fshort-enums",
        "-fPIC",
        "-fms-extensions",
        "-nostdinc",
    ];
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if WITH_VALUE.contains(&argument.as_str()) {
            if let Some(value) = arguments.next() {
                kept.extend([argument, value]);
            }
        } else if ["-o", "-MF", "-MT", "-MQ", "-x"].contains(&argument.as_str()) {
            arguments.next();
        } else if WITH_VALUE.iter().chain(&ALONE).any(|flag| argument.starts_with(flag)) {
            kept.push(argument);
        }
    }
    kept
}

/// Splits a command the way a shell does, quotes and backslashes included.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == character => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_split_as_in_a_shell() {
        assert_eq!(
            split(r#"cc '-DA="x y"' -DB=\"z\"  "-D C" '' f.c"#),
            ["cc", r#"-DA="x y""#, r#"-DB="z""#, "-D C", "", "f.c"]
        );
    }

    #[test]
    fn only_flags_that_every_compiler_knows_stay() {
        let flags =
            split("-Wall -O2 -g -DA=1 -D B -I. -o f.o -MF d -std=gnu99 -isystem /x -fno-plt -c f.c -include h.h");
        assert_eq!(keep(flags.into_iter()).join(" "), "-DA=1 -D B -I. -std=gnu99 -isystem /x -include h.h");
    }

    #[test]
    fn a_written_database_reads_back_without_its_doubles() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("compile_commands.json");
        let files = [PathBuf::from("a.c"), PathBuf::from("a.c"), PathBuf::from("b.cpp")];
        write(&path, folder.path(), &files, &["-DX".to_owned()]).unwrap();
        let units = read(&path).unwrap();
        assert_eq!(units.len(), 1);
        assert_eq!(
            (units[0].file.clone(), units[0].flags.clone()),
            (folder.path().join("a.c"), vec!["-DX".to_owned()])
        );
        assert_eq!(find(folder.path()), Some(path));
    }
}
