//! The fixtures: what `caulk check` finds equals what is written under the code, and
//! what the sanitizers say of those that can be run agrees with it.

mod carets;
mod fix;
mod guarded;
mod sanitize;

pub use guarded::everything_guarded;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::{Ran, caulk};
use carets::{Expected, Fixture, State, find_fixtures};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The programs of the papers.
pub fn papers() -> PathBuf {
    root().join("papers")
}

/// All fixtures, or those that `FIXTURE=part-of-name` chooses.
fn chosen() -> Vec<Fixture> {
    let part = std::env::var("FIXTURE").unwrap_or_default();
    let fixtures: Vec<_> = find_fixtures(&root()).into_iter().filter(|fixture| fixture.name.contains(&part)).collect();
    assert!(!fixtures.is_empty(), "no fixture's name contains `{part}`");
    fixtures
}

/// Does `work` for each fixture on all cores and returns what it said, in the order of the fixtures.
fn for_each(fixtures: &[Fixture], work: impl Fn(&Fixture) -> Vec<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let said = Mutex::new(vec![Vec::new(); fixtures.len()]);
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, fixture)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, fixtures.get(i)?)))
                {
                    let lines = work(fixture);
                    said.lock().expect("no worker panicked")[index] = lines;
                }
            });
        }
    });
    said.into_inner().expect("no worker panicked").concat()
}

fn assert_nothing(trouble: &[String], fixtures: usize) {
    assert!(trouble.is_empty(), "{} mismatches in {fixtures} fixtures:\n{}", trouble.len(), trouble.join("\n"));
}

#[test]
fn fixtures_say_what_they_mean() {
    let fixtures = chosen();
    let mistakes: Vec<_> = fixtures
        .iter()
        .flat_map(|fixture| fixture.mistakes.iter().map(|mistake| format!("{}: {mistake}", fixture.name)))
        .collect();
    assert_nothing(&mistakes, fixtures.len());
}

#[test]
fn findings_equal_carets() {
    let fixtures = chosen();
    let mismatches = for_each(&fixtures, |fixture| match check(fixture) {
        Ok(findings) => compare(fixture, &findings),
        Err(trouble) => vec![format!("{}: {trouble}", fixture.name)],
    });
    assert_nothing(&mismatches, fixtures.len());
}

#[test]
fn sanitizers_agree_with_carets() {
    let fixtures: Vec<_> = find_fixtures(&root()).into_iter().filter(|fixture| fixture.run.is_some()).collect();
    let disagreements = for_each(&fixtures, |fixture| {
        let folder = tempfile::tempdir().expect("a folder");
        let sources: Vec<_> = fixture.sources().map(|file| fixture.folder.join(file)).collect();
        let program = match sanitize::build(&sources, &fixture.cc, folder.path()) {
            Ok(program) => program,
            Err(error) => return vec![format!("{}: does not compile: {error}", fixture.name)],
        };
        let runs = sanitize::runs(&program, fixture.run.unwrap_or(0));
        let wrong = runs.iter().find(|run| run.complaint.is_none() && run.code.is_none_or(|code| code >= 10));
        let complaint = runs.iter().find(|run| run.complaint.is_some());
        let has_error = fixture.expected.iter().any(|expected| expected.state != State::Wrong);
        let mut said = Vec::new();
        if let Some(run) = wrong {
            said.push(format!("{}: {} ends with {:?}", fixture.name, run.name(), run.code));
        }
        match complaint {
            Some(run) if !has_error => {
                said.push(format!("{}: {}: {}", fixture.name, run.name(), run.complaint.clone().unwrap_or_default()));
            }
            None if has_error => {
                said.push(format!("{}: no run of {} shows the error", fixture.name, runs.len()));
            }
            _ => {}
        }
        said
    });
    assert_nothing(&disagreements, fixtures.len());
}

/// A place as the JSON output has it.
struct At {
    file: String,
    line: u32,
    column: u32,
}

struct Found {
    rule: String,
    message: String,
    source: At,
    sink: At,
    steps: Vec<At>,
}

/// Runs `caulk check` on a copy, so that nothing in the repository takes part.
fn check(fixture: &Fixture) -> Result<Vec<Found>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    for file in &fixture.files {
        std::fs::copy(fixture.folder.join(file), folder.path().join(file)).expect("a fixture can be copied");
    }
    let mut command = caulk(folder.path());
    command.args(["check", "--format", "json"]).args(&fixture.options).args(fixture.sources());
    command.env("XDG_CACHE_HOME", folder.path().join("cache"));
    if !fixture.cc.is_empty() {
        command.arg("--").args(&fixture.cc);
    }
    let ran = within(LIMIT, command).ok_or_else(|| format!("no end within {} seconds", LIMIT.as_secs()))?;
    let findings = parse(&ran.stdout)
        .ok_or_else(|| format!("exit code {}, {}", ran.code, ran.stderr.lines().next().unwrap_or("and not a word")))?;
    let code = i32::from(!findings.is_empty());
    if ran.code == code { Ok(findings) } else { Err(format!("exit code {}, not {code}", ran.code)) }
}

/// So that one fixture on which the analysis does not end leaves the others their say.
const LIMIT: Duration = Duration::from_secs(120);

fn within(limit: Duration, mut command: Command) -> Option<Ran> {
    let out = tempfile::NamedTempFile::new().expect("a file");
    let err = tempfile::NamedTempFile::new().expect("a file");
    let handle = |file: &tempfile::NamedTempFile| file.reopen().expect("a file that was just made");
    let mut child = command.stdout(handle(&out)).stderr(handle(&err)).spawn().expect("the built caulk can be started");
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            let read = |file: &tempfile::NamedTempFile| std::fs::read_to_string(file.path()).expect("UTF-8");
            return Some(Ran { code: status.code().unwrap_or(-1), stdout: read(&out), stderr: read(&err) });
        }
        if start.elapsed() > limit {
            child.kill().expect("a child can be ended");
            child.wait().expect("a child can be waited for");
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn parse(json: &str) -> Option<Vec<Found>> {
    let value: Value = serde_json::from_str(json).ok()?;
    let at = |place: &Value| -> Option<At> {
        let file = Path::new(place["file"].as_str()?).file_name()?.to_str()?.to_owned();
        let number = |key: &str| place[key].as_u64().and_then(|n| u32::try_from(n).ok());
        Some(At { file, line: number("line")?, column: number("column")? })
    };
    let found = |finding: &Value| -> Option<Found> {
        Some(Found {
            rule: finding["rule"].as_str()?.to_owned(),
            message: finding["message"].as_str()?.to_owned(),
            source: at(&finding["source"])?,
            sink: at(&finding["sink"])?,
            steps: finding["steps"].as_array()?.iter().filter_map(|step| at(&step["location"])).collect(),
        })
    };
    value["findings"].as_array()?.iter().map(found).collect()
}

fn compare(fixture: &Fixture, findings: &[Found]) -> Vec<String> {
    let mut said = Vec::new();
    let file_of = |file: &str| match fixture.files.len() {
        1 => fixture.name.clone(),
        _ => format!("{}/{file}", fixture.name),
    };
    let unexpected: Vec<_> =
        findings.iter().filter(|found| !fixture.expected.iter().any(|expected| fits(expected, found))).collect();
    for expected in &fixture.expected {
        let fitting: Vec<_> = findings.iter().filter(|found| fits(expected, found)).collect();
        let (rule, spot) = &expected.places[0];
        let label = &expected.label;
        let place = format!("{}:{}", file_of(&spot.file), spot.line);
        match expected.state {
            State::Perhaps => {}
            State::Missed if !fitting.is_empty() => {
                said.push(format!("{place}: {rule} of {label} is found now: take `missed` away, and `fn_`"));
            }
            State::Missed => {}
            State::Wrong if fitting.is_empty() => {
                said.push(format!(
                    "{place}: {rule} of {label} is not reported any more: take the mark away, and `fp_`"
                ));
            }
            State::Found if fitting.is_empty() => {
                let from =
                    expected.sources.first().map_or(String::new(), |source| format!(" from line {}", source.line));
                said.push(format!("{place}: missing {rule} of {label}{from}"));
            }
            State::Found | State::Wrong => said.extend(
                without_first_release(expected, &fitting)
                    .map(|line| format!("{place}: {rule} of {label}: no step at the first release, line {line}")),
            ),
        }
    }
    for found in unexpected {
        said.push(format!(
            "{}:{}:{}: unexpected {} from line {}:{}: {}",
            file_of(&found.sink.file),
            found.sink.line,
            found.sink.column,
            found.rule,
            found.source.line,
            found.source.column,
            found.message
        ));
    }
    said
}

/// The line of the marked first release, where none of the findings has a step there.
fn without_first_release(expected: &Expected, fitting: &[&Found]) -> Option<u32> {
    let shown = |found: &&Found| {
        expected.releases.iter().any(|spot| found.steps.iter().any(|at| spot.holds(&at.file, at.line, 0)))
    };
    let first = expected.releases.first().filter(|_| expected.places[0].0 == "double-free")?;
    (!fitting.iter().any(shown)).then_some(first.line)
}

fn fits(expected: &Expected, found: &Found) -> bool {
    let sink = &found.sink;
    let source = &found.source;
    expected.places.iter().any(|(rule, spot)| *rule == found.rule && spot.holds(&sink.file, sink.line, sink.column))
        && (expected.sources.is_empty()
            || expected.sources.iter().any(|spot| spot.holds(&source.file, source.line, source.column)))
}
