//! The text form of units: what `caulk dump ir` prints, and what the tests of
//! the passes above are written in.
//!
//! ```text
//! unit "/src/t.c"
//! sym0 external define @f
//! sym1 external declare @malloc noalias_result
//! global @table size 16 init { 8: @f }
//!
//! f0 @f(v0: i64) -> ptr {
//!   var0 "p"
//! bb0:
//!   v1 = call ptr @malloc(v0) @loc3                 ; t.c:3:13
//!   bind var0, v1
//!   v2 = cmp eq v1, null
//!   branch v2, bb1, bb2
//! bb1:
//!   unreachable
//! bb2:
//!   v3 = offset v1 + 4 + v0 * 8
//!   store i32 -1 to v3
//!   return v1
//! }
//! ```
//!
//! An operand is a value (`v3`) or a constant with its type (`i32 -1`, `ptr 8`,
//! `agg16 zero`, `i64 undef`); the type is left out of `null`, `true`, `false`
//! and of addresses (`@f`, `@table[8]`, `bb2`) that are pointers. `;` starts a
//! comment.
//!
//! [`print_unit`] writes everything, so that [`parse_unit`] gives back an equal
//! unit. A hand-written text may leave out the tables of files, positions,
//! types and symbols: names are declared by their use, and `@12:5` or
//! `@util.c:12:5` is a position as it stands.
//!
//! # Invariants
//! - `parse_unit(&print_unit(unit)) == unit` for every unit that
//!   [`verify`](crate::verify()) accepts.
//! - The parser gives an error with its line for everything else; it never
//!   panics.

mod function;
mod lex;
mod names;
mod parse;
mod print;

use std::fmt;

pub use parse::parse_unit;
pub use print::{print_function, print_unit};

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// From 1.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TextError {}
