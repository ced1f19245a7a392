//! Compiles one unit again, with some files as they would be after a patch.

use std::path::PathBuf;

use caulk_ir::Unit;

use crate::clang::{self, Clang, Job};
use crate::database::CompileCommand;
use crate::error::FrontendError;
use crate::files::Files;
use crate::load::{Lower, settle};

/// A unit made outside a whole load.
#[derive(Debug)]
pub struct CompiledUnit {
    pub unit: Unit,
    /// One line each, in the order clang prints them: `file:line:column: warning: text [-Wname]`.
    pub warnings: Vec<String>,
}

/// Compiles a unit with some files (absolute paths) replaced by other contents; every path and position is that of
/// the replaced file itself. With `warnings`, the unit's own warnings and `-Wall` are on, none of them an error.
pub fn compile_patched_with(
    command: &CompileCommand,
    replaced: &[(PathBuf, String)],
    warnings: bool,
    lower: Lower,
) -> Result<CompiledUnit, FrontendError> {
    let clang = Clang::find()?;
    let flags = crate::flags::convert(command);
    let scratch = tempfile::Builder::new().prefix("caulk-").tempdir();
    let scratch = scratch.map_err(|error| FrontendError::Setup(format!("no temporary folder: {error}")))?;
    let job = Job { command, flags: &flags, replaced, warnings };
    let fail = |message| FrontendError::Compile { file: command.file.clone(), message };
    let compiled = clang::compile(&clang, &job, scratch.path(), "patched").map_err(|failure| fail(failure.message))?;
    let mut unit = lower(&compiled.module).map_err(fail)?;
    settle(&mut unit, command, &compiled.read, &flags, replaced, &Files::new());
    Ok(CompiledUnit { unit, warnings: compiled.warnings })
}
