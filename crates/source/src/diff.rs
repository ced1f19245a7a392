//! Unified diffs that `git apply` and `patch -p1` take.

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

const CONTEXT: usize = 3;

/// The diff between two contents of one file; empty if they are the same.
/// `path` is what follows `a/` and `b/`: relative to the project, with `/`.
pub fn unified_diff(path: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    if old == new {
        return Vec::new();
    }
    let (old, new) = (lines(old), lines(new));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut out = Vec::new();
    out.extend_from_slice(format!("--- {}\n", header_name("a/", path)).as_bytes());
    out.extend_from_slice(format!("+++ {}\n", header_name("b/", path)).as_bytes());
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old_start, old_end) = (first.old_range().start, last.old_range().end);
        let (new_start, new_end) = (first.new_range().start, last.new_range().end);
        let head = format!("@@ -{} +{} @@\n", range(old_start, old_end), range(new_start, new_end));
        out.extend_from_slice(head.as_bytes());
        for op in &group {
            hunk_lines(&mut out, op, &old, &new);
        }
    }
    out
}

/// Number of added and removed lines.
pub fn diff_size(old: &[u8], new: &[u8]) -> (usize, usize) {
    let (old, new) = (lines(old), lines(new));
    capture_diff_slices(Algorithm::Myers, &old, &new).iter().fold((0, 0), |(added, removed), op| match op {
        DiffOp::Equal { .. } => (added, removed),
        _ => (added + op.new_range().len(), removed + op.old_range().len()),
    })
}

fn hunk_lines(out: &mut Vec<u8>, op: &DiffOp, old: &[&[u8]], new: &[&[u8]]) {
    if matches!(op, DiffOp::Equal { .. }) {
        for line in &old[op.old_range()] {
            push_line(out, b' ', line);
        }
        return;
    }
    for line in &old[op.old_range()] {
        push_line(out, b'-', line);
    }
    for line in &new[op.new_range()] {
        push_line(out, b'+', line);
    }
}

fn push_line(out: &mut Vec<u8>, sign: u8, line: &[u8]) {
    out.push(sign);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        // An empty range names the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    }
}

/// Git's rules: odd bytes quoted, a tab after a name with blanks so that `patch` knows where it ends.
fn header_name(prefix: &str, path: &str) -> String {
    let odd = |byte: u8| !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\';
    if !path.bytes().any(odd) {
        let tab = if path.contains(' ') { "\t" } else { "" };
        return format!("{prefix}{path}{tab}");
    }
    let mut quoted = format!("\"{prefix}");
    for byte in path.bytes() {
        match byte {
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            byte if odd(byte) => quoted.push_str(&format!("\\{byte:03o}")),
            byte => quoted.push(char::from(byte)),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        String::from_utf8(unified_diff("a.c", old.as_bytes(), new.as_bytes())).unwrap()
    }

    #[test]
    fn hunks_have_three_lines_of_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        assert_eq!(
            diff(old, &old.replace("5\n", "5\nx\n")),
            "--- a/a.c\n+++ b/a.c\n@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+x\n 6\n 7\n 8\n"
        );
    }

    #[test]
    fn a_missing_final_newline_is_said() {
        assert_eq!(
            diff("a\nb", "a\nc"),
            "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
        );
        assert_eq!(diff("a\n", "a\n"), "");
    }

    #[test]
    fn odd_names_are_quoted_as_git_does() {
        assert_eq!(header_name("a/", "x y.c"), "a/x y.c\t");
        assert_eq!(header_name("a/", "\u{e4}\".c"), "\"a/\\303\\244\\\".c\"");
    }

    #[test]
    fn sizes_are_counted() {
        assert_eq!(diff_size(b"a\nb\n", b"a\nx\ny\n"), (2, 1));
    }
}
