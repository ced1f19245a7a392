//! The html report from the command line: `check` and `fix`, and the browser that `--open` starts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::run::{Ran, caulk, run};

const LEAKY: &str = "#include <stdlib.h>

int load(int n) {
    char *p = malloc(8);
    if (!p)
        return -1;
    if (n > 3)
        return 1;
    free(p);
    return 0;
}
";

fn project() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("load.c"), LEAKY).expect("a file");
    folder
}

/// The page of the only finding.
fn page(folder: &Path) -> String {
    let entry = std::fs::read_dir(folder.join("report/finding")).expect("pages").next().expect("a page");
    std::fs::read_to_string(entry.expect("a file").path()).expect("UTF-8")
}

#[test]
fn fix_shows_its_patches_as_pages() {
    let folder = project();
    let ran = run(folder.path(), &["fix", "load.c", "--format", "html", "-o", "report"]).expect_code(0);
    assert_eq!(ran.stdout, "");
    let page = page(folder.path());
    for part in ["Why it is safe", "Copy patch", "--apply", "<code>        free(p);</code>"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let index = std::fs::read_to_string(folder.path().join("report/index.html")).expect("UTF-8");
    assert!(index.contains("data-repair=\"fixable\""), "{index}");
    let now = std::fs::read_to_string(folder.path().join("load.c")).expect("UTF-8");
    assert_eq!(now, LEAKY, "nothing is written without --apply");
}

#[test]
fn pages_of_applied_patches_show_the_source_as_it_was() {
    let folder = project();
    run(folder.path(), &["fix", "load.c", "--format", "html", "-o", "report", "--apply"]).expect_code(0);
    let page = page(folder.path());
    assert!(page.contains("already in the source"), "{page}");
    // Line 8 as it was analysed: `free` stands there now.
    let line = page.split("data-n=\"8\"").nth(1).expect("line 8");
    let code: String = line.chars().take(200).collect();
    assert!(code.contains("return") && !code.contains("free"), "{code}");
    let index = std::fs::read_to_string(folder.path().join("report/index.html")).expect("UTF-8");
    assert!(index.contains("data-repair=\"fixed\""), "{index}");
}

#[test]
fn fix_writes_into_a_file() {
    let folder = project();
    let ran = run(folder.path(), &["fix", "load.c", "-o", "fix.diff"]).expect_code(0);
    assert_eq!(ran.stdout, "");
    let diff = std::fs::read_to_string(folder.path().join("fix.diff")).expect("UTF-8");
    assert!(diff.contains("+        free(p);"), "{diff}");
}

/// Runs `check --open` with a folder that holds nothing but this `xdg-open`, before all others.
fn open(script: &str) -> (TempDir, Ran) {
    let folder = project();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    std::fs::write(bin.join("xdg-open"), script).expect("a script");
    std::fs::set_permissions(bin.join("xdg-open"), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut command = caulk(folder.path());
    command.args(["check", "load.c", "--format", "html", "-o", "report", "--open"]);
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default()));
    let ran = command.output().expect("the built caulk can be started").into();
    (folder, ran)
}

#[test]
fn open_starts_the_browser_and_can_do_without() {
    let (folder, ran) = open("#!/bin/sh\necho opening\necho \"$1\" > opened\n");
    let ran = ran.expect_code(1);
    assert_eq!(ran.stdout, "", "standard output is for the result");
    let opened = std::fs::read_to_string(folder.path().join("opened")).expect("it was called");
    assert!(folder.path().join(opened.trim()).is_file(), "{opened}");

    let (_folder, ran) = open("#!/bin/sh\nexit 3\n");
    let ran = ran.expect_code(1);
    assert!(ran.stderr.contains("could not open a browser"), "{}", ran.stderr);

    let folder = project();
    for command in ["check", "fix"] {
        let wrong = run(folder.path(), &[command, "load.c", "--open"]).expect_code(2);
        assert!(wrong.stderr.contains("--open is for --format html"), "{}", wrong.stderr);
    }
    let nowhere = run(folder.path(), &["fix", "load.c", "--format", "html"]).expect_code(2);
    assert!(nowhere.stderr.contains("-o FOLDER"), "{}", nowhere.stderr);
}
