//! Reads the shim's flat buffer: numbers, strings, and nothing past the end.
//!
//! The C++ half is `cpp/bytes.h`.

use super::BitcodeError;

pub type Result<T> = std::result::Result<T, BitcodeError>;

pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn damaged<T>(&self, what: &'static str) -> Result<T> {
        Err(BitcodeError::Damaged { offset: self.at, what })
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => self.damaged("it ends too early"),
        }
    }

    #[inline]
    pub fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        self.damaged("a number is too long")
    }

    pub fn signed(&mut self) -> Result<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub fn small(&mut self) -> Result<u32> {
        match u32::try_from(self.number()?) {
            Ok(value) => Ok(value),
            Err(_) => self.damaged("a number is too large"),
        }
    }

    /// A number of items that follow, each of at least one byte.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.number()?;
        if count > (self.bytes.len() - self.at) as u64 {
            return self.damaged("a list is longer than the rest");
        }
        Ok(count as usize)
    }

    pub fn flag(&mut self) -> Result<bool> {
        Ok(self.byte()? != 0)
    }

    pub fn text(&mut self) -> Result<String> {
        let length = self.count()?;
        let bytes = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// A list: its length, then its items.
    pub fn list<T, C: FromIterator<T>>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<C> {
        let count = self.count()?;
        (0..count).map(|_| item(self)).collect()
    }

    /// A position in a list of `below` items.
    #[inline]
    pub fn index(&mut self, below: usize) -> Result<u32> {
        let value = self.small()?;
        if (value as usize) < below { Ok(value) } else { self.damaged("an id is out of range") }
    }

    /// 0 for none, else the position plus one.
    #[inline]
    pub fn optional(&mut self, below: usize) -> Result<Option<u32>> {
        match self.index(below.saturating_add(1))? {
            0 => Ok(None),
            value => Ok(Some(value - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        let mut reader =
            Reader::new(&[0x05, 0xe5, 0x8e, 0x26, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        assert_eq!(reader.number(), Ok(5));
        assert_eq!(reader.number(), Ok(624_485));
        assert_eq!(reader.number(), Ok(u64::MAX));
        assert!(reader.is_at_end());
    }

    #[test]
    fn signed_numbers_zigzag() {
        let mut reader = Reader::new(&[0, 1, 2, 3]);
        let values: Vec<i64> = (0..4).map(|_| reader.signed().unwrap()).collect();
        assert_eq!(values, [0, -1, 1, -2]);
    }

    #[test]
    fn what_runs_past_the_end_or_out_of_range_is_an_error() {
        assert!(Reader::new(&[]).byte().is_err());
        assert!(Reader::new(&[0x80]).number().is_err());
        assert!(Reader::new(&[0xff; 11]).number().is_err());
        assert!(Reader::new(&[3, b'a', b'b']).text().is_err());
        assert!(Reader::new(&[4]).index(4).is_err());
        assert_eq!(Reader::new(&[4]).optional(4), Ok(Some(3)));
        assert!(Reader::new(&[5]).optional(4).is_err());
    }
}
