use super::*;

fn command(words: &str, file: &str) -> CompileCommand {
    CompileCommand {
        directory: "/p".into(),
        file: absolute(Path::new("/p"), Path::new(file)),
        arguments: crate::words::split_shell(words),
        output: None,
    }
}

fn flags(words: &str) -> String {
    convert(&command(words, "a.c")).flags.join(" ")
}

#[test]
fn what_changes_the_meaning_stays_and_the_rest_goes() {
    assert_eq!(
        flags(
            "gcc -O2 -g3 -pipe -Wall -Werror=format -MMD -MF .deps/a.d -MT a.o -fanalyzer -fno-plt -flto=auto \
             -fstack-protector-strong -fsanitize=address --coverage -fprofile-arcs -I. -I inc -DX=1 -D Y -UZ \
             -include pre.h -isystem/sys -std=gnu99 -fshort-enums -fno-builtin-malloc -pthread -c -o a.o a.c -lm -L/x"
        ),
        "-I . -I inc -D X=1 -D Y -U Z -include pre.h -isystem /sys -std=gnu99 -fshort-enums -fno-builtin-malloc -pthread"
    );
}

#[test]
fn wrappers_and_cross_compilers_are_seen_through() {
    assert_eq!(flags("ccache base_dir=/p aarch64-linux-gnu-gcc-12 -DX -c a.c"), "--target=aarch64-linux-gnu -D X");
    assert_eq!(flags("distcc /usr/bin/gcc-12.2 -DX a.c"), "-D X");
    assert_eq!(flags("/bin/sh ./libtool --tag=CC --mode=compile gcc -DX -c a.c -o a.lo"), "-D X");
    assert_eq!(flags("ccache mycompiler -DX -c a.c"), "-D X");
    assert_eq!(flags("c99 -DX -c a.c"), "-std=c99 -D X");
    assert_eq!(flags("clang --target=armv7-linux -DX -c a.c"), "--target=armv7-linux -D X");
    assert_eq!(
        flags("arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mtune=x -c a.c"),
        "--target=arm-none-eabi -mcpu=cortex-m4 -mthumb"
    );
    assert_eq!(flags(""), "");
}

#[test]
fn warnings_are_kept_apart() {
    let converted = convert(&command("gcc -Wall -Werror -Wno-unused -Wl,-z -Wp,-MD,a.d,-DIN -pedantic -c a.c", "a.c"));
    assert_eq!(converted.warnings, ["-Wall", "-Wno-unused", "-pedantic"]);
    assert_eq!(converted.flags, ["-DIN"]);
}

#[test]
fn gccs_own_headers_give_way_to_clangs() {
    assert_eq!(
        flags("gcc -nostdinc -isystem /usr/lib/gcc/x86_64-linux-gnu/12/include -Iinclude -c a.c"),
        "-nostdlibinc -I include"
    );
    assert_eq!(flags("gcc -nostdinc -Iinclude -c a.c"), "-nostdinc -I include");
}

#[test]
fn languages_come_from_x_then_the_driver_then_the_ending() {
    let language = |words: &str, file: &str| convert(&command(words, file)).language;
    assert_eq!(language("gcc -c a.c", "a.c"), Language::C);
    assert_eq!(language("gcc -c a.cc", "a.cc"), Language::Cpp);
    assert_eq!(language("g++ -c a.c", "a.c"), Language::Cpp);
    assert_eq!(language("g++ -x c -c a.c", "a.c"), Language::C);
    assert_eq!(language("gcc -x c++ b.c -x none a.c", "a.c"), Language::C);
    assert_eq!(language("gcc -x c++ b.c -x none a.c", "b.c"), Language::Cpp);
    assert_eq!(language("gcc -c a.S", "a.S"), Language::Assembler);
    assert_eq!(language("gcc -x c-header a.h", "a.h"), Language::Other);
    assert_eq!(language("gcc -c a.i", "a.i"), Language::PreprocessedC);
}

#[test]
fn objects_are_named_as_gcc_names_them() {
    let object = |words: &str| {
        let words = crate::words::split_shell(words);
        object_of(&words, Path::new("/p/o"), Path::new("/p/src/a.c")).unwrap().display().to_string()
    };
    assert_eq!(object("gcc -c ../src/a.c"), "/p/o/a.o");
    assert_eq!(object("gcc -c ../src/a.c -o x/y.lo"), "/p/o/x/y.lo");
    assert_eq!(object("gcc ../src/a.c b.c -o bin/prog"), "/p/o/bin/prog-a.o");
}

#[test]
fn tools_are_known_by_name() {
    let kind = |name: &str| tool(name).map(|driver| (driver.tool, driver.target));
    assert_eq!(kind("/usr/bin/x86_64-linux-gnu-gcc-ar-12"), Some((Tool::Archiver, Some("x86_64-linux-gnu".into()))));
    assert_eq!(kind("ar"), Some((Tool::Archiver, None)));
    assert_eq!(kind("ld.gold"), Some((Tool::Linker, None)));
    assert_eq!(kind("c89-gcc"), Some((Tool::C, None)));
    assert_eq!(kind("arm-linux-gnueabihf-g++"), Some((Tool::Cpp, Some("arm-linux-gnueabihf".into()))));
    assert_eq!(kind("ccache"), Some((Tool::Wrapper, None)));
    assert_eq!(kind("make"), None);
    assert_eq!(kind("arm-thing"), None);
    assert_eq!(kind(""), None);
}
