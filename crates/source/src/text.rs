//! One file as bytes: lines, indentation and the habits of its author.

use std::path::{Path, PathBuf};

use caulk_base::ContentHash;

use crate::error::SourceError;
use crate::lex::{DirectiveKind, Lexed, Span, Token, TokenKind, lex};
use crate::regions::Regions;

/// Where the file's author puts the opening brace of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BraceStyle {
    /// `if (x) {`
    Attached,
    /// On a line of its own, at the indentation of the `if`.
    OwnLine,
    /// On a line of its own, one step deeper (GNU).
    Indented,
}

/// What a new line must look like to fit in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStyle {
    pub eol: &'static str,
    /// One step of indentation: a tab or some blanks.
    pub unit: String,
    /// Blanks up to each eighth column become tabs.
    pub mixed_tabs: bool,
    pub braces: BraceStyle,
    /// `} else` on one line.
    pub cuddled_else: bool,
    /// `if(x)`
    pub tight_if: bool,
}

impl FileStyle {
    /// A line of new code as this file would have it.
    pub fn line(&self, code: &[u8]) -> Vec<u8> {
        match code.strip_prefix(b"if (") {
            Some(rest) if self.tight_if => [b"if(", rest].concat(),
            _ => code.to_vec(),
        }
    }
}

/// A file's bytes with everything that can be read off them without a parser.
#[derive(Clone, Debug)]
pub struct FileText {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub hash: ContentHash,
    pub lexed: Lexed,
    pub regions: Regions,
    pub style: FileStyle,
    line_starts: Vec<usize>,
}

impl FileText {
    pub fn new(path: PathBuf, bytes: Vec<u8>) -> Self {
        let lexed = lex(&bytes);
        let mut line_starts = vec![0];
        line_starts.extend(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1));
        let regions = Regions::new(&lexed, bytes.len());
        let hash = ContentHash::of(&bytes);
        let style = FileStyle {
            eol: "\n",
            unit: String::new(),
            mixed_tabs: false,
            braces: BraceStyle::Attached,
            cuddled_else: true,
            tight_if: false,
        };
        let mut text = Self { path, bytes, hash, lexed, regions, style, line_starts };
        text.style = text.detect_style();
        text
    }

    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let bytes = std::fs::read(path)
            .map_err(|error| SourceError::Read { file: path.to_path_buf(), reason: error.to_string() })?;
        Ok(Self::new(path.to_path_buf(), bytes))
    }

    pub fn slice(&self, span: Span) -> &[u8] {
        self.bytes.get(span.start..span.end).unwrap_or_default()
    }

    /// The text of a span; bytes that are not UTF-8 are replaced, so never write this back.
    pub fn text(&self, span: Span) -> String {
        String::from_utf8_lossy(self.slice(span)).into_owned()
    }

    /// Line of an offset, from 1.
    pub fn line_of(&self, offset: usize) -> u32 {
        self.line_starts.partition_point(|&start| start <= offset) as u32
    }

    /// Line and byte column of an offset, both from 1.
    pub fn position_of(&self, offset: usize) -> (u32, u32) {
        (self.line_of(offset), (offset - self.line_start(offset) + 1) as u32)
    }

    /// Offset of a line and byte column, both from 1; column 0 is the line's first byte.
    pub fn offset_of(&self, line: u32, column: u32) -> Option<usize> {
        let start = *self.line_starts.get((line as usize).checked_sub(1)?)?;
        let end = self.line_end(start);
        Some((start + (column as usize).saturating_sub(1)).min(end))
    }

    pub fn line_start(&self, offset: usize) -> usize {
        self.line_starts[self.line_of(offset) as usize - 1]
    }

    /// End of the line's text, before `\n` or `\r\n`.
    pub fn line_end(&self, offset: usize) -> usize {
        let next = self.line_starts.get(self.line_of(offset) as usize).copied();
        let mut end = next.map_or(self.bytes.len(), |next| next - 1);
        if next.is_some() && end > 0 && self.bytes[end - 1] == b'\r' {
            end -= 1;
        }
        end.max(self.line_start(offset))
    }

    /// The blanks that the line of this offset starts with.
    pub fn indent_of(&self, offset: usize) -> &[u8] {
        let start = self.line_start(offset);
        let blanks = self.bytes[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        &self.bytes[start..start + blanks]
    }

    pub fn is_first_on_line(&self, offset: usize) -> bool {
        self.line_start(offset) + self.indent_of(offset).len() == offset
    }

    /// Whether only blanks follow on the line.
    pub fn is_last_on_line(&self, offset: usize) -> bool {
        self.bytes[offset..self.line_end(offset).max(offset)].iter().all(u8::is_ascii_whitespace)
    }

    /// End of the code and of the comments that stand behind it on the same line: where a new line can start.
    /// `None` if other code or a directive follows on that line.
    pub fn end_with_comment(&self, offset: usize) -> Option<usize> {
        let mut at = offset;
        loop {
            let line_end = self.line_end(at);
            let blanks = self.bytes[at..line_end.max(at)].iter().take_while(|b| b.is_ascii_whitespace()).count();
            if at + blanks >= line_end {
                return Some(at);
            }
            let comment = self.lexed.comments.iter().find(|comment| comment.start == at + blanks)?;
            // A comment that goes on below belongs to what follows unless it started here.
            at = comment.end;
        }
    }

    pub fn token_before(&self, offset: usize) -> Option<&Token> {
        self.lexed
            .tokens
            .partition_point(|token| token.span.end <= offset)
            .checked_sub(1)
            .map(|n| &self.lexed.tokens[n])
    }

    pub fn token_at_or_after(&self, offset: usize) -> Option<&Token> {
        self.lexed.tokens.get(self.lexed.tokens.partition_point(|token| token.span.start < offset))
    }

    pub fn tokens_in(&self, span: Span) -> &[Token] {
        let first = self.lexed.tokens.partition_point(|token| token.span.start < span.start);
        let last = self.lexed.tokens.partition_point(|token| token.span.end <= span.end);
        self.lexed.tokens.get(first..last).unwrap_or_default()
    }

    /// Whether the identifier occurs as a word of the text in this span.
    pub fn mentions(&self, span: Span, name: &str) -> bool {
        self.tokens_in(span)
            .iter()
            .any(|token| token.kind == TokenKind::Word && self.slice(token.span) == name.as_bytes())
    }

    pub fn has_line_directives(&self) -> bool {
        self.lexed.directives.iter().any(|directive| directive.kind == DirectiveKind::Line)
    }

    /// One step deeper than `indent`, in the file's own mix of tabs and blanks.
    pub fn deeper(&self, indent: &[u8]) -> Vec<u8> {
        let mut result = indent.to_vec();
        result.extend_from_slice(self.style.unit.as_bytes());
        if self.style.mixed_tabs {
            let columns = result.iter().fold(0, |at, byte| if *byte == b'\t' { at / 8 * 8 + 8 } else { at + 1 });
            result = vec![b'\t'; columns / 8];
            result.extend(std::iter::repeat_n(b' ', columns % 8));
        }
        result
    }

    fn detect_style(&self) -> FileStyle {
        let newlines = self.line_starts.len() - 1;
        let crlf = self.bytes.windows(2).filter(|pair| pair == b"\r\n").count();
        let (unit, mixed_tabs) = self.detect_unit();
        let (braces, cuddled_else) = self.detect_braces();
        let eol = if crlf * 2 > newlines { "\r\n" } else { "\n" };
        let tight_if = self.detect_tight_if();
        FileStyle { eol, unit, mixed_tabs, braces, cuddled_else, tight_if }
    }

    fn detect_tight_if(&self) -> bool {
        let is_if = |token: &&Token| token.kind == TokenKind::Word && self.slice(token.span) == b"if";
        let behind = |token: &Token| self.bytes.get(token.span.end).copied();
        let ifs = self.lexed.tokens.iter().filter(is_if);
        let (tight, wide) = ifs.fold((0, 0), |(tight, wide), token| match behind(token) {
            Some(b'(') => (tight + 1, wide),
            _ => (tight, wide + 1),
        });
        tight > wide
    }

    /// The most frequent step from a line that ends in `{` to the line below.
    fn detect_unit(&self) -> (String, bool) {
        let columns =
            |indent: &[u8]| indent.iter().fold(0usize, |at, b| if *b == b'\t' { at / 8 * 8 + 8 } else { at + 1 });
        let mut steps = [0usize; 9];
        let mut with_tab = 0usize;
        let mut total = 0usize;
        for pair in self.lexed.tokens.windows(2) {
            let opens = pair[0].is(b'{') && self.is_first_on_line(pair[1].span.start);
            if !opens || pair[1].is(b'}') || pair[1].is(b'#') {
                continue;
            }
            let outer = self.indent_of(pair[0].span.start);
            let inner = self.indent_of(pair[1].span.start);
            let step = columns(inner).saturating_sub(columns(outer));
            if (1..=8).contains(&step) {
                steps[step] += 1;
                total += 1;
                if inner.len() == outer.len() + 1 && inner.ends_with(b"\t") {
                    with_tab += 1;
                }
            }
        }
        if total == 0 {
            return ("    ".into(), false);
        }
        if with_tab * 2 >= total {
            return ("\t".into(), false);
        }
        let step = (1..=8).max_by_key(|&step| (steps[step], 8 - step)).unwrap_or(4);
        let deep_tabs = self.line_starts.iter().filter(|&&at| self.bytes.get(at) == Some(&b'\t')).count();
        let deep_blanks = self.line_starts.iter().filter(|&&at| self.bytes[at..].starts_with(b"        ")).count();
        (" ".repeat(step), step < 8 && deep_tabs > deep_blanks)
    }

    fn detect_braces(&self) -> (BraceStyle, bool) {
        let (mut attached, mut own, mut indented, mut cuddled, mut broken) = (0, 0, 0, 0, 0);
        for pair in self.lexed.tokens.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            let after_else = first.kind == TokenKind::Word && self.slice(first.span) == b"else";
            if second.is(b'{') && (first.is(b')') || after_else) {
                let indent = self.indent_of(second.span.start).len();
                if !self.is_first_on_line(second.span.start) {
                    attached += 1;
                } else if indent > self.indent_of(first.span.start).len() {
                    indented += 1;
                } else if indent > 0 {
                    // Column 0 is the body of a function: says nothing about blocks.
                    own += 1;
                }
            }
            if first.is(b'}') && second.kind == TokenKind::Word && self.slice(second.span) == b"else" {
                if self.is_first_on_line(second.span.start) { broken += 1 } else { cuddled += 1 }
            }
        }
        let braces = if own > attached.max(indented) {
            BraceStyle::OwnLine
        } else if indented > attached {
            BraceStyle::Indented
        } else {
            BraceStyle::Attached
        };
        (braces, braces == BraceStyle::Attached && cuddled >= broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(text: &str) -> FileStyle {
        FileText::new("a.c".into(), text.as_bytes().to_vec()).style
    }

    #[test]
    fn style_is_read_off_the_text() {
        let linux = style("int f(void)\n{\n\tif (a) {\n\t\tb();\n\t} else {\n\t\tc();\n\t}\n}\n");
        assert_eq!(linux.unit, "\t");
        assert_eq!((linux.braces, linux.cuddled_else), (BraceStyle::Attached, true));
        let gnu =
            style("int f (void)\n{\n  if (a)\n    {\n      b ();\n      while (c)\n\t{\n\t  d ();\n\t}\n    }\n}\n");
        assert_eq!((gnu.unit.as_str(), gnu.mixed_tabs, gnu.braces), ("  ", true, BraceStyle::Indented));
        let allman = style("int f(void)\r\n{\r\n    if (a)\r\n    {\r\n        b();\r\n    }\r\n}\r\n");
        assert_eq!((allman.unit.as_str(), allman.eol, allman.braces), ("    ", "\r\n", BraceStyle::OwnLine));
    }

    #[test]
    fn positions_count_bytes_and_stop_at_the_line_ending() {
        let text = FileText::new("a.c".into(), b"ab\r\n\xff\xfec\nlast".to_vec());
        assert_eq!(text.offset_of(2, 3), Some(6));
        assert_eq!(text.position_of(6), (2, 3));
        assert_eq!(text.line_end(0), 2);
        assert_eq!(text.line_end(9), 12);
        assert_eq!(text.offset_of(1, 99), Some(2));
        assert_eq!(text.offset_of(9, 1), None);
        assert_eq!(text.offset_of(0, 1), None);
    }
}
