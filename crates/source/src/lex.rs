//! A tolerant lexer for C text, inactive regions included.
//!
//! libclang sees one configuration; an edit must not break the others. So the raw
//! text is cut into tokens, comments and directives without knowing what is active.
//! Nothing here can fail: what is not understood becomes a one-byte token.
//!
//! # Known imprecision
//! - Trigraphs are not recognised, and a token that a backslash-newline cuts in two is two tokens.

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }

    pub fn contains(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }

    /// Whether `inner` lies within `self`; a span covers itself.
    pub fn covers(self, inner: Span) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }

    /// Whether `offset` lies between two bytes of this span, not at its edges.
    pub fn splits_at(self, offset: usize) -> bool {
        self.start < offset && offset < self.end
    }

    pub fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }

    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    Number,
    /// A string or character literal.
    Literal,
    Punct(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

impl Token {
    pub fn is(&self, punct: u8) -> bool {
        self.kind == TokenKind::Punct(punct)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectiveKind {
    If,
    Elif,
    Else,
    Endif,
    /// `#line`, or `# 12 "file"`.
    Line,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    pub kind: DirectiveKind,
    /// From the `#` to the end of the last continued line, without its line ending.
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Lexed {
    pub tokens: Vec<Token>,
    pub comments: Vec<Span>,
    pub directives: Vec<Directive>,
}

pub fn lex(bytes: &[u8]) -> Lexed {
    let mut lexer = Lexer { bytes, at: 0, out: Lexed::default(), line_is_blank: true };
    lexer.run();
    lexer.out
}

struct Lexer<'b> {
    bytes: &'b [u8],
    at: usize,
    out: Lexed,
    /// Only blanks and comments so far on this line: a `#` here opens a directive.
    line_is_blank: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let start = self.at;
            match self.peek(0) {
                b'\n' => {
                    self.at += 1;
                    self.line_is_blank = true;
                    continue;
                }
                byte if byte.is_ascii_whitespace() || byte == 0x0b => self.at += 1,
                b'\\' if self.continuation() > 0 => self.at += self.continuation(),
                b'/' if matches!(self.peek(1), b'/' | b'*') => {
                    self.comment();
                    continue;
                }
                b'#' if self.line_is_blank => self.directive(),
                byte => {
                    let kind = self.token(byte);
                    self.out.tokens.push(Token { kind, span: Span::new(start, self.at) });
                    self.line_is_blank = false;
                }
            }
        }
    }

    fn token(&mut self, first: u8) -> TokenKind {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        if first == b'"' || first == b'\'' {
            self.literal(first);
            return TokenKind::Literal;
        }
        if first.is_ascii_digit() || (first == b'.' && self.peek(1).is_ascii_digit()) {
            while word(self.peek(0)) || self.peek(0) == b'.' || self.exponent_sign() {
                self.at += 1;
            }
            return TokenKind::Number;
        }
        if word(first) {
            while self.at < self.bytes.len() && word(self.peek(0)) {
                self.at += 1;
            }
            return TokenKind::Word;
        }
        self.at += 1;
        TokenKind::Punct(first)
    }

    fn exponent_sign(&self) -> bool {
        matches!(self.peek(0), b'+' | b'-')
            && self.at > 0
            && matches!(self.bytes[self.at - 1], b'e' | b'E' | b'p' | b'P')
    }

    /// Ends at the closing quote, or at the end of the line: apostrophes in text under `#if 0`.
    fn literal(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            match self.peek(0) {
                b'\\' => self.at += self.continuation().max(2),
                byte => {
                    self.at += 1;
                    if byte == quote {
                        break;
                    }
                }
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn comment(&mut self) {
        let start = self.at;
        let block = self.peek(1) == b'*';
        self.at += 2;
        while self.at < self.bytes.len() {
            if block && self.peek(0) == b'*' && self.peek(1) == b'/' {
                self.at += 2;
                break;
            }
            if !block && self.peek(0) == b'\n' {
                break;
            }
            self.at += if !block && self.continuation() > 0 { self.continuation() } else { 1 };
        }
        let mut end = self.at.min(self.bytes.len());
        if !block && end > start && self.bytes[end - 1] == b'\r' {
            end -= 1;
        }
        self.at = end;
        self.out.comments.push(Span::new(start, end));
    }

    /// Length of a backslash-newline here, or 0.
    fn continuation(&self) -> usize {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'\\', b'\n', _) => 2,
            (b'\\', b'\r', b'\n') => 3,
            _ => 0,
        }
    }

    fn directive(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut end = self.at;
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            match self.peek(0) {
                b'\\' if self.continuation() > 0 => self.at += self.continuation(),
                b'/' if self.peek(1) == b'*' => {
                    self.comment();
                    end = self.at;
                }
                b'/' if self.peek(1) == b'/' => self.comment(),
                // Quotes hide comment openers: `#include "a//b.h"`.
                quote @ (b'"' | b'\'') => {
                    self.literal(quote);
                    end = self.at;
                }
                byte => {
                    self.at += 1;
                    if !byte.is_ascii_whitespace() {
                        end = self.at;
                    }
                }
            }
        }
        let text = &self.bytes[start + 1..end];
        let text = text.trim_ascii_start();
        let word: &[u8] = text.split(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
        let kind = match word {
            b"if" | b"ifdef" | b"ifndef" => DirectiveKind::If,
            b"elif" | b"elifdef" | b"elifndef" => DirectiveKind::Elif,
            b"else" => DirectiveKind::Else,
            b"endif" => DirectiveKind::Endif,
            b"line" => DirectiveKind::Line,
            digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => DirectiveKind::Line,
            _ => DirectiveKind::Other,
        };
        self.out.directives.push(Directive { kind, span: Span::new(start, end) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        lex(text.as_bytes()).tokens.iter().map(|t| &text[t.span.start..t.span.end]).collect()
    }

    #[test]
    fn tokens_comments_and_directives_are_told_apart() {
        let text = "#if A /* x\n y */ && B \\\n && C // z\nint a = 'x'; /* c */ \"//\" // d\n#endif\n";
        assert_eq!(words(text), ["int", "a", "=", "'x'", ";", "\"//\""]);
        let lexed = lex(text.as_bytes());
        let kinds: Vec<_> = lexed.directives.iter().map(|d| d.kind).collect();
        assert_eq!(kinds, [DirectiveKind::If, DirectiveKind::Endif]);
        let comments: Vec<_> = lexed.comments.iter().map(|c| &text[c.start..c.end]).collect();
        assert_eq!(comments, ["/* x\n y */", "// z", "/* c */", "// d"]);
    }

    #[test]
    fn numbers_and_broken_literals_end_where_they_should() {
        assert_eq!(words("x=1.5e-3+0x1p+2;"), ["x", "=", "1.5e-3", "+", "0x1p+2", ";"]);
        assert_eq!(words("don't stop\nnow"), ["don", "'t stop", "now"]);
        assert_eq!(words("\"a\\\nb\" c"), ["\"a\\\nb\"", "c"]);
        assert_eq!(words("\"ends in \\"), ["\"ends in \\"]);
    }

    #[test]
    fn every_byte_sequence_is_lexed_to_its_end() {
        for text in ["/*", "//", "#", "'", "\\", "#if", "/* *", "\"\\", "\u{fffd}", "a\0b", "#\\\n"] {
            lex(text.as_bytes());
        }
    }
}
