//! Finds and reads compile databases.
//!
//! `compile_commands.json` is a list of `{directory, file, command | arguments, output?}`. A folder's database is
//! looked for in the folder, in its `build/`, then above it. What comes out is a list of [`CompileCommand`]s with
//! absolute paths and response files expanded:
//!
//! ```text
//! {"directory": "/p/build", "file": "../a.c", "command": "gcc -I. @f.rsp -c ../a.c"}   f.rsp: -DX
//!   -> directory /p/build, file /p/a.c, arguments [gcc, -I., -DX, -c, ../a.c], output /p/build/a.o
//! ```
//!
//! # Invariants
//! - The order of the database is kept; entries for one file under different flags are all kept, exact duplicates
//!   are dropped.
//! - No text makes the reader panic: an error names file, line and column.

use std::path::{Path, PathBuf};

use caulk_base::FxHashSet;
use serde::Deserialize;

use crate::error::FrontendError;
use crate::flags;
use crate::paths::absolute;
use crate::words::{expand_responses, split_shell};

/// The name every tool gives a compile database.
pub const DATABASE_NAME: &str = "compile_commands.json";

/// How one object is made from one source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileCommand {
    /// Where the compiler is started.
    pub directory: PathBuf,
    /// The source file, as an absolute path.
    pub file: PathBuf,
    /// The compiler and its arguments, response files expanded.
    pub arguments: Vec<String>,
    /// The object file, as an absolute path, where it is known: the name link commands use.
    pub output: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Entry {
    directory: Option<String>,
    file: Option<String>,
    command: Option<String>,
    arguments: Option<Vec<String>>,
    output: Option<String>,
}

/// The database of a folder: its own, that of its `build/`, or the nearest above.
pub fn find(folder: &Path) -> Option<PathBuf> {
    let folder = absolute(&crate::paths::current_dir(), folder);
    let places = folder.ancestors().flat_map(|up| [up.join(DATABASE_NAME), up.join("build").join(DATABASE_NAME)]);
    places.into_iter().find(|path| path.is_file())
}

/// Reads a compile database.
pub fn read(path: &Path) -> Result<Vec<CompileCommand>, FrontendError> {
    let path = absolute(&crate::paths::current_dir(), path);
    let bytes = std::fs::read(&path).map_err(FrontendError::read(&path))?;
    parse(&bytes, &path)
}

/// Reads the text of a compile database that lies, or would lie, at `path`.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Vec<CompileCommand>, FrontendError> {
    let bad = |line, column, reason| FrontendError::Database { path: path.to_path_buf(), line, column, reason };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let entries: Vec<Entry> =
        serde_json::from_slice(bytes).map_err(|error| bad(error.line(), error.column(), plain_reason(&error)))?;
    let home = path.parent().unwrap_or(Path::new("/"));
    let mut commands = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let command = resolve(entry, home).map_err(|what| bad(0, 0, format!("entry {index} has no {what}")))?;
        commands.push(command);
    }
    Ok(without_duplicates(commands))
}

/// serde_json ends its message with the position, which we print in front.
pub(crate) fn plain_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn resolve(entry: Entry, home: &Path) -> Result<CompileCommand, &'static str> {
    let directory = absolute(home, Path::new(entry.directory.as_deref().unwrap_or("")));
    let file = absolute(&directory, Path::new(&entry.file.ok_or("`file`")?));
    let words = match (entry.arguments, entry.command) {
        (Some(arguments), _) => arguments,
        (None, Some(command)) => split_shell(&command),
        (None, None) => return Err("`command` and no `arguments`"),
    };
    let arguments = expand_responses(words, &directory);
    if arguments.is_empty() {
        return Err("words in its command");
    }
    let output = match entry.output {
        Some(output) => Some(absolute(&directory, Path::new(&output))),
        None => flags::object_of(&arguments, &directory, &file),
    };
    Ok(CompileCommand { directory, file, arguments, output })
}

/// Drops what is there already, keeping the first.
pub fn without_duplicates(mut commands: Vec<CompileCommand>) -> Vec<CompileCommand> {
    let mut seen = FxHashSet::default();
    commands.retain(|command| seen.insert(command.clone()));
    commands
}

/// The command for a plain `.c` file with the flags given after `--`.
pub fn plain(file: &Path, flags: &[String]) -> CompileCommand {
    let directory = crate::paths::current_dir();
    let file = absolute(&directory, file);
    let mut arguments = vec!["cc".to_owned()];
    arguments.extend(expand_responses(flags.to_vec(), &directory));
    arguments.push("-c".to_owned());
    arguments.push(file.to_string_lossy().into_owned());
    CompileCommand { directory, file, arguments, output: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<CompileCommand>, String> {
        parse(text.as_bytes(), Path::new("/p/build/compile_commands.json")).map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_and_relative_folders() {
        let commands = parsed(
            r#"[{"directory": "sub", "file": "../../a.c", "command": "gcc -DS=\"\\\"x y\\\"\" -c ../../a.c -o a.o"},
                {"directory": "/q", "file": "b.c", "arguments": ["cc", "-c", "b.c"], "extra": 1}]"#,
        )
        .unwrap();
        assert_eq!(commands[0].directory, Path::new("/p/build/sub"));
        assert_eq!(commands[0].file, Path::new("/p/a.c"));
        assert_eq!(commands[0].arguments[1], "-DS=\"x y\"");
        assert_eq!(commands[0].output.as_deref(), Some(Path::new("/p/build/sub/a.o")));
        assert_eq!(commands[1].output.as_deref(), Some(Path::new("/q/b.o")));
    }

    #[test]
    fn one_file_under_different_flags_is_kept_and_exact_duplicates_go() {
        let commands = parsed(
            r#"[{"directory": "/p", "file": "a.c", "command": "cc -DA -c a.c"},
                {"directory": "/p", "file": "a.c", "command": "cc -DB -c a.c"},
                {"directory": "/p", "file": "a.c", "command": "cc  -DA  -c a.c"}]"#,
        )
        .unwrap();
        assert_eq!(commands.iter().map(|c| c.arguments[1].as_str()).collect::<Vec<_>>(), ["-DA", "-DB"]);
    }

    #[test]
    fn errors_name_file_and_position() {
        let message = parsed("[{\"directory\": \"/p\",\n  \"file\": 7}]").unwrap_err();
        assert!(message.starts_with("/p/build/compile_commands.json:2:11: not a compile database: "), "{message}");
        assert!(message.contains("expected a string"), "{message}");
        assert!(parsed("[{\"file\": \"a.c\"}]").unwrap_err().contains("entry 0 has no `command`"));
        assert!(parsed("[{\"command\": \"cc\"}]").unwrap_err().contains("entry 0 has no `file`"));
        assert!(parsed("[{\"file\": \"a.c\", \"command\": \" \"}]").unwrap_err().contains("no words"));
        assert!(parsed("[{\"file\"").unwrap_err().contains("EOF"));
    }

    #[test]
    fn truncated_and_mutated_databases_never_panic() {
        let text = br#"[{"directory":"/p","file":"a.c","command":"cc -o \"x' @r -c a.c","output":"\u0000"}]"#;
        for end in 0..text.len() {
            let _ = parse(&text[..end], Path::new("/p/c.json"));
            let mut bytes = text.to_vec();
            bytes[end] ^= 0x15;
            let _ = parse(&bytes, Path::new("c.json"));
        }
    }

    #[test]
    fn a_folder_finds_its_own_then_its_builds_then_the_one_above() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("src/deep");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(root.path().join("build")).unwrap();
        std::fs::write(root.path().join("build").join(DATABASE_NAME), "[]").unwrap();
        assert_eq!(find(root.path()), Some(root.path().join("build").join(DATABASE_NAME)));
        std::fs::write(root.path().join(DATABASE_NAME), "[]").unwrap();
        assert_eq!(find(root.path()), Some(root.path().join(DATABASE_NAME)));
        assert_eq!(find(&deep), Some(root.path().join(DATABASE_NAME)));
    }
}
