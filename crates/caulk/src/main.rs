//! The `caulk` command line.

fn main() {}
