//! Turns the command of any gcc-like compiler into one for clang 19.
//!
//! Only what changes the meaning of the source is kept; what concerns warnings, optimisation, instrumentation,
//! code generation, dependency files or linking is left out, and clang's own reading takes its place:
//!
//! ```text
//! ccache aarch64-linux-gnu-gcc-12 -O2 -Wall -MMD -MF a.d -fanalyzer -I. -DX -c a.c -o a.o
//!   -> --target=aarch64-linux-gnu -I. -DX         (and clang.rs adds -c -emit-llvm -O0 -g … a.c)
//! ```
//!
//! # Invariants
//! - What is kept keeps its order: a later `-I`, `-D` or `-std` sees the same earlier ones as in the build.
//! - Warning flags are kept apart, for comparing the warnings of a patched file with those before.
//! # Known imprecision
//! - `-fopenmp` is dropped: the program is read as the serial one it also is.
//! - `-O0` leaves `__OPTIMIZE__` and `_FORTIFY_SOURCE`'s checks undefined.

mod driver;
mod parse;

use std::path::{Path, PathBuf};

pub use driver::{Tool, compiler_index, tool};
pub use parse::{Arg, parse};

use crate::database::CompileCommand;
use crate::paths::absolute;

/// What a source file is written in, as the command sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    C,
    /// `.i`: C after the preprocessor.
    PreprocessedC,
    Cpp,
    Assembler,
    /// Objective-C, Fortran, headers to precompile, …
    Other,
}

/// A command in clang's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClangFlags {
    /// Without the compiler, the source, and what every run of ours adds.
    pub flags: Vec<String>,
    /// The unit's own `-W…` flags (never `-Werror…`).
    pub warnings: Vec<String>,
    pub language: Language,
}

/// Options whose single word is kept as it is.
#[rustfmt::skip]
const KEPT: &[&str] = &[
    "-ansi", "-fasm", "-fblocks", "-fbuiltin", "-fcommon", "-fdeclspec", "-fdollars-in-identifiers", "-ffast-math",
    "-ffinite-math-only", "-ffreestanding", "-fgnu89-inline", "-fgnu-keywords", "-fhosted", "-flax-vector-conversions",
    "-fms-compatibility", "-fms-extensions", "-fno-asm", "-fno-builtin", "-fno-common", "-fno-dollars-in-identifiers",
    "-fno-gnu89-inline", "-fno-hosted", "-fno-lax-vector-conversions", "-fno-pic", "-fno-PIC", "-fno-pie", "-fno-PIE",
    "-fno-short-enums", "-fno-short-wchar", "-fno-signed-char", "-fno-trigraphs", "-fno-unsigned-char", "-fno-wrapv",
    "-fpack-struct", "-fpic", "-fPIC", "-fpie", "-fPIE", "-fshort-enums", "-fshort-wchar", "-fsigned-char",
    "-ftrigraphs", "-funsigned-char", "-fwrapv", "-fwritable-strings", "-nobuiltininc", "-nostdlibinc", "-pthread",
    "-traditional-cpp", "-trigraphs", "-undef",
];

/// Options kept with whatever follows in the same word.
const KEPT_PREFIXES: &[&str] =
    &["-std=", "--std=", "--sysroot=", "--target=", "-fno-builtin-", "-fpack-struct=", "-fstrict-flex-arrays="];

/// Options kept with a value in the same word or the next.
#[rustfmt::skip]
const KEPT_VALUED: &[&str] = &[
    "-D", "-I", "-U", "--include", "--sysroot", "-arch", "-idirafter", "-imacros", "-include", "-iprefix", "-iquote",
    "-isysroot", "-isystem", "-iwithprefix", "-iwithprefixbefore", "-target",
];

/// `-m` options that only concern code generation, or that clang does not know. Others go through.
#[rustfmt::skip]
const DROPPED_MACHINE: &[&str] = &[
    "-maccumulate-outgoing-args", "-malign-", "-mapcs", "-mbranch-protection", "-mcmodel", "-mfentry",
    "-mfunction-return", "-mharden-sls", "-mincoming-stack-boundary", "-mindirect-branch", "-minline-", "-mmanual-endbr",
    "-mno-accumulate-outgoing-args", "-mno-align-", "-mno-fancy-math-387", "-mno-fp-ret-in-387", "-mno-omit-leaf",
    "-mno-push-args", "-mno-red-zone", "-mnop-mcount", "-momit-leaf", "-mpreferred-stack-boundary", "-mrecord-mcount",
    "-mrecord-return", "-msign-return-address", "-mskip-rax-setup", "-mstack-protector", "-mthumb-interwork",
    "-mtls-dialect", "-mtune",
];

/// Translates one command.
pub fn convert(command: &CompileCommand) -> ClangFlags {
    let (driver, compiler, arguments) = driver::split(&command.arguments);
    let arguments = parse(arguments);
    let language = language_of(&arguments, &command.directory, &command.file, driver.tool);
    let mut out = ClangFlags { flags: Vec::new(), warnings: Vec::new(), language };
    if !arguments.iter().any(|argument| argument.is_target()) {
        out.flags.extend(driver.target_flags(compiler));
    }
    out.flags.extend(driver.standard.map(|standard| format!("-std={standard}")));
    // Builds without standard headers (kernels, firmware) name gcc's own header folder; clang's must take its place.
    let own_headers = arguments.iter().any(|argument| is_gcc_headers(argument));
    for argument in &arguments {
        match *argument {
            Arg::Plain("-nostdinc") => out.flags.push(if own_headers { "-nostdlibinc" } else { "-nostdinc" }.into()),
            Arg::Plain("-fplan9-extensions") => out.flags.push("-fms-extensions".into()),
            Arg::Plain(word) => keep_plain(word, &mut out),
            Arg::Valued { .. } if is_gcc_headers(argument) => {}
            Arg::Valued { option, value, .. } if KEPT_VALUED.contains(&option) => {
                let option = if option == "--include" { "-include" } else { option };
                out.flags.extend([option.to_owned(), value.to_owned()]);
            }
            Arg::Valued { .. } | Arg::Input { .. } => {}
        }
    }
    out
}

fn keep_plain(word: &str, out: &mut ClangFlags) {
    if let Some(list) = word.strip_prefix("-Wp,") {
        keep_preprocessor(list, out);
    } else if word.starts_with("-W") {
        let foreign = ["-Wl,", "-Wa,", "-Werror"].iter().any(|prefix| word.starts_with(prefix));
        if !foreign {
            out.warnings.push(word.to_owned());
        }
    } else if matches!(word, "-pedantic" | "--pedantic") {
        out.warnings.push("-pedantic".to_owned());
    } else if word.starts_with("-m") {
        if !DROPPED_MACHINE.iter().any(|prefix| word.starts_with(prefix)) {
            out.flags.push(word.to_owned());
        }
    } else if KEPT.contains(&word) || KEPT_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) {
        out.flags.push(word.to_owned());
    }
}

/// `-Wp,-DX,-MD,a.d`: the definitions are kept, the dependency file is not ours.
fn keep_preprocessor(list: &str, out: &mut ClangFlags) {
    let mut words = list.split(',');
    while let Some(word) = words.next() {
        match word {
            "-D" | "-U" | "-I" => out.flags.extend(words.next().map(|value| format!("{word}{value}"))),
            "-MD" | "-MMD" | "-MF" | "-MT" | "-MQ" => _ = words.next(),
            _ if ["-D", "-U", "-I"].iter().any(|prefix| word.starts_with(prefix)) => out.flags.push(word.to_owned()),
            _ => {}
        }
    }
}

fn is_gcc_headers(argument: &Arg<'_>) -> bool {
    let Arg::Valued { option: "-I" | "-isystem" | "-idirafter", value, .. } = argument else { return false };
    let value = value.trim_end_matches('/');
    value.contains("/lib/gcc/") && (value.ends_with("/include") || value.ends_with("/include-fixed"))
}

fn language_of(arguments: &[Arg<'_>], directory: &Path, file: &Path, tool: Tool) -> Language {
    let named = arguments.iter().find_map(|argument| match argument {
        Arg::Input { path, language } if absolute(directory, Path::new(path)) == file => Some(*language),
        _ => None,
    });
    // A database may spell the file differently from its command: then the last -x counts.
    let explicit = named.unwrap_or_else(|| {
        let last = arguments.iter().rev().find_map(|argument| match argument {
            Arg::Valued { option: "-x", value, .. } => Some(*value),
            _ => None,
        });
        last.filter(|&language| language != "none")
    });
    match explicit {
        Some("c" | "cuda-c") => Language::C,
        Some("cpp-output") => Language::PreprocessedC,
        Some("c++" | "c++-cpp-output") => Language::Cpp,
        Some("assembler" | "assembler-with-cpp") => Language::Assembler,
        Some(_) => Language::Other,
        None => match language_by_name(file) {
            Language::C | Language::PreprocessedC if tool == Tool::Cpp => Language::Cpp,
            language => language,
        },
    }
}

/// By the ending of the file's name, as gcc decides.
pub fn language_by_name(file: &Path) -> Language {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("c") => Language::C,
        Some("i") => Language::PreprocessedC,
        Some("cc" | "cp" | "cxx" | "cpp" | "CPP" | "c++" | "C" | "ii") => Language::Cpp,
        Some("s" | "S" | "sx" | "asm") => Language::Assembler,
        _ => Language::Other,
    }
}

/// The object a command makes of a source, if it makes one: `-o`, or the source's name with `.o`.
pub fn object_of(arguments: &[String], directory: &Path, file: &Path) -> Option<PathBuf> {
    let (_, _, arguments) = driver::split(arguments);
    let arguments = parse(arguments);
    let output = arguments.iter().rev().find_map(|argument| match argument {
        Arg::Valued { option: "-o", value, .. } => Some(*value),
        _ => None,
    });
    let compiles = arguments.iter().any(|argument| matches!(argument, Arg::Plain("-c")));
    if compiles {
        let own_name = || Some(Path::new(file.file_name()?).with_extension("o"));
        return Some(absolute(directory, &output.map(PathBuf::from).or_else(own_name)?));
    }
    // `gcc a.c b.c -o prog`: gcc names what it makes of each source after both.
    let program = absolute(directory, Path::new(output.unwrap_or("a.out")));
    let name = format!("{}-{}.o", program.file_name()?.to_string_lossy(), file.file_stem()?.to_string_lossy());
    Some(program.with_file_name(name))
}

#[cfg(test)]
mod tests;
