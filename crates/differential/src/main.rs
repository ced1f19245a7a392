//! `caulk-differential`: random programs through `caulk fix --apply`, run before and after.
//!
//! Prints a table, keeps every program with an unsafe patch (and, if asked, other classes) in a folder, and exits
//! with 1 if there was an unsafe patch.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use caulk_differential::check::{Class, Harm, judge, judge_guarded};
use caulk_differential::run::{Runner, error_kinds, has_errors};
use caulk_differential::{Program, generate};

const USAGE: &str = "\
usage: caulk-differential [--programs N] [--seconds N] [--seed S] [--caulk PATH] [--clang PATH] [--jobs N]
                          [--out FOLDER] [--keep CLASS]... [--print SEED] [--guard]

  --programs N   how many programs (100; with --seconds, as many as there is time for)
  --seconds N    start no program after this time
  --seed S       the first one's number (1)
  --caulk PATH   the caulk to test; without it the programs are only run
  --out FOLDER   where unsafe cases go (differential-out)
  --keep CLASS   keep this class as well: missed, found, partly, alarm, fixed, failed
  --print SEED   print that program and leave
  --guard        do not repair, but build with `caulk cc` and every allocation site guarded
";

/// After so many programs that cannot be judged it is not the programs' fault.
const MAX_FAILURES: usize = 10;

struct Options {
    programs: Option<u64>,
    seconds: Option<u64>,
    seed: u64,
    caulk: Option<PathBuf>,
    clang: String,
    jobs: usize,
    out: PathBuf,
    keep: Vec<String>,
    print: Option<u64>,
    guard: bool,
    help: bool,
}

fn options() -> Result<Options> {
    let mut options = Options {
        programs: None,
        seconds: None,
        seed: 1,
        caulk: None,
        clang: "clang-19".into(),
        jobs: 1,
        out: "differential-out".into(),
        keep: Vec::new(),
        print: None,
        guard: false,
        help: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{name} needs a value\n{USAGE}"));
        match name.as_str() {
            "--programs" => options.programs = Some(value()?.parse()?),
            "--seconds" => options.seconds = Some(value()?.parse()?),
            "--seed" => options.seed = value()?.parse()?,
            "--caulk" => options.caulk = Some(value()?.into()),
            "--clang" => options.clang = value()?,
            "--jobs" => options.jobs = value()?.parse()?,
            "--out" => options.out = value()?.into(),
            "--keep" => options.keep.push(value()?),
            "--guard" => options.guard = true,
            "--print" => options.print = Some(value()?.parse()?),
            "--help" => options.help = true,
            _ => bail!("{name}?\n{USAGE}"),
        }
    }
    if let Some(caulk) = &options.caulk {
        options.caulk = Some(caulk.canonicalize().with_context(|| format!("{}", caulk.display()))?);
    }
    Ok(options)
}

/// What one program came to.
struct Case {
    class: Option<Class>,
    errors: Vec<String>,
}

fn main() -> Result<()> {
    let options = options()?;
    let mut stdout = std::io::stdout();
    if options.help {
        writeln!(stdout, "{USAGE}")?;
        return Ok(());
    }
    if let Some(seed) = options.print {
        stdout.write_all(generate(seed).source.as_bytes())?;
        return Ok(());
    }
    let scratch = tempfile::tempdir().context("a scratch folder")?;
    let runner = Runner::new(&options.clang, scratch.path())?;
    let next = AtomicU64::new(options.seed);
    let programs = options.programs.unwrap_or(if options.seconds.is_some() { u64::MAX } else { 100 });
    let end = options.seed.saturating_add(programs);
    let started = Instant::now();
    let late = || options.seconds.is_some_and(|seconds| started.elapsed().as_secs() >= seconds);
    let results: Mutex<BTreeMap<u64, Case>> = Mutex::default();
    let failures: Mutex<BTreeMap<u64, anyhow::Error>> = Mutex::default();
    let too_many = || failures.lock().is_ok_and(|failures| failures.len() >= MAX_FAILURES);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || late() || too_many() {
                        return;
                    }
                    match one(&options, &runner, scratch.path(), seed) {
                        Ok(case) => {
                            if let Ok(mut results) = results.lock() {
                                results.insert(seed, case);
                            }
                        }
                        Err(error) => {
                            if let Ok(mut failures) = failures.lock() {
                                failures.insert(seed, error);
                            }
                        }
                    }
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_default();
    stdout.write_all(table(&results).as_bytes())?;
    let failures = failures.into_inner().unwrap_or_default();
    for (seed, error) in &failures {
        writeln!(stdout, "left out: program {seed}: {error:#}")?;
    }
    let harmed = results.values().any(|case| matches!(case.class, Some(Class::Unsafe(_))));
    std::process::exit(if harmed { 1 } else { 2 * i32::from(!failures.is_empty()) });
}

fn one(options: &Options, runner: &Runner, scratch: &Path, seed: u64) -> Result<Case> {
    let program = generate(seed);
    let folder = scratch.join(format!("p{seed}"));
    std::fs::create_dir_all(&folder)?;
    let source = folder.join("program.c");
    std::fs::write(&source, &program.source)?;
    if let (true, Some(caulk)) = (options.guard, &options.caulk) {
        let case = guard(options, caulk, runner, &source, &program)?;
        std::fs::remove_dir_all(&folder)?;
        return Ok(case);
    }
    let binary = runner.build(&source)?;
    let mut before = runner.run(&binary, program.bits, false)?;
    // A program that looks clean may fail only when a late allocation does, or several do.
    let deep = !has_errors(&before);
    if deep {
        before = runner.run(&binary, program.bits, true)?;
    }
    let errors = error_kinds(&before);
    if let Some(odd) = errors.iter().find(|kind| !["leak", "double-free", "use-after-free"].contains(&kind.as_str())) {
        bail!("the generator made a program with `{odd}`");
    }
    if program.mutations.is_empty() && !errors.is_empty() {
        bail!("the generator meant this program to be clean, but it has {}", errors.join(", "));
    }
    let Some(caulk) = &options.caulk else {
        std::fs::remove_dir_all(&folder)?;
        return Ok(Case { class: None, errors });
    };
    let output = Command::new(caulk)
        .args(["fix", "--apply", "program.c"])
        .current_dir(&folder)
        .output()
        .context("running caulk")?;
    let code = output.status.code().unwrap_or(-1);
    let patched_source = std::fs::read(&source)?;
    let patched = patched_source != program.source.as_bytes();
    let class = if !(0..=1).contains(&code) {
        Class::ToolFailed
    } else if !patched {
        judge(&before, &before, false, code == 1)
    } else {
        let fixed = folder.join("fixed.c");
        std::fs::write(&fixed, &patched_source)?;
        match runner.build(&fixed) {
            Err(_) => Class::Unsafe(Harm::DoesNotCompile),
            Ok(fixed) => {
                let after = runner.run(&fixed, program.bits, deep)?;
                judge(&before, &after, true, code == 1)
            }
        }
    };
    if keeps(options, class) {
        let kept = options.out.join(format!("{}-{seed}", slug(class)));
        std::fs::create_dir_all(&kept)?;
        std::fs::write(kept.join("program.c"), &program.source)?;
        if patched {
            std::fs::write(kept.join("fixed.c"), &patched_source)?;
        }
        std::fs::write(kept.join("caulk.txt"), [output.stdout, output.stderr].concat())?;
        std::fs::write(kept.join("notes.txt"), notes(&program, &errors, class))?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(Case { class: Some(class), errors })
}

/// Builds one program with everything guarded, at one level of optimisation or another, and compares it with itself.
fn guard(options: &Options, caulk: &Path, runner: &Runner, source: &Path, program: &Program) -> Result<Case> {
    let level = ["-O0", "-O1", "-O2", "-O3"][(program.seed % 4) as usize];
    let before = runner.run(&runner.unguarded(source, level)?, program.bits, false)?;
    let guarded = source.with_file_name("guarded.c");
    std::fs::write(&guarded, &program.source)?;
    let guarded = runner.guarded(caulk, &guarded, level)?;
    let class = judge_guarded(&before, &runner.run(&guarded, program.bits, false)?);
    let errors = error_kinds(&before);
    if keeps(options, class) {
        let kept = options.out.join(format!("{}-{}", slug(class), program.seed));
        std::fs::create_dir_all(&kept)?;
        std::fs::write(kept.join("program.c"), &program.source)?;
        std::fs::write(kept.join("notes.txt"), format!("{level}\n{}", notes(program, &errors, class)))?;
    }
    Ok(Case { class: Some(class), errors })
}

fn notes(program: &Program, errors: &[String], class: Class) -> String {
    let mut text =
        format!("seed {}\nbits {}\n{}\nerrors: {}\n", program.seed, program.bits, class.describe(), errors.join(", "));
    for (mutation, place) in &program.mutations {
        text.push_str(&format!("{mutation:?} in {place}\n"));
    }
    text
}

fn slug(class: Class) -> &'static str {
    match class {
        Class::CleanUntouched => "clean",
        Class::FalseAlarm => "alarm",
        Class::Fixed => "fixed",
        Class::PartlyFixed => "partly",
        Class::FoundNotFixed => "found",
        Class::Missed => "missed",
        Class::ToolFailed => "failed",
        Class::Unsafe(_) => "unsafe",
    }
}

fn keeps(options: &Options, class: Class) -> bool {
    matches!(class, Class::Unsafe(_)) || options.keep.iter().any(|name| name == slug(class))
}

fn table(results: &BTreeMap<u64, Case>) -> String {
    let total = results.len();
    let share = |count: usize, of: usize| if of == 0 { 0.0 } else { 100.0 * count as f64 / of as f64 };
    let faulty = results.values().filter(|case| !case.errors.is_empty()).count();
    let mut text = format!("programs                          {total}\n");
    text.push_str(&format!(
        "without errors                    {} ({:.0} %)\n",
        total - faulty,
        share(total - faulty, total)
    ));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in results.values().flat_map(|case| &case.errors) {
        *kinds.entry(kind).or_default() += 1;
    }
    for (kind, count) in kinds {
        text.push_str(&format!("with {kind:<28} {count}\n"));
    }
    for class in Class::ALL {
        let count = results.values().filter(|case| case.class == Some(class)).count();
        let of = match class {
            Class::Fixed | Class::PartlyFixed | Class::FoundNotFixed | Class::Missed => faulty,
            _ => total,
        };
        if count > 0 {
            text.push_str(&format!("{:<33} {count} ({:.1} %)\n", class.describe(), share(count, of)));
        }
    }
    let harmed: Vec<String> = results
        .iter()
        .filter(|(_, case)| matches!(case.class, Some(Class::Unsafe(_))))
        .map(|(seed, _)| seed.to_string())
        .collect();
    if !harmed.is_empty() {
        text.push_str(&format!("unsafe seeds: {}\n", harmed.join(" ")));
    }
    text
}
