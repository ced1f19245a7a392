//! The runtime of guarded programs, as a static library in memory: `c/runtime.c`.
//!
//! `caulk cc` links it into the programs it guards, so that the one binary is all a user needs. It releases blocks that
//! were lost, counts them by site, and writes a report when asked to (`CAULK_RT`).

/// `libcaulk_runtime.a`, for the machine that caulk itself was built for.
pub const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libcaulk_runtime.a"));
