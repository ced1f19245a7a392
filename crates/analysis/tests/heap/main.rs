//! The heap analysis on small programs in the text form: what a function's summary says, and what its callers make of
//! it. Each error has a twin without it.

mod calls;
mod containers;
mod kept;
mod outcomes;
mod printed;
mod support;
