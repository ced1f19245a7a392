//! Sections of 64-bit little-endian ELF objects: reading one by its name, and adding one; and the names that objects and
//! shared libraries define.
//!
//! A section is added at the end, with a new table of names and a new table of headers; nothing that was there moves.

const HEADER: usize = 64;
const ENTRY: usize = 64;
const PROGBITS: u32 = 1;
/// Left out of programs and shared libraries, kept by `ar` and `ld -r`.
const EXCLUDE: u64 = 0x8000_0000;

struct Table {
    offset: usize,
    count: usize,
    names: usize,
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(width)?)?;
    Some(part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

/// What a file is for: to be linked, or to be loaded.
const OBJECT: u64 = 1;
const SHARED: u64 = 3;

fn kind(bytes: &[u8]) -> Option<u64> {
    bytes.starts_with(b"\x7fELF\x02\x01").then(|| number(bytes, 16, 2))?
}

fn table(bytes: &[u8]) -> Option<Table> {
    if kind(bytes)? != OBJECT {
        return None;
    }
    any_table(bytes)
}

fn any_table(bytes: &[u8]) -> Option<Table> {
    let offset = usize::try_from(number(bytes, 40, 8)?).ok()?;
    let (size, count, names) = (number(bytes, 58, 2)?, number(bytes, 60, 2)?, number(bytes, 62, 2)?);
    // Objects with more sections than fit into the header say so elsewhere; they are rare and left alone.
    if size != ENTRY as u64 || count == 0 || names >= count || count >= 0xff00 {
        return None;
    }
    Some(Table { offset, count: count as usize, names: names as usize })
}

fn contents<'a>(bytes: &'a [u8], table: &Table, index: usize) -> Option<&'a [u8]> {
    let at = table.offset.checked_add(index.checked_mul(ENTRY)?)?;
    let offset = usize::try_from(number(bytes, at + 24, 8)?).ok()?;
    let size = usize::try_from(number(bytes, at + 32, 8)?).ok()?;
    bytes.get(offset..offset.checked_add(size)?)
}

/// The contents of the first section of this name.
pub(crate) fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let table = table(bytes)?;
    let names = contents(bytes, &table, table.names)?;
    (0..table.count).find_map(|index| {
        let at = usize::try_from(number(bytes, table.offset + index * ENTRY, 4)?).ok()?;
        let text = names.get(at..)?;
        (text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0))
            .then(|| contents(bytes, &table, index))?
    })
}

/// The names that an object or a shared library defines for others; nothing if it is neither.
pub fn defined(bytes: &[u8]) -> Vec<String> {
    symbols(bytes).unwrap_or_default()
}

fn symbols(bytes: &[u8]) -> Option<Vec<String>> {
    const SYMBOL: usize = 24;
    let wanted = match kind(bytes)? {
        OBJECT => 2,
        SHARED => 11,
        _ => return None,
    };
    let table = any_table(bytes)?;
    let mut all = Vec::new();
    for index in 0..table.count {
        let at = table.offset.checked_add(index * ENTRY)?;
        if number(bytes, at + 4, 4)? != wanted {
            continue;
        }
        let names = contents(bytes, &table, usize::try_from(number(bytes, at + 40, 4)?).ok()?)?;
        for symbol in contents(bytes, &table, index)?.chunks_exact(SYMBOL) {
            let (global, section) = (number(symbol, 4, 1)? >> 4 != 0, number(symbol, 6, 2)?);
            let text = names.get(usize::try_from(number(symbol, 0, 4)?).ok()?..)?;
            let end = text.iter().position(|byte| *byte == 0)?;
            if global && section != 0 && end > 0 {
                all.push(String::from_utf8_lossy(&text[..end]).into_owned());
            }
        }
    }
    Some(all)
}

/// The object with one section more; `None` if it is none that we understand.
pub(crate) fn with_section(bytes: &[u8], name: &str, data: &[u8]) -> Option<Vec<u8>> {
    let table = table(bytes)?;
    let headers = bytes.get(table.offset..table.offset.checked_add(table.count.checked_mul(ENTRY)?)?)?;
    let mut names = contents(bytes, &table, table.names)?.to_vec();
    let name_at = names.len();
    names.extend_from_slice(name.as_bytes());
    names.push(0);

    let mut out = bytes.to_vec();
    let data_at = out.len();
    out.extend_from_slice(data);
    let names_at = out.len();
    out.extend_from_slice(&names);
    out.resize(out.len().next_multiple_of(8), 0);
    let headers_at = out.len();
    out.extend_from_slice(headers);
    let moved = headers_at + table.names * ENTRY;
    put(&mut out, moved + 24, &(names_at as u64).to_le_bytes())?;
    put(&mut out, moved + 32, &(names.len() as u64).to_le_bytes())?;
    let mut entry = Vec::with_capacity(ENTRY);
    entry.extend_from_slice(&(name_at as u32).to_le_bytes());
    entry.extend_from_slice(&PROGBITS.to_le_bytes());
    for word in [EXCLUDE, 0, data_at as u64, data.len() as u64, 0, 1, 0] {
        entry.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&entry);
    put(&mut out, 40, &(headers_at as u64).to_le_bytes())?;
    put(&mut out, 60, &(table.count as u16 + 1).to_le_bytes())?;
    debug_assert!(out.len() > HEADER);
    Some(out)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    bytes.get_mut(at..at + value.len())?.copy_from_slice(value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, a table of names, two section headers.
    fn tiny() -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16] = 1;
        bytes[58] = ENTRY as u8;
        bytes[60] = 2;
        bytes[62] = 1;
        bytes.extend_from_slice(b"\0.shstrtab\0");
        let names = (HEADER as u64, 11u64);
        bytes.resize(80, 0);
        bytes[40] = 80;
        bytes.resize(80 + 2 * ENTRY, 0);
        let at = 80 + ENTRY;
        bytes[at] = 1;
        bytes[at + 24..at + 32].copy_from_slice(&names.0.to_le_bytes());
        bytes[at + 32..at + 40].copy_from_slice(&names.1.to_le_bytes());
        bytes
    }

    #[test]
    fn a_section_that_was_added_is_found_and_nothing_else_moves() {
        let before = tiny();
        let after = with_section(&before, ".caulk", b"hello").unwrap();
        assert_eq!(section(&after, ".caulk"), Some(&b"hello"[..]));
        assert_eq!(section(&before, ".caulk"), None);
        assert!(section(&after, ".shstrtab").unwrap().starts_with(b"\0.shstrtab\0"));
        assert_eq!(after[HEADER..before.len()], before[HEADER..]);
    }

    #[test]
    fn damage_is_no_panic() {
        let whole = with_section(&tiny(), ".caulk", b"hello").unwrap();
        for length in 0..whole.len() {
            let _ = section(&whole[..length], ".caulk");
            let _ = with_section(&whole[..length], ".x", b"y");
            let _ = defined(&whole[..length]);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = section(&damaged, ".caulk");
            let _ = with_section(&damaged, ".x", b"y");
            let _ = defined(&damaged);
        }
    }
}
