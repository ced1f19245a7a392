//! The results of one recursion (mostly: of one function) as they are kept, and back.
//!
//! Inside, ids of functions, globals and externs are positions in the record's own list of identities.

use std::sync::Arc;

use caulk_base::{ContentHash, FxHashMap, Hasher, Id};
use caulk_ir::{ExternId, FuncId, GlobalId, InstId, Program};
use serde::{Deserialize, Serialize};

use super::identity::{Identities, Meaning};
use crate::asked::Question;
use crate::engine::Analysed;
use crate::incident::{Incident, ReleaseFact, Suspicion};
use crate::learned::Learned;
use crate::object::Object;
use crate::summary::{SiteFact, Summary};
use crate::term::Term;

/// What is kept of one recursion.
#[derive(Default, Serialize, Deserialize)]
pub struct Record {
    names: Vec<ContentHash>,
    members: Vec<Member>,
}

#[derive(Serialize, Deserialize)]
struct Member {
    /// Every question with the answer it got.
    asked: Vec<(Asked, ContentHash)>,
    hash: ContentHash,
    summary: Summary,
    incidents: Vec<Incident>,
    sites: Vec<SiteFact>,
    releases: Vec<ReleaseFact>,
    suspicions: Vec<Suspicion>,
    degraded: bool,
}

/// A [`Question`], with positions for ids.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Asked {
    Summary(u32),
    Constant(u32),
    Initial(u32),
    Hook(u32),
    Never(u32),
    Earlier(u32),
    Variadic(u32),
    Flow(u32),
    Passing(u32),
    First(u32),
    Apart(u32, u32),
    Null(u32),
    Indirect(u32),
}

/// Puts positions for ids.
struct Names<'a> {
    ids: &'a Identities,
    names: Vec<ContentHash>,
    places: FxHashMap<ContentHash, u32>,
}

impl<'a> Names<'a> {
    fn new(ids: &'a Identities) -> Self {
        Self { ids, names: Vec::new(), places: FxHashMap::default() }
    }

    fn place(&mut self, name: ContentHash) -> u32 {
        let next = self.names.len() as u32;
        let at = *self.places.entry(name).or_insert(next);
        if at == next {
            self.names.push(name);
        }
        at
    }
}

/// Replaces one id by another; `false` where that cannot be.
trait Replace {
    fn function(&mut self, id: &mut FuncId) -> bool;
    fn global(&mut self, id: &mut GlobalId) -> bool;
    fn external(&mut self, id: &mut ExternId) -> bool;
}

impl Replace for Names<'_> {
    fn function(&mut self, id: &mut FuncId) -> bool {
        *id = FuncId(self.place(self.ids.functions[*id]));
        true
    }
    fn global(&mut self, id: &mut GlobalId) -> bool {
        *id = GlobalId(self.place(self.ids.globals[*id]));
        true
    }
    fn external(&mut self, id: &mut ExternId) -> bool {
        *id = ExternId(self.place(self.ids.externs[*id]));
        true
    }
}

/// What each position means in this program; nothing where the name is gone.
struct Meanings(Vec<Option<Meaning>>);

impl Meanings {
    fn at(&self, place: u32) -> Option<Meaning> {
        self.0.get(place as usize).copied().flatten()
    }
}

impl Replace for Meanings {
    fn function(&mut self, id: &mut FuncId) -> bool {
        let Some(Meaning::Function(found)) = self.at(id.0) else { return false };
        *id = found;
        true
    }
    fn global(&mut self, id: &mut GlobalId) -> bool {
        let Some(Meaning::Global(found)) = self.at(id.0) else { return false };
        *id = found;
        true
    }
    fn external(&mut self, id: &mut ExternId) -> bool {
        let Some(Meaning::Extern(found)) = self.at(id.0) else { return false };
        *id = found;
        true
    }
}

/// Puts the ids of one program for those of another.
struct Renumber<'a> {
    old: &'a Identities,
    new: &'a Identities,
}

impl Replace for Renumber<'_> {
    fn function(&mut self, id: &mut FuncId) -> bool {
        let Some(Meaning::Function(found)) = self.new.meaning(self.old.functions[*id]) else { return false };
        *id = found;
        true
    }
    fn global(&mut self, id: &mut GlobalId) -> bool {
        let Some(Meaning::Global(found)) = self.new.meaning(self.old.globals[*id]) else { return false };
        *id = found;
        true
    }
    fn external(&mut self, id: &mut ExternId) -> bool {
        let Some(Meaning::Extern(found)) = self.new.meaning(self.old.externs[*id]) else { return false };
        *id = found;
        true
    }
}

/// Questions with the answers they got.
pub type Answered = Vec<(Question, ContentHash)>;

/// What was learned in one program, in the ids of another; nothing if something is not there.
pub fn renumbered(
    old: &Identities,
    new: &Identities,
    learned: &Learned,
    asked: &[(Question, ContentHash)],
) -> Option<(Learned, Answered)> {
    let mut by = Renumber { old, new };
    let mut asked = asked.to_vec();
    let mut whole = asked.iter_mut().all(|(question, _)| match question {
        Question::Summary(id) | Question::Never(id) | Question::Earlier(id) => by.function(id),
        Question::Variadic(id) | Question::Flow(id) => by.function(id),
        Question::Constant(id) | Question::Initial(id) | Question::Hook(id) | Question::Passing(id) => by.global(id),
        Question::First(id) => by.global(id),
        Question::Apart(callee, id) => by.function(callee) && by.global(id),
        Question::Null(_) | Question::Indirect(_) => true,
    });
    let mut summary = (*learned.summary).clone();
    whole &= replace_summary(&mut summary, &mut by);
    let mut incidents: Vec<Incident> = learned.incidents.iter().map(|incident| (**incident).clone()).collect();
    for incident in &mut incidents {
        whole &= by.function(&mut incident.function);
        whole &= incident.conditions.iter_mut().all(|condition| replace_terms(&mut condition.terms, &mut by));
    }
    let mut suspicions = learned.suspicions.clone();
    whole &= suspicions.iter_mut().all(|suspicion| by.function(&mut suspicion.function));
    let learned = Learned {
        summary: Arc::new(summary),
        incidents: incidents.into_iter().map(Arc::new).collect(),
        sites: learned.sites.clone(),
        releases: learned.releases.clone(),
        suspicions,
        degraded: learned.degraded,
    };
    whole.then_some((learned, asked))
}

// Without a wildcard: whoever adds a term or an object with an id in it must come by here.
fn replace_terms(terms: &mut [Term], by: &mut impl Replace) -> bool {
    terms.iter_mut().all(|term| match term {
        Term::Func(id) => by.function(id),
        Term::Int(_)
        | Term::Param(_)
        | Term::Content { .. }
        | Term::Addr { .. }
        | Term::Elem { .. }
        | Term::Sym { .. }
        | Term::Pure(_)
        | Term::Bin(..)
        | Term::Cmp(..)
        | Term::Cast(..)
        | Term::Ite(..) => true,
    })
}

fn replace_summary(summary: &mut Summary, by: &mut impl Replace) -> bool {
    let objects = summary.objects.iter_mut().all(|object| match object {
        Object::Global(id) => by.global(id),
        Object::External(id) => by.external(id),
        Object::Code(id) => by.function(id),
        Object::Stack(_) | Object::Deref(_) | Object::Heap { .. } => true,
    });
    objects && replace_terms(&mut summary.terms, by)
}

/// Callers put their own call in the place of every instruction of the callee, so that an edit which only renumbers
/// those must not reach them.
fn forget_instructions(summary: &mut Summary) {
    for term in &mut summary.terms {
        match term {
            Term::Sym { site, slot } => (*site, *slot) = (0, 0),
            Term::Content { epoch, .. } => *epoch = (*epoch).min(1),
            Term::Pure(call) => (call.callee, call.version) = (0, 0),
            _ => {}
        }
    }
    for object in &mut summary.objects {
        match object {
            Object::Stack(inst) => *inst = InstId(0),
            Object::Heap { site, sub, .. } => (*site, *sub) = (InstId(0), 0),
            _ => {}
        }
    }
    for (_, known) in summary.outcomes.iter_mut().flat_map(|outcome| &mut outcome.objs) {
        for inst in [&mut known.freed_at, &mut known.lost_at, &mut known.touched].into_iter().flatten() {
            *inst = InstId(0);
        }
    }
}

/// What callers see of a function, under one number.
pub fn hash(program: &Program, ids: &Identities, id: FuncId, summary: &Summary) -> ContentHash {
    let mut names = Names::new(ids);
    let mut summary = summary.clone();
    replace_summary(&mut summary, &mut names);
    forget_instructions(&mut summary);
    let bytes = postcard::to_extend(&summary, Vec::new()).unwrap_or_default();
    let mut out = Hasher::new();
    out.number(u64::from(program.function(id).param_count)).field(bytes);
    names.names.iter().for_each(|name| _ = out.raw(&name.0));
    out.finish()
}

/// The questions of one of the members that are not about another one.
pub fn of_others(analysed: &Analysed, members: &[(FuncId, Analysed)]) -> impl Iterator<Item = Question> {
    let own = |of: FuncId| members.iter().any(|(id, _)| *id == of);
    let asked = analysed.asked.iter().flatten().copied();
    asked.filter(move |question| !matches!(question, Question::Summary(of) if own(*of)))
}

impl Record {
    /// `asked` are the questions of all rounds with their answers; those about the members themselves are left out.
    pub fn of(
        ids: &Identities,
        members: &[(FuncId, Analysed)],
        hash: impl Fn(FuncId) -> ContentHash,
        answer: impl Fn(FuncId, Question) -> ContentHash,
    ) -> Record {
        let mut names = Names::new(ids);
        let kept = members.iter().map(|(id, analysed)| {
            let mut summary = analysed.summary.clone();
            replace_summary(&mut summary, &mut names);
            let mut incidents = analysed.incidents.clone();
            for incident in &mut incidents {
                names.function(&mut incident.function);
                for condition in &mut incident.conditions {
                    replace_terms(&mut condition.terms, &mut names);
                }
            }
            let mut suspicions = analysed.suspicions.clone();
            suspicions.iter_mut().for_each(|suspicion| _ = names.function(&mut suspicion.function));
            let asked = of_others(analysed, members)
                .map(|question| (stored(question, &mut names), answer(*id, question)))
                .collect();
            Member {
                asked,
                hash: hash(*id),
                summary,
                incidents,
                sites: analysed.sites.clone(),
                releases: analysed.releases.clone(),
                suspicions,
                degraded: analysed.degraded,
            }
        });
        let members = kept.collect();
        Record { names: names.names, members }
    }

    /// The results for the members, with the hashes of their summaries, if every question gets the answer it got then.
    pub fn revive(
        self,
        ids: &Identities,
        members: &[FuncId],
        answer: impl Fn(FuncId, Question) -> ContentHash,
    ) -> Option<Vec<(FuncId, Analysed, ContentHash)>> {
        let mut meanings = Meanings(self.names.iter().map(|&name| ids.meaning(name)).collect());
        if self.members.len() != members.len() {
            return None;
        }
        let mut revived = Vec::with_capacity(members.len());
        for (mut member, &id) in self.members.into_iter().zip(members) {
            let mut asked = Vec::with_capacity(member.asked.len());
            for (question, answered) in member.asked {
                let question = asked_again(question, &meanings)?;
                if answer(id, question) != answered {
                    return None;
                }
                asked.push(question);
            }
            let mut whole = replace_summary(&mut member.summary, &mut meanings);
            for incident in &mut member.incidents {
                whole &= meanings.function(&mut incident.function);
                whole &=
                    incident.conditions.iter_mut().all(|condition| replace_terms(&mut condition.terms, &mut meanings));
            }
            whole &= member.suspicions.iter_mut().all(|suspicion| meanings.function(&mut suspicion.function));
            if !whole {
                return None;
            }
            let analysed = Analysed {
                summary: member.summary,
                incidents: member.incidents,
                sites: member.sites,
                releases: member.releases,
                suspicions: member.suspicions,
                degraded: member.degraded,
                asked: Some(asked),
            };
            revived.push((id, analysed, member.hash));
        }
        Some(revived)
    }
}

fn stored(question: Question, names: &mut Names<'_>) -> Asked {
    let ids = names.ids;
    match question {
        Question::Summary(id) => Asked::Summary(names.place(ids.functions[id])),
        Question::Constant(id) => Asked::Constant(names.place(ids.globals[id])),
        Question::Initial(id) => Asked::Initial(names.place(ids.globals[id])),
        Question::Hook(id) => Asked::Hook(names.place(ids.globals[id])),
        Question::Never(id) => Asked::Never(names.place(ids.functions[id])),
        Question::Earlier(id) => Asked::Earlier(names.place(ids.functions[id])),
        Question::Variadic(id) => Asked::Variadic(names.place(ids.functions[id])),
        Question::Flow(id) => Asked::Flow(names.place(ids.functions[id])),
        Question::Passing(id) => Asked::Passing(names.place(ids.globals[id])),
        Question::First(id) => Asked::First(names.place(ids.globals[id])),
        Question::Apart(callee, id) => {
            let callee = names.place(ids.functions[callee]);
            Asked::Apart(callee, names.place(ids.globals[id]))
        }
        Question::Null(inst) => Asked::Null(inst.0),
        Question::Indirect(inst) => Asked::Indirect(inst.0),
    }
}

fn asked_again(question: Asked, meanings: &Meanings) -> Option<Question> {
    let function = |at: u32| match meanings.at(at)? {
        Meaning::Function(id) => Some(id),
        _ => None,
    };
    let global = |at: u32| match meanings.at(at)? {
        Meaning::Global(id) => Some(id),
        _ => None,
    };
    Some(match question {
        Asked::Summary(at) => Question::Summary(function(at)?),
        Asked::Constant(at) => Question::Constant(global(at)?),
        Asked::Initial(at) => Question::Initial(global(at)?),
        Asked::Hook(at) => Question::Hook(global(at)?),
        Asked::Never(at) => Question::Never(function(at)?),
        Asked::Earlier(at) => Question::Earlier(function(at)?),
        Asked::Variadic(at) => Question::Variadic(function(at)?),
        Asked::Flow(at) => Question::Flow(function(at)?),
        Asked::Passing(at) => Question::Passing(global(at)?),
        Asked::First(at) => Question::First(global(at)?),
        Asked::Apart(callee, at) => Question::Apart(function(callee)?, global(at)?),
        Asked::Null(inst) => Question::Null(InstId::new(inst as usize)),
        Asked::Indirect(inst) => Question::Indirect(InstId::new(inst as usize)),
    })
}
