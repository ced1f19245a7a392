//! `caulk completions` and `caulk man`: both read off the command line definition.

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Outcome;
use crate::output;

pub(super) fn completions(shell: Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "caulk", &mut script);
    print(script)
}

/// The page of `caulk`, then that of each subcommand as a section of it.
pub(super) fn man() -> Result<Outcome> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        page.extend_from_slice(format!(".SH caulk {}\n", subcommand.get_name()).as_bytes());
        let mut parts = Vec::new();
        let section = clap_mangen::Man::new(subcommand.clone());
        section.render_synopsis_section(&mut parts)?;
        section.render_description_section(&mut parts)?;
        section.render_options_section(&mut parts)?;
        // Its sections are subsections here.
        page.extend_from_slice(String::from_utf8_lossy(&parts).replace(".SH ", ".SS ").as_bytes());
    }
    print(page)
}

fn print(text: Vec<u8>) -> Result<Outcome> {
    output::print(&String::from_utf8(text).context("the text is not UTF-8")?)?;
    Ok(Outcome::Clean)
}
