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
//! How files are kept, and what happens to damaged and to old ones: [`caulk_base::Store`].
//!
//! # Invariants
//! - No file of an older caulk, another clang or another format is ever read: they have other keys, and age out.
//! # Known imprecision
//! - A header put where the search finds it before the one that was read is not noticed until something else changes.

use std::path::{Path, PathBuf};

use caulk_base::{ContentHash, Gap, Hasher, Store};
use caulk_ir::Unit;
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

const AREA: &str = "units";

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

/// An open cache folder.
pub struct Cache {
    store: Store,
    base: ContentHash,
}

impl Cache {
    /// Opens or makes the folder. `base` identifies everything that changes what a unit becomes.
    pub fn open(folder: &Path, base: ContentHash, limit: u64) -> std::io::Result<Cache> {
        Ok(Cache { store: Store::open(folder, limit)?, base })
    }

    pub fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// Where this run may put temporary files.
    pub fn scratch(&self) -> PathBuf {
        self.store.scratch()
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
        let mut list: FileList = self.store.read(AREA, key, "list")?;
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
        let stored = self.store.read(AREA, hasher.finish(), "unit")?;
        // Files that were only touched need not be read again next time.
        if touched && list.read.iter().all(|(_, stamp, _)| stamp.is_old()) {
            let _ = self.store.write(AREA, key, "list", &list);
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
        let written = self.store.write(AREA, hasher.finish(), "unit", stored);
        if written.is_ok() {
            let _ = self.store.write(AREA, key, "list", &list);
        }
    }

    /// Puts the folder back under its limit, and gives what there is to say.
    pub fn close(self) -> Vec<Gap> {
        self.store.close()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use caulk_base::GapKind;

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
            for path in self.kept() {
                if path.extension().is_some_and(|found| found == ending) {
                    let mut bytes = std::fs::read(&path).unwrap();
                    change(&mut bytes);
                    std::fs::write(&path, bytes).unwrap();
                }
            }
        }

        fn kept(&self) -> Vec<PathBuf> {
            let inside = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            inside(self.folder.path().join("cache/units")).flat_map(inside).collect()
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
        let long_ago = SystemTime::now() - Duration::from_secs(7200);
        for path in place.kept() {
            std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
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
