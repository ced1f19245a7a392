//! What can be typed. The help texts here are also the man page.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
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
    /// List what is known of library functions: what they allocate, release and keep
    Models(ModelsArgs),
    /// Print a completion script for a shell
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the man page, in roff
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Only these functions
    #[arg(value_name = "FUNCTION")]
    pub(crate) functions: Vec<String>,
    /// Read this file, not the project's caulk.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
