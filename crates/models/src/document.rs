//! Configuration files with positions: what `caulk.toml` and the built-in model files are read through.
//!
//! A reader asks a [`Section`] for the keys it knows; everything it gets wrong becomes a [`ConfigError`] that
//! names file, line and key and, where a word was probably mistyped, the word that was meant.
//!
//! ```text
//! let document = Document::parse(text, "caulk.toml")?;
//! let rules = document.root().section("rules")?;      // Some, None, or "must be a table"
//! rules.expect_keys(&["memory-leak", "double-free"])?; // else: caulk.toml:3: rules.memoryleak: unknown key; …
//! ```
//!
//! # Invariants
//! - No text makes this panic; errors come out in the order of their lines.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something wrong in a configuration file, for the user to mend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub struct ConfigError {
    pub line: u32,
    pub column: u32,
    pub file: String,
    /// The key with its tables, `models.functions.fopen.fails`; empty where the text is not TOML.
    pub key: String,
    pub message: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean `{word}`?"),
            None => Ok(()),
        }
    }
}

/// All that is wrong with one file, by line. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// A parsed file that can say where each of its parts stands.
pub struct Document<'t> {
    file: String,
    positions: Positions<'t>,
    root: Spanned<DeTable<'t>>,
}

/// Where bytes of a text are, for people.
struct Positions<'t> {
    text: &'t str,
    /// The offset of the first byte of each line.
    starts: Vec<usize>,
}

impl<'t> Positions<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|&start| start <= offset)).unwrap_or(u32::MAX)
    }

    /// In characters, from 1.
    fn column(&self, offset: usize) -> u32 {
        let start = self.starts[..self.starts.partition_point(|&start| start <= offset)].last().copied().unwrap_or(0);
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or("");
        u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX)
    }
}

impl<'t> Document<'t> {
    /// Reads TOML. `file` is how messages call it.
    pub fn parse(text: &'t str, file: &str) -> Result<Self, ConfigErrors> {
        let positions = Positions::new(text);
        match DeTable::parse(text) {
            Ok(root) => Ok(Self { file: file.to_owned(), positions, root }),
            Err(error) => {
                let offset = error.span().map_or(0, |span| span.start);
                let error = ConfigError {
                    line: positions.line(offset),
                    column: positions.column(offset),
                    file: file.to_owned(),
                    key: String::new(),
                    message: error.message().replace('\n', ", "),
                    suggestion: None,
                };
                Err(error.into())
            }
        }
    }

    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line of a span's first byte, from 1.
    pub fn line(&self, span: &Range<usize>) -> u32 {
        self.positions.line(span.start)
    }

    pub fn root(&self) -> Section<'_> {
        Section { document: self, path: String::new(), table: self.root.get_ref(), span: self.root.span() }
    }

    /// An error at `span`, about the key `key` (with its tables).
    pub fn error(&self, span: &Range<usize>, key: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError {
            line: self.line(span),
            column: self.positions.column(span.start),
            file: self.file.clone(),
            key: key.into(),
            message: message.into(),
            suggestion: None,
        }
    }
}

/// One table of a document.
#[derive(Clone)]
pub struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    table: &'d DeTable<'d>,
    span: Range<usize>,
}

impl<'d> Section<'d> {
    /// The table's full name, empty for the document itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The keys in the order of the file.
    pub fn keys(&self) -> Vec<&'d str> {
        let mut keys: Vec<_> = self.table.keys().map(|key| (key.span().start, key.get_ref().as_ref())).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// An error about a key of this table, at the key, or at the table if it has no such key.
    pub fn error(&self, key: &str, message: impl Into<String>) -> ConfigError {
        let span = self.table.get_key_value(key).map_or(self.span.clone(), |(name, _)| name.span());
        self.document.error(&span, join(&self.path, key), message)
    }

    /// "unknown rule `x`; did you mean `y`?" for a key or a value.
    pub fn unknown(&self, key: &str, kind: &str, word: &str, known: &[&str]) -> ConfigError {
        let mut error = self.error(key, format!("unknown {kind} `{word}`"));
        error.suggestion = nearest(word, known.iter().copied()).map(str::to_owned);
        error
    }

    /// Errors for every key that is not one of `known`.
    pub fn expect_keys(&self, known: &[&str]) -> Result<(), ConfigErrors> {
        let unknown: Vec<_> = self.keys().into_iter().filter(|key| !known.contains(key)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let errors = unknown.into_iter().map(|key| {
            let mut error = self.error(key, "unknown key");
            error.suggestion = nearest(key, known.iter().copied()).map(str::to_owned);
            error
        });
        Err(ConfigErrors(errors.collect()))
    }

    pub fn section(&self, key: &str) -> Result<Option<Section<'d>>, ConfigError> {
        let Some((name, value)) = self.table.get_key_value(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(table) => {
                Ok(Some(Section { document: self.document, path: join(&self.path, key), table, span: name.span() }))
            }
            other => Err(self.error(key, format!("must be a table, not {}", article(other.type_str())))),
        }
    }

    pub fn string(&self, key: &str) -> Result<Option<&'d str>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.error(key, format!("must be a string, not {}", article(other.type_str())))),
        }
    }

    /// An array of strings; a single string counts as an array of one.
    pub fn strings(&self, key: &str) -> Result<Option<Vec<&'d str>>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(vec![text])),
            Some(DeValue::Array(items)) => {
                let texts = items.iter().map(|item| item.get_ref().as_str());
                let texts: Option<Vec<_>> = texts.collect();
                texts.map(Some).ok_or_else(|| self.error(key, "must be an array of strings"))
            }
            Some(other) => {
                Err(self.error(key, format!("must be an array of strings, not {}", article(other.type_str()))))
            }
        }
    }

    pub fn boolean(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(DeValue::Boolean(value)) => Ok(Some(*value)),
            Some(other) => Err(self.error(key, format!("must be true or false, not {}", article(other.type_str())))),
        }
    }

    pub fn integer(&self, key: &str) -> Result<Option<i64>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => integer(value).map(Some).ok_or_else(|| self.error(key, "must be a whole number")),
        }
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'d DeValue<'d>> {
        self.table.get(key).map(Spanned::get_ref)
    }

    pub(crate) fn table(&self) -> &'d DeTable<'d> {
        self.table
    }
}

pub(crate) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn article(noun: &str) -> String {
    let an = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if an { "an" } else { "a" })
}

/// The known word closest to a mistyped one, if any is close: at most a third of its letters apart.
///
/// ```text
/// assert_eq!(nearest("alocates", ["allocates", "releases"].into_iter()), Some("allocates"));
/// ```
pub fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .map(|candidate| (distance(word, candidate, limit), candidate))
        .filter(|&(apart, _)| apart <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap neighbours) between two words; anything above `limit` is `limit + 1`.
fn distance(one: &str, other: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(previous[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[b.len()]
}
