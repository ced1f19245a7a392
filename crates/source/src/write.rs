//! Writing a patched file back: all of it or nothing, and never over somebody else's change.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use caulk_base::ContentHash;

use crate::error::SourceError;

/// Replaces the file's contents if it still has the content that was analysed.
///
/// A symbolic link is followed once and its target replaced, so that the link stays a link; what is
/// not a regular file is refused.
pub fn write_atomically(path: &Path, analysed: ContentHash, contents: &[u8]) -> Result<(), SourceError> {
    let fail = |reason: String| SourceError::Write { file: path.to_path_buf(), reason };
    let target: PathBuf = path.canonicalize().map_err(|error| fail(error.to_string()))?;
    let metadata = fs::metadata(&target).map_err(|error| fail(error.to_string()))?;
    if !metadata.is_file() {
        return Err(fail("it is not a regular file".into()));
    }
    let folder = target.parent().ok_or_else(|| fail("it has no folder".into()))?;
    if metadata.permissions().readonly() {
        return Err(fail("it is write-protected".into()));
    }
    let mut temporary = tempfile::Builder::new()
        .prefix(".caulk-")
        .tempfile_in(folder)
        .map_err(|error| fail(format!("no temporary file in {}: {error}", folder.display())))?;
    temporary.write_all(contents).map_err(|error| fail(error.to_string()))?;
    temporary.as_file().set_permissions(metadata.permissions()).map_err(|error| fail(error.to_string()))?;
    temporary.as_file().sync_all().map_err(|error| fail(error.to_string()))?;
    // As late as possible: the window in which another writer is not noticed is one rename long.
    let now = fs::read(&target).map_err(|error| fail(error.to_string()))?;
    if ContentHash::of(&now) != analysed {
        return Err(SourceError::Changed { file: path.to_path_buf() });
    }
    temporary.persist(&target).map_err(|error| fail(error.to_string()))?;
    // The rename itself must survive a power cut; a folder that cannot be synced is no reason to fail.
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn contents_change_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.c");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        write_atomically(&file, ContentHash::of(b"old"), b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o751);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left behind");
    }

    #[test]
    fn a_file_edited_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.c");
        fs::write(&file, "edited").unwrap();
        let result = write_atomically(&file, ContentHash::of(b"old"), b"new");
        assert_eq!(result, Err(SourceError::Changed { file: file.clone() }));
        assert_eq!(fs::read(&file).unwrap(), b"edited");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link_and_odd_targets_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.c"), folder.path().join("l.c"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write_atomically(&link, ContentHash::of(b"old"), b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(write_atomically(folder.path(), ContentHash::of(b""), b"").is_err());
        assert!(write_atomically(&folder.path().join("none.c"), ContentHash::of(b""), b"").is_err());
    }
}
