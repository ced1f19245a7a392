//! Compiles the C++ part against LLVM 19, as the front end's is.

#[path = "../frontend/build/llvm.rs"]
mod llvm;

/// What the C++ part uses.
const COMPONENTS: [&str; 6] = ["analysis", "bitreader", "bitwriter", "core", "support", "transformutils"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../frontend/build");
    let llvm = llvm::Llvm::find();
    llvm.shim("cpp").compile("caulk_guard");
    llvm.link(&COMPONENTS);
}
