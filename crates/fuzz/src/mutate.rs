//! Damage, from a number: the same number does the same damage.

/// A small generator of numbers (xorshift64*): what it gives depends on the seed alone.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // The state must not be zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Below `limit`; 0 if that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }
}

/// Bytes that parsers have opinions about.
const INTERESTING: [u8; 16] =
    [0, 1, 0x7f, 0x80, 0xff, b'"', b'\\', b'\n', b'[', b']', b'{', b'}', b'=', b'.', b'-', b'9'];

/// A damaged copy of `seed`, with pieces of `other` in it: one to eight kinds of damage.
pub(crate) fn mutate(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(8) {
        damage(&mut bytes, other, random);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len());
    let length = 1 + random.below(16);
    let end = (at + length).min(bytes.len());
    match random.below(9) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let copied = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
        3 => {
            let from = random.below(other.len());
            let until = (from + length * 4).min(other.len());
            bytes.splice(at..at, other[from..until].iter().copied());
        }
        4 => {
            let new = INTERESTING[random.below(INTERESTING.len())];
            bytes.insert(at, new);
        }
        5 => bytes[at..end].reverse(),
        6 => {
            let new = INTERESTING[random.below(INTERESTING.len())];
            bytes[at..end].fill(new);
        }
        7 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_does_the_same_damage() {
        let run = |seed| -> Vec<Vec<u8>> {
            let mut random = Random::new(seed);
            (0..100).map(|_| mutate(b"[functions]\nx = {}\n", b"other", &mut random)).collect()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn nothing_is_too_short_to_damage() {
        let mut random = Random::new(1);
        for _ in 0..2000 {
            mutate(b"", b"", &mut random);
            mutate(b"x", b"", &mut random);
        }
    }
}
