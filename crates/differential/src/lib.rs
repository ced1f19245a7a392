//! Random C programs, run over every input and failing allocation before and after repair.
//!
//! A program is generated with its ownership in order and then broken at random; see [`body`] and [`mutate`]. It is
//! deterministic, and apart from leaks, double frees and uses after free it has no undefined behaviour: every
//! pointer is initialised, every use is guarded against NULL. Its whole behaviour depends on a few input bits and on
//! which allocations fail, so that running it over all of them shows every path.
//!
//! # Known imprecision
//! - Single failing allocations and "all from the n-th on" are run; all subsets only where a verdict hangs on it.

pub mod body;
pub mod check;
mod generate;
mod library;
pub mod mutate;
pub mod rng;
pub mod run;
mod tree;

pub use generate::{Program, generate};
