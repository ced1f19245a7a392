//! `caulk cc`: stands in for the compiler, and builds programs that reclaim what they lose.
//!
//! ```text
//! caulk cc -O2 -c a.c       the compiler as asked; then the unit's bitcode, from before any optimisation, into a.o
//! caulk cc a.o lib.a -o p   the linker as asked; then, if there is something to guard: the units of all objects that went
//!                           into p are gathered, those with chosen sites are changed and compiled again, and p is linked
//!                           with them and the runtime
//! ```
//!
//! # Invariants
//! - The compiler and the linker run as they would have run. What caulk adds comes after, and where it fails the result
//!   stays as it was: a build never breaks because of it.
//! - Everything else (`-E`, `-S`, assembler, questions about the compiler) passes through.

mod compile;
mod link;
mod parts;
mod sites;
mod words;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::args::{CcArgs, GuardArgs};
use crate::exit::{self, Outcome};

use self::words::{Mode, Words};

/// The folder of stand-ins that `caulk build` puts first into `PATH`; they must not call themselves.
pub(super) const STAND_INS: &str = "CAULK_STAND_INS";

pub(super) fn run(args: &CcArgs) -> Result<Outcome> {
    let words = Words::read(&args.arguments)?;
    let tools = Tools::new(&args.guard);
    match words.mode() {
        Mode::Other => tools.compile(&words.words),
        Mode::Compile => {
            let outcome = tools.compile(&words.words)?;
            if outcome == Outcome::Clean {
                compile::embed(&words, &tools);
            }
            Ok(outcome)
        }
        Mode::Link => link::run(&words, &tools, &args.guard),
    }
}

/// The programs that do the work.
pub(super) struct Tools {
    /// What the user would have called.
    compiler: PathBuf,
    /// For bitcode, and for what is made from it.
    clang: PathBuf,
    path: OsString,
}

impl Tools {
    fn new(args: &GuardArgs) -> Tools {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = match std::env::var_os(STAND_INS) {
            None => path,
            Some(own) => {
                let others = std::env::split_paths(&path).filter(|folder| *folder != Path::new(&own));
                std::env::join_paths(others).unwrap_or(path.clone())
            }
        };
        let clang = std::env::var_os("CAULK_CLANG").filter(|named| !named.is_empty()).map(PathBuf::from);
        let clang = clang.unwrap_or_else(|| PathBuf::from("clang-19"));
        Tools { compiler: args.compiler.clone().unwrap_or_else(|| clang.clone()), clang, path }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", &self.path);
        command
    }

    /// Runs the user's compiler, and ends as it ends.
    fn compile(&self, words: &[String]) -> Result<Outcome> {
        let mut command = self.command(&self.compiler);
        let status = command.args(words).status().with_context(|| format!("cannot run {}", self.compiler.display()))?;
        Ok(outcome(status))
    }

    /// Runs clang for a purpose of ours; an error is its first line.
    fn own(&self, arguments: &[String], directory: &Path) -> Result<(), String> {
        let mut command = self.command(&self.clang);
        let output = command.args(arguments).current_dir(directory).env("LC_ALL", "C").output();
        let output = output.map_err(|error| format!("cannot run {}: {error}", self.clang.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let first = errors.lines().find(|line| line.contains("error")).or_else(|| errors.lines().next());
        Err(first.unwrap_or("clang failed").trim().to_owned())
    }
}

pub(super) fn outcome(status: std::process::ExitStatus) -> Outcome {
    use std::os::unix::process::ExitStatusExt;
    if status.success() {
        return Outcome::Clean;
    }
    // As shells have it for what was killed.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Outcome::Child(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

/// What the user should know, and the build need not care about.
fn warn(text: &str) {
    exit::say(&format!("caulk: warning: {text}\n"));
}
