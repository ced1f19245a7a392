//! What a number lies between, read as signed and as unsigned.
//!
//! # Invariants
//! - A range is an over-approximation: the number is in both intervals. Empty means there is no such number.

use crate::value::{max_signed, max_unsigned, min_signed, signed, unsigned};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub bits: u32,
    pub low: i64,
    pub high: i64,
    pub unsigned_low: u64,
    pub unsigned_high: u64,
}

impl Range {
    pub fn full(bits: u32) -> Self {
        Self { bits, low: min_signed(bits), high: max_signed(bits), unsigned_low: 0, unsigned_high: max_unsigned(bits) }
    }

    pub fn only(value: i64, bits: u32) -> Self {
        let (low, unsigned_low) = (signed(value, bits), unsigned(value, bits));
        Self { bits, low, high: low, unsigned_low, unsigned_high: unsigned_low }
    }

    /// At most this, read as unsigned.
    pub fn below(high: u64, bits: u32) -> Self {
        let mut range = Self::full(bits);
        range.unsigned_high = high.min(range.unsigned_high);
        range.agree();
        range
    }

    pub fn is_empty(&self) -> bool {
        self.low > self.high || self.unsigned_low > self.unsigned_high
    }

    pub fn meet(&mut self, other: &Self) {
        self.low = self.low.max(other.low);
        self.high = self.high.min(other.high);
        self.unsigned_low = self.unsigned_low.max(other.unsigned_low);
        self.unsigned_high = self.unsigned_high.min(other.unsigned_high);
        self.agree();
    }

    /// Lets each reading sharpen the other, where all numbers have the same sign.
    pub fn agree(&mut self) {
        if self.is_empty() {
            return;
        }
        let top = max_signed(self.bits).cast_unsigned();
        if self.low >= 0 || self.high < 0 {
            self.unsigned_low = self.unsigned_low.max(self.low.cast_unsigned() & max_unsigned(self.bits));
            self.unsigned_high = self.unsigned_high.min(self.high.cast_unsigned() & max_unsigned(self.bits));
        }
        if self.unsigned_high <= top || self.unsigned_low > top {
            let read = |value: u64| match self.bits {
                64 => value.cast_signed(),
                bits if value > top => value.cast_signed() - (1 << bits),
                _ => value.cast_signed(),
            };
            self.low = self.low.max(read(self.unsigned_low));
            self.high = self.high.min(read(self.unsigned_high));
        }
    }

    /// Leaves this value out, where it is at an end.
    pub fn exclude(&mut self, value: i64) {
        let (value, plain) = (signed(value, self.bits), unsigned(value, self.bits));
        if self.low == value {
            self.low = self.low.saturating_add(1);
            self.high = if self.low == value { i64::MIN } else { self.high };
        } else if self.high == value {
            self.high = self.high.saturating_sub(1);
        }
        if self.unsigned_low == plain {
            match self.unsigned_low.checked_add(1) {
                Some(next) => self.unsigned_low = next,
                None => self.unsigned_high = 0,
            }
        } else if self.unsigned_high == plain {
            self.unsigned_high = self.unsigned_high.saturating_sub(1);
        }
        self.agree();
    }

    /// The one value that is left.
    pub fn single(&self) -> Option<i64> {
        let value = crate::value::normal(self.low, self.bits);
        (self.low == self.high || self.unsigned_low == self.unsigned_high).then_some(if self.low == self.high {
            value
        } else {
            crate::value::normal(self.unsigned_low.cast_signed(), self.bits)
        })
    }

    pub fn contains(&self, value: i64) -> bool {
        let (value, plain) = (signed(value, self.bits), unsigned(value, self.bits));
        (self.low..=self.high).contains(&value) && (self.unsigned_low..=self.unsigned_high).contains(&plain)
    }
}
