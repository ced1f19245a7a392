//! Reads the arguments of a gcc-like driver: which words are options, which are their values, which are inputs.

/// One argument; an option and its value are one, whether written in one word or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    /// An option of one word, with its `=value` if it has one.
    Plain(&'a str),
    Valued {
        option: &'a str,
        value: &'a str,
    },
    /// A file, and the language that a `-x` before it says it is in.
    Input {
        path: &'a str,
        language: Option<&'a str>,
    },
}

impl Arg<'_> {
    pub(super) fn is_target(&self) -> bool {
        match self {
            Arg::Plain(word) => word.starts_with("--target="),
            Arg::Valued { option, .. } => *option == "-target",
            Arg::Input { .. } => false,
        }
    }
}

/// Options whose value is the next word.
#[rustfmt::skip]
const SEPARATE: &[&str] = &[
    "--include", "--param", "--sysroot", "-G", "-T", "-Xassembler", "-Xclang", "-Xlinker", "-Xpreprocessor", "-arch",
    "-aux-info", "-dumpbase", "-dumpbase-ext", "-dumpdir", "-e", "-framework", "-imultilib", "-isysroot", "-mllvm",
    "-rpath", "-soname", "-specs", "-target", "-u", "-working-directory", "-wrapper", "-z",
];

/// Options whose value may also stand in the same word. Longer ones first where one starts with another.
#[rustfmt::skip]
const JOINED_OR_SEPARATE: &[&str] = &[
    "-iwithprefixbefore", "-iwithprefix", "-idirafter", "-imacros", "-include", "-iprefix", "-iquote", "-isystem", "-MF",
    "-MQ", "-MT", "-A", "-B", "-D", "-I", "-L", "-U", "-l", "-o", "-x",
];

/// Reads the words after the compiler's name. An option that lacks its value is dropped.
pub fn parse(words: &[String]) -> Vec<Arg<'_>> {
    let mut arguments = Vec::with_capacity(words.len());
    let mut language = None;
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            arguments.push(Arg::Input { path: word, language });
            continue;
        }
        let valued = if SEPARATE.contains(&word) || JOINED_OR_SEPARATE.contains(&word) {
            let Some(value) = words.next() else { break };
            Some((word, value))
        } else {
            let joined = JOINED_OR_SEPARATE.iter().find(|option| word.starts_with(**option));
            joined.map(|option| (*option, &word[option.len()..]))
        };
        match valued {
            Some((option, value)) => {
                if option == "-x" {
                    language = (value != "none").then_some(value);
                }
                arguments.push(Arg::Valued { option, value });
            }
            None => arguments.push(Arg::Plain(word)),
        }
    }
    arguments
}
