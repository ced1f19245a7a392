//! Splits C text into lines with coloured tokens.
//!
//! Comments, strings, numbers, keywords and preprocessor lines; the rest is
//! plain. It only has to look right: nothing is decided by it.

use std::ops::Range;

/// What a token is coloured as; plain text has no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Comment,
    Text,
    Number,
    Keyword,
    Preprocessor,
}

impl Colour {
    /// The class in the style sheet.
    pub fn class(self) -> &'static str {
        match self {
            Colour::Comment => "c",
            Colour::Text => "s",
            Colour::Number => "n",
            Colour::Keyword => "k",
            Colour::Preprocessor => "p",
        }
    }
}

/// A coloured range of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub range: Range<usize>,
    pub colour: Colour,
}

/// Lines of a file and their tokens.
pub struct Lines {
    text: std::sync::Arc<str>,
    lines: Vec<(Range<usize>, Vec<Token>)>,
}

impl Lines {
    pub fn of(text: std::sync::Arc<str>) -> Lines {
        let mut lines = Vec::new();
        let mut start = 0;
        let mut in_comment = false;
        for part in text.split_inclusive('\n') {
            let line = part.trim_end_matches(['\n', '\r']);
            lines.push((start..start + line.len(), tokens(line, &mut in_comment)));
            start += part.len();
        }
        Lines { text, lines }
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Line `number` from 1.
    pub fn line(&self, number: u32) -> Option<(&str, &[Token])> {
        let (range, tokens) = self.lines.get((number as usize).checked_sub(1)?)?;
        Some((&self.text[range.clone()], tokens))
    }
}

const KEYWORDS: &[&str] = &[
    "NULL", "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "false", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
    "short", "signed", "size_t", "sizeof", "static", "struct", "switch", "true", "typedef", "union", "unsigned",
    "void", "volatile", "while",
];

fn tokens(line: &str, in_comment: &mut bool) -> Vec<Token> {
    let bytes = line.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    if !*in_comment && line.trim_start().starts_with('#') {
        let start = line.len() - line.trim_start().len();
        let word = line[start + 1..].trim_start();
        let name = word.len() - word.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        at = line.len() - word.len() + name;
        tokens.push(Token { range: start..at, colour: Colour::Preprocessor });
    }
    while at < bytes.len() {
        let start = at;
        let colour = if *in_comment || bytes[at..].starts_with(b"/*") {
            let from = if *in_comment { at } else { at + 2 };
            let close = line.get(from..).and_then(|rest| rest.find("*/"));
            *in_comment = close.is_none();
            at = close.map_or(bytes.len(), |close| from + close + 2);
            Colour::Comment
        } else if bytes[at..].starts_with(b"//") {
            at = bytes.len();
            Colour::Comment
        } else if matches!(bytes[at], b'"' | b'\'') {
            at = literal_end(bytes, at);
            Colour::Text
        } else if bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' {
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                at += 1;
            }
            match &line[start..at] {
                word if word.starts_with(|c: char| c.is_ascii_digit()) => Colour::Number,
                word if KEYWORDS.binary_search(&word).is_ok() => Colour::Keyword,
                _ => continue,
            }
        } else {
            at += 1;
            continue;
        };
        tokens.push(Token { range: start..at, colour });
    }
    tokens
}

fn literal_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == bytes[start] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens as `class:text`.
    fn show(text: &str) -> Vec<String> {
        let lines = Lines::of(text.into());
        let mut shown = Vec::new();
        for number in 1..=lines.count() {
            let (line, tokens) = lines.line(number).unwrap();
            shown.extend(tokens.iter().map(|token| format!("{}:{}", token.colour.class(), &line[token.range.clone()])));
        }
        shown
    }

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn colours_what_stands_out() {
        assert_eq!(
            show("#  include <x.h> // y\nint x1 = 0x1f; /* a\n b */ char *s = \"/*\\\"\";\r\n"),
            ["p:#  include", "c:// y", "k:int", "n:0x1f", "c:/* a", "c: b */", "k:char", "s:\"/*\\\"\""]
        );
    }

    #[test]
    fn odd_text_does_not_panic() {
        for text in ["", "#", "'", "\"\\", "/*/", "é'é", "/* é\né */é", "# é"] {
            let _ = show(text);
        }
        assert!(Lines::of("a".into()).line(0).is_none());
    }
}
