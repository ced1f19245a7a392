//! A link command: first as asked, then once more with guarded units, if there are any.
//!
//! Which objects and which members of archives go into the program, the linker itself says (`--trace`). A member is
//! replaced in a copy of its archive, so that the order of the command line means what it meant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use caulk_frontend::Arg;
use caulk_instrument::{Member, Module, Program, Verdict, Wanted, guard, read_archive, write_archive};

use super::parts::Parts;
use super::words::Words;
use super::{Tools, compile, outcome, sites, warn};
use crate::args::GuardArgs;
use crate::config::Config;
use crate::exit::{self, Outcome};

pub(super) fn run(words: &Words, tools: &Tools, args: &GuardArgs) -> Result<Outcome> {
    let scratch = tempfile::Builder::new().prefix("caulk-cc-").tempdir().context("cannot make a temporary folder")?;
    // Sources become objects of their own first.
    let mut line = LinkLine::of(words);
    for (number, source) in words.sources().iter().enumerate() {
        let stem = Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let object = scratch.path().join(format!("{number}-{stem}.o"));
        match compile::object(words, tools, source, &object) {
            Ok(true) => line.replace_input(source, &object),
            // The compiler has said why.
            Ok(false) => return Ok(Outcome::Child(1)),
            Err(reason) => anyhow::bail!("cannot compile {source}: {reason}"),
        }
    }
    let partial = words.has("-r") || words.has("-Wl,-r") || words.has("-nostdlib") || words.has("-nodefaultlibs");
    let mut command = tools.command(&tools.compiler);
    command.args(line.words());
    if partial {
        return Ok(outcome(command.status()?));
    }
    command.arg("-Wl,--trace,--trace").stdout(Stdio::piped());
    let linked = command.spawn().and_then(std::process::Child::wait_with_output);
    let linked = linked.with_context(|| format!("cannot run {}", tools.compiler.display()))?;
    if !linked.status.success() {
        return Ok(outcome(linked.status));
    }
    let parts = Parts::gather(&String::from_utf8_lossy(&linked.stdout));
    if !parts.inputs.is_empty() {
        // A bug of ours is no reason for a build to fail, either.
        std::panic::set_hook(Box::new(|panic| warn(&format!("this is a bug of caulk, please report it: {panic}"))));
        let work = || guard_program(words, tools, args, (line, &parts), scratch.path());
        let reason = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            Ok(Ok(())) => return Ok(Outcome::Clean),
            Ok(Err(reason)) => format!("{reason:#}"),
            Err(_) => "caulk failed on it".to_owned(),
        };
        warn(&format!("{} is not guarded: {reason}", name(words)));
    }
    Ok(Outcome::Clean)
}

fn name(words: &Words) -> String {
    words.output().unwrap_or_else(|| PathBuf::from("a.out")).display().to_string()
}

fn guard_program(
    words: &Words,
    tools: &Tools,
    args: &GuardArgs,
    (mut line, parts): (LinkLine, &Parts),
    scratch: &Path,
) -> Result<()> {
    // Which function a name stands for is then another one than in the units. Tests let allocations fail this way.
    let exchanges = |word: &String| word.contains("-wrap") || word.contains("-defsym");
    let exchanged = !args.guard_everything && line.words().iter().any(exchanges);
    anyhow::ensure!(!exchanged, "the linker is told to exchange functions (--wrap, --defsym)");
    let config = Config::load(None, Path::new("."))?;
    let inputs = &parts.inputs;
    let records: Vec<_> = inputs.iter().map(|input| &input.unit.record).collect();
    let wanted = sites::choose(args, &records)?;
    if wanted == Wanted::Sites(Vec::new()) {
        return Ok(());
    }
    let modules: Vec<Module<'_>> =
        inputs.iter().map(|input| Module { bitcode: &input.unit.bitcode, debug: input.unit.record.debug }).collect();
    let shared = words.has("-shared");
    let output = words.output().unwrap_or_else(|| PathBuf::from("a.out"));
    let library = output.file_name().filter(|_| shared).unwrap_or_default().to_string_lossy().into_owned();
    let program = Program { modules: &modules, name: &library, foreign: &parts.foreign };
    let guarded = guard(&config.models, &program, &wanted)?;
    tell(&name(words), &wanted, &guarded.verdicts, &guarded.note);
    if guarded.changed.is_empty() {
        return Ok(());
    }
    let mut archives: BTreeMap<&Path, Vec<Member>> = BTreeMap::new();
    for (index, bitcode) in &guarded.changed {
        let input = inputs.get(*index).context("a unit that was not there")?;
        let object = scratch.join(format!("guarded-{index}.o"));
        let made = compile::regenerate(tools, &input.unit.record, bitcode, &object);
        made.map_err(|reason| anyhow::anyhow!("{} does not compile again: {reason}", input.unit.record.file))?;
        let Some(member) = &input.member else {
            line.replace_input(&input.path.display().to_string(), &object);
            continue;
        };
        let members = match archives.entry(&input.path) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                new.insert(read_archive(&std::fs::read(&input.path)?).context("the archive has changed")?)
            }
        };
        let data = std::fs::read(&object)?;
        members.iter_mut().filter(|found| found.name == *member).for_each(|found| found.data.clone_from(&data));
    }
    for (number, (path, members)) in archives.iter().enumerate() {
        let copy = scratch.join(format!("guarded-{number}.a"));
        std::fs::write(&copy, write_archive(members))?;
        let indexed = tools.command(Path::new("ranlib")).arg(&copy).status().context("cannot run ranlib")?;
        anyhow::ensure!(indexed.success(), "ranlib failed on a copy of {}", path.display());
        line.replace_archive(path, &copy);
    }
    let runtime = scratch.join("libcaulk_runtime.a");
    std::fs::write(&runtime, caulk_runtime::ARCHIVE)?;
    let mut command = tools.command(&tools.compiler);
    command.args(line.words()).arg(&runtime).stdout(Stdio::null());
    // The program is there already: a failure here must leave it.
    let guarded_output = scratch.join("output");
    command.arg("-o").arg(&guarded_output);
    let linked = command.output()?;
    if !linked.status.success() {
        let errors = String::from_utf8_lossy(&linked.stderr).into_owned();
        anyhow::bail!("it does not link: {}", errors.lines().next().unwrap_or_default());
    }
    std::fs::copy(&guarded_output, &output).context("cannot replace it")?;
    Ok(())
}

fn tell(name: &str, wanted: &Wanted, verdicts: &[Verdict], note: &str) {
    let Wanted::Sites(sites) = wanted else {
        exit::say(&format!("caulk: {name}: {note}\n"));
        return;
    };
    let count = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Guarded(_))).count();
    exit::say(&format!("caulk: {name}: {count} of {} sites guarded\n", sites.len()));
    for (site, verdict) in sites.iter().zip(verdicts) {
        if let Verdict::Not(reason) = verdict {
            exit::say(&format!("caulk: {}:{}: not guarded: {reason}\n", site.file, site.line));
        }
    }
}

/// The words of a link command, some of them replaced.
struct LinkLine {
    words: Vec<(Kind, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Input,
    Library,
    Other,
}

impl LinkLine {
    fn of(words: &Words) -> LinkLine {
        let mut line = Vec::new();
        for argument in words.arguments() {
            match argument {
                Arg::Plain(word) => line.push((Kind::Other, word.to_owned())),
                Arg::Valued { option: "-l", value } => line.push((Kind::Library, format!("-l{value}"))),
                // What follows is no longer in a language.
                Arg::Valued { option: "-x", .. } => {}
                Arg::Valued { option, value } => {
                    line.extend([(Kind::Other, option.to_owned()), (Kind::Other, value.to_owned())]);
                }
                Arg::Input { path, .. } => line.push((Kind::Input, path.to_owned())),
            }
        }
        LinkLine { words: line }
    }

    fn words(&self) -> Vec<String> {
        self.words.iter().map(|(_, word)| word.clone()).collect()
    }

    fn replace_input(&mut self, from: &str, to: &Path) {
        for (kind, word) in &mut self.words {
            if *kind == Kind::Input && word == from {
                *word = to.display().to_string();
            }
        }
    }

    /// By its path, or by the `-lname` that found it.
    fn replace_archive(&mut self, from: &Path, to: &Path) {
        let library = from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let library =
            library.strip_prefix("lib").and_then(|name| name.strip_suffix(".a")).map(|name| format!("-l{name}"));
        for (kind, word) in &mut self.words {
            let named = *kind == Kind::Library && Some(&*word) == library.as_ref();
            if named || *kind == Kind::Input && Path::new(&*word) == from {
                *word = to.display().to_string();
            }
        }
    }
}
