//! One project through clang, caulk and the peers, in one run.
//!
//!     bitcode   clang-19 -O0 -g -c -emit-llvm of every unit     the measure of everything else
//!     front     caulk up to the program in memory, empty cache     caulk dump, of a function that is not there
//!     cold      caulk check, empty cache
//!     warm      caulk check again, nothing changed
//!     edited    one function appended to one file, caulk check again; the file is put back
//!
//! The file that is edited is the one of median size, so that neither the
//! smallest nor the largest unit of a project decides its number.
//!
//! # Invariants
//! - The edited file has its old content again when this returns, also after an
//!   error. Should the benchmark itself be killed, the old content lies beside the
//!   file as `*.caulk-bench` and is put back by the next run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::args::{Common, ProjectOptions};
use crate::database::{self, Unit};
use crate::measure::{self, Cost, End};
use crate::output::{Phase, Report};
use crate::peers::{self, PeerRun};
use crate::{say, table};

/// All numbers of one project.
pub(crate) struct ProjectRun {
    pub name: String,
    pub units: usize,
    /// Units clang itself does not compile.
    pub clang_failed: usize,
    pub lines: usize,
    pub clang: Cost,
    /// Everything up to the program in memory.
    pub front: Cost,
    pub cold: CheckRun,
    pub warm: CheckRun,
    pub edited: Option<EditedRun>,
    pub peers: Vec<PeerRun>,
}

/// One run of `caulk check`.
pub(crate) struct CheckRun {
    pub cost: Cost,
    pub end: End,
    pub units: u64,
    pub units_failed: u64,
    pub functions: u64,
    /// Functions that were not taken from the cache.
    pub analysed: u64,
    pub alloc_sites: u64,
    pub decided_in_stage_one: u64,
    pub smt_queries: u64,
    pub phases: Vec<Phase>,
    pub findings: BTreeMap<String, usize>,
}

pub(crate) struct EditedRun {
    pub file: PathBuf,
    /// clang's time for that file alone.
    pub clang: Duration,
    pub check: CheckRun,
}

pub(crate) fn bench(options: &ProjectOptions) -> Result<()> {
    let mut runs = Vec::new();
    let mut failed = Vec::new();
    for folder in &options.folders {
        say(&format!("{}", folder.display()))?;
        match project(folder, options) {
            Ok(run) => {
                say(&table::one_line(&run))?;
                runs.push(run);
            }
            Err(error) => {
                say(&format!("  {error:#}"))?;
                failed.push(folder.display().to_string());
            }
        }
        // After each project: the numbers of an hour must not hang on the last one.
        table::write(&options.common, options.runs, &runs)?;
    }
    say(&table::markdown(&options.common, options.runs, &runs))?;
    if failed.is_empty() { Ok(()) } else { bail!("no numbers for {}", failed.join(", ")) }
}

fn project(folder: &Path, options: &ProjectOptions) -> Result<ProjectRun> {
    let common = &options.common;
    let scratch = tempfile::tempdir()?;
    let database = match database::find(folder) {
        Some(path) => path,
        None => database_of_plain_files(folder, scratch.path())?,
    };
    let units = database::read(&database)?;
    for unit in &units {
        restore(&unit.file)?;
    }
    let (clang, compiled) = fastest(options.runs, |_| {
        let run = compile(&units, common, scratch.path())?;
        Ok((run.0.wall, run))
    })?;
    let cache = |round: usize| scratch.path().join(format!("cache-{round}"));
    let front = fastest(options.runs, |round| {
        let cost = front_end(&database, &scratch.path().join(format!("front-{round}")), common)?;
        Ok((cost.wall, cost))
    })?;
    let cold = fastest(options.runs, |round| {
        let run = check(&database, &cache(round), common, scratch.path())?;
        Ok((run.cost.wall, run))
    })?;
    let warm = fastest(options.runs, |_| {
        let run = check(&database, &cache(0), common, scratch.path())?;
        Ok((run.cost.wall, run))
    })?;
    let edited = if options.edit {
        let edit = Edit::of_median(&units)?;
        let (_, ends) = compile(std::slice::from_ref(&edit.unit), common, scratch.path())?;
        let clang = ends.first().map_or(Duration::ZERO, |(_, time)| *time);
        let check = check(&database, &cache(0), common, scratch.path())?;
        Some(EditedRun { file: edit.unit.file.clone(), clang, check })
    } else {
        None
    };
    let peers = options
        .peers
        .iter()
        .map(|peer| peer.run(&units, common.jobs, common.timeout, scratch.path()))
        .collect::<Result<_>>()?;
    Ok(ProjectRun {
        name: folder.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned()),
        units: units.len(),
        clang_failed: compiled.iter().filter(|(end, _)| *end != End::Exit(0)).count(),
        lines: count_lines(&units),
        clang,
        front,
        cold,
        warm,
        edited,
        peers,
    })
}

/// The fastest of several runs: what is slower was disturbed.
fn fastest<T>(runs: usize, mut once: impl FnMut(usize) -> Result<(Duration, T)>) -> Result<T> {
    let mut best = once(0)?;
    for round in 1..runs {
        let next = once(round)?;
        if next.0 < best.0 {
            best = next;
        }
    }
    Ok(best.1)
}

fn compile(units: &[Unit], common: &Common, scratch: &Path) -> Result<(Cost, Vec<(End, Duration)>)> {
    measure::batch(units, common.jobs, common.timeout, |index, unit| {
        let mut command = peers::clang();
        command.args(["-O0", "-g", "-c", "-emit-llvm", "-w"]).args(peers::TOLERANT).args(&unit.flags);
        command.arg("-o").arg(scratch.join(format!("{index}.bc"))).arg(&unit.file).current_dir(&unit.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    })
}

/// Loads a project and does nothing with it: no function has this name.
fn front_end(database: &Path, cache: &Path, common: &Common) -> Result<Cost> {
    let mut command = Command::new(&common.caulk);
    command.args(["dump", "callgraph"]).arg(database).arg("caulk bench").arg("--cache").arg(cache);
    command.arg("-j").arg(common.jobs.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (cost, end) = measure::run(&mut command, common.timeout)?;
    if end != End::Exit(2) {
        bail!("caulk dump ended with {end:?} after {:.1} s", cost.wall.as_secs_f64());
    }
    Ok(cost)
}

/// The number behind a word of `--stats`.
fn statistic(log: &Path, word: &str) -> u64 {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let row = text.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_default();
    row.split_whitespace().next().and_then(|number| number.replace(',', "").parse().ok()).unwrap_or(0)
}

/// Runs `caulk check` over a compile database; also used for Juliet.
pub(crate) fn check(database: &Path, cache: &Path, common: &Common, scratch: &Path) -> Result<CheckRun> {
    let (run, _) = check_with_report(database, cache, common, scratch)?;
    Ok(run)
}

pub(crate) fn check_with_report(
    database: &Path,
    cache: &Path,
    common: &Common,
    scratch: &Path,
) -> Result<(CheckRun, Report)> {
    let output = scratch.join("check.json");
    let log = scratch.join("check.log");
    let mut command = Command::new(&common.caulk);
    command.arg("check").arg(database).arg("--cache").arg(cache).arg("-j").arg(common.jobs.to_string());
    command.args(["--stats", "--format", "json"]).arg("-o").arg(&output);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
    let (cost, end) = measure::run(&mut command, common.timeout)?;
    if !matches!(end, End::Exit(0 | 1)) {
        let said = std::fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let tail = said.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
        bail!("caulk check ended with {end:?} after {:.1} s\n{tail}", cost.wall.as_secs_f64());
    }
    let report = Report::read(&output)?;
    let summary = &report.summary;
    let run = CheckRun {
        cost,
        end,
        units: summary.units,
        units_failed: summary.units_failed,
        functions: summary.functions,
        analysed: statistic(&log, "analysed "),
        alloc_sites: summary.alloc_sites,
        decided_in_stage_one: summary.decided_in_stage_one,
        smt_queries: summary.smt_queries,
        phases: summary.phases.clone(),
        findings: report.by_rule(),
    };
    Ok((run, report))
}

/// A folder without a database: its C files, as one program.
fn database_of_plain_files(folder: &Path, scratch: &Path) -> Result<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    if files.is_empty() {
        bail!("neither a compile_commands.json nor a C file here");
    }
    let path = scratch.join("compile_commands.json");
    database::write(&path, folder, &files, &[])?;
    Ok(path)
}

fn count_lines(units: &[Unit]) -> usize {
    let mut files: Vec<&PathBuf> = units.iter().map(|unit| &unit.file).collect();
    files.sort();
    files.dedup();
    files
        .into_iter()
        .filter_map(|file| std::fs::read(file).ok())
        .map(|text| text.iter().filter(|byte| **byte == b'\n').count())
        .sum()
}

/// A file with one function more, until dropped.
struct Edit {
    unit: Unit,
}

impl Edit {
    fn of_median(units: &[Unit]) -> Result<Edit> {
        let mut sized: Vec<(u64, &Unit)> = units
            .iter()
            .filter_map(|unit| std::fs::metadata(&unit.file).ok().map(|metadata| (metadata.len(), unit)))
            .collect();
        sized.sort_by(|a, b| (a.0, &a.1.file).cmp(&(b.0, &b.1.file)));
        let Some((_, unit)) = sized.get(sized.len() / 2) else { bail!("no file to edit") };
        let file = &unit.file;
        let edit = Edit { unit: (*unit).clone() };
        std::fs::copy(file, backup(file)).with_context(|| format!("cannot copy {}", file.display()))?;
        let mut text = std::fs::read(file)?;
        text.extend_from_slice(b"\nint caulk_bench_edit(int n) { return n + 1; }\n");
        std::fs::write(file, text).with_context(|| format!("cannot edit {}", file.display()))?;
        Ok(edit)
    }
}

impl Drop for Edit {
    fn drop(&mut self) {
        // A failure leaves the copy beside the file; the next run tries again and says so.
        let _ = restore(&self.unit.file);
    }
}

fn backup(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".caulk-bench");
    PathBuf::from(name)
}

fn restore(file: &Path) -> Result<()> {
    let backup = backup(file);
    if backup.is_file() {
        std::fs::rename(&backup, file).with_context(|| format!("cannot put {} back", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_undone_and_falls_on_the_median_file() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = ["a.c", "b.c", "c.c"].iter().map(|name| folder.path().join(name)).collect();
        for (file, text) in files.iter().zip(["int a;", "int b; int bb; int bbb;", "int c; int cc;"]) {
            std::fs::write(file, text).unwrap();
        }
        let database = database_of_plain_files(folder.path(), folder.path()).unwrap();
        let units = database::read(&database).unwrap();
        {
            let edit = Edit::of_median(&units).unwrap();
            assert_eq!(edit.unit.file, files[2]);
            assert!(std::fs::read_to_string(&files[2]).unwrap().contains("caulk_bench_edit"));
        }
        assert_eq!(std::fs::read_to_string(&files[2]).unwrap(), "int c; int cc;");
        assert!(!backup(&files[2]).exists());
        assert_eq!(count_lines(&units), 0);
    }

    #[test]
    fn numbers_are_read_off_the_statistics() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "functions       9,500\nanalysed        1,234  12.9 %\nfrom the cache  8,266\n").unwrap();
        assert_eq!(statistic(&log, "analysed "), 1234);
        assert_eq!(statistic(&log, "nothing "), 0);
    }

    #[test]
    fn the_fastest_run_counts() {
        let times = [3, 1, 2];
        let best = fastest(3, |round| Ok((Duration::from_secs(times[round]), round))).unwrap();
        assert_eq!(best, 1);
    }
}
