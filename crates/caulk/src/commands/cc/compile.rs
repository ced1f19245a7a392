//! Bitcode beside machine code.
//!
//! The bitcode is what clang makes of the source with the user's own options, before any pass has run over it. It has
//! positions even where the user wants no debug information; what is made from it has them taken out again.

use std::path::{Path, PathBuf};

use caulk_instrument::{Carried, Record, carry};

use super::words::Words;
use super::{Tools, warn};

/// Puts the bitcode of every C source of a `-c` command into its object.
pub(super) fn embed(words: &Words, tools: &Tools) {
    let Ok(directory) = std::env::current_dir() else { return };
    for source in words.sources() {
        let object = words
            .output()
            .unwrap_or_else(|| Path::new(Path::new(&source).file_name().unwrap_or_default()).with_extension("o"));
        if let Err(reason) = embed_one(words, tools, &directory, &source, &object) {
            warn(&format!("{source} is left as it is: {reason}"));
        }
    }
}

/// Compiles one source of a link command by itself, as the compiler would have done.
pub(super) fn object(words: &Words, tools: &Tools, source: &str, object: &Path) -> Result<bool, String> {
    let mut command = tools.command(&tools.compiler);
    let mut options = words.options();
    options.extend(words.words.iter().filter(|word| word.starts_with("-flto")).cloned());
    command.args(options).arg("-c").arg(source).arg("-o").arg(object);
    let status = command.status().map_err(|error| error.to_string())?;
    if !status.success() {
        return Ok(false);
    }
    let directory = std::env::current_dir().map_err(|error| error.to_string())?;
    if let Err(reason) = embed_one(words, tools, &directory, source, object) {
        warn(&format!("{source} is left as it is: {reason}"));
    }
    Ok(true)
}

fn embed_one(words: &Words, tools: &Tools, directory: &Path, source: &str, object: &Path) -> Result<(), String> {
    let bytes = std::fs::read(object).map_err(|error| error.to_string())?;
    let bitcode = bitcode(words, tools, directory, source)?;
    let mut arguments = vec![tools.compiler.display().to_string()];
    arguments.extend(words.options());
    // Only for what is made of it later: the bitcode itself is from before.
    arguments.extend(words.words.iter().filter(|word| word.starts_with("-flto")).cloned());
    arguments.extend(["-c".to_owned(), source.to_owned()]);
    let file = std::path::absolute(source).unwrap_or_else(|_| PathBuf::from(source));
    let record = Record {
        directory: directory.display().to_string(),
        arguments,
        file: file.display().to_string(),
        debug: words.debug(),
    };
    let made = carry(&bytes, &Carried { record, bitcode }).ok_or("its object is not one that can carry bitcode")?;
    write_over(object, &made).map_err(|error| error.to_string())
}

/// There whole or as it was.
fn write_over(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let temporary = tempfile::NamedTempFile::new_in(folder)?;
    std::fs::write(temporary.path(), bytes)?;
    std::fs::set_permissions(temporary.path(), std::fs::metadata(path)?.permissions())?;
    temporary.persist(path).map(|_| ()).map_err(|error| error.error)
}

fn bitcode(words: &Words, tools: &Tools, directory: &Path, source: &str) -> Result<Vec<u8>, String> {
    let out = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let mut arguments = words.options();
    let mut fixed = vec!["-w", "-Wno-everything", "-Qunused-arguments", "-c", "-emit-llvm"];
    fixed.extend(["-Xclang", "-disable-llvm-passes", "-Xclang", "-disable-lifetime-markers"]);
    if !words.optimises() {
        fixed.extend(["-Xclang", "-disable-O0-optnone"]);
    }
    if !words.debug() {
        fixed.extend(["-gline-tables-only", "-gcolumn-info"]);
    }
    arguments.extend(fixed.into_iter().map(str::to_owned));
    arguments.extend(["-x".to_owned(), if source.ends_with(".i") { "cpp-output" } else { "c" }.to_owned()]);
    arguments.extend([source.to_owned(), "-o".to_owned(), out.path().display().to_string()]);
    tools.own(&arguments, directory)?;
    std::fs::read(out.path()).map_err(|error| error.to_string())
}

/// Machine code from changed bitcode, with the unit's own options.
pub(super) fn regenerate(tools: &Tools, record: &Record, bitcode: &[u8], object: &Path) -> Result<(), String> {
    let input = tempfile::Builder::new().suffix(".bc").tempfile().map_err(|error| error.to_string())?;
    std::fs::write(input.path(), bitcode).map_err(|error| error.to_string())?;
    let words = Words { words: record.arguments.get(1..).unwrap_or_default().to_vec() };
    let mut arguments = words.code_options();
    arguments.extend(["-w", "-Qunused-arguments", "-c", "-x", "ir"].map(str::to_owned));
    arguments.extend([input.path().display().to_string(), "-o".to_owned(), object.display().to_string()]);
    tools.own(&arguments, Path::new(&record.directory)).or_else(|_| tools.own(&arguments, Path::new(".")))
}
