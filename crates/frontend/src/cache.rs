//! Keeps lowered units between runs.
//!
//! Two steps, so that a unit is found again without running the preprocessor:
//!
//! ```text
//! key = hash(caulk, formats, clang, folder, flags, source path)
//! <key>.list   every file the compiler read then, with stamp and hash; what was looked for and not there
//! <key'>.unit  the unit, where key' = hash(key, hashes of those files now)
//! ```
//!
//! Going back to an older version of a header finds the older unit. A unit that failed is kept too, as its message.
//!
//! # Invariants
//! - Every file is written beside its place and renamed: another run, or a kill, never shows half of one.
//! - Every file carries a checksum; a damaged one is a miss and a [`Gap`], and is written anew.
//! - No file of an older caulk, another clang or another format is ever read: they have other keys, and age out.
//! # Known imprecision
//! - A header put where the search finds it before the one that was read is not noticed until something else changes.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use caulk_base::{ContentHash, Gap, GapKind, Hasher};
use caulk_ir::Unit;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::{Files, Stamp};

/// Where the cache lies.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum CacheChoice {
    /// `.caulk/` in the project.
    #[default]
    Project,
    Folder(PathBuf),
    Off,
}

/// How large a cache may grow, unless told otherwise.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

const MAGIC: &[u8; 8] = b"caulk-1\n";
/// What a run has used within this time is not marked as used again.
const USED_RECENTLY: Duration = Duration::from_secs(3600);
/// Temporary files older than this were left by a run that was killed.
const STALE: Duration = Duration::from_secs(3600);

/// What the cache knows of a unit.
#[derive(Serialize, Deserialize)]
pub enum Stored {
    Unit(Box<Unit>),
    /// It does not compile: the first error.
    Failure(String),
}

#[derive(Serialize, Deserialize)]
struct FileList {
    read: Vec<(String, Stamp, ContentHash)>,
    absent: Vec<String>,
}

/// Numbers the temporary files of this process, whichever of its open caches writes them.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// An open cache folder.
pub struct Cache {
    folder: PathBuf,
    base: ContentHash,
    limit: u64,
    gaps: Mutex<Vec<Gap>>,
    written: AtomicU64,
}

impl Cache {
    /// Opens or makes the folder. `base` identifies everything that changes what a unit becomes.
    pub fn open(folder: &Path, base: ContentHash, limit: u64) -> std::io::Result<Cache> {
        std::fs::create_dir_all(folder.join("units"))?;
        std::fs::create_dir_all(folder.join("tmp"))?;
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(ignore, "*\n")?;
        }
        Ok(Cache { folder: folder.to_path_buf(), base, limit, gaps: Mutex::default(), written: AtomicU64::new(0) })
    }

    /// Where this run may put temporary files.
    pub fn scratch(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// The first key of a unit.
    pub fn key(&self, directory: &Path, source: &Path, words: &[String]) -> ContentHash {
        let mut hasher = Hasher::new();
        hasher.raw(&self.base.0);
        hasher.field(directory.as_os_str().as_encoded_bytes()).field(source.as_os_str().as_encoded_bytes());
        for word in words {
            hasher.field(word);
        }
        hasher.finish()
    }

    /// Finds what an earlier run stored for this key, if every file still has the content it had then.
    pub fn find(&self, key: ContentHash, files: &Files) -> Option<Stored> {
        let mut list: FileList = self.read(&self.place(key, "list"))?;
        let mut hasher = Hasher::new();
        hasher.raw(&key.0);
        let mut touched = false;
        for (path, stamp, hash) in &mut list.read {
            let now = files.now(Path::new(path), (*stamp, *hash))?;
            hasher.field(&path).raw(&now.1.0);
            touched |= *stamp != now.0;
            (*stamp, *hash) = now;
        }
        if list.absent.iter().any(|path| Path::new(path).exists()) {
            return None;
        }
        let stored = self.read(&self.place(hasher.finish(), "unit"))?;
        // Files that were only touched need not be read again next time.
        if touched && list.read.iter().all(|(_, stamp, _)| stamp.is_old()) {
            let _ = self.write(&self.place(key, "list"), &list);
        }
        Some(stored)
    }

    /// Stores a unit with the files it depends on. Does nothing if one of them may have changed meanwhile.
    pub fn store(&self, key: ContentHash, read: &[PathBuf], absent: &[PathBuf], stored: &Stored, files: &Files) {
        let mut list = FileList { read: Vec::with_capacity(read.len()), absent: Vec::new() };
        let mut hasher = Hasher::new();
        hasher.raw(&key.0);
        for path in read {
            let (Some(text), Some((stamp, hash))) = (path.to_str(), files.settled(path)) else { return };
            hasher.field(text).raw(&hash.0);
            list.read.push((text.to_owned(), stamp, hash));
        }
        list.absent.extend(absent.iter().filter_map(|path| path.to_str()).map(str::to_owned));
        // The unit first: a list without its unit is only a miss.
        let result = self
            .write(&self.place(hasher.finish(), "unit"), stored)
            .and_then(|()| self.write(&self.place(key, "list"), &list));
        if let Err(error) = result {
            self.gap(&self.folder, format!("nothing more is kept for the next run: {error}"));
        }
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

    fn place(&self, key: ContentHash, ending: &str) -> PathBuf {
        let name = key.hex();
        self.folder.join("units").join(&name[..2]).join(format!("{name}.{ending}"))
    }

    fn read<T: DeserializeOwned>(&self, place: &Path) -> Option<T> {
        let bytes = match std::fs::read(place) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.gap(place, format!("cannot be read, and is made anew: {error}"));
                return None;
            }
        };
        let value = payload(&bytes).and_then(|payload| postcard::from_bytes(payload).ok());
        match value {
            Some(_) => self.mark_used(place),
            None => {
                let _ = std::fs::remove_file(place);
                self.gap(place, "was damaged, and is made anew".to_owned());
            }
        }
        value
    }

    fn write<T: Serialize>(&self, place: &Path, value: &T) -> std::io::Result<()> {
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

    fn mark_used(&self, place: &Path) {
        let old = place.metadata().and_then(|data| data.modified());
        if old.is_ok_and(|old| old.elapsed().is_ok_and(|age| age > USED_RECENTLY))
            && let Ok(file) = std::fs::File::open(place)
        {
            let _ = file.set_modified(SystemTime::now());
        }
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
        let folders = entries(&self.folder.join("units"));
        let mut all: Vec<_> = folders.into_iter().flat_map(|(folder, _, _)| entries(&folder)).collect();
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

    struct Place {
        folder: tempfile::TempDir,
        source: PathBuf,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("a.c");
        std::fs::write(&source, "int x;").unwrap();
        Place { folder, source }
    }

    impl Place {
        fn open(&self, version: &str, limit: u64) -> Cache {
            Cache::open(&self.folder.path().join("cache"), ContentHash::of(version.as_bytes()), limit).unwrap()
        }

        fn files(&self) -> Files {
            std::thread::sleep(Duration::from_millis(20));
            let mark = self.folder.path().join("mark");
            std::fs::write(&mark, "").unwrap();
            let files = Files::new();
            files.begin(&mark);
            files
        }

        fn key(&self, cache: &Cache) -> ContentHash {
            cache.key(Path::new("/p"), &self.source, &["-DX".into()])
        }

        fn store(&self, cache: &Cache, message: &str) {
            let stored = Stored::Failure(message.to_owned());
            cache.store(self.key(cache), std::slice::from_ref(&self.source), &[], &stored, &self.files());
        }

        fn find(&self, cache: &Cache) -> Option<String> {
            match cache.find(self.key(cache), &Files::new())? {
                Stored::Failure(message) => Some(message),
                Stored::Unit(_) => None,
            }
        }

        fn damage(&self, ending: &str, change: impl Fn(&mut Vec<u8>)) {
            for (folder, _, _) in entries(&self.folder.path().join("cache/units")) {
                for (path, _, _) in entries(&folder) {
                    if path.extension().is_some_and(|found| found == ending) {
                        let mut bytes = std::fs::read(&path).unwrap();
                        change(&mut bytes);
                        std::fs::write(&path, bytes).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_stored_is_found_until_the_source_changes_and_again_when_it_is_back() {
        let place = place();
        let cache = place.open("1", DEFAULT_LIMIT);
        place.store(&cache, "one");
        assert_eq!(place.find(&cache).as_deref(), Some("one"));
        std::fs::write(&place.source, "int y;").unwrap();
        assert_eq!(place.find(&cache), None);
        place.store(&cache, "two");
        assert_eq!(place.find(&cache).as_deref(), Some("two"));
        std::fs::write(&place.source, "int x;").unwrap();
        assert_eq!(place.find(&cache).as_deref(), Some("one"));
        assert_eq!(place.find(&place.open("2", DEFAULT_LIMIT)), None, "another version has other keys");
        assert!(cache.close().is_empty());
    }

    #[test]
    fn damage_of_any_kind_is_a_miss_with_a_word_about_it() {
        for ending in ["list", "unit"] {
            for change in [
                (|bytes| bytes.clear()) as fn(&mut Vec<u8>),
                |bytes| bytes.truncate(25),
                |bytes| {
                    let last = bytes.len() - 1;
                    bytes[last] ^= 1;
                },
            ] {
                let place = place();
                let cache = place.open("1", DEFAULT_LIMIT);
                place.store(&cache, "one");
                place.damage(ending, change);
                assert_eq!(place.find(&cache), None);
                place.store(&cache, "again");
                assert_eq!(place.find(&cache).as_deref(), Some("again"));
                let gaps = cache.close();
                assert_eq!(gaps.len(), 1);
                assert_eq!(gaps[0].kind, GapKind::Cache);
                assert!(gaps[0].reason.contains("damaged"));
            }
        }
    }

    #[test]
    fn a_header_that_was_missing_and_appears_is_noticed() {
        let place = place();
        let cache = place.open("1", DEFAULT_LIMIT);
        let absent = place.folder.path().join("later.h");
        let stored = Stored::Failure("no later.h".to_owned());
        let read = std::slice::from_ref(&place.source);
        cache.store(place.key(&cache), read, std::slice::from_ref(&absent), &stored, &place.files());
        assert!(place.find(&cache).is_some());
        std::fs::write(absent, "").unwrap();
        assert_eq!(place.find(&cache), None);
    }

    #[test]
    fn the_oldest_go_when_there_is_too_much() {
        let place = place();
        let cache = place.open("1", 3000);
        place.store(&cache, &"old ".repeat(500));
        place.damage("unit", |_| {});
        let long_ago = SystemTime::now() - Duration::from_secs(7200);
        for (folder, _, _) in entries(&place.folder.path().join("cache/units")) {
            for (path, _, _) in entries(&folder) {
                std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
            }
        }
        std::fs::write(&place.source, "int y;").unwrap();
        place.store(&cache, &"new ".repeat(500));
        assert!(cache.close().is_empty());
        let cache = place.open("1", 3000);
        assert!(place.find(&cache).unwrap().starts_with("new"));
        std::fs::write(&place.source, "int x;").unwrap();
        assert_eq!(place.find(&cache), None);
    }
}
