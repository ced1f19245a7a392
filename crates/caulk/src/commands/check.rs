//! `caulk check`: findings, filtered as the user asked, in the format the user asked for.
//!
//! The filters come in this order, so that each sees what it needs: comments in the source (they must see
//! everything, to tell which of them are of use), levels and paths from `caulk.toml`, `--changed-since`, the baseline.

use std::path::Path;

use anyhow::{Context, Result};
use caulk_findings::{Baseline, Finding, Findings, Suppressions, apply_suppressions};
use caulk_report::{DiskSources, HtmlOptions, Levels, Report, RunReport};

use crate::args::{CheckArgs, Format};
use crate::changed::ChangedLines;
use crate::commands::pages;
use crate::config::{Config, Level};
use crate::driver::{self, Project};
use crate::exit::{self, Outcome};
use crate::output::{self, Destination};
use crate::progress::Bar;
use crate::saved::Saved;

pub(super) fn run(args: &CheckArgs) -> Result<Outcome> {
    pages::check_options(args.format == Format::Html, args.output.as_deref(), args.open)?;
    let runs = pages::runs(args.format == Format::Html, &args.runtime)?;
    // First, so that a mistake is told before minutes of compiling.
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let bar = Bar::new();
    let project = driver::load(&args.paths, &args.load, &bar)?;
    bar.phase("following allocations");
    let findings = driver::check(&project, args.at_exit, args.load.jobs)?;
    drop(bar);
    Saved::keep(&findings, &project.loaded, &args.load);
    let result = filter(findings, baseline, &project, args)?;
    show(&result, &project, runs.as_ref(), args)?;
    Ok(if result.findings.findings.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

/// What is left to report, and what was taken out.
struct Filtered {
    findings: Findings,
    suppressions: Suppressions,
    /// Muted by the baseline, if there is one.
    known: Option<Vec<Finding>>,
    sources: DiskSources,
}

fn filter(
    mut findings: Findings,
    mut baseline: Option<Baseline>,
    project: &Project,
    args: &CheckArgs,
) -> Result<Filtered> {
    let sources = DiskSources::new();
    let config = &project.config;
    let files = project.loaded.program.units.iter().map(|unit| unit.source.clone());
    let files: Vec<String> = files.filter(|file| !config.excludes(Path::new(file))).collect();
    let mut suppressions = apply_suppressions(std::mem::take(&mut findings.findings), &sources, &files);
    let mut kept = std::mem::take(&mut suppressions.kept);
    kept.retain(|finding| wanted(finding, config));
    suppressions.suppressed.retain(|suppressed| wanted(&suppressed.finding, config));
    if let Some(revision) = &args.changed_since {
        let changed = ChangedLines::since(revision, &project.loaded.root)?;
        kept = changed.keep(kept, &project.loaded.program);
    }
    if let Some(path) = &args.write_baseline {
        let written = Baseline::of(&kept);
        output::write_file(path, caulk_report::render_baseline(&written).as_bytes())?;
        // What was just written down is known from now on.
        baseline = Some(written);
    }
    let known = baseline.map(|baseline| {
        let split = baseline.filter_new(std::mem::take(&mut kept));
        kept = split.new;
        split.known
    });
    findings.findings = kept;
    Ok(Filtered { findings, suppressions, known, sources })
}

/// Not turned off, and not in a folder that is left out.
fn wanted(finding: &Finding, config: &Config) -> bool {
    config.rules.get(&finding.rule) != Some(&Level::Off) && !config.excludes(Path::new(&finding.primary().file))
}

fn read_baseline(path: &Path) -> Result<Baseline> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    caulk_report::parse_baseline(&text).with_context(|| format!("cannot use {} as a baseline", path.display()))
}

fn show(result: &Filtered, project: &Project, runs: Option<&RunReport>, args: &CheckArgs) -> Result<()> {
    let root = project.loaded.root.display().to_string();
    let mut findings = result.findings.clone();
    if args.stats {
        exit::say(&caulk_report::render_stats(&findings.summary));
    } else if args.format != Format::Html {
        // Times, and what a cache spares, differ from run to run, and the same program shall give the same bytes.
        findings.summary.stats.phases.clear();
        findings.summary.stats.functions_analysed = 0;
    }
    let report = Report {
        suppressed: &result.suppressions.suppressed,
        issues: &result.suppressions.issues,
        known: result.known.as_deref(),
        runs,
        levels: levels(&project.config),
        ..Report::new(&findings, &root, &result.sources)
    };
    let destination = Destination::new(args.output.as_deref());
    let text = match args.format {
        Format::Text => caulk_report::render_text(&report, &output::text_options(&destination)),
        Format::Json => caulk_report::render_json(&report),
        Format::Sarif => caulk_report::render_sarif(&report),
        Format::Github => caulk_report::render_github(&report),
        Format::Codeclimate => caulk_report::render_codeclimate(&report),
        Format::Html => {
            pages::write(&report, &HtmlOptions::default(), args.output.as_deref(), args.open)?;
            String::new()
        }
    };
    if args.format != Format::Html {
        destination.write(&text)?;
    }
    // Text on standard output ends with these lines itself.
    if args.format != Format::Text || args.output.is_some() {
        let lines = [caulk_report::summary_line(&findings.summary), caulk_report::closing_line(&report)];
        exit::say(&format!("{}\n", lines.join("\n")));
    }
    Ok(())
}

fn levels(config: &Config) -> Levels {
    let mut levels = Levels::default();
    for (rule, level) in &config.rules {
        match level {
            Level::Off => {}
            Level::Note => levels.set(*rule, caulk_report::Level::Note),
            Level::Warning => levels.set(*rule, caulk_report::Level::Warning),
            Level::Error => levels.set(*rule, caulk_report::Level::Error),
        }
    }
    levels
}
