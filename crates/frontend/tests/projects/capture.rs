//! Records real builds and loads what was recorded.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use caulk_frontend::{CaptureReport, Loaded, capture};
use caulk_ir::{Target, UnitId};

use crate::project::{Project, function_names};

pub fn run(project: &Project, command: &[&str]) -> CaptureReport {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    capture(&command, &project.path("")).unwrap()
}

/// Runs a command that is not captured.
pub fn plain(project: &Project, command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(project.path("")).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The file names of the sources that define what a name means in the unit of a source.
pub fn meaning(loaded: &Loaded, source: &str, name: &str) -> Vec<String> {
    let program = &loaded.program;
    let here = |unit: &UnitId| program.units[*unit].source.ends_with(source);
    let unit = program.units.ids().find(here).unwrap_or_else(|| panic!("no unit of {source}"));
    let symbols = &program.units[unit].symbols;
    let (symbol, _) = symbols.iter_ids().find(|(_, symbol)| symbol.name == name).expect("the name is used");
    let Target::Functions(found) = program.target(unit, symbol) else { return vec!["extern".to_owned()] };
    let file = |source: &str| source.rsplit('/').next().unwrap_or(source).to_owned();
    found.iter().map(|&id| file(&program.units[program.unit_of(id)].source)).collect()
}

pub fn link_names(loaded: &Loaded) -> Vec<&str> {
    loaded.program.link_units.iter().map(|link| link.name.rsplit('/').next().unwrap_or(&link.name)).collect()
}

/// Two programs, each with a `usage` of its own, and a library that calls it.
const PROGRAMS: &[(&str, &str)] = &[
    ("one.c", "int die(void);\nint usage(void) { return 1; }\nint main(void) { return die(); }\n"),
    ("two.c", "int die(void);\nint usage(void) { return 2; }\nint main(void) { return die(); }\n"),
    ("lib/die.c", "#include \"die.h\"\nint usage(void);\nint die(void) { return usage() + WHAT; }\n"),
    ("lib/inc/die.h", "#define WHAT VALUE\n"),
];

#[test]
fn recursive_make_with_archives_and_response_files() {
    let project = Project::new(PROGRAMS);
    project.write(
        "Makefile",
        "CC = gcc\nall: one two\nlib/libdie.a:\n\t$(MAKE) -C lib libdie.a\n\
         one: one.o lib/libdie.a\n\t$(CC) -o $@ one.o -Llib -ldie\n\
         two: two.o lib/libdie.a\n\techo 'two.o lib/libdie.a' > link.rsp; $(CC) -o $@ @link.rsp; rm link.rsp\n",
    );
    project.write(
        "lib/Makefile",
        "libdie.a: die.o\n\tar cr $@ $^\n\
         die.o: die.c\n\techo '-DVALUE=3 -I inc' > c.rsp; gcc -Wall -O2 @c.rsp -MMD -c $< -o $@; rm c.rsp\n",
    );
    let report = run(&project, &["make", "-j2"]);
    assert!(report.status.success());
    assert_eq!((report.recorded, report.units, report.link_units), (3, 3, 3));
    let loaded = project.load();
    assert!(loaded.failed.is_empty(), "{:?}", loaded.failed);
    let mut links = link_names(&loaded);
    links.sort_unstable();
    assert_eq!(links, ["one", "two"]);
    let mut callees = meaning(&loaded, "die.c", "usage");
    callees.sort();
    assert_eq!(callees, ["one.c", "two.c"]);
    assert_eq!(meaning(&loaded, "one.c", "usage"), ["one.c"]);

    // An incremental build must not lose the others, and a changed command takes the place of the old one.
    project.write("two.c", "int die(void);\nint usage(void) { return X; }\nint main(void) { return die(); }\n");
    std::fs::remove_file(project.path("two.o")).unwrap();
    let report = run(&project, &["make", "CFLAGS=-DX=4"]);
    assert_eq!((report.recorded, report.units, report.link_units), (1, 3, 3));
    assert!(project.load().failed.is_empty());
}

#[test]
fn one_command_compiles_and_links_and_one_source_makes_several_objects() {
    let project = Project::new(&[
        ("a.c", "int helper(void);\nint main(void) { return helper(); }\n"),
        ("b.c", "int helper(void) { return MODE; }\n"),
        ("build.sh", "set -e\ncc -DMODE=1 a.c b.c -o one\ncc -c a.c\ncc -DMODE=2 -c b.c -o b2.o\ncc a.o b2.o -o two\n"),
    ]);
    let report = run(&project, &["sh", "build.sh"]);
    assert!(report.status.success());
    assert_eq!((report.units, report.link_units), (4, 2));
    let loaded = project.load();
    assert_eq!(loaded.program.link_units.len(), 2);
    let sizes: Vec<usize> = loaded.program.link_units.iter().map(|link| link.units.len()).collect();
    assert_eq!(sizes, [2, 2]);
    assert_eq!(function_names(&loaded).iter().filter(|name| *name == "helper").count(), 2);
}

const CMAKE: &str = "cmake_minimum_required(VERSION 3.10)\nproject(demo C)\n\
    add_library(die STATIC lib/die.c)\ntarget_include_directories(die PRIVATE lib/inc)\n\
    target_compile_definitions(die PRIVATE VALUE=5)\n\
    add_executable(one one.c)\ntarget_link_libraries(one die)\n\
    add_executable(two two.c)\ntarget_link_libraries(two die)\n";

fn check_programs(project: &Project) {
    let loaded = project.load();
    assert!(loaded.failed.is_empty(), "{:?}", loaded.failed);
    let mut names: Vec<_> = loaded.commands.iter().filter_map(|c| c.file.file_name()?.to_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["die.c", "one.c", "two.c"]);
    let mut callees = meaning(&loaded, "die.c", "usage");
    callees.sort();
    assert_eq!(callees, ["one.c", "two.c"]);
    assert_eq!(meaning(&loaded, "two.c", "die"), ["die.c"]);
}

#[test]
fn cmake_and_ninja_configured_and_built_under_capture() {
    let project = Project::new(PROGRAMS);
    project.write("CMakeLists.txt", CMAKE);
    let report = run(&project, &["sh", "-c", "cmake -G Ninja -B out . >/dev/null && ninja -C out >/dev/null"]);
    assert!(report.status.success());
    assert_eq!((report.units, report.link_units), (3, 3));
    check_programs(&project);
}

#[test]
fn cmake_and_make_configured_before_with_absolute_compiler_paths() {
    let project = Project::new(PROGRAMS);
    project.write("CMakeLists.txt", CMAKE);
    plain(&project, &["cmake", "-B", "out", "."]);
    let report = run(&project, &["cmake", "--build", "out", "-j2"]);
    assert!(report.status.success());
    assert_eq!((report.units, report.link_units), (3, 3));
    check_programs(&project);
}

#[test]
fn cmakes_own_database_is_linked_by_what_cmake_leaves_on_disk() {
    for generator in ["Ninja", "Unix Makefiles"] {
        let project = Project::new(PROGRAMS);
        project.write("CMakeLists.txt", CMAKE);
        plain(&project, &["cmake", "-G", generator, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-B", "build", "."]);
        check_programs(&project);
    }
}

#[test]
fn meson() {
    let project = Project::new(PROGRAMS);
    project.write(
        "meson.build",
        "project('demo', 'c')\n\
         die = static_library('die', 'lib/die.c', include_directories: 'lib/inc', c_args: '-DVALUE=5')\n\
         executable('one', 'one.c', link_with: die)\nexecutable('two', 'two.c', link_with: die)\n",
    );
    let report = run(&project, &["sh", "-c", "meson setup out >/dev/null && ninja -C out >/dev/null"]);
    assert!(report.status.success());
    check_programs(&project);

    let uncaptured = Project::new(PROGRAMS);
    uncaptured.write("meson.build", &std::fs::read_to_string(project.path("meson.build")).unwrap());
    plain(&uncaptured, &["meson", "setup", "build"]);
    check_programs(&uncaptured);
}

#[test]
fn libtools_way_of_building_a_shared_library() {
    let project = Project::new(&[
        ("app.c", "int deep(void);\nint main(void) { return deep(); }\n"),
        ("deep.c", "int inner(void);\nint deep(void) { return inner(); }\n"),
        ("inner.c", "int inner(void) { return 0; }\n"),
        (
            "build.sh",
            "set -e\nmkdir -p .libs\n\
             for f in deep inner; do gcc -c $f.c -fPIC -DPIC -o .libs/$f.o; gcc -c $f.c -o $f.o; done\n\
             ar cr .libs/libinner.a .libs/inner.o\n\
             mkdir -p .libs/libdeep.lax/libinner.a; (cd .libs/libdeep.lax/libinner.a && ar x ../../libinner.a)\n\
             gcc -shared .libs/deep.o -Wl,--whole-archive,.libs/libinner.a,--no-whole-archive -o .libs/libdeep.so.0.0.0\n\
             ar cr .libs/libdeep.a deep.o .libs/libdeep.lax/libinner.a/inner.o\n\
             (cd .libs && ln -sf libdeep.so.0.0.0 libdeep.so)\n\
             gcc -c app.c; gcc -o .libs/app app.o ./.libs/libdeep.so\n",
        ),
    ]);
    let report = run(&project, &["sh", "build.sh"]);
    assert!(report.status.success());
    let loaded = project.load();
    assert_eq!(loaded.program.units.len(), 3, "with and without -fPIC is one unit");
    assert_eq!(meaning(&loaded, "app.c", "deep"), ["deep.c"]);
    assert_eq!(meaning(&loaded, "deep.c", "inner"), ["inner.c"]);
    let mut links = link_names(&loaded);
    links.sort_unstable();
    assert_eq!(links, ["app", "libdeep.a", "libdeep.so.0.0.0"]);
}

#[test]
fn a_failing_build_keeps_what_it_has_and_says_how_it_ended() {
    let project = Project::new(&[("a.c", "int a;\n"), ("b.c", "int b( {\n"), ("c.c", "int c;\n")]);
    project.write("Makefile", "all:\n\tgcc -c a.c\n\tgcc -c b.c\n\tgcc -c c.c\n");
    let report = run(&project, &["make", "-s"]);
    assert_eq!(report.status.code(), Some(2));
    assert_eq!(report.units, 2, "a.c, and b.c that fails");
    let loaded = project.load();
    assert_eq!((loaded.program.units.len(), loaded.failed.len()), (1, 1));
}

#[test]
fn an_interrupted_build_keeps_what_it_has() {
    let project = Project::new(&[("a.c", "int a;\n")]);
    let report = run(&project, &["sh", "-c", "gcc -c a.c; kill -INT $$; sleep 60"]);
    assert_eq!(report.status.signal(), Some(2));
    assert_eq!(report.units, 1);
    let none = capture(&["/no/such/build".into()], &project.path("")).unwrap_err().to_string();
    assert!(none.starts_with("cannot start /no/such/build"), "{none}");
    assert_eq!(project.load().program.units.len(), 1);
}

#[test]
fn the_log_of_a_capture_that_was_killed_is_taken_over() {
    let project = Project::new(&[("a.c", "int a;\n"), ("b.c", "int b;\n")]);
    let folder = project.path("");
    let line = format!("d{}\u{1f}agcc\u{1f}a-c\u{1f}ab.c\u{1f}.\nd/cut\u{1f}agc", folder.display());
    // No process has this number.
    project.write(".caulk/capture-99999999.log", &line);
    let report = run(&project, &["gcc", "-c", "a.c"]);
    assert_eq!((report.recorded, report.units), (2, 2));
    assert!(!project.path(".caulk/capture-99999999.log").exists());
}

#[test]
fn a_broken_database_is_replaced_and_probes_are_left_out() {
    let project = Project::new(&[("a.c", "int a;\n"), ("compile_commands.json", "[{"), ("out/meson-private/t.c", "")]);
    let report = run(
        &project,
        &[
            "sh",
            "-c",
            "gcc -c a.c; gcc -c out/meson-private/t.c; echo 'int c;' > conftest.c; gcc -c conftest.c; \
           rm conftest.c; gcc -E a.c >/dev/null; gcc --version >/dev/null; echo 'int s;' | gcc -x c -c - -o s.o",
        ],
    );
    assert_eq!(report.units, 1);
    assert!(report.note.is_some_and(|note| note.contains("not a compile database")));
}
