//! One module per subcommand; each takes its arguments and says how it went.

use anyhow::Result;

use crate::args::Command;
use crate::exit::Outcome;

mod build;
mod capture;
mod cc;
mod check;
mod dump;
mod explain;
mod fix;
mod models;
mod pages;
mod shell;

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Fix(args) => fix::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Cc(args) => cc::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Models(args) => models::run(&args),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man => shell::man(),
    }
}
