//! Whole projects through the real clang and real builds. One binary, since each links LLVM.

mod capture;
mod load;
mod project;
mod tools;
