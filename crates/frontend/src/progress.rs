//! How far the loading is, for those who watch.

use std::path::Path;

/// Told about every unit. Called from several threads at once, in no particular order.
pub trait Progress: Sync {
    /// A unit is being compiled.
    fn started(&self, file: &Path);
    /// So many of all units are done.
    fn advanced(&self, done: usize, all: usize);
}

/// Tells nobody.
pub struct Quiet;

impl Progress for Quiet {
    fn started(&self, _: &Path) {}
    fn advanced(&self, _: usize, _: usize) {}
}
