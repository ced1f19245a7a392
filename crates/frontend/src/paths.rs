//! Paths as the compile database means them: absolute, without `.` and `..`.
//!
//! `..` is taken away by its text, as clang's own virtual file system does, so that a file has one name however
//! a build spells it. Known imprecision: `link/..` through a symbolic link to a folder names another place.

use std::path::{Component, Path, PathBuf};

/// `path` as seen from the folder `base`, without `.` and `..`.
pub fn absolute(base: &Path, path: &Path) -> PathBuf {
    normalise(&base.join(path))
}

/// Takes away `.`, `..` and doubled separators.
pub fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match clean.components().next_back() {
                Some(Component::Normal(_)) => {
                    clean.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                _ => clean.push(".."),
            },
            other => clean.push(other),
        }
    }
    clean
}

/// The folder we were started in; `/` if even that is gone.
pub fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_and_doubled_separators_go() {
        let at = |base: &str, path: &str| absolute(Path::new(base), Path::new(path)).display().to_string();
        assert_eq!(at("/p/build", "../src/./a.c"), "/p/src/a.c");
        assert_eq!(at("/p", "/x//y"), "/x/y");
        assert_eq!(at("/", "../../a.c"), "/a.c");
        assert_eq!(normalise(Path::new("../a/../b")).display().to_string(), "../b");
    }
}
