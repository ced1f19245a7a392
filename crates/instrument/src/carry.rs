//! A unit's bitcode beside its machine code: a section of the object that linkers leave out of what they make.
//!
//! ```text
//! .caulk.unit:  "caulk-unit-1\0"  length  {"directory":…,"arguments":[…],"file":…,"debug":…}  length  bitcode
//! ```
//!
//! `ar` keeps it; `ld -r` puts the records of several objects one after the other. An object of `-flto` is bitcode itself: it
//! is put into LLVM's wrapper, which says where it ends, and the record comes behind.

use serde::{Deserialize, Serialize};

use crate::elf;

const SECTION: &str = ".caulk.unit";
const MAGIC: &[u8] = b"caulk-unit-1\0";

/// How a unit was compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Where the compiler ran.
    pub directory: String,
    /// The compiler and its arguments.
    pub arguments: Vec<String>,
    /// The source, as an absolute path.
    pub file: String,
    /// The user asked for debug information.
    pub debug: bool,
}

/// One unit as an object carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    pub record: Record,
    pub bitcode: Vec<u8>,
}

/// The object with a unit in it; `None` if it is neither an ELF object nor bitcode.
pub fn carry(object: &[u8], unit: &Carried) -> Option<Vec<u8>> {
    let record = serde_json::to_vec(&unit.record).ok()?;
    let mut data = MAGIC.to_vec();
    for part in [&record, &unit.bitcode] {
        data.extend_from_slice(&(part.len() as u64).to_le_bytes());
        data.extend_from_slice(part);
    }
    if object.starts_with(BITCODE) {
        return wrapped(object, &data);
    }
    elf::with_section(object, SECTION, &data)
}

const BITCODE: &[u8] = b"BC\xC0\xDE";
const WRAPPER: [u8; 4] = 0x0B17_C0DE_u32.to_le_bytes();
const WRAPPER_LENGTH: u32 = 20;

/// Magic, version, where the bitcode begins, its length, and a processor that nobody looks at.
fn wrapped(bitcode: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut out = WRAPPER.to_vec();
    for word in [0, WRAPPER_LENGTH, u32::try_from(bitcode.len()).ok()?, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(bitcode);
    out.extend_from_slice(data);
    // Readers take whole words only.
    out.resize(out.len().next_multiple_of(4), 0);
    Some(out)
}

fn behind_wrapper(object: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(*object.get(at..)?.first_chunk::<4>()?) as usize);
    if !object.starts_with(&WRAPPER) {
        return None;
    }
    object.get(word(8)?.checked_add(word(12)?)?..)
}

/// The units in an object; none if there are none, or if they are damaged.
pub fn carried(object: &[u8]) -> Vec<Carried> {
    let mut units = Vec::new();
    let Some(mut rest) = elf::section(object, SECTION).or_else(|| behind_wrapper(object)) else { return units };
    while let Some((unit, next)) = one(rest) {
        units.push(unit);
        rest = next;
    }
    units
}

fn one(data: &[u8]) -> Option<(Carried, &[u8])> {
    let data = data.strip_prefix(MAGIC)?;
    let (record, data) = part(data)?;
    let (bitcode, data) = part(data)?;
    let record = serde_json::from_slice(record).ok()?;
    Some((Carried { record, bitcode: bitcode.to_vec() }, data))
}

fn part(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, data) = data.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    data.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitcode_carries_a_unit_behind_itself() {
        let record = Record { file: "/p/a.c".to_owned(), ..Record::default() };
        let unit = Carried { record, bitcode: b"before any pass".to_vec() };
        let object = carry(b"BC\xC0\xDEmodule", &unit).unwrap();
        assert_eq!(carried(&object), [unit]);
        for length in 0..object.len() {
            let _ = carried(&object[..length]);
        }
        assert_eq!(carry(b"text", &Carried { record: Record::default(), bitcode: Vec::new() }), None);
    }
}
