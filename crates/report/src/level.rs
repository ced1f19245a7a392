//! How loudly a rule speaks.

use caulk_findings::Rule;
use serde::{Deserialize, Serialize};

/// Severity of a finding in every output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// The level of every rule. By default errors, and a note for memory held until exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels([Level; Rule::ALL.len()]);

impl Levels {
    pub fn get(&self, rule: Rule) -> Level {
        self.0[rule as usize]
    }

    pub fn set(&mut self, rule: Rule, level: Level) {
        self.0[rule as usize] = level;
    }
}

impl Default for Levels {
    fn default() -> Self {
        let mut levels = Levels([Level::Error; Rule::ALL.len()]);
        levels.set(Rule::LeakAtExit, Level::Note);
        levels
    }
}
