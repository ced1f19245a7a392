//! The `caulk` command line.
//!
//! `args` says what can be typed, `commands` does it, `driver` is the way from
//! paths to a program and its findings that the commands share. Everything that
//! ends a run goes through `exit`: three codes, decided in one place.

mod args;
mod changed;
mod commands;
mod config;
mod driver;
mod exit;
mod interrupt;
mod output;
mod progress;
mod saved;

use std::process::ExitCode;

use clap::Parser;

/// The analysis makes and drops many small vectors on every thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    exit::report_own_bugs();
    interrupt::install();
    let arguments = match args::Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return exit::usage(&error),
    };
    exit::finish(commands::run(arguments.command))
}
