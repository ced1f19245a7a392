//! Trouble with the environment: what happened, where, and what to do about it.

use std::path::PathBuf;

/// Why a project could not be loaded, captured or compiled. A unit that does not compile is not among these:
/// that is a gap, and everything else goes on.
#[derive(Debug, thiserror::Error)]
pub enum FrontendError {
    /// Neither `CAULK_CLANG`, nor `clang-19`, nor a `clang` of version 19.
    #[error(
        "clang 19 was not found ({tried}). Install it (on Debian and Ubuntu: `apt-get install clang-19`), \
         or set CAULK_CLANG to the path of a clang 19"
    )]
    NoClang { tried: String },

    /// A file or folder of the request is not there or cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },

    /// A file or folder cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },

    /// The folder has no compile database.
    #[error(
        "no compile_commands.json in {}, in its build/ or above it. Record one with `caulk capture -- make` \
         (or your build command), let CMake write one with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, or name the .c files",
        folder.display()
    )]
    NoDatabase { folder: PathBuf },

    /// The compile database is not what it should be.
    #[error("{}:{line}:{column}: not a compile database: {reason}. Record it again, or mend the file", path.display())]
    Database { path: PathBuf, line: usize, column: usize, reason: String },

    /// The record of link commands is not what it should be.
    #[error("{}:{line}:{column}: not a record of link commands: {reason}. Run `caulk capture` again", path.display())]
    Links { path: PathBuf, line: usize, column: usize, reason: String },

    /// A path of the request is neither a folder, a compile database nor a C file.
    #[error("{}: neither a folder, a compile_commands.json nor a .c file", path.display())]
    UnknownInput { path: PathBuf },

    /// There were no units at all, or not one of them compiled.
    #[error("nothing could be analysed: {reason}")]
    NothingAnalysed {
        reason: String,
        /// What failed and what was passed over, for the report.
        gaps: Vec<caulk_base::Gap>,
    },

    /// One unit did not compile where it had to.
    #[error("{}: {message}", file.display())]
    Compile { file: PathBuf, message: String },

    /// A program we need could not be started.
    #[error("cannot start {program}: {error}")]
    Start { program: String, error: std::io::Error },

    /// The temporary folder or the worker threads could not be made.
    #[error("cannot set up the run: {0}")]
    Setup(String),
}

impl FrontendError {
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::Read { path, error }
    }

    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::Write { path, error }
    }
}
