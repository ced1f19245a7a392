//! What one run leaves for the next: nothing is looked at twice, and nobody can tell from the findings.

use std::path::Path;

use super::run::{Ran, run};

const HELPERS: &str = "#include <stdlib.h>\n#include <string.h>\n\
    char *copy(const char *s) { return strdup(s); }\n\
    int length(const char *s) {\n    int n = 0;\n    while (s[n])\n        n++;\n    return n;\n}\n";
const MAIN: &str = "#include <stdlib.h>\nchar *copy(const char *s);\nint length(const char *s);\n\
    int measure(const char *s) {\n    char *c = copy(s);\n    if (!c)\n        return -1;\n    return length(c);\n}\n\
    int main(int argc, char **argv) { return argc > 1 ? measure(argv[1]) : 0; }\n";

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("helpers.c"), HELPERS).unwrap();
    std::fs::write(folder.path().join("main.c"), MAIN).unwrap();
    folder
}

fn check(folder: &Path, more: &[&str]) -> Ran {
    run(folder, &[&["check", "--stats", "helpers.c", "main.c"], more].concat()).expect_code(1)
}

/// The numbers of `--stats`: all functions, and those this run looked at.
fn looked_at(ran: &Ran) -> (usize, usize) {
    let number = |row: &str| {
        let line = ran.stderr.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{}", ran.stderr));
        line[row.len()..].split_whitespace().next().unwrap().parse().unwrap()
    };
    (number("functions "), number("analysed "))
}

#[test]
fn the_second_run_analyses_nothing_and_says_the_same() {
    let folder = project();
    let cold = check(folder.path(), &[]);
    assert_eq!(looked_at(&cold), (4, 4));
    assert!(cold.stdout.contains("main.c:5:15"), "{}", cold.stdout);
    for jobs in ["1", "2", "8"] {
        let warm = check(folder.path(), &["-j", jobs]);
        assert_eq!(looked_at(&warm), (4, 0));
        assert_eq!(warm.stdout, cold.stdout);
    }
    let without = check(folder.path(), &["--no-cache"]);
    assert_eq!(looked_at(&without), (4, 4));
    assert_eq!(without.stdout, cold.stdout);
}

#[test]
fn an_edit_is_followed_as_far_as_it_can_be_seen() {
    let folder = project();
    check(folder.path(), &[]);
    let edit = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        let warm = check(folder.path(), &[]);
        let cold = check(folder.path(), &["--no-cache"]);
        assert_eq!(warm.stdout, cold.stdout);
        (looked_at(&warm).1, warm.stdout)
    };
    // Lines move: nothing is analysed, and the finding moves with them.
    let moved = format!("/* a comment\n * of two lines */\n{MAIN}");
    let (analysed, said) = edit("main.c", &moved);
    assert_eq!(analysed, 0);
    assert!(said.contains("main.c:7:15"), "{said}");
    // A body that does the same for its callers.
    let (analysed, _) = edit("helpers.c", &HELPERS.replace("int n = 0;", "int n = 0, m = 1;\n    n += m - 1;"));
    assert_eq!(analysed, 1);
    // A function more, with a string more, in front of all others.
    let (analysed, _) =
        edit("helpers.c", &HELPERS.replace("char *copy", "const char *name(void) { return \"x\"; }\nchar *copy"));
    assert_eq!(analysed, 2, "the new one, and `length` is as it was");
    // The callers of `copy` have to know.
    let static_copy = "static char kept[80]; return s[0] ? strcpy(kept, s) : 0;";
    std::fs::write(folder.path().join("helpers.c"), HELPERS.replace("return strdup(s);", static_copy)).unwrap();
    let clean = run(folder.path(), &["check", "--stats", "helpers.c", "main.c"]).expect_code(0);
    assert_eq!(looked_at(&clean).1, 3, "`copy`, `measure`, `main`: {}", clean.stderr);
}

#[test]
fn damaged_results_are_made_again_with_a_word_about_it() {
    let folder = project();
    let cold = check(folder.path(), &[]);
    let inside = |folder: std::path::PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for pack in inside(folder.path().join(".caulk/summaries")).flat_map(inside) {
        let mut bytes = std::fs::read(&pack).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(pack, bytes).unwrap();
    }
    let again = check(folder.path(), &[]);
    assert_eq!(looked_at(&again), (4, 4));
    assert!(again.stdout.contains("was damaged, and is made anew"), "{}", again.stdout);
    assert_eq!(check(folder.path(), &[]).stdout, cold.stdout);
}

/// What the callers do with a result is asked anew in every run, though nothing of the function itself has changed.
#[test]
fn a_leak_is_on_the_way_out_as_long_as_its_callers_leave() {
    let folder = tempfile::tempdir().unwrap();
    let load = "#include <stdlib.h>\n#include <string.h>\n\
        int load(const char *path) {\n    char *copy = strdup(path);\n    if (copy && *copy == '-')\n        \
        return -1;\n    free(copy);\n    return 0;\n}\n";
    let main = |behind: &str| {
        format!(
            "#include <stdio.h>\nint load(const char *path);\nint main(int argc, char **argv) {{\n    char line[80];\n    \
             if (argc > 1 && load(argv[1]) < 0)\n        {behind}\n    while (fgets(line, 80, stdin))\n        \
             puts(line);\n    return 0;\n}}\n"
        )
    };
    std::fs::write(folder.path().join("load.c"), load).unwrap();
    for (behind, code) in [("return 1;", 0), ("puts(\"no\");", 1), ("return 1;", 0)] {
        std::fs::write(folder.path().join("main.c"), main(behind)).unwrap();
        let warm = run(folder.path(), &["check", "--stats", "load.c", "main.c"]).expect_code(code);
        assert_eq!(warm.stdout.contains("load.c:4:"), code == 1, "{behind}: {}", warm.stdout);
        let shown = run(folder.path(), &["check", "--at-exit", "load.c", "main.c"]).expect_code(1);
        assert_eq!(shown.stdout.contains("note[leak-at-exit]"), code == 0, "{behind}: {}", shown.stdout);
    }
    // Two programs that leave: what they share may be a library's, and a third may go on.
    std::fs::write(folder.path().join("again.c"), main("return 2;")).unwrap();
    let shared = run(folder.path(), &["check", "load.c", "main.c", "again.c"]).expect_code(1);
    assert!(shared.stdout.contains("load.c:4:"), "{}", shared.stdout);
}
