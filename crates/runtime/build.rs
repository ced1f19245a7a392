//! Compiles the runtime into a static library that goes into the `caulk` binary as it is.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).pic(true).warnings(true).extra_warnings(true).cargo_metadata(false);
    build.flag("-std=gnu11").flag("-fvisibility=hidden").flag("-fno-stack-protector").flag("-ffunction-sections");
    build.file("c/runtime.c").compile("caulk_runtime");
}
