//! What the files on disk hold, looked at once per run however many units read them.
//!
//! A header that a thousand units include is stated once, and read and hashed at most once. A file whose stamp
//! (size, times, inode) is the one recorded with a hash need not be read at all.
//!
//! # Invariants
//! - A hash belongs to the content that had the stamp: the stamp is taken before the file is read.
//! - A stamp is only recorded when its change time lies before the run began (see [`Files::settled`]), so that any
//!   later write must change it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use caulk_base::{ContentHash, FxHashMap};
use serde::{Deserialize, Serialize};

use crate::macros::{self, MacroNames};

/// What the file system says about a file without reading it. Writing to a file always changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Of the last change to content or attributes: seconds and nanoseconds.
    changed: (i64, i64),
    modified: (i64, i64),
    size: u64,
    inode: u64,
    device: u64,
}

impl Stamp {
    /// Whether a write from now on must change it: file systems tell times apart by milliseconds, some by seconds.
    pub fn is_old(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.changed.0 + 2 < i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
    }

    pub fn of(path: &Path) -> Option<Stamp> {
        let data = std::fs::metadata(path).ok()?;
        Some(Stamp {
            changed: (data.ctime(), data.ctime_nsec()),
            modified: (data.mtime(), data.mtime_nsec()),
            size: data.len(),
            inode: data.ino(),
            device: data.dev(),
        })
    }
}

/// The files of one run.
pub struct Files {
    known: Mutex<FxHashMap<PathBuf, Arc<Entry>>>,
    /// By the file system's own clock.
    began: OnceLock<Option<(i64, i64)>>,
}

#[derive(Default)]
struct Entry {
    stamp: OnceLock<Option<Stamp>>,
    /// From an earlier run, for exactly this stamp.
    recorded: OnceLock<ContentHash>,
    content: OnceLock<Option<(ContentHash, Arc<MacroNames>)>>,
}

impl Files {
    pub fn new() -> Self {
        Files { known: Mutex::default(), began: OnceLock::new() }
    }

    /// Remembers when the compiling began; `fresh` is a file just made.
    pub fn begin(&self, fresh: &Path) {
        self.began.get_or_init(|| Stamp::of(fresh).map(|stamp| stamp.changed));
    }

    fn entry(&self, path: &Path) -> Arc<Entry> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(path) {
            Some(entry) => Arc::clone(entry),
            None => Arc::clone(known.entry(path.to_path_buf()).or_default()),
        }
    }

    /// The file's stamp and content now, given what an earlier run recorded of it.
    pub fn now(&self, path: &Path, recorded: (Stamp, ContentHash)) -> Option<(Stamp, ContentHash)> {
        let entry = self.entry(path);
        let stamp = (*entry.stamp.get_or_init(|| Stamp::of(path)))?;
        let hash = match entry.recorded.get() {
            Some(&hash) => hash,
            None if recorded.0 == stamp => *entry.recorded.get_or_init(|| recorded.1),
            None => entry.content(path)?.0,
        };
        Some((stamp, hash))
    }

    /// Stamp and hash to record for a file that a compiler has just read; `None` if it may have changed meanwhile.
    pub fn settled(&self, path: &Path) -> Option<(Stamp, ContentHash)> {
        let entry = self.entry(path);
        let stamp = (*entry.stamp.get_or_init(|| Stamp::of(path)))?;
        let hash = match entry.recorded.get() {
            Some(&hash) => hash,
            None => entry.content(path)?.0,
        };
        let began = (*self.began.get()?)?;
        (stamp.changed < began && Stamp::of(path) == Some(stamp)).then_some((stamp, hash))
    }

    /// The names that a file defines as macros.
    pub fn macros(&self, path: &Path) -> Option<Arc<MacroNames>> {
        let entry = self.entry(path);
        entry.stamp.get_or_init(|| Stamp::of(path));
        entry.content(path).map(|(_, names)| names)
    }
}

impl Entry {
    fn content(&self, path: &Path) -> Option<(ContentHash, Arc<MacroNames>)> {
        let read = || {
            let bytes = std::fs::read(path).ok()?;
            Some((ContentHash::of(&bytes), Arc::new(macros::names(&bytes))))
        };
        self.content.get_or_init(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_stamp_saves_reading_and_a_change_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h");
        std::fs::write(&path, "one").unwrap();
        let stamp = Stamp::of(&path).unwrap();
        let lie = ContentHash::of(b"recorded");
        let hash = |path: &Path| Files::new().now(path, (stamp, lie)).map(|(_, hash)| hash);
        assert_eq!(hash(&path), Some(lie));
        std::fs::write(&path, "three").unwrap();
        assert_eq!(hash(&path), Some(ContentHash::of(b"three")));
        assert_eq!(hash(&folder.path().join("none")), None);
    }

    #[test]
    fn what_changed_since_the_run_began_is_not_settled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h");
        std::fs::write(&path, "one").unwrap();
        let files = Files::new();
        assert_eq!(files.settled(&path), None, "the run has not begun");
        // The file system's clock ticks every few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(folder.path().join("mark"), "").unwrap();
        files.begin(&folder.path().join("mark"));
        assert_eq!(files.settled(&path).map(|(_, hash)| hash), Some(ContentHash::of(b"one")));
        std::fs::write(&path, "two").unwrap();
        assert_eq!(files.settled(&path), None);
    }
}
