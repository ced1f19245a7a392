//! How a run ends: the three exit codes, and the words that go with them.
//!
//!     0   nothing found, or everything fixed
//!     1   findings (remain)
//!     2   could not do its work: wrong usage, nothing to analyse, our own bug
//!
//! A reader that goes away (`caulk check … | head`) is no error: the run ends quietly with 0,
//! as nobody is left to read a code either.

use std::io::Write;
use std::process::ExitCode;

/// What a command that did its work came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Clean,
    Findings,
    /// Ends with the code of a program that was run on the user's behalf.
    Child(u8),
}

const FAILED: u8 = 2;

/// Turns the result of a command into the exit code, and says on standard error what went wrong.
pub(crate) fn finish(result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Ok(Outcome::Child(code)) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}\n"));
            ExitCode::from(FAILED)
        }
    }
}

/// Wrong usage, or the help text that was asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is all that can go wrong here, and there is nobody to tell.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// A panic is our own bug: say so, say how to report it, and end with 2 like every other failure.
pub(crate) fn report_own_bugs() {
    std::panic::set_hook(Box::new(|panic| {
        say(&format!(
            "error: caulk {} has run into a bug of its own, not of yours\n  {panic}\n  \
             please report it with the lines above and, if you can, the source file that led here\n",
            env!("CARGO_PKG_VERSION")
        ));
        crate::interrupt::remove_unfinished();
        std::process::exit(i32::from(FAILED));
    }));
}

/// To standard error; if that is closed there is nobody to tell.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_reader_that_went_away_is_found_below_context() {
        let gone = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&Err::<(), _>(gone).context("writing the report").unwrap_err()));
        assert!(!is_broken_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
