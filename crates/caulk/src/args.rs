//! What can be typed. The help texts here are also the man page.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
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
    /// Find leaks, double frees, uses after free and their like in a program
    Check(CheckArgs),
    /// Repair what `check` finds, with patches that are proved before they are shown
    Fix(FixArgs),
    /// Record the compilers and linkers of a build, for `check` to use
    Capture(CaptureArgs),
    /// Compile and link as clang does, and make programs that reclaim the memory they lose
    Cc(CcArgs),
    /// Run a build with `caulk cc` as its compiler
    Build(BuildArgs),
    /// Explain a rule, or a finding of the last `check`
    Explain(ExplainArgs),
    /// Print what caulk makes of a program, readably
    Dump(DumpArgs),
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

/// How a project is compiled and loaded.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Compile and analyse this many units at a time; 0 means one for each core
    #[arg(short, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) jobs: usize,
    /// Keep compiled units in this folder, not in the project's .caulk/
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub(crate) cache: Option<PathBuf>,
    /// Neither use nor keep compiled units
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Read this file, not the project's caulk.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Compiler flags for .c files that are named alone
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) flags: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Folders with a compile_commands.json (there, in build/ or above), compile databases, or .c files
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// How to say it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write there instead of to standard output; a folder for html
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Open the html report in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Show in the html report what runs of a program made by `caulk cc` lost, from a file that
    /// `CAULK_RT=report=FILE` made it write; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) runtime: Vec<PathBuf>,
    /// Also report what is held until the process ends, or lost just before
    #[arg(long)]
    pub(crate) at_exit: bool,
    /// Print allocation sites by class, how they were decided, and where the time went
    #[arg(long)]
    pub(crate) stats: bool,
    /// Report only findings that are not in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the findings of this run to a file for --baseline
    #[arg(long, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Report only what touches functions that were changed since a git revision
    #[arg(long, value_name = "REV")]
    pub(crate) changed_since: Option<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, with the path drawn into the source
    Text,
    Json,
    /// SARIF 2.1.0
    Sarif,
    /// Workflow annotations of GitHub
    Github,
    /// Code Climate, as GitLab reads it
    Codeclimate,
    /// A folder of pages, with -o FOLDER
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct FixArgs {
    /// Folders with a compile_commands.json (there, in build/ or above), compile databases, or .c files
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write the patched files
    #[arg(long)]
    pub(crate) apply: bool,
    /// Make one git commit for each finding that is repaired
    #[arg(long, conflicts_with = "apply")]
    pub(crate) commit: bool,
    /// Ask before each patch
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Repair only this finding; may be repeated
    #[arg(long = "finding", value_name = "FINGERPRINT")]
    pub(crate) findings: Vec<String>,
    /// Answer the alarms of another tool: SARIF, Infer's report.json, clang's plist, gcc's JSON, the log of a
    /// sanitizer or of Valgrind, the report of a program made by `caulk cc`; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Vec<PathBuf>,
    /// Show in the html report what runs of a program made by `caulk cc` lost, from a file that
    /// `CAULK_RT=report=FILE` made it write; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) runtime: Vec<PathBuf>,
    /// Run this command in a copy of the project with all patches; those that make it fail are dropped
    #[arg(long, value_name = "COMMAND")]
    pub(crate) validate: Option<String>,
    /// How to say it
    #[arg(short, long, value_enum, default_value_t = FixFormat::Text)]
    pub(crate) format: FixFormat,
    /// Write there instead of to standard output; a folder for html
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Open the html report in the browser
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FixFormat {
    /// A unified diff, and a line for each finding on standard error
    Text,
    Json,
    /// SARIF 2.1.0 with `fixes`
    Sarif,
    /// A folder of pages with the patches side by side, with -o FOLDER
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Where to run the build and keep its record
    #[arg(short = 'C', long = "directory", value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// The build, as you would type it
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Which allocation sites of a program are guarded. Without an option: the leaks that `check` reports and `fix` has no
/// patch for.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// Guard every leak that `check` reports, also those that `fix` could repair
    #[arg(long)]
    pub(crate) all_leaks: bool,
    /// Guard what another tool reports as a leak, in any format that `fix --from` reads; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Vec<PathBuf>,
    /// Guard the allocations listed in a file, FILE:LINE or FILE:LINE:COLUMN on each line; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) sites: Vec<PathBuf>,
    /// The compiler to stand in for [default: clang-19]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compiler: Option<PathBuf>,
    /// Guard all allocations there are: for tests
    #[arg(long, hide = true)]
    pub(crate) guard_everything: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CcArgs {
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    /// The compiler's own arguments; caulk's come before them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    /// Where to run the build
    #[arg(short = 'C', long = "directory", value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// The build, as you would type it
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A rule, such as memory-leak, or the fingerprint of a finding
    #[arg(value_name = "RULE|FINGERPRINT")]
    pub(crate) what: String,
    /// Print the finding's graph for Graphviz
    #[arg(long)]
    pub(crate) dot: bool,
    /// Where `check` kept its findings: its --cache
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// What to print
    #[arg(value_enum)]
    pub(crate) what: DumpKind,
    /// A .c file, a compile database, or a folder that has one
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Only this function
    pub(crate) function: Option<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpKind {
    /// The intermediate representation; without FUNCTION it can be read back
    Ir,
    /// Which function calls which
    Callgraph,
    /// The outcomes of a function: what it returns when, what it writes, allocates, releases and uses
    Summary,
    /// Where a function's pointers go: allocations, releases, calls through pointers, cells
    Pointsto,
    /// The functions that allocate, release, take what they are given, or never return
    Roles,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Only what this program uses: folders, compile databases or .c files
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// List instead what the program calls and no model describes: what objects flow into first
    #[arg(long)]
    pub(crate) missing: bool,
    /// Only this function; may be repeated
    #[arg(short = 'F', long = "function", value_name = "NAME", conflicts_with_all = ["paths", "missing"])]
    pub(crate) functions: Vec<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}
