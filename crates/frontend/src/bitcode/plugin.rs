//! The lowering as a plugin that clang loads.
//!
//! ```text
//! CAULK_LOWERED=- clang-19 -c -O0 -g … -fpass-plugin=P -Xclang -load -Xclang P … -Xclang -emit-llvm-only a.c
//! ```
//!
//! where P is `…/caulk-plugin-3f2a.so` prints the flat buffer and nothing else. The plugin also looks at clang's tree,
//! for what the prototypes of functions without a body say. If clang cannot load the plugin it
//! says so and fails; if its LLVM is another one than that of the build, the
//! plugin keeps still and there is no output. Either way bitcode remains.
//!
//! # Invariants
//! - The file's name holds the hash of its content, and it comes into its place
//!   by a rename: several processes may install it at once, and a changed
//!   caulk never loads an old one.
//! # Known imprecision
//! - Through bitcode, no parameter of a function without a body is known to be a pointer to const.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use caulk_base::ContentHash;

/// Goes to a file and not into a library folder: clang is the only one to load it.
static PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));

/// The environment variable that tells the plugin where to write: a path, or `-` for the standard output.
pub const PLUGIN_OUTPUT: &str = "CAULK_LOWERED";

/// Puts the plugin into the folder, unless it is there already, and says where it is.
pub fn install_plugin(folder: &Path) -> io::Result<PathBuf> {
    let name = format!("caulk-plugin-{}.so", &ContentHash::of(PLUGIN).hex()[..16]);
    let path = folder.join(name);
    if std::fs::read(&path).is_ok_and(|content| content == PLUGIN) {
        return Ok(path);
    }
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(PLUGIN)?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(path)
}

/// What clang is told in place of `-emit-llvm -o …`: load the plugin, and write nothing of its own.
pub fn plugin_arguments(plugin: &Path) -> Vec<OsString> {
    let mut load = OsString::from("-fpass-plugin=");
    load.push(plugin);
    // Twice, since clang has two kinds of plugins: for what it reads, and for what it makes of it.
    let mut arguments = vec![load, "-Xclang".into(), "-load".into(), "-Xclang".into(), plugin.into()];
    for word in ["-add-plugin", "caulk", "-emit-llvm-only", "-disable-llvm-verifier"] {
        arguments.extend(["-Xclang".into(), word.into()]);
    }
    arguments
}
