//! From what was typed to a program in memory: what all commands that look at a project share.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use caulk_analysis::{Analysis, Limits};
use caulk_base::Store;
use caulk_checkers::Options;
use caulk_findings::{Findings, Fingerprint};
use caulk_frontend::{CacheChoice, FrontendError, Loaded, Request};

use crate::args::LoadArgs;
use crate::config::Config;
use crate::exit;
use crate::progress::Bar;

/// A project in memory, and what it says about itself.
pub(crate) struct Project {
    pub(crate) loaded: Loaded,
    pub(crate) config: Config,
    cache_limit: u64,
}

/// Reads the configuration, then compiles and links the project.
pub(crate) fn load(paths: &[PathBuf], args: &LoadArgs, bar: &Bar) -> Result<Project> {
    // First, so that a mistake in it is told before minutes of compiling.
    let config = Config::load(args.config.as_deref(), start(paths))?;
    let mut request = Request::new(paths.to_vec());
    request.flags.clone_from(&args.flags);
    request.jobs = args.jobs;
    request.cache = match &args.cache {
        _ if args.no_cache => CacheChoice::Off,
        Some(folder) => CacheChoice::Folder(folder.clone()),
        None => CacheChoice::Project,
    };
    if let Some(size) = config.cache_mib {
        request.cache_limit = size.saturating_mul(1 << 20);
    }
    let loaded = caulk_frontend::load(&request, bar).inspect_err(name_gaps)?;
    Ok(Project { loaded, config, cache_limit: request.cache_limit })
}

impl Project {
    /// Where results are kept between runs, if the user wants that and it is possible.
    pub(crate) fn store(&self) -> Option<Store> {
        self.loaded.cache.as_deref().and_then(|folder| Store::open(folder, self.cache_limit).ok())
    }
}

/// The heap analysis alone, with what earlier runs have left.
pub(crate) fn analyse(project: &Project, jobs: usize) -> Result<Analysis<'_>> {
    let loaded = &project.loaded;
    let (program, models) = (&loaded.program, &project.config.models);
    // A folder that cannot be used is among the gaps of the loading already.
    let store = project.store();
    pool(jobs)?.install(|| match store {
        None => Ok(caulk_analysis::analyse(program, models, Limits::default())),
        Some(store) => {
            let mut analysis = caulk_analysis::analyse_with(program, models, Limits::default(), &store);
            analysis.gaps.extend(store.close());
            Ok(analysis)
        }
    })
}

/// Looks for errors, and adds what only the loading knows: what failed, and where the time went.
pub(crate) fn check(project: &Project, at_exit: bool, jobs: usize) -> Result<Findings> {
    let began = Instant::now();
    let loaded = &project.loaded;
    let options = Options { at_exit, ..Options::default() };
    let analysis = analyse(project, jobs)?;
    let analysed = began.elapsed();
    let mut findings = pool(jobs)?.install(|| caulk_checkers::findings_of(&analysis, &options));
    let repeated: Vec<Fingerprint> = caulk_checkers::repeated(&findings.findings).into_iter().cloned().collect();
    findings.findings.retain(|finding| !repeated.contains(&finding.fingerprint));
    findings.summary.stats.functions_analysed = analysis.analysed as u64;
    findings.summary.units_failed = loaded.failed.len() as u64;
    findings.summary.units_passed_over = loaded.passed_over.count() as u64;
    findings.gaps.splice(0..0, loaded.gaps.iter().cloned());
    let phases = [
        ("front end", loaded.timings.wall),
        ("analysis", analysed),
        ("checking", began.elapsed().saturating_sub(analysed)),
    ];
    findings.summary.stats.phases =
        phases.iter().map(|(name, time)| ((*name).to_owned(), time.as_micros() as u64)).collect();
    Ok(findings)
}

fn pool(jobs: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new().num_threads(jobs).build().context("cannot start threads")
}

/// Where the search for `caulk.toml` begins: the first path, or the folder it lies in.
fn start(paths: &[PathBuf]) -> &Path {
    let first = paths.first().map_or(Path::new("."), PathBuf::as_path);
    if first.is_dir() {
        return first;
    }
    match first.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// When nothing could be analysed there is no report that would name the reasons: they are named here.
fn name_gaps(error: &FrontendError) {
    if let FrontendError::NothingAnalysed { gaps, .. } = error {
        for gap in gaps {
            exit::say(&format!("{}: {}\n", gap.place, gap.reason));
        }
    }
}
