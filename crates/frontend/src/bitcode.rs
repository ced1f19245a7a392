//! Bitcode in, [`caulk_ir::Unit`] out.
//!
//! A thin layer of C++ (`cpp/`) promotes the module's stack slots to SSA values
//! and walks it; what it finds crosses over as one flat buffer, which is
//! decoded here. There are two ways to the same buffer:
//!
//! - As a [plugin](plugin_arguments) inside clang, which has the module in
//!   memory anyway: together they take less time than clang alone takes to
//!   write bitcode.
//! - In this process, from bitcode, with LLVM's own reader; that takes a third
//!   of clang's time again, and works with a clang that loads no plugins.
//!
//! [`lower`] takes what either gives. The LLVM module is gone when it returns.
//! Each call has a context of its own, so units are lowered in parallel.
//!
//! ```text
//! int f(int *p) {        f0 f(v0: ptr) -> i32 {
//!     if (!p)            bb0: v1 = cmp ne ptr v0, null
//!                             branch v1, bb2, bb1
//!         return -1;     bb1: jump bb3
//!     return *p;         bb2: v2 = load i32 v0
//!                             jump bb3
//! }                      bb3: v3 = phi i32 [bb1: -1], [bb2: v2]
//!                             return v3 }
//! ```
//!
//! # Invariants
//! - Blocks that control never reaches are dropped; the others keep their
//!   order in the source.
//! - A `return` in the source is a jump to the function's one `return`; its
//!   position is that of the jump.
//! - Whatever the buffer holds, decoding ends in a unit whose ids are in range
//!   or in an error.
//!
//! # Known imprecision
//! - Unwinding is left out: C code is never the first to throw.
//! - Vectors and floating values are not followed.
//! - Constant structs and vectors, and differences of addresses, are unknown.
//! - Long tables of plain numbers are left out of a global's contents, which
//!   says so ([`caulk_ir::Global::init_complete`]).

#![expect(unsafe_code, reason = "calls the C++ shim")]

mod decode;
mod plugin;
mod reader;

use caulk_ir::Unit;
use thiserror::Error;

pub use plugin::{PLUGIN_OUTPUT, install_plugin, plugin_arguments};

/// Why a unit could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BitcodeError {
    #[error("not LLVM bitcode")]
    NotBitcode,
    /// LLVM's own words.
    #[error("LLVM cannot read the bitcode: {0}")]
    Unreadable(String),
    /// The two halves of the front end do not agree: a bug of ours, or damage in memory.
    #[error("lowered unit is damaged at byte {offset}: {what}")]
    Damaged { offset: usize, what: &'static str },
}

mod shim {
    use std::ffi::c_char;

    unsafe extern "C" {
        pub fn caulk_lower(
            data: *const u8,
            length: usize,
            out: *mut *mut u8,
            out_length: *mut usize,
            error: *mut *mut c_char,
        ) -> i32;
        pub fn caulk_release(memory: *mut std::ffi::c_void);
    }
}

/// Reads one module, as bitcode of clang 19 or as the plugin wrote it, into a unit.
pub fn lower(module: &[u8]) -> Result<Unit, BitcodeError> {
    // The last byte of the magic is the version, which the decoder compares.
    if module.starts_with(&decode::MAGIC[..7]) { decode::unit(module) } else { decode::unit(&flatten(module)?) }
}

/// Raw bitcode, or bitcode in a wrapper that says where it lies.
fn looks_like_bitcode(bytes: &[u8]) -> bool {
    // The reader takes whole words only.
    bytes.len() >= 16
        && bytes.len().is_multiple_of(4)
        && (bytes.starts_with(b"BC\xC0\xDE") || bytes.starts_with(&0x0B17_C0DE_u32.to_le_bytes()))
}

/// The module as the flat buffer that [`decode`] reads.
fn flatten(bitcode: &[u8]) -> Result<Vec<u8>, BitcodeError> {
    if !looks_like_bitcode(bitcode) {
        return Err(BitcodeError::NotBitcode);
    }
    let mut out = std::ptr::null_mut();
    let mut length = 0;
    let mut error = std::ptr::null_mut();
    // SAFETY: `data` and `length` describe a live slice; the other pointers are to locals of the
    // right types, which the shim only writes.
    let status = unsafe { shim::caulk_lower(bitcode.as_ptr(), bitcode.len(), &mut out, &mut length, &mut error) };
    if status != 0 || out.is_null() {
        return Err(BitcodeError::Unreadable(take_message(error)));
    }
    // SAFETY: on success `out` is a block of `length` bytes that is ours until released.
    let bytes = unsafe { std::slice::from_raw_parts(out, length) }.to_vec();
    // SAFETY: `out` came from the shim and is released once.
    unsafe { shim::caulk_release(out.cast()) };
    Ok(bytes)
}

fn take_message(error: *mut std::ffi::c_char) -> String {
    if error.is_null() {
        return "out of memory".to_string();
    }
    // SAFETY: the shim's messages are zero-terminated and ours until released.
    let message = unsafe { std::ffi::CStr::from_ptr(error) }.to_string_lossy().trim().to_string();
    // SAFETY: `error` came from the shim and is released once.
    unsafe { shim::caulk_release(error.cast()) };
    message
}
