//! The models built into caulk, and those of a user's file on top.
//!
//! A run asks for some hundred of several thousand functions, so a library's file is only cut into lines at the
//! start, and a line is read when its function is first asked for.
//!
//! # Invariants
//! - In a library's file every line below `[functions]` is one whole function (or empty, or a comment), and no
//!   function is in two files. The tests read all files as plain TOML too, and compare.

use std::sync::OnceLock;

use caulk_base::{FxHashMap, IdVec};

use crate::document::{ConfigErrors, Document};
use crate::reader;
use crate::types::{FamilyId, FamilySpec, FunctionModel, Models};

/// Name and text of each library's file; earlier ones may be named by `like` and by families in later ones.
pub(crate) const FILES: &[(&str, &str)] = &[
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
    ("pcre", include_str!("../data/pcre.toml")),
    ("libevent", include_str!("../data/libevent.toml")),
    ("system", include_str!("../data/system.toml")),
];

/// The lines of all libraries.
#[derive(Debug)]
pub(crate) struct Libraries {
    families: IdVec<FamilyId, FamilySpec>,
    lines: FxHashMap<&'static str, Line>,
}

/// One function, read or not yet.
#[derive(Debug)]
struct Line {
    file: &'static str,
    number: u32,
    text: &'static str,
    model: OnceLock<Option<FunctionModel>>,
}

impl Libraries {
    fn load() -> Self {
        let mut libraries = Self { families: IdVec::new(), lines: FxHashMap::default() };
        libraries.lines.reserve(8192);
        for &(file, text) in FILES {
            let (header, functions) = text.split_once("[functions]\n").unwrap_or((text, ""));
            let families =
                Document::parse(header, file).and_then(|document| match document.root().section("families")? {
                    Some(section) => Ok(reader::read_families(&mut libraries.families, &section)),
                    None => Ok(Vec::new()),
                });
            debug_assert!(families.is_ok_and(|errors| errors.is_empty()), "families of {file}");
            let first = header.bytes().filter(|&byte| byte == b'\n').count() + 2;
            for (number, text) in (first..).zip(functions.lines()) {
                let Some((name, _)) = text.split_once(" = ") else { continue };
                if !name.starts_with('#') {
                    let number = u32::try_from(number).unwrap_or(u32::MAX);
                    libraries.lines.insert(name, Line { file, number, text, model: OnceLock::new() });
                }
            }
        }
        libraries
    }

    fn shared() -> &'static Self {
        static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
        LIBRARIES.get_or_init(Self::load)
    }

    pub(crate) fn get(&'static self, name: &str) -> Option<&'static FunctionModel> {
        let line = self.lines.get(name)?;
        line.model.get_or_init(|| self.read(line)).as_ref()
    }

    fn read(&'static self, line: &Line) -> Option<FunctionModel> {
        let document = Document::parse(line.text, line.file).ok()?;
        let models = Models { libraries: Some(self), ..Models::default() };
        let (functions, errors) = reader::read_functions(&self.families, &models, &document, &document.root());
        debug_assert!(errors.is_empty(), "{errors:?}");
        let mut model = functions.into_iter().next()?;
        model.origin.line = line.number;
        Some(model)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.lines.keys().copied()
    }
}

impl Models {
    /// The models of all libraries caulk knows.
    pub fn builtin() -> Models {
        let libraries = Libraries::shared();
        Models { families: libraries.families.clone(), functions: FxHashMap::default(), libraries: Some(libraries) }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all files as plain TOML, each whole.
    fn read_whole() -> Models {
        let mut models = Models::default();
        for &(file, text) in FILES {
            let document = Document::parse(text, file).unwrap_or_else(|errors| panic!("{errors}"));
            let before = models.functions.len();
            let functions = document.root().section("functions").ok().flatten().map_or(0, |all| all.keys().len());
            reader::read(&mut models, &document, &document.root()).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(models.functions.len(), before + functions, "{file} repeats a function of an earlier file");
        }
        models
    }

    #[test]
    fn every_line_reads_as_its_whole_file_does() {
        let whole = read_whole();
        let lines = Models::builtin();
        assert_eq!(whole.families, lines.families);
        assert_eq!(lines.libraries.map(|all| all.lines.len()), Some(whole.functions.len()));
        assert!(whole.functions.len() > 6000);
        for model in whole.sorted() {
            assert_eq!(lines.get(&model.name), Some(model));
        }
    }

    #[test]
    fn families_name_a_release_function_that_releases_them() {
        let models = Models::builtin();
        for (id, family) in models.families.iter_ids() {
            // Macros over functions that take file and line, or a function pointer variable.
            if family.release == "OPENSSL_free" {
                continue;
            }
            let release = models.get(&family.release).unwrap_or_else(|| panic!("{}", family.release));
            let releases = release.effects.iter().any(
                |effect| matches!(effect, crate::Effect::Releases { family, .. } if models.compatible(*family, id)),
            );
            assert!(releases, "{} does not release {}", family.release, family.name);
        }
    }
}
