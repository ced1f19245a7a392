//! `caulk check` from outside: what goes where, filters, formats, exit codes.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Ran, run};

const LEAKY: &str = "\
#include <stdlib.h>
int fill(char *buf, int n);
int load(int n) {
    char *buf = malloc(n);
    if (!buf)
        return -1;
    if (fill(buf, n) < 0)
        return -1;
    free(buf);
    return 0;
}
int fill(char *buf, int n) {
    if (n < 3)
        return -1;
    buf[0] = 1;
    return 0;
}
";

const CLEAN: &str = "\
#include <stdlib.h>
int twice(int n) {
    char *p = malloc(n);
    free(p);
    return 2 * n;
}
";

fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("writable");
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).expect("JSON and nothing else on standard output")
}

fn findings(ran: &Ran) -> usize {
    json(ran)["findings"].as_array().expect("a list").len()
}

#[test]
fn a_leak_is_exit_code_1_with_its_path_in_the_source() {
    let folder = project(&[("load.c", LEAKY)]);
    let ran = run(folder.path(), &["check", "load.c"]).expect_code(1);
    assert!(ran.stdout.starts_with("error[memory-leak]: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("--> load.c:4:17"), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 finding: 1 memory-leak"), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 unit analysed; 2 functions, 1 allocation site"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "", "no progress and no chatter when nobody watches");
}

#[test]
fn what_a_call_fills_is_named_after_the_variable_or_field_that_holds_it() {
    let text = "\
#include <stdlib.h>
#include <string.h>
struct box { int n; char *label; };
int get(const char *from, char **text, int *n) {
    *text = strdup(from);
    *n = 3;
    return *text ? 0 : -1;
}
int variable(const char *from) {
    char *name;
    int n, status = get(from, &name, &n);
    return status;
}
int field(const char *from) {
    struct box box;
    int n;
    int status = get(from, &box.label, &n);
    return status;
}
char *fill(struct box *box, char *from) {
    box->label = strdup(from);
    return box->label ? NULL : from;
}
int member(char *from) {
    struct box box;
    char *message = fill(&box, from);
    return message ? -1 : 0;
}
void nobody(void) {
    char text[8] = \"some\";
    strdup(text);
}
";
    let folder = project(&[("names.c", text)]);
    let found = json(&run(folder.path(), &["check", "--format", "json", "names.c"]));
    let objects: Vec<&str> =
        found["findings"].as_array().expect("a list").iter().filter_map(|one| one["object"].as_str()).collect();
    assert_eq!(objects, ["`name`", "`box.label`", "`box.label`", "the result of `strdup`"]);
}

#[test]
fn nothing_found_is_exit_code_0_and_says_what_was_looked_at() {
    let folder = project(&[("twice.c", CLEAN)]);
    let ran = run(folder.path(), &["check", "twice.c"]).expect_code(0);
    assert!(ran.stdout.contains("no findings"), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 unit analysed"), "{}", ran.stdout);
}

#[test]
fn nothing_analysed_is_exit_code_2_with_the_reasons() {
    let folder = project(&[("broken.c", "int f(void) { return nowhere; }\n")]);
    let ran = run(folder.path(), &["check", "broken.c"]).expect_code(2);
    assert!(ran.stderr.contains("nothing could be analysed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("nowhere"), "clang's first error: {}", ran.stderr);
    assert_eq!(ran.stdout, "");

    let none = run(folder.path(), &["check"]).expect_code(2);
    assert!(none.stderr.contains("no compile_commands.json"), "{}", none.stderr);
    let gone = run(folder.path(), &["check", "gone.c"]).expect_code(2);
    assert!(gone.stderr.contains("gone.c"), "{}", gone.stderr);
}

#[test]
fn a_unit_that_fails_is_named_and_the_rest_is_checked() {
    let folder = project(&[("load.c", LEAKY), ("broken.c", "#include \"nowhere.h\"\n")]);
    let ran = run(folder.path(), &["check", "load.c", "broken.c"]).expect_code(1);
    assert!(ran.stdout.contains("nowhere.h"), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 unit analysed, 1 failed"), "{}", ran.stdout);
}

#[test]
fn a_missing_compiler_is_named_with_the_remedy() {
    let folder = project(&[("load.c", LEAKY)]);
    let ran = crate::run::caulk(folder.path()).args(["check", "load.c"]).env("CAULK_CLANG", "/nowhere/clang").output();
    let ran = Ran::from(ran.expect("the built caulk can be started")).expect_code(2);
    assert!(ran.stderr.contains("CAULK_CLANG"), "{}", ran.stderr);
}

#[test]
fn flags_after_two_dashes_reach_the_compiler() {
    let folder = project(&[("load.c", &LEAKY.replace("free(buf);\n    return 0", "free(buf);\n    return CODE"))]);
    run(folder.path(), &["check", "load.c"]).expect_code(2);
    run(folder.path(), &["check", "load.c", "--", "-DCODE=0"]).expect_code(1);
}

#[test]
fn every_machine_format_stands_alone_on_standard_output() {
    let folder = project(&[("load.c", LEAKY)]);
    for format in ["json", "sarif", "codeclimate"] {
        let ran = run(folder.path(), &["check", "load.c", "--format", format]).expect_code(1);
        json(&ran);
        assert!(ran.stderr.contains("1 finding: 1 memory-leak"), "{format}: {}", ran.stderr);
    }
    let sarif = json(&run(folder.path(), &["check", "load.c", "--format", "sarif"]));
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "memory-leak");
    let github = run(folder.path(), &["check", "load.c", "--format", "github"]).expect_code(1);
    assert!(github.stdout.starts_with("::error file=load.c,line=4,"), "{}", github.stdout);
}

#[test]
fn pages_go_into_a_folder() {
    let folder = project(&[("load.c", LEAKY)]);
    let ran = run(folder.path(), &["check", "load.c", "--format", "html", "-o", "report"]).expect_code(1);
    assert_eq!(ran.stdout, "");
    assert!(folder.path().join("report/index.html").is_file());
    let nowhere = run(folder.path(), &["check", "load.c", "--format", "html"]).expect_code(2);
    assert!(nowhere.stderr.contains("-o FOLDER"), "{}", nowhere.stderr);
}

#[test]
fn output_goes_into_a_file_and_statistics_to_standard_error() {
    let folder = project(&[("load.c", LEAKY)]);
    let ran = run(folder.path(), &["check", "load.c", "--format", "json", "-o", "out.json", "--stats"]).expect_code(1);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("allocation sites"), "{}", ran.stderr);
    let text = std::fs::read_to_string(folder.path().join("out.json")).expect("the file is there");
    serde_json::from_str::<Value>(&text).expect("JSON");
    let nowhere = run(folder.path(), &["check", "load.c", "-o", "no/such/out.txt"]).expect_code(2);
    assert!(nowhere.stderr.contains("cannot write no/such/out.txt"), "{}", nowhere.stderr);
}

#[test]
fn the_same_bytes_at_any_number_of_threads_and_from_the_cache() {
    let folder = project(&[("load.c", LEAKY), ("twice.c", CLEAN)]);
    let check = |jobs| run(folder.path(), &["check", "load.c", "twice.c", "--format", "json", "-j", jobs]).stdout;
    let first = check("1");
    assert_eq!(first, check("2"));
    assert_eq!(first, check("8"));
}

#[test]
fn a_baseline_mutes_what_is_known_wherever_it_moves() {
    let folder = project(&[("load.c", LEAKY)]);
    run(folder.path(), &["check", "load.c", "--write-baseline", "known.json"]).expect_code(0);
    write(folder.path(), "load.c", &format!("/* moved\n   down */\n{LEAKY}"));
    let muted = run(folder.path(), &["check", "load.c", "--baseline", "known.json"]).expect_code(0);
    assert!(muted.stdout.contains("1 in the baseline"), "{}", muted.stdout);
    let more = LEAKY
        .replace("int load(", "int load_more(")
        .replace("int fill(char *buf, int n) {", "int fill2(char *buf, int n) {");
    write(folder.path(), "more.c", &more);
    let new = run(folder.path(), &["check", "load.c", "more.c", "--format", "json", "--baseline", "known.json"]);
    assert_eq!(findings(&new.expect_code(1)), 1);

    write(folder.path(), "wrong.json", "{}");
    let wrong = run(folder.path(), &["check", "load.c", "--baseline", "wrong.json"]).expect_code(2);
    assert!(wrong.stderr.contains("wrong.json"), "{}", wrong.stderr);
}

#[test]
fn a_comment_silences_a_finding_and_says_so() {
    let silenced = LEAKY.replace("    free(", "    // caulk-ignore[memory-leak]: nothing is lost here\n    free(");
    let silenced = silenced.replace("    char *buf", "    // caulk-ignore[memory-leak]: a test\n    char *buf");
    let folder = project(&[("load.c", &silenced)]);
    let ran = run(folder.path(), &["check", "load.c"]).expect_code(0);
    assert!(ran.stdout.contains("1 suppressed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("silences nothing"), "the other comment is of no use: {}", ran.stdout);
}

#[test]
fn configuration_turns_rules_off_and_leaves_paths_out() {
    let folder = project(&[("load.c", LEAKY), ("vendor/load.c", LEAKY)]);
    let count = |paths: &[&str]| findings(&run(folder.path(), &[&["check", "--format", "json"], paths].concat()));
    assert_eq!(count(&["load.c"]), 1);
    write(folder.path(), "caulk.toml", "[paths]\nexclude = [\"vendor\"]\n");
    assert_eq!(count(&["vendor/load.c"]), 0);
    assert_eq!(count(&["load.c"]), 1);
    write(folder.path(), "caulk.toml", "[rules]\nmemory-leak = \"off\"\n");
    assert_eq!(count(&["load.c"]), 0);
    write(folder.path(), "caulk.toml", "[rules]\nmemory-leak = \"note\"\n");
    let note = run(folder.path(), &["check", "load.c"]).expect_code(1);
    assert!(note.stdout.starts_with("note[memory-leak]"), "{}", note.stdout);
}

#[test]
fn only_what_touches_changed_functions_is_reported() {
    let folder =
        project(&[("load.c", LEAKY), ("more.c", &LEAKY.replace("load(", "load_more(").replace("fill(", "fill_more("))]);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"];
        let ran = Command::new("git").current_dir(folder.path()).args(identity).args(arguments).output();
        assert!(ran.expect("git can be started").status.success(), "git {arguments:?}");
    };
    let changed = || {
        let arguments = ["check", "load.c", "more.c", "--format", "json", "--changed-since", "HEAD"];
        let ran = run(folder.path(), &arguments);
        json(&ran)["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|f| f["source"]["file"].clone())
            .collect::<Vec<_>>()
    };
    git(&["init", "-q"]);
    git(&["add", "load.c", "more.c"]);
    git(&["commit", "-q", "-m", "one"]);
    assert_eq!(changed(), [""; 0]);
    write(folder.path(), "load.c", &LEAKY.replace("    free(buf);", "    buf[1] = 2;\n    free(buf);"));
    assert_eq!(changed(), ["load.c"]);

    let wrong = run(folder.path(), &["check", "load.c", "--changed-since", "nowhere"]).expect_code(2);
    assert!(wrong.stderr.contains("no revision `nowhere`"), "{}", wrong.stderr);
}

#[test]
fn a_finding_of_the_last_run_can_be_explained_and_drawn() {
    let folder = project(&[("load.c", LEAKY)]);
    let ran = run(folder.path(), &["check", "load.c", "--format", "json"]).expect_code(1);
    let report = json(&ran);
    let fingerprint = report["findings"][0]["fingerprint"].as_str().expect("a fingerprint");
    let story = run(folder.path(), &["explain", fingerprint]).expect_code(0);
    assert!(story.stdout.contains("load.c:4"), "{}", story.stdout);
    let graph = run(folder.path(), &["explain", &fingerprint[..6], "--dot"]).expect_code(0);
    assert!(graph.stdout.starts_with("digraph"), "{}", graph.stdout);

    let rule = run(folder.path(), &["explain", "double-free"]).expect_code(0);
    assert!(rule.stdout.starts_with("double-free (CWE-415)"), "{}", rule.stdout);
    let wrong = run(folder.path(), &["explain", "double-fre"]).expect_code(2);
    assert!(wrong.stderr.contains("did you mean `double-free`?"), "{}", wrong.stderr);
    let elsewhere = tempfile::tempdir().expect("a folder");
    // Not just "somewhere else": the system's folder for such files may lie below one that somebody has checked.
    let none = run(elsewhere.path(), &["explain", fingerprint, "--cache", "empty"]).expect_code(2);
    assert!(none.stderr.contains("run `caulk check` first"), "{}", none.stderr);
}

#[test]
fn a_path_can_be_followed_into_the_calls() {
    let folder = project(&[("leaky.c", LEAKY)]);
    let ran = run(folder.path(), &["check", "--format", "json", "leaky.c"]);
    let all = json(&ran);
    let steps = all["findings"][0]["steps"].as_array().expect("steps");
    let at = steps.iter().position(|step| step["text"] == "`fill` returns -1 here").expect("a call");
    assert_eq!(steps[at + 1]["depth"], 1, "{steps:#?}");
    assert_eq!(steps[at + 1]["location"]["function"], "fill");
    assert_eq!(steps[at + 1]["decision"]["condition"], "n < 3");
    assert_eq!(steps[at + 1]["decision"]["taken"], true);
    assert_eq!(steps[at + 2]["depth"], 0, "{steps:#?}");
    // The text for people stays with the function of the error.
    let text = run(folder.path(), &["check", "leaky.c"]).stdout;
    assert!(!text.contains("n < 3` is"), "{text}");
}

#[test]
fn a_captured_build_is_checked_as_a_whole() {
    let folder = project(&[
        ("load.c", LEAKY),
        ("main.c", "int load(int n);\nint main(int argc, char **argv) { return load(argc); }\n"),
        ("Makefile", "app: load.o main.o\n\t$(CC) -o app load.o main.o\n"),
    ]);
    let captured = run(folder.path(), &["capture", "--", "make", "-s"]).expect_code(0);
    assert!(captured.stderr.contains("2 units recorded"), "{}", captured.stderr);
    let ran = run(folder.path(), &["check"]).expect_code(1);
    assert!(ran.stdout.contains("2 units analysed; 3 functions"), "{}", ran.stdout);
    run(folder.path(), &["capture", "--", "make", "-s", "nowhere"]).expect_code(2);
}

#[test]
fn a_program_can_be_dumped() {
    let folder = project(&[("load.c", LEAKY)]);
    let ir = run(folder.path(), &["dump", "ir", "load.c", "load"]).expect_code(0);
    assert!(ir.stdout.contains("@malloc("), "{}", ir.stdout);
    let graph = run(folder.path(), &["dump", "callgraph", "load.c", "load"]).expect_code(0);
    let calls: Vec<_> =
        graph.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(calls, ["load load.c", "malloc external", "fill load.c", "free external"]);
    let wrong = run(folder.path(), &["dump", "ir", "load.c", "lod"]).expect_code(2);
    assert!(wrong.stderr.contains("did you mean `load`?"), "{}", wrong.stderr);
}

/// One function of each role, and a user of them all that has none.
const ROLES: &str = r#"
#include <stdlib.h>
struct node { char *text; struct node *next; };
struct list { struct node *head; };
static void die(void) { exit(1); }
struct node *node_new(void) {
    struct node *node = malloc(sizeof *node);
    if (!node)
        die();
    return node;
}
void node_free(struct node *node) { free(node->text); free(node); }
void list_add(struct list *list, struct node *node) { node->next = list->head; list->head = node; }
int main(void) {
    struct node *node = node_new();
    node->text = NULL;
    node_free(node);
    return 0;
}
"#;

#[test]
fn functions_are_listed_by_role() {
    let folder = project(&[("roles.c", ROLES)]);
    let listed = run(folder.path(), &["dump", "roles", "roles.c"]).expect_code(0);
    let lines: Vec<_> =
        listed.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "allocators: 1",
            "node_new roles.c:6 memory in its result",
            "deallocators: 1",
            "node_free roles.c:12 releases node; releases node->text",
            "takers: 1",
            "list_add roles.c:13 keeps node in list->head",
            "never return: 1",
            "die roles.c:5",
            "calls through pointers: 0, of them 0 (100.0 %) with 10 targets or fewer",
        ]
    );
    let one = run(folder.path(), &["dump", "roles", "roles.c", "list_add"]).expect_code(0);
    assert!(one.stdout.contains("allocators: 0\n") && one.stdout.contains("takers: 1\n"), "{}", one.stdout);
}
