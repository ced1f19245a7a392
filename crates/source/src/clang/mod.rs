//! libclang, loaded at run time: the only place of this crate with `unsafe`.
//!
//! Everything that leaves this module is owned plain data or a handle whose
//! lifetime is tied to its translation unit, so that no caller can hold a
//! dangling cursor. The library is loaded once per process and never unloaded.
//!
//! clang-sys gives us the types and constants; its own run-time loader keeps
//! the library per thread and takes a path only through the environment, so the
//! few functions we call are resolved here instead.

#![expect(unsafe_code, reason = "libclang is a C library; every call into it is unsafe")]

mod api;
mod unit;

pub(crate) use unit::{Cursor, FileKey, Location, TranslationUnit, kind};
pub use unit::{Diagnostic, ParseRequest, Severity};
