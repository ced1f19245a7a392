//! Records builds through the real tools that stand between a build and its compiler: autotools' libtool, ccache,
//! cross compilers, `-include`.

use crate::capture::{link_names, meaning, plain, run};
use crate::project::{Project, function_names};

/// `configure` tries the compiler many times, libtool compiles each source of a library twice and links it through
/// a script; the program is linked against what is not installed yet.
#[test]
fn autotools_with_libtool() {
    let project = Project::new(&[
        ("app.c", "int deep(void);\nint main(void) { return deep(); }\n"),
        ("src/deep.c", "int inner(void);\nint deep(void) { return inner() + DEPTH; }\n"),
        ("src/inner.c", "int inner(void) { return 0; }\n"),
        (
            "configure.ac",
            "AC_INIT([demo], [1])\nAM_INIT_AUTOMAKE([foreign subdir-objects])\nAC_PROG_CC\nAM_PROG_AR\nLT_INIT\n\
             AC_CONFIG_FILES([Makefile src/Makefile])\nAC_OUTPUT\n",
        ),
        ("Makefile.am", "SUBDIRS = src .\nbin_PROGRAMS = app\napp_SOURCES = app.c\napp_LDADD = src/libdeep.la\n"),
        (
            "src/Makefile.am",
            "noinst_LTLIBRARIES = libinner.la\nlibinner_la_SOURCES = inner.c\n\
             lib_LTLIBRARIES = libdeep.la\nlibdeep_la_SOURCES = deep.c\n\
             libdeep_la_CPPFLAGS = -DDEPTH=1\nlibdeep_la_LIBADD = libinner.la\n",
        ),
    ]);
    plain(&project, &["autoreconf", "-i"]);
    let report = run(&project, &["sh", "-c", "./configure -q >/dev/null && make -s -j2 >/dev/null"]);
    assert!(report.status.success());
    let loaded = project.load();
    assert!(loaded.failed.is_empty(), "{:?}", loaded.failed);
    let mut names = function_names(&loaded);
    names.sort();
    assert_eq!(names, ["deep", "inner", "main"], "with and without -fPIC is one unit, and no probe is kept");
    assert_eq!(meaning(&loaded, "app.c", "deep"), ["deep.c"]);
    assert_eq!(meaning(&loaded, "deep.c", "inner"), ["inner.c"]);
    let mut links = link_names(&loaded);
    links.sort_unstable();
    assert_eq!(links, ["app", "libdeep.a", "libdeep.so.0.0.0"]);
}

/// In front of the compiler, and as a compiler of its own name (`/usr/lib/ccache/gcc`); first a miss, then a hit,
/// for which no compiler runs at all.
#[test]
fn ccache_in_front() {
    for compiler in ["ccache gcc", "PATH=\"/usr/lib/ccache:$PATH\" gcc"] {
        let project = Project::new(&[("a.c", "int main(void) { return X; }\n")]);
        let build =
            format!("export CCACHE_DIR=\"$PWD/objects\"; {compiler} -DX=1 -c a.c -o a.o && {compiler} a.o -o app");
        for round in ["miss", "hit"] {
            let report = run(&project, &["sh", "-c", &build]);
            assert!(report.status.success());
            assert_eq!((report.recorded, report.units, report.link_units), (1, 1, 1), "{compiler}: {round}");
            std::fs::remove_file(project.path("a.o")).unwrap();
            std::fs::remove_file(project.path("compile_commands.json")).unwrap();
        }
        let report = run(&project, &["sh", "-c", &build]);
        assert_eq!(report.units, 1);
        let loaded = project.load();
        assert_eq!(function_names(&loaded), ["main"]);
        assert_eq!(link_names(&loaded), ["app"]);
    }
}

/// clang takes its target from its name, as every cross compiler does; the host's own compiler has such a name too.
#[test]
fn cross_compilers_by_their_names() {
    let project = Project::new(&[
        ("arm.c", "#ifdef __aarch64__\nint arm(void) { return 1; }\n#else\n#error not for this machine\n#endif\n"),
        ("host.c", "int host(void) { return sizeof(void *); }\n"),
    ]);
    let build = "set -e\nmkdir -p bin; ln -sf \"$(command -v \"${CAULK_CLANG:-clang-19}\")\" bin/aarch64-linux-gnu-clang\n\
        bin/aarch64-linux-gnu-clang -ffreestanding -c arm.c\n\
        \"$(gcc -dumpmachine)-gcc\" -c host.c\n\"$(gcc -dumpmachine)-ar\" cr libhost.a host.o\n";
    let report = run(&project, &["sh", "-c", build]);
    assert!(report.status.success());
    assert_eq!((report.units, report.link_units), (2, 1));
    let loaded = project.load();
    assert!(loaded.failed.is_empty(), "{:?}", loaded.failed);
    assert_eq!(function_names(&loaded), ["arm", "host"]);
}

#[test]
fn headers_named_on_the_command_line_only() {
    let project = Project::new(&[
        ("sub/a.c", "int NAME(void) { return LATER; }\n"),
        ("sub/config.h", "#define NAME configured\n"),
        ("inc/macros.h", "#define LATER CONFIG + 1\n"),
        ("sub/Makefile", "a.o: a.c\n\tgcc -DCONFIG=4 -include config.h -imacros ../inc/macros.h -c $< -o $@\n"),
    ]);
    let report = run(&project, &["make", "-s", "-C", "sub"]);
    assert!(report.status.success());
    let cold = project.load();
    assert!(cold.failed.is_empty(), "{:?}", cold.failed);
    assert_eq!(function_names(&cold), ["configured"]);
    assert_eq!(project.load().timings.from_cache, 1);
    project.write("sub/config.h", "#define NAME changed\n");
    assert_eq!(function_names(&project.load()), ["changed"], "what is included this way is a dependency, too");
}

/// One source under two sets of flags goes into a program and into a shared library; each calls its own.
#[test]
fn one_source_in_a_program_and_in_a_shared_library() {
    let project = Project::new(&[
        ("main.c", "int where(void);\nint main(void) { return where(); }\n"),
        ("api.c", "int where(void);\nint api(void) { return where(); }\n"),
        ("where.c", "#ifdef LIBRARY\nint only_here(void);\n#endif\nint where(void) { return 1; }\n"),
        (
            "Makefile",
            "all: app libapi.so\napp: main.o where.o\n\t$(CC) -o $@ $^\n\
             libapi.so: api.pic.o where.pic.o\n\t$(CC) -shared -o $@ $^\n\
             %.pic.o: %.c\n\t$(CC) -fPIC -DLIBRARY -c $< -o $@\n",
        ),
    ]);
    let report = run(&project, &["make", "-s", "-j2"]);
    assert!(report.status.success());
    assert_eq!((report.units, report.link_units), (4, 2));
    let loaded = project.load();
    let mut links = link_names(&loaded);
    links.sort_unstable();
    assert_eq!(links, ["app", "libapi.so"]);
    let wheres: Vec<_> = loaded.program.functions_named("where").to_vec();
    assert_eq!(wheres.len(), 2);
    for link in loaded.program.link_units.iter() {
        let inside = wheres.iter().filter(|&&id| link.units.contains(&loaded.program.unit_of(id)));
        assert_eq!(inside.count(), 1, "{}", link.name);
    }
    assert_eq!(meaning(&loaded, "main.c", "where").len(), 1);
    assert_eq!(meaning(&loaded, "api.c", "where").len(), 1);
}
