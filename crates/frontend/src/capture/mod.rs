//! Records the compilers and linkers of any build.
//!
//! A small library is preloaded into every process of the build (`recorder/recorder.c`). It writes the arguments of
//! each compiler, archiver and linker to a log as they start, so that it does not matter who starts them, how, and
//! by what path: make, ninja, a script, `/usr/bin/cc` written into a configured tree, or ccache.
//!
//! ```text
//! make -j2 ── sh ── gcc -c a.c -o a.o      log: d/p a`gcc` a`-c` a`a.c` a`-o` a`a.o`
//!          └─ sh ── ccache gcc -c b.c      log: d/p a`ccache` …   (the gcc behind it is not recorded again)
//!   -> compile_commands.json: a.c, b.c     caulk_links.json: app of a.o, b.o
//! ```
//!
//! # Invariants
//! - The log lies in the project until its contents are in the database: a build that fails or is interrupted, even
//!   a capture that is killed, keeps what was recorded (the next capture takes it over).
//! - A capture adds to the database that is there: what an incremental build does not compile again is kept, as long
//!   as its source exists.
//! - The build sees the signals of the terminal as ever, and its exit code is handed on.
//!
//! # Known imprecision
//! - A statically linked compiler, or one started with a cleared environment, is not seen.

mod links;
mod log;
mod merge;
mod recorder;
mod signals;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::database::DATABASE_NAME;
use crate::error::FrontendError;
use crate::link::LINKS_NAME;
use crate::paths::{absolute, current_dir};

pub use links::{kind_of_output, link_of_command};

/// What a capture has recorded.
#[derive(Debug)]
pub struct CaptureReport {
    /// The compile database.
    pub database: PathBuf,
    /// The record of link commands.
    pub links: PathBuf,
    /// Units compiled by this build.
    pub recorded: usize,
    /// Units in the database now.
    pub units: usize,
    /// Programs, libraries and archives in the record now.
    pub link_units: usize,
    /// How the build ended.
    pub status: ExitStatus,
    /// What was wrong with an older database, which has been replaced.
    pub note: Option<String>,
}

/// Runs a build in `folder` and records it there.
pub fn capture(command: &[OsString], folder: &Path) -> Result<CaptureReport, FrontendError> {
    let folder = absolute(&current_dir(), folder);
    let Some((program, arguments)) = command.split_first() else {
        return Err(FrontendError::Setup("no build command was given after `--`".to_owned()));
    };
    let recorder = recorder::Recorder::install(&folder)?;
    let mut build = Command::new(program);
    build.args(arguments).current_dir(&folder);
    recorder.prepare(&mut build);
    let name = program.to_string_lossy().into_owned();
    let status = signals::wait_through(&mut build).map_err(|error| FrontendError::Start { program: name, error })?;
    let records = recorder.records()?;
    let merged = merge::merge(&records, &folder)?;
    recorder.finish();
    Ok(CaptureReport {
        database: folder.join(DATABASE_NAME),
        links: folder.join(LINKS_NAME),
        recorded: merged.recorded,
        units: merged.units,
        link_units: merged.link_units,
        status,
        note: merged.note,
    })
}
