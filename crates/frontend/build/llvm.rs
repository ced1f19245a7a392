//! What every shim over LLVM 19 needs: compiled against its headers, linked with its static libraries.
//!
//! `LLVM_CONFIG` names another `llvm-config`. The libraries are not bundled into the crates' own archives: only what is used
//! goes into each binary, and only when it is linked.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `llvm-config`, checked to be of the right version, with headers beside it.
pub struct Llvm {
    config: String,
}

impl Llvm {
    pub fn find() -> Llvm {
        println!("cargo::rerun-if-env-changed=LLVM_CONFIG");
        let llvm = Llvm { config: env::var("LLVM_CONFIG").unwrap_or_else(|_| "llvm-config-19".to_string()) };
        let version = llvm.ask(&["--version"]);
        if !version.starts_with("19.") {
            fail(&format!("`{}` is LLVM {version}, but LLVM 19 is needed (Debian package llvm-19-dev)", llvm.config));
        }
        if !llvm.include().join("llvm/Bitcode/BitcodeReader.h").exists() {
            fail(&format!("no LLVM headers in {}: install the Debian package llvm-19-dev", llvm.include().display()));
        }
        llvm
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let config = &self.config;
        match Command::new(config).args(arguments).output() {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
            Ok(output) => fail(&format!("`{config} {}` failed: {}", arguments.join(" "), first_line(&output.stderr))),
            Err(error) => fail(&format!(
                "cannot run `{config}` ({error}): install LLVM 19 with `apt-get install llvm-19-dev clang-19`, \
                 or set LLVM_CONFIG"
            )),
        }
    }

    pub fn include(&self) -> PathBuf {
        PathBuf::from(self.ask(&["--includedir"]))
    }

    /// The C++ files of a folder, with LLVM's own settings.
    pub fn shim(&self, folder: &str) -> cc::Build {
        println!("cargo::rerun-if-changed={folder}");
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").opt_level(2).debug(false).warnings(true).extra_warnings(true);
        build.flag("-isystem").flag(self.include()).flag("-fno-exceptions").flag("-fno-rtti");
        for define in ["_GNU_SOURCE", "__STDC_CONSTANT_MACROS", "__STDC_FORMAT_MACROS", "__STDC_LIMIT_MACROS"] {
            build.define(define, None);
        }
        build.files(cpp_files(folder));
        build
    }

    /// Links these components; `llvm-config` adds what they need.
    pub fn link(&self, components: &[&str]) {
        println!("cargo::rustc-link-search=native={}", self.ask(&["--libdir"]));
        for library in self.ask(&[&["--link-static", "--libnames"], components].concat()).split_whitespace() {
            let name = library.trim_start_matches("lib").trim_end_matches(".a");
            println!("cargo::rustc-link-lib=static:-bundle={name}");
        }
        for library in self.ask(&["--link-static", "--system-libs"]).split_whitespace() {
            // The shims never reach LLVM's compression, Windows manifests and solver.
            if let Some(name) = library.strip_prefix("-l").filter(|name| !["xml2", "z", "zstd"].contains(name)) {
                println!("cargo::rustc-link-lib=dylib={name}");
            }
        }
    }
}

/// Ends the build with a message for the person who runs it.
pub fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}

pub fn first_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().next().unwrap_or_default().to_string()
}

/// In a fixed order, so that two builds are the same.
pub fn cpp_files(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { fail(&format!("cannot read {folder}")) };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| Path::new(path).extension().is_some_and(|extension| extension == "cpp"));
    files.sort();
    files
}
