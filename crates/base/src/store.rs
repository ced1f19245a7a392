//! Files that one run leaves for the next: the part all caches share.
//!
//! ```text
//! FOLDER/units/3f/3f2a….list     one value, in front of it a mark and a checksum
//! FOLDER/summaries/90/90bc….pack
//! FOLDER/tmp/                    what is being written
//! ```
//!
//! # Invariants
//! - Every file is written beside its place and renamed: another run, or a kill, never shows half of one.
//! - Every file carries a checksum; a damaged one is a miss and a [`Gap`], and is written anew.
//! - Two runs may share a folder: whoever writes last has written a whole file.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{ContentHash, Gap, GapKind};

const MAGIC: &[u8; 8] = b"caulk-1\n";
/// What a run has used within this time is not marked as used again.
const USED_RECENTLY: Duration = Duration::from_secs(3600);
/// Temporary files older than this were left by a run that was killed.
const STALE: Duration = Duration::from_secs(3600);
const SCRATCH: &str = "tmp";

/// Numbers the temporary files of this process, whichever of its open stores writes them.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// An open folder.
pub struct Store {
    folder: PathBuf,
    limit: u64,
    gaps: Mutex<Vec<Gap>>,
    written: AtomicU64,
}

impl Store {
    /// Opens or makes the folder, which may hold `limit` bytes.
    pub fn open(folder: &Path, limit: u64) -> std::io::Result<Store> {
        std::fs::create_dir_all(folder.join(SCRATCH))?;
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(ignore, "*\n")?;
        }
        Ok(Store { folder: folder.to_path_buf(), limit, gaps: Mutex::default(), written: AtomicU64::new(0) })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where this run may put temporary files.
    pub fn scratch(&self) -> PathBuf {
        self.folder.join(SCRATCH)
    }

    /// What lies under a key, if it is there and whole.
    pub fn read<T: DeserializeOwned>(&self, area: &str, key: ContentHash, ending: &str) -> Option<T> {
        let place = self.place(area, key, ending);
        let bytes = match std::fs::read(&place) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.gap(&place, format!("cannot be read, and is made anew: {error}"));
                return None;
            }
        };
        let value = payload(&bytes).and_then(|payload| postcard::from_bytes(payload).ok());
        match value {
            Some(_) => mark_used(&place),
            None => {
                let _ = std::fs::remove_file(&place);
                self.gap(&place, "was damaged, and is made anew".to_owned());
            }
        }
        value
    }

    /// Puts a value under a key. Of a failure, the user is told once, when the store is closed.
    pub fn write<T: Serialize>(&self, area: &str, key: ContentHash, ending: &str, value: &T) -> std::io::Result<()> {
        let result = self.try_write(&self.place(area, key, ending), value);
        if let Err(error) = &result {
            self.gap(&self.folder, format!("nothing more is kept for the next run: {error}"));
        }
        result
    }

    /// Puts the folder back under its limit, oldest use first, and gives what there is to say.
    pub fn close(self) -> Vec<Gap> {
        if self.written.load(Ordering::Relaxed) > 0 {
            self.remove_stale();
            self.shrink();
        }
        let mut gaps = self.gaps.into_inner().unwrap_or_default();
        gaps.sort();
        gaps.dedup();
        gaps
    }

    fn place(&self, area: &str, key: ContentHash, ending: &str) -> PathBuf {
        let name = key.hex();
        self.folder.join(area).join(&name[..2]).join(format!("{name}.{ending}"))
    }

    fn try_write<T: Serialize>(&self, place: &Path, value: &T) -> std::io::Result<()> {
        let head = [MAGIC.as_slice(), &[0; 16]].concat();
        let mut bytes = postcard::to_extend(value, head).map_err(std::io::Error::other)?;
        let sum = ContentHash::of(&bytes[24..]);
        bytes[8..24].copy_from_slice(&sum.0);
        let number = PARTS.fetch_add(1, Ordering::Relaxed);
        let temporary = self.scratch().join(format!("{}-{number}.part", std::process::id()));
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let result = std::fs::write(&temporary, &bytes).and_then(|()| std::fs::rename(&temporary, place));
        if result.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        result
    }

    fn gap(&self, place: &Path, reason: String) {
        if let Ok(mut gaps) = self.gaps.lock() {
            gaps.push(Gap::new(GapKind::Cache, place.display().to_string(), reason));
        }
    }

    fn remove_stale(&self) {
        for (path, _, age) in entries(&self.scratch()) {
            if age > STALE {
                let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
            }
        }
    }

    fn shrink(&self) {
        let areas = entries(&self.folder).into_iter().filter(|(path, ..)| *path != self.scratch());
        let folders = areas.flat_map(|(area, ..)| entries(&area)).filter(|(path, ..)| is_bucket(path));
        let mut all: Vec<_> = folders.flat_map(|(folder, ..)| entries(&folder)).collect();
        let mut size: u64 = all.iter().map(|(_, size, _)| size).sum();
        if size <= self.limit {
            return;
        }
        // Down to nine tenths, so that the next run does not start over.
        all.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        for (path, bytes, _) in all {
            if size <= self.limit / 10 * 9 {
                break;
            }
            let _ = std::fs::remove_file(path);
            size -= bytes;
        }
    }
}

/// The folder may hold other things of ours; only what lies in `AREA/3f/` is for this store to remove.
fn is_bucket(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit))
}

fn mark_used(place: &Path) {
    let old = place.metadata().and_then(|data| data.modified());
    if old.is_ok_and(|old| old.elapsed().is_ok_and(|age| age > USED_RECENTLY))
        && let Ok(file) = std::fs::File::open(place)
    {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, payload) = bytes.strip_prefix(MAGIC)?.split_at_checked(16)?;
    (ContentHash::of(payload).0 == sum).then_some(payload)
}

/// Path, size and age of everything in a folder.
fn entries(folder: &Path) -> Vec<(PathBuf, u64, Duration)> {
    let Ok(list) = std::fs::read_dir(folder) else { return Vec::new() };
    let described = list.filter_map(|entry| {
        let entry = entry.ok()?;
        let data = entry.metadata().ok()?;
        let age = data.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
        Some((entry.path(), data.len(), age))
    });
    described.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ContentHash {
        ContentHash::of(name.as_bytes())
    }

    #[test]
    fn what_was_written_is_read_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 1 << 20).unwrap();
        store.write("area", key("a"), "x", &"hello".to_owned()).unwrap();
        assert_eq!(store.read::<String>("area", key("a"), "x").as_deref(), Some("hello"));
        assert_eq!(store.read::<String>("area", key("b"), "x"), None);
        let place = store.place("area", key("a"), "x");
        let mut bytes = std::fs::read(&place).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&place, bytes).unwrap();
        assert_eq!(store.read::<String>("area", key("a"), "x"), None);
        assert!(!place.exists());
        let gaps = store.close();
        assert_eq!(gaps.len(), 1);
        assert!(gaps[0].reason.contains("damaged"));
    }

    #[test]
    fn the_oldest_of_all_areas_go_first_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("findings.json"), vec![0; 4000]).unwrap();
        let store = Store::open(folder.path(), 5000).unwrap();
        for (area, name) in [("one", "old"), ("two", "new"), ("one", "newer")] {
            store.write(area, key(name), "x", &"x".repeat(2000)).unwrap();
        }
        let old = std::fs::File::open(store.place("one", key("old"), "x")).unwrap();
        old.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        assert!(store.close().is_empty());
        let store = Store::open(folder.path(), 5000).unwrap();
        assert_eq!(store.read::<String>("one", key("old"), "x"), None);
        assert!(store.read::<String>("two", key("new"), "x").is_some());
        assert!(store.read::<String>("one", key("newer"), "x").is_some());
        assert!(folder.path().join("findings.json").exists());
    }
}
