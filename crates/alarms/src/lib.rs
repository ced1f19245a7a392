//! Alarms of other tools, read from their reports and logs: what they say is wrong, and the places they name.
//!
//! ```text
//! ==8759==ERROR: LeakSanitizer: detected memory leaks
//! Direct leak of 14 byte(s) in 1 object(s) allocated from:
//!     #1 0x55ae77389e04 in must_alloc src/notes.c:7:19      ──►  Alarm { kind: Leak, observed: true,
//!     #2 0x55ae77389bf0 in parse src/notes.c:14:18                 tracks: [Allocation: notes.c:7, notes.c:14] }
//! ```
//!
//! Formats: SARIF, Infer's `report.json`, clang's plist, gcc's JSON diagnostics, the text of the sanitizers, Valgrind's
//! text and XML, the runtime of guarded programs. Which one it is, is seen from the content.
//!
//! # Invariants
//! - Nothing is known here of the program that the alarms are about, and no file is opened.
//! - An alarm has at least one place; alarms about other things than memory and resources are counted, not kept.
//! - No input makes it panic.
//!
//! # Known imprecision
//! - What the events of a path mean is read from their English words.

mod event;
mod gcc;
mod infer;
mod plist;
mod runtime;
mod sanitizer;
mod sarif;
mod valgrind;
mod words;

use thiserror::Error;

/// What a tool says is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Leak,
    ResourceLeak,
    /// Not lost, but still held when the process ended.
    Reachable,
    DoubleFree,
    UseAfterFree,
    Mismatched,
    InvalidFree,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Leak => "leak",
            Kind::ResourceLeak => "resource leak",
            Kind::Reachable => "memory held at exit",
            Kind::DoubleFree => "double free",
            Kind::UseAfterFree => "use after free",
            Kind::Mismatched => "mismatched release",
            Kind::InvalidFree => "invalid free",
        }
    }
}

/// What happened at the places of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Where the tool puts its finger: the use, the second release, the end of the pointer's life.
    Error,
    Allocation,
    Release,
}

/// A place as the tool names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// As written there: absolute, relative to anything, or a bare name.
    pub file: String,
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Empty if unknown.
    pub function: String,
}

/// One place and those it was called from, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    pub role: Role,
    pub frames: Vec<Frame>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    pub tool: String,
    pub kind: Kind,
    /// The tool's own words.
    pub message: String,
    /// It happened in a run; otherwise the tool only thinks that it can.
    pub observed: bool,
    pub tracks: Vec<Track>,
}

impl Alarm {
    /// The first place of the first track with this role.
    pub fn place(&self, role: Role) -> Option<&Frame> {
        self.tracks.iter().filter(|track| track.role == role).find_map(|track| track.frames.first())
    }
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alarms {
    pub alarms: Vec<Alarm>,
    /// Alarms about other things than memory and resources, or without a place in the source.
    pub passed_over: usize,
}

impl Alarms {
    fn add(&mut self, alarm: Option<Alarm>) {
        match alarm {
            Some(alarm) if alarm.tracks.iter().any(|track| !track.frames.is_empty()) => self.alarms.push(alarm),
            _ => self.passed_over += 1,
        }
    }
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum AlarmError {
    #[error("the file is empty")]
    Empty,
    #[error("not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("not valid XML: {0}")]
    Xml(#[from] roxmltree::Error),
    #[error("JSON, but none of SARIF, Infer's report.json, gcc's diagnostics and caulk's runtime")]
    OtherJson,
    #[error("XML, but neither a plist of clang nor a log of Valgrind")]
    OtherXml,
    #[error("no report of AddressSanitizer, LeakSanitizer or Valgrind is in it, and it is neither JSON nor XML")]
    Unknown,
    #[error("{0}")]
    Shape(String),
}

/// Reads a report or a log of any known format.
pub fn read(text: &str) -> Result<Alarms, AlarmError> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if start.is_empty() {
        return Err(AlarmError::Empty);
    }
    if start.starts_with('{') || start.starts_with('[') {
        return json(start);
    }
    if start.starts_with("<?xml") || start.starts_with("<!DOCTYPE") || start.starts_with("<plist") {
        return xml(start);
    }
    if sanitizer::is_one(text) {
        return Ok(sanitizer::read(text));
    }
    if valgrind::is_text(text) {
        return Ok(valgrind::read_text(text));
    }
    // gcc writes its diagnostics to standard error, where others write, too.
    if let Some(line) = text.lines().find(|line| line.starts_with("[{") || line.starts_with("{\"")) {
        let offset = line.as_ptr() as usize - text.as_ptr() as usize;
        return json(&text[offset..]);
    }
    Err(AlarmError::Unknown)
}

fn json(text: &str) -> Result<Alarms, AlarmError> {
    let mut all = Alarms::default();
    let mut known = false;
    // gcc writes one array for each unit, one after another.
    for value in serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>() {
        let value = match value {
            Ok(value) => value,
            // What other programs wrote behind it.
            Err(_) if known => break,
            Err(error) => return Err(error.into()),
        };
        let read = if value.get("runs").is_some() {
            sarif::read(&value)?
        } else if infer::is_one(&value) {
            infer::read(&value)
        } else if runtime::is_one(&value) {
            runtime::read(&value)
        } else if gcc::is_one(&value) {
            gcc::read(&value)
        } else {
            return Err(AlarmError::OtherJson);
        };
        known = true;
        all.alarms.extend(read.alarms);
        all.passed_over += read.passed_over;
    }
    Ok(all)
}

fn xml(text: &str) -> Result<Alarms, AlarmError> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options)?;
    match document.root_element().tag_name().name() {
        "plist" => plist::read(document.root_element()),
        "valgrindoutput" => Ok(valgrind::read_xml(document.root_element())),
        _ => Err(AlarmError::OtherXml),
    }
}
