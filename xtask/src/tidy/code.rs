//! Rules for source files: length, module docs, `unsafe`, printing, leftovers.
//!
//! # Known imprecision
//! - Lines are read as text, not as Rust: a word inside a string counts too. That is
//!   why the words below are put together from pieces.

use super::{Complaint, File};

/// Lines of one source file, its tests aside.
const MAX_LINES: usize = 700;

/// Rooms that talk to LLVM, to libclang, or are linked into the user's program.
const MAY_BE_UNSAFE: [&str; 3] = ["crates/frontend/", "crates/source/", "crates/instrument/"];

/// Rooms that speak to the user, and the chores.
const MAY_PRINT: [&str; 3] = ["crates/report/", "crates/caulk/", "xtask/"];

/// What must not be left lying around, with the reason.
const LEFTOVERS: [(&str, &str); 7] = [
    (concat!("TO", "DO"), "unfinished work does not belong into the tree"),
    (concat!("FIX", "ME"), "unfinished work does not belong into the tree"),
    (concat!("#[", "ignore"), "a test that never runs proves nothing"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/Us", "ers/"), "a path of one machine"),
];

pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in files {
        if is_text_of_ours(&file.path) {
            leftovers(file, &mut complaints);
        }
        if file.path.ends_with(".rs") {
            rust(file, &mut complaints);
        }
        if [".rs", ".cpp", ".h"].iter().any(|end| file.path.ends_with(end)) && !is_test(&file.path) {
            length(file, &mut complaints);
        }
    }
    complaints
}

fn is_text_of_ours(path: &str) -> bool {
    let named =
        [".rs", ".cpp", ".h", ".c", ".toml", ".md", ".sh", ".yml", ".yaml"].iter().any(|end| path.ends_with(end));
    named || path.starts_with("scripts/") || path == ".ci/run" || path == "Makefile"
}

/// Test code and what tests read.
fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.starts_with("fixtures/") || path.ends_with("/tests.rs")
}

fn leftovers(file: &File, complaints: &mut Vec<Complaint>) {
    for (number, line) in numbered(&file.text) {
        for (word, why) in LEFTOVERS {
            if contains_word(line, word) {
                complaints.push(Complaint::new(&file.path, number, format!("`{word}`: {why}")));
            }
        }
        if let Some(reference) = tracker_reference(line) {
            complaints.push(Complaint::new(
                &file.path,
                number,
                format!("`{reference}`: say what it was about; the tree outlives its tracker"),
            ));
        }
    }
}

/// Not a part of a longer word, where the pattern itself begins or ends with a letter.
fn contains_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part_of_word);
        let after = line[at + word.len()..].chars().next().is_some_and(part_of_word);
        !(before || after && word.ends_with(part_of_word))
    })
}

/// A tracker's name with a number: it means nothing to who reads the tree alone.
fn tracker_reference(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    for word in ["issue", "issues", "pr", "ticket"] {
        for (at, _) in lower.match_indices(word) {
            if lower[..at].chars().next_back().is_some_and(char::is_alphanumeric) {
                continue;
            }
            let rest = lower[at + word.len()..].strip_prefix([' ', '#']).unwrap_or("x");
            let digits = rest.strip_prefix('#').unwrap_or(rest);
            let count = digits.chars().take_while(char::is_ascii_digit).count();
            if count > 0 {
                return line.get(at..line.len() - digits.len() + count);
            }
        }
    }
    None
}

fn rust(file: &File, complaints: &mut Vec<Complaint>) {
    let path = &file.path;
    if path.contains("/src/") && !is_test(path) && !file.text.starts_with("//! ") {
        complaints.push(Complaint::new(path, 1, "does not begin with a module doc: `//! What this is, and why.`"));
    }
    let may_be_unsafe = MAY_BE_UNSAFE.iter().any(|room| path.starts_with(room));
    // Build scripts, and what they share, speak to cargo.
    let builds = path.ends_with("/build.rs") || path.contains("/build/");
    let may_print = MAY_PRINT.iter().any(|room| path.starts_with(room)) || is_test(path) || builds;
    for (number, line) in numbered(&file.text) {
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        if !may_be_unsafe
            && [concat!("uns", "afe {"), concat!("uns", "afe fn"), concat!("uns", "afe impl")]
                .iter()
                .any(|form| contains_word(code, form))
        {
            complaints.push(Complaint::new(path, number, "unsafe code lives in frontend, source and instrument only"));
        }
        if !may_print
            && [concat!("print", "ln!("), concat!("eprint", "ln!("), concat!("print", "!("), concat!("eprint", "!(")]
                .iter()
                .any(|form| contains_word(code, form))
        {
            complaints.push(Complaint::new(path, number, "only report and caulk speak to the user"));
        }
    }
}

fn length(file: &File, complaints: &mut Vec<Complaint>) {
    let lines = file.text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    if lines > MAX_LINES {
        complaints.push(Complaint::new(
            &file.path,
            0,
            format!("{lines} lines; past {MAX_LINES} a file hides more than it shows: look for the seam"),
        ));
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&[file(path, text)]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_plain_module_is_fine() {
        let text = "//! Adds.\n\npub fn add(a: u8, b: u8) -> u8 {\n    a.wrapping_add(b)\n}\n";
        assert_eq!(complaints("crates/ir/src/add.rs", text), [""; 0]);
    }

    #[test]
    fn modules_begin_with_a_doc() {
        assert_eq!(complaints("crates/ir/src/a.rs", "fn a() {}\n").len(), 1);
        assert_eq!(complaints("crates/ir/tests/a.rs", "fn a() {}\n"), [""; 0]);
    }

    #[test]
    fn unsafe_and_printing_have_their_rooms() {
        let text = concat!("//! Doc.\nfn f() { uns", "afe { g() } }\nfn h() { print", "ln!(\"x\"); }\n");
        assert_eq!(
            complaints("crates/ir/src/a.rs", text),
            [
                "crates/ir/src/a.rs:2: unsafe code lives in frontend, source and instrument only",
                "crates/ir/src/a.rs:3: only report and caulk speak to the user"
            ]
        );
        assert_eq!(complaints("crates/frontend/src/a.rs", text).len(), 1);
        assert_eq!(complaints("crates/frontend/build/a.rs", text), [""; 0]);
        assert_eq!(complaints("crates/caulk/src/a.rs", text).len(), 1);
        assert_eq!(complaints("crates/ir/src/a.rs", "//! Doc.\n#![deny(unsafe_code)]\n"), [""; 0]);
    }

    #[test]
    fn tests_do_not_count_as_length() {
        let long = format!("//! Doc.\n{}", "// line\n".repeat(700));
        assert_eq!(complaints("crates/ir/src/a.rs", &long).len(), 1);
        let tested = format!("//! Doc.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "// line\n".repeat(700));
        assert_eq!(complaints("crates/ir/src/a.rs", &tested), [""; 0]);
    }

    #[test]
    fn leftovers_are_found_as_words() {
        let word = concat!("TO", "DO");
        assert_eq!(complaints("README.md", &format!("{word}: write\n")).len(), 1);
        assert_eq!(complaints("README.md", &format!("MY{word}S\n")), [""; 0]);
        assert_eq!(complaints("Makefile", concat!("X = /ro", "ot/x\n")).len(), 1);
        assert_eq!(complaints("crates/ir/tests/a.rs", concat!("#[", "ignore]\nfn a() {}\n")).len(), 1);
        assert_eq!(complaints("crates/ir/tests/a.rs", concat!("#[", "ignore = \"slow\"]\nfn a() {}\n")).len(), 1);
    }

    #[test]
    fn tracker_numbers_are_found() {
        assert_eq!(tracker_reference(concat!("see iss", "ue #12.")), Some(concat!("iss", "ue #12")));
        assert_eq!(tracker_reference(concat!("see P", "R 7")), Some(concat!("P", "R 7")));
        assert_eq!(tracker_reference("an issue of 2 lines, sprintf 3, expr 4"), None);
        assert_eq!(tracker_reference("issue, pr"), None);
    }
}
