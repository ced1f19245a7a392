//! `caulk fix`: findings, repaired where a patch can be proved.
//!
//! Standard output gets the diff of all patches together; standard error one line for each finding: how it was
//! repaired, or why not.

mod alarms;
mod ask;
mod before;
mod commit;
mod generated;
mod validate;
mod workshop;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caulk_base::{ContentHash, Store};
use caulk_checkers::Options;
use caulk_findings::{Finding, Findings, Patch, PatchStatus, apply_suppressions};
use caulk_repair::{Done, Repaired, Survey, Workshop};
use caulk_report::{DiskSources, HtmlOptions, Report, RunReport};

use self::alarms::Imported;
use self::before::Before;
use self::workshop::{Known, Shop};
use crate::args::{FixArgs, FixFormat, LoadArgs};
use crate::commands::pages;
use crate::config::{Config, Level};
use crate::driver::{self, Project};
use crate::exit::{self, Outcome};
use crate::output::Destination;
use crate::progress::Bar;

pub(super) fn run(args: &FixArgs) -> Result<Outcome> {
    pages::check_options(args.format == FixFormat::Html, args.output.as_deref(), args.open)?;
    let runs = pages::runs(args.format == FixFormat::Html, &args.runtime)?;
    // First, so that a file that cannot be read is told before minutes of compiling.
    let read = alarms::read(&args.from)?;
    let bar = Bar::new();
    let project = driver::load(&args.paths, &args.load, &bar)?;
    bar.phase("following allocations");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.load.jobs).build().context("cannot start threads")?;
    // Leaks on the way out stay among the rest: proofs compare all, and none is repaired.
    let options = Options { raw: true, ..Options::default() };
    let models = &project.config.models;
    let (store, _folder) = kept(&project)?;
    let program = workshop::base_program(&project.loaded.program);
    let mut known = Known::default();
    let analysis =
        pool.install(|| caulk_analysis::analyse_again(&program, models, options.limits, &store, &known.shelf));
    known.remember(&analysis, &[]);
    let findings = pool.install(|| caulk_checkers::findings_with(&analysis, &options, &mut known.memo));
    let imported = (!args.from.is_empty()).then(|| alarms::locate(read, &analysis, &findings.findings));
    let suppressed = suppressed(&findings, &project);
    let repeated = caulk_checkers::repeated(&findings.findings);
    let asked_for = |finding: &Finding| match &imported {
        Some(imported) => imported.is_about(finding),
        None if args.findings.is_empty() => !repeated.contains(&finding.fingerprint) && finding.at_exit.is_none(),
        None => true,
    };
    let wanted = |finding: &Finding| {
        wanted(finding, &project.config)
            && !suppressed.contains(&finding.fingerprint.0)
            && asked_for(finding)
            && (args.findings.is_empty() || args.findings.contains(&finding.fingerprint.0))
    };
    bar.phase("proving patches");
    let survey = Survey::of(&analysis, &program, findings.findings.clone(), &mut known.notes);
    let shop = Shop::new(&project, &program, &store, options, &pool, known);
    let root = project.loaded.root.clone();
    let base = base(&args.paths, &root);
    let again = |dropped: &Dropped, ask: bool| {
        let mut accept = |finding: &Finding, patch: &Patch| match dropped.get(&finding.fingerprint.0) {
            Some(reason) => Err(reason.clone()),
            None if ask => ask::wants(finding, patch),
            None => Ok(()),
        };
        shop.look_closer(&BTreeSet::new());
        caulk_repair::repair(&shop, survey.clone(), &base, &wanted, &mut accept)
    };
    if args.interactive {
        drop(bar);
    }
    let mut repaired = again(&Dropped::new(), args.interactive);
    if let Some(command) = &args.validate {
        // What was declined stays so, without being asked for again.
        let declined = declined(&repaired, args.interactive);
        repaired = validate::keep_passing(command, &root, repaired, declined, &|dropped| again(dropped, false))?;
    }
    if args.apply {
        apply(&repaired)?;
    }
    if args.commit {
        commit::each(&repaired, &root)?;
    }
    show(&repaired, findings, &project, args, (&base, imported.as_ref(), runs.as_ref()))?;
    let mut left = repaired.done.iter().any(|done| !done.patch.is_fixed());
    if let Some(imported) = &imported {
        let (lines, remains) = imported.lines(&repaired);
        lines.iter().for_each(|line| exit::say(line));
        left |= remains;
    }
    Ok(if left { Outcome::Findings } else { Outcome::Clean })
}

/// What is wrong with the program of a compile database, and, unless `all` is asked for, has no patch. The configuration
/// and the cache are those of the current folder.
pub(super) fn unrepaired(database: &Path, all: bool) -> Result<Vec<Finding>> {
    let load = LoadArgs {
        jobs: 0,
        cache: Some(PathBuf::from(".caulk")),
        no_cache: false,
        config: Config::nearest(Path::new(".")),
        flags: Vec::new(),
    };
    let bar = Bar::new();
    let project = driver::load(&[database.to_owned()], &load, &bar)?;
    bar.phase("following allocations");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(load.jobs).build().context("cannot start threads")?;
    let options = Options { raw: true, ..Options::default() };
    let (store, _folder) = kept(&project)?;
    let (program, mut known) = (workshop::base_program(&project.loaded.program), Known::default());
    let models = &project.config.models;
    let analysis =
        pool.install(|| caulk_analysis::analyse_again(&program, models, options.limits, &store, &known.shelf));
    let findings = pool.install(|| caulk_checkers::findings_with(&analysis, &options, &mut known.memo));
    let suppressed = suppressed(&findings, &project);
    let wanted = |finding: &Finding| {
        wanted(finding, &project.config) && !suppressed.contains(&finding.fingerprint.0) && finding.at_exit.is_none()
    };
    let mut left: Vec<Finding> = findings.findings.iter().filter(|finding| wanted(finding)).cloned().collect();
    if !all && !left.is_empty() {
        known.remember(&analysis, &[]);
        bar.phase("proving patches");
        let survey = Survey::of(&analysis, &program, findings.findings, &mut known.notes);
        let shop = Shop::new(&project, &program, &store, options, &pool, known);
        let root = project.loaded.root.clone();
        let repaired = caulk_repair::repair(&shop, survey, &root, &wanted, &mut |_, _| Ok(()));
        let fixed = |finding: &Finding| {
            repaired.done.iter().any(|done| done.patch.is_fixed() && done.finding.fingerprint == finding.fingerprint)
        };
        left.retain(|finding| !fixed(finding));
    }
    Ok(left)
}

/// Where results are kept while patches are proved: a proof analyses the function that was patched, and its callers if
/// they see a difference. Without a cache, a folder that goes when this is dropped.
fn kept(project: &Project) -> Result<(Store, tempfile::TempDir)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let store = match project.store() {
        Some(store) => store,
        None => Store::open(folder.path(), u64::MAX).context("cannot use a temporary folder")?,
    };
    Ok((store, folder))
}

/// Findings to be left alone, by fingerprint, and why.
type Dropped = BTreeMap<String, String>;

fn declined(repaired: &Repaired, asked: bool) -> Dropped {
    let refused = repaired.done.iter().filter_map(|done| match &done.patch.status {
        PatchStatus::Refused { reason } if asked => Some((done.finding.fingerprint.0.clone(), reason.clone())),
        _ => None,
    });
    refused.collect()
}

/// What paths in diffs are relative to: the project; for files that are named alone, where `patch -p1` would be run.
fn base(paths: &[PathBuf], root: &Path) -> PathBuf {
    let named = paths.iter().all(|path| path.extension().is_some_and(|extension| extension == "c"));
    match std::env::current_dir() {
        Ok(here) if named && root.starts_with(&here) => here,
        _ => root.to_owned(),
    }
}

fn wanted(finding: &Finding, config: &Config) -> bool {
    config.rules.get(&finding.rule) != Some(&Level::Off) && !config.excludes(Path::new(&finding.primary().file))
}

/// Fingerprints of findings that comments in the source mute.
fn suppressed(findings: &Findings, project: &Project) -> Vec<String> {
    let files: Vec<String> = project.loaded.program.units.iter().map(|unit| unit.source.clone()).collect();
    let muted = apply_suppressions(findings.findings.clone(), &DiskSources::new(), &files);
    muted.suppressed.into_iter().map(|muted| muted.finding.fingerprint.0).collect()
}

fn apply(repaired: &Repaired) -> Result<()> {
    for (path, old, new) in &repaired.files {
        caulk_source::write_atomically(path, ContentHash::of(old), new)?;
    }
    Ok(())
}

fn show(
    repaired: &Repaired,
    mut findings: Findings,
    project: &Project,
    args: &FixArgs,
    (base, imported, runs): (&Path, Option<&Imported>, Option<&RunReport>),
) -> Result<()> {
    let root = project.loaded.root.display().to_string();
    if imported.is_none() {
        for done in &repaired.done {
            exit::say(&line(done, base));
        }
    }
    let destination = Destination::new(args.output.as_deref());
    let text = match args.format {
        FixFormat::Text => {
            let mut text = Vec::new();
            for (path, old, new) in &repaired.files {
                let name = path.strip_prefix(base).unwrap_or(path).display().to_string();
                text.extend(caulk_source::unified_diff(&name, old, new));
            }
            return destination.write_bytes(&text);
        }
        FixFormat::Json | FixFormat::Sarif | FixFormat::Html => {
            let patches: Vec<Patch> = repaired.done.iter().map(|done| done.patch.clone()).collect();
            findings.findings.retain(|finding| patches.iter().any(|patch| patch.fingerprint == finding.fingerprint));
            if args.format != FixFormat::Html {
                findings.summary.stats.phases.clear();
            }
            let sources = Before::of(repaired);
            let report = Report { patches: &patches, runs, ..Report::new(&findings, &root, &sources) };
            match args.format {
                FixFormat::Json => {
                    let mut json: serde_json::Value = serde_json::from_str(&caulk_report::render_json(&report))?;
                    json["patches"] = serde_json::to_value(&patches)?;
                    if let Some(imported) = imported {
                        json["alarms"] = imported.json(repaired);
                    }
                    format!("{json:#}\n")
                }
                FixFormat::Html => {
                    let options = HtmlOptions { applied: args.apply || args.commit };
                    return pages::write(&report, &options, args.output.as_deref(), args.open);
                }
                _ => caulk_report::render_sarif(&report),
            }
        }
    };
    destination.write(&text)
}

/// `src/a.c:12: memory-leak: fixed: release `p` before the return`
fn line(done: &Done, root: &Path) -> String {
    let Done { finding, patch, .. } = done;
    let place = finding.primary();
    let path = Path::new(&place.file);
    let path = path.strip_prefix(root).unwrap_or(path).display();
    let how = match &patch.status {
        PatchStatus::Fixed => format!("fixed: {} [{}]", patch.title, patch.strategy),
        PatchStatus::Refused { reason } => format!("not fixed: {reason}"),
    };
    format!("{path}:{}: {} of {} in `{}`: {how}\n", place.line, finding.rule.id(), finding.object, place.function)
}
