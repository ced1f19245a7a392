//! What part each function plays for memory, read off its summary.
//!
//! ```text
//! allocators: 1
//!   note_new                 store.c:12   memory in its result
//! deallocators: 1
//!   note_free                store.c:30   releases note; releases note->text
//! takers: 1
//!   list_add                 list.c:7     keeps item in list->head
//! never return: 1
//!   die                      util.c:3
//! ```
//!
//! # Invariants
//! - Only what a caller can see counts: what a function allocates and releases itself is not in here.
//! - A function of a header that several units hold is one function.
//!
//! # Known imprecision
//! - A role is what one outcome does; `may` marks what not even that outcome is sure of, or where a limit was reached.

use std::collections::BTreeMap;
use std::fmt::Write;

use caulk_base::Id;
use caulk_ir::{FuncId, Ty, ValueId};

use crate::callgraph::MAX_TARGETS;
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::summary::{Outcome, Summary};
use crate::term::{Term, TermId};
use crate::whole::Knowledge;
use crate::words::Words;

/// More facts than this about one function are not written out.
const MAX_FACTS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Hands out something new: by its result, or in what it was given.
    Allocator,
    /// Releases what it was given, or a part of it.
    Deallocator,
    /// Stores a pointer it was given where it stays.
    Taker,
    /// Never comes back.
    Ending,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Allocator, Role::Deallocator, Role::Taker, Role::Ending];

    fn heading(self) -> &'static str {
        match self {
            Role::Allocator => "allocators",
            Role::Deallocator => "deallocators",
            Role::Taker => "takers",
            Role::Ending => "never return",
        }
    }
}

/// One role of a function, with what makes it so: one text a fact, in the order of the outcomes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Played {
    pub role: Role,
    pub facts: Vec<String>,
}

/// The roles of one function, in the order of [`Role::ALL`].
pub fn of(knowledge: &Knowledge<'_>, id: FuncId) -> Vec<Played> {
    let Some(summary) = knowledge.summary(id) else { return Vec::new() };
    if summary.outcomes.is_empty() && !summary.degraded {
        return vec![Played { role: Role::Ending, facts: Vec::new() }];
    }
    let look = Look { knowledge, words: Words::new(knowledge.program, id, &summary), summary: &summary };
    let found =
        [(Role::Allocator, look.hands_out()), (Role::Deallocator, look.releases()), (Role::Taker, look.keeps())];
    found.into_iter().filter(|(_, facts)| !facts.is_empty()).map(|(role, facts)| Played { role, facts }).collect()
}

/// The functions by role, and how many calls through pointers have known targets.
pub fn list(knowledge: &Knowledge<'_>, functions: &[FuncId]) -> String {
    let mut rows: BTreeMap<Role, BTreeMap<(String, String), Vec<String>>> = BTreeMap::new();
    for &id in functions {
        for Played { role, facts } in of(knowledge, id) {
            let key = (knowledge.program.function(id).name.clone(), place(knowledge, id));
            rows.entry(role).or_default().insert(key, facts);
        }
    }
    let mut out = String::new();
    for role in Role::ALL {
        let rows = rows.remove(&role).unwrap_or_default();
        let _ = writeln!(out, "{}: {}", role.heading(), rows.len());
        for ((name, place), facts) in rows {
            let text = format!("  {name:<32} {place:<28} {}", short(&facts));
            let _ = writeln!(out, "{}", text.trim_end());
        }
    }
    let graph = &knowledge.graph;
    let share = if graph.indirect_calls == 0 { 100.0 } else { percent(graph.resolved_calls, graph.indirect_calls) };
    let _ = writeln!(
        out,
        "calls through pointers: {}, of them {} ({share:.1} %) with {MAX_TARGETS} targets or fewer",
        graph.indirect_calls, graph.resolved_calls
    );
    out
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole as f64
}

fn short(facts: &[String]) -> String {
    let more = facts.len().saturating_sub(MAX_FACTS);
    let mut text = facts[..facts.len() - more].join("; ");
    if more > 0 {
        let _ = write!(text, "; {more} more");
    }
    text
}

fn place(knowledge: &Knowledge<'_>, id: FuncId) -> String {
    let unit = &knowledge.program.units[knowledge.program.unit_of(id)];
    let loc = unit.locs[knowledge.program.function(id).loc];
    let file = loc.file.map_or(unit.source.as_str(), |file| unit.files[file].as_str());
    format!("{}:{}", crate::words::base_name(file), loc.line)
}

struct Look<'a> {
    knowledge: &'a Knowledge<'a>,
    words: Words<'a>,
    summary: &'a Summary,
}

impl Look<'_> {
    fn object(&self, id: ObjId) -> &Object {
        &self.summary.objects[id.index()]
    }

    fn hands_out(&self) -> Vec<String> {
        let mut facts = Vec::new();
        for outcome in &self.summary.outcomes {
            let mut note = |term: TermId, to: &str| {
                for block in self.blocks(term) {
                    if let Some(known) = state(outcome, block).filter(|known| known.status.may(Status::LIVE)) {
                        let family = &self.knowledge.models.families[known.family].name;
                        add(&mut facts, format!("{family} in {to}"));
                    }
                }
            };
            if let Some(result) = outcome.result {
                note(result, "its result");
            }
            for write in &outcome.writes {
                if self.is_callers(write.obj) {
                    note(write.term, &self.words.cell(write.obj, write.off).0);
                }
            }
            for &(obj, term) in &outcome.weak {
                if self.is_callers(obj) {
                    note(term, &self.words.cell(obj, Off::Some).0);
                }
            }
        }
        facts
    }

    fn releases(&self) -> Vec<String> {
        let mut facts = Vec::new();
        for (obj, known) in self.summary.outcomes.iter().flat_map(|outcome| &outcome.objs) {
            if known.status.may(Status::FREED) && self.is_callers(*obj) {
                let sure = known.status.must(Status::FREED) && !self.summary.degraded;
                let verb = if sure { "releases" } else { "may release" };
                add(&mut facts, format!("{verb} {}", self.words.object(*obj)));
            }
        }
        // Alone it says little: what is drained may as well be the function's own.
        if self.summary.drained && !facts.is_empty() {
            add(&mut facts, "releases parts of its inputs that have no name of their own".to_owned());
        }
        facts
    }

    fn keeps(&self) -> Vec<String> {
        let mut facts = Vec::new();
        let mut perhaps = Vec::new();
        for outcome in &self.summary.outcomes {
            let strong = outcome.writes.iter().map(|write| (write.obj, write.off, write.term));
            let weak = outcome.weak.iter().map(|&(obj, term)| (obj, Off::Some, term));
            for (obj, off, term) in strong.chain(weak) {
                let mut params = Vec::new();
                self.params(term, &mut params);
                for param in params {
                    // A structure that points into itself is not kept by anyone.
                    if !matches!(self.object(obj), Object::Stack(_)) && self.root(obj) != Some(param) {
                        let name = self.words.param(param);
                        add(&mut facts, format!("keeps {name} in {}", self.words.cell(obj, off).0));
                    }
                }
            }
            for (obj, known) in &outcome.objs {
                if let Object::Deref(base) = *self.object(*obj)
                    && let Term::Param(_) = self.summary.terms[base.index()]
                    && known.escaped
                    && !known.status.must(Status::FREED)
                {
                    add(&mut perhaps, format!("may keep {}", self.words.object(*obj)));
                }
            }
        }
        // What is only assumed makes no role.
        if !facts.is_empty() {
            facts.append(&mut perhaps);
        }
        facts
    }

    /// Is the object one that the function was given, or can reach from what it was given?
    fn is_callers(&self, obj: ObjId) -> bool {
        self.root(obj).is_some()
    }

    /// The parameter that leads to an object.
    fn root(&self, obj: ObjId) -> Option<u32> {
        let mut at = obj;
        // Access paths in summaries are short; the bound is for what is read back from a file.
        for _ in 0..64 {
            let Object::Deref(mut base) = *self.object(at) else { return None };
            while let Term::Elem { base: inner, .. } = self.summary.terms[base.index()] {
                base = inner;
            }
            match self.summary.terms[base.index()] {
                Term::Param(param) => return Some(param),
                Term::Content { obj, .. } | Term::Addr { obj, .. } => at = obj,
                _ => return None,
            }
        }
        None
    }

    /// New blocks that a value may be the address of.
    fn blocks(&self, term: TermId) -> Vec<ObjId> {
        match self.summary.terms[term.index()] {
            Term::Addr { obj, .. } if matches!(self.object(obj), Object::Heap { .. }) => vec![obj],
            Term::Elem { base, .. } => self.blocks(base),
            Term::Ite(_, a, b) => [self.blocks(a), self.blocks(b)].concat(),
            _ => Vec::new(),
        }
    }

    /// Pointers among the parameters that a value may be, or may point behind.
    fn params(&self, term: TermId, found: &mut Vec<u32>) {
        match self.summary.terms[term.index()] {
            Term::Param(param) if self.words.function.values[ValueId(param)].ty == Ty::Ptr => found.push(param),
            Term::Addr { obj, .. } => {
                if let Object::Deref(base) = *self.object(obj)
                    && matches!(self.summary.terms[base.index()], Term::Param(_))
                {
                    self.params(base, found);
                }
            }
            Term::Elem { base, .. } => self.params(base, found),
            Term::Ite(_, a, b) => {
                self.params(a, found);
                self.params(b, found);
            }
            _ => {}
        }
    }
}

fn state(outcome: &Outcome, obj: ObjId) -> Option<&ObjState> {
    outcome.objs.iter().find(|entry| entry.0 == obj).map(|entry| &entry.1)
}

fn add(facts: &mut Vec<String>, fact: String) {
    if !facts.contains(&fact) {
        facts.push(fact);
    }
}
