//! Names the version of the analysis by what it is made of, so that a changed one never takes over what an older one
//! kept, and nobody has to remember to count a version up.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// Everything that decides what a function's analysis comes to, or how it is written down.
const SOURCES: [&str; 5] = ["src", "../ir/src", "../models/src", "../models/data", "../base/src"];

fn main() {
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        (file.to_string_lossy(), std::fs::read(&file).unwrap_or_default()).hash(&mut hasher);
    }
    println!("cargo::rustc-env=CAULK_ANALYSIS_FINGERPRINT={:016x}", hasher.finish());
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
