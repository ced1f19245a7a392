//! Puts the recorder in place and its log where a killed capture leaves it for the next.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::log::{self, Record};
use crate::error::FrontendError;

/// Compiled by `build.rs` from `recorder/recorder.c`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));

/// The recorder, ready to be preloaded.
pub struct Recorder {
    library: tempfile::TempDir,
    log: PathBuf,
    /// Logs of captures that were killed.
    left_over: Vec<PathBuf>,
}

const NAME: &str = "recorder.so";
const LOG_PREFIX: &str = "capture-";

impl Recorder {
    /// Unpacks the library where it can be loaded from, and opens a log in the project.
    pub fn install(folder: &Path) -> Result<Recorder, FrontendError> {
        let own = folder.join(".caulk");
        std::fs::create_dir_all(&own).map_err(FrontendError::write(&own))?;
        let ignore = own.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(&ignore, "*\n").map_err(FrontendError::write(&ignore))?;
        }
        let left_over = logs(&own);
        let log = own.join(format!("{LOG_PREFIX}{}.log", std::process::id()));
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let places = [Some(std::env::temp_dir()), Some("/tmp".into()), Some("/var/tmp".into()), Some(own), home];
        for place in places.into_iter().flatten() {
            if let Some(library) = unpack(&place) {
                let recorder = Recorder { library, log: log.clone(), left_over: left_over.clone() };
                if recorder.works() {
                    std::fs::write(&log, "").map_err(FrontendError::write(&log))?;
                    return Ok(recorder);
                }
            }
        }
        let _ = std::fs::remove_file(&log);
        Err(FrontendError::Setup(
            "the recorder cannot be loaded into other programs: none of the temporary folders allows it, or programs \
             here ignore LD_PRELOAD. Use the build system's own compile_commands.json instead"
                .to_owned(),
        ))
    }

    /// Runs something harmless to see whether it gets recorded (a folder may be mounted `noexec`).
    fn works(&self) -> bool {
        if std::fs::write(&self.log, "").is_err() {
            return false;
        }
        let mut test = Command::new("sh");
        self.prepare(&mut test);
        test.args(["-c", ":"]).env("CAULK_CAPTURE_SELF_TEST", "1");
        let ran = test.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        ran.is_ok() && std::fs::read(&self.log).is_ok_and(|bytes| !log::read(&bytes).is_empty())
    }

    /// Sets the environment under which a build is recorded.
    pub fn prepare(&self, build: &mut Command) {
        let mut preload = self.library.path().join(NAME).into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        // Programs built with the address sanitizer refuse to run behind a preloaded library unless told otherwise.
        let mut sanitizer = std::env::var_os("ASAN_OPTIONS").unwrap_or_default();
        if !sanitizer.is_empty() {
            sanitizer.push(":");
        }
        sanitizer.push("verify_asan_link_order=0");
        build.env("LD_PRELOAD", preload).env("ASAN_OPTIONS", sanitizer).env("CAULK_CAPTURE_LOG", &self.log);
        build.env_remove("CAULK_CAPTURE_INSIDE");
    }

    /// Everything recorded, oldest first.
    pub fn records(&self) -> Result<Vec<Record>, FrontendError> {
        let mut records = Vec::new();
        for path in &self.left_over {
            records.extend(std::fs::read(path).map(|bytes| log::read(&bytes)).unwrap_or_default());
        }
        let bytes = std::fs::read(&self.log).map_err(FrontendError::read(&self.log))?;
        records.extend(log::read(&bytes));
        Ok(records)
    }

    /// Removes the logs, once their contents are safe.
    pub fn finish(self) {
        for path in self.left_over.iter().chain([&self.log]) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Logs of captures that no longer run, oldest first.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let process = name.strip_prefix(LOG_PREFIX)?.strip_suffix(".log")?;
            if Path::new("/proc").join(process).exists() {
                return None;
            }
            Some((entry.metadata().and_then(|data| data.modified()).ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The loader splits its list at blanks and colons, so such a folder will not do.
fn unpack(place: &Path) -> Option<tempfile::TempDir> {
    if !place.is_absolute() || place.to_str().is_none_or(|text| text.contains([' ', ':', '\t', '\n'])) {
        return None;
    }
    let folder = tempfile::Builder::new().prefix("caulk-capture-").tempdir_in(place).ok()?;
    std::fs::write(folder.path().join(NAME), LIBRARY).ok()?;
    Some(folder)
}
