//! `caulk fix`: findings, repaired where a patch can be proved.
//!
//! Standard output gets the diff of all patches together; standard error one line for each finding: how it was
//! repaired, or why not.

mod ask;
mod commit;
mod validate;
mod workshop;

use std::path::Path;

use anyhow::{Context, Result};
use caulk_base::ContentHash;
use caulk_checkers::Options;
use caulk_findings::{Finding, Findings, Patch, PatchStatus, apply_suppressions};
use caulk_repair::{Done, Repaired, Survey};
use caulk_report::{DiskSources, Report};

use self::workshop::Shop;
use crate::args::{FixArgs, FixFormat};
use crate::config::{Config, Level};
use crate::driver::{self, Project};
use crate::exit::{self, Outcome};
use crate::output;
use crate::progress::Bar;

pub(super) fn run(args: &FixArgs) -> Result<Outcome> {
    let bar = Bar::new();
    let project = driver::load(&args.paths, &args.load, &bar)?;
    bar.phase("following allocations");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.load.jobs).build().context("cannot start threads")?;
    let options = Options::default();
    let models = &project.config.models;
    let analysis = pool.install(|| caulk_analysis::analyse(&project.loaded.program, models, options.limits));
    let findings = caulk_checkers::findings_of(&analysis, &options);
    let suppressed = suppressed(&findings, &project);
    let wanted = |finding: &Finding| {
        wanted(finding, &project.config)
            && !suppressed.contains(&finding.fingerprint.0)
            && (args.findings.is_empty() || args.findings.contains(&finding.fingerprint.0))
    };
    bar.phase("proving patches");
    let shop = Shop::new(&project, &analysis, options, &pool);
    let survey = Survey::of(&analysis, findings.findings.clone());
    let root = project.loaded.root.clone();
    let again = |dropped: &[String], ask: bool| {
        let mut accept =
            |finding: &Finding, patch: &Patch| !dropped.contains(&patch.diff) && (!ask || ask::wants(finding, patch));
        caulk_repair::repair(&shop, survey.clone(), &root, &wanted, &mut accept)
    };
    if args.interactive {
        drop(bar);
    }
    let mut repaired = again(&[], args.interactive);
    if let Some(command) = &args.validate {
        repaired = validate::keep_passing(command, &root, repaired, &|dropped| again(dropped, false))?;
    }
    if args.apply {
        apply(&repaired)?;
    }
    if args.commit {
        commit::each(&repaired, &root)?;
    }
    show(&repaired, findings, &project, args)?;
    let left = repaired.done.iter().any(|done| !done.patch.is_fixed());
    Ok(if left { Outcome::Findings } else { Outcome::Clean })
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

fn show(repaired: &Repaired, mut findings: Findings, project: &Project, args: &FixArgs) -> Result<()> {
    let root = project.loaded.root.display().to_string();
    for done in &repaired.done {
        exit::say(&line(done, Path::new(&root)));
    }
    let text = match args.format {
        FixFormat::Text => {
            let mut text = Vec::new();
            for (path, old, new) in &repaired.files {
                let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
                text.extend(caulk_source::unified_diff(&name, old, new));
            }
            use std::io::Write;
            std::io::stdout().lock().write_all(&text)?;
            return Ok(());
        }
        FixFormat::Json | FixFormat::Sarif => {
            let patches: Vec<Patch> = repaired.done.iter().map(|done| done.patch.clone()).collect();
            findings.findings.retain(|finding| patches.iter().any(|patch| patch.fingerprint == finding.fingerprint));
            findings.summary.stats.phases.clear();
            let sources = DiskSources::new();
            let report = Report { patches: &patches, ..Report::new(&findings, &root, &sources) };
            match args.format {
                FixFormat::Json => {
                    let mut json: serde_json::Value = serde_json::from_str(&caulk_report::render_json(&report))?;
                    json["patches"] = serde_json::to_value(&patches)?;
                    format!("{json:#}\n")
                }
                _ => caulk_report::render_sarif(&report),
            }
        }
    };
    output::print(&text)
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
