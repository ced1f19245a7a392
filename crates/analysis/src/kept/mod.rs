//! Results of earlier runs, so that an edit re-analyses only what can change.
//!
//! ```text
//! key     the bodies of a recursion's functions, every name in them resolved
//! record  what was asked of the rest of the program, with the answers; summaries, incidents and the rest
//! pack    the records of one unit, one file
//! ```
//!
//! A record counts if its key is there and every question gets the answer it got then; one of the answers is the hash
//! of a callee's summary. So an edited function is analysed again, and if its summary comes out as it was, nobody else.
//!
//! # Invariants
//! - The result is the same with and without, whatever lies in the folder.
//! - Nothing of another version, other models or other limits is read: packs go by a name made of them all.

mod identity;
mod record;
mod shelf;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use caulk_base::{ContentHash, FxHashMap, Hasher, IdVec, Store};
use caulk_ir::{FuncId, GlobalId, Program, UnitId};
use caulk_models::{FunctionModel, Models};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use self::identity::Identities;
use self::record::Record;
pub use self::shelf::Shelf;
use self::shelf::{Last, Member, Version};
use crate::asked::Question;
use crate::engine::{Analysed, Limits};
use crate::glance::Basis;
use crate::learned::Learned;
use crate::whole::Knowledge;

const AREA: &str = "summaries";
const ENDING: &str = "pack";

/// The records of one unit by their keys, each as the bytes it was read from: most are only looked at, and written
/// back as they are.
#[derive(Default, Serialize, Deserialize)]
struct Pack(Vec<(ContentHash, Bytes)>);

/// Postcard would take a vector of bytes apart one by one.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}

/// What earlier runs left, and what this one will leave.
pub struct Kept<'a> {
    store: &'a Store,
    shelf: Option<&'a Shelf>,
    /// Nothing of the store is needed: what it had is on the shelf.
    on_shelf: bool,
    base: ContentHash,
    ids: Arc<Identities>,
    contents: IdVec<FuncId, ContentHash>,
    /// Of the initial contents of globals that were asked for.
    initials: IdVec<GlobalId, OnceLock<ContentHash>>,
    hashes: IdVec<FuncId, OnceLock<ContentHash>>,
    found: IdVec<UnitId, FxHashMap<ContentHash, Bytes>>,
    used: IdVec<UnitId, Mutex<Used>>,
    /// Functions that are looked at more closely: what others have found out about them is not enough.
    pub close: Arc<BTreeSet<FuncId>>,
}

/// The records of a unit that this run used or made.
#[derive(Default)]
struct Used {
    records: Vec<(ContentHash, Bytes)>,
    /// Not all of them lay there already.
    changed: bool,
}

impl<'a> Kept<'a> {
    /// With a shelf, what it has comes first, and what is found out goes there, too; the store is for its first program.
    pub fn open(
        store: &'a Store,
        shelf: Option<&'a Shelf>,
        program: &Program,
        models: &Models,
        limits: Limits,
    ) -> Self {
        let last = shelf.and_then(Shelf::last);
        let ids = match &last {
            Some(last) if last.ids.fit(&last.program, program) => Arc::clone(&last.ids),
            _ => Arc::new(Identities::of(program)),
        };
        let functions: Vec<FuncId> = program.functions.ids().collect();
        let units: Vec<UnitId> = program.units.ids().collect();
        let on_shelf = last.is_some();
        let base = if on_shelf { ContentHash::default() } else { base(models, limits) };
        let found: Vec<_> = match on_shelf {
            true => units.iter().map(|_| FxHashMap::default()).collect(),
            false => units
                .par_iter()
                .map(|&unit| {
                    let pack: Pack = store.read(AREA, pack_key(base, &ids, unit), ENDING).unwrap_or_default();
                    pack.0.into_iter().collect()
                })
                .collect(),
        };
        let same: IdVec<UnitId, bool> =
            units.iter().map(|&unit| last.as_ref().is_some_and(|last| last.has_unit(&ids, program, unit))).collect();
        let same = |unit: UnitId| last.as_ref().filter(|_| same[unit]);
        let content = |&id: &FuncId| match same(program.unit_of(id)) {
            Some(last) => last.contents[id],
            None => ids.content(program, id),
        };
        let contents: Vec<ContentHash> = functions.par_iter().map(content).collect();
        let initial = |(id, &(unit, _)): (GlobalId, &(UnitId, _))| match same(unit) {
            Some(last) => last.initials[id].clone(),
            None => OnceLock::new(),
        };
        let initials = program.globals.iter_ids().map(initial).collect();
        Self {
            store,
            shelf,
            on_shelf,
            base,
            contents: IdVec::from(contents),
            initials,
            hashes: functions.iter().map(|_| OnceLock::new()).collect(),
            found: IdVec::from(found),
            used: units.iter().map(|_| Mutex::default()).collect(),
            close: Arc::new(shelf.map(|shelf| shelf.close(&ids)).unwrap_or_default()),
            ids,
        }
    }

    /// For one function of a program that is otherwise the basis.
    pub fn beside(store: &'a Store, shelf: &'a Shelf, basis: &Basis, (id, content): (FuncId, ContentHash)) -> Self {
        let mut contents = basis.contents.clone();
        contents[id] = content;
        let known = |(other, hash): (FuncId, &ContentHash)| match other == id {
            true => OnceLock::new(),
            false => OnceLock::from(*hash),
        };
        Self {
            store,
            shelf: Some(shelf),
            on_shelf: true,
            base: ContentHash::default(),
            ids: Arc::clone(&basis.ids),
            contents,
            initials: basis.program.globals.iter().map(|_| OnceLock::new()).collect(),
            hashes: basis.hashes.iter_ids().map(known).collect(),
            found: basis.program.units.iter().map(|_| FxHashMap::default()).collect(),
            used: basis.program.units.iter().map(|_| Mutex::default()).collect(),
            close: Arc::clone(&basis.common.close),
        }
    }

    /// What an earlier run found out about these functions, if it still holds.
    pub fn find(&self, knowledge: &Knowledge<'_>, members: &[FuncId]) -> Option<Vec<(FuncId, Arc<Learned>)>> {
        let unit = knowledge.program.unit_of(*members.first()?);
        let key = self.key(members);
        let answer = |by: FuncId, question: Question| self.answer(knowledge, by, question);
        if let Some(shelf) = self.shelf {
            let same = |version: &Version| {
                let told = |(&id, member): (&FuncId, &Member)| {
                    member.asked.iter().all(|(question, answered)| answer(id, *question) == *answered)
                };
                version.members.len() == members.len() && members.iter().zip(&version.members).all(told)
            };
            if let Some(version) = shelf.find(&self.ids, key, same) {
                let taken = members.iter().zip(&version.members).map(|(&id, member)| {
                    let _ = self.hashes[id].set(member.hash);
                    (id, Arc::clone(&member.learned))
                });
                return Some(taken.collect());
            }
        }
        let bytes = self.found[unit].get(&key)?;
        let record: Record = postcard::from_bytes(&bytes.0).ok()?;
        let revived = record.revive(&self.ids, members, answer)?;
        self.use_record(unit, key, bytes.clone(), false);
        let mut results = Vec::with_capacity(revived.len());
        for (id, analysed, hash) in revived {
            let _ = self.hashes[id].set(hash);
            results.push((id, analysed));
        }
        Some(self.shelve(knowledge, key, results))
    }

    /// Keeps what was found out about these functions, all of one recursion.
    pub fn keep(&self, knowledge: &Knowledge<'_>, members: Vec<(FuncId, Analysed)>) -> Vec<(FuncId, Arc<Learned>)> {
        for (id, analysed) in &members {
            let hash = record::hash(knowledge.program, &self.ids, *id, &analysed.summary);
            let _ = self.hashes[*id].set(hash);
        }
        let ids: Vec<FuncId> = members.iter().map(|(id, _)| *id).collect();
        let key = self.key(&ids);
        if let Some(&first) = ids.first()
            && !self.on_shelf
            && members.iter().all(|(_, analysed)| analysed.asked.is_some())
        {
            let hash = |id: FuncId| self.hash(id);
            let record = Record::of(&self.ids, &members, hash, |by, question| self.answer(knowledge, by, question));
            if let Ok(bytes) = postcard::to_extend(&record, Vec::new()) {
                self.use_record(knowledge.program.unit_of(first), key, Bytes(bytes), true);
            }
        }
        self.shelve(knowledge, key, members)
    }

    /// Puts what is known of a recursion where it can be shared.
    fn shelve(
        &self,
        knowledge: &Knowledge<'_>,
        key: ContentHash,
        members: Vec<(FuncId, Analysed)>,
    ) -> Vec<(FuncId, Arc<Learned>)> {
        let answered = |id: FuncId, analysed: &Analysed| {
            let asked = record::of_others(analysed, &members);
            analysed.asked.as_ref()?;
            Some(asked.map(|question| (question, self.answer(knowledge, id, question))).collect())
        };
        let shelf = self.shelf.filter(|_| !members.is_empty());
        let asked: Option<Vec<record::Answered>> =
            shelf.and_then(|_| members.iter().map(|(id, analysed)| answered(*id, analysed)).collect());
        let learned: Vec<(FuncId, Arc<Learned>)> =
            members.into_iter().map(|(id, analysed)| (id, Arc::new(Learned::from(analysed)))).collect();
        if let (Some(shelf), Some(asked)) = (shelf, asked) {
            let member = |((id, learned), asked): (&(FuncId, Arc<Learned>), record::Answered)| Member {
                asked,
                learned: Arc::clone(learned),
                hash: self.hash(*id),
            };
            shelf.put(key, Version::new(&self.ids, learned.iter().zip(asked).map(member).collect()));
        }
        learned
    }

    /// Ends the run. `program` is the one that was analysed, for the shelf.
    pub fn close(mut self, program: Option<&Arc<Program>>) {
        if let (Some(shelf), Some(program)) = (self.shelf, program) {
            shelf.turn(Last {
                program: Arc::clone(program),
                ids: Arc::clone(&self.ids),
                contents: std::mem::take(&mut self.contents),
                hashes: program.functions.ids().map(|id| self.hash(id)).collect(),
                initials: std::mem::take(&mut self.initials),
            });
        }
        if !self.on_shelf {
            self.write();
        }
    }

    /// Writes what has changed.
    fn write(self) {
        let units: Vec<(UnitId, Used)> = self
            .used
            .into_vec()
            .into_iter()
            .enumerate()
            .map(|(at, used)| (UnitId(at as u32), used.into_inner().unwrap_or_else(PoisonError::into_inner)))
            .collect();
        units.into_par_iter().for_each(|(unit, mut used)| {
            if used.changed || used.records.len() != self.found[unit].len() {
                used.records.sort_by_key(|record| record.0);
                // What cannot be written is among the gaps of the store.
                let _ = self.store.write(AREA, pack_key(self.base, &self.ids, unit), ENDING, &Pack(used.records));
            }
        });
    }

    fn use_record(&self, unit: UnitId, key: ContentHash, bytes: Bytes, new: bool) {
        let mut used = self.used[unit].lock().unwrap_or_else(PoisonError::into_inner);
        used.changed |= new;
        used.records.push((key, bytes));
    }

    fn key(&self, members: &[FuncId]) -> ContentHash {
        let mut out = Hasher::new();
        for &id in members {
            out.raw(&self.ids.functions[id].0).raw(&self.contents[id].0);
            if self.close.contains(&id) {
                out.field("closer");
            }
        }
        out.finish()
    }

    /// Of a function that has been summarised; of any other, a hash that no summary has.
    fn hash(&self, id: FuncId) -> ContentHash {
        self.hashes[id].get().copied().unwrap_or_default()
    }

    fn answer(&self, knowledge: &Knowledge<'_>, by: FuncId, question: Question) -> ContentHash {
        let yes_or_no = |yes: bool| ContentHash([u8::from(yes); 16]);
        match question {
            Question::Summary(id) => self.hash(id),
            Question::Constant(id) => ContentHash([knowledge.constancy(id) as u8; 16]),
            Question::Hook(id) => yes_or_no(knowledge.is_hook(id)),
            Question::Initial(id) => *self.initials[id].get_or_init(|| self.ids.initial(knowledge.program, id)),
            Question::Never(id) => yes_or_no(knowledge.never[id]),
            Question::Earlier(id) => yes_or_no(knowledge.is_earlier(id, by)),
            Question::Variadic(id) => yes_or_no(knowledge.keeps_variadic(id)),
            Question::Flow(id) => ContentHash::of(&knowledge.kept_parameters(id).to_le_bytes()),
            Question::Passing(id) => yes_or_no(knowledge.only_passes(id, by)),
            Question::Apart(callee, id) => yes_or_no(knowledge.leaves_alone(callee, id)),
            Question::First(id) => yes_or_no(knowledge.comes_first(id, by)),
            Question::Null(inst) => yes_or_no(knowledge.graph.nulls.contains(&(by, inst))),
            Question::Indirect(inst) => match knowledge.indirect(by, inst) {
                None => yes_or_no(false),
                Some(targets) => {
                    let mut out = Hasher::new();
                    out.raw(&[u8::from(targets.guessed)]);
                    targets.functions.iter().for_each(|&id| _ = out.raw(&self.ids.functions[id].0));
                    targets.library.iter().for_each(|&id| _ = out.field(&knowledge.program.externs[id]));
                    out.finish()
                }
            },
        }
    }
}

fn pack_key(base: ContentHash, ids: &Identities, unit: UnitId) -> ContentHash {
    Hasher::new().raw(&base.0).raw(&ids.units[unit].0).finish()
}

/// Everything beside the program that changes what a function's analysis comes to.
fn base(models: &Models, limits: Limits) -> ContentHash {
    let mut out = Hasher::new();
    out.field(env!("CAULK_ANALYSIS_FINGERPRINT")).field(format!("{limits:?}"));
    for family in models.families.iter() {
        out.field(format!("{family:?}"));
    }
    // The libraries' models are part of the version: reading all of them takes longer than many a program.
    out.number(u64::from(models.has_libraries()));
    for model in models.added() {
        let FunctionModel { name, effects, needs, keeps_nothing, protection, course, returns, origin } = model;
        let user = origin.is_user();
        out.field(format!("{name} {effects:?} {needs:?} {keeps_nothing} {protection:?} {course:?} {returns:?} {user}"));
    }
    out.finish()
}
