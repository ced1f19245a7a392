//! One module per subcommand; each takes its arguments and says how it went.

use anyhow::Result;

use crate::args::Command;
use crate::exit::Outcome;

mod models;
mod shell;

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Models(args) => models::run(&args),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man => shell::man(),
    }
}
