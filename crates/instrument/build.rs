//! Compiles the instrumentation against LLVM 19 and links LLVM's static libraries; `crates/frontend/build.rs` says
//! when LLVM is not there or not the right one.

use std::process::Command;
use std::{env, fs};

const COMPONENTS: [&str; 6] = ["analysis", "bitreader", "bitwriter", "core", "support", "transformutils"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-env-changed=LLVM_CONFIG");
    let config = env::var("LLVM_CONFIG").unwrap_or_else(|_| "llvm-config-19".to_string());
    let ask = |arguments: &[&str]| -> String {
        match Command::new(&config).args(arguments).output() {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
            _ => {
                println!(
                    "cargo::error=`{config} {}` failed: install llvm-19-dev, or set LLVM_CONFIG",
                    arguments.join(" ")
                );
                std::process::exit(1);
            }
        }
    };
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).debug(false).warnings(true).extra_warnings(true);
    build.flag("-isystem").flag(ask(&["--includedir"])).flag("-fno-exceptions").flag("-fno-rtti");
    for define in ["_GNU_SOURCE", "__STDC_CONSTANT_MACROS", "__STDC_FORMAT_MACROS", "__STDC_LIMIT_MACROS"] {
        build.define(define, None);
    }
    let mut files: Vec<_> = fs::read_dir("cpp").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
    files.sort();
    build.files(files);
    build.compile("caulk_guard");

    println!("cargo::rustc-link-search=native={}", ask(&["--libdir"]));
    let mut arguments = vec!["--link-static", "--libnames"];
    arguments.extend(COMPONENTS);
    for library in ask(&arguments).split_whitespace() {
        let name = library.trim_start_matches("lib").trim_end_matches(".a");
        println!("cargo::rustc-link-lib=static:-bundle={name}");
    }
}
