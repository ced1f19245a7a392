//! The harness itself, with stand-ins for caulk that do known things.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use caulk_differential::generate;
use caulk_differential::run::{Runner, error_kinds, has_errors};

/// Runs the binary on a few programs with this shell script in the place of caulk.
fn with_tool(script: &str, programs: usize) -> (i32, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = folder.path().join("tool");
    std::fs::write(&tool, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let output = Command::new(env!("CARGO_BIN_EXE_caulk-differential"))
        .args(["--programs", &programs.to_string(), "--seed", "1", "--caulk"])
        .arg(&tool)
        .arg("--out")
        .arg(folder.path().join("out"))
        .output()
        .expect("the harness runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn a_tool_that_does_nothing_misses_and_harms_nothing() {
    let (code, text) = with_tool("exit 0", 4);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("missed") && text.contains("clean, left alone") && !text.contains("UNSAFE"), "{text}");
}

#[test]
fn patches_that_break_programs_are_called_unsafe() {
    let (code, text) = with_tool("echo 'syntax error' >> program.c; exit 0", 2);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("UNSAFE: does not compile"), "{text}");
    let (code, text) = with_tool("sed -i 's/total %d/sum %d/' program.c; exit 0", 2);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("UNSAFE: changed output"), "{text}");
}

#[test]
fn a_tool_that_fails_is_not_taken_for_a_clean_run() {
    let (_, text) = with_tool("exit 2", 2);
    assert!(text.contains("caulk failed"), "{text}");
}

fn run(runner: &Runner, folder: &Path, source: &str, bits: usize) -> Vec<String> {
    let file = folder.join("t.c");
    std::fs::write(&file, source).expect("written");
    let binary = runner.build(&file).expect("compiles");
    error_kinds(&runner.run(&binary, bits, false).expect("runs"))
}

#[test]
fn errors_are_seen_on_the_inputs_and_failures_that_show_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let runner = Runner::new("clang-19", folder.path()).expect("clang works");
    let program = |body: &str| {
        format!("#include <stdlib.h>\nint main(int c, char **v) {{ int n = atoi(v[1]); {body} return 0; }}\n")
    };
    let errors = |body: &str| run(&runner, folder.path(), &program(body), 2);
    assert!(errors("char *p = malloc(1); free(p);").is_empty());
    assert_eq!(errors("char *p = malloc(1); if (n != 3) free(p);"), ["leak"]);
    assert_eq!(errors("char *p = malloc(1); free(p); if (n == 2) free(p);"), ["double-free"]);
    assert_eq!(errors("char *p = calloc(1, 1); if (p) { free(p); if (*p) n++; }"), ["use-after-free"]);
    assert_eq!(errors("char *p = malloc(1), *q = malloc(1); if (!q) return 1; free(p); free(q);"), ["leak"]);
    assert_eq!(errors("while (n == 1);"), ["timeout"]);
}

#[test]
fn programs_meant_to_be_clean_are_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let runner = Runner::new("clang-19", folder.path()).expect("clang works");
    let clean: Vec<_> = (1..).map(generate).filter(|program| program.mutations.is_empty()).take(4).collect();
    for program in clean {
        let file = folder.path().join(format!("p{}.c", program.seed));
        std::fs::write(&file, &program.source).expect("written");
        let binary = runner.build(&file).expect("compiles");
        let behaviour = runner.run(&binary, program.bits, true).expect("runs");
        assert!(!has_errors(&behaviour), "program {}: {:?}", program.seed, error_kinds(&behaviour));
    }
}
