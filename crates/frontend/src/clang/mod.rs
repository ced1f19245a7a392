//! Finds clang 19 and runs it over one unit; what it makes of it comes through a pipe.
//!
//! What gcc accepts must compile. Warnings that clang makes errors of are silenced as a group, and three kinds of
//! failure are mended and tried again, a bounded number of times:
//!
//! ```text
//! clang: error: unknown argument: '-mfoo'                  that flag is left out
//! a.c:4:30: error: 'malloc' attribute takes no arguments   `malloc(f, 1)` is blanked in an overlay of a.c
//! 'omp.h' file not found                                   gcc's own header folder is looked through last
//! ```
//!
//! Clang lowers the unit itself where it can load our plugin, which spares writing and reading bitcode; where it
//! cannot, that is noticed once and bitcode comes through the pipe.
//!
//! # Invariants
//! - Line and column of every position are those of the file on disk: an overlay blanks, it never shifts.
//! - Nothing is left behind but what lies in the given scratch folder.

mod find;
mod overlay;
mod repair;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub use find::Clang;
pub use overlay::Overlay;

use crate::bitcode::{PLUGIN_OUTPUT, plugin_arguments};
use crate::database::CompileCommand;
use crate::flags::{ClangFlags, Language};
use crate::paths::absolute;

/// How often a unit is tried with other flags or a longer overlay.
const ATTEMPTS: usize = 8;

/// What every unit is compiled with, beside its own flags.
const FIXED: &[&str] = &[
    "-c",
    "-O0",
    "-g",
    "-Xclang",
    "-disable-O0-optnone",
    "-fheinous-gnu-extensions",
    "-fno-caret-diagnostics",
    "-fno-color-diagnostics",
    "-ferror-limit=0",
    "-Qunused-arguments",
];

/// Quiet: also what clang makes an error of by default and gcc 12 does not.
const QUIET: &[&str] = &["-w", "-Wno-everything"];

/// With the unit's own warnings, none of which may be an error.
const LOUD: &[&str] = &["-Wall", "-Wno-unknown-warning-option"];
const LOUD_AFTER: &[&str] = &[
    // What the bitcode does not show: where a variable was set to null on some ways and has no value on the others, mem2reg
    // takes it for null on all.
    "-Wuninitialized",
    "-Wsometimes-uninitialized",
    "-Wconditional-uninitialized",
    "-Wno-error",
    "-Wno-error=implicit-function-declaration",
    "-Wno-error=implicit-int",
    "-Wno-error=int-conversion",
    "-Wno-error=incompatible-function-pointer-types",
    "-Wno-error=incompatible-pointer-types",
    "-Wno-error=return-type",
    "-Wno-error=return-mismatch",
    "-Wno-unknown-warning-option",
];

/// One unit to compile.
pub struct Job<'a> {
    pub command: &'a CompileCommand,
    pub flags: &'a ClangFlags,
    /// Files to be read with other contents than on disk.
    pub replaced: &'a [(PathBuf, String)],
    /// Print the unit's own warnings, and those of `-Wall`.
    pub warnings: bool,
}

/// A unit that compiled.
pub struct Compiled {
    /// Bitcode, or what the plugin made of it: the lowering takes both.
    pub module: Vec<u8>,
    /// Every file clang read, the source first, as absolute paths.
    pub read: Vec<PathBuf>,
    pub warnings: Vec<String>,
    pub time: Duration,
}

/// A unit that did not compile, or whose compiler could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The first error, with its position.
    pub message: String,
    /// Every file clang read, if that is known.
    pub read: Option<Vec<PathBuf>>,
    /// The header that was not found, as it was included.
    pub missing: Option<String>,
    pub time: Duration,
}

/// Compiles one unit. `scratch` is a folder of our own; `name` is unique in it.
pub fn compile(clang: &Clang, job: &Job<'_>, scratch: &Path, name: &str) -> Result<Compiled, Failure> {
    let started = Instant::now();
    let fail = |message: String| Failure { message, read: None, missing: None, time: started.elapsed() };
    let dependencies = scratch.join(format!("{name}.d"));
    let mut flags = job.flags.flags.clone();
    let mut overlay = Overlay::new(scratch.join(name), job.replaced);
    for attempt in 0..ATTEMPTS {
        let overlay_flags = overlay.write().map_err(|error| fail(format!("cannot write a temporary file: {error}")))?;
        let plugin = clang.plugin();
        let mut command = base_command(clang, job, &flags);
        match plugin {
            Some(plugin) => command.args(plugin_arguments(plugin)).env(PLUGIN_OUTPUT, "-"),
            None => command.arg("-emit-llvm"),
        };
        command.args(&overlay_flags).args(["-MD", "-MT", "unit", "-MF"]).arg(&dependencies).args(["-o", "-"]);
        let output =
            command.output().map_err(|error| fail(format!("cannot start {}: {error}", clang.path.display())))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if plugin.is_some() && (refuses_plugin(&errors) || output.status.success() && output.stdout.is_empty()) {
            clang.give_up_plugin();
            continue;
        }
        if output.status.success() && !output.stdout.is_empty() {
            let mut read = read_dependencies(&dependencies, &job.command.directory).unwrap_or_default();
            put_first(&mut read, &job.command.file);
            let warnings = errors.lines().filter(|line| line.contains(" warning: ")).map(str::to_owned).collect();
            let _ = std::fs::remove_file(&dependencies);
            overlay.remove();
            return Ok(Compiled { module: output.stdout, read, warnings, time: started.elapsed() });
        }
        let mended =
            attempt + 1 < ATTEMPTS && repair::mend(&errors, &mut flags, &mut overlay, clang, &job.command.directory);
        if mended {
            continue;
        }
        let mut read = read_dependencies(&dependencies, &job.command.directory);
        if read.is_none() {
            // After a header that was not found clang writes no list; the preprocessor alone can go past it.
            let mut again = base_command(clang, job, &flags);
            again.args(&overlay_flags).args(["-M", "-MG", "-MT", "unit", "-MF"]).arg(&dependencies).args(["-o", "-"]);
            let _ = again.output();
            read = read_dependencies(&dependencies, &job.command.directory);
        }
        if let Some(read) = &mut read {
            put_first(read, &job.command.file);
        }
        let _ = std::fs::remove_file(&dependencies);
        overlay.remove();
        let message = first_error(&errors).unwrap_or_else(|| format!("clang ended with {}", output.status));
        return Err(Failure { message, read, missing: repair::missing_header(&errors), time: started.elapsed() });
    }
    Err(fail("clang refuses its flags".to_owned()))
}

/// Whether clang could not load the plugin: another LLVM, or a folder that no code may be loaded from.
fn refuses_plugin(errors: &str) -> bool {
    errors.lines().any(|line| line.contains("error: ") && line.contains("plugin"))
}

fn base_command(clang: &Clang, job: &Job<'_>, flags: &[String]) -> Command {
    let mut command = Command::new(&clang.path);
    command.current_dir(&job.command.directory).env("LC_ALL", "C").stdin(Stdio::null());
    // clang believes this where it leads to the same folder, and would name the files by a link that the user came by.
    command.env("PWD", &job.command.directory);
    command.args(FIXED);
    if job.warnings {
        command.args(LOUD).args(&job.flags.warnings).args(LOUD_AFTER);
    } else {
        command.args(QUIET);
    }
    command.args(flags);
    command.args(["-x", if job.flags.language == Language::PreprocessedC { "cpp-output" } else { "c" }]);
    command.arg(as_spelled(job.command));
    command
}

/// The source as the command names it where it does: `__FILE__` and the positions shall read as in the build.
fn as_spelled(command: &CompileCommand) -> &Path {
    let spelled = command
        .arguments
        .iter()
        .rev()
        .find(|word| !word.starts_with('-') && absolute(&command.directory, Path::new(word)) == command.file);
    spelled.map_or(command.file.as_path(), Path::new)
}

fn put_first(read: &mut Vec<PathBuf>, file: &Path) {
    read.retain(|path| path != file);
    read.insert(0, file.to_path_buf());
}

/// Reads clang's dependency file: `unit: a.c b\ c.h \` and so on.
fn read_dependencies(path: &Path, directory: &Path) -> Option<Vec<PathBuf>> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, list) = text.split_once(": ")?;
    let mut files: Vec<PathBuf> = split_make(list).iter().map(|word| absolute(directory, Path::new(word))).collect();
    files.sort_unstable();
    files.dedup();
    Some(files)
}

/// Splits the right side of a make rule: `\ ` is a space, `\#` a hash, `$$` a dollar, `\` at a line's end nothing.
fn split_make(list: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {}
            ('\\', Some(&next @ (' ' | '#'))) => {
                chars.next();
                word.push(next);
            }
            ('$', Some('$')) => {
                chars.next();
                word.push('$');
            }
            (c, _) if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (c, _) => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn first_error(errors: &str) -> Option<String> {
    let is_error = |line: &&str| line.contains("error: ") || line.starts_with("error:");
    let line = errors.lines().find(is_error).or_else(|| errors.lines().find(|line| !line.trim().is_empty()))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn make_rules_are_split_with_their_escapes() {
        assert_eq!(split_make("a.c dir/b\\ c.h \\\n  d\\#.h $$e.h\n"), ["a.c", "dir/b c.h", "d#.h", "$e.h"]);
        assert_eq!(split_make(""), Vec::<String>::new());
    }

    #[test]
    fn the_first_error_is_told_and_not_the_notes() {
        let text = "In file included from a.c:1:\nb.h:2:3: warning: x\nb.h:4:1: fatal error: 'q.h' file not found\n";
        assert_eq!(first_error(text).unwrap(), "b.h:4:1: fatal error: 'q.h' file not found");
        assert_eq!(first_error("\nStack dump:\n").unwrap(), "Stack dump:");
        assert_eq!(first_error(""), None);
    }
}
