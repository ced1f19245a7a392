//! Loads small projects through the real clang.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use caulk_base::GapKind;
use caulk_frontend::{CacheChoice, FrontendError, Loaded, Progress, Quiet, Request, compile_patched, load, relink};
use caulk_ir::{Target, UnitId};

use crate::project::{Project, function_names, walk};

fn plain(files: &[(&str, &str)], flags: &[&str]) -> Result<Loaded, FrontendError> {
    let project = Project::new(files);
    let sources = files.iter().filter(|(name, _)| name.ends_with(".c"));
    let mut request = Request::new(sources.map(|(name, _)| project.path(name)).collect());
    request.flags = flags.iter().map(ToString::to_string).collect();
    request.cache = CacheChoice::Off;
    load(&request, &Quiet)
}

#[test]
fn plain_files_with_flags() {
    let loaded =
        plain(&[("a.c", "#if X == 3\nint yes(void) { return 1; }\n#endif\n"), ("b.c", "int b;\n")], &["-DX=3"])
            .unwrap();
    assert_eq!(function_names(&loaded), ["yes"]);
    assert_eq!(loaded.program.units.len(), 2);
    assert!(loaded.commands[UnitId(0)].file.ends_with("a.c"));
    assert_eq!(loaded.program.units[UnitId(0)].source, loaded.commands[UnitId(0)].file.display().to_string());
    assert!(loaded.gaps.is_empty());
}

#[test]
fn what_gcc_accepts_compiles() {
    let old = "char *helper();\n\
        add(a, b) int a; char *b; { return undeclared(a) + b[0]; }\n\
        int *p = 5;\n\
        char *number(void) { return 7; }\n\
        int nothing(void) { return; }\n\
        void something(void) { return 3; }\n\
        void (*pointer)(int) = number;\n";
    let loaded = plain(&[("old.c", old)], &["-std=gnu89", "-fanalyzer", "-mno-such-thing", "-march=no-such"]).unwrap();
    assert_eq!(function_names(&loaded), ["add", "number", "nothing", "something"]);
    assert!(loaded.failed.is_empty());
}

#[test]
fn malloc_attributes_with_arguments_do_not_fail_a_unit_and_keep_positions() {
    let header = "#define RELEASED(f) __attribute__((__malloc__(f, 1)))\n#define RAW(x) __attribute__((x))\n";
    let source = "#include \"attr.h\"\nvoid my_free(void *);\n\
        void *one(int) __attribute__((malloc (my_free, 1))); void *two(int) RELEASED(my_free);\n\
        void *three(int) RAW(malloc(my_free)); int here(void) { return one(1) == two(2); }\n";
    let loaded = plain(&[("a.c", source), ("attr.h", header)], &[]).unwrap();
    assert_eq!(function_names(&loaded), ["here"]);
    let unit = &loaded.program.units[UnitId(0)];
    let function = loaded.program.function(loaded.program.functions_named("here")[0]);
    let loc = unit.locs[function.loc];
    assert_eq!(loc.line, 4);
    assert!(unit.locs.iter().any(|loc| (loc.line, loc.column) == (4, 64)), "the call of one()");
}

#[test]
fn a_unit_that_fails_is_a_gap_and_the_rest_goes_on() {
    let project = Project::new(&[("good.c", "int f(void) { return 0; }\n"), ("bad.c", "int x;\nint f( {\n")]);
    project.database(&[
        ("bad.c", "gcc -c bad.c"),
        ("good.c", "gcc -c good.c"),
        ("gone.c", "gcc -c gone.c"),
        ("x.cc", "g++ -c x.cc"),
        ("y.S", "gcc -c y.S"),
    ]);
    let loaded = project.load();
    assert_eq!(loaded.program.units.len(), 1);
    assert_eq!((loaded.failed.len(), loaded.passed_over.cpp.len(), loaded.passed_over.assembler.len()), (2, 1, 1));
    assert!(loaded.failed[0].error.starts_with("bad.c:2:8: error: "), "{}", loaded.failed[0].error);
    assert!(loaded.failed[1].error.contains("no such file"), "{}", loaded.failed[1].error);
    assert!(loaded.gaps.iter().any(|gap| gap.kind == GapKind::Unit && gap.place.ends_with("bad.c")));
    assert_eq!(loaded.program.gaps, loaded.gaps);
}

#[test]
fn nothing_to_analyse_is_an_error_of_its_own() {
    let error = plain(&[("bad.c", "int f( {")], &[]).err().unwrap();
    assert!(matches!(&error, FrontendError::NothingAnalysed { gaps, .. } if gaps.len() == 1), "{error}");
    let empty = Project::new(&[("compile_commands.json", "[]")]);
    assert!(matches!(load(&empty.request(), &Quiet), Err(FrontendError::NothingAnalysed { .. })));
}

#[test]
fn response_files_relative_folders_and_several_objects_from_one_source() {
    let project = Project::new(&[
        ("src/a.c", "#include \"v.h\"\nint NAME(void) { return V; }\n"),
        ("src/inc/v.h", "#define V 1\n"),
        ("build/flags.rsp", "-DNAME=from_response \"-I../src/inc\""),
    ]);
    project.write(
        "build/compile_commands.json",
        r#"[{"directory": ".", "file": "../src/a.c", "command": "gcc @flags.rsp -c ../src/a.c -o one.o"},
            {"directory": "", "file": "../src/a.c", "arguments": ["cc", "-DNAME=other", "-I", "../src/inc", "-c", "../src/a.c", "-o", "two.o"]}]"#,
    );
    let loaded = project.load();
    assert_eq!(function_names(&loaded), ["from_response", "other"]);
    assert_eq!(loaded.root, project.path(""), "the folder above build/");
}

#[test]
fn positions_on_macros_are_marked() {
    let source =
        "#include <stdlib.h>\n#define DROP(p) free(p)\nvoid f(char *a, char *b) {\n    DROP(a);\n    free(b);\n}\n";
    let loaded = plain(&[("a.c", source)], &[]).unwrap();
    let unit = &loaded.program.units[UnitId(0)];
    let in_macro = |line: u32| unit.locs.iter().filter(|l| (l.line, l.column) == (line, 5)).all(|loc| loc.in_macro);
    assert!(in_macro(4));
    assert!(!in_macro(5));
}

#[test]
fn the_second_run_starts_no_compiler_and_an_edit_is_seen() {
    let project = Project::new(&[
        ("a.c", "#include \"a.h\"\nint f(void) { return A; }\n"),
        ("b.c", "int g(void) { return 0; }\n"),
        ("bad.c", "#include \"missing.h\"\n"),
        ("a.h", "#define A 1\n"),
    ]);
    project.database(&[("a.c", "gcc -c a.c"), ("b.c", "gcc -c b.c"), ("bad.c", "gcc -c bad.c")]);
    let cold = project.load();
    assert_eq!((cold.timings.compiled, cold.timings.from_cache), (3, 0));
    let warm = project.load();
    assert_eq!((warm.timings.compiled, warm.timings.from_cache), (0, 3));
    assert_eq!(warm.program.units.as_slice(), cold.program.units.as_slice());
    assert_eq!(warm.failed, cold.failed);

    project.write("a.h", "#define A 2\nstatic inline int h(void) { return 2; }\n");
    project.write("missing.h", "int found(void) { return 1; }\n");
    let edited = project.load();
    assert_eq!((edited.timings.compiled, edited.timings.from_cache), (2, 1));
    assert!(edited.failed.is_empty());
    assert_eq!(function_names(&edited), ["f", "g", "found"]);
}

#[test]
fn damaged_cache_entries_are_rebuilt_with_a_word_about_it() {
    let project = Project::new(&[("a.c", "int f(void) { return 1; }\n")]);
    project.database(&[("a.c", "gcc -c a.c")]);
    let cold = project.load();
    for entry in walk(&project.path(".caulk/units")) {
        let mut bytes = std::fs::read(&entry).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(&entry, bytes).unwrap();
    }
    let rebuilt = project.load();
    assert_eq!(rebuilt.timings.compiled, 1);
    assert_eq!(rebuilt.gaps.iter().map(|gap| gap.kind).collect::<Vec<_>>(), [GapKind::Cache]);
    assert_eq!(rebuilt.program.units.as_slice(), cold.program.units.as_slice());
    assert_eq!(project.load().timings.from_cache, 1);
    assert_eq!(walk(&project.path(".caulk/tmp")), Vec::<PathBuf>::new(), "nothing temporary is left");
}

#[test]
fn a_cache_that_cannot_be_made_is_a_gap() {
    let project = Project::new(&[("a.c", "int f(void) { return 1; }\n"), ("file", "")]);
    project.database(&[("a.c", "gcc -c a.c")]);
    let mut request = project.request();
    request.cache = CacheChoice::Folder(project.path("file/cache"));
    let loaded = load(&request, &Quiet).unwrap();
    assert_eq!(loaded.program.units.len(), 1);
    assert_eq!(loaded.gaps[0].kind, GapKind::Cache);
}

#[test]
fn the_same_program_at_any_number_of_threads() {
    let names: Vec<String> = (0..7).map(|n| format!("f{n}.c")).collect();
    let project = Project::new(&[]);
    for name in &names {
        project.write(name, &format!("int {}(void) {{ return g(); }}\n", &name[..2]));
    }
    let commands: Vec<String> = names.iter().map(|name| format!("gcc -c {name}")).collect();
    let entries: Vec<_> =
        names.iter().zip(&commands).map(|(name, command)| (name.as_str(), command.as_str())).collect();
    project.database(&entries);
    let at = |jobs: usize| {
        let loaded = load(&Request { jobs, cache: CacheChoice::Off, ..project.request() }, &Quiet).unwrap();
        (loaded.program.units.into_vec(), loaded.program.targets, loaded.program.externs)
    };
    assert_eq!(at(1), at(3));
}

#[test]
fn a_patched_file_is_compiled_in_its_place() {
    let project = Project::new(&[
        ("a.c", "#include \"a.h\"\nint f(void) { return g(); }\n"),
        ("a.h", "int g(void);\n"),
        ("b.c", "int h(void) { return 0; }\n"),
    ]);
    project.database(&[("a.c", "gcc -Wno-unused -c a.c"), ("b.c", "gcc -c b.c")]);
    let loaded = project.load();
    let text = "#include \"a.h\"\n#define CALL g\nint f(void) { int unused; int bad = \"x\"; CALL(); return h(); }\n";
    let replaced = [(project.path("a.c"), text.to_owned())];
    let command = &loaded.commands[UnitId(0)];
    let compiled = compile_patched(command, &replaced, true).unwrap();
    assert_eq!(compiled.unit.source, project.path("a.c").display().to_string());
    assert!(compiled.warnings.iter().any(|line| line.starts_with("a.c:3:") && line.contains("[-Wint-conversion]")));
    assert!(!compiled.warnings.iter().any(|line| line.contains("-Wunused")), "{:?}", compiled.warnings);
    assert!(compiled.unit.locs.iter().any(|loc| loc.line == 3 && loc.in_macro));
    assert!(compile_patched(command, &replaced, false).unwrap().warnings.is_empty());

    let again = relink(&loaded.program, &[(UnitId(0), compiled.unit.into())], &[]);
    let (h, _) = again.units[UnitId(0)].symbols.iter_ids().find(|(_, symbol)| symbol.name == "h").unwrap();
    assert!(matches!(again.target(UnitId(0), h), Target::Functions(ids) if ids.len() == 1));

    let error = compile_patched(command, &[(project.path("a.c"), "int (".to_owned())], false).unwrap_err();
    assert!(matches!(error, FrontendError::Compile { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(project.path("a.h")).unwrap(), "int g(void);\n");
}

#[test]
fn a_cross_compilers_unit_is_read_for_its_target() {
    let source = "#ifdef __aarch64__\nint arm(void) { return sizeof(char *); }\n#endif\n";
    let project = Project::new(&[("a.c", source), ("b.c", "#ifdef __arm__\nint arm32(void) { return 1; }\n#endif\n")]);
    project.database(&[
        ("a.c", "ccache /usr/bin/aarch64-linux-gnu-gcc-12 -mno-outline-atomics -c a.c"),
        ("b.c", "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=soft -c b.c"),
    ]);
    assert_eq!(function_names(&project.load()), ["arm", "arm32"]);
}

#[test]
fn runs_that_share_a_cache_do_not_disturb_each_other() {
    let project = Project::new(&[("a.c", "int f(void) { return 1; }\n"), ("b.c", "int g(void) { return 2; }\n")]);
    project.database(&[("a.c", "gcc -c a.c"), ("b.c", "gcc -c b.c")]);
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| project.load())).collect();
        for run in runs {
            let loaded = run.join().unwrap();
            assert_eq!(function_names(&loaded), ["f", "g"]);
            assert!(loaded.gaps.is_empty(), "{:?}", loaded.gaps);
        }
    });
    assert_eq!(project.load().timings.from_cache, 2);
}

#[test]
fn a_touched_file_with_the_same_content_is_not_compiled_again() {
    let project = Project::new(&[("a.c", "#include \"a.h\"\nint f(void) { return A; }\n"), ("a.h", "#define A 1\n")]);
    project.database(&[("a.c", "gcc -c a.c")]);
    project.load();
    project.write("a.h", "#define A 1\n");
    assert_eq!(project.load().timings.compiled, 0);
}

#[test]
fn progress_reaches_the_end() {
    #[derive(Default)]
    struct Watch(Mutex<(Vec<PathBuf>, usize, usize)>);
    impl Progress for Watch {
        fn started(&self, file: &Path) {
            self.0.lock().unwrap().0.push(file.to_path_buf());
        }
        fn advanced(&self, done: usize, all: usize) {
            let mut seen = self.0.lock().unwrap();
            seen.1 = seen.1.max(done);
            seen.2 = all;
        }
    }
    let project = Project::new(&[("a.c", "int a;\n"), ("b.c", "int b;\n")]);
    project.database(&[("a.c", "gcc -c a.c"), ("b.c", "gcc -c b.c")]);
    let cold = Watch::default();
    load(&project.request(), &cold).unwrap();
    let seen = cold.0.into_inner().unwrap();
    assert_eq!((seen.0.len(), seen.1, seen.2), (2, 2, 2));
    let warm = Watch::default();
    load(&project.request(), &warm).unwrap();
    let seen = warm.0.into_inner().unwrap();
    assert_eq!((seen.0.len(), seen.1, seen.2), (0, 2, 2));
}
