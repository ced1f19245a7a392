//! frontend

mod bitcode;

pub use bitcode::{BitcodeError, lower};
