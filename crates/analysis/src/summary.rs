//! What a caller needs to know of a function: its outcomes.
//!
//! An outcome is one group of ways through the function that look the same from
//! outside: when it happens (facts about the inputs), what it returns, what it
//! writes, which inputs it uses, releases or keeps, and what it allocates.
//!
//!     int push(struct q *q, char *s) {
//!         struct n *n = malloc(sizeof *n);
//!         if (!n) return -1;           // outcome 0: returns -1, no effect
//!         n->s = s; q->head = n;       // outcome 1: returns 0, (*arg0, 0) = obj0,
//!         return 0;                    //            (obj0, 0) = arg1, obj0 allocated
//!     }
//!
//! # Invariants
//! - Terms and objects index the summary's own arenas; nothing refers to the function's analysis.
//! - A function without outcomes does not return.
//! - Callers look at no instruction number in it (allocation sites, where something was released, values without a
//!   name): they put their own call in its place. `kept` relies on it.

use std::collections::BTreeMap;

use caulk_base::{FxHashMap, Id};
use caulk_ir::InstId;
use caulk_models::FamilyId;
use serde::{Deserialize, Serialize};

use crate::clauses::{Clause, Literal};
use crate::commons::Stir;
use crate::engine::{Analysed, Engine};
use crate::facts::Facts;
use crate::incident::{Condition, Doubt, ReleaseFact, Suspicion};
use crate::merge::RESULT;
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::state::{Cell, State};
use crate::term::{Term, TermId, Terms};

/// More written cells than this and the object is called changed as a whole.
const MAX_WRITES: usize = 12;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub terms: Vec<Term>,
    /// What lies in memory and is only ever read as a number, sorted.
    pub numbers: Vec<TermId>,
    pub objects: Vec<Object>,
    pub outcomes: Vec<Outcome>,
    /// Some way releases parts of its inputs that have no name: list drains, tree destructors.
    pub drained: bool,
    /// Parameters that are put into memory which outlives the call, on some way.
    pub stored: Vec<u32>,
    /// Parameters through which nothing is read, only written.
    pub written: Vec<u32>,
    /// Something unknown may be called.
    pub calls_unknown: bool,
    /// Something is read that goes on by itself (`read`, `getc`): the next call has another answer.
    pub draws: bool,
    /// Something is asked that is not in memory (`stat`, `isatty`): the next call may have another answer.
    pub asks: bool,
    /// It is part of a recursion that was not followed until nothing changed any more: it may do more with its
    /// arguments than this tells.
    pub incomplete: bool,
    /// A limit was reached: everything is "may".
    pub degraded: bool,
    /// Some paths were not followed to their end.
    pub cut: bool,
    /// Functions without body or model that were given an object, sorted.
    pub assumed: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// It happens only if something cannot be allocated or opened.
    pub starved: bool,
    /// What it does behind globals, beyond what is told one by one.
    pub stir: Stir,
    /// It releases parts of its inputs that have no name.
    pub drained: bool,
    /// Families of which it may release whatever there is, the caller's too (`closefrom`); sorted.
    pub swept: Vec<FamilyId>,
    pub result: Option<TermId>,
    /// Conditions on inputs: the term lies between the bounds and is none of the values.
    pub ranges: Vec<(TermId, i64, i64, Vec<i64>)>,
    pub atoms: Vec<(TermId, bool)>,
    /// Pairs of conditions of which one holds.
    pub clauses: Vec<Clause>,
    pub writes: Vec<Write>,
    /// Values that lie somewhere in an object.
    pub weak: Vec<(ObjId, TermId)>,
    /// Inputs whose inner pointers were rearranged: what is reachable from there may be anywhere in there.
    pub rewired: Vec<ObjId>,
    /// What lay in the first object lies in the second, a new one: `realloc`.
    pub moved: Vec<(ObjId, ObjId)>,
    /// Objects whose other contents are no longer known.
    pub changed: Vec<ObjId>,
    pub objs: Vec<(ObjId, ObjState)>,
}

impl Outcome {
    /// Does the caller get something that was made on the way?
    pub fn hands_out(&self, summary: &Summary) -> bool {
        self.objs.iter().any(|(obj, known)| {
            matches!(summary.objects[obj.index()], Object::Heap { .. })
                && known.status.may(Status::LIVE)
                && !known.is_given_away()
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub obj: ObjId,
    pub off: Off,
    pub size: u64,
    pub term: TermId,
}

/// An allocation as seen from the function it happens in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteFact {
    pub inst: InstId,
    pub sub: u32,
    pub family: FamilyId,
    /// Allocated by a library function, not by a function of the program.
    pub direct: bool,
    /// Released in this function: on some path / on every path on which it is not handed on.
    pub released: bool,
    /// Handed out: returned, stored, escaped.
    pub shared: bool,
}

/// See [`Summary::fate_of_arguments`].
pub(crate) type Fate<'a> = (BTreeMap<(u32, Option<i64>), (Status, bool)>, &'a [u32], bool, bool);

impl Summary {
    /// Of a function we could not analyse: it may do anything with what it is given.
    pub fn unknown() -> Self {
        Summary { calls_unknown: true, degraded: true, cut: true, ..Summary::default() }
    }

    /// What may become of the arguments and of what lies in them, as far as it has a name: a recursive destructor
    /// goes deeper in every round, and tells so by `drained`.
    pub(crate) fn fate_of_arguments(&self) -> Fate<'_> {
        let mut fate: BTreeMap<(u32, Option<i64>), (Status, bool)> = BTreeMap::new();
        for (obj, known) in self.outcomes.iter().flat_map(|outcome| &outcome.objs) {
            // Of what is drained, every part may be gone, whatever is told of it.
            if let Some(name) = self.argument(*obj).filter(|name| name.1.is_none() || !self.drained) {
                let (status, escaped) = fate.entry(name).or_default();
                (*status, *escaped) = (status.join(known.status), *escaped || known.escaped);
            }
        }
        (fate, &self.stored, self.drained, self.degraded && self.cut)
    }

    /// The argument that the object is, or in which at which place the pointer to it lies.
    fn argument(&self, obj: ObjId) -> Option<(u32, Option<i64>)> {
        let Object::Deref(base) = self.objects[obj.index()] else { return None };
        match self.terms[base.index()] {
            Term::Param(index) => Some((index, None)),
            Term::Content { obj: of, off: Off::At(at), .. } => match self.objects[of.index()] {
                Object::Deref(base) => match self.terms[base.index()] {
                    Term::Param(index) => Some((index, Some(at))),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Outcomes that return a negative constant, with it.
    pub fn failures(&self) -> impl Iterator<Item = (i64, &Outcome)> {
        self.outcomes.iter().filter_map(|outcome| match self.terms.get(outcome.result?.index())? {
            Term::Int(code) if *code < 0 => Some((*code, outcome)),
            _ => None,
        })
    }

    /// May parts of the inputs be released where the function returns what it does in this outcome? A loop that releases
    /// them may have no round: a caller cannot tell that way from the others, but one that fails before it comes there.
    /// `is_possible`: may the caller come to the other outcome with these arguments?
    pub fn drains_with(&self, outcome: &Outcome, is_possible: impl Fn(&Outcome) -> bool) -> bool {
        let untold = self.drained && (self.cut || self.incomplete);
        let same = |other: &Outcome| other.drained && !self.is_told_apart(outcome, other) && is_possible(other);
        untold || outcome.drained || self.outcomes.iter().any(same)
    }

    /// Do the two return different constants, or one of them null and the other a new block?
    fn is_told_apart(&self, a: &Outcome, b: &Outcome) -> bool {
        let result = |outcome: &Outcome| outcome.result.and_then(|term| self.terms.get(term.index()));
        match (result(a), result(b)) {
            (Some(Term::Int(a)), Some(Term::Int(b))) => a != b,
            (Some(Term::Int(0)), Some(Term::Addr { .. })) | (Some(Term::Addr { .. }), Some(Term::Int(0))) => true,
            _ => false,
        }
    }

    /// Returns something, and has no effect a caller could see.
    pub fn is_effect_free(&self) -> bool {
        !self.drained
            && !self.calls_unknown
            && !self.degraded
            && self.outcomes.iter().all(|outcome| {
                outcome.writes.is_empty()
                    && outcome.weak.is_empty()
                    && outcome.changed.is_empty()
                    && outcome.rewired.is_empty()
                    && outcome.swept.is_empty()
                    && outcome.stir == Stir::Nothing
                    && outcome.objs.iter().all(|(id, obj)| {
                        !matches!(self.objects[id.index()], Object::Heap { .. })
                            && obj.status == Status::LIVE
                            && !obj.escaped
                    })
            })
    }
}

impl Engine<'_> {
    /// The exits in terms of their own.
    pub(crate) fn export(&self, states: &[State]) -> Exported {
        let mut exporter = Exporter::new(&self.terms);
        let outcomes = states.iter().map(|state| exporter.outcome(state)).collect();
        let Exporter { terms, numbers, objects, .. } = exporter;
        Exported { terms, numbers, objects, outcomes }
    }

    /// What callers are told.
    pub(crate) fn summarise(&mut self) -> Summary {
        let states = self.merged_exits();
        let Exported { terms, numbers, objects, outcomes } = self.export(&states);
        let mut assumed: Vec<String> = self.assumed.iter().cloned().collect();
        assumed.sort_unstable();
        Summary {
            terms,
            numbers,
            objects,
            outcomes,
            drained: self.drained,
            stored: self.put_away.iter().copied().collect(),
            written: self.written_parameters(),
            cut: self.cut,
            calls_unknown: self.calls_unknown,
            draws: self.draws,
            asks: self.asks,
            incomplete: false,
            degraded: self.degraded,
            assumed,
        }
    }

    pub(crate) fn finish(mut self, summary: Summary) -> Analysed {
        self.drop_emptied();
        let mut sites: Vec<SiteFact> = self.sites.values().copied().collect();
        sites.sort_by_key(|site| (site.inst, site.sub));
        let id = self.id;
        std::mem::take(&mut self.terms).leave();
        self.doubt_undermined();
        if self.cut {
            self.releases.values_mut().for_each(|doubts| _ = doubts.insert(Doubt::Blurred));
        }
        Analysed {
            summary,
            incidents: self.incidents.into_values().collect(),
            sites,
            releases: self
                .releases
                .into_iter()
                .map(|(inst, doubts)| {
                    let written = self.written.remove(&inst);
                    ReleaseFact { inst, doubts: doubts.into_iter().collect(), written }
                })
                .collect(),
            suspicions: self.suspicions.into_iter().map(|(at, kind)| Suspicion { function: id, at, kind }).collect(),
            degraded: self.degraded,
            asked: Some(self.knowledge.into_questions()),
        }
    }
}

/// Outcomes, with the terms and objects that they speak of.
pub(crate) struct Exported {
    pub terms: Vec<Term>,
    pub numbers: Vec<TermId>,
    pub objects: Vec<Object>,
    pub outcomes: Vec<Outcome>,
}

/// Copies terms and objects into arenas of their own.
struct Exporter<'a> {
    from: &'a Terms,
    terms: Vec<Term>,
    numbers: Vec<TermId>,
    objects: Vec<Object>,
    term_map: FxHashMap<TermId, TermId>,
    object_map: FxHashMap<ObjId, ObjId>,
}

impl<'a> Exporter<'a> {
    fn new(from: &'a Terms) -> Self {
        Self {
            from,
            terms: Vec::new(),
            numbers: Vec::new(),
            objects: Vec::new(),
            term_map: FxHashMap::default(),
            object_map: FxHashMap::default(),
        }
    }

    fn object(&mut self, id: ObjId) -> ObjId {
        if let Some(&known) = self.object_map.get(&id) {
            return known;
        }
        let object = match self.from.object(id) {
            Object::Deref(base) => Object::Deref(self.term(*base)),
            other => other.clone(),
        };
        let new = ObjId::new(self.objects.len());
        self.objects.push(object);
        self.object_map.insert(id, new);
        new
    }

    fn off(&mut self, off: Off) -> Off {
        match off {
            Off::Elem(index, bytes) => Off::Elem(self.term(index), bytes),
            other => other,
        }
    }

    fn term(&mut self, id: TermId) -> TermId {
        if let Some(&known) = self.term_map.get(&id) {
            return known;
        }
        let term = match self.from.get(id).clone() {
            Term::Content { obj, off, epoch } => Term::Content { obj: self.object(obj), off: self.off(off), epoch },
            Term::Addr { obj, off } => Term::Addr { obj: self.object(obj), off },
            Term::Elem { base, index, bytes } => Term::Elem { base: self.term(base), index: self.term(index), bytes },
            Term::Pure(mut call) => {
                call.args.iter_mut().for_each(|arg| *arg = self.term(*arg));
                Term::Pure(call)
            }
            Term::Bin(op, a, b) => Term::Bin(op, self.term(a), self.term(b)),
            Term::Cmp(op, a, b) => Term::Cmp(op, self.term(a), self.term(b)),
            Term::Cast(op, bits, a) => Term::Cast(op, bits, self.term(a)),
            Term::Ite(c, a, b) => Term::Ite(self.term(c), self.term(a), self.term(b)),
            other @ (Term::Int(_) | Term::Param(_) | Term::Func(_) | Term::Sym { .. }) => other,
        };
        let new = TermId::new(self.terms.len());
        if matches!(term, Term::Content { .. }) && self.from.is_read_as_number(id) {
            self.numbers.push(new);
        }
        self.terms.push(term);
        self.term_map.insert(id, new);
        new
    }

    /// What was written; the number itself, where the way says which it is: `it->kind = kind`, when `kind == 2`.
    fn written(&mut self, state: &State, id: TermId) -> TermId {
        let number = matches!(self.from.get(id), Term::Content { .. } | Term::Param(_) | Term::Bin(..))
            .then(|| state.facts.range(self.from, id).constant())
            .flatten();
        match number {
            Some(value) => {
                let new = TermId::new(self.terms.len());
                self.terms.push(Term::Int(value));
                new
            }
            None => self.term(id),
        }
    }

    fn outcome(&mut self, state: &State) -> Outcome {
        let mut outcome = Outcome {
            starved: state.starved,
            stir: state.stir,
            drained: state.drains,
            swept: state.swept.to_vec(),
            result: state.value(RESULT).map(|term| self.term(term)),
            ..Outcome::default()
        };
        for (id, range) in &state.facts.ranges {
            outcome.ranges.push((self.term(*id), range.lo, range.hi, range.not.to_vec()));
        }
        for (id, truth) in &state.facts.atoms {
            outcome.atoms.push((self.term(*id), *truth));
        }
        for Clause(a, b) in &state.facts.clauses {
            let mut side = |literal: &Literal| Literal { term: self.term(literal.term), range: literal.range.clone() };
            outcome.clauses.push(Clause(side(a), side(b)));
        }
        let plain = |cell: &Cell| !self.from.is_held_by_name(cell.term) && self.from.as_int(cell.term).is_none();
        let crowded = state.cells.iter().filter(|(_, cell)| plain(cell)).count() > MAX_WRITES
            || state.cells.len() > 4 * MAX_WRITES;
        for ((obj, off), cell) in &state.cells {
            let matters = match (crowded, !self.from.is_held_by_name(cell.term)) {
                (_, false) | (false, _) => true,
                (true, true) => state.cells.len() <= 4 * MAX_WRITES && self.from.as_int(cell.term).is_some(),
            };
            let new = self.object(*obj);
            if matters {
                outcome.writes.push(Write {
                    obj: new,
                    off: self.off(*off),
                    size: cell.size,
                    term: self.written(state, cell.term),
                });
            } else if !outcome.changed.contains(&new) {
                outcome.changed.push(new);
            }
        }
        for (obj, term) in &state.weak {
            outcome.weak.push((self.object(*obj), self.term(*term)));
        }
        for (obj, _) in &state.epochs {
            let obj = self.object(*obj);
            if !outcome.changed.contains(&obj) {
                outcome.changed.push(obj);
            }
        }
        for obj in &state.rewired {
            outcome.rewired.push(self.object(*obj));
        }
        for (from, to) in &state.moved {
            outcome.moved.push((self.object(*from), self.object(*to)));
        }
        for (obj, known) in &state.objs {
            outcome.objs.push((self.object(*obj), *known));
        }
        outcome
    }
}

/// The facts of a state as a conjunction of terms that stand on their own.
pub(crate) fn export_condition(terms: &mut Terms, facts: &Facts) -> Condition {
    let count = terms.len();
    let work = &mut *terms;
    let mut conjuncts: Vec<(TermId, bool)> = facts.atoms.to_vec();
    for (id, range) in &facts.ranges {
        if let Some(value) = range.constant() {
            let k = work.int(value);
            conjuncts.push((work.raw_cmp(caulk_ir::CmpOp::Eq, *id, k), true));
            continue;
        }
        if range.lo != i64::MIN {
            let k = work.int(range.lo);
            conjuncts.push((work.raw_cmp(caulk_ir::CmpOp::Sge, *id, k), true));
        }
        if range.hi != i64::MAX {
            let k = work.int(range.hi);
            conjuncts.push((work.raw_cmp(caulk_ir::CmpOp::Sle, *id, k), true));
        }
        for &value in &range.not {
            let k = work.int(value);
            conjuncts.push((work.raw_cmp(caulk_ir::CmpOp::Eq, *id, k), false));
        }
    }
    let mut exporter = Exporter::new(work);
    let conjuncts = conjuncts.into_iter().map(|(id, truth)| (exporter.term(id), truth)).collect();
    let condition = Condition { terms: exporter.terms, conjuncts };
    // What was made for this only is of no use to the function.
    terms.forget_since(count);
    condition
}
