//! `--from FILE`: the alarms of another tool, each with an answer.
//!
//! An alarm is about the finding whose source, release or sink lies at the places it names. The places are compared from
//! the innermost frame outwards, because a tool may stop in a wrapper that caulk has looked through:
//!
//! ```text
//! #1 in must_alloc src/notes.c:7:19     no finding begins here
//! #2 in parse src/notes.c:14:18         the finding of `copy` does: that is the one
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caulk_alarms::{Alarm, Frame, Kind, Role};
use caulk_analysis::Analysis;
use caulk_findings::{Finding, PatchStatus, Place, Rule, StepKind};
use caulk_repair::Repaired;
use serde_json::{Value, json};

/// All alarms of the files, and what they are about.
pub(super) struct Imported {
    pub(super) alarms: Vec<Matched>,
    pub(super) passed_over: usize,
}

pub(super) struct Matched {
    alarm: Alarm,
    file: PathBuf,
    /// Fingerprints; none if nothing was found there.
    findings: Vec<String>,
    /// The answer where nothing was found.
    otherwise: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Fixed(String),
    NotFixed(String),
    NoError(String),
    Undecided(String),
    NotLocated(String),
}

impl Answer {
    fn word(&self) -> &'static str {
        match self {
            Answer::Fixed(_) => "confirmed and fixed:",
            Answer::NotFixed(_) => "confirmed, no safe patch, because",
            Answer::NoError(_) => "not an error, because",
            Answer::Undecided(_) => "could not be decided, because",
            Answer::NotLocated(_) => "could not be located:",
        }
    }

    fn text(&self) -> &str {
        match self {
            Answer::Fixed(text)
            | Answer::NotFixed(text)
            | Answer::NoError(text)
            | Answer::Undecided(text)
            | Answer::NotLocated(text) => text,
        }
    }

    fn key(&self) -> &'static str {
        match self {
            Answer::Fixed(_) => "fixed",
            Answer::NotFixed(_) => "not-fixed",
            Answer::NoError(_) => "no-error",
            Answer::Undecided(_) => "undecided",
            Answer::NotLocated(_) => "not-located",
        }
    }

    /// Whether somebody still has to look at it.
    fn remains(&self) -> bool {
        !matches!(self, Answer::Fixed(_) | Answer::NoError(_))
    }
}

/// Reads the files, before anything is compiled.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<(PathBuf, caulk_alarms::Alarms)>> {
    let mut all = Vec::new();
    for file in files {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let alarms = caulk_alarms::read(&String::from_utf8_lossy(&bytes))
            .with_context(|| format!("cannot read alarms from {}", file.display()))?;
        all.push((file.clone(), alarms));
    }
    Ok(all)
}

/// Finds out what each alarm is about.
pub(super) fn locate(
    read: Vec<(PathBuf, caulk_alarms::Alarms)>,
    analysis: &Analysis<'_>,
    findings: &[Finding],
) -> Imported {
    let map = Map::new(analysis);
    let mut imported = Imported { alarms: Vec::new(), passed_over: 0 };
    for (file, alarms) in read {
        imported.passed_over += alarms.passed_over;
        for alarm in alarms.alarms {
            let matching = matching(&alarm, findings, &map);
            let otherwise = if matching.is_empty() { map.judge(&alarm) } else { Answer::NoError(String::new()) };
            imported.alarms.push(Matched { alarm, file: file.clone(), findings: matching, otherwise });
        }
    }
    imported
}

impl Imported {
    pub(super) fn is_about(&self, finding: &Finding) -> bool {
        self.alarms.iter().any(|matched| matched.findings.contains(&finding.fingerprint.0))
    }

    /// One line for each alarm, and whether something remains to be done.
    pub(super) fn lines(&self, repaired: &Repaired) -> (Vec<String>, bool) {
        let mut lines = Vec::new();
        let mut remains = false;
        for matched in &self.alarms {
            let answer = matched.answer(repaired);
            remains |= answer.remains();
            let Matched { alarm, file, .. } = matched;
            let place = alarm.place(Role::Allocation).filter(|_| is_leak(alarm.kind));
            let place = place.or_else(|| alarm.place(Role::Error)).or_else(|| alarm.place(Role::Allocation));
            let place = place.map(|frame| format!(" at {}:{}", frame.file, frame.line)).unwrap_or_default();
            let (tool, kind) = (&alarm.tool, alarm.kind.name());
            let file = file.display();
            lines.push(format!("{file}: {tool}: {kind}{place}: {} {}\n", answer.word(), answer.text()));
        }
        if self.passed_over > 0 {
            let alarms = if self.passed_over == 1 { "alarm" } else { "alarms" };
            lines.push(format!("{} {alarms} about other things: passed over\n", self.passed_over));
        }
        (lines, remains)
    }

    pub(super) fn json(&self, repaired: &Repaired) -> Value {
        let one = |matched: &Matched| {
            let answer = matched.answer(repaired);
            json!({
                "file": matched.file.display().to_string(),
                "tool": matched.alarm.tool,
                "kind": matched.alarm.kind.name(),
                "message": matched.alarm.message,
                "answer": answer.key(),
                "reason": answer.text(),
                "findings": matched.findings,
            })
        };
        self.alarms.iter().map(one).collect()
    }
}

impl Matched {
    fn answer(&self, repaired: &Repaired) -> Answer {
        if self.findings.is_empty() {
            return self.otherwise.clone();
        }
        let mut fixed = None;
        for done in repaired.done.iter().filter(|done| self.findings.contains(&done.finding.fingerprint.0)) {
            match &done.patch.status {
                PatchStatus::Refused { reason } => return Answer::NotFixed(reason.clone()),
                PatchStatus::Fixed => fixed = fixed.or(Some(done.patch.title.clone())),
            }
        }
        Answer::Fixed(fixed.unwrap_or_else(|| "the patch of another finding took care of it".into()))
    }
}

fn is_leak(kind: Kind) -> bool {
    matches!(kind, Kind::Leak | Kind::ResourceLeak | Kind::Reachable)
}

/// Rules that say the same as another tool's word. A leaked `FILE` is leaked memory to LeakSanitizer.
fn rules(kind: Kind) -> &'static [Rule] {
    match kind {
        Kind::Leak | Kind::ResourceLeak => &[Rule::MemoryLeak, Rule::ResourceLeak],
        Kind::Reachable => &[Rule::LeakAtExit],
        Kind::DoubleFree => &[Rule::DoubleFree, Rule::InvalidFree],
        Kind::UseAfterFree => &[Rule::UseAfterFree, Rule::DoubleFree],
        Kind::Mismatched => &[Rule::MismatchedRelease],
        Kind::InvalidFree => &[Rule::InvalidFree, Rule::MismatchedRelease, Rule::DoubleFree],
    }
}

/// The fingerprints of the findings that fit best, all of them if several do so equally well.
fn matching(alarm: &Alarm, findings: &[Finding], map: &Map<'_>) -> Vec<String> {
    let wanted = rules(alarm.kind);
    let mut best = 0;
    let mut found: Vec<String> = Vec::new();
    for finding in findings.iter().filter(|finding| wanted.contains(&finding.rule)) {
        let score = score(alarm, finding, map);
        if score == 0 || score < best {
            continue;
        }
        if score > best {
            found.clear();
            best = score;
        }
        found.push(finding.fingerprint.0.clone());
    }
    found
}

/// How well a finding fits; 0 if not at all.
fn score(alarm: &Alarm, finding: &Finding, map: &Map<'_>) -> u32 {
    let at = |role: Role, place: &Place| -> Option<u32> {
        let tracks = alarm.tracks.iter().filter(|track| track.role == role);
        let depth = |frames: &[Frame]| frames.iter().position(|frame| map.is_at(frame, place));
        tracks.filter_map(|track| depth(&track.frames)).min().map(|depth| 40u32.saturating_sub(depth as u32).max(1))
    };
    let releases = finding.steps.iter().filter(|step| step.kind == StepKind::Release);
    let source = at(Role::Allocation, &finding.source);
    let sink = at(Role::Error, &finding.sink);
    let release = releases.filter_map(|step| at(Role::Release, &step.place)).max();
    if is_leak(alarm.kind) {
        let names_source = alarm.tracks.iter().any(|track| track.role == Role::Allocation);
        return match (source, sink) {
            (Some(source), sink) => 2 * source + sink.unwrap_or(0),
            (None, Some(sink)) if !names_source => sink,
            _ => at(Role::Error, &finding.source).unwrap_or(0),
        };
    }
    match (sink, release, source) {
        (Some(sink), release, source) => 2 * sink + release.unwrap_or(0) + source.unwrap_or(0),
        (None, Some(release), Some(source)) => release + source,
        _ => 0,
    }
}

/// Files and places of the program.
struct Map<'a> {
    analysis: &'a Analysis<'a>,
    files: Vec<String>,
}

impl<'a> Map<'a> {
    fn new(analysis: &'a Analysis<'a>) -> Self {
        let units = analysis.knowledge.program.units.iter();
        let files: BTreeSet<String> = units.flat_map(|unit| unit.files.iter().cloned()).collect();
        Self { analysis, files: files.into_iter().collect() }
    }

    /// The program's files that a frame may mean: those that agree with most of its path's end.
    fn files_of(&self, frame: &Frame) -> Vec<&str> {
        let mut best = 0;
        let mut found = Vec::new();
        for file in &self.files {
            let common = common_end(&frame.file, file);
            if common == 0 || common < best {
                continue;
            }
            if common > best {
                found.clear();
                best = common;
            }
            found.push(file.as_str());
        }
        found
    }

    fn is_at(&self, frame: &Frame, place: &Place) -> bool {
        frame.line == place.line && self.files_of(frame).contains(&place.file.as_str())
    }

    /// What to say of an alarm that no finding fits.
    fn judge(&self, alarm: &Alarm) -> Answer {
        let wanted = if is_leak(alarm.kind) { Role::Allocation } else { Role::Error };
        let tracks = || alarm.tracks.iter().filter(|track| track.role == wanted);
        let tracks: Vec<_> = if tracks().next().is_some() { tracks().collect() } else { alarm.tracks.iter().collect() };
        let frames: Vec<&Frame> = tracks.iter().flat_map(|track| &track.frames).collect();
        let Some(here) = frames.iter().find_map(|frame| self.here(frame)) else {
            let place = frames.first().map(|frame| format!("{}:{}", frame.file, frame.line)).unwrap_or_default();
            return Answer::NotLocated(format!("nothing of the program is at {place}"));
        };
        if alarm.kind == Kind::Reachable {
            return Answer::NoError("it is still held when the process ends, and the system takes it back".into());
        }
        if alarm.observed {
            return Answer::NotFixed(format!("what happens to the block is not seen in `{}`", here.function));
        }
        if here.degraded {
            return Answer::Undecided(format!("`{}` has too many paths to tell them apart", here.function));
        }
        Answer::NoError(match (alarm.kind, here.site) {
            (Kind::Leak | Kind::ResourceLeak, Some((true, false))) => "every path releases it".into(),
            (Kind::Leak | Kind::ResourceLeak, Some((false, true))) => "every path hands it on to somebody else".into(),
            (Kind::Leak | Kind::ResourceLeak, Some(_)) => "every path releases it or hands it on".into(),
            (Kind::Leak | Kind::ResourceLeak, None) => {
                format!("no path through `{}` that is possible loses it", here.function)
            }
            _ => format!("no path through `{}` that is possible gets there with a released block", here.function),
        })
    }

    /// The code of the program at a frame.
    fn here(&self, frame: &Frame) -> Option<Here> {
        let program = self.analysis.knowledge.program;
        let files = self.files_of(frame);
        for id in program.functions.ids() {
            let unit = &program.units[program.unit_of(id)];
            let function = program.function(id);
            let here = |inst: caulk_ir::InstId| {
                let loc = unit.locs[function.insts[inst].loc];
                loc.line == frame.line && loc.file.is_some_and(|file| files.contains(&unit.files[file].as_str()))
            };
            if function.insts.ids().any(here) {
                let site = self.analysis.sites(id).iter().find(|site| here(site.inst));
                let degraded = self.analysis.knowledge.summary(id).is_none_or(|summary| summary.degraded);
                return Some(Here {
                    function: function.name.clone(),
                    site: site.map(|site| (site.released, site.shared)),
                    degraded,
                });
            }
        }
        None
    }
}

struct Here {
    function: String,
    /// Of the allocation there: released, handed on.
    site: Option<(bool, bool)>,
    degraded: bool,
}

/// How many last parts two paths have in common; a relative path must be there as a whole.
fn common_end(named: &str, file: &str) -> usize {
    let plain = |path: &str| -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for part in Path::new(path).components() {
            match part {
                std::path::Component::ParentDir if parts.pop().is_some() => {}
                std::path::Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
                _ => {}
            }
        }
        parts
    };
    let (named_parts, file_parts) = (plain(named), plain(file));
    let common = named_parts.iter().rev().zip(file_parts.iter().rev()).take_while(|(a, b)| a == b).count();
    let whole = common == named_parts.len().min(file_parts.len());
    if whole || Path::new(named).is_absolute() { common } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::common_end;

    #[test]
    fn paths_are_compared_from_their_ends() {
        assert_eq!(common_end("notes.c", "/p/src/notes.c"), 1);
        assert_eq!(common_end("src/notes.c", "/p/src/notes.c"), 2);
        assert_eq!(common_end("/elsewhere/src/notes.c", "/p/src/notes.c"), 2);
        assert_eq!(common_end("lib/notes.c", "/p/src/notes.c"), 0, "another folder's file");
        assert_eq!(common_end("src/../src/notes.c", "/p/src/notes.c"), 2);
        assert_eq!(common_end("other.c", "/p/src/notes.c"), 0);
    }
}
