//! The readers under attack. What they answer does not matter, as long as they answer.

use std::path::Path;

use caulk_models::Models;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Models,
    Database,
    Bitcode,
}

impl Target {
    pub(crate) const ALL: [Target; 3] = [Target::Models, Target::Database, Target::Bitcode];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Target::Models => "models",
            Target::Database => "database",
            Target::Bitcode => "bitcode",
        }
    }

    /// Reads one input.
    pub(crate) fn read(self, input: &[u8]) {
        match self {
            Target::Models => {
                let text = String::from_utf8_lossy(input);
                // Not on top of the built-in ones: copying those would take most of the time.
                let mut models = Models::default();
                let _ = models.extend_from_toml(&text, "caulk.toml");
                for model in models.sorted() {
                    let _ = models.describe(model);
                }
            }
            Target::Database => {
                drop(caulk_frontend::parse_database(input, Path::new("/project/compile_commands.json")))
            }
            Target::Bitcode => drop(caulk_frontend::lower(input)),
        }
    }
}
