//! Intervals with holes: what is known of a number, or of a pointer that is not null.
//!
//!     if (fd < 0) …; if (fd == 2) …      // elsewhere: 0 <= fd, and not 2

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Single values that a range remembers to leave out.
const MAX_HOLES: usize = 8;
/// Gaps up to this width are remembered when two ranges are joined.
const MAX_GAP: i64 = 8;

/// An interval with holes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Range {
    pub lo: i64,
    pub hi: i64,
    pub not: SmallVec<[i64; 2]>,
}

impl Clone for Range {
    /// Most ranges have no holes, and are copied at every step.
    #[inline]
    fn clone(&self) -> Self {
        let not = if self.not.is_empty() { SmallVec::new() } else { SmallVec::from_slice(&self.not) };
        Self { lo: self.lo, hi: self.hi, not }
    }
}

impl Range {
    pub fn full() -> Self {
        Self::between(i64::MIN, i64::MAX)
    }

    /// Anything but this value.
    pub fn except(value: i64) -> Self {
        let mut range = Self::full();
        range.not.push(value);
        range
    }

    pub fn point(value: i64) -> Self {
        Self { lo: value, hi: value, not: SmallVec::new() }
    }

    pub fn between(lo: i64, hi: i64) -> Self {
        Self { lo, hi, not: SmallVec::new() }
    }

    pub fn constant(&self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    pub fn is_empty(&self) -> bool {
        self.lo > self.hi
    }

    pub fn is_full(&self) -> bool {
        self.lo == i64::MIN && self.hi == i64::MAX && self.not.is_empty()
    }

    pub fn excludes(&self, value: i64) -> bool {
        value < self.lo || value > self.hi || self.not.contains(&value)
    }

    /// Does one reach down and the other up without limit, with a gap between them?
    pub fn is_opposite(&self, other: &Range) -> bool {
        let below = |a: &Range, b: &Range| a.lo == i64::MIN && b.hi == i64::MAX && a.hi < b.lo;
        below(self, other) || below(other, self)
    }

    pub(crate) fn is_disjoint(&self, other: &Range) -> bool {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        // So many values cannot all be left out.
        if lo > hi || hi.abs_diff(lo) >= (self.not.len() + other.not.len()) as u64 {
            return lo > hi;
        }
        let mut both = self.clone();
        both.meet(other);
        both.is_empty()
    }

    /// Is every value of this one also one of the other?
    pub fn is_within(&self, other: &Range) -> bool {
        self.lo >= other.lo && self.hi <= other.hi && other.not.iter().all(|value| self.excludes(*value))
    }

    pub fn exclude(&mut self, value: i64) {
        if value == self.lo && value == self.hi {
            (self.lo, self.hi) = (1, 0);
        } else if value == self.lo {
            self.lo += 1;
        } else if value == self.hi {
            self.hi -= 1;
        } else if !self.excludes(value) && self.not.len() < MAX_HOLES {
            self.not.push(value);
            self.not.sort_unstable();
        }
        self.shrink();
    }

    #[inline]
    fn shrink(&mut self) {
        if !self.not.is_empty() {
            self.shrink_to_holes();
        }
    }

    fn shrink_to_holes(&mut self) {
        let (lo, hi) = (self.lo, self.hi);
        if lo < hi && self.not.iter().all(|value| *value > lo && *value < hi) {
            return;
        }
        while self.lo < self.hi && self.not.contains(&self.lo) {
            self.lo += 1;
        }
        while self.lo < self.hi && self.not.contains(&self.hi) {
            self.hi -= 1;
        }
        if self.lo == self.hi && self.not.contains(&self.lo) {
            (self.lo, self.hi) = (1, 0);
        }
        let (lo, hi) = (self.lo, self.hi);
        self.not.retain(|value| *value > lo && *value < hi);
    }

    pub fn meet(&mut self, other: &Range) {
        self.lo = self.lo.max(other.lo);
        self.hi = self.hi.min(other.hi);
        if !other.not.is_empty() {
            for &value in &other.not {
                if self.not.len() < MAX_HOLES && !self.not.contains(&value) {
                    self.not.push(value);
                }
            }
            self.not.sort_unstable();
        }
        self.shrink();
    }

    pub(crate) fn join(&self, other: &Range) -> Range {
        let mut not: SmallVec<[i64; 2]> = SmallVec::new();
        for &value in self.not.iter().chain(&other.not) {
            if self.excludes(value) && other.excludes(value) && !not.contains(&value) {
                not.push(value);
            }
        }
        let mut joined = Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), not };
        // Two cases of a `switch` are not the cases between them.
        let (below, above) = if self.hi <= other.hi { (self.hi, other.lo) } else { (other.hi, self.lo) };
        if below < above && above.checked_sub(below).is_some_and(|gap| gap <= MAX_GAP) {
            for value in below + 1..above {
                if joined.not.len() < MAX_HOLES && !joined.not.contains(&value) {
                    joined.not.push(value);
                }
            }
        }
        // The gap between the two often holds the one value that matters: null.
        if self.excludes(0) && other.excludes(0) && joined.lo < 0 && joined.hi > 0 && !joined.not.contains(&0) {
            joined.not.push(0);
        }
        joined.not.sort_unstable();
        joined.shrink();
        joined
    }

    /// The smallest range that holds both.
    pub fn hull(a: &Range, b: &Range) -> Range {
        a.join(b)
    }

    /// `from` less a value of the range.
    pub(crate) fn taken_from(&self, from: i64) -> Range {
        let less = |value: i64| match value {
            i64::MIN => i64::MAX,
            i64::MAX => i64::MIN,
            _ => from.saturating_sub(value),
        };
        let mut not: Vec<i64> = self.not.iter().map(|value| from.saturating_sub(*value)).collect();
        not.sort_unstable();
        Range { lo: less(self.hi), hi: less(self.lo), not: not.as_slice().into() }
    }

    pub(crate) fn shifted(&self, by: i64) -> Range {
        let shift = |value: i64| if value == i64::MIN || value == i64::MAX { value } else { value.saturating_add(by) };
        Range { lo: shift(self.lo), hi: shift(self.hi), not: self.not.iter().map(|v| v.saturating_add(by)).collect() }
    }
}
