//! Measures caulk against clang and against its peers; a benchmark, never a test.
//!
//!     caulk-bench projects DIR…     seconds, memory and findings, as ratios to clang's bitcode time
//!     caulk-bench juliet DIR        share of bad functions found and of good ones flagged
//!
//! Absolute seconds differ from machine to machine, so everything is measured in
//! one run, on the same units, with the same number of jobs. Both commands write
//! a Markdown table for people and the same numbers as JSON.
//!
//! # Known imprecision
//! - Wall time on a busy machine measures the neighbours too: CPU time is given
//!   beside it, and `--runs` repeats and keeps the fastest.

mod args;
mod database;
mod juliet;
mod measure;
mod output;
mod peers;
mod projects;
mod table;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = args::parse(std::env::args().skip(1)).and_then(|command| match command {
        args::Command::Help => say(args::USAGE),
        args::Command::Projects(options) => projects::bench(&options),
        args::Command::Juliet(options) => juliet::bench(&options),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when standard error itself is gone.
            let _ = writeln!(std::io::stderr(), "caulk-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Progress and results for whoever sits before the terminal.
fn say(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
