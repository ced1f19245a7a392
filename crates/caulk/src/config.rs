//! `caulk.toml`: what a project says about itself.
//!
//! ```toml
//! [rules]
//! memory-leak = "error"             # off, note, warning or error
//! [paths]
//! exclude = ["third_party/**"]      # from the file's own folder
//! [cache]
//! size-mib = 512
//! [models.functions]                # read by caulk-models
//! arena_new = { allocates = "memory" }
//! ```
//!
//! # Invariants
//! - A wrong file is an error that names file, line and key; all errors come at once. Nothing is skipped silently.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caulk_findings::Rule;
use caulk_models::{ConfigError, ConfigErrors, Document, Models, Section};

pub(crate) const FILE_NAME: &str = "caulk.toml";

/// How loud a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Off,
    Note,
    Warning,
    Error,
}

const LEVELS: [(&str, Level); 4] =
    [("off", Level::Off), ("note", Level::Note), ("warning", Level::Warning), ("error", Level::Error)];

/// What a project says about itself; the default is a project that says nothing.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The folder that `exclude` is relative to: that of the file.
    pub(crate) folder: PathBuf,
    /// Rules with a level of their own.
    pub(crate) rules: BTreeMap<Rule, Level>,
    pub(crate) exclude: Vec<glob::Pattern>,
    pub(crate) cache_mib: Option<u64>,
    pub(crate) models: Models,
}

impl Config {
    /// Reads `--config FILE`, or the `caulk.toml` above `start`, or nothing.
    pub(crate) fn load(given: Option<&Path>, start: &Path) -> Result<Config> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => match find(start) {
                Some(path) => path,
                None => return Ok(Config { models: Models::builtin(), ..Config::default() }),
            },
        };
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = std::path::absolute(&path)?.parent().map(Path::to_owned).unwrap_or_default();
        let config = Config::parse(&text, &path.display().to_string())?;
        Ok(Config { folder, ..config })
    }

    /// The `caulk.toml` that holds in a folder.
    pub(crate) fn nearest(start: &Path) -> Option<PathBuf> {
        find(start)
    }

    fn parse(text: &str, file: &str) -> Result<Config, ConfigErrors> {
        let document = Document::parse(text, file)?;
        let mut config = Config { models: Models::builtin(), ..Config::default() };
        let mut errors: Vec<ConfigError> = Vec::new();
        let mut note = |result: Result<(), ConfigErrors>| {
            if let Err(found) = result {
                errors.extend(found.0);
            }
        };
        let root = document.root();
        note(root.expect_keys(&["rules", "paths", "cache", "models"]));
        note(config.read_rules(&root));
        note(config.read_paths(&root));
        note(config.read_cache(&root));
        note(config.models.extend_from_document(&document));
        if errors.is_empty() {
            return Ok(config);
        }
        errors.sort();
        Err(ConfigErrors(errors))
    }

    fn read_rules(&mut self, root: &Section<'_>) -> Result<(), ConfigErrors> {
        let Some(section) = root.section("rules")? else { return Ok(()) };
        let mut errors = Vec::new();
        for key in section.keys() {
            match read_rule(&section, key) {
                Ok((rule, level)) => {
                    self.rules.insert(rule, level);
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors(errors)) }
    }

    fn read_paths(&mut self, root: &Section<'_>) -> Result<(), ConfigErrors> {
        let Some(section) = root.section("paths")? else { return Ok(()) };
        section.expect_keys(&["exclude"])?;
        for text in section.strings("exclude")?.unwrap_or_default() {
            let pattern = glob::Pattern::new(text.trim_end_matches('/'))
                .map_err(|error| section.error("exclude", format!("`{text}` is not a pattern: {}", error.msg)))?;
            self.exclude.push(pattern);
        }
        Ok(())
    }

    fn read_cache(&mut self, root: &Section<'_>) -> Result<(), ConfigErrors> {
        let Some(section) = root.section("cache")? else { return Ok(()) };
        section.expect_keys(&["size-mib"])?;
        let Some(size) = section.integer("size-mib")? else { return Ok(()) };
        let size = u64::try_from(size).map_err(|_| section.error("size-mib", "must not be negative"))?;
        self.cache_mib = Some(size);
        Ok(())
    }

    /// A file, or a folder above it, is one of `paths.exclude`.
    pub(crate) fn excludes(&self, file: &Path) -> bool {
        let inside = file.strip_prefix(&self.folder).unwrap_or(file);
        inside.ancestors().any(|path| self.exclude.iter().any(|pattern| pattern.matches_path(path)))
    }
}

fn read_rule(section: &Section<'_>, key: &str) -> Result<(Rule, Level), ConfigError> {
    let rule = Rule::from_id(key).ok_or_else(|| section.unknown(key, "rule", key, &Rule::ALL.map(Rule::id)))?;
    let word = section.string(key)?.unwrap_or_default();
    let level = LEVELS.iter().find(|(name, _)| *name == word);
    let (_, level) = level.ok_or_else(|| section.unknown(key, "level", word, &LEVELS.map(|(name, _)| name)))?;
    Ok((rule, *level))
}

/// The nearest `caulk.toml` above; a repository's root is the last place to look.
fn find(start: &Path) -> Option<PathBuf> {
    let start = std::path::absolute(start).ok()?;
    for folder in start.ancestors() {
        let candidate = folder.join(FILE_NAME);
        if candidate.is_file() {
            return Some(candidate);
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> String {
        Config::parse(text, "caulk.toml").map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn everything_is_read() {
        let text = "[rules]\nmemory-leak = \"off\"\n[paths]\nexclude = [\"vendor\", \"src/**/gen_*.c\"]\n\
                    [cache]\nsize-mib = 7\n[models.functions]\narena_new = { allocates = \"memory\" }\n";
        let config = Config { folder: "/project".into(), ..Config::parse(text, "caulk.toml").unwrap() };
        assert_eq!(config.rules.get(&Rule::MemoryLeak), Some(&Level::Off));
        assert_eq!(config.cache_mib, Some(7));
        assert!(config.models.get("arena_new").is_some());
        assert!(config.models.get("malloc").is_some(), "the built-in models stay");
        assert!(config.excludes(Path::new("/project/vendor/zlib/inflate.c")));
        assert!(config.excludes(Path::new("/project/src/a/b/gen_table.c")));
        assert!(!config.excludes(Path::new("/project/src/vendored.c")));
        assert!(!config.excludes(Path::new("/elsewhere/main.c")));
    }

    #[test]
    fn errors_name_line_and_key_and_suggest() {
        assert_eq!(errors("[rulse]\n"), "caulk.toml:1: rulse: unknown key; did you mean `rules`?");
        assert_eq!(
            errors("[rules]\n\nmemory-leek = \"off\"\n"),
            "caulk.toml:3: rules.memory-leek: unknown rule `memory-leek`; did you mean `memory-leak`?"
        );
        assert_eq!(
            errors("[rules]\nmemory-leak = \"waring\"\n"),
            "caulk.toml:2: rules.memory-leak: unknown level `waring`; did you mean `warning`?"
        );
        assert!(
            errors("[paths]\nexclude = [\"a[\"]\n").starts_with("caulk.toml:2: paths.exclude: `a[` is not a pattern")
        );
        assert_eq!(errors("[cache]\nsize-mib = -1\n"), "caulk.toml:2: cache.size-mib: must not be negative");
        assert!(errors("[rules\n").starts_with("caulk.toml:1: "));
    }

    #[test]
    fn all_errors_come_at_once_in_order() {
        let text = "[cache]\nsize = 1\n[rules]\nx = \"off\"\n[paths]\nexclude = 3\n";
        let lines: Vec<_> = errors(text).lines().map(|line| line[..13].to_owned()).collect();
        assert_eq!(lines, ["caulk.toml:2:", "caulk.toml:4:", "caulk.toml:6:"]);
    }

    #[test]
    fn the_nearest_file_above_is_found_but_not_beyond_the_repository() {
        let outer = tempfile::tempdir().unwrap();
        let repository = outer.path().join("repository");
        let deep = repository.join("src/deep");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(repository.join(".git")).unwrap();
        std::fs::write(outer.path().join(FILE_NAME), "").unwrap();
        assert_eq!(find(&deep), None);
        std::fs::write(repository.join(FILE_NAME), "").unwrap();
        assert_eq!(find(&deep), Some(repository.join(FILE_NAME)));
    }
}
