//! Content hashes: the keys of the caches and of finding fingerprints.

use std::fmt;

use serde::{Deserialize, Serialize};

/// 128 bits of BLAKE3: enough that two different contents never meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 16]);

impl ContentHash {
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.raw(bytes);
        hasher.finish()
    }

    /// The hash as 32 hexadecimal digits.
    pub fn hex(self) -> String {
        use std::fmt::Write;
        self.0.iter().fold(String::with_capacity(32), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// Hashes a sequence of fields; each is length-prefixed, so that `ab`,`c` and `a`,`bc` differ.
#[derive(Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes without a length prefix: the caller's own framing.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(bytes);
        self
    }

    pub fn field(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    pub fn finish(&self) -> ContentHash {
        let mut short = [0; 16];
        short.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        ContentHash(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_framed() {
        let ab_c = Hasher::new().field("ab").field("c").finish();
        let a_bc = Hasher::new().field("a").field("bc").finish();
        assert_ne!(ab_c, a_bc);
        assert_eq!(ContentHash::of(b"x"), ContentHash::of(b"x"));
        assert_eq!(ContentHash::of(b"x").hex().len(), 32);
    }
}
