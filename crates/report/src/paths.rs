//! How paths are shown.

/// `path` relative to `root` if it lies below it, else as it is; always with `/`.
pub fn shown(root: &str, path: &str) -> String {
    below(root, path).unwrap_or(path).replace('\\', "/")
}

/// The part of `path` below `root`.
pub fn below<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    let root = root.trim_end_matches(['/', '\\']);
    if root.is_empty() {
        return None;
    }
    let rest = path.strip_prefix(root)?.strip_prefix(['/', '\\'])?;
    (!rest.is_empty()).then_some(rest)
}

/// The folder part of a shown path; `.` at the top.
pub fn folder(shown: &str) -> &str {
    shown.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

/// `text` as a part of a URI, `/` kept.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_paths_relative_to_the_root_only_below_it() {
        assert_eq!(shown("/p", "/p/src/a.c"), "src/a.c");
        assert_eq!(shown("/p/", "/p/src/a.c"), "src/a.c");
        assert_eq!(shown("/p", "/project/a.c"), "/project/a.c");
        assert_eq!(shown("", "/usr/a.c"), "/usr/a.c");
        assert_eq!(folder("src/x/a.c"), "src/x");
        assert_eq!(folder("a.c"), ".");
        assert_eq!(percent_encode("a b/ü#.c"), "a%20b/%C3%BC%23.c");
    }
}
