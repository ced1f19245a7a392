//! The short phrases that are a model's values: `file`, `memory at *0`, `0 on success`, `1 into 0`.
//!
//! | phrase | means |
//! | --- | --- |
//! | `2` | argument 2 (from 0), or for `into` what it points to |
//! | `*2` | the pointer or number that argument 2 points to |
//! | `2+8` | the one 8 bytes into what argument 2 points to |
//! | `return` | the result |
//! | … `on success`, `on failure` | only then |
//! | … `if 1 is null`, `if 1 is not null` | only then |
//! | … `unless 0+80` | not where something was put there: a pool that it is taken from |
//!
//! # Invariants
//! - Every word of a phrase is consumed, or the phrase is an error.

use crate::types::{Condition, Place};

/// The words of one phrase, read from left to right.
pub(crate) struct Words<'p> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'p>>,
}

/// What was expected where the phrase went wrong, and the word found there.
#[derive(Debug)]
pub(crate) struct Unexpected {
    pub message: String,
    pub found: Option<String>,
    pub known: &'static [&'static str],
}

impl Unexpected {
    fn new(expected: &str, found: Option<&str>, known: &'static [&'static str]) -> Self {
        let message = match found {
            Some(word) => format!("expected {expected}, found `{word}`"),
            None => format!("expected {expected}"),
        };
        Self { message, found: found.map(str::to_owned), known }
    }
}

type Read<T> = Result<T, Unexpected>;

impl<'p> Words<'p> {
    pub fn new(phrase: &'p str) -> Self {
        Self { words: phrase.split_whitespace().peekable() }
    }

    pub fn next(&mut self) -> Option<&'p str> {
        self.words.next()
    }

    /// Whether the next word is this one; if so, it is read.
    pub fn accept(&mut self, word: &str) -> bool {
        self.words.next_if(|next| *next == word).is_some()
    }

    pub fn expect(&mut self, word: &'static str, known: &'static [&'static str]) -> Read<()> {
        if self.accept(word) { Ok(()) } else { Err(Unexpected::new(&format!("`{word}`"), self.words.next(), known)) }
    }

    /// `0`, `*0`, `0+8`, `return`.
    pub fn place(&mut self) -> Read<Place> {
        let word = self.words.next();
        word.and_then(place).ok_or_else(|| {
            Unexpected::new("a place: `0`, `*0`, `0+8` (argument, from 0) or `return`", word, &["return"])
        })
    }

    pub fn argument(&mut self) -> Read<u32> {
        let word = self.words.next();
        word.and_then(number).ok_or_else(|| Unexpected::new("the number of an argument, from 0", word, &[]))
    }

    pub fn into(&mut self) -> Read<()> {
        self.expect("into", &["into"])
    }

    /// `on success`, `on failure`, `if 1 is [not] null`, `unless 0+80`, or nothing.
    pub fn condition(&mut self) -> Read<Condition> {
        if self.accept("on") {
            let known = &["success", "failure"];
            return match self.words.next() {
                Some("success") => Ok(Condition::OnSuccess),
                Some("failure") => Ok(Condition::OnFailure),
                word => Err(Unexpected::new("`success` or `failure`", word, known)),
            };
        }
        if self.accept("unless") {
            let word = self.words.next();
            return match word.and_then(place) {
                Some(Place::Field(argument, offset)) => Ok(Condition::Unless(argument, offset)),
                _ => Err(Unexpected::new("a place like `0+80`", word, &[])),
            };
        }
        if !self.accept("if") {
            return Ok(Condition::Always);
        }
        let argument = self.argument()?;
        self.expect("is", &["is"])?;
        let not = self.accept("not");
        self.expect("null", &["null"])?;
        Ok(if not { Condition::ArgNotNull(argument) } else { Condition::ArgNull(argument) })
    }

    pub fn end(&mut self, known: &'static [&'static str]) -> Read<()> {
        match self.words.next() {
            None => Ok(()),
            word => Err(Unexpected::new("nothing more", word, known)),
        }
    }
}

/// A C function has no more parameters than this (the standard guarantees 127).
fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|&argument| argument < 128)
}

fn place(word: &str) -> Option<Place> {
    if word == "return" {
        return Some(Place::Return);
    }
    if let Some(argument) = word.strip_prefix('*') {
        return number(argument).map(Place::Deref);
    }
    match word.split_once('+') {
        Some((argument, offset)) => Some(Place::Field(number(argument)?, offset.parse().ok().filter(|o| *o >= 0)?)),
        None => number(word).map(Place::Arg),
    }
}
