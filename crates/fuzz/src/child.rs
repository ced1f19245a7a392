//! The side that may die: makes inputs and reads them until it is killed.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::Result;

use crate::mutate::{Random, mutate};
use crate::seeds::seeds;
use crate::targets::Target;

/// In the folder that parent and child share: the input being read, and how many were read before it.
pub(crate) const INPUT: &str = "input";
pub(crate) const COUNT: &str = "count";

pub(crate) fn run(target: Target, folder: &Path, seed: u64) -> Result<()> {
    let seeds = seeds(target)?;
    let mut random = Random::new(seed);
    let mut input_file = File::create(folder.join(INPUT))?;
    let mut count_file = File::create(folder.join(COUNT))?;
    for count in 0_u64.. {
        let (one, other) = (random.below(seeds.len()), random.below(seeds.len()));
        // The sound ones first: if they are refused, damaging them proves nothing.
        let input = match seeds.get(count as usize) {
            Some(seed) => seed.clone(),
            None => mutate(&seeds[one], &seeds[other], &mut random),
        };
        write(&mut input_file, &input)?;
        // Always as long, and never cut off first: the parent reads it at any moment.
        count_file.seek(SeekFrom::Start(0))?;
        count_file.write_all(format!("{count:020}").as_bytes())?;
        target.read(&input);
    }
    Ok(())
}

fn write(file: &mut File, bytes: &[u8]) -> Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)?;
    Ok(())
}
