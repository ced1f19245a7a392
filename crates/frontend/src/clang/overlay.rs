//! Shows clang other contents of some files under their own names, through its virtual file system.

use std::path::{Path, PathBuf};

use serde_json::json;

/// Files with other contents than on disk.
pub struct Overlay {
    /// Where the contents go: `<stem>.0`, …, `<stem>.overlay`.
    stem: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Overlay {
    pub fn new(stem: PathBuf, replaced: &[(PathBuf, String)]) -> Self {
        let files = replaced.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
        Overlay { stem, files }
    }

    /// The contents clang sees.
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        match self.files.iter().find(|(name, _)| name == path) {
            Some((_, bytes)) => Some(bytes.clone()),
            None => std::fs::read(path).ok(),
        }
    }

    pub fn set(&mut self, path: PathBuf, bytes: Vec<u8>) {
        match self.files.iter_mut().find(|(name, _)| *name == path) {
            Some((_, old)) => *old = bytes,
            None => self.files.push((path, bytes)),
        }
    }

    /// Writes the contents down and gives the flags under which clang reads them.
    pub fn write(&self) -> std::io::Result<Vec<String>> {
        if self.files.is_empty() {
            return Ok(Vec::new());
        }
        let mut roots = Vec::with_capacity(self.files.len());
        for (index, (path, bytes)) in self.files.iter().enumerate() {
            let place = self.content(index);
            std::fs::write(&place, bytes)?;
            roots.push(json!({
                "type": "file",
                "name": path.to_string_lossy(),
                "external-contents": place.to_string_lossy(),
            }));
        }
        let map = json!({ "version": 0, "case-sensitive": true, "use-external-names": false, "roots": roots });
        std::fs::write(self.map(), map.to_string())?;
        Ok(vec!["-ivfsoverlay".to_owned(), self.map().to_string_lossy().into_owned()])
    }

    pub fn remove(&self) {
        if self.files.is_empty() {
            return;
        }
        for index in 0..self.files.len() {
            let _ = std::fs::remove_file(self.content(index));
        }
        let _ = std::fs::remove_file(self.map());
    }

    fn content(&self, index: usize) -> PathBuf {
        self.stem.with_extension(index.to_string())
    }

    fn map(&self) -> PathBuf {
        self.stem.with_extension("overlay")
    }
}
