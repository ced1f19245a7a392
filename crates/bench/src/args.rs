//! The command line, read by hand: two commands and a dozen flags need no library.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::peers::Peer;

pub(crate) const USAGE: &str = "\
usage: caulk-bench projects [options] DIR…
       caulk-bench juliet [options] DIR

projects: DIR holds a compile_commands.json, or C files.
  --peers LIST    also run: clang, gcc, cppcheck (comma separated), or all
  --runs N        repeat every measurement, keep the fastest (default 1)
  --no-edit       do not edit a file for the run after an edit
juliet: DIR holds testcases/ and testcasesupport/ of the Juliet test suite for C.
  --cwe LIST      default 401,415,416,773,775
  --every N       only every Nth case
                  caulk's own output is kept beside the table, as FILE.cweN.json

both:
  --caulk FILE    the caulk to measure (default: beside this program, else from PATH)
  -j N            jobs (default: all cores)
  -o FILE         the tables as Markdown; FILE.json beside it (default: bench.md)
  --timeout S     seconds given to one process (default 1800)";

pub(crate) enum Command {
    Help,
    Projects(ProjectOptions),
    Juliet(JulietOptions),
}

pub(crate) struct Common {
    pub caulk: PathBuf,
    pub jobs: usize,
    pub output: PathBuf,
    pub timeout: std::time::Duration,
}

pub(crate) struct ProjectOptions {
    pub common: Common,
    pub folders: Vec<PathBuf>,
    pub peers: Vec<Peer>,
    pub runs: usize,
    pub edit: bool,
}

pub(crate) struct JulietOptions {
    pub common: Common,
    pub folder: PathBuf,
    pub cwes: Vec<u32>,
    pub every: usize,
}

pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Command> {
    let mut args = args;
    let Some(command) = args.next() else { return Ok(Command::Help) };
    let mut common = Common {
        caulk: beside_this_program(),
        jobs: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        output: PathBuf::from("bench.md"),
        timeout: std::time::Duration::from_secs(1800),
    };
    let mut folders = Vec::new();
    let (mut peers, mut runs, mut edit) = (Vec::new(), 1, true);
    let (mut cwes, mut every) = (vec![401, 415, 416, 773, 775], 1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--caulk" => common.caulk = absolute(&value()?)?,
            "-j" => common.jobs = positive(&value()?)?,
            "-o" => common.output = PathBuf::from(value()?),
            "--timeout" => common.timeout = std::time::Duration::from_secs(positive(&value()?)? as u64),
            "--peers" => peers = Peer::list(&value()?)?,
            "--runs" => runs = positive(&value()?)?,
            "--no-edit" => edit = false,
            "--cwe" => {
                cwes = value()?.split(',').map(|number| Ok(number.trim().parse()?)).collect::<Result<_>>()?;
            }
            "--every" => every = positive(&value()?)?,
            flag if flag.starts_with('-') => bail!("unknown option {flag}\n{USAGE}"),
            folder => folders.push(absolute(folder)?),
        }
    }
    match command.as_str() {
        "projects" if !folders.is_empty() => {
            Ok(Command::Projects(ProjectOptions { common, folders, peers, runs, edit }))
        }
        "juliet" if folders.len() == 1 => {
            let folder = folders.swap_remove(0);
            Ok(Command::Juliet(JulietOptions { common, folder, cwes, every }))
        }
        "projects" | "juliet" => bail!("which folder?\n{USAGE}"),
        "help" | "-h" | "--help" => Ok(Command::Help),
        other => bail!("unknown command {other}\n{USAGE}"),
    }
}

fn positive(text: &str) -> Result<usize> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!("`{text}` is not a positive number"),
    }
}

fn absolute(path: &str) -> Result<PathBuf> {
    std::fs::canonicalize(path).with_context(|| format!("no such file or folder: {path}"))
}

/// Cargo puts both binaries into one folder; an installed caulk is found through `PATH`.
fn beside_this_program() -> PathBuf {
    let neighbour = std::env::current_exe().ok().map(|own| own.with_file_name("caulk"));
    neighbour.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("caulk"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn projects_take_folders_and_flags() {
        let Ok(Command::Projects(options)) = parsed("projects -j 3 --peers clang,gcc --runs 2 --no-edit . /") else {
            panic!("did not parse");
        };
        assert_eq!((options.common.jobs, options.runs, options.edit), (3, 2, false));
        assert_eq!(options.peers, [Peer::Clang, Peer::Gcc]);
        assert_eq!(options.folders.len(), 2);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, word) in [
            ("projects", "which folder"),
            ("juliet . .", "which folder"),
            ("projects -j 0 .", "positive"),
            ("projects --peers lint .", "lint"),
            ("projects --fast .", "--fast"),
            ("race .", "race"),
            ("projects ./no/such/folder", "no such"),
        ] {
            let error = parsed(line).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
