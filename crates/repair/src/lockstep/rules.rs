//! What is known of the functions that the two compared ones call: which of them release, what for sure, and what they
//! may look at.

use std::cell::RefCell;
use std::rc::Rc;

use caulk_base::FxHashMap;

use super::terms::Which;
use crate::survey::{Spot, Survey};

/// A pointer that a callee finds in its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Argument(usize),
    /// At so many bytes behind another one.
    At(Box<Found>, i64),
}

/// What a callee does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    Memory,
    Pointers,
    Nothing,
}

pub struct Rules<'a> {
    pub before: &'a Survey,
    pub after: &'a Survey,
    /// The release of the finding.
    pub release: &'a str,
    sure: RefCell<FxHashMap<String, Rc<Vec<Found>>>>,
}

impl<'a> Rules<'a> {
    pub fn new(before: &'a Survey, after: &'a Survey, release: &'a str) -> Self {
        Self { before, after, release, sure: RefCell::default() }
    }

    /// Whether a call at a place is there to release.
    pub fn is_release(&self, which: Which, function: &str, callee: &str, place: (&str, u32, u32)) -> bool {
        self.is_spot(which, function, place) && self.releases(callee)
    }

    /// Whether something is released at a place.
    pub fn is_spot(&self, which: Which, function: &str, (file, line, column): (&str, u32, u32)) -> bool {
        let survey = match which {
            Which::Old => self.before,
            Which::New => self.after,
        };
        let spot = Spot { file: file.to_owned(), line, column, function: function.to_owned() };
        survey.releases.contains_key(&spot)
    }

    /// Whether nobody notices, apart from the block itself, that a function is not called.
    pub fn is_quiet(&self, callee: &str) -> bool {
        self.is_library(callee) || !self.before.sides.is_heard(callee, None, &[])
    }

    /// Whether a static variable is nothing but an argument of the function's callees.
    pub fn only_passes(&self, function: &str, variable: &str) -> bool {
        self.before.passing.contains(&(function.to_owned(), variable.to_owned()))
    }

    fn releases(&self, callee: &str) -> bool {
        self.before.library.contains(callee)
            || self.before.destructors.contains(callee)
            || self.after.library.contains(callee)
            || self.after.destructors.contains(callee)
            || callee == self.release
            // What a variable of the caller's points to: `list_free(&list)`.
            || self.empties_first(callee)
            // What lies in the argument, not what it points to: `globfree(&list->found)`.
            || self.before.sides.only_calls(callee, &self.before.library)
    }

    /// Some way through releases what lies where the first argument points to.
    fn empties_first(&self, callee: &str) -> bool {
        let mut all = self.before.effects.iter().filter(|((_, name), _)| name == callee);
        all.any(|(_, effects)| effects.contains("releases **arg0[0]"))
    }

    /// The function of a library, as far as the program goes.
    pub fn is_library(&self, callee: &str) -> bool {
        !self.before.functions.contains(callee)
    }

    /// What is as it was when a call has returned. A release of the library changes nothing that anybody may look at.
    pub fn leaves(&self, callee: &str) -> Leaves {
        match self.is_library(callee) {
            true if self.before.library.contains(callee) => Leaves::Memory,
            false if self.before.calm.contains(callee) => Leaves::Pointers,
            _ => Leaves::Nothing,
        }
    }

    /// What a function of the library returns when it fails that otherwise puts something new where an argument points
    /// to, and does not look at what lies there.
    pub fn fills(&self, callee: &str, argument: usize) -> Option<i64> {
        self.before.filling.get(&(callee.to_owned(), argument)).copied()
    }

    /// Whether a function may keep one of its arguments.
    pub fn keeps(&self, callee: &str, argument: usize) -> bool {
        self.before.takers.contains_key(&(callee.to_owned(), argument))
    }

    /// What a call releases on every way through.
    pub fn surely_released(&self, callee: &str) -> Rc<Vec<Found>> {
        if let Some(known) = self.sure.borrow().get(callee) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.released(callee));
        self.sure.borrow_mut().insert(callee.to_owned(), Rc::clone(&found));
        found
    }

    fn released(&self, callee: &str) -> Vec<Found> {
        if self.is_library(callee) {
            let known = callee == "free" || callee == self.release;
            return if known { vec![Found::Argument(0)] } else { Vec::new() };
        }
        let mut all = self.before.effects.iter().filter(|((_, name), _)| name == callee);
        // Of two functions of one name, it is not known which is meant.
        let (Some((_, effects)), None) = (all.next(), all.next()) else { return Vec::new() };
        let objects = effects.iter().filter_map(|effect| effect.strip_prefix("releases *"));
        let perhaps = |object: &str| {
            let start = format!("does not release *{object} when");
            effects.iter().any(|effect| effect.starts_with(&start))
        };
        objects.filter(|object| !perhaps(object)).filter_map(pointer).collect()
    }
}

/// `arg0`, `*arg0[8]`, as effects are told.
fn pointer(text: &str) -> Option<Found> {
    if let Some(number) = text.strip_prefix("arg") {
        return number.parse().ok().map(Found::Argument);
    }
    let (inner, at) = text.strip_prefix('*')?.strip_suffix(']')?.rsplit_once('[')?;
    Some(Found::At(Box::new(pointer(inner)?), at.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_name_pointers() {
        assert_eq!(pointer("arg2"), Some(Found::Argument(2)));
        let first = Found::At(Box::new(Found::Argument(0)), 8);
        assert_eq!(pointer("*arg0[8]"), Some(first.clone()));
        assert_eq!(pointer("**arg0[8][0]"), Some(Found::At(Box::new(first), 0)));
        assert_eq!(pointer("*arg0[?]"), None);
        assert_eq!(pointer("Global(3)"), None);
    }
}
