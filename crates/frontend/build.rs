//! Compiles the C++ shim against LLVM 19, links LLVM's static libraries, and compiles the recorder of builds.
//!
//! `LLVM_CONFIG` names another `llvm-config`. The libraries are not bundled
//! into this crate's own archive: only what is used goes into each binary, and
//! only when it is linked.

use std::env;
use std::path::Path;
use std::process::Command;

/// What the shim uses; `llvm-config` adds what these need.
const COMPONENTS: [&str; 5] = ["analysis", "bitreader", "core", "support", "transformutils"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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

/// Ends the build with a message for the person who runs it.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}

fn build_llvm_shim() {
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-env-changed=LLVM_CONFIG");
    let config = env::var("LLVM_CONFIG").unwrap_or_else(|_| "llvm-config-19".to_string());
    let ask = |arguments: &[&str]| -> String {
        match Command::new(&config).args(arguments).output() {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
            Ok(output) => fail(&format!("`{config} {}` failed: {}", arguments.join(" "), first_line(&output.stderr))),
            Err(error) => fail(&format!(
                "cannot run `{config}` ({error}): install LLVM 19 with `apt-get install llvm-19-dev clang-19`, \
                 or set LLVM_CONFIG"
            )),
        }
    };

    let version = ask(&["--version"]);
    if !version.starts_with("19.") {
        fail(&format!("`{config}` is LLVM {version}, but LLVM 19 is needed (Debian package llvm-19-dev)"));
    }
    let include = ask(&["--includedir"]);
    if !Path::new(&include).join("llvm/Bitcode/BitcodeReader.h").exists() {
        fail(&format!("no LLVM headers in {include}: install the Debian package llvm-19-dev"));
    }
    if !Path::new(&include).join("clang/AST/Decl.h").exists() {
        fail(&format!("no clang headers in {include}: install the Debian package libclang-19-dev"));
    }

    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).debug(false).warnings(true).extra_warnings(true);
    // Nothing in the plugin may be mistaken for a part of clang.
    build.flag("-fvisibility=hidden").flag("-fvisibility-inlines-hidden");
    build.flag("-isystem").flag(&include).flag("-fno-exceptions").flag("-fno-rtti");
    for define in ["_GNU_SOURCE", "__STDC_CONSTANT_MACROS", "__STDC_FORMAT_MACROS", "__STDC_LIMIT_MACROS"] {
        build.define(define, None);
    }
    build.files(cpp_files("cpp"));
    build.compile("caulk_shim");
    build_plugin(build);

    println!("cargo::rustc-link-search=native={}", ask(&["--libdir"]));
    let mut arguments = vec!["--link-static", "--libnames"];
    arguments.extend(COMPONENTS);
    for library in ask(&arguments).split_whitespace() {
        let name = library.trim_start_matches("lib").trim_end_matches(".a");
        println!("cargo::rustc-link-lib=static:-bundle={name}");
    }
    for library in ask(&["--link-static", "--system-libs"]).split_whitespace() {
        // The shim never reaches LLVM's compression, Windows manifests and solver.
        if let Some(name) = library.strip_prefix("-l").filter(|name| !["xml2", "z", "zstd"].contains(name)) {
            println!("cargo::rustc-link-lib=dylib={name}");
        }
    }
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

fn first_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().next().unwrap_or_default().to_string()
}

/// In a fixed order, so that two builds are the same.
fn cpp_files(folder: &str) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { fail(&format!("cannot read {folder}")) };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
    files.sort();
    files
}
