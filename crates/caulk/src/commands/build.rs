//! `caulk build -- make`: runs a build with `caulk cc` as its compiler.
//!
//! `CC` says so, and for builds that name their compiler themselves a folder of stand-ins comes first in `PATH`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::cc::STAND_INS;
use crate::args::{BuildArgs, GuardArgs};
use crate::exit::Outcome;

const COMPILERS: &[&str] = &["cc", "gcc", "clang", "clang-19", "c99"];

/// Ends with the build's own exit code.
pub(super) fn run(args: &BuildArgs) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("caulk-build-").tempdir().context("cannot make a temporary folder")?;
    let own = std::env::current_exe().context("cannot find caulk itself")?;
    let mut words = vec![own.display().to_string(), "cc".to_owned()];
    words.extend(options(&args.guard)?);
    let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    for name in COMPILERS {
        let script = folder.path().join(name);
        std::fs::write(&script, format!("#!/bin/sh\nexec {line} \"$@\"\n"))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder.path().to_owned()).chain(std::env::split_paths(&path)))?;
    let (program, arguments) = args.command.split_first().context("no command")?;
    let status = Command::new(program)
        .args(arguments)
        .current_dir(&args.folder)
        .env("CC", folder.path().join("cc"))
        .env("PATH", path)
        .env(STAND_INS, folder.path())
        .status()
        .with_context(|| format!("cannot run {}", Path::new(program).display()))?;
    Ok(super::cc::outcome(status))
}

/// The same choice again, with paths that hold in every folder.
fn options(args: &GuardArgs) -> Result<Vec<String>> {
    let mut words = Vec::new();
    if args.all_leaks {
        words.push("--all-leaks".to_owned());
    }
    if args.guard_everything {
        words.push("--guard-everything".to_owned());
    }
    for (option, files) in [("--from", &args.from), ("--sites", &args.sites)] {
        for file in files {
            words.extend([option.to_owned(), std::path::absolute(file)?.display().to_string()]);
        }
    }
    if let Some(compiler) = &args.compiler {
        words.extend(["--compiler".to_owned(), compiler.display().to_string()]);
    }
    Ok(words)
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
