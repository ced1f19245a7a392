//! `caulk fix`: what it prints, writes, commits, asks and answers.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Ran, caulk, run};

const TWO_LEAKS: &str = "\
#include <stdlib.h>
#include <string.h>

int first(const char *s) {
    char *copy = strdup(s);
    if (!copy)
        return -1;
    if (copy[0] == 'a')
        return 1;
    free(copy);
    return 0;
}

int second(const char *s) {
    char *twin = strdup(s);
    if (!twin)
        return -1;
    if (twin[0] == 'b')
        return 2;
    free(twin);
    return 0;
}
";

fn project(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.c"), text).expect("a file");
    folder
}

fn text(folder: &TempDir) -> String {
    std::fs::read_to_string(folder.path().join("a.c")).expect("the file is there")
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

/// Feeds a command on its standard input.
fn feed(mut command: Command, input: &str) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it can be started");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it listens");
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn the_diff_applies_and_nothing_else_is_written() {
    let folder = project(TWO_LEAKS);
    let ran = run(folder.path(), &["fix", "--no-cache", "a.c"]).expect_code(0);
    assert_eq!(text(&folder), TWO_LEAKS);
    assert!(ran.stderr.contains("memory-leak of `copy` in `first`: fixed: "), "{}", ran.stderr);
    let mut patch = Command::new("patch");
    patch.current_dir(folder.path()).arg("-p1");
    assert_eq!(feed(patch, &ran.stdout).code, 0);
    assert!(text(&folder).contains("        free(copy);\n        return 1;\n"), "{}", text(&folder));
    run(folder.path(), &["check", "--no-cache", "a.c"]).expect_code(0);
}

#[test]
fn the_diff_of_a_file_below_applies_from_here() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("src")).expect("a folder");
    std::fs::write(folder.path().join("src/a.c"), TWO_LEAKS).expect("a file");
    let ran = run(folder.path(), &["fix", "--no-cache", "src/a.c"]).expect_code(0);
    assert!(ran.stdout.starts_with("--- a/src/a.c\n+++ b/src/a.c\n"), "{}", ran.stdout);
}

/// A shell that came by a link says so in `PWD`; the database names the folder as it is.
#[test]
fn a_project_behind_a_link_is_repaired() {
    let folder = project(TWO_LEAKS);
    let real = folder.path().canonicalize().expect("the folder is there");
    let directory = real.display();
    let entry = format!(r#"[{{"directory": "{directory}", "file": "a.c", "arguments": ["cc", "-c", "a.c"]}}]"#);
    std::fs::write(real.join("compile_commands.json"), entry).expect("a file");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let mut command = caulk(&link);
    command.env("PWD", &link).args(["fix", "--no-cache"]);
    let ran = Ran::from(command.output().expect("it can be started")).expect_code(0);
    assert!(ran.stderr.contains("memory-leak of `copy` in `first`: fixed: "), "{}", ran.stderr);
}

#[test]
fn apply_writes_and_a_second_run_finds_nothing() {
    let folder = project(TWO_LEAKS);
    run(folder.path(), &["fix", "--apply", "--no-cache", "a.c"]).expect_code(0);
    assert!(text(&folder).contains("free(twin);\n        return 2;"), "{}", text(&folder));
    let again = run(folder.path(), &["fix", "--apply", "--no-cache", "a.c"]).expect_code(0);
    assert_eq!((again.stdout.as_str(), again.stderr.as_str()), ("", ""));
}

#[test]
fn one_finding_alone() {
    let folder = project(TWO_LEAKS);
    let all = json(&run(folder.path(), &["fix", "--no-cache", "--format", "json", "a.c"]).expect_code(0));
    let print = |at: usize| all["patches"][at]["fingerprint"].as_str().expect("a fingerprint").to_owned();
    run(folder.path(), &["fix", "--no-cache", "--apply", "--finding", &print(1), "a.c"]).expect_code(0);
    assert!(text(&folder).contains("free(twin);\n        return 2;"));
    assert!(!text(&folder).contains("free(copy);\n        return 1;"));
}

/// Applies the edits of all patches to the original text at once.
fn edited(original: &str, edits: &mut [(u64, u64, String)]) -> String {
    edits.sort_by_key(|edit| (edit.0, edit.1));
    let mut text = original.to_owned();
    for (start, end, replacement) in edits.iter().rev() {
        text.replace_range(*start as usize..*end as usize, replacement);
    }
    text
}

#[test]
fn edits_are_in_positions_of_the_original() {
    let folder = project(TWO_LEAKS);
    let said = json(&run(folder.path(), &["fix", "--no-cache", "--format", "json", "a.c"]).expect_code(0));
    let mut edits = Vec::new();
    for edit in
        said["patches"].as_array().expect("patches").iter().flat_map(|patch| patch["edits"].as_array().expect("edits"))
    {
        let number = |key: &str| edit[key].as_u64().expect("a number");
        let start = TWO_LEAKS[..number("start") as usize].matches('\n').count() as u64 + 1;
        assert_eq!(number("start_line"), start);
        edits.push((number("start"), number("end"), edit["replacement"].as_str().expect("text").to_owned()));
    }
    run(folder.path(), &["fix", "--no-cache", "--apply", "a.c"]).expect_code(0);
    assert_eq!(edited(TWO_LEAKS, &mut edits), text(&folder));
}

#[test]
fn sarif_has_a_fix_for_each_result() {
    let folder = project(TWO_LEAKS);
    let said = json(&run(folder.path(), &["fix", "--no-cache", "--format", "sarif", "a.c"]).expect_code(0));
    let results = said["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    for (result, line) in results.iter().zip([9, 19]) {
        let replacements = &result["fixes"][0]["artifactChanges"][0]["replacements"];
        let lines: Vec<u64> = replacements
            .as_array()
            .expect("replacements")
            .iter()
            .map(|one| one["deletedRegion"]["startLine"].as_u64().expect("a line"))
            .collect();
        assert!(lines.contains(&line), "{lines:?}");
        assert!(lines.iter().all(|one| one.abs_diff(line) <= 1), "{lines:?}");
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]);
    let ran: Ran = command.args(arguments).output().expect("git can be started").into();
    assert_eq!(ran.code, 0, "git {arguments:?}: {}", ran.stderr);
    ran.stdout
}

fn repository(text: &str) -> TempDir {
    let folder = project(text);
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["config", "user.name", "Someone"]);
    git(folder.path(), &["config", "user.email", "someone@example.org"]);
    git(folder.path(), &["add", "a.c"]);
    git(folder.path(), &["commit", "-q", "-m", "First"]);
    folder
}

#[test]
fn a_commit_for_each_finding() {
    let folder = repository(TWO_LEAKS);
    run(folder.path(), &["fix", "--no-cache", "--commit", "a.c"]).expect_code(0);
    let subjects = git(folder.path(), &["log", "--format=%s"]);
    assert_eq!(subjects, "second: fix memory leak of twin\nfirst: fix memory leak of copy\nFirst\n");
    let body = git(folder.path(), &["log", "-1", "--format=%B"]);
    assert!(body.contains("a.c:"), "the path is there: {body}");
    assert!(body.lines().all(|line| line.chars().count() <= 76), "{body}");
    let stat = git(folder.path(), &["show", "--stat", "--format=", "HEAD"]);
    assert!(stat.contains("1 file changed, 3 insertions(+), 1 deletion(-)"), "{stat}");
    assert_eq!(git(folder.path(), &["status", "--porcelain"]), "");
}

#[test]
fn nothing_is_committed_over_work_in_progress() {
    let folder = repository(TWO_LEAKS);
    let changed = format!("{TWO_LEAKS}/* more */\n");
    std::fs::write(folder.path().join("a.c"), &changed).expect("a file");
    let ran = run(folder.path(), &["fix", "--no-cache", "--commit", "a.c"]).expect_code(2);
    assert!(ran.stderr.contains("not committed"), "{}", ran.stderr);
    assert_eq!(text(&folder), changed);
}

#[test]
fn a_commit_needs_a_repository() {
    let folder = project(TWO_LEAKS);
    let mut command = caulk(folder.path());
    command.env("GIT_CEILING_DIRECTORIES", folder.path().parent().expect("a parent"));
    let ran: Ran = command.args(["fix", "--no-cache", "--commit", "a.c"]).output().expect("it runs").into();
    let ran = ran.expect_code(2);
    assert!(ran.stderr.contains("git repository"), "{}", ran.stderr);
    assert_eq!(text(&folder), TWO_LEAKS);
}

fn ask(folder: &TempDir, answers: &str) -> Ran {
    let mut command = caulk(folder.path());
    command.args(["fix", "--no-cache", "--apply", "--interactive", "a.c"]);
    feed(command, answers)
}

#[test]
fn questions_are_answered() {
    let folder = project(TWO_LEAKS);
    let ran = ask(&folder, "p\nn\ny\n").expect_code(1);
    assert!(ran.stderr.contains("returns here without releasing it"), "the path is shown: {}", ran.stderr);
    assert!(!text(&folder).contains("free(copy);\n        return 1;"), "{}", text(&folder));
    assert!(text(&folder).contains("free(twin);\n        return 2;"), "{}", text(&folder));
    assert!(ran.stderr.contains("in `first`: not fixed: declined"), "{}", ran.stderr);
}

#[test]
fn quitting_keeps_what_was_taken() {
    let folder = project(TWO_LEAKS);
    ask(&folder, "y\nq\n").expect_code(1);
    assert!(text(&folder).contains("free(copy);\n        return 1;"));
    assert!(!text(&folder).contains("free(twin);\n        return 2;"));
    let folder = project(TWO_LEAKS);
    ask(&folder, "").expect_code(1);
    assert_eq!(text(&folder), TWO_LEAKS, "the end of input is a no");
}

#[test]
fn validation_drops_what_breaks_the_tests() {
    let folder = project(TWO_LEAKS);
    let test = "test $(grep -c 'free(twin)' a.c) = 1";
    let ran = run(folder.path(), &["fix", "--no-cache", "--apply", "--validate", test, "a.c"]).expect_code(1);
    assert!(text(&folder).contains("free(copy);\n        return 1;"), "{}", text(&folder));
    assert!(!text(&folder).contains("free(twin);\n        return 2;"), "{}", text(&folder));
    assert!(ran.stderr.contains("dropped"), "{}", ran.stderr);
    assert!(ran.stderr.contains("in `second`: not fixed: "), "{}", ran.stderr);
}

#[test]
fn validation_needs_tests_that_pass() {
    let folder = project(TWO_LEAKS);
    let ran = run(folder.path(), &["fix", "--no-cache", "--apply", "--validate", "false", "a.c"]).expect_code(2);
    assert!(ran.stderr.contains("fails without any patch"), "{}", ran.stderr);
    assert_eq!(text(&folder), TWO_LEAKS);
}

/// The logs that the tools wrote about `src/notes.c`.
fn logs() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../alarms/tests/logs");
    for entry in std::fs::read_dir(&from).expect("the logs").flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("a log");
        }
    }
    std::fs::create_dir(folder.path().join("src")).expect("a folder");
    std::fs::copy(from.join("src/notes.c"), folder.path().join("src/notes.c")).expect("the program");
    folder
}

#[test]
fn alarms_of_other_tools_are_answered() {
    let folder = logs();
    let leak = "confirmed and fixed: release `copy` before the return\n";
    let double = "confirmed and fixed: delete the first release of `word`\n";
    let late = "confirmed and fixed: read `*number` before the release\n";
    for (log, answers) in [
        ("asan-leak.txt", &[leak][..]),
        ("lsan.txt", &[leak]),
        ("asan-double-free.txt", &[double]),
        ("asan-use-after-free.txt", &[late]),
        ("valgrind-leak.txt", &[leak]),
        ("valgrind-double-free.txt", &[double]),
        ("valgrind-use-after-free.txt", &[late]),
        ("valgrind-leak.xml", &[leak]),
        ("valgrind-double-free.xml", &[double]),
        ("valgrind-use-after-free.xml", &[late]),
        ("gcc.json", &[leak, double, late]),
        ("gcc.sarif", &[leak, double]),
        ("clang.plist", &[leak, double, late]),
        ("clang.sarif", &[leak, double, late]),
    ] {
        let ran = run(folder.path(), &["fix", "--no-cache", "--from", log, "src/notes.c"]).expect_code(0);
        let lines: Vec<&str> = ran.stderr.split_inclusive('\n').filter(|line| !line.contains("passed over")).collect();
        assert_eq!(lines.len(), answers.len(), "{log}: {}", ran.stderr);
        for (line, answer) in lines.iter().zip(answers) {
            assert!(line.starts_with(log) && line.ends_with(answer), "{log}: {line}");
        }
        assert_eq!(ran.stdout.matches("@@ ").count(), answers.len(), "only what the log names: {}", ran.stdout);
    }
}

/// `load` returns -1, and `main` only leaves.
const ON_THE_WAY_OUT: &str = "\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int load(const char *path) {
    char *copy = strdup(path);
    if (copy && *copy == '-')
        return -1;
    free(copy);
    return 0;
}
int main(int argc, char **argv) {
    char line[80];
    if (argc > 1 && load(argv[1]) < 0)
        return 1;
    while (fgets(line, 80, stdin))
        puts(line);
    return 0;
}
";

#[test]
fn what_is_lost_on_the_way_out_is_left_alone() {
    let folder = project(ON_THE_WAY_OUT);
    let ran = run(folder.path(), &["fix", "--no-cache", "a.c"]).expect_code(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.contains("not fixed")), ("", false), "{}", ran.stderr);
    let log = "==1==ERROR: LeakSanitizer: detected memory leaks\n\n\
        Direct leak of 3 byte(s) in 1 object(s) allocated from:\n    \
        #0 0x55d0 in strdup (a+0x1)\n    #1 0x55d1 in load a.c:5:18\n    #2 0x55d2 in main a.c:13:21\n\n\
        SUMMARY: LeakSanitizer: 3 byte(s) leaked in 1 allocation(s).\n";
    std::fs::write(folder.path().join("lsan.txt"), log).expect("a file");
    let ran = run(folder.path(), &["fix", "--no-cache", "--from", "lsan.txt", "a.c"]).expect_code(1);
    assert_eq!(ran.stdout, "");
    let answer = "confirmed, no safe patch, because it is lost just before the process ends";
    assert!(ran.stderr.contains(answer), "{}", ran.stderr);
}

#[test]
fn false_and_foreign_alarms_are_told() {
    let folder = logs();
    let arguments = ["fix", "--no-cache", "--from", "infer.json", "--format", "json", "src/notes.c"];
    let ran = run(folder.path(), &arguments).expect_code(1);
    let said = json(&ran);
    let answers: Vec<&str> = said["alarms"]
        .as_array()
        .expect("alarms")
        .iter()
        .map(|alarm| alarm["answer"].as_str().expect("a word"))
        .collect();
    assert_eq!(answers, ["fixed", "fixed", "no-error", "not-located"]);
    assert!(ran.stderr.contains("not an error, because "), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("could not be located: nothing of the program is at src/removed.c:5"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("1 alarm about other things"), "{}", ran.stderr);
}

#[test]
fn a_log_that_cannot_be_read_is_an_error() {
    let folder = logs();
    std::fs::write(folder.path().join("bad.json"), "{\"runs\": [").expect("a file");
    for (log, said) in
        [("bad.json", "bad.json: not valid JSON"), ("missing.txt", "missing.txt"), ("src/notes.c", "no report of")]
    {
        let ran = run(folder.path(), &["fix", "--no-cache", "--from", log, "src/notes.c"]).expect_code(2);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

const GRAMMAR: &str = "\
%{
#include <stdlib.h>
#include <string.h>
int word(const char *s);
%}
%%
line: WORD { $$ = word($1); }
%%
int word(const char *s) {
    char *copy = strdup(s);
    if (!copy)
        return -1;
    if (copy[0] == 'a')
        return 1;
    free(copy);
    return 0;
}
";

/// What a parser generator makes of it.
const MADE: &str = "\
#line 2 \"parse.y\"
#include <stdlib.h>
#include <string.h>
int word(const char *s);
#line 6 \"parse.c\"
int state;
#line 8 \"parse.y\"

int word(const char *s) {
    char *copy = strdup(s);
    if (!copy)
        return -1;
    if (copy[0] == 'a')
        return 1;
    free(copy);
    return 0;
}
#line 19 \"parse.c\"
int parse(const char *text) {
    int value;
#line 7 \"parse.y\"
    { value = word(text); }
#line 24 \"parse.c\"
    return value + state;
}
";

fn grammar(written: &str, made: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("parse.y"), written).expect("a file");
    std::fs::write(folder.path().join("parse.c"), made).expect("a file");
    folder
}

#[test]
fn what_was_written_in_a_grammar_is_patched_there() {
    // Who made the file elsewhere left a path of that place in it.
    for made in [MADE.to_owned(), MADE.replace("\"parse.y\"", "\"/not/here/src/parse.y\"")] {
        let folder = grammar(GRAMMAR, &made);
        let ran = run(folder.path(), &["fix", "--no-cache", "--apply", "--format", "json", "parse.c"]).expect_code(0);
        let patch = &json(&ran)["patches"][0];
        assert!(patch["diff"].as_str().is_some_and(|diff| diff.starts_with("--- a/parse.y\n")), "{patch}");
        let why = patch["why_safe"].as_array().and_then(|why| why.last()).map(Value::to_string).unwrap_or_default();
        assert!(why.contains("`parse.c`") && why.contains("make it again"), "{why}");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("the file is there");
        assert!(read("parse.y").contains("    if (copy[0] == 'a') {\n        free(copy);\n        return 1;\n    }\n"));
        assert_eq!(read("parse.c"), made);
        // Until it is made again, nothing is certain.
        let ran = run(folder.path(), &["fix", "--no-cache", "parse.c"]).expect_code(1);
        assert!(ran.stderr.contains("not fixed: it is not written in `parse.c`"), "{}", ran.stderr);
    }
}

#[test]
fn what_a_generator_has_changed_is_refused() {
    let folder = grammar(&GRAMMAR.replace("'a'", "$1[0]"), MADE);
    let ran = run(folder.path(), &["fix", "--no-cache", "parse.c"]).expect_code(1);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(ran.stderr.contains("not fixed: it is not written in `parse.c`"), "{}", ran.stderr);
}
