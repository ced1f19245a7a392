//! The GitHub Action and the pre-commit hook: their own commands, run as their hosts run them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::run::Ran;

const GOOD: &str = "int load(int n) {\n    return n;\n}\n";
const LEAKY: &str = "#include <stdlib.h>\nint load(int n) {\n    char *p = malloc(8);\n    return n + !p;\n}\n";

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The script of a step of the action.
fn script(step: &str) -> String {
    let action = file("action.yml");
    let body = action.split("    - name: ").find(|part| part.starts_with(&format!("{step}\n"))).expect("the step");
    let run = body.split("      run: ").nth(1).expect("a script");
    match run.strip_prefix("|\n") {
        Some(lines) => lines.lines().map(|line| format!("{}\n", line.trim_start_matches("        "))).collect(),
        None => run.lines().next().unwrap_or_default().to_owned(),
    }
}

/// Runs a script as `shell: bash` does, with the built caulk in front of all others.
fn bash(folder: &Path, script: &str, env: &[(&str, &str)]) -> Ran {
    let bin = PathBuf::from(env!("CARGO_BIN_EXE_caulk"));
    let bin = bin.parent().expect("a folder").display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(folder);
    command.env("PATH", path).env("NO_COLOR", "1").envs(env.iter().copied());
    command.output().expect("bash is there").into()
}

fn project(source: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("load.c"), source).expect("a file");
    std::fs::write(folder.path().join("Makefile"), "load.o: load.c\n\t$(CC) -c load.c\n").expect("a file");
    folder
}

/// The action's steps in a project: what `check` said, and the code it left for the last step.
fn action(source: &str) -> (TempDir, Ran, String) {
    let folder = project(source);
    let here = folder.path().display().to_string();
    let output = format!("{here}/output");
    bash(folder.path(), &script("Record the build"), &[("BUILD", "make && true")]).expect_code(0);
    let env = [("ARGUMENTS", "--jobs 1"), ("RUNNER_TEMP", &here), ("GITHUB_OUTPUT", &output)];
    let ran = bash(folder.path(), &script("Check"), &env);
    let left = std::fs::read_to_string(&output).unwrap_or_default();
    (folder, ran, left)
}

#[test]
fn the_action_uploads_annotates_and_fails_in_its_last_step() {
    let (folder, ran, left) = action(LEAKY);
    let ran = ran.expect_code(0);
    assert!(ran.stdout.starts_with("::error file=load.c,line=3,"), "{}", ran.stdout);
    assert_eq!(left, "code=1\n");
    let sarif = std::fs::read_to_string(folder.path().join("caulk.sarif")).expect("the file to upload");
    assert!(sarif.contains("\"memory-leak\""), "{sarif}");
    assert!(file("action.yml").contains("if: steps.check.outputs.code == '1'"));
    bash(folder.path(), &script("Findings fail the job"), &[]).expect_code(1);

    let (folder, ran, left) = action(GOOD);
    assert_eq!(ran.expect_code(0).stdout, "");
    assert_eq!(left, "code=0\n");
    assert!(folder.path().join("caulk.sarif").is_file(), "no findings are uploaded, too: they close old alerts");
}

#[test]
fn the_action_fails_at_once_where_caulk_cannot_work() {
    let folder = project(GOOD);
    let here = folder.path().display().to_string();
    let output = format!("{here}/output");
    let wrong = [("ARGUMENTS", "--no-such-option"), ("RUNNER_TEMP", &*here), ("GITHUB_OUTPUT", &*output)];
    let ran = bash(folder.path(), &script("Check"), &wrong);
    assert_ne!(ran.code, 0);
    assert_eq!(std::fs::read_to_string(&output).expect("the code is left"), "code=2\n");
    let broken = bash(folder.path(), &script("Record the build"), &[("BUILD", "make no-such-target")]);
    assert_ne!(broken.code, 0);
}

#[test]
fn the_hook_checks_what_is_about_to_be_committed() {
    let hooks = file(".pre-commit-hooks.yaml");
    let entry = hooks.lines().find_map(|line| line.trim().strip_prefix("entry: ")).expect("an entry");
    let folder = project(GOOD);
    let git = |arguments: &str| {
        let script = format!("git -c user.name=x -c user.email=x@example.org {arguments}");
        bash(folder.path(), &script, &[]).expect_code(0)
    };
    let here = folder.path().display();
    let database = format!("[{{\"directory\": \"{here}\", \"file\": \"load.c\", \"command\": \"cc -c load.c\"}}]");
    std::fs::write(folder.path().join("compile_commands.json"), database).expect("a file");
    git("init -q");
    git("add .");
    git("commit -qm one");
    bash(folder.path(), entry, &[]).expect_code(0);

    std::fs::write(folder.path().join("load.c"), LEAKY).expect("a file");
    git("add load.c");
    let ran = bash(folder.path(), entry, &[]).expect_code(1);
    assert!(ran.stdout.contains("error[memory-leak]"), "{}", ran.stdout);
    // What was there before is not this commit's business.
    git("commit -qm two");
    bash(folder.path(), entry, &[]).expect_code(0);
}
