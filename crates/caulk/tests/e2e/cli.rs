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

#[test]
fn models_are_listed_with_the_projects_own() {
    let all = run(here(), &["models"]).expect_code(0);
    assert!(all.stdout.lines().any(|line| line.starts_with("fopen: allocates")), "{}", all.stdout);

    let project = tempfile::tempdir().expect("a folder");
    let file = project.path().join("caulk.toml");
    std::fs::write(&file, "[models.functions]\narena_new = { allocates = \"memory\" }\n").expect("writable");
    let own = run(project.path(), &["models", "-F", "arena_new"]).expect_code(0);
    assert!(own.stdout.starts_with("arena_new: allocates memory"), "{}", own.stdout);

    let unknown = run(project.path(), &["models", "-F", "arena_ne"]).expect_code(2);
    assert!(unknown.stderr.contains("did you mean `arena_new`?"), "{}", unknown.stderr);
}

#[test]
fn what_a_program_calls_and_no_model_describes_is_listed() {
    let project = tempfile::tempdir().expect("a folder");
    let program = "#include <stdlib.h>\nvoid *ring_new(void); void ring_put(void *r, char *p); int ring_len(int n);\n\
                   int f(void) { void *r = ring_new(); ring_put(r, malloc(1)); ring_put(r, 0); return ring_len(1); }\n";
    std::fs::write(project.path().join("ring.c"), program).expect("writable");
    let missing = run(project.path(), &["models", "--missing", "ring.c"]).expect_code(0);
    assert_eq!(
        missing.stdout,
        "     2 calls  ring_put: assumed to keep arguments 0, 1\n     1 calls  ring_new: its result is not followed\n"
    );
    let used = run(project.path(), &["models", "ring.c"]).expect_code(0);
    assert_eq!(used.stdout.lines().count(), 1, "{}", used.stdout);
    assert!(used.stdout.starts_with("malloc: "), "{}", used.stdout);
    run(project.path(), &["models", "--missing"]).expect_code(2);
}

#[test]
fn wrong_configuration_is_an_error_with_file_line_and_suggestion() {
    let project = tempfile::tempdir().expect("a folder");
    std::fs::write(project.path().join("caulk.toml"), "[rules]\nmemory-leek = \"off\"\n").expect("writable");
    let wrong = run(project.path(), &["models"]).expect_code(2);
    assert!(wrong.stderr.contains("caulk.toml:2: rules.memory-leek"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("did you mean `memory-leak`?"), "{}", wrong.stderr);

    let missing = run(project.path(), &["models", "--config", "nowhere.toml"]).expect_code(2);
    assert!(missing.stderr.contains("cannot read nowhere.toml"), "{}", missing.stderr);
}
