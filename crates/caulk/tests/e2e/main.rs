//! End-to-end tests: everything here runs the built `caulk`, in one test binary,
//! because every binary that links LLVM costs seconds.

mod capture;
mod check;
mod ci;
mod cli;
mod fix;
mod fixtures;
mod graph;
mod guard;
mod kept;
mod pages;
mod run;
