//! What a compiler's command line asks for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caulk_frontend::{Arg, parse_arguments};

/// A command line, with `@file` replaced by the words of the file.
pub(super) struct Words {
    pub(super) words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// `-c`: objects.
    Compile,
    /// A program, a shared library, or an object made of objects.
    Link,
    /// Nothing that objects come out of.
    Other,
}

const NO_OBJECTS: &[&str] = &[
    "-E",
    "-S",
    "-M",
    "-MM",
    "-fsyntax-only",
    "-###",
    "--version",
    "-dumpversion",
    "-dumpmachine",
    "-dumpspecs",
    "--help",
    "-emit-llvm",
    "-emit-ast",
    "--analyze",
    "--precompile",
];

/// Options that say how machine code is made, as opposed to how the source is read.
const CODE_PREFIXES: &[&str] = &["-O", "-f", "-m", "-g", "--target=", "-pthread", "-pg"];

impl Words {
    pub(super) fn read(words: &[OsString]) -> Result<Words> {
        let mut all = Vec::with_capacity(words.len());
        for word in words {
            let word = word.to_string_lossy();
            match word.strip_prefix('@') {
                Some(file) if Path::new(file).is_file() => {
                    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
                    all.extend(split(&text));
                }
                _ => all.push(word.into_owned()),
            }
        }
        Ok(Words { words: all })
    }

    pub(super) fn arguments(&self) -> Vec<Arg<'_>> {
        parse_arguments(&self.words)
    }

    pub(super) fn mode(&self) -> Mode {
        let arguments = self.arguments();
        let has = |names: &[&str]| arguments.iter().any(|a| matches!(a, Arg::Plain(word) if names.contains(word)));
        let asks = arguments.iter().any(|a| matches!(a, Arg::Plain(word) if word.starts_with("-print-")));
        let inputs = arguments.iter().any(|a| matches!(a, Arg::Input { .. }));
        if asks || has(NO_OBJECTS) || !inputs || self.is_probe() {
            Mode::Other
        } else if has(&["-c"]) {
            Mode::Compile
        } else {
            Mode::Link
        }
    }

    /// What `configure` compiles to find something out: it is thrown away at once.
    fn is_probe(&self) -> bool {
        self.arguments().iter().any(|argument| match argument {
            Arg::Input { path, .. } => {
                let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                *path == "-" || *path == "/dev/null" || stem == "conftest" || path.contains("CMakeScratch")
            }
            _ => false,
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }

    pub(super) fn output(&self) -> Option<PathBuf> {
        self.arguments().iter().rev().find_map(|argument| match argument {
            Arg::Valued { option: "-o", value } => Some(PathBuf::from(value)),
            _ => None,
        })
    }

    /// C sources among the inputs.
    pub(super) fn sources(&self) -> Vec<String> {
        let is_c = |path: &str, language: Option<&str>| match language {
            Some(language) => matches!(language, "c" | "cpp-output"),
            None => path.ends_with(".c") || path.ends_with(".i"),
        };
        let arguments = self.arguments();
        let sources = arguments.iter().filter_map(|argument| match argument {
            Arg::Input { path, language } if is_c(path, *language) => Some((*path).to_owned()),
            _ => None,
        });
        sources.collect()
    }

    /// Whether machine code shall have debug information.
    pub(super) fn debug(&self) -> bool {
        let last = self.words.iter().rev().find(|word| {
            word.starts_with("-g")
                && !word.starts_with("-gcc")
                && !word.starts_with("-gno-")
                && *word != "-gcolumn-info"
        });
        last.is_some_and(|word| word != "-g0")
    }

    pub(super) fn optimises(&self) -> bool {
        let last = self.words.iter().rev().find(|word| word.starts_with("-O"));
        last.is_some_and(|word| word != "-O0")
    }

    /// The options alone, without inputs, output, `-c`, and files about dependencies.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        for argument in self.arguments() {
            match argument {
                Arg::Plain(word) => {
                    let leave = word == "-c"
                        || word.starts_with("-M")
                        || word.starts_with("-Wl,")
                        || word.starts_with("-save-temps")
                        || word.starts_with("-Werror")
                        || word.starts_with("-flto")
                        || word.starts_with("-ffat-lto");
                    if !leave {
                        options.push(word.to_owned());
                    }
                }
                Arg::Valued { option, value } => {
                    if !matches!(
                        option,
                        "-o" | "-MF" | "-MT" | "-MQ" | "-l" | "-L" | "-x" | "-Xlinker" | "-z" | "-u" | "-T"
                    ) {
                        options.extend([option.to_owned(), value.to_owned()]);
                    }
                }
                Arg::Input { .. } => {}
            }
        }
        options
    }

    /// Those of the options that matter when bitcode is made into machine code.
    pub(super) fn code_options(&self) -> Vec<String> {
        let mut options = Vec::new();
        for argument in self.arguments() {
            match argument {
                Arg::Plain(word) => {
                    let read =
                        word.starts_with("-fplugin") || word.starts_with("-fsyntax") || word.starts_with("-fprofile");
                    if CODE_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) && !read {
                        options.push(word.to_owned());
                    }
                }
                Arg::Valued { option: option @ ("-target" | "-mllvm" | "-arch"), value } => {
                    options.extend([option.to_owned(), value.to_owned()]);
                }
                Arg::Valued { .. } | Arg::Input { .. } => {}
            }
        }
        options
    }
}

/// Words of a response file: white space between them, quotes and backslashes as in a shell.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut begun) = (Vec::new(), String::new(), false);
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                word.extend(chars.next());
                begun = true;
            }
            ('"' | '\'', None) => {
                quote = Some(c);
                begun = true;
            }
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (c, _) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Words {
        Words { words: split(line) }
    }

    #[test]
    fn what_a_command_line_asks_for_is_told_apart() {
        assert_eq!(words("-O2 -c a.c").mode(), Mode::Compile);
        assert_eq!(words("a.o -lm").mode(), Mode::Link);
        for line in ["--version", "-E a.c", "-S a.c", "-M a.c", "-v", "-print-prog-name=ld", "conftest.c -o conftest"] {
            assert_eq!(words(line).mode(), Mode::Other, "{line}");
        }
    }

    #[test]
    fn options_are_kept_by_what_they_are_for() {
        let line = words("-O2 -g -DX='a b' -I inc -MMD -MF a.d -fPIC -Wall -Werror -c a.c -o a.o -march=native");
        assert_eq!(line.options(), ["-O2", "-g", "-D", "X=a b", "-I", "inc", "-fPIC", "-Wall", "-march=native"]);
        assert_eq!(line.code_options(), ["-O2", "-g", "-fPIC", "-march=native"]);
        assert!(line.debug() && line.optimises());
        assert!(!words("-g -g0 -O2 -O0").debug() && !words("-O2 -O0").optimises());
        assert_eq!(words("-c a.c b.s -x c d").sources(), ["a.c", "d"]);
    }
}
