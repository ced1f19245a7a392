//! `--interactive`: yes, no, show the path, quit.

use std::cell::Cell;
use std::io::BufRead;

use caulk_findings::{Finding, Patch};

use crate::exit;

thread_local! {
    static QUIT: Cell<bool> = const { Cell::new(false) };
}

/// Shows a patch and asks for it. After `q`, and at the end of input, nothing more is taken.
pub(super) fn wants(finding: &Finding, patch: &Patch) -> Result<(), String> {
    let declined = || Err("declined".to_owned());
    if QUIT.get() {
        return declined();
    }
    exit::say(&format!("{}\n{}\n{}", finding.message, patch.title, patch.diff));
    loop {
        exit::say("apply this patch? [y]es, [n]o, show the [p]ath, [q]uit: ");
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer).unwrap_or(0);
        match answer.trim() {
            "y" | "yes" => return Ok(()),
            "n" | "no" => return declined(),
            "p" | "path" => {
                for step in &finding.steps {
                    exit::say(&format!("  {}:{}: {}\n", step.place.file, step.place.line, step.text));
                }
            }
            answer if read == 0 || matches!(answer, "q" | "quit") => {
                QUIT.set(true);
                return declined();
            }
            _ => {}
        }
    }
}
