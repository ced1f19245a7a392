//! The command line itself: help, wrong usage, exit codes, what goes to which stream.

use std::path::Path;
use std::process::Stdio;

use crate::run::{caulk, run};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn help_goes_to_stdout_and_names_the_exit_codes() {
    let help = run(here(), &["--help"]).expect_code(0);
    assert!(help.stdout.contains("Exit codes:"), "{}", help.stdout);
    assert_eq!(help.stderr, "");
}

#[test]
fn the_version_is_the_packages() {
    let version = run(here(), &["--version"]).expect_code(0);
    assert_eq!(version.stdout, format!("caulk {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_exit_code_2_with_a_suggestion() {
    let wrong = run(here(), &["completion", "bash"]).expect_code(2);
    assert!(wrong.stderr.contains("completions"), "{}", wrong.stderr);
    assert_eq!(wrong.stdout, "");
    run(here(), &[]).expect_code(2);
}

#[test]
fn completions_and_man_page_know_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(here(), &["completions", shell]).expect_code(0);
        assert!(script.stdout.contains("completions"), "{shell}");
    }
    let page = run(here(), &["man"]).expect_code(0);
    assert!(page.stdout.contains(".TH caulk 1"), "{}", page.stdout);
    assert!(page.stdout.contains("caulk completions"), "{}", page.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ran = caulk(here())
        .args(["completions", "zsh"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("the built caulk can be started");
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    assert_eq!(ran.status.code(), Some(0));
}
