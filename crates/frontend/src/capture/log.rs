//! Reads what the recorder wrote.

use std::path::PathBuf;

use crate::words::{expand_responses, split_response};

/// A tool that was started: where, and with which words, response files expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub directory: PathBuf,
    pub words: Vec<String>,
}

/// Reads a log. Lines that were cut off, by a kill or a full disk, are left out.
pub fn read(bytes: &[u8]) -> Vec<Record> {
    bytes.split(|&byte| byte == b'\n').filter_map(read_line).collect()
}

fn read_line(line: &[u8]) -> Option<Record> {
    let fields: Vec<&[u8]> = line.strip_suffix(b"\x1f.")?.split(|&byte| byte == 0x1f).collect();
    let (first, rest) = fields.split_first()?;
    let directory = PathBuf::from(text(first.strip_prefix(b"d")?));
    let mut words: Vec<String> = Vec::new();
    for field in rest {
        let (tag, bytes) = field.split_first()?;
        let text = text(bytes);
        match tag {
            b'a' => words.push(text),
            b'f' => {
                words.pop();
                words.extend(expand_responses(split_response(&text), &directory));
            }
            _ => return None,
        }
    }
    (directory.is_absolute() && !words.is_empty()).then_some(Record { directory, words })
}

fn text(field: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'n') => b'\n',
                Some(b's') => 0x1f,
                Some(&other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were_and_damage_is_left_out() {
        let log = b"\nd/p\x1faa\\\\b\x1fax\\ny\x1fa@r\x1ff-DX '-I a b'\x1fac.c\x1f.\n\
            \nd/p\x1fagcc\x1fa-c\x1fa.c\nd/q\x1facc\x1f.\nnonsense\nd\x1fax\x1f.\nd/p\x1f.\n\x1f.\n.\nd/p\x1fagc";
        let records = read(log);
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].words, ["a\\b", "x\ny", "-DX", "-I a b", "c.c"]);
        assert_eq!(records[1], Record { directory: "/q".into(), words: vec!["cc".into()] });
        for end in 0..log.len() {
            let _ = read(&log[..end]);
        }
    }
}
