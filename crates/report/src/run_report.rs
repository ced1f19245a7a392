//! What programs that `caulk cc` made say of their runs, `CAULK_RT=report=FILE`: which guarded sites lost blocks, and
//! how much. Several reports (of children, of shared libraries, of several runs) are added up.

use std::fmt;

use caulk_findings::Finding;
use serde::Deserialize;

const TOOL: &str = "caulk-runtime";
const VERSION: u32 = 1;

/// The sum of some runs, sorted by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    pub sites: Vec<RunSite>,
    /// In some run what was lost was only counted (`CAULK_RT=off`).
    pub only_counted: bool,
}

/// One guarded allocation; it may have lost nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct RunSite {
    /// As the compiler knew it: absolute.
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
    pub family: String,
    pub blocks: u64,
    /// 0 for what is not memory.
    pub bytes: u64,
}

/// Why a file is no report of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunReportError {
    /// Not the JSON that the runtime writes: what and where.
    Malformed { message: String },
    /// Some other tool's JSON, or a later runtime's.
    Foreign { tool: String, version: u32 },
}

impl fmt::Display for RunReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunReportError::Malformed { message } => {
                write!(f, "{message}; `CAULK_RT=report=FILE` makes a program of `caulk cc` write such a file")
            }
            RunReportError::Foreign { tool, version } => {
                write!(f, "written by `{tool}`, version {version}, not by `{TOOL}`, version {VERSION}")
            }
        }
    }
}

impl std::error::Error for RunReportError {}

#[derive(Deserialize)]
struct File {
    tool: String,
    version: u32,
    released: bool,
    sites: Vec<RunSite>,
}

impl RunReport {
    /// Adds the report of one more run.
    pub fn add(&mut self, text: &str) -> Result<(), RunReportError> {
        let file: File = serde_json::from_str(text)
            .map_err(|error| RunReportError::Malformed { message: format!("not the report of a run: {error}") })?;
        if file.tool != TOOL || file.version != VERSION {
            return Err(RunReportError::Foreign { tool: file.tool, version: file.version });
        }
        self.only_counted |= !file.released;
        for site in file.sites {
            let same = |known: &&mut RunSite| {
                (&known.file, known.line, known.column) == (&site.file, site.line, site.column)
                    && known.family == site.family
            };
            match self.sites.iter_mut().find(same) {
                Some(known) => {
                    known.blocks = known.blocks.saturating_add(site.blocks);
                    known.bytes = known.bytes.saturating_add(site.bytes);
                }
                None => self.sites.push(site),
            }
        }
        self.sites.sort();
        Ok(())
    }

    /// The site whose blocks a finding is about, if it was guarded.
    pub fn site_of(&self, finding: &Finding) -> Option<&RunSite> {
        let place = &finding.source;
        let there = |site: &&RunSite| {
            site.file == place.file
                && site.line == place.line
                && (site.column == place.column || site.column == 0 || place.column == 0)
        };
        self.sites.iter().find(there)
    }

    /// What became of the blocks.
    pub fn verb(&self) -> &'static str {
        if self.only_counted { "lost" } else { "reclaimed" }
    }
}
