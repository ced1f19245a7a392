//! Ctrl-C leaves nothing half-written behind.
//!
//! Files appear under their own name only when they are complete (see `output`);
//! until then they have a name that is listed here, and an interrupt removes it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// 128 + SIGINT, as shells have it.
const INTERRUPTED: i32 = 130;

/// Takes over SIGINT and SIGTERM for the rest of the run.
pub(crate) fn install() {
    // It only fails where a handler is there already; the default action is then not worse than ours.
    let _ = ctrlc::set_handler(|| {
        remove_unfinished();
        std::process::exit(INTERRUPTED);
    });
}

/// A file or folder that must not survive an interrupt, until the guard is dropped.
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    pub(crate) fn new(path: &Path) -> Self {
        list().push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        list().retain(|path| *path != self.0);
    }
}

/// Removes what is not finished; for the handler and for the end after a bug.
pub(crate) fn remove_unfinished() {
    for path in list().drain(..) {
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
}

/// The list is valid whatever a panicking thread was doing.
fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
