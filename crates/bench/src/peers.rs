//! The other tools: clang's analyzer, gcc's analyzer and cppcheck, one process a unit.
//!
//! Findings are counted twice: all of them, and those of the kinds caulk looks
//! for. A header's finding that several units repeat is counted once.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::database::Unit;
use crate::measure::{self, Cost, End};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Clang,
    Gcc,
    Cppcheck,
}

/// What a peer did with one project.
pub(crate) struct PeerRun {
    pub peer: Peer,
    pub cost: Cost,
    pub failed: usize,
    pub timed_out: usize,
    pub findings: usize,
    /// Leaks, double frees, uses after free, wrong releases.
    pub memory_findings: usize,
}

impl Peer {
    const ALL: [Peer; 3] = [Peer::Clang, Peer::Gcc, Peer::Cppcheck];

    pub(crate) fn list(text: &str) -> Result<Vec<Peer>> {
        if text == "all" {
            return Ok(Peer::ALL.to_vec());
        }
        text.split(',')
            .map(|name| match Peer::ALL.into_iter().find(|peer| peer.id() == name.trim()) {
                Some(peer) => Ok(peer),
                None => bail!("unknown peer `{name}`: clang, gcc, cppcheck or all"),
            })
            .collect()
    }

    fn id(self) -> &'static str {
        match self {
            Peer::Clang => "clang",
            Peer::Gcc => "gcc",
            Peer::Cppcheck => "cppcheck",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Clang => "clang --analyze",
            Peer::Gcc => "gcc -fanalyzer",
            Peer::Cppcheck => "cppcheck",
        }
    }

    fn command(self, unit: &Unit) -> Command {
        let mut command = match self {
            Peer::Clang => {
                let mut command = clang();
                command.args(["--analyze", "-Xclang", "-analyzer-checker=core,unix"]);
                command.args(["-Xclang", "-analyzer-output=text", "-Wno-everything", "-o", "/dev/null"]);
                command.args(TOLERANT);
                command
            }
            Peer::Gcc => {
                let mut command = Command::new("gcc");
                command.args(["-fanalyzer", "-fanalyzer-verbosity=0", "-fdiagnostics-plain-output", "-O0", "-g", "-c"]);
                command.args(["-o", "/dev/null"]);
                command
            }
            Peer::Cppcheck => {
                let mut command = Command::new("cppcheck");
                command.args(["--quiet", "--max-configs=1", "--template={file}:{line}:{column}: warning: [{id}]"]);
                // Its own search for configurations would analyse other programs than ours.
                command.args(of_preprocessor(&unit.flags)).arg(&unit.file);
                command.current_dir(&unit.directory);
                return command;
            }
        };
        command.args(&unit.flags).arg(&unit.file).current_dir(&unit.directory);
        command
    }

    pub(crate) fn run(self, units: &[Unit], jobs: usize, timeout: Duration, scratch: &Path) -> Result<PeerRun> {
        let log = |index: usize| scratch.join(format!("{}-{index}.log", self.id()));
        let (cost, ends) = measure::batch(units, jobs, timeout, |index, unit| {
            let mut command = self.command(unit);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(log(index))?);
            Ok(command)
        })?;
        let mut all = BTreeSet::new();
        for index in 0..units.len() {
            let text = std::fs::read(log(index)).unwrap_or_default();
            all.extend(warnings(&String::from_utf8_lossy(&text)));
        }
        Ok(PeerRun {
            peer: self,
            cost,
            failed: ends.iter().filter(|(end, _)| !matches!(end, End::Exit(0) | End::TimedOut)).count(),
            timed_out: ends.iter().filter(|(end, _)| *end == End::TimedOut).count(),
            findings: all.len(),
            memory_findings: all.iter().filter(|line| is_memory(line)).count(),
        })
    }
}

/// Macros and folders of headers, in one word each.
fn of_preprocessor(flags: &[String]) -> Vec<String> {
    let mut words = flags.iter();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if ["-D", "-I", "-U"].contains(&word.as_str()) {
            found.extend(words.next().map(|value| format!("{word}{value}")));
        } else if ["-D", "-I", "-U"].iter().any(|option| word.starts_with(option)) {
            found.push(word.clone());
        }
    }
    found
}

/// Old C that gcc takes with a warning is an error to clang 19, unless it is told otherwise.
pub(crate) const TOLERANT: [&str; 5] = [
    "-Wno-implicit-function-declaration",
    "-Wno-implicit-int",
    "-Wno-int-conversion",
    "-Wno-incompatible-function-pointer-types",
    "-Wno-unknown-warning-option",
];

pub(crate) fn clang() -> Command {
    Command::new(std::env::var_os("CAULK_CLANG").unwrap_or_else(|| "clang-19".into()))
}

/// Lines `file:line:column: warning: … [kind]`; notes and excerpts are not findings.
fn warnings(log: &str) -> impl Iterator<Item = String> + '_ {
    log.lines().filter(|line| line.contains(": warning: ") && line.ends_with(']')).map(str::to_owned)
}

fn is_memory(warning: &str) -> bool {
    const KINDS: [&str; 20] = [
        // clang
        "unix.Malloc",
        "unix.Stream",
        "unix.MismatchedDeallocator",
        // gcc
        "-Wanalyzer-malloc-leak",
        "-Wanalyzer-file-leak",
        "-Wanalyzer-fd-leak",
        "-Wanalyzer-double-free",
        "-Wanalyzer-double-fclose",
        "-Wanalyzer-fd-double-close",
        "-Wanalyzer-use-after-free",
        "-Wanalyzer-fd-use-after-close",
        "-Wanalyzer-mismatching-deallocation",
        "-Wanalyzer-free-of-non-heap",
        // cppcheck
        "memleak",
        "memleakOnRealloc",
        "resourceLeak",
        "doubleFree",
        "deallocuse",
        "useClosedFile",
        "mismatchAllocDealloc",
    ];
    let kind = warning.rsplit_once('[').map_or("", |(_, kind)| kind.trim_end_matches(']'));
    // gcc writes `[CWE-401] [-Wanalyzer-malloc-leak]`, the kind last.
    KINDS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_counted_and_sorted_by_kind() {
        let log = "\
a.c:3:5: warning: Potential leak of memory pointed to by 'p' [unix.Malloc]
    3 |     return 0;
a.c:1:9: note: Memory is allocated
a.c:9:1: warning: leak of 'q' [CWE-401] [-Wanalyzer-malloc-leak]
a.c:7:1: warning: [nullPointer]
";
        let found: Vec<String> = warnings(log).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found.iter().map(|line| is_memory(line)).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn folders_of_headers_may_be_words_of_their_own() {
        let flags = ["-I", "src", "-DA=1", "-O2", "-U", "B", "-Iobjs", "-I"].map(str::to_owned);
        assert_eq!(of_preprocessor(&flags), ["-Isrc", "-DA=1", "-UB", "-Iobjs"]);
    }

    #[test]
    fn peers_are_asked_for_by_name() {
        assert_eq!(Peer::list("gcc, cppcheck").unwrap(), [Peer::Gcc, Peer::Cppcheck]);
        assert_eq!(Peer::list("all").unwrap(), Peer::ALL);
        assert!(Peer::list("").is_err());
    }
}
