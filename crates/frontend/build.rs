//! Compiles the C++ shim against LLVM 19, links LLVM's static libraries, and compiles the recorder of builds.

#[path = "build/llvm.rs"]
mod llvm;

use std::env;
use std::path::Path;

use llvm::{Llvm, cpp_files, fail, first_line};

/// What the shim uses.
const COMPONENTS: [&str; 5] = ["analysis", "bitreader", "core", "support", "transformutils"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    build_llvm_shim();
    build_recorder();
}

/// The library that `caulk capture` puts into every process of a build; it goes into the binary as it is.
fn build_recorder() {
    println!("cargo::rerun-if-changed=recorder");
    let Ok(folder) = env::var("OUT_DIR") else { fail("OUT_DIR is not set") };
    let compiler = cc::Build::new().opt_level(2).debug(false).pic(true).get_compiler();
    let mut command = compiler.to_command();
    command.args(["-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "recorder/recorder.c", "-o"]);
    command.arg(Path::new(&folder).join("recorder.so"));
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => fail(&format!("recorder/recorder.c does not compile: {}", first_line(&output.stderr))),
        Err(error) => fail(&format!("cannot run the C compiler: {error}")),
    }
}

fn build_llvm_shim() {
    let llvm = Llvm::find();
    let include = llvm.include();
    if !include.join("clang/AST/Decl.h").exists() {
        fail(&format!("no clang headers in {}: install the Debian package libclang-19-dev", include.display()));
    }
    let mut build = llvm.shim("cpp");
    // Nothing in the plugin may be mistaken for a part of clang.
    build.flag("-fvisibility=hidden").flag("-fvisibility-inlines-hidden");
    build.compile("caulk_shim");
    build_plugin(build);
    llvm.link(&COMPONENTS);
}

/// The same lowering for clang to load; it goes into the binary as it is.
fn build_plugin(build: cc::Build) {
    let Ok(folder) = env::var("OUT_DIR") else { fail("OUT_DIR is not set") };
    let mut command = build.get_compiler().to_command();
    command.arg("-shared").args(cpp_files("cpp/plugin")).args(["-Wl,-s", "-L"]).arg(&folder).arg("-lcaulk_shim");
    command.arg("-o").arg(Path::new(&folder).join("plugin.so"));
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => fail(&format!("cpp/plugin does not compile: {}", first_line(&output.stderr))),
        Err(error) => fail(&format!("cannot run the C++ compiler: {error}")),
    }
}
