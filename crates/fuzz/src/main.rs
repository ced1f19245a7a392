//! Feeds damaged input to the readers of caulk, for a bounded time: `make fuzz`.
//!
//!     caulk-fuzz [--seconds N] [--seed N] [--out DIR] [TARGET…]
//!
//! One target at a time, in a child process, so that a crash inside LLVM or an endless loop is a result and not the
//! end of the run. The child writes each input into a file before it reads it; what is in that file when the child
//! dies is what killed it, and is kept in DIR.
//!
//! The same seed gives the same inputs in the same order.

mod child;
mod mutate;
mod parent;
mod seeds;
mod targets;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use targets::Target;

const USAGE: &str = "usage: caulk-fuzz [--seconds N] [--seed N] [--out DIR] [TARGET...]\ntargets: models, database, bitcode; default: all\n";

/// What was asked for.
struct Options {
    seconds: u64,
    seed: u64,
    out: PathBuf,
    targets: Vec<Target>,
    /// Set in the child: where to write the current input, and which target.
    child: Option<(Target, PathBuf)>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            say(&format!("caulk-fuzz: {error:#}\n{USAGE}"));
            ExitCode::from(2)
        }
    }
}

/// True if nothing bad was found.
fn run(options: Options) -> Result<bool> {
    if let Some((target, folder)) = options.child {
        child::run(target, &folder, options.seed)?;
        return Ok(true);
    }
    let mut clean = true;
    for &target in &options.targets {
        let outcome = parent::run(target, Duration::from_secs(options.seconds), options.seed, &options.out)?;
        say(&format!("{:<9} {} inputs, {} bad\n", target.name(), outcome.inputs, outcome.bad.len()));
        for (reason, path) in &outcome.bad {
            say(&format!("  {reason}: {}\n", path.display()));
        }
        clean &= outcome.bad.is_empty();
    }
    Ok(clean)
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
    let out = PathBuf::from("target/fuzz");
    let mut options = Options { seconds: 30, seed: 1, out, targets: Vec::new(), child: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--seconds" => options.seconds = value()?.parse().context("--seconds needs a number")?,
            "--seed" => options.seed = value()?.parse().context("--seed needs a number")?,
            "--out" => options.out = value()?.into(),
            "--child" => options.child = Some((target(&value()?)?, value()?.into())),
            name => options.targets.push(target(name)?),
        }
    }
    if options.targets.is_empty() {
        options.targets = Target::ALL.to_vec();
    }
    Ok(options)
}

fn target(name: &str) -> Result<Target> {
    match Target::ALL.into_iter().find(|target| target.name() == name) {
        Some(target) => Ok(target),
        None => bail!("no target `{name}`"),
    }
}

fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
