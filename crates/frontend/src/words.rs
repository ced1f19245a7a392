//! Splits text into command words, as a shell does for a database's `command` and as gcc does for `@file`.
//!
//! Neither expands anything: `$HOME` and `*.c` stay as they are, for a database holds commands after expansion.
//! Unbalanced quotes reach to the end of the text, so that no input is an error.

use std::path::Path;

/// How many response files may lie inside one another.
const RESPONSE_DEPTH: usize = 8;

/// Splits as `sh` does: quotes, and backslashes that mean less inside double quotes.
pub fn split_shell(text: &str) -> Vec<String> {
    split(text, |quote, next| match quote {
        Some('\'') => false,
        Some(_) => matches!(next, '$' | '`' | '"' | '\\' | '\n'),
        None => true,
    })
}

/// Splits as gcc splits a response file: a backslash takes the next character as it is, everywhere.
pub fn split_response(text: &str) -> Vec<String> {
    split(text, |_, _| true)
}

fn split(text: &str, escapes: impl Fn(Option<char>, char) -> bool) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (_, '\\') => match chars.peek().copied() {
                Some(next) if escapes(quote, next) => {
                    chars.next();
                    if next != '\n' {
                        word.get_or_insert_default().push(next);
                    }
                }
                _ => word.get_or_insert_default().push('\\'),
            },
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Puts the words of every `@file` in its place. A file that cannot be read stays as it is, as in gcc.
pub fn expand_responses(arguments: Vec<String>, directory: &Path) -> Vec<String> {
    if !arguments.iter().any(|argument| argument.starts_with('@')) {
        return arguments;
    }
    let mut expanded = Vec::with_capacity(arguments.len());
    expand_into(arguments, directory, RESPONSE_DEPTH, &mut expanded);
    expanded
}

fn expand_into(arguments: Vec<String>, directory: &Path, depth: usize, expanded: &mut Vec<String>) {
    for argument in arguments {
        let file = argument.strip_prefix('@').filter(|_| depth > 0).map(|file| directory.join(file));
        // Only plain files: reading a pipe might never end.
        match file.filter(|file| file.is_file()).and_then(|file| std::fs::read(file).ok()) {
            Some(bytes) => {
                let words = split_response(&String::from_utf8_lossy(&bytes));
                expand_into(words, directory, depth - 1, expanded);
            }
            None => expanded.push(argument),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_keep_their_quotes_content() {
        assert_eq!(
            split_shell(r#"cc -DNAME="a b" '-DQ="x y"' -I\ /z  -D"S=\"t\\n\"" '' a.c"#),
            ["cc", "-DNAME=a b", "-DQ=\"x y\"", "-I /z", "-DS=\"t\\n\"", "", "a.c"]
        );
        assert_eq!(split_shell(r#""a\q""#), ["a\\q"]);
        assert_eq!(split_shell("a 'open"), ["a", "open"]);
        assert_eq!(split_shell("a\\"), ["a\\"]);
        assert_eq!(split_shell("a \\\n b"), ["a", "b"]);
    }

    #[test]
    fn response_files_are_put_in_place_and_may_nest() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("outer.rsp"), "-DA=\\\"x\\\"\n@inner.rsp -DB").unwrap();
        std::fs::write(dir.path().join("inner.rsp"), "'-I with space'").unwrap();
        std::fs::write(dir.path().join("loop.rsp"), "-DL @loop.rsp").unwrap();
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            expand_responses(words(&["cc", "@outer.rsp", "@missing", "a.c"]), dir.path()),
            ["cc", "-DA=\"x\"", "-I with space", "-DB", "@missing", "a.c"]
        );
        assert_eq!(expand_responses(words(&["@loop.rsp"]), dir.path()).len(), RESPONSE_DEPTH + 1);
    }
}
