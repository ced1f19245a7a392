//! Where a term is among the terms, by its hash: numbers in a table, no copies of what they stand for.

use crate::term::TermId;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u32,
    /// The number of the term, from 1; 0: nothing here.
    number: u32,
}

/// A hash table with open addressing. A slot is searched for from where the hash says, onwards.
#[derive(Debug, Default)]
pub struct Index {
    /// None, or a power of two, of which at most half are taken.
    slots: Vec<Slot>,
    /// The hash of each term, in the order in which they came.
    hashes: Vec<u32>,
}

const SMALLEST: usize = 64;
/// To clear a larger table takes longer than to make a new one as it grows.
const LARGEST_CLEARED: usize = 1 << 12;

impl Index {
    pub fn clear(&mut self) {
        if self.slots.len() > LARGEST_CLEARED {
            self.slots = Vec::new();
        }
        self.slots.fill(Slot::default());
        self.hashes.clear();
    }

    /// The term with this hash for which `is_it` says yes.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(TermId) -> bool) -> Option<TermId> {
        let mask = self.slots.len().checked_sub(1)?;
        let hash = short(hash);
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.number == 0 {
                return None;
            }
            if slot.hash == hash && is_it(TermId(slot.number - 1)) {
                return Some(TermId(slot.number - 1));
            }
            at = (at + 1) & mask;
        }
    }

    /// The next term, which is not there yet.
    pub fn push(&mut self, hash: u64) {
        self.hashes.push(short(hash));
        if 2 * self.hashes.len() > self.slots.len() {
            // In the order in which they came, so that the last one can be taken out again.
            self.slots = vec![Slot::default(); (2 * self.slots.len()).max(SMALLEST)];
            (1..=self.hashes.len()).for_each(|number| self.put(number));
        } else {
            self.put(self.hashes.len());
        }
    }

    fn put(&mut self, number: usize) {
        let (hash, mask) = (self.hashes[number - 1], self.slots.len() - 1);
        let mut at = hash as usize & mask;
        while self.slots[at].number != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot { hash, number: number as u32 };
    }

    /// Takes out the term that came last: nobody was put behind it.
    pub fn pop(&mut self) {
        let (number, Some(hash)) = (self.hashes.len() as u32, self.hashes.pop()) else { return };
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].number != number {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot::default();
    }
}

fn short(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_by_their_hash_until_they_are_taken_out() {
        let mut index = Index::default();
        // Few hashes for many terms: all of them clash.
        let hash = |number: u32| u64::from(number % 3);
        for number in 0..500 {
            assert_eq!(index.find(hash(number), |id| id.0 == number), None);
            index.push(hash(number));
        }
        (250..500).for_each(|_| index.pop());
        for number in 0..500 {
            let found = index.find(hash(number), |id| id.0 == number);
            assert_eq!(found, (number < 250).then_some(TermId(number)));
        }
        index.clear();
        assert_eq!(index.find(hash(0), |_| true), None);
    }
}
