//! Turns records into a compile database and a record of links, adding to what is there.

use std::path::{Path, PathBuf};

use caulk_base::FxHashMap;
use serde_json::json;

use super::links::{link_of_command, stops_early};
use super::log::Record;
use crate::database::{self, CompileCommand, DATABASE_NAME};
use crate::error::FrontendError;
use crate::flags::{self, Arg, Language};
use crate::link::{LINKS_NAME, LinkKind, LinkRecord};
use crate::paths::absolute;

/// What there is after merging.
pub struct Merged {
    pub recorded: usize,
    pub units: usize,
    pub link_units: usize,
    pub note: Option<String>,
}

/// Adds records to the database in a folder.
pub fn merge(records: &[Record], folder: &Path) -> Result<Merged, FrontendError> {
    let database = folder.join(DATABASE_NAME);
    let mut note = None;
    let mut commands = Vec::new();
    if database.exists() {
        match database::read(&database) {
            Ok(old) => commands = old,
            Err(error) => note = Some(format!("the old database was replaced: {error}")),
        }
    }
    let mut links = LinkRecord::read_beside(&database).unwrap_or_default();
    let fresh: Vec<CompileCommand> = records.iter().flat_map(compiled).filter(is_lasting).collect();
    let fresh = latest(fresh);
    let recorded = fresh.len();
    commands.extend(fresh);
    let mut commands = latest(commands);
    commands.retain(|command| command.file.is_file());
    let new_links = records.iter().filter_map(|record| link_of_command(&record.words, &record.directory));
    add_links(&mut links, new_links.filter(|link| !is_probe(&link.output)));
    links.retain(|link| link.output.exists());
    let merged = Merged { recorded, units: commands.len(), link_units: links.len(), note };
    if !commands.is_empty() || database.exists() {
        write(&database, &database_text(&commands))?;
        write(&folder.join(LINKS_NAME), &LinkRecord::to_json(links))?;
    }
    Ok(merged)
}

/// The units that one command compiles.
fn compiled(record: &Record) -> Vec<CompileCommand> {
    let Some(at) = flags::compiler_index(&record.words) else { return Vec::new() };
    let arguments = flags::parse(&record.words[at + 1..]);
    if arguments.iter().any(|argument| stops_early(argument) && !matches!(argument, Arg::Plain("-c" | "-S"))) {
        return Vec::new();
    }
    let sources = arguments.iter().filter_map(|argument| {
        let Arg::Input { path, language } = *argument else { return None };
        let file = absolute(&record.directory, Path::new(path));
        let source = match language {
            Some(language) => !language.ends_with("-header"),
            None => flags::language_by_name(&file) != Language::Other,
        };
        (source && path != "-").then_some(file)
    });
    let commands = sources.map(|file| CompileCommand {
        directory: record.directory.clone(),
        output: flags::object_of(&record.words, &record.directory, &file),
        arguments: record.words.clone(),
        file,
    });
    commands.collect()
}

/// Sources that are still there, and that no build system wrote to try its compiler.
fn is_lasting(command: &CompileCommand) -> bool {
    let probe = is_probe(&command.file) || command.output.as_deref().is_some_and(is_probe);
    command.file.is_file() && !probe && !command.file.starts_with("/dev")
}

fn is_probe(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let probes =
        ["/CMakeFiles/CMakeScratch/", "/CMakeFiles/CMakeTmp/", "/CompilerIdC", "/meson-private/", "/conftest."];
    probes.iter().any(|probe| text.contains(probe))
}

/// One command for each object; what was compiled last counts, in the place of the first.
fn latest(commands: Vec<CompileCommand>) -> Vec<CompileCommand> {
    let mut places: FxHashMap<(PathBuf, Option<PathBuf>), usize> = FxHashMap::default();
    let mut result: Vec<CompileCommand> = Vec::with_capacity(commands.len());
    for command in commands {
        let key = (command.file.clone(), command.output.clone());
        match places.get(&key) {
            Some(&at) => result[at] = command,
            None => {
                places.insert(key, result.len());
                result.push(command);
            }
        }
    }
    result
}

/// A program that is linked again replaces its record; what is put into an archive adds to it.
fn add_links(links: &mut Vec<LinkRecord>, fresh: impl Iterator<Item = LinkRecord>) {
    let mut places: FxHashMap<PathBuf, usize> =
        links.iter().enumerate().map(|(at, link)| (link.output.clone(), at)).collect();
    for link in fresh {
        match places.get(&link.output) {
            Some(&at) if link.kind == LinkKind::Archive && links[at].kind == LinkKind::Archive => {
                for input in link.inputs {
                    if !links[at].inputs.contains(&input) {
                        links[at].inputs.push(input);
                    }
                }
            }
            Some(&at) => links[at] = link,
            None => {
                places.insert(link.output.clone(), links.len());
                links.push(link);
            }
        }
    }
}

fn database_text(commands: &[CompileCommand]) -> String {
    let entries: Vec<_> = commands
        .iter()
        .map(|command| {
            json!({
                "directory": command.directory.to_string_lossy(),
                "file": command.file.to_string_lossy(),
                "output": command.output.as_ref().map(|output| output.to_string_lossy()),
                "arguments": command.arguments,
            })
        })
        .collect();
    serde_json::to_string_pretty(&entries).unwrap_or_default() + "\n"
}

/// Beside its place first: a kill never leaves half a database.
fn write(path: &Path, text: &str) -> Result<(), FrontendError> {
    let temporary = path.with_extension(format!("{}.part", std::process::id()));
    let result = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result.map_err(FrontendError::write(path))
}
