//! A build that is recorded by the built `caulk`, and ends before its time.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::run::{Ran, caulk, run};

// Two commands of make, no shell between: one that just runs another program may take the signal for its business.
const BUILD: &str = "all: a.o hang b.o\nhang:\n\ttouch waiting\n\tsleep 600\n";

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.c"), "#include <stdlib.h>\nvoid f(void) { malloc(1); }\n").unwrap();
    std::fs::write(folder.path().join("b.c"), "int b;\n").unwrap();
    std::fs::write(folder.path().join("Makefile"), BUILD).unwrap();
    folder
}

/// Starts the build in a process group of its own, as a shell does, and waits until it hangs.
fn started(folder: &Path) -> std::process::Child {
    let mut command = caulk(folder);
    command.args(["capture", "--", "make", "-s"]).process_group(0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    while !folder.join("waiting").exists() {
        assert!(Instant::now() < patience, "the build never came to its second step");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn kill(words: &[&str]) {
    assert!(Command::new("kill").args(words).status().unwrap().success());
}

#[test]
fn control_c_ends_the_build_and_keeps_what_it_compiled() {
    let folder = project();
    let child = started(folder.path());
    // What the terminal does: everybody in the group gets it.
    kill(&["-INT", "--", &format!("-{}", child.id())]);
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert!(ran.code == 130 || ran.code == 2, "{}: {}", ran.code, ran.stderr);
    assert!(ran.stderr.contains("1 units recorded"), "{}", ran.stderr);
    assert!(ran.stderr.contains("what it compiled before is recorded"), "{}", ran.stderr);
    let checked = run(folder.path(), &["check", "."]).expect_code(1);
    assert!(checked.stdout.contains("memory-leak"), "{}", checked.stdout);
}

#[test]
fn what_a_killed_capture_had_seen_is_taken_over_by_the_next() {
    let folder = project();
    let mut child = started(folder.path());
    let group = format!("-{}", child.id());
    kill(&["-KILL", "--", &group]);
    child.wait().unwrap();
    assert!(!folder.path().join("compile_commands.json").exists());
    let next = run(folder.path(), &["capture", "--", "make", "-s", "b.o"]).expect_code(0);
    assert!(next.stderr.contains("2 units recorded"), "{}", next.stderr);
}
