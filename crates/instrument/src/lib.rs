//! Bitcode of a whole program in, bitcode that reclaims chosen blocks out.
//!
//! Every guarded block has an *owner*: a variable of the activation that the block belongs to. It is set where the block
//! is allocated, cleared where somebody else may get hold of the block, and where none of the function's values leads to
//! the block any more, what the owner still names is reclaimed:
//!
//! ```text
//! char *p = strdup(s);          owner = p
//! if (append(list, p) < 0)      append.caulk(list, p, &owner): it clears the owner where it stores p
//!     return -1;                the last use was the call: owner is set on the way on which nothing was stored,
//! return 0;                     and the block is reclaimed; on the other it is null, and nothing happens
//! ```
//!
//! A callee that may take the block or not gets a *variant* that is told the owner's address; one that makes a block and
//! returns it gets a variant that tells its caller's owner. The originals stay as they are for everybody else. There is no
//! table of blocks: recursion, threads, `fork` and signals need no rule of their own, because an owner belongs to an
//! activation as every variable does.
//!
//! # Invariants
//! - While an owner names a block, every pointer to the block is a value of the function (or of callees that are told the
//!   owner), or lies in memory that only those lead to (`cpp/flow.cpp`). Whatever may break that clears the owner first.
//!   So reclaiming is safe whether the alarm was true or not.
//! - What flows into code that was not instrumented, and has no model, is never reclaimed.
//!
//! # Known imprecision
//! - A function that calls `setjmp` owns nothing. What `longjmp` passes over is not reclaimed.
//! - Calls through pointers take what they are given, and what they make is not followed: but for a variable of the program's
//!   that begins as a library function, and for members of structs that at most a few functions are put into by name, where
//!   the run asks whether it is one of those (`cpp/calls.cpp`).
//! - Resources that lie in a variable of the program's (`glob_t`) are not guarded: the variable may be copied or overwritten.
//! - In a loop that carries blocks from round to round, one owner names the last block only.
//! - A struct with pointers in it that is read as another one, by a function that does not see where it was filled, is not
//!   followed where the other has a number in the pointer's place (which C does not allow either).
//! - A block that a callee stores into another argument of its caller's is taken, unless the callee made it.

#![expect(unsafe_code, reason = "calls the C++ part")]

mod archive;
mod carry;
mod elf;
mod plan;

use std::collections::BTreeSet;
use std::ffi::c_void;

use caulk_models::Models;
use thiserror::Error;

pub use archive::{Member, read_archive, write_archive};
pub use carry::{Carried, Record, carried, carry};
pub use elf::defined;

/// A place where something is allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Absolute, or the end of a path.
    pub file: String,
    pub line: u32,
    /// From 1; 0 for every call on the line.
    pub column: u32,
}

/// Which sites to guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Sites(Vec<Site>),
    /// All there are: for tests.
    Everything,
}

/// One unit of the program.
#[derive(Clone, Copy, Debug)]
pub struct Module<'a> {
    pub bitcode: &'a [u8],
    /// Whether the user asked for debug information; otherwise it is taken out again.
    pub debug: bool,
}

/// What is linked.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    pub modules: &'a [Module<'a>],
    /// Of a shared library: tells its reports from those of the program that it is in. Otherwise empty.
    pub name: &'a str,
    /// Names that parts without bitcode define: whatever they do, it is not what the library's functions of these names do.
    pub foreign: &'a BTreeSet<String>,
}

/// What became of one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With this many places where it may be reclaimed.
    Guarded(usize),
    Not(String),
}

#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// Index and new bitcode of the units that changed.
    pub changed: Vec<(usize, Vec<u8>)>,
    /// In the order of the sites.
    pub verdicts: Vec<Verdict>,
    /// With [`Wanted::Everything`], how much that was.
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the program cannot be instrumented: {0}")]
pub struct GuardError(pub String);

#[repr(C)]
struct Bytes {
    data: *const u8,
    length: usize,
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes { data: bytes.as_ptr(), length: bytes.len() }
    }
}

type Emit = extern "C" fn(*mut c_void, i32, u32, *const u8, usize);

unsafe extern "C" {
    fn caulk_guard(plan: Bytes, modules: *const Bytes, count: usize, context: *mut c_void, emit: Emit);
}

#[derive(Default)]
struct Answer {
    guarded: Guarded,
    report: String,
    problem: Option<String>,
}

extern "C" fn receive(context: *mut c_void, kind: i32, index: u32, data: *const u8, length: usize) {
    // SAFETY: `context` is the `Answer` of the call that is running, which nobody else looks at meanwhile.
    let answer = unsafe { &mut *context.cast::<Answer>() };
    let bytes = if length == 0 {
        &[]
    } else {
        // SAFETY: the C++ part passes a live buffer and its length.
        unsafe { std::slice::from_raw_parts(data, length) }
    };
    match kind {
        0 => answer.guarded.changed.push((index as usize, bytes.to_vec())),
        1 => answer.report = String::from_utf8_lossy(bytes).into_owned(),
        _ => answer.problem = Some(String::from_utf8_lossy(bytes).trim().to_owned()),
    }
}

/// Guards the wanted sites of a program.
pub fn guard(models: &Models, program: &Program<'_>, wanted: &Wanted) -> Result<Guarded, GuardError> {
    let plan = plan::write(models, program, wanted);
    let bytes: Vec<Bytes> = program.modules.iter().map(|module| Bytes::from(module.bitcode)).collect();
    let mut answer = Answer::default();
    let context: *mut Answer = &mut answer;
    // SAFETY: all buffers live until the call returns, and `receive` gets the context it expects.
    unsafe { caulk_guard(plan.as_bytes().into(), bytes.as_ptr(), bytes.len(), context.cast(), receive) };
    if let Some(problem) = answer.problem {
        return Err(GuardError(problem));
    }
    let mut guarded = answer.guarded;
    if let Wanted::Sites(sites) = wanted {
        guarded.verdicts = plan::verdicts(&answer.report, sites.len());
    } else {
        guarded.note = answer.report.trim().trim_start_matches("-1\t").to_owned();
    }
    Ok(guarded)
}
