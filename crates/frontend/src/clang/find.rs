//! Finds clang 19.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use caulk_base::{ContentHash, Hasher};

use crate::bitcode::install_plugin;
use crate::error::FrontendError;

/// The variable that names the clang to use.
const VARIABLE: &str = "CAULK_CLANG";
const VERSION: u32 = 19;

/// A clang of version 19.
pub struct Clang {
    pub path: PathBuf,
    checked: OnceLock<Result<(), String>>,
    gcc_headers: OnceLock<Option<PathBuf>>,
    plugin: OnceLock<Option<PathBuf>>,
    plugin_refused: AtomicBool,
}

impl Clang {
    /// Looks at `CAULK_CLANG`, then for `clang-19`, then for a `clang` of version 19. Does not run what is named
    /// for its version: a run that finds everything in its cache starts no compiler at all.
    pub fn find() -> Result<Clang, FrontendError> {
        Self::find_in(std::env::var_os(VARIABLE).as_deref(), std::env::var_os("PATH").as_deref())
    }

    fn find_in(named: Option<&OsStr>, path: Option<&OsStr>) -> Result<Clang, FrontendError> {
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let shown = named.to_string_lossy();
            return match which(named, path) {
                Some(found) => Ok(Clang::at(found)),
                None => Err(FrontendError::NoClang { tried: format!("{VARIABLE} is {shown}, which is no program") }),
            };
        }
        if let Some(found) = which(OsStr::new("clang-19"), path) {
            return Ok(Clang::at(found));
        }
        let Some(found) = which(OsStr::new("clang"), path) else {
            return Err(FrontendError::NoClang { tried: "no clang-19 and no clang in PATH".to_owned() });
        };
        let clang = Clang::at(found);
        clang.check()?;
        Ok(clang)
    }

    fn at(path: PathBuf) -> Clang {
        Clang {
            path,
            checked: OnceLock::new(),
            gcc_headers: OnceLock::new(),
            plugin: OnceLock::new(),
            plugin_refused: AtomicBool::new(false),
        }
    }

    /// Asks for the version, once, before the first unit is compiled.
    pub fn check(&self) -> Result<(), FrontendError> {
        let checked = self.checked.get_or_init(|| {
            let shown = self.path.display();
            let output = Command::new(&self.path).arg("--version").env("LC_ALL", "C").output();
            let output = output.map_err(|error| format!("{shown} cannot be started: {error}"))?;
            let text = String::from_utf8_lossy(&output.stdout);
            match major_version(&text) {
                Some(VERSION) => Ok(()),
                Some(other) => Err(format!("{shown} is clang {other}")),
                None => Err(format!("{shown} does not say it is clang")),
            }
        });
        checked.clone().map_err(|tried| FrontendError::NoClang { tried })
    }

    /// Changes when another clang is installed at this place.
    pub fn identity(&self) -> ContentHash {
        use std::os::unix::fs::MetadataExt;
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let mut hasher = Hasher::new();
        hasher.field(real.as_os_str().as_encoded_bytes());
        if let Ok(data) = real.metadata() {
            hasher.number(data.len()).number(data.mtime() as u64).number(data.mtime_nsec() as u64);
        }
        hasher.finish()
    }

    /// Where our plugin lies for clang to load: in the user's cache, once for all runs.
    pub(super) fn plugin(&self) -> Option<&Path> {
        if self.plugin_refused.load(Ordering::Relaxed) {
            return None;
        }
        let install = || {
            let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
            install_plugin(&cache.or_else(home)?.join("caulk")).ok()
        };
        self.plugin.get_or_init(install).as_deref()
    }

    /// From now on everything goes through bitcode.
    pub(super) fn give_up_plugin(&self) {
        self.plugin_refused.store(true, Ordering::Relaxed);
    }

    /// gcc's own header folder, which has a few headers clang lacks (`omp.h`, `quadmath.h`).
    pub(super) fn gcc_headers(&self) -> Option<&Path> {
        let found = self.gcc_headers.get_or_init(|| {
            let output = Command::new("gcc").arg("-print-file-name=include").output().ok()?;
            let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
            (path.is_absolute() && path.is_dir()).then_some(path)
        });
        found.as_deref()
    }
}

/// `19` of `Debian clang version 19.1.7 (3)`.
fn major_version(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("clang version ")?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn which(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return is_program(Path::new(name))
            .then(|| PathBuf::from(name))
            .and_then(|path| std::path::absolute(path).ok());
    }
    std::env::split_paths(path?).map(|folder| folder.join(name)).find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(folder: &Path, name: &str, version: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho 'clang version {version}'\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn what_is_missing_and_what_to_install_is_said() {
        let empty = tempfile::tempdir().unwrap();
        let message = |named: Option<&OsStr>| match Clang::find_in(named, Some(empty.path().as_os_str())) {
            Ok(clang) => clang.check().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(message(None).contains("apt-get install clang-19"));
        assert!(message(Some(OsStr::new("/no/such"))).contains("CAULK_CLANG is /no/such, which is no program"));
        let old = script(empty.path(), "clang", "14.0.6");
        assert!(message(None).contains("is clang 14"));
        assert!(message(Some(old.as_os_str())).contains("is clang 14"));
    }

    #[test]
    fn a_clang_of_the_right_version_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "clang", "19.1.7 (3~deb)");
        let clang = Clang::find_in(None, Some(folder.path().as_os_str())).unwrap();
        assert_eq!(clang.path, path);
        let first = clang.identity();
        script(folder.path(), "clang", "19.1.8, another");
        assert_ne!(first, clang.identity());
    }
}
