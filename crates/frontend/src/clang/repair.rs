//! Mends what clang refuses and gcc accepts, as far as the error message says how.

use std::path::Path;

use super::{Clang, Overlay};
use crate::paths::absolute;

/// Changes flags or overlay so that another try may go better; `false` if nothing could be changed.
pub fn mend(errors: &str, flags: &mut Vec<String>, overlay: &mut Overlay, clang: &Clang, directory: &Path) -> bool {
    let fewer = drop_refused(errors, flags);
    let blanked = blank_malloc_arguments(errors, overlay, directory);
    let more = !fewer && !blanked && add_gcc_headers(errors, flags, clang);
    fewer || blanked || more
}

/// Messages that name a flag, or the value of one, between quotes.
const REFUSALS: &[&str] = &[
    "unknown argument: '",
    "unknown argument '",
    "unsupported option '",
    "unsupported argument '",
    "invalid value '",
    "invalid argument '",
    "unknown target CPU '",
    "unknown target ABI '",
    "invalid arch name '",
    "the clang compiler does not support '",
    "unknown FP unit '",
    "language standard '",
];

fn drop_refused(errors: &str, flags: &mut Vec<String>) -> bool {
    let before = flags.len();
    for line in errors.lines().filter(|line| line.contains("error: ")) {
        if !REFUSALS.iter().any(|refusal| line.contains(refusal)) {
            continue;
        }
        // `unsupported argument 'x' to option '-mcmodel='` names the value, then the flag.
        let mut quoted: Vec<&str> = line.split('\'').skip(1).step_by(2).filter(|word| !word.is_empty()).collect();
        if quoted.iter().any(|word| word.starts_with('-')) {
            quoted.retain(|word| word.starts_with('-'));
        }
        flags.retain(|flag| {
            !quoted.iter().any(|word| match word.strip_prefix('-') {
                Some(_) => flag == word || (word.ends_with('=') && flag.starts_with(word)),
                // A bare value: the machine or language flag that has it.
                None => {
                    ["-m", "-std=", "--std="].iter().any(|p| flag.starts_with(p)) && flag.ends_with(&format!("={word}"))
                }
            })
        });
    }
    flags.len() < before
}

/// `__attribute__((malloc(f, 1)))` is an error in clang 19; without its arguments it is not.
fn blank_malloc_arguments(errors: &str, overlay: &mut Overlay, directory: &Path) -> bool {
    let mut changed = false;
    let mut relevant = false;
    for line in errors.lines() {
        // The attribute's name stands at the error, or at one of the macros it was expanded from.
        relevant = match line {
            _ if line.contains("error: 'malloc' attribute takes no arguments") => true,
            _ if line.contains("error: '__malloc__' attribute takes no arguments") => true,
            _ => relevant && line.contains(": note: "),
        };
        if !relevant {
            continue;
        }
        let Some((path, row, column)) = position(line) else { continue };
        let path = absolute(directory, Path::new(path));
        let Some(mut bytes) = overlay.read(&path) else { continue };
        if blank_at(&mut bytes, row, column) {
            overlay.set(path, bytes);
            changed = true;
        }
    }
    changed
}

/// `a.c`, 4, 30 of `a.c:4:30: error: …`.
fn position(line: &str) -> Option<(&str, usize, usize)> {
    let end = line.find(": error: ").or_else(|| line.find(": note: "))?;
    let mut parts = line[..end].rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let row = parts.next()?.parse().ok()?;
    Some((parts.next()?, row, column))
}

/// If `malloc` stands at the position, blanks what follows it in parentheses (or the macro parameter that will).
fn blank_at(bytes: &mut [u8], row: usize, column: usize) -> bool {
    let Some(line_start) = nth_line(bytes, row) else { return false };
    let start = line_start + column.saturating_sub(1);
    let rest = bytes.get(start..).unwrap_or_default();
    let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    if !matches!(&rest[..name], b"malloc" | b"__malloc__") {
        return false;
    }
    let mut from = start + name;
    while bytes.get(from).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'\\') {
        from += 1;
    }
    let to = match bytes.get(from) {
        Some(b'(') => closing(bytes, from),
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
            let length = bytes[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
            Some(from + length)
        }
        _ => None,
    };
    let Some(to) = to else { return false };
    for at in from..to {
        let continued = bytes[at] == b'\\' && matches!(bytes.get(at + 1), Some(b'\n' | b'\r'));
        if !matches!(bytes[at], b'\n' | b'\r' | b'\t') && !continued {
            bytes[at] = b' ';
        }
    }
    true
}

fn nth_line(bytes: &[u8], row: usize) -> Option<usize> {
    match row {
        0 => None,
        1 => Some(0),
        _ => bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(row - 2).map(|(at, _)| at + 1),
    }
}

/// One past the parenthesis that closes the one at `open`.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The header that was not found, as it was included.
pub fn missing_header(errors: &str) -> Option<String> {
    let line = errors.lines().find(|line| line.contains("' file not found"))?;
    line.split('\'').nth(1).map(str::to_owned)
}

fn add_gcc_headers(errors: &str, flags: &mut Vec<String>, clang: &Clang) -> bool {
    let Some(header) = missing_header(errors) else { return false };
    let Some(folder) = clang.gcc_headers() else { return false };
    let shown = folder.to_string_lossy().into_owned();
    if !folder.join(&header).is_file()
        || flags.contains(&shown)
        || flags.iter().any(|flag| flag.starts_with("--target="))
    {
        return false;
    }
    flags.extend(["-idirafter".to_owned(), shown]);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(errors: &str, flags: &[&str]) -> Vec<String> {
        let mut flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        drop_refused(errors, &mut flags);
        flags
    }

    #[test]
    fn refused_flags_are_dropped_and_no_others() {
        assert_eq!(dropped("clang: error: unknown argument: '-mfoo'\n", &["-mfoo", "-DX"]), ["-DX"]);
        assert_eq!(dropped("error: unknown target CPU 'zzz'\n", &["-march=zzz", "-DY=zzz"]), ["-DY=zzz"]);
        assert_eq!(
            dropped(
                "clang: error: unsupported argument 'xx' to option '-mcmodel=' for target 'y'",
                &["-mcmodel=xx", "-m64"]
            ),
            ["-m64"]
        );
        assert_eq!(
            dropped("clang: error: invalid value 'gnu7' in '-std=gnu7'", &["-std=gnu7", "-I", "x"]),
            ["-I", "x"]
        );
        assert_eq!(dropped("a.c:1:1: error: unknown type name 'x'", &["-mx"]), ["-mx"]);
    }

    #[test]
    fn arguments_of_malloc_are_blanked_in_place() {
        let mut text = b"int x;\nvoid *f(int) __attribute__((malloc (g,\n 1), cold));\n".to_vec();
        assert!(blank_at(&mut text, 2, 29));
        assert_eq!(text, b"int x;\nvoid *f(int) __attribute__((malloc    \n   , cold));\n");
        let mut define = b"#define A(args) __attribute__((__malloc__ args))".to_vec();
        assert!(blank_at(&mut define, 1, 32));
        assert_eq!(define, b"#define A(args) __attribute__((__malloc__     ))");
        let mut other = b"free(malloc(1))".to_vec();
        assert!(!blank_at(&mut other, 1, 1));
        assert!(!blank_at(&mut other, 9, 9));
        assert!(!blank_at(&mut b"malloc(".to_vec(), 1, 1));
    }
}
