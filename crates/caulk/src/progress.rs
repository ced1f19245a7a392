//! Progress for who watches: on a terminal only, on standard error, gone when the work is done.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use caulk_frontend::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A line that shows units done, all units, and the current file.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} units  {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// A phase without units.
    pub(crate) fn phase(&self, what: &'static str) {
        self.0.set_message(what);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn started(&self, file: &Path) {
        self.0.set_message(file.display().to_string());
    }

    fn advanced(&self, done: usize, all: usize) {
        self.0.set_length(all as u64);
        self.0.set_position(done as u64);
    }
}
