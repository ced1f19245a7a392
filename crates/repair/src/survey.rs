//! What the analysis says about a program, in places of the source: that is all a proof compares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use caulk_analysis::{Analysis, Doubt, IncidentKind, ObjId, Object, Off, Status, Subject, Summary, Term, TermId};
use caulk_base::Id;
use caulk_findings::Finding;
use caulk_ir::{FuncId, Program};
use caulk_models::{Condition, Effect, FunctionModel, Place};
use caulk_source::Call;

use crate::notes::{Noted, Notes, spot};
use crate::sides::Sides;
use crate::unset;
use crate::watched::Watched;

/// The effect of a function that releases what lies somewhere in its inputs.
pub const DRAINS: &str = "releases parts of its inputs";

/// A place where something happens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

/// One way through a function: what it returns, where that is a number, and what it does.
pub type Way<T> = (Option<i64>, T);

#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub findings: Vec<Finding>,
    /// Calls that release, with what speaks against each.
    pub releases: BTreeMap<Spot, BTreeSet<Doubt>>,
    /// Errors that may happen: function and kind, as often as there are.
    pub suspicions: BTreeMap<(String, String), usize>,
    /// Calls whose block is lost somewhere, and whether that is only when the program ends: also where nobody is told of it.
    pub lost: BTreeSet<(Spot, bool)>,
    /// By file and function, what callers must know: inputs that are released or kept, blocks that are handed out
    /// although they may be released.
    pub effects: BTreeMap<(String, String), BTreeSet<String>>,
    /// Functions that release their first argument.
    pub destructors: BTreeSet<String>,
    /// Functions that release what lies somewhere in their inputs, and not always the first of them. By what they
    /// return, where that is a number: the parameters that may be gone, or not.
    pub draining: BTreeMap<String, Vec<Way<BTreeSet<usize>>>>,
    /// For functions and the numbers of parameters of theirs that some way through takes, that is releases or stores:
    /// by the result, where that is a number, whether this way takes it.
    pub takers: BTreeMap<(String, usize), Vec<Way<bool>>>,
    /// Functions and the numbers of parameters of theirs that they only look at: no way through stores or releases what
    /// they are given there, or gives it to somebody who might.
    pub borrowers: BTreeSet<(String, usize)>,
    /// Functions and the numbers of parameters of theirs that some way through may release or keep.
    pub keepers: BTreeSet<(String, usize)>,
    /// Functions and the numbers of parameters of theirs that may be null: they return all the same.
    pub null_takers: BTreeSet<(String, usize)>,
    /// Functions that must not be given null as their first argument.
    pub needy: BTreeSet<String>,
    /// Functions of libraries that release what they are given.
    pub library: BTreeSet<String>,
    /// Functions of libraries and their arguments behind which they put something new, unless they fail: what they return
    /// then.
    pub filling: BTreeMap<(String, usize), i64>,
    /// Functions that are called through pointers, too.
    pub addressed: BTreeSet<String>,
    /// Functions of the program.
    pub functions: BTreeSet<String>,
    /// Functions of the program after which every pointer that lies anywhere is what it was.
    pub calm: BTreeSet<String>,
    /// Functions that were too large to tell their paths apart.
    pub degraded: BTreeSet<(String, String)>,
    /// What functions do besides.
    pub sides: Arc<Sides>,
    /// Functions and variables by which they hand something to their callees, and to nobody else.
    pub passing: Arc<BTreeSet<(String, String)>>,
    /// Members whose value itself is of interest to somebody.
    pub watched: Arc<Watched>,
    /// The program itself.
    pub program: Whole,
}

/// A program that shows nothing of itself.
#[derive(Clone, Default)]
pub struct Whole(pub Arc<Program>);

impl std::fmt::Debug for Whole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl std::ops::Deref for Whole {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.0
    }
}

impl Survey {
    /// `notes`: what was noted of programs that are much alike.
    pub fn of(analysis: &Analysis<'_>, whole: &Arc<Program>, findings: Vec<Finding>, notes: &mut Notes) -> Self {
        let mut survey = Survey { findings, program: Whole(Arc::clone(whole)), ..Survey::default() };
        let program = analysis.knowledge.program;
        for id in program.functions.ids() {
            survey.add(&program.function(id).name, &notes.of(analysis, id));
        }
        survey.addressed = notes.addressed(program);
        survey.sides = notes.sides(analysis);
        survey.watched = notes.watched(program);
        survey.passing = notes.passing(analysis);
        for name in program.externs.iter() {
            let Some(model) = analysis.knowledge.models.get(name) else { continue };
            if needs_first(model) {
                survey.needy.insert(name.clone());
            }
            if model.effects.iter().any(|effect| matches!(effect, Effect::Releases { .. })) {
                survey.library.insert(name.clone());
            }
            if let ([Effect::Allocates { place: Place::Deref(argument), when: Condition::Always, .. }], Some(number)) =
                (&model.effects[..], model.returns.fails)
            {
                survey.filling.insert((name.clone(), *argument as usize), number);
            }
        }
        for incident in &analysis.incidents {
            let at_end = incident.kind == IncidentKind::LeakAtExit;
            if let (IncidentKind::Leak | IncidentKind::LeakAtExit, Subject::Allocated { site, .. }) =
                (&incident.kind, &incident.subject)
            {
                survey.lost.insert((spot(analysis, incident.function, *site), at_end));
            }
        }
        // What is not reported because nobody is known to write such a program may happen all the same.
        let unlikely = analysis.incidents.iter().map(|incident| (incident.function, &incident.kind));
        let unlikely = unlikely.filter(|(_, kind)| !matches!(kind, IncidentKind::Leak | IncidentKind::LeakAtExit));
        let suspected = analysis.suspicions.iter().map(|suspicion| (suspicion.function, &suspicion.kind));
        for (function, kind) in suspected.chain(unlikely) {
            let key = (program.function(function).name.clone(), format!("{kind:?}"));
            *survey.suspicions.entry(key).or_default() += 1;
        }
        survey
    }

    /// Nothing but what is said of one function, and the findings in it.
    pub fn of_one(analysis: &Analysis<'_>, id: FuncId, findings: Vec<Finding>, notes: &mut Notes) -> Self {
        let mut survey = Survey { findings, ..Survey::default() };
        survey.add(&analysis.knowledge.program.function(id).name, &notes.of(analysis, id));
        survey
    }

    /// The calls of one function that release, as one sees them who takes nothing for granted: with what speaks against
    /// each, and whether the block may be looked at later.
    pub fn wary(analysis: &Analysis<'_>, id: FuncId) -> BTreeMap<Spot, BTreeSet<Doubt>> {
        let mut releases: BTreeMap<Spot, BTreeSet<Doubt>> = BTreeMap::new();
        for fact in analysis.releases(id) {
            releases.entry(spot(analysis, id, fact.inst)).or_default().extend(unset::doubts(analysis, id, fact));
        }
        for freed in analysis.incidents.iter().filter_map(|incident| incident.freed_at) {
            releases.entry(spot(analysis, id, freed)).or_default().insert(Doubt::MayBeReleased);
        }
        releases
    }

    fn add(&mut self, name: &str, noted: &Noted) {
        self.functions.insert(name.to_owned());
        if noted.calm {
            self.calm.insert(name.to_owned());
        }
        for (spot, doubts) in &noted.releases {
            self.releases.entry(spot.clone()).or_default().extend(doubts.iter().copied());
        }
        if noted.degraded {
            self.degraded.insert((noted.file.clone(), name.to_owned()));
        }
        self.null_takers.extend(noted.null_taking.iter().map(|at| (name.to_owned(), *at)));
        self.borrowers.extend(noted.borrows.iter().map(|at| (name.to_owned(), *at)));
        if noted.needs_first {
            self.needy.insert(name.to_owned());
        }
        self.keepers.extend(noted.keeps.iter().map(|at| (name.to_owned(), *at)));
        for (at, ways) in &noted.takes {
            self.takers.entry((name.to_owned(), *at)).or_default().extend(ways.iter().copied());
        }
        if let Some(ways) = &noted.drains {
            self.draining.entry(name.to_owned()).or_default().extend(ways.iter().cloned());
        }
        if noted.releases_first {
            self.destructors.insert(name.to_owned());
        }
        if let Some(effects) = &noted.effects {
            let key = (noted.file.clone(), name.to_owned());
            self.effects.entry(key).or_default().extend(effects.iter().cloned());
        }
    }

    /// Whether the program is a whole one.
    pub fn has_main(&self) -> bool {
        self.effects.keys().any(|(_, function)| function == "main")
    }

    /// Whether who is called does nothing with an argument but look at it: then its result tells nothing of the block, even
    /// where some results come with a block only.
    pub fn only_looks(&self, call: &Call, at: usize) -> bool {
        call.direct && self.functions.contains(&call.callee) && !self.keepers.contains(&(call.callee.clone(), at))
    }

    /// The release call that starts at a place.
    pub fn release_at(&self, file: &str, line: u32, column: u32) -> Option<&BTreeSet<Doubt>> {
        self.releases
            .iter()
            .find(|(spot, _)| spot.file == file && spot.line == line && spot.column == column)
            .map(|found| found.1)
    }
}

/// A library function that looks into its first argument, or releases it and does not accept null.
fn needs_first(model: &FunctionModel) -> bool {
    let first = |effect: &Effect| matches!(effect, Effect::Releases { place: Place::Arg(0), null_ok: false, .. });
    model.needs.contains(&0) || model.effects.iter().any(first)
}

/// Whether every pointer that lies anywhere is what it was when the function has returned.
pub fn is_calm(summary: &Summary) -> bool {
    let of = |outcome: &caulk_analysis::Outcome| {
        let gone = |obj: &ObjId| outcome.objs.iter().any(|(at, known)| at == obj && known.status.must(Status::FREED));
        let small = |write: &caulk_analysis::Write| write.size > 0 && write.size < 8;
        outcome.writes.iter().all(|write| small(write) || gone(&write.obj))
            && outcome.weak.iter().all(|(obj, _)| gone(obj))
            && outcome.rewired.iter().chain(&outcome.changed).all(gone)
            && outcome.moved.is_empty()
            && outcome.stir == Default::default()
    };
    !summary.degraded && !summary.calls_unknown && !summary.drained && summary.outcomes.iter().all(of)
}

/// What a caller could be hurt by.
pub fn effects(summary: &Summary) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for outcome in &summary.outcomes {
        for (obj, known) in &outcome.objs {
            let freed = known.status.may(Status::FREED);
            let name = match &summary.objects[obj.index()] {
                Object::Heap { .. } if freed => {
                    all.insert("hands out what may be released".to_owned());
                    continue;
                }
                Object::Heap { .. } => continue,
                _ => object(summary, *obj),
            };
            if freed {
                all.insert(format!("releases {name}"));
            }
            if known.escaped {
                all.insert(format!("keeps {name}"));
            }
        }
    }
    all.extend(left_over(summary));
    if summary.drained {
        all.insert(DRAINS.to_owned());
    }
    if summary.outcomes.is_empty() {
        all.insert("does not return".to_owned());
    }
    all
}

/// Inputs that are released on some ways through but not on all, by what is returned then.
fn left_over(summary: &Summary) -> BTreeSet<String> {
    let mut released: Vec<(ObjId, TermId)> = Vec::new();
    for (obj, known) in summary.outcomes.iter().flat_map(|outcome| &outcome.objs) {
        if let Object::Deref(base) = &summary.objects[obj.index()]
            && known.status.may(Status::FREED)
            && !released.contains(&(*obj, *base))
        {
            released.push((*obj, *base));
        }
    }
    let mut all = BTreeSet::new();
    for outcome in &summary.outcomes {
        let result = match outcome.result.map(|result| &summary.terms[result.index()]) {
            Some(Term::Int(value)) => value.to_string(),
            Some(_) => "something else".to_owned(),
            None => "nothing".to_owned(),
        };
        for (obj, base) in &released {
            let gone = outcome.objs.iter().any(|(at, known)| at == obj && known.status.must(Status::FREED));
            let null = outcome.ranges.iter().any(|(term, low, high, _)| term == base && *low == 0 && *high == 0);
            if !gone && !null {
                all.insert(format!("does not release {} when it returns {result}", object(summary, *obj)));
            }
        }
    }
    all
}

/// Some way through does not need the parameter to be a pointer to something.
pub fn takes_null(summary: &Summary, parameter: usize) -> bool {
    summary.outcomes.iter().any(|outcome| {
        let excluded = |(term, low, high, holes): &(TermId, i64, i64, Vec<i64>)| {
            summary.terms[term.index()] == Term::Param(parameter as u32)
                && (*low > 0 || *high < 0 || holes.contains(&0))
        };
        !outcome.ranges.iter().any(excluded)
    })
}

/// Whether some way through may release or keep what a parameter points to.
pub fn may_take(summary: &Summary, parameter: usize) -> bool {
    let is_it = |term: TermId| summary.terms[term.index()] == Term::Param(parameter as u32);
    let points = |obj: ObjId| matches!(summary.objects[obj.index()], Object::Deref(base) if is_it(base));
    let of = |outcome: &caulk_analysis::Outcome| {
        outcome.objs.iter().any(|(obj, known)| points(*obj) && (known.status.may(Status::FREED) || known.escaped))
            || outcome.writes.iter().any(|write| is_it(write.term))
            || outcome.weak.iter().any(|(_, term)| is_it(*term))
    };
    summary.degraded || summary.calls_unknown || summary.drained || summary.outcomes.iter().any(of)
}

/// Whether each way through releases or stores what a parameter points to, by its result.
pub fn taken(summary: &Summary, parameter: usize) -> Vec<Way<bool>> {
    let is_it = |term: TermId| summary.terms[term.index()] == Term::Param(parameter as u32);
    let points = |obj: ObjId| matches!(summary.objects[obj.index()], Object::Deref(base) if is_it(base));
    let of = |outcome: &caulk_analysis::Outcome| {
        let gone =
            outcome.objs.iter().any(|(obj, known)| points(*obj) && (known.status.must(Status::FREED) || known.escaped));
        let null = outcome.ranges.iter().any(|(term, low, high, _)| is_it(*term) && *low == 0 && *high == 0);
        let stored = outcome.writes.iter().any(|write| is_it(write.term) && !points(write.obj))
            || outcome.weak.iter().any(|(_, term)| is_it(*term));
        (number(summary, outcome), gone || null || stored)
    };
    summary.outcomes.iter().map(of).collect()
}

/// Whether no way through stores or releases what a parameter leads to, or gives it to somebody who might. It may be returned.
pub fn borrows(summary: &Summary, parameter: usize) -> bool {
    let leads = |term: TermId| leads(summary, term, parameter, 0);
    let points = |obj: ObjId| matches!(summary.objects[obj.index()], Object::Deref(base) if leads(base));
    let known = !summary.degraded && !summary.calls_unknown && !summary.drained;
    known
        && summary.outcomes.iter().all(|outcome| {
            let taken = outcome.objs.iter().any(|(obj, known)| {
                let given =
                    known.escaped || known.lent || known.sent || known.unsettled || known.doubted || known.drained;
                points(*obj) && (given || known.status.may(Status::FREED))
            });
            let stored = outcome.writes.iter().any(|write| leads(write.term))
                || outcome.weak.iter().any(|(_, term)| leads(*term));
            !taken && !stored && outcome.moved.is_empty() && outcome.stir == Default::default()
        })
}

/// Whether a value may be the parameter, or a place in what it points to.
fn leads(summary: &Summary, id: TermId, parameter: usize, depth: u32) -> bool {
    const DEEPEST: u32 = 8;
    let part = |id: TermId| depth >= DEEPEST || leads(summary, id, parameter, depth + 1);
    match &summary.terms[id.index()] {
        Term::Param(index) => *index as usize == parameter,
        Term::Addr { obj, .. } => matches!(summary.objects[obj.index()], Object::Deref(base) if part(base)),
        Term::Elem { base, index, .. } => part(*base) || part(*index),
        Term::Bin(_, a, b) | Term::Ite(_, a, b) => part(*a) || part(*b),
        Term::Cast(_, _, a) => part(*a),
        Term::Sym { .. } => true,
        Term::Content { .. } | Term::Int(_) | Term::Cmp(..) | Term::Pure(_) | Term::Func(_) => false,
    }
}

fn number(summary: &Summary, outcome: &caulk_analysis::Outcome) -> Option<i64> {
    match summary.terms[outcome.result?.index()] {
        Term::Int(value) => Some(value),
        _ => None,
    }
}

/// Parameters that a way through changes, passes on or stores, by its result: they may lie in what it drains.
pub fn touched(summary: &Summary) -> Vec<Way<BTreeSet<usize>>> {
    let parameter = |term: TermId| match summary.terms[term.index()] {
        Term::Param(at) => Some(at as usize),
        _ => None,
    };
    let pointee = |obj: ObjId| match summary.objects[obj.index()] {
        Object::Deref(base) => parameter(base),
        _ => None,
    };
    let of = |outcome: &caulk_analysis::Outcome| {
        let result = number(summary, outcome);
        let mut all = BTreeSet::new();
        for (obj, known) in &outcome.objs {
            if known.escaped || known.passed || known.lent || known.status.may(Status::FREED) {
                all.extend(pointee(*obj));
            }
        }
        all.extend(outcome.writes.iter().flat_map(|write| [pointee(write.obj), parameter(write.term)]).flatten());
        all.extend(outcome.weak.iter().flat_map(|(obj, term)| [pointee(*obj), parameter(*term)]).flatten());
        all.extend(outcome.changed.iter().chain(&outcome.rewired).filter_map(|obj| pointee(*obj)));
        (result, all)
    };
    summary.outcomes.iter().map(of).collect()
}

fn is_first(summary: &Summary, obj: ObjId) -> bool {
    match &summary.objects[obj.index()] {
        Object::Deref(base) => summary.terms[base.index()] == Term::Param(0),
        _ => false,
    }
}

/// Every way through releases what the first parameter points to, if it is not null.
pub fn always_releases_first(summary: &Summary) -> bool {
    summary.outcomes.iter().all(|outcome| {
        let null = |(term, low, high, _): &(TermId, i64, i64, Vec<i64>)| {
            summary.terms[term.index()] == Term::Param(0) && *low == 0 && *high == 0
        };
        let gone = outcome.objs.iter().any(|(obj, known)| is_first(summary, *obj) && known.status.must(Status::FREED));
        gone || outcome.ranges.iter().any(null)
    })
}

/// Some way through releases what the first parameter points to.
pub fn releases_first(summary: &Summary) -> bool {
    let is_first = |obj: &ObjId| is_first(summary, *obj);
    !summary.degraded
        && summary
            .outcomes
            .iter()
            .any(|outcome| outcome.objs.iter().any(|(obj, known)| is_first(obj) && known.status.must(Status::FREED)))
}

/// An object in words that stay the same where instructions come in or go.
fn object(summary: &Summary, id: ObjId) -> String {
    match &summary.objects[id.index()] {
        Object::Deref(base) => format!("*{}", term(summary, *base, 0)),
        Object::Heap { site, sub, older } => {
            let made = summary.objects.iter().filter_map(|object| match object {
                Object::Heap { site, .. } => Some(*site),
                _ => None,
            });
            let before: BTreeSet<_> = made.filter(|other| other < site).collect();
            format!("block {}.{sub}{}", before.len(), if *older { " of a round before" } else { "" })
        }
        Object::Stack(_) => "a variable".to_owned(),
        other => format!("{other:?}"),
    }
}

fn term(summary: &Summary, id: TermId, depth: u32) -> String {
    const DEEPEST: u32 = 6;
    if depth > DEEPEST {
        return "…".to_owned();
    }
    let part = |id: &TermId| term(summary, *id, depth + 1);
    match &summary.terms[id.index()] {
        Term::Content { obj, off: Off::At(at), .. } => format!("{}[{at}]", object(summary, *obj)),
        Term::Content { obj, .. } => format!("{}[?]", object(summary, *obj)),
        Term::Addr { obj, off } => format!("&{}{off:?}", object(summary, *obj)),
        Term::Param(index) => format!("arg{index}"),
        Term::Elem { base, .. } => format!("{}[…]", part(base)),
        Term::Int(value) => value.to_string(),
        Term::Bin(op, a, b) => format!("{op:?}({}, {})", part(a), part(b)),
        Term::Cmp(op, a, b) => format!("{op:?}({}, {})", part(a), part(b)),
        Term::Cast(op, bits, a) => format!("{op:?}({bits}, {})", part(a)),
        Term::Ite(_, a, b) => format!("one of {} and {}", part(a), part(b)),
        Term::Sym { .. } => "some value".to_owned(),
        Term::Pure(call) => format!("a function of ({})", call.args.iter().map(part).collect::<Vec<_>>().join(", ")),
        Term::Func(function) => format!("{function:?}"),
    }
}

#[cfg(test)]
mod tests {
    use caulk_ir::InstId;

    use super::*;

    #[test]
    fn names_of_blocks_do_not_move_with_instructions() {
        let of = |first: u32, second: u32| {
            let heap = |site: u32| Object::Heap { site: InstId(site), sub: 0, older: false };
            let terms = vec![Term::Content { obj: ObjId::new(1), off: Off::Some, epoch: 0 }];
            let objects = vec![heap(first), heap(second), Object::Deref(TermId::new(0))];
            let summary = Summary { terms, objects, ..Summary::default() };
            object(&summary, ObjId::new(2))
        };
        assert_eq!(of(3, 7), "*block 1.0[?]");
        assert_eq!(of(3, 7), of(5, 12));
        assert_ne!(of(3, 7), of(7, 3));
    }
}
