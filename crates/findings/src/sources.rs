//! Source text as the pure functions here see it: asked for by path, maybe absent.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Gives the text of a source file. A file that is gone is `None`, never an error:
/// what wanted to show it shows less.
pub trait SourceProvider {
    /// `path` as in [`Place::file`](crate::Place::file).
    fn text(&self, path: &str) -> Option<Arc<str>>;
}

/// Sources held in memory.
#[derive(Clone, Debug, Default)]
pub struct MemorySources {
    files: BTreeMap<String, Arc<str>>,
}

impl MemorySources {
    pub fn new<P: Into<String>, T: AsRef<str>>(files: impl IntoIterator<Item = (P, T)>) -> Self {
        Self { files: files.into_iter().map(|(path, text)| (path.into(), Arc::from(text.as_ref()))).collect() }
    }
}

impl SourceProvider for MemorySources {
    fn text(&self, path: &str) -> Option<Arc<str>> {
        self.files.get(path).cloned()
    }
}
