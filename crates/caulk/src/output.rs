//! Where results go: standard output, or a file that is there whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caulk_report::TextOptions;

use crate::interrupt::Unfinished;

/// Where the chosen format goes; everything else goes to standard error.
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// `-o FILE`; without it, and for `-o -`, standard output.
    pub(crate) fn new(path: Option<&Path>) -> Self {
        match path {
            None => Self::Stdout,
            Some(path) if path == Path::new("-") => Self::Stdout,
            Some(path) => Self::File(path.to_owned()),
        }
    }

    pub(crate) fn write(&self, text: &str) -> Result<()> {
        self.write_bytes(text.as_bytes())
    }

    /// For what is not ours to decode: diffs of sources in any encoding.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Stdout => print_bytes(bytes),
            Self::File(path) => write_file(path, bytes),
        }
    }
}

/// How text is drawn for this destination: colours and the real width on a terminal only.
pub(crate) fn text_options(destination: &Destination) -> TextOptions {
    let terminal = console::Term::stdout();
    match destination {
        Destination::Stdout if terminal.is_term() => {
            let width = terminal.size_checked().map_or(100, |(_, columns)| usize::from(columns));
            TextOptions { colour: console::colors_enabled(), width }
        }
        _ => TextOptions::default(),
    }
}

/// To standard output, flushed, so that a closed pipe shows up here.
pub(crate) fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

/// Writes beside the target and renames: readers see the old file or the new one, never a part.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    // A device or a pipe (`-o /dev/stderr`) is written to, never replaced.
    if path.metadata().is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
        return std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()));
    }
    let complain = || format!("cannot write {}", path.display());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".caulk-").tempfile_in(folder).with_context(complain)?;
    let _unfinished = Unfinished::new(file.path());
    file.write_all(bytes).with_context(complain)?;
    // Temporary files are private; a report is as readable as any other new file.
    let mode = path.metadata().map_or_else(|_| new_file_permissions(folder), |old| Some(old.permissions()));
    if let Some(mode) = mode {
        file.as_file().set_permissions(mode).with_context(complain)?;
    }
    file.persist(path).map(|_| ()).map_err(|error| error.error).with_context(complain)
}

/// What the umask leaves of 0666, asked of the only thing that knows it: a new file.
fn new_file_permissions(folder: &Path) -> Option<std::fs::Permissions> {
    let path = folder.join(format!(".caulk-mode-{}", std::process::id()));
    let _unfinished = Unfinished::new(&path);
    let mode = std::fs::File::create_new(&path).and_then(|file| file.metadata()).map(|data| data.permissions()).ok();
    let _ = std::fs::remove_file(&path);
    mode
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        write_file(&path, b"one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        write_file(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left lying around");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = write_file(Path::new("no/such/folder/report.json"), b"x").unwrap_err();
        assert_eq!(error.to_string(), "cannot write no/such/folder/report.json");
    }
}
