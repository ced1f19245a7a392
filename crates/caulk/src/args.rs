//! What can be typed. The help texts here are also the man page.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

/// Finds memory leaks, double frees, uses after free and resource leaks in whole C programs.
#[derive(Debug, Parser)]
#[command(name = "caulk", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing found, or everything fixed
  1  findings
  2  could not do its work";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a completion script for a shell
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the man page, in roff
    Man,
}
