//! A unified diff as rows of a side-by-side view.

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row<'a> {
    /// `a/src/x.c` without the prefix.
    File(&'a str),
    /// The line that starts a hunk: `@@ -8,6 +8,7 @@`.
    Hunk(&'a str),
    /// Old and new line with their numbers; both for context.
    Lines { old: Option<(u32, &'a str)>, new: Option<(u32, &'a str)>, changed: bool },
}

/// Reads a diff; lines that belong to none are left out.
pub fn rows(diff: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut old, mut new) = (0u32, 0u32);
    // Lines still to come of the current hunk: only there `---` is a removed line.
    let (mut old_left, mut new_left) = (0u32, 0u32);
    for line in diff.lines() {
        let inside = old_left > 0 || new_left > 0;
        match line.as_bytes().first() {
            Some(b'-') if inside => {
                removed.push((old, &line[1..]));
                (old, old_left) = (old.saturating_add(1), old_left.saturating_sub(1));
            }
            Some(b'+') if inside => {
                added.push((new, &line[1..]));
                (new, new_left) = (new.saturating_add(1), new_left.saturating_sub(1));
            }
            Some(b' ') | None if inside => {
                flush(&mut rows, &mut removed, &mut added);
                let text = line.get(1..).unwrap_or_default();
                rows.push(Row::Lines { old: Some((old, text)), new: Some((new, text)), changed: false });
                (old, old_left) = (old.saturating_add(1), old_left.saturating_sub(1));
                (new, new_left) = (new.saturating_add(1), new_left.saturating_sub(1));
            }
            _ => {
                flush(&mut rows, &mut removed, &mut added);
                if let Some(path) = line.strip_prefix("+++ ") {
                    let path = path.split('\t').next().unwrap_or(path);
                    rows.push(Row::File(path.strip_prefix("b/").unwrap_or(path)));
                } else if let Some(((old_start, old_count), (new_start, new_count))) = hunk(line) {
                    (old, old_left, new, new_left) = (old_start, old_count, new_start, new_count);
                    rows.push(Row::Hunk(line));
                }
            }
        }
    }
    flush(&mut rows, &mut removed, &mut added);
    rows
}

/// Pairs the removed lines with the added ones.
fn flush<'a>(rows: &mut Vec<Row<'a>>, removed: &mut Vec<(u32, &'a str)>, added: &mut Vec<(u32, &'a str)>) {
    for index in 0..removed.len().max(added.len()) {
        let (old, new) = (removed.get(index).copied(), added.get(index).copied());
        rows.push(Row::Lines { old, new, changed: true });
    }
    removed.clear();
    added.clear();
}

/// Start and count of both sides of `@@ -8,6 +8,7 @@`.
fn hunk(line: &str) -> Option<((u32, u32), (u32, u32))> {
    let mut parts = line.strip_prefix("@@ -")?.split(' ');
    let side = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some((side(parts.next()?)?, side(parts.next()?.strip_prefix('+')?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_changes_and_counts_lines() {
        let diff = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -3,4 +3,5 @@ f\n a\n-b\n--- c\n+B\n+C\n+++D\n d\n\\ No newline\n";
        let lines = |old, new, changed| Row::Lines { old, new, changed };
        assert_eq!(
            rows(diff),
            [
                Row::File("x.c"),
                Row::Hunk("@@ -3,4 +3,5 @@ f"),
                lines(Some((3, "a")), Some((3, "a")), false),
                lines(Some((4, "b")), Some((4, "B")), true),
                lines(Some((5, "-- c")), Some((5, "C")), true),
                lines(None, Some((6, "++D")), true),
                lines(Some((6, "d")), Some((7, "d")), false),
            ]
        );
    }

    #[test]
    fn damaged_diffs_do_not_panic() {
        for diff in ["", "@@ -", "@@ -x,y +z @@\n+a", "+++ \n@@ -1 +1 @@\n\n-é", "@@ -4294967295,9 +1,9 @@\n a\n"] {
            let _ = rows(diff);
        }
    }
}
