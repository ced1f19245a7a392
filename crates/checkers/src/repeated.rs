//! Leaks that tell nothing new.
//!
//! Where the ways through a function could not be told apart, a block that is lost at one exit seems to be lost at every
//! exit behind it. One such finding is enough, and none where the same block is lost for sure.
//!
//! # Invariants
//! - Only for telling people: proofs compare all findings, or a patch of the one would seem to bring the next.

use caulk_base::FxHashSet;
use caulk_findings::{Finding, Fingerprint};

/// Why a finding is not certain where the ways through its function could not be told apart.
pub(crate) const UNCONFIRMED: &str =
    "the function has too many paths: none of those recorded could be followed alone to the end";

/// Findings that need not be told, by fingerprint.
pub fn repeated(findings: &[Finding]) -> FxHashSet<&Fingerprint> {
    let leaks = findings.iter().filter(|finding| finding.rule.is_leak());
    let (unsure, sure): (Vec<&Finding>, Vec<&Finding>) =
        leaks.partition(|finding| finding.doubts.iter().any(|doubt| doubt == UNCONFIRMED));
    let mut told: FxHashSet<_> = sure.iter().map(|finding| (&finding.source, &finding.object)).collect();
    let repeats = unsure.into_iter().filter(|finding| !told.insert((&finding.source, &finding.object)));
    repeats.map(|finding| &finding.fingerprint).collect()
}

#[cfg(test)]
mod tests {
    use caulk_findings::{Confidence, Place, Rule};

    use super::*;

    fn leak(name: &str, source: u32, sink: u32, doubts: &[&str]) -> Finding {
        Finding {
            rule: Rule::MemoryLeak,
            confidence: Confidence::Medium,
            doubts: doubts.iter().map(|doubt| (*doubt).to_owned()).collect(),
            message: String::new(),
            object: "`p`".into(),
            family: "memory".into(),
            release: "free".into(),
            source: Place { line: source, ..Place::default() },
            sink: Place { line: sink, ..Place::default() },
            steps: Vec::new(),
            assumptions: Vec::new(),
            fingerprint: Fingerprint(name.to_owned()),
            graph: None,
            at_exit: None,
        }
    }

    #[test]
    fn one_unsure_loss_of_a_block_is_enough_and_none_beside_a_sure_one() {
        let all = [
            leak("first", 3, 5, &[UNCONFIRMED]),
            leak("again", 3, 9, &[UNCONFIRMED]),
            leak("another block", 4, 9, &[UNCONFIRMED]),
            leak("sure", 20, 21, &[]),
            leak("sure, and elsewhere", 20, 23, &["another doubt"]),
            leak("beside the sure one", 20, 22, &[UNCONFIRMED]),
        ];
        let repeats = repeated(&all);
        let names: Vec<&str> =
            all.iter().filter(|one| repeats.contains(&one.fingerprint)).map(|one| one.fingerprint.0.as_str()).collect();
        assert_eq!(names, ["again", "beside the sure one"]);
    }
}
