//! Lists that states share until one of them writes.
//!
//! A branch makes two states of one, a call one for each outcome. Most of what they know stays the same, so that copies
//! of a list are one list; the copy is made by whoever changes it first.
//!
//!     if (x) …          // both sides: the same cells, the same objects; only the facts differ
//!
//! What tells states apart is worked out of their lists, and most lists stay as they are from one meeting of states to the
//! next: a list remembers what was worked out of it last (`Shared::key`).
//!
//! # Invariants
//! - A list that is not written to is never copied: `retain` that drops nothing is no write.
//! - Whoever may write to a list makes it forget its key.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Room for what is about to be added when a list is copied.
const ROOM: usize = 4;

/// A vector that is copied when it is written to, if somebody else has it, too. The empty one takes no memory.
#[derive(Debug)]
pub struct Shared<T>(Option<Rc<Listed<T>>>);

#[derive(Clone, Debug)]
struct Listed<T> {
    list: Vec<T>,
    /// What was worked out of it last, and as an answer to what.
    key: Cell<Option<(u8, u64)>>,
}

impl<T> Listed<T> {
    fn new(list: Vec<T>) -> Rc<Self> {
        Rc::new(Self { list, key: Cell::new(None) })
    }
}

impl<T: 'static> Shared<T> {
    const EMPTY: &'static Vec<T> = &Vec::new();

    /// One and the same list? `false` does not mean that they differ.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// What `make` works out of the list and of what does not change; `of` tells apart what is asked for.
    pub fn key(&self, of: u8, make: impl FnOnce() -> u64) -> u64 {
        let Some(own) = &self.0 else { return make() };
        match own.key.get() {
            Some((known, key)) if known == of => key,
            _ => {
                let key = make();
                own.key.set(Some((of, key)));
                key
            }
        }
    }
}

impl<T: Clone + 'static> Shared<T> {
    /// Drops what `keep` says no to; it is asked once for each, in order.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let Some(list) = &mut self.0 else { return };
        if let Some(own) = Rc::get_mut(list) {
            let before = own.list.len();
            own.list.retain(keep);
            if own.list.len() < before {
                own.key.set(None);
            }
            return;
        }
        let all = &list.list;
        let Some(first) = all.iter().position(|entry| !keep(entry)) else { return };
        let mut kept = Vec::with_capacity(all.len() + ROOM);
        kept.extend_from_slice(&all[..first]);
        kept.extend(all[first + 1..].iter().filter(|entry| keep(entry)).cloned());
        *list = Listed::new(kept);
    }

    /// The vector, for a loop that writes to some of its entries: only if there is one to write to.
    pub fn edit_if(&mut self, writes: impl FnMut(&T) -> bool) -> &mut [T] {
        if self.iter().any(writes) { self.deref_mut().as_mut_slice() } else { &mut [] }
    }
}

impl<T: 'static> Deref for Shared<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        self.0.as_ref().map_or(Self::EMPTY, |own| &own.list)
    }
}

impl<T: Clone + 'static> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        let list = self.0.get_or_insert_with(|| Listed::new(Vec::new()));
        if Rc::get_mut(list).is_none() {
            let mut copy = Vec::with_capacity(list.list.len() + ROOM);
            copy.extend_from_slice(&list.list);
            *list = Listed::new(copy);
        }
        let own = Rc::make_mut(list);
        own.key.set(None);
        &mut own.list
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(list: Vec<T>) -> Self {
        Self((!list.is_empty()).then(|| Listed::new(list)))
    }
}

impl<T> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Vec::from_iter(entries).into()
    }
}

impl<T: PartialEq + 'static> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl<T: Eq + 'static> Eq for Shared<T> {}

impl<T: std::hash::Hash + 'static> std::hash::Hash for Shared<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<'a, T: 'static> IntoIterator for &'a Shared<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Clone + 'static> IntoIterator for &'a mut Shared<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// A list that is being made and may come out as one that is there already: then that one is shared.
pub struct Draft<'a, T> {
    from: &'a Shared<T>,
    /// So many are as they were there.
    same: usize,
    /// What is made, once it differs.
    made: Option<Vec<T>>,
}

impl<'a, T: Clone + PartialEq + 'static> Draft<'a, T> {
    pub fn of(from: &'a Shared<T>) -> Self {
        Self { from, same: 0, made: None }
    }

    #[inline]
    fn goes_on_as_before(&mut self, entry: &T) -> bool {
        let same = self.made.is_none()
            && self.from.get(self.same).is_some_and(|known| std::ptr::eq(known, entry) || known == entry);
        self.same += usize::from(same);
        same
    }

    fn made(&mut self) -> &mut Vec<T> {
        self.made.get_or_insert_with(|| {
            let mut made = Vec::with_capacity(self.from.len() + ROOM);
            made.extend_from_slice(&self.from[..self.same]);
            made
        })
    }

    pub fn push(&mut self, entry: T) {
        if !self.goes_on_as_before(&entry) {
            self.made().push(entry);
        }
    }

    pub fn push_copy(&mut self, entry: &T) {
        if !self.goes_on_as_before(entry) {
            self.made().push(entry.clone());
        }
    }

    pub fn extend(&mut self, entry: Option<T>) {
        if let Some(entry) = entry {
            self.push(entry);
        }
    }

    pub fn finish(self) -> Shared<T> {
        match self.made {
            Some(made) => made.into(),
            None if self.same == self.from.len() => self.from.clone(),
            None => self.from[..self.same].to_vec().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Shared<u32> {
        vec![1, 2, 3, 4].into()
    }

    #[test]
    fn who_writes_gets_a_copy() {
        let before = list();
        let mut after = before.clone();
        assert!(before.is_same(&after));
        after.push(5);
        assert!(!before.is_same(&after));
        assert_eq!((before.as_slice(), after.as_slice()), (&[1, 2, 3, 4][..], &[1, 2, 3, 4, 5][..]));
    }

    #[test]
    fn dropping_nothing_is_no_write() {
        let before = list();
        let mut after = before.clone();
        after.retain(|_| true);
        assert!(after.edit_if(|&entry| entry > 4).is_empty());
        assert!(before.is_same(&after));
    }

    #[test]
    fn a_key_is_worked_out_again_after_a_write() {
        let mut list = list();
        let sum = |list: &Shared<u32>| list.key(0, || list.iter().map(|&entry| u64::from(entry)).sum());
        assert_eq!(sum(&list), 10);
        assert_eq!(list.key(0, || 0), 10);
        assert_eq!(list.key(1, || 7), 7);
        let before = list.clone();
        list.push(5);
        assert_eq!((sum(&list), sum(&before)), (15, 10));
        list.retain(|&entry| entry > 1);
        assert_eq!(sum(&list), 14);
        list.retain(|_| true);
        assert_eq!(list.key(0, || 0), 14);
    }

    #[test]
    fn what_comes_out_the_same_is_shared() {
        let from = list();
        let copied = |entries: &[u32]| {
            let mut draft = Draft::of(&from);
            entries.iter().for_each(|entry| draft.push_copy(entry));
            draft.finish()
        };
        assert!(copied(&[1, 2, 3, 4]).is_same(&from));
        for entries in [&[1, 2][..], &[1, 2, 3, 4, 5], &[1, 3, 3, 4], &[]] {
            assert_eq!(copied(entries).as_slice(), entries);
        }
    }

    #[test]
    fn each_entry_is_asked_for_once_in_order() {
        for shared in [true, false] {
            let mut after = list();
            let before = shared.then(|| after.clone());
            let mut asked = Vec::new();
            after.retain(|&entry| {
                asked.push(entry);
                entry % 2 == 1
            });
            assert_eq!((asked.as_slice(), after.as_slice()), (&[1, 2, 3, 4][..], &[1, 3][..]));
            assert!(before.is_none_or(|before| before == list()));
        }
    }
}
