//! From a line and a column to the bytes worth underlining.
//!
//! Debug information knows where something starts, not where it ends. The text
//! tells the rest: a call reaches to its closing parenthesis, `return` to its
//! semicolon, a name to its last letter.
//!
//! # Known imprecision
//! - What goes on over several lines is underlined on its first line only.

use std::ops::Range;

/// The bytes within one line of text, `column` from 1, 0 for the whole line.
pub fn span_in_line(line: &str, column: u32) -> Range<usize> {
    let trimmed = line.len() - line.trim_start().len()..line.trim_end().len();
    if trimmed.is_empty() {
        return 0..line.len();
    }
    let mut start = (column as usize).wrapping_sub(1);
    if column == 0 || start >= trimmed.end {
        return trimmed;
    }
    // A column counts bytes of the original; replaced bytes can put it inside a character.
    while !line.is_char_boundary(start) {
        start -= 1;
    }
    let rest = &line[start..trimmed.end];
    let word = rest.len() - rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    let length = match &rest[..word] {
        "" if rest.starts_with("//") || rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
        "" => rest.chars().next().map_or(0, char::len_utf8),
        "return" | "goto" | "break" | "continue" => rest.find(';').unwrap_or(rest.len()),
        _ => word + call_length(&rest[word..]),
    };
    start..start + length.max(1).min(rest.len())
}

/// A byte column as a column in characters, both from 1.
pub fn character_column(line: &str, column: u32) -> u32 {
    let bytes = (column as usize).saturating_sub(1);
    let characters = line.char_indices().take_while(|(at, _)| *at < bytes).count();
    let behind = bytes.saturating_sub(line.len());
    u32::try_from(characters + behind + 1).unwrap_or(u32::MAX)
}

/// Length of ` (…)` at the start of `rest`; 0 if no parenthesis opens there.
fn call_length(rest: &str) -> usize {
    if !rest.trim_start().starts_with('(') {
        return 0;
    }
    let mut depth = 0;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(line: &str, column: u32) -> &str {
        &line[span_in_line(line, column)]
    }

    #[test]
    fn underlines_what_a_reader_would() {
        assert_eq!(under("    char *p = malloc(sizeof(int) * (n));", 15), "malloc(sizeof(int) * (n))");
        assert_eq!(under("  if (a && f(\")\")) {", 3), "if (a && f(\")\"))");
        assert_eq!(under("    return -1;", 5), "return -1");
        assert_eq!(under("    p->next = q;", 13), "=");
        assert_eq!(under("    p->next = q;", 5), "p");
        assert_eq!(under("  f(a,", 3), "f(a,");
        assert_eq!(under("f(); // why", 6), "// why");
        assert_eq!(under("f(/* a */ b);", 3), "/* a */");
        assert_eq!(under("\t}  ", 0), "}");
        assert_eq!(under("x", 40), "x");
    }

    #[test]
    fn odd_places_do_not_panic() {
        assert_eq!(span_in_line("", 3), 0..0);
        assert_eq!(span_in_line("   ", 2), 0..3);
        assert_eq!(under("é = f();", 2), "é");
        assert_eq!(character_column("é = f();", 6), 5);
        assert_eq!(character_column("ab", 5), 5);
    }
}
