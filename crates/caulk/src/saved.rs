//! The findings of the last `check`, kept beside the cache for `explain`.
//!
//! # Invariants
//! - A file that is damaged or of another version is as good as none.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use caulk_findings::Findings;
use caulk_frontend::Loaded;
use serde::{Deserialize, Serialize};

use crate::args::LoadArgs;
use crate::output;

const FILE_NAME: &str = "findings.json";
const FOLDER_NAME: &str = ".caulk";

/// What `check` found, before suppressions and baselines.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    version: String,
    /// The project's folder.
    pub(crate) root: String,
    pub(crate) findings: Findings,
}

impl Saved {
    /// Keeps findings, unless nothing is to be kept. A folder that cannot be written to is no reason to fail:
    /// the cache has said so already.
    pub(crate) fn keep(findings: &Findings, loaded: &Loaded, args: &LoadArgs) {
        if args.no_cache {
            return;
        }
        let folder = args.cache.clone().unwrap_or_else(|| loaded.root.join(FOLDER_NAME));
        let saved = Saved {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            root: loaded.root.display().to_string(),
            findings: findings.clone(),
        };
        if let Ok(text) = serde_json::to_vec(&saved) {
            let _ = output::write_file(&folder.join(FILE_NAME), &text);
        }
    }

    /// From `--cache DIR`, or from the nearest `.caulk/` above.
    pub(crate) fn find(cache: Option<&Path>) -> Result<Saved> {
        let candidates: Vec<PathBuf> = match cache {
            Some(folder) => vec![folder.join(FILE_NAME)],
            None => std::env::current_dir()?.ancestors().map(|dir| dir.join(FOLDER_NAME).join(FILE_NAME)).collect(),
        };
        for path in candidates {
            let Ok(text) = std::fs::read(&path) else { continue };
            if let Ok(saved) = serde_json::from_slice::<Saved>(&text)
                && saved.version == env!("CARGO_PKG_VERSION")
            {
                return Ok(saved);
            }
        }
        bail!("no findings are kept here or above; run `caulk check` first, without --no-cache")
    }
}
