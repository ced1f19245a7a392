//! What this process has learned, for the next program that is almost the same.
//!
//! Repair analyses one program after another that differ in a few lines. What lies on the shelf is taken over as it is,
//! without being read or copied: the time goes into the functions that changed, and their callers if those see it.
//!
//! ```text
//! program 1   f g h    three records
//! program 2   f' g h   f' is new; g asked for the summary of f and gets another one, so it is new as well
//! program 3   f g h    all three are there: f and g have two records each
//! ```
//!
//! # Invariants
//! - A shelf serves one set of models and limits.
//! - A record counts under the same conditions as one on disk: the bodies, and every answer.
//! - Ids in a record are those of its numbering; under another one a copy is made.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use caulk_base::{ContentHash, FxHashMap, FxHashSet, IdVec};
use caulk_ir::{FuncId, GlobalId, Program, UnitId};

use super::identity::Identities;
use super::record;
use crate::asked::Question;
use crate::learned::Learned;

/// Programs after which a record that none of them used is forgotten.
const REMEMBERED: u64 = 24;

/// Records of the programs so far.
#[derive(Default)]
pub struct Shelf {
    records: RwLock<FxHashMap<ContentHash, Vec<Arc<Version>>>>,
    last: Mutex<Option<Last>>,
    programs: AtomicU64,
    /// Functions that are looked at more closely from now on, by their names.
    close: Mutex<FxHashSet<ContentHash>>,
}

/// One of the results for a recursion: it depends on the answers.
pub(super) struct Version {
    pub ids: Arc<Identities>,
    pub members: Vec<Member>,
    used: AtomicU64,
}

pub(super) struct Member {
    pub asked: Vec<(Question, ContentHash)>,
    pub learned: Arc<Learned>,
    /// Of the summary.
    pub hash: ContentHash,
}

/// The last program, and what was hashed of it.
#[derive(Clone)]
pub struct Last {
    pub program: Arc<Program>,
    pub ids: Arc<Identities>,
    pub contents: IdVec<FuncId, ContentHash>,
    /// Of the summaries.
    pub hashes: IdVec<FuncId, ContentHash>,
    pub initials: IdVec<GlobalId, OnceLock<ContentHash>>,
}

impl Last {
    /// Is everything that is said of the unit's functions and globals the same?
    pub fn has_unit(&self, ids: &Arc<Identities>, program: &Program, unit: UnitId) -> bool {
        Arc::ptr_eq(ids, &self.ids)
            && Arc::ptr_eq(&program.units[unit], &self.program.units[unit])
            && program.targets[unit] == self.program.targets[unit]
    }
}

impl Version {
    pub fn new(ids: &Arc<Identities>, members: Vec<Member>) -> Arc<Self> {
        Arc::new(Self { ids: Arc::clone(ids), members, used: AtomicU64::new(0) })
    }

    /// The same in the numbers of another program, if it has all that is named here.
    fn renumbered(&self, ids: &Arc<Identities>) -> Option<Arc<Self>> {
        let member = |member: &Member| {
            let (learned, asked) = record::renumbered(&self.ids, ids, &member.learned, &member.asked)?;
            Some(Member { asked, learned: Arc::new(learned), hash: member.hash })
        };
        Some(Version::new(ids, self.members.iter().map(member).collect::<Option<_>>()?))
    }
}

impl Shelf {
    /// These functions of the last program, and no others, are worth more work in all programs to come.
    pub fn look_closer(&self, functions: impl IntoIterator<Item = FuncId>) {
        let Some(last) = self.last() else { return };
        let mut close = self.close.lock().unwrap_or_else(PoisonError::into_inner);
        close.clear();
        close.extend(functions.into_iter().filter_map(|id| last.ids.functions.get(id)).copied());
    }

    /// Those that are worth it, in the numbers of a program.
    pub(super) fn close(&self, ids: &Identities) -> BTreeSet<FuncId> {
        let close = self.close.lock().unwrap_or_else(PoisonError::into_inner);
        if close.is_empty() {
            return BTreeSet::new();
        }
        ids.functions.iter_ids().filter(|(_, name)| close.contains(name)).map(|(id, _)| id).collect()
    }

    pub(crate) fn last(&self) -> Option<Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What lies under a key and is confirmed by `holds`.
    pub(super) fn find(
        &self,
        ids: &Arc<Identities>,
        key: ContentHash,
        holds: impl Fn(&Version) -> bool,
    ) -> Option<Arc<Version>> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        let versions = records.get(&key)?;
        let (same, other): (Vec<_>, Vec<_>) = versions.iter().rev().partition(|one| Arc::ptr_eq(&one.ids, ids));
        if let Some(found) = same.into_iter().find(|one| holds(one)) {
            found.used.store(self.programs.load(Relaxed), Relaxed);
            return Some(Arc::clone(found));
        }
        let found = other.into_iter().filter_map(|one| one.renumbered(ids)).find(|one| holds(one))?;
        drop(records);
        self.put(key, Arc::clone(&found));
        Some(found)
    }

    pub(super) fn put(&self, key: ContentHash, version: Arc<Version>) {
        version.used.store(self.programs.load(Relaxed), Relaxed);
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records.entry(key).or_default().push(version);
    }

    /// Ends the analysis of a program.
    pub(super) fn turn(&self, last: Last) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        let now = self.programs.fetch_add(1, Relaxed) + 1;
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records.retain(|_, versions| {
            versions.retain(|version| version.used.load(Relaxed) + REMEMBERED >= now);
            !versions.is_empty()
        });
    }
}
