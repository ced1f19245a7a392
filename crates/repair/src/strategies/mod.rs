//! Ways to repair, from the most natural to the least. Each proposes; the proof decides.

mod conditional;
mod double_free;
mod exits;
mod label;
mod mismatch;
mod overwrite;
mod scope_end;
mod unnamed;
mod use_after_free;

use std::path::PathBuf;

use caulk_findings::Rule;
use caulk_source::{EditSet, Refusal, StmtId, StmtKind};

use crate::change::Candidate;
use crate::release;
use crate::survey::Survey;
use crate::target::Target;
use crate::workshop::Workshop;

/// More candidates than this cost more time than they are worth.
const MAX_CANDIDATES: usize = 24;

/// What a strategy may look at.
pub struct Bench<'a> {
    pub target: &'a Target<'a>,
    pub survey: &'a Survey,
    pub workshop: &'a dyn Workshop,
    pub patched: &'a [(PathBuf, Vec<u8>)],
}

/// Candidates, or reasons why an edit could not be made.
#[derive(Default)]
pub struct Proposals {
    pub candidates: Vec<Candidate>,
    pub refusals: Vec<String>,
}

impl Proposals {
    pub fn add(&mut self, made: Result<EditSet, Refusal>, candidate: impl FnOnce(EditSet) -> Candidate) {
        match made {
            Ok(edits) if !edits.is_empty() => {
                let candidate = candidate(edits);
                if self.candidates.iter().all(|other| other.edits != candidate.edits || other.file != candidate.file) {
                    self.candidates.push(candidate);
                }
            }
            Ok(_) => {}
            Err(refusal) => self.refusals.push(refusal.to_string()),
        }
    }
}

pub fn propose(bench: &Bench<'_>) -> Proposals {
    let mut all = Proposals::default();
    match bench.target.finding.rule {
        Rule::MemoryLeak | Rule::ResourceLeak => {
            label::propose(bench, &mut all);
            exits::propose(bench, &mut all);
            overwrite::propose(bench, &mut all);
            conditional::propose(bench, &mut all);
            scope_end::propose(bench, &mut all);
            unnamed::propose(bench, &mut all);
        }
        Rule::DoubleFree => double_free::propose(bench, &mut all),
        Rule::UseAfterFree => use_after_free::propose(bench, &mut all),
        Rule::MismatchedRelease => mismatch::propose(bench, &mut all),
        Rule::InvalidFree | Rule::LeakAtExit => {}
    }
    all.candidates.truncate(MAX_CANDIDATES);
    all
}

impl Bench<'_> {
    /// Expressions that may hold the block at `offset`, each with the calls that would release it.
    fn releases_at(&self, offset: usize) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for holder in self.target.holders() {
            if self.target.reaches(&holder, offset) {
                for call in release::calls(self.target, self.survey, &holder, offset) {
                    found.push((holder.clone(), call));
                }
            }
        }
        found.truncate(6);
        found
    }

    /// Whether control leaves the statement's block there.
    fn is_jump(&self, stmt: StmtId) -> bool {
        matches!(
            self.target.function.stmt(stmt).kind,
            StmtKind::Return { .. } | StmtKind::Goto { .. } | StmtKind::Break | StmtKind::Continue
        )
    }
}
