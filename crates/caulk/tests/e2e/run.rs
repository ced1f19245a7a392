//! Running `caulk` and looking at what came out.

use std::path::Path;
use std::process::{Command, Output};

/// `caulk` with nothing of the developer's environment that would change what it says.
pub fn caulk(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caulk"));
    command.current_dir(folder).env_remove("CAULK_CLANG").env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
    command
}

/// What a run came to.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

/// Runs `caulk ARGUMENTS…` in `folder`.
pub fn run(folder: &Path, arguments: &[&str]) -> Ran {
    caulk(folder).args(arguments).output().expect("the built caulk can be started").into()
}
