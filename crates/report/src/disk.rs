//! Sources from disk, each read once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use caulk_findings::SourceProvider;

/// Reads files when asked and keeps them. Bytes that are not UTF-8 become `U+FFFD`.
#[derive(Default)]
pub struct DiskSources {
    files: Mutex<BTreeMap<String, Option<Arc<str>>>>,
}

impl DiskSources {
    pub fn new() -> Self {
        Self::default()
    }
}

impl SourceProvider for DiskSources {
    fn text(&self, path: &str) -> Option<Arc<str>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get(path) {
            return known.clone();
        }
        let text = std::fs::read(path).ok().map(|bytes| Arc::from(String::from_utf8_lossy(&bytes)));
        files.insert(path.to_owned(), text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lossily_and_forgives_absence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin1.c");
        std::fs::write(&path, b"int x; // caf\xe9\n").unwrap();
        let sources = DiskSources::new();
        let text = sources.text(path.to_str().unwrap()).unwrap();
        assert_eq!(&*text, "int x; // caf\u{fffd}\n");
        assert!(sources.text("/nowhere/at/all.c").is_none());
    }
}
