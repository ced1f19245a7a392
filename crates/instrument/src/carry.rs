//! A unit's bitcode beside its machine code: a section of the object that linkers leave out of what they make.
//!
//! ```text
//! .caulk.unit:  "caulk-unit-1\0"  length  {"directory":…,"arguments":[…],"file":…,"debug":…}  length  bitcode
//! ```
//!
//! `ar` keeps it; `ld -r` puts the records of several objects one after the other.

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

/// The object with a unit in it; `None` if it is no ELF object of ours to change.
pub fn carry(object: &[u8], unit: &Carried) -> Option<Vec<u8>> {
    if !elf::is_object(object) {
        return None;
    }
    let record = serde_json::to_vec(&unit.record).ok()?;
    let mut data = MAGIC.to_vec();
    for part in [&record, &unit.bitcode] {
        data.extend_from_slice(&(part.len() as u64).to_le_bytes());
        data.extend_from_slice(part);
    }
    elf::with_section(object, SECTION, &data)
}

/// The units in an object; none if there are none, or if they are damaged.
pub fn carried(object: &[u8]) -> Vec<Carried> {
    let mut units = Vec::new();
    let Some(mut rest) = elf::section(object, SECTION) else { return units };
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
