//! Sentences that several outputs share.

use caulk_findings::{AllocClass, Confidence, Finding, Rule, Step, StepKind};

use crate::RunSite;

/// Text for one line of a terminal: control characters and line breaks are gone,
/// also those that reorder text.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// `1 file`, `2 files`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", thousands(number as u64)),
    }
}

/// `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `3 blocks, 96 bytes`; a descriptor has no bytes.
pub fn lost(site: &RunSite) -> String {
    let blocks = count(usize::try_from(site.blocks).unwrap_or(usize::MAX), "block");
    match site.bytes {
        0 => blocks,
        bytes => format!("{blocks}, {}", count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte")),
    }
}

/// Microseconds as people say them: `640 µs`, `12.3 ms`, `4.56 s`.
pub fn duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

/// What a step says, never empty.
pub fn step_text(step: &Step) -> String {
    let text = step.text.trim();
    match (&step.decision, text) {
        (Some(decision), "") => format!("taking the branch where `{}` is {}", decision.condition, decision.taken),
        (_, "") => default_text(step.kind).to_owned(),
        _ => text.to_owned(),
    }
}

fn default_text(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Allocate => "allocated here",
        StepKind::Copy => "copied here",
        StepKind::Store => "stored here",
        StepKind::Call => "passed to a call here",
        StepKind::Branch => "a branch is taken here",
        StepKind::Release => "released here",
        StepKind::Use => "used here",
        StepKind::Lose => "the last reference is lost here",
        StepKind::Return => "returns here",
    }
}

/// What happens at the finding's source, for findings without a step there.
pub fn source_text(rule: Rule) -> &'static str {
    match rule {
        Rule::MemoryLeak | Rule::LeakAtExit => "allocated here",
        Rule::ResourceLeak | Rule::MismatchedRelease => "acquired here",
        Rule::DoubleFree | Rule::UseAfterFree | Rule::InvalidFree => "it comes from here",
    }
}

/// What happens at the finding's sink, for findings without steps.
pub fn sink_text(rule: Rule) -> &'static str {
    match rule {
        Rule::MemoryLeak | Rule::ResourceLeak => "the last reference is lost here",
        Rule::DoubleFree => "released again here",
        Rule::UseAfterFree => "used after its release here",
        Rule::MismatchedRelease => "released by the wrong function here",
        Rule::InvalidFree => "released here, though never allocated",
        Rule::LeakAtExit => "still held when the process ends",
    }
}

pub fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

/// The notes below a finding: confidence with its doubts, then assumptions.
pub fn notes(finding: &Finding) -> Vec<String> {
    let mut notes = Vec::new();
    let sure = confidence(finding.confidence);
    match finding.doubts.as_slice() {
        [] => notes.push(format!("confidence: {sure}")),
        doubts => notes.push(format!("confidence: {sure}, because {}", doubts.join("; "))),
    }
    notes.extend(finding.assumptions.iter().map(|assumption| format!("assumed: {assumption}")));
    notes
}

/// The classes of allocation sites, in words.
pub fn alloc_class(class: AllocClass) -> (&'static str, &'static str) {
    match class {
        AllocClass::NeverFreedLocalInMain => {
            ("never freed, local in main", "nobody frees it; the process ends soon after")
        }
        AllocClass::NeverFreedLocal => ("never freed, local", "no path frees it and it never leaves its function"),
        AllocClass::NeverFreedShared => ("never freed, shared", "no path frees it, but others may hold it"),
        AllocClass::AlwaysFreed => ("always freed", "proved safe: every path frees it"),
        AllocClass::SometimesFreed => ("sometimes freed", "freed on some paths only"),
        AllocClass::Unknown => ("unknown", "could not be decided"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(thousands(1), "1");
        assert_eq!(thousands(1234567), "1,234,567");
        assert_eq!(count(1, "finding"), "1 finding");
        assert_eq!(count(2000, "finding"), "2,000 findings");
        assert_eq!(duration(999), "999 µs");
        assert_eq!(duration(12_345), "12.3 ms");
        assert_eq!(duration(4_560_000), "4.56 s");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc\u{202e}"), "a\u{fffd}[31mb c\u{fffd}");
    }
}
