//! `caulk cc`: what is lost is reclaimed, what is not stays, and nothing else changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::fixtures::{everything_guarded, papers};
use crate::run::{Ran, caulk};

const ASAN: &[&str] = &["-fsanitize=address", "-g", "-w"];
/// How sanitizers end a program that they complain of.
const COMPLAINS: i32 = 99;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/guard").join(name)
}

fn words(list: &[&[&str]]) -> Vec<String> {
    list.concat().into_iter().map(str::to_owned).collect()
}

/// Runs `caulk cc`, and returns what it said.
#[track_caller]
fn cc(folder: &Path, arguments: &[String]) -> String {
    let ran: Ran = caulk(folder).arg("cc").args(arguments).output().expect("caulk can be started").into();
    let said = ran.expect_code(0).stderr;
    assert!(!said.contains("warning"), "{said}");
    said
}

#[track_caller]
fn clang(folder: &Path, arguments: &[String]) {
    let output = Command::new("clang-19").args(arguments).current_dir(folder).output().expect("clang-19 is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn start(folder: &Path, program: &str, runtime: &str) -> Ran {
    let mut command = Command::new(folder.join(program));
    command.current_dir(folder).env("LD_LIBRARY_PATH", folder).env("CAULK_RT", runtime);
    let options = format!("exitcode={COMPLAINS}");
    command.env("ASAN_OPTIONS", &options).env("LSAN_OPTIONS", &options).env("TSAN_OPTIONS", &options);
    command.output().expect("what was built can be started").into()
}

/// The report that a program left: blocks by function.
fn report(path: &Path) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(path).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    let site =
        |site: &Value| (site["function"].as_str().unwrap_or("?").to_owned(), site["blocks"].as_u64().unwrap_or(0));
    report["sites"].as_array().expect("sites").iter().map(site).collect()
}

/// Leaks as clang makes it; clean and saying the same as `caulk cc` makes it.
fn reclaims(name: &str, choice: &str, flags: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = source(name).display().to_string();
    let include = format!("-I{}", papers().display());
    let common = words(&[ASAN, flags, &[&include, &file]]);
    clang(folder.path(), &[common.clone(), words(&[&["-o", "plain"]])].concat());
    let said = cc(folder.path(), &[words(&[&[choice]]), common, words(&[&["-o", "guarded"]])].concat());
    let before = start(folder.path(), "plain", "");
    assert_eq!(before.code, COMPLAINS, "it should leak: {}", before.stderr);
    let after = start(folder.path(), "guarded", "");
    assert_eq!(after.code, 0, "{said}\n{}", after.stderr);
    // A sanitizer that complains at the end cuts the output short.
    let mut silent = Command::new(folder.path().join("plain"));
    let before: Ran = silent.env("ASAN_OPTIONS", "detect_leaks=0").output().expect("it can be started").into();
    assert_eq!(before.expect_code(0).stdout, after.stdout);
}

#[test]
fn the_figures_of_the_paper_are_reclaimed() {
    reclaims("figures.c", "--all-leaks", &["-O2"]);
    reclaims("figures.c", "--guard-everything", &["-O0"]);
}

#[test]
fn a_block_belongs_to_its_activation() {
    for level in ["-O0", "-O3"] {
        reclaims("activations.c", "--guard-everything", &[level]);
    }
}

#[test]
fn blocks_that_come_through_an_argument_are_reclaimed() {
    for level in ["-O0", "-O2"] {
        reclaims("lines.c", "--guard-everything", &[level]);
    }
}

#[test]
fn optimisation_at_link_time_is_kept() {
    reclaims("activations.c", "--guard-everything", &["-O2", "-flto"]);
}

#[test]
fn threads_are_told_apart_without_races() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = source("threads.c").display().to_string();
    let flags = ["--guard-everything", "-fsanitize=thread", "-O1", "-g", "-pthread", &file, "-o", "guarded"];
    cc(folder.path(), &words(&[&flags]));
    let ran = start(folder.path(), "guarded", "report=r.json").expect_code(0);
    assert_eq!(ran.stdout, "3942\n".repeat(4));
    let lost: Vec<_> = report(&folder.path().join("r.json")).into_iter().filter(|(_, blocks)| *blocks > 0).collect();
    assert_eq!(lost, [("lose".to_owned(), 2000)]);
}

#[test]
fn longjmp_and_fork_change_nothing() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = source("jumps.c").display().to_string();
        // What longjmp passes over stays lost.
        let flags = words(&[ASAN, &[level, &file]]);
        clang(folder.path(), &[flags.clone(), words(&[&["-o", "plain"]])].concat());
        cc(folder.path(), &[words(&[&["--guard-everything"]]), flags, words(&[&["-o", "guarded"]])].concat());
        let run = |program: &str| {
            let mut command = Command::new(folder.path().join(program));
            command.current_dir(folder.path()).env("ASAN_OPTIONS", "detect_leaks=0").env("CAULK_RT", "report=r.json");
            Ran::from(command.output().expect("it can be started")).expect_code(0).stdout
        };
        assert_eq!(run("plain"), run("guarded"));
        let lost = |path: &Path| report(path).iter().any(|(f, blocks)| f == "child_and_parent" && *blocks == 1);
        let reports: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.path()).collect();
        let reports: Vec<_> = reports.iter().filter(|path| path.display().to_string().contains("r.json")).collect();
        assert_eq!(reports.len(), 2, "one of the parent, one of the child: {reports:?}");
        assert!(reports.iter().all(|path| lost(path)), "each reclaims its own");
    }
}

#[test]
fn libraries_are_guarded_shared_or_in_archives() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let (library, program) = (source("library.c").display().to_string(), source("program.c").display().to_string());
    // Shared: each part is guarded when it is linked, and reports by itself.
    cc(at, &words(&[ASAN, &["-fPIC", "-c", &library, "-o", "library.o"]]));
    cc(at, &words(&[&["--all-leaks"], ASAN, &["-shared", "library.o", "-o", "libcopy.so"]]));
    cc(at, &words(&[&["--guard-everything"], ASAN, &[&program, "-L.", "-lcopy", "-o", "shared"]]));
    // The program's own block comes out of a library that it knows nothing of: there is no site in it.
    let mut shared = Command::new(at.join("shared"));
    shared.current_dir(at).env("LD_LIBRARY_PATH", at).env("CAULK_RT", "report=r.json");
    let ran: Ran = shared.env("ASAN_OPTIONS", "detect_leaks=0").output().expect("it can be started").into();
    assert_eq!(ran.expect_code(0).stdout, "bad two\none three\ndone\n");
    assert!(!at.join("r.json").exists());
    assert_eq!(report(&at.join("r.json.libcopy.so")), [("library_copy".to_owned(), 1)]);

    // In an archive, named or found: the whole program is seen.
    std::fs::remove_file(at.join("libcopy.so")).expect("there");
    let made = Command::new("ar").args(["rc", "libcopy.a", "library.o"]).current_dir(at).status().expect("ar is there");
    assert!(made.success());
    for how in [&["libcopy.a"][..], &["-L.", "-lcopy"]] {
        cc(at, &words(&[&["--all-leaks"], ASAN, &[&program], how, &["-o", "static"]]));
        let ran = start(at, "static", "report=s.json").expect_code(0);
        assert_eq!(ran.stdout, "bad two\none three\ndone\n");
        let mut sites = report(&at.join("s.json"));
        sites.retain(|(_, blocks)| *blocks > 0);
        sites.sort();
        assert_eq!(sites, [("both".to_owned(), 1), ("library_copy".to_owned(), 1)]);
    }
}

#[test]
fn sites_come_from_lists_and_logs_and_settings_from_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for name in ["library.c", "program.c"] {
        std::fs::copy(source(name), at.join(name)).expect("a copy");
    }
    let all = ["library.c", "program.c", "-o"];
    clang(at, &words(&[ASAN, &all, &["plain"]]));
    let log = start(at, "plain", "").stderr;
    std::fs::write(at.join("lsan.log"), log).expect("written");
    std::fs::write(at.join("sites"), "# one of two\nlibrary.c:7\n").expect("written");
    cc(at, &words(&[&["--from", "lsan.log"], ASAN, &all, &["from"]]));
    start(at, "from", "").expect_code(0);

    cc(at, &words(&[&["--sites", "sites"], ASAN, &all, &["listed"]]));
    let ran = start(at, "listed", "verbose");
    assert_eq!(ran.stderr.matches("caulk: reclaimed").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("caulk: reclaimed memory (4 bytes) from"), "{}", ran.stderr);
    assert!(ran.stderr.contains("library.c:7 in library_copy\n"), "{}", ran.stderr);
    let ran = start(at, "from", "off,report=off.json");
    assert!(!ran.stderr.contains("reclaimed"), "nothing is released");
    assert_eq!(report(&at.join("off.json")).iter().map(|(_, blocks)| blocks).sum::<u64>(), 2);
}

#[test]
fn what_is_no_program_passes_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("a.c"), "int f(void); int main(void) { return f() - 7; }\n").expect("written");
    std::fs::write(at.join("f.s"), ".globl f\nf: movl $7, %eax\nret\n.section .note.GNU-stack,\"\",@progbits\n")
        .expect("written");
    std::fs::write(at.join("bad.c"), "int main(void) { return x; }\n").expect("written");
    let run = |arguments: &[&str]| -> Ran { caulk(at).arg("cc").args(arguments).output().expect("it runs").into() };
    assert!(run(&["--version"]).expect_code(0).stdout.contains("clang"));
    assert!(run(&["-E", "a.c"]).expect_code(0).stdout.contains("int main"));
    run(&["-S", "a.c", "-o", "a.s"]).expect_code(0);
    assert!(!run(&["-c", "bad.c"]).expect_code(1).stderr.contains("caulk"));
    // Assembler and an object of another compiler in the mix, and one object made of two.
    run(&["-c", "f.s", "-o", "f.o"]).expect_code(0);
    run(&["-O2", "-c", "a.c", "-o", "a.o"]).expect_code(0);
    run(&["a.o", "f.o", "-o", "whole"]).expect_code(0);
    run(&["-r", "a.o", "f.o", "-o", "both.o"]).expect_code(0);
    run(&["both.o", "-o", "partial"]).expect_code(0);
    for program in ["whole", "partial"] {
        assert_eq!(start(at, program, "").code, 0);
    }
}

#[test]
fn a_build_is_guarded_whatever_compiler_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for name in ["library.c", "program.c"] {
        std::fs::copy(source(name), at.join(name)).expect("a copy");
    }
    let rules = "CC = gcc\np: library.o program.o\n\t$(CC) -o $@ $^\n";
    std::fs::write(at.join("Makefile"), rules).expect("written");
    let ran: Ran = caulk(at).args(["build", "--all-leaks", "--", "make"]).output().expect("it runs").into();
    let said = ran.expect_code(0).stderr;
    assert!(said.contains("3 of 3 sites guarded"), "{said}");
    start(at, "p", "report=r.json").expect_code(0);
    assert_eq!(report(&at.join("r.json")).len(), 3);
}

#[test]
fn without_being_told_only_leaks_that_no_patch_repairs_are_guarded() {
    for level in ["-O1", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        std::fs::copy(source("unpatched.c"), at.join("unpatched.c")).expect("a copy");
        let said = cc(at, &words(&[&[level, "unpatched.c", "-o", "p"]]));
        assert!(said.contains("caulk: p: 2 of 2 sites guarded\n"), "{said}");
        let ran = start(at, "p", "report=r.json").expect_code(0);
        assert_eq!(ran.stdout, "macro\n1\n");
        let lost = [("same_result".to_owned(), 3), ("in_a_macro".to_owned(), 1)];
        assert_eq!(report(&at.join("r.json")), lost);
        // `configure` only wants to know whether something compiles and runs: nothing is added.
        std::fs::copy(source("unpatched.c"), at.join("conftest.c")).expect("a copy");
        assert_eq!(cc(at, &words(&[&[level, "-w", "conftest.c", "-o", "conftest"]])), "");
        start(at, "conftest", "report=c.json").expect_code(0);
        assert!(!at.join("c.json").exists());
    }
}

#[test]
fn the_pages_show_what_runs_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for name in ["library.c", "program.c"] {
        std::fs::copy(source(name), at.join(name)).expect("a copy");
    }
    cc(at, &words(&[&["--all-leaks", "library.c", "program.c", "-o", "p"]]));
    start(at, "p", "report=r.json").expect_code(0);
    let check = |options: &[&str]| -> Ran {
        let mut command = caulk(at);
        command.arg("check").args(options).args(["--runtime", "r.json", "library.c", "program.c"]);
        command.output().expect("it runs").into()
    };
    check(&["--format", "html", "-o", "pages"]).expect_code(1);
    let index = std::fs::read_to_string(at.join("pages/index.html")).expect("the index");
    assert!(index.contains("<code>library.c:7</code></a>"), "{index}");
    assert!(index.contains("reclaimed, at 2 of 3 guarded sites."), "{index}");
    assert!(check(&["--format", "json"]).expect_code(2).stderr.contains("--runtime is for --format html"));
    std::fs::write(at.join("r.json"), "[]").expect("written");
    assert!(check(&["--format", "html", "-o", "pages"]).expect_code(2).stderr.contains("not the report of a run"));
}

#[test]
fn a_prebuilt_function_is_not_the_library_one_of_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let kept = "static const char *kept;
        unsigned long strlcpy(char *to, const char *from, unsigned long n) { kept = from; return *to = n ? *from : 0; }
        const char *last(void) { return kept; }\n";
    let program = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>
        unsigned long strlcpy(char *, const char *, unsigned long);
        const char *last(void);
        int main(void) { char b[4]; strlcpy(b, strdup(\"still here\"), 4); puts(last()); free((char *)last()); return 0; }\n";
    std::fs::write(at.join("kept.c"), kept).expect("written");
    std::fs::write(at.join("program.c"), program).expect("written");
    clang(at, &words(&[&["-c", "kept.c"]]));
    clang(at, &words(&[&["-shared", "-fPIC", "kept.c", "-o", "libkept.so"]]));
    let archived = Command::new("ar").args(["rc", "libold.a", "kept.o"]).current_dir(at).status().expect("ar is there");
    assert!(archived.success());
    for how in [&["kept.o"][..], &["libold.a"], &["-L.", "-lkept"]] {
        let said = cc(at, &words(&[&["--guard-everything"], ASAN, &["program.c"], how, &["-o", "p"]]));
        let ran = start(at, "p", "").expect_code(0);
        assert_eq!(ran.stdout, "still here\n", "{said}");
    }
}

#[test]
fn descriptors_that_are_of_use_by_being_open_stay_open() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = source("held.c").display().to_string();
        let flags = words(&[&[level, "-w", &file, "-o"]]);
        clang(folder.path(), &[flags.clone(), words(&[&["plain"]])].concat());
        cc(folder.path(), &[words(&[&["--guard-everything"]]), flags, words(&[&["guarded"]])].concat());
        let before = start(folder.path(), "plain", "").expect_code(0);
        let after = start(folder.path(), "guarded", "report=r.json").expect_code(0);
        assert_eq!(before.stdout, after.stdout);
        let closed: u64 = report(&folder.path().join("r.json")).iter().map(|(_, blocks)| blocks).sum();
        assert_eq!(closed, 1, "the one that could not be locked");
    }
}

#[test]
fn addresses_in_pieces_are_let_go() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = source("pieces.c").display().to_string();
        cc(folder.path(), &words(&[&["--guard-everything"], ASAN, &[level, &file, "-o", "guarded"]]));
        let ran = start(folder.path(), "guarded", "report=r.json").expect_code(0);
        assert_eq!(ran.stdout.matches("hello").count(), 9, "{}", ran.stdout);
        // Where no site is left to guard, nobody writes a report.
        let left = folder.path().join("r.json");
        assert!(!left.exists() || report(&left).iter().all(|(_, blocks)| *blocks == 0));
    }
}

#[test]
fn blocks_that_callees_put_into_memory_or_exchange_are_reclaimed() {
    for level in ["-O0", "-O2"] {
        reclaims("given.c", "--guard-everything", &[level]);
    }
}

#[test]
fn what_is_in_use_by_hidden_ways_stays() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = source("hidden.c").display().to_string();
        let flags = words(&[ASAN, &[level, "-fexceptions", &file, "-o"]]);
        clang(folder.path(), &[flags.clone(), words(&[&["plain"]])].concat());
        cc(folder.path(), &[words(&[&["--guard-everything"]]), flags, words(&[&["guarded"]])].concat());
        let run = |program: &str| {
            let mut command = Command::new(folder.path().join(program));
            command.current_dir(folder.path()).env("ASAN_OPTIONS", "detect_leaks=0").env("CAULK_RT", "report=r.json");
            Ran::from(command.output().expect("it can be started")).expect_code(0).stdout
        };
        assert_eq!(run("plain"), run("guarded"));
        let lost: Vec<_> =
            report(&folder.path().join("r.json")).into_iter().filter(|(_, blocks)| *blocks > 0).collect();
        assert_eq!(lost, [("by_libraries".to_owned(), 1)], "what `setenv` copied");
    }
}

#[test]
fn exchanged_functions_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let text = "#include <stdio.h>\n#include <stdlib.h>\nvoid *__real_malloc(size_t);
        static char kept[64];
        void *__wrap_malloc(size_t n) { return n < 64 ? kept : __real_malloc(n); }
        int main(void) { char *p = malloc(8); printf(\"%d\\n\", p == kept); return 0; }\n";
    std::fs::write(at.join("p.c"), text).expect("written");
    let said = caulk(at).args(["cc", "--all-leaks", "-Wl,--wrap=malloc", "p.c", "-o", "p"]).output();
    let said: Ran = said.expect("it runs").into();
    assert!(said.expect_code(0).stderr.contains("p is not guarded: the linker is told to exchange functions"));
    assert_eq!(start(at, "p", "").expect_code(0).stdout, "1\n");
}

#[test]
fn everything_guarded_changes_nothing_in_the_fixtures() {
    everything_guarded();
}

#[test]
fn what_is_null_leads_nowhere_and_what_is_called_is_asked() {
    let other = source("kinds.c").display().to_string();
    for level in ["-O0", "-O2"] {
        reclaims("ways.c", "--guard-everything", &[level, &other]);
    }
}

#[test]
fn what_lies_in_memory_of_its_own_or_was_made_by_a_table_stays() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = source("private.c").display().to_string();
        let flags = words(&[ASAN, &[level, &file, "-o"]]);
        clang(folder.path(), &[flags.clone(), words(&[&["plain"]])].concat());
        cc(folder.path(), &[words(&[&["--guard-everything"]]), flags, words(&[&["guarded"]])].concat());
        let before = start(folder.path(), "plain", "").expect_code(0);
        let after = start(folder.path(), "guarded", "report=r.json").expect_code(0);
        assert_eq!(before.stdout, after.stdout);
        assert!(report(&folder.path().join("r.json")).iter().all(|(_, blocks)| *blocks == 0), "nothing was lost");
    }
}

#[test]
fn memory_that_is_mapped_is_unmapped() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = source("mapped.c").display().to_string();
        let flags = words(&[&[level, "-w", &file, "-o"]]);
        clang(folder.path(), &[flags.clone(), words(&[&["plain"]])].concat());
        cc(folder.path(), &[words(&[&["--guard-everything"]]), flags, words(&[&["guarded"]])].concat());
        let before = start(folder.path(), "plain", "").expect_code(0);
        assert_eq!(before.stdout, "lost: 1\nkept part 1: still there\n");
        let after = start(folder.path(), "guarded", "report=r.json").expect_code(0);
        assert_eq!(after.stdout, "lost: 0\nkept part 1: still there\n");
        let unmapped: u64 = report(&folder.path().join("r.json")).iter().map(|(_, blocks)| blocks).sum();
        assert_eq!(unmapped, 1);
    }
}

#[test]
fn the_reason_stands_beside_a_site_that_is_not_guarded() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::copy(source("unguarded.c"), at.join("unguarded.c")).expect("a copy");
    let text = std::fs::read_to_string(at.join("unguarded.c")).expect("readable");
    let mut sites = String::new();
    let mut expected = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some((_, reason)) = line.split_once("// not guarded: ") {
            sites.push_str(&format!("unguarded.c:{number}\n"));
            expected.push(format!("caulk: unguarded.c:{number}: not guarded: {reason}\n"));
        }
    }
    std::fs::write(at.join("sites"), sites).expect("written");
    let said = cc(at, &words(&[&["--sites", "sites", "-w", "unguarded.c", "-o", "p"]]));
    for line in expected {
        assert!(said.contains(&line), "expected {line}in\n{said}");
    }
}
