//! The record of link commands, beside the compile database.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::FrontendError;

/// Its name; it lies beside `compile_commands.json`.
pub const LINKS_NAME: &str = "caulk_links.json";

/// What a link command makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    Program,
    Shared,
    Archive,
    /// `ld -r`: objects made into one.
    Object,
}

/// One link command: what it makes, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// An absolute path.
    pub output: PathBuf,
    pub kind: LinkKind,
    /// In link order: absolute paths of objects, archives and shared libraries, and `-lname`.
    pub inputs: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct File {
    links: Vec<LinkRecord>,
}

impl LinkRecord {
    /// Reads the record beside a compile database; none is an empty one.
    pub fn read_beside(database: &Path) -> Result<Vec<LinkRecord>, FrontendError> {
        let path = database.with_file_name(LINKS_NAME);
        match std::fs::read(&path) {
            Ok(bytes) => Self::parse(&bytes, &path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(FrontendError::Read { path, error }),
        }
    }

    pub fn parse(bytes: &[u8], path: &Path) -> Result<Vec<LinkRecord>, FrontendError> {
        let file: File = serde_json::from_slice(bytes).map_err(|error| FrontendError::Links {
            path: path.to_path_buf(),
            line: error.line(),
            column: error.column(),
            reason: crate::database::plain_reason(&error),
        })?;
        Ok(file.links)
    }

    pub fn to_json(links: Vec<LinkRecord>) -> String {
        // Paths that are not text cannot be written as JSON; they never came out of a database either.
        let links = links.into_iter().filter(|link| link.output.to_str().is_some()).collect();
        serde_json::to_string_pretty(&File { links }).unwrap_or_default() + "\n"
    }
}
