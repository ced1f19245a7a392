//! The models built into caulk, and those of a user's file on top.

use std::sync::OnceLock;

use crate::document::{ConfigErrors, Document};
use crate::reader;
use crate::types::Models;

/// Name and text of each library's file; earlier ones may be named by `like` and by families in later ones.
const FILES: &[(&str, &str)] = &[
    ("libc", include_str!("../data/libc.toml")),
    ("libm", include_str!("../data/libm.toml")),
    ("posix", include_str!("../data/posix.toml")),
    ("pthread", include_str!("../data/pthread.toml")),
    ("linux", include_str!("../data/linux.toml")),
    ("glib", include_str!("../data/glib.toml")),
    ("openssl", include_str!("../data/openssl.toml")),
    ("zlib", include_str!("../data/zlib.toml")),
    ("sqlite", include_str!("../data/sqlite.toml")),
    ("ncurses", include_str!("../data/ncurses.toml")),
    ("libxml2", include_str!("../data/libxml2.toml")),
    ("libcurl", include_str!("../data/libcurl.toml")),
];

impl Models {
    /// The models of all libraries caulk knows. Read once; later calls copy.
    pub fn builtin() -> Models {
        static BUILTIN: OnceLock<Models> = OnceLock::new();
        let models = BUILTIN.get_or_init(|| {
            let mut models = Models::default();
            for (name, text) in FILES {
                let read = models.extend(text, name);
                debug_assert!(read.is_ok(), "{}", read.err().map(|error| error.to_string()).unwrap_or_default());
            }
            models
        });
        models.clone()
    }

    /// Adds the `[models]` table of a user's file; its other tables are the caller's to read.
    /// On an error nothing is added.
    pub fn extend_from_toml(&mut self, text: &str, file: &str) -> Result<(), ConfigErrors> {
        self.extend_from_document(&Document::parse(text, file)?)
    }

    /// The same for a document that is already parsed.
    pub fn extend_from_document(&mut self, document: &Document<'_>) -> Result<(), ConfigErrors> {
        match document.root().section("models")? {
            Some(section) => reader::read(self, document, &section),
            None => Ok(()),
        }
    }

    /// A library's file: `[families]` and `[functions]` at the top.
    fn extend(&mut self, text: &str, file: &str) -> Result<(), ConfigErrors> {
        let document = Document::parse(text, file)?;
        reader::read(self, &document, &document.root())
    }
}
