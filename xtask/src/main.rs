//! Development chores: `cargo xtask tidy`.

fn main() {}
