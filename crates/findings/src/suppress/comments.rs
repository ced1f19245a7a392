//! Finds `caulk-ignore` comments in C text.
//!
//! One pass over the bytes tells comments, strings and code apart; per line it
//! remembers whether there is code and whether a statement ends there.

use crate::Rule;

const WORD: &str = "caulk-ignore";
/// A statement longer than this is cut: a comment must not silence half a file
/// because a semicolon hides in a macro.
const MAX_STATEMENT_LINES: u32 = 12;

/// One suppression comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    pub line: u32,
    pub column: u32,
    /// Lines it speaks for, first and last.
    pub first: u32,
    pub last: u32,
    /// Empty and no unknown ones: every rule.
    pub rules: Vec<Rule>,
    pub unknown: Vec<String>,
    pub reason: String,
}

impl Marker {
    pub fn covers(&self, line: u32) -> bool {
        (self.first..=self.last).contains(&line)
    }

    pub fn silences(&self, rule: Rule) -> bool {
        self.rules.contains(&rule) || (self.rules.is_empty() && self.unknown.is_empty())
    }
}

/// All suppression comments of a file, in order.
pub fn markers(text: &str) -> Vec<Marker> {
    if !text.contains(WORD) {
        return Vec::new();
    }
    let scan = Scan::of(text);
    scan.comments.iter().filter_map(|comment| scan.marker(text, comment)).collect()
}

#[derive(Clone, Copy, Default)]
struct Line {
    has_code: bool,
    ends_statement: bool,
}

struct Comment {
    /// Bytes between the comment's delimiters.
    start: usize,
    end: usize,
    line: u32,
    column: u32,
    last_line: u32,
    code_before: bool,
}

struct Scan {
    lines: Vec<Line>,
    comments: Vec<Comment>,
}

impl Scan {
    fn of(text: &str) -> Scan {
        let bytes = text.as_bytes();
        let mut scan = Scan { lines: vec![Line::default()], comments: Vec::new() };
        let (mut at, mut line_start) = (0, 0);
        while at < bytes.len() {
            match (bytes[at], bytes.get(at + 1)) {
                (b'\n', _) => {
                    scan.lines.push(Line::default());
                    at += 1;
                    line_start = at;
                }
                (b'/', Some(b'/')) => {
                    let (end, next) = line_comment_end(bytes, at + 2);
                    scan.comment(bytes, (at, line_start), end);
                    line_start = scan.skip_lines(bytes, at, next).unwrap_or(line_start);
                    at = next;
                }
                (b'/', Some(b'*')) => {
                    let end = find(bytes, at + 2, b"*/").unwrap_or(bytes.len());
                    let next = (end + 2).min(bytes.len());
                    scan.comment(bytes, (at, line_start), end);
                    line_start = scan.skip_lines(bytes, at, next).unwrap_or(line_start);
                    at = next;
                }
                (quote @ (b'"' | b'\''), _) => {
                    scan.code(false);
                    let next = literal_end(bytes, at + 1, quote);
                    line_start = scan.skip_lines(bytes, at, next).unwrap_or(line_start);
                    scan.code(false);
                    at = next;
                }
                (byte, _) => {
                    if !byte.is_ascii_whitespace() {
                        scan.code(matches!(byte, b';' | b'{' | b'}'));
                    }
                    at += 1;
                }
            }
        }
        scan
    }

    fn code(&mut self, ends_statement: bool) {
        if let Some(line) = self.lines.last_mut() {
            line.has_code = true;
            line.ends_statement |= ends_statement;
        }
    }

    /// Counts the lines in `from..to`; gives the start of the last one if there were any.
    fn skip_lines(&mut self, bytes: &[u8], from: usize, to: usize) -> Option<usize> {
        let mut start = None;
        for (at, byte) in bytes.iter().enumerate().take(to).skip(from) {
            if *byte == b'\n' {
                self.lines.push(Line::default());
                start = Some(at + 1);
            }
        }
        start
    }

    fn comment(&mut self, bytes: &[u8], (at, line_start): (usize, usize), end: usize) {
        let newlines = bytes[at..end].iter().filter(|byte| **byte == b'\n').count();
        let line = number(self.lines.len());
        self.comments.push(Comment {
            start: at + 2,
            end,
            line,
            column: number(at - line_start + 1),
            last_line: line.saturating_add(number(newlines)),
            code_before: self.lines.last().is_some_and(|line| line.has_code),
        });
    }

    fn line(&self, line: u32) -> Line {
        self.lines.get((line as usize).wrapping_sub(1)).copied().unwrap_or_default()
    }

    fn marker(&self, text: &str, comment: &Comment) -> Option<Marker> {
        let body = text.get(comment.start..comment.end)?.trim_start_matches(['*', '/', '!', ' ', '\t']);
        let rest = body.strip_prefix(WORD)?;
        let (names, rest) = match rest.strip_prefix('[') {
            Some(listed) => listed.split_once(']')?,
            None => ("", rest),
        };
        // `caulk-ignored` in prose is not for us.
        if rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_') {
            return None;
        }
        let reason = rest.trim_start().strip_prefix(':').unwrap_or("");
        let mut rules = Vec::new();
        let mut unknown = Vec::new();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Rule::from_id(name) {
                Some(rule) => rules.push(rule),
                None => unknown.push(name.to_owned()),
            }
        }
        let (first, last) = self.lines_of(comment);
        Some(Marker {
            line: comment.line,
            column: comment.column,
            first,
            last,
            rules,
            unknown,
            reason: reason.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    }

    fn lines_of(&self, comment: &Comment) -> (u32, u32) {
        if comment.code_before || self.line(comment.line).has_code {
            return (comment.line, comment.line);
        }
        let total = number(self.lines.len());
        let Some(first) = (comment.last_line..=total).find(|line| self.line(*line).has_code) else {
            return (comment.line, comment.line);
        };
        let limit = total.min(first.saturating_add(MAX_STATEMENT_LINES - 1));
        let last = (first..=limit).find(|line| self.line(*line).ends_statement).unwrap_or(first);
        (first, last)
    }
}

/// End of the text of a `//` comment and where scanning goes on; a backslash at
/// the end of the line continues it.
fn line_comment_end(bytes: &[u8], from: usize) -> (usize, usize) {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if bytes[at + 1..].starts_with(b"\n") => at += 2,
            b'\\' if bytes[at + 1..].starts_with(b"\r\n") => at += 3,
            b'\n' => return (at, at),
            _ => at += 1,
        }
    }
    (bytes.len(), bytes.len())
}

/// Just behind the closing quote; an unclosed literal ends with its line.
fn literal_end(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| from + at)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `line: first-last rules | unknown | reason`, one marker a line.
    fn show(text: &str) -> Vec<String> {
        let show_one = |marker: &Marker| {
            let rules: Vec<&str> = marker.rules.iter().map(|rule| rule.id()).collect();
            format!(
                "{}: {}-{} {} | {} | {}",
                marker.line,
                marker.first,
                marker.last,
                rules.join(","),
                marker.unknown.join(","),
                marker.reason
            )
        };
        markers(text).iter().map(show_one).collect()
    }

    #[test]
    fn comment_beside_code_speaks_for_its_line() {
        assert_eq!(
            show("int x;\np = malloc(3); // caulk-ignore[memory-leak]: kept\nfree(q); /* caulk-ignore */\n"),
            ["2: 2-2 memory-leak |  | kept", "3: 3-3  |  | "]
        );
    }

    #[test]
    fn comment_alone_speaks_for_the_statement_below() {
        assert_eq!(
            show(
                "/* caulk-ignore[double-free, use-after-free]:\n   long\n   reason */\n\n// more\np =\n  f(1,\n 2);\nq();\n"
            ),
            ["1: 6-8 double-free,use-after-free |  | long reason"]
        );
        assert_eq!(show("/* caulk-ignore: before */ p = malloc(3);\nq();"), ["1: 1-1  |  | before"]);
        assert_eq!(show("// caulk-ignore: nothing below\n\n"), ["1: 1-1  |  | nothing below"]);
    }

    #[test]
    fn a_statement_without_end_is_cut() {
        let text = format!("// caulk-ignore: x\n{}", "MACRO\n".repeat(30));
        assert_eq!(show(&text), ["1: 2-2  |  | x"]);
    }

    #[test]
    fn strings_prose_and_look_alikes_are_not_comments() {
        assert_eq!(show("s = \"// caulk-ignore: no\";\nc = '\"'; // see caulk-ignore: prose\n"), [""; 0]);
        assert_eq!(show("// caulk-ignored: no\n// caulk-ignore[memory-leak no\n"), [""; 0]);
        assert_eq!(show("s = \"a\\\"\"; // caulk-ignore: after a string\n"), ["1: 1-1  |  | after a string"]);
        assert_eq!(show("s = \"open\n// caulk-ignore: y\nf();"), ["2: 3-3  |  | y"]);
    }

    #[test]
    fn odd_ends_do_not_panic() {
        for text in ["/* caulk-ignore", "// caulk-ignore\\", "\"caulk-ignore\\", "'caulk-ignore", "/*/ caulk-ignore: é"]
        {
            let _ = markers(text);
        }
        assert_eq!(show("// caulk-ignore: a \\\n b\nf();"), ["1: 3-3  |  | a \\ b"]);
    }

    #[test]
    fn unknown_rules_are_kept_apart() {
        assert_eq!(show("// caulk-ignore[leak,double-free]: y\nf();"), ["1: 2-2 double-free | leak | y"]);
    }
}
