//! From a request to a program in memory.
//!
//! 1. Commands are found ([`crate::database`]) and put into clang's words ([`crate::flags`]).
//! 2. What the cache has is taken from there, in parallel.
//! 3. The rest is compiled, lowered, marked and stored, in parallel; what fails is a gap.
//! 4. Everything is linked ([`crate::link`]).
//!
//! # Invariants
//! - Units, failures and gaps come out in the order of the commands, whatever the number of threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use caulk_base::{ContentHash, Gap, GapKind, Hasher, IdVec};
use caulk_ir::{Program, Unit, UnitId};
use rayon::prelude::*;

use crate::cache::{Cache, CacheChoice, Stored};
use crate::clang::{self, Clang, Failure, Job};
use crate::database::CompileCommand;
use crate::error::FrontendError;
use crate::files::Files;
use crate::fingerprint::fingerprint;
use crate::flags::ClangFlags;
use crate::progress::Progress;
use crate::request::{PassedOver, Plan, Planned, Request, plan};
use crate::{link, macros, paths};

/// Turns bitcode into a unit; an error is what was in the way.
pub type Lower = fn(&[u8]) -> Result<Unit, String>;

/// A project in memory.
pub struct Loaded {
    pub program: Program,
    /// How each unit was made.
    pub commands: IdVec<UnitId, CompileCommand>,
    pub failed: Vec<FailedUnit>,
    pub passed_over: PassedOver,
    /// Failed units, parts that were not understood, and what there is to say about the cache.
    pub gaps: Vec<Gap>,
    pub timings: Timings,
    /// The project's folder: where its `.caulk/` and `caulk.toml` belong.
    pub root: PathBuf,
    /// The folder of the cache, if there is one.
    pub cache: Option<PathBuf>,
}

/// A unit that did not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedUnit {
    pub command: CompileCommand,
    /// The first error, with its position.
    pub error: String,
}

/// Where the time went. Times of units are summed over all threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    pub clang: Duration,
    pub lower: Duration,
    pub link: Duration,
    /// From beginning to end, by the clock on the wall.
    pub wall: Duration,
    pub compiled: usize,
    pub from_cache: usize,
}

enum Outcome {
    Unit(Arc<Unit>),
    Failed(String),
}

/// What became of one unit, and what it cost.
struct Made {
    outcome: Outcome,
    clang: Duration,
    lower: Duration,
}

/// What all units of a run share.
struct Run<'a> {
    clang: &'a Clang,
    cache: Option<&'a Cache>,
    files: &'a Files,
    scratch: &'a Path,
    lower: Lower,
    progress: &'a dyn Progress,
    done: AtomicUsize,
    all: usize,
}

/// Loads a project with a lowering of the caller's.
pub fn load_with(request: &Request, progress: &dyn Progress, lower: Lower) -> Result<Loaded, FrontendError> {
    let started = Instant::now();
    let clang = Clang::find()?;
    let plan = plan(request)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(request.jobs).build();
    let pool = pool.map_err(|error| FrontendError::Setup(error.to_string()))?;
    let mut gaps = Vec::new();
    let cache = open_cache(request, &plan, &clang, &mut gaps);
    let scratch = match &cache {
        Some(cache) => tempfile::Builder::new().prefix("run-").tempdir_in(cache.scratch()),
        None => tempfile::Builder::new().prefix("caulk-").tempdir(),
    };
    let scratch = scratch.map_err(|error| FrontendError::Setup(format!("no temporary folder: {error}")))?;
    let run = Run {
        clang: &clang,
        cache: cache.as_ref(),
        files: &Files::new(),
        scratch: scratch.path(),
        lower,
        progress,
        done: AtomicUsize::new(0),
        all: plan.units.len(),
    };
    let made = pool.install(|| run.units(&plan.units))?;
    drop(scratch);

    let mut timings = Timings::default();
    let mut failed = Vec::new();
    let (mut units, mut commands, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    for (planned, (made, from_cache)) in plan.units.into_iter().zip(made) {
        timings.clang += made.clang;
        timings.lower += made.lower;
        *(if from_cache { &mut timings.from_cache } else { &mut timings.compiled }) += 1;
        match made.outcome {
            Outcome::Unit(unit) => {
                let place = planned.command.file.display();
                let part = |(function, what): &(String, String)| {
                    Gap::new(GapKind::Function, format!("{place}: {function}"), what.clone())
                };
                gaps.extend(unit.gaps.iter().map(part));
                units.push(unit);
                commands.push(planned.command);
                objects.push(planned.objects);
            }
            Outcome::Failed(error) => {
                gaps.push(Gap::new(GapKind::Unit, planned.command.file.display().to_string(), error.clone()));
                failed.push(FailedUnit { command: planned.command, error });
            }
        }
    }
    let cache_folder = cache.as_ref().map(|cache| cache.folder().to_path_buf());
    gaps.extend(cache.map(Cache::close).unwrap_or_default());
    if units.is_empty() {
        return Err(FrontendError::NothingAnalysed { reason: nothing(&failed, &plan.passed_over), gaps });
    }
    let linking = Instant::now();
    let link_units = link::link_units(&plan.links, &objects);
    let mut program = pool.install(|| link::link(units, link_units));
    program.gaps.clone_from(&gaps);
    timings.link = linking.elapsed();
    timings.wall = started.elapsed();
    let commands = IdVec::from(commands);
    let (passed_over, root) = (plan.passed_over, plan.root);
    Ok(Loaded { program, commands, failed, passed_over, gaps, timings, root, cache: cache_folder })
}

fn nothing(failed: &[FailedUnit], passed_over: &PassedOver) -> String {
    match failed.first() {
        Some(first) => format!("none of {} C files compiles; the first says: {}", failed.len(), first.error),
        None if passed_over.count() > 0 => format!("all {} units are C++, assembler or the like", passed_over.count()),
        None => {
            "the compile database is empty. Record it from a clean build: `make clean; caulk capture -- make`".into()
        }
    }
}

fn open_cache(request: &Request, plan: &Plan, clang: &Clang, gaps: &mut Vec<Gap>) -> Option<Cache> {
    let folder = match &request.cache {
        CacheChoice::Off => return None,
        CacheChoice::Project => plan.root.join(".caulk"),
        CacheChoice::Folder(folder) => paths::absolute(&paths::current_dir(), folder),
    };
    match Cache::open(&folder, cache_base(clang), request.cache_limit) {
        Ok(cache) => Some(cache),
        Err(error) => {
            let place = folder.display().to_string();
            gaps.push(Gap::new(GapKind::Cache, place, format!("nothing is kept for the next run: {error}")));
            None
        }
    }
}

/// Everything beside command and files that changes what a unit becomes.
fn cache_base(clang: &Clang) -> ContentHash {
    let mut hasher = Hasher::new();
    hasher.field(env!("CARGO_PKG_VERSION")).raw(&fingerprint().0).raw(&clang.identity().0);
    for variable in ["CPATH", "C_INCLUDE_PATH", "SOURCE_DATE_EPOCH"] {
        hasher.field(std::env::var_os(variable).unwrap_or_default().as_encoded_bytes());
    }
    hasher.finish()
}

impl Run<'_> {
    /// Every unit in order, and whether it came from the cache.
    fn units(&self, planned: &[Planned]) -> Result<Vec<(Made, bool)>, FrontendError> {
        self.progress.advanced(0, self.all);
        let found: Vec<Option<Made>> = planned.par_iter().map(|unit| self.look_up(unit)).collect();
        if found.iter().any(Option::is_none) {
            self.clang.check()?;
            let mark = self.scratch.join("began");
            std::fs::write(&mark, "").map_err(FrontendError::write(&mark))?;
            self.files.begin(&mark);
        }
        let made = found.into_par_iter().enumerate().map(|(at, found)| match found {
            Some(made) => (made, true),
            None => (self.make(&planned[at], at), false),
        });
        Ok(made.collect())
    }

    fn key(&self, cache: &Cache, unit: &Planned) -> ContentHash {
        let mut words = unit.flags.flags.clone();
        words.push(format!("{:?}", unit.flags.language));
        cache.key(&unit.command.directory, &unit.command.file, &words)
    }

    fn look_up(&self, unit: &Planned) -> Option<Made> {
        let cache = self.cache?;
        let outcome = match cache.find(self.key(cache, unit), self.files)? {
            Stored::Unit(unit) => Outcome::Unit(Arc::from(unit)),
            Stored::Failure(message) => Outcome::Failed(message),
        };
        self.advance();
        Some(Made { outcome, clang: Duration::ZERO, lower: Duration::ZERO })
    }

    fn advance(&self) {
        self.progress.advanced(self.done.fetch_add(1, Ordering::Relaxed) + 1, self.all);
    }

    fn make(&self, planned: &Planned, at: usize) -> Made {
        self.progress.started(&planned.command.file);
        let job = Job { command: &planned.command, flags: &planned.flags, replaced: &[], warnings: false };
        let made = match clang::compile(self.clang, &job, self.scratch, &format!("u{at}")) {
            Ok(compiled) => self.finish(planned, compiled),
            Err(failure) => self.fail(planned, failure),
        };
        self.advance();
        made
    }

    fn finish(&self, planned: &Planned, compiled: clang::Compiled) -> Made {
        let lowering = Instant::now();
        // A bug of ours in one unit must not take the others with it.
        let lowered = catch_unwind(AssertUnwindSafe(|| (self.lower)(&compiled.module)))
            .unwrap_or_else(|_| Err("caulk failed on it; please report this".to_owned()));
        drop(compiled.module);
        let stored = match lowered {
            Ok(mut unit) => {
                settle(&mut unit, &planned.command, &compiled.read, &planned.flags, &[], self.files);
                Stored::Unit(Box::new(unit))
            }
            Err(reason) => Stored::Failure(format!("its bitcode cannot be read: {reason}")),
        };
        if let Some(cache) = self.cache {
            cache.store(self.key(cache, planned), &compiled.read, &[], &stored, self.files);
        }
        let outcome = match stored {
            Stored::Unit(unit) => Outcome::Unit(Arc::from(unit)),
            Stored::Failure(message) => Outcome::Failed(message),
        };
        Made { outcome, clang: compiled.time, lower: lowering.elapsed() }
    }

    fn fail(&self, planned: &Planned, failure: Failure) -> Made {
        if let (Some(cache), Some(read)) = (self.cache, &failure.read) {
            let absent = match &failure.missing {
                Some(header) => absent_places(header, &planned.flags.flags, &planned.command.directory, read),
                None => Vec::new(),
            };
            // With -MG the list names headers that are not there, too.
            let read: Vec<PathBuf> = read.iter().filter(|path| path.is_file()).cloned().collect();
            let stored = Stored::Failure(failure.message.clone());
            cache.store(self.key(cache, planned), &read, &absent, &stored, self.files);
        }
        Made { outcome: Outcome::Failed(failure.message), clang: failure.time, lower: Duration::ZERO }
    }
}

/// Gives the unit its paths and macro marks.
pub(crate) fn settle(
    unit: &mut Unit,
    command: &CompileCommand,
    read: &[PathBuf],
    flags: &ClangFlags,
    replaced: &[(PathBuf, String)],
    files: &Files,
) {
    unit.source = command.file.display().to_string();
    for file in unit.files.iter_mut() {
        *file = crate::named_source(command, file.as_str()).display().to_string();
    }
    macros::mark(unit, read, &flags.flags, replaced, files);
}

/// Where a header that was not found would have been looked for.
fn absent_places(header: &str, flags: &[String], directory: &Path, read: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["/usr/include", "/usr/local/include"].map(PathBuf::from).to_vec();
    for pair in flags.windows(2) {
        if matches!(pair[0].as_str(), "-I" | "-isystem" | "-iquote" | "-idirafter") {
            folders.push(PathBuf::from(&pair[1]));
        }
    }
    folders.extend(read.iter().filter_map(|file| file.parent()).map(Path::to_path_buf));
    let mut places: Vec<PathBuf> =
        folders.iter().map(|folder| paths::absolute(directory, &folder.join(header))).collect();
    places.sort_unstable();
    places.dedup();
    places.retain(|place| !place.exists());
    places
}
