//! From a C project to one [`caulk_ir::Program`] in memory: capture, clang, bitcode. The only room that knows LLVM.
//!
//! ```text
//! build --capture--> compile_commands.json, caulk_links.json
//! commands --flags--> clang's words --clang--> bitcode --bitcode--> Unit --cache--> the next run
//! Units + link units --link--> Program
//! ```
//!
//! # Invariants
//! - A unit that does not compile is a gap; everything else goes on.
//! - The same project gives the same program, whatever the number of threads and whatever the cache holds.
//! - No input makes it panic.

mod bitcode;
mod buildfiles;
mod cache;
mod capture;
mod clang;
mod database;
mod error;
mod files;
mod fingerprint;
mod flags;
mod link;
mod load;
mod macros;
mod patched;
mod paths;
mod progress;
mod request;
mod words;

use std::path::PathBuf;

pub use bitcode::{BitcodeError, PLUGIN_OUTPUT, install_plugin, lower, plugin_arguments};
pub use cache::{CacheChoice, DEFAULT_LIMIT};
pub use capture::{CaptureReport, capture};
pub use database::{CompileCommand, parse as parse_database};
pub use error::FrontendError;
pub use flags::{Arg, parse as parse_arguments};
pub use link::{LinkKind, LinkRecord, link, relink};
pub use load::{FailedUnit, Loaded, Timings};
pub use patched::CompiledUnit;
pub use progress::{Progress, Quiet};
pub use request::{PassedOver, Request};

/// Loads a project: finds its commands, compiles and lowers what the cache does not have, and links everything.
///
/// An error means that nothing could be analysed; units that fail are among the gaps.
pub fn load(request: &Request, progress: &dyn Progress) -> Result<Loaded, FrontendError> {
    load::load_with(request, progress, lowered)
}

/// Compiles one unit with some files (absolute paths) replaced by other contents. Paths and positions are those of
/// the files themselves. With `warnings`, the unit's own warnings and `-Wall` are on, and none is an error.
pub fn compile_patched(
    command: &CompileCommand,
    replaced: &[(PathBuf, String)],
    warnings: bool,
) -> Result<CompiledUnit, FrontendError> {
    patched::compile_patched_with(command, replaced, warnings, lowered)
}

/// The file that a unit means by a name in one of its `#line`s. Who made the unit's file elsewhere left a path of that
/// place in it; then it is the file of that name beside the unit's own.
pub fn named_source(command: &CompileCommand, name: &str) -> std::path::PathBuf {
    let named = paths::absolute(&command.directory, std::path::Path::new(name));
    let made = paths::absolute(&command.directory, &command.file);
    let beside = named.file_name().map(|name| made.with_file_name(name));
    match beside.filter(|beside| !named.exists() && beside.exists()) {
        Some(beside) => beside,
        None => named,
    }
}

/// The flags of a unit in clang's words, without the compiler and the source: for parsing its text.
pub fn source_flags(command: &CompileCommand) -> Vec<String> {
    flags::convert(command).flags
}

fn lowered(bitcode: &[u8]) -> Result<caulk_ir::Unit, String> {
    lower(bitcode).map_err(|error| error.to_string())
}
