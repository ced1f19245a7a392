//! What a repair did to a program: from its behaviour before and after.

use crate::run::{Behaviour, has_errors};

/// The result for one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// No error, and left alone.
    CleanUntouched,
    /// No error, but something was reported.
    FalseAlarm,
    /// All errors are gone.
    Fixed,
    /// Some errors are gone, others remain.
    PartlyFixed,
    /// Reported, but not patched.
    FoundNotFixed,
    /// Has errors, and nothing was reported.
    Missed,
    /// The tool itself failed.
    ToolFailed,
    /// A patch that must never be made.
    Unsafe(Harm),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    DoesNotCompile,
    NewError,
    ChangedOutput,
    PatchedCleanProgram,
}

impl Class {
    pub const ALL: [Class; 11] = [
        Class::CleanUntouched,
        Class::FalseAlarm,
        Class::Fixed,
        Class::PartlyFixed,
        Class::FoundNotFixed,
        Class::Missed,
        Class::ToolFailed,
        Class::Unsafe(Harm::DoesNotCompile),
        Class::Unsafe(Harm::NewError),
        Class::Unsafe(Harm::ChangedOutput),
        Class::Unsafe(Harm::PatchedCleanProgram),
    ];

    pub fn describe(self) -> &'static str {
        match self {
            Class::CleanUntouched => "clean, left alone",
            Class::FalseAlarm => "clean, but reported",
            Class::Fixed => "fixed",
            Class::PartlyFixed => "partly fixed",
            Class::FoundNotFixed => "found, not fixed",
            Class::Missed => "missed",
            Class::ToolFailed => "caulk failed",
            Class::Unsafe(Harm::DoesNotCompile) => "UNSAFE: does not compile",
            Class::Unsafe(Harm::NewError) => "UNSAFE: new error",
            Class::Unsafe(Harm::ChangedOutput) => "UNSAFE: changed output",
            Class::Unsafe(Harm::PatchedCleanProgram) => "UNSAFE: patched a clean program",
        }
    }
}

/// Judges a patched program. `reported` says whether findings remained after the repair.
pub fn judge(before: &Behaviour, after: &Behaviour, patched: bool, reported: bool) -> Class {
    let had_errors = has_errors(before);
    if !patched {
        return match (had_errors, reported) {
            (false, false) => Class::CleanUntouched,
            (false, true) => Class::FalseAlarm,
            (true, true) => Class::FoundNotFixed,
            (true, false) => Class::Missed,
        };
    }
    if let Some(harm) = harm(before, after) {
        return Class::Unsafe(harm);
    }
    match (had_errors, has_errors(after)) {
        (false, _) => Class::Unsafe(Harm::PatchedCleanProgram),
        (true, false) => Class::Fixed,
        (true, true) => Class::PartlyFixed,
    }
}

/// Judges a program whose allocation sites are all guarded: what it lost may be gone, and nothing else may change.
pub fn judge_guarded(before: &Behaviour, after: &Behaviour) -> Class {
    match (harm(before, after), has_errors(before)) {
        (Some(harm), _) => Class::Unsafe(harm),
        (None, false) => Class::CleanUntouched,
        (None, true) if !has_errors(after) => Class::Fixed,
        (None, true) => Class::PartlyFixed,
    }
}

/// The worst thing that the patch did on some run.
fn harm(before: &Behaviour, after: &Behaviour) -> Option<Harm> {
    let mut worst = None;
    for (key, old) in before {
        let Some(new) = after.get(key) else { continue };
        let stopped = !matches!(old.verdict.as_str(), "ok" | "leak");
        let new_error = new.verdict != "ok" && new.verdict != old.verdict && !leak_remains(&old.verdict, &new.verdict);
        if new_error {
            return Some(Harm::NewError);
        }
        // Where the sanitizer stopped the program, only what it printed until then is known.
        let same = if stopped { new.output.starts_with(&old.output) } else { new.output == old.output };
        if !same {
            worst = Some(Harm::ChangedOutput);
        }
    }
    worst
}

/// A run that was stopped by an error can show another one behind it once the first is repaired.
fn leak_remains(old: &str, new: &str) -> bool {
    matches!(
        (old, new),
        ("double-free" | "use-after-free" | "bad-free", "leak" | "double-free" | "use-after-free" | "bad-free")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Outcome;

    fn behaviour(runs: &[(&str, &str)]) -> Behaviour {
        runs.iter()
            .enumerate()
            .map(|(n, (verdict, output))| {
                ((n as u32, 0), Outcome { verdict: (*verdict).into(), output: (*output).into() })
            })
            .collect()
    }

    #[test]
    fn patches_are_judged_by_what_the_program_does() {
        let leaky = behaviour(&[("ok", "aa"), ("leak", "bb")]);
        let clean = behaviour(&[("ok", "aa"), ("ok", "bb")]);
        assert_eq!(judge(&leaky, &clean, true, false), Class::Fixed);
        assert_eq!(judge(&leaky, &leaky, true, true), Class::PartlyFixed);
        assert_eq!(judge(&leaky, &leaky, false, true), Class::FoundNotFixed);
        assert_eq!(judge(&leaky, &leaky, false, false), Class::Missed);
        assert_eq!(judge(&clean, &clean, false, false), Class::CleanUntouched);
        assert_eq!(judge(&clean, &clean, false, true), Class::FalseAlarm);
        assert_eq!(judge(&clean, &clean, true, false), Class::Unsafe(Harm::PatchedCleanProgram));
    }

    #[test]
    fn a_guard_may_only_take_leaks_away() {
        let leaky = behaviour(&[("ok", "aa"), ("leak", "bb")]);
        let clean = behaviour(&[("ok", "aa"), ("ok", "bb")]);
        assert_eq!(judge_guarded(&clean, &clean), Class::CleanUntouched);
        assert_eq!(judge_guarded(&leaky, &clean), Class::Fixed);
        assert_eq!(judge_guarded(&clean, &leaky), Class::Unsafe(Harm::NewError));
        let used = behaviour(&[("ok", "aa"), ("use-after-free", "b")]);
        assert_eq!(judge_guarded(&leaky, &used), Class::Unsafe(Harm::NewError));
    }

    #[test]
    fn harm_is_seen() {
        let leaky = behaviour(&[("ok", "aa"), ("leak", "bb")]);
        let doubled = behaviour(&[("double-free", "aa"), ("ok", "bb")]);
        assert_eq!(judge(&leaky, &doubled, true, false), Class::Unsafe(Harm::NewError));
        let silent = behaviour(&[("ok", "aa"), ("ok", "")]);
        assert_eq!(judge(&leaky, &silent, true, false), Class::Unsafe(Harm::ChangedOutput));
    }

    #[test]
    fn a_stopped_run_may_go_on_after_the_repair() {
        let stopped = behaviour(&[("use-after-free", "aa")]);
        assert_eq!(judge(&stopped, &behaviour(&[("ok", "aabb")]), true, false), Class::Fixed);
        assert_eq!(judge(&stopped, &behaviour(&[("leak", "aabb")]), true, false), Class::PartlyFixed);
        assert_eq!(judge(&stopped, &behaviour(&[("ok", "bb")]), true, false), Class::Unsafe(Harm::ChangedOutput));
    }
}
