//! What the analysis says about a program, in places of the source: that is all a proof compares.

use std::collections::{BTreeMap, BTreeSet};

use caulk_analysis::{Analysis, Doubt, IncidentKind, ObjId, Object, Off, Status, Summary, Term, TermId};
use caulk_base::Id;
use caulk_findings::Finding;
use caulk_ir::{FuncId, InitValue, InstId, Program, SymbolId, Target, UnitId, ValueKind};
use caulk_models::{Effect, FunctionModel, Place};

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
    /// Functions and the numbers of parameters of theirs that may be null: they return all the same.
    pub null_takers: BTreeSet<(String, usize)>,
    /// Functions that must not be given null as their first argument.
    pub needy: BTreeSet<String>,
    /// Functions that are called through pointers, too.
    pub addressed: BTreeSet<String>,
    /// Functions that were too large to tell their paths apart.
    pub degraded: BTreeSet<(String, String)>,
}

impl Survey {
    pub fn of(analysis: &Analysis<'_>, findings: Vec<Finding>) -> Self {
        let mut survey = Survey { findings, ..Survey::default() };
        let program = analysis.knowledge.program;
        for id in program.functions.ids() {
            let function = program.function(id);
            let key = (program.units[program.unit_of(id)].source.clone(), function.name.clone());
            for fact in &analysis.releases[id] {
                survey.releases.entry(spot(analysis, id, fact.inst)).or_default().extend(fact.doubts.iter().copied());
            }
            let Some(summary) = analysis.knowledge.summary(id) else { continue };
            if summary.degraded {
                survey.degraded.insert(key.clone());
            }
            survey.null_takers.extend(
                (0..function.param_count as usize)
                    .filter(|at| takes_null(&summary, *at))
                    .map(|at| (function.name.clone(), at)),
            );
            if function.param_count > 0 && !summary.outcomes.is_empty() && !takes_null(&summary, 0) {
                survey.needy.insert(function.name.clone());
            }
            for at in 0..function.param_count as usize {
                let ways = taken(&summary, at);
                if ways.iter().any(|way| way.1) {
                    survey.takers.entry((function.name.clone(), at)).or_default().extend(ways);
                }
            }
            if summary.drained && !always_releases_first(&summary) {
                survey.draining.entry(function.name.clone()).or_default().extend(touched(&summary));
            }
            if releases_first(&summary) {
                survey.destructors.insert(function.name.clone());
            }
            survey.effects.entry(key).or_default().extend(effects(&summary));
        }
        survey.addressed = addressed(program);
        for name in program.externs.iter() {
            if analysis.knowledge.models.get(name).is_some_and(needs_first) {
                survey.needy.insert(name.clone());
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

    /// Whether the program is a whole one.
    pub fn has_main(&self) -> bool {
        self.effects.keys().any(|(_, function)| function == "main")
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

fn spot(analysis: &Analysis<'_>, id: FuncId, inst: InstId) -> Spot {
    let program = analysis.knowledge.program;
    let unit = &program.units[program.unit_of(id)];
    let function = program.function(id);
    let loc = unit.locs[function.insts[inst].loc];
    let file = loc.file.map(|file| unit.files[file].clone()).unwrap_or_default();
    Spot { file, line: loc.line, column: loc.column, function: function.name.clone() }
}

/// Names of the functions whose address goes anywhere.
fn addressed(program: &Program) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut add = |unit: UnitId, symbol: SymbolId| {
        if let Target::Functions(functions) = program.target(unit, symbol) {
            all.extend(functions.iter().map(|id| program.function(*id).name.clone()));
        }
    };
    for global in program.globals.ids() {
        let (unit, _) = program.globals[global];
        for init in &program.global(global).init {
            if let InitValue::Address(symbol, _) = init.value {
                add(unit, symbol);
            }
        }
    }
    for id in program.functions.ids() {
        for value in program.function(id).values.iter() {
            if let ValueKind::Address(symbol, _) = value.kind {
                add(program.unit_of(id), symbol);
            }
        }
    }
    all
}

/// What a caller could be hurt by.
fn effects(summary: &Summary) -> BTreeSet<String> {
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
fn takes_null(summary: &Summary, parameter: usize) -> bool {
    summary.outcomes.iter().any(|outcome| {
        let excluded = |(term, low, high, holes): &(TermId, i64, i64, Vec<i64>)| {
            summary.terms[term.index()] == Term::Param(parameter as u32)
                && (*low > 0 || *high < 0 || holes.contains(&0))
        };
        !outcome.ranges.iter().any(excluded)
    })
}

/// Whether each way through releases or stores what a parameter points to, by its result.
fn taken(summary: &Summary, parameter: usize) -> Vec<Way<bool>> {
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

fn number(summary: &Summary, outcome: &caulk_analysis::Outcome) -> Option<i64> {
    match summary.terms[outcome.result?.index()] {
        Term::Int(value) => Some(value),
        _ => None,
    }
}

/// Parameters that a way through changes, passes on or stores, by its result: they may lie in what it drains.
fn touched(summary: &Summary) -> Vec<Way<BTreeSet<usize>>> {
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
fn always_releases_first(summary: &Summary) -> bool {
    summary.outcomes.iter().all(|outcome| {
        let null = |(term, low, high, _): &(TermId, i64, i64, Vec<i64>)| {
            summary.terms[term.index()] == Term::Param(0) && *low == 0 && *high == 0
        };
        let gone = outcome.objs.iter().any(|(obj, known)| is_first(summary, *obj) && known.status.must(Status::FREED));
        gone || outcome.ranges.iter().any(null)
    })
}

/// Some way through releases what the first parameter points to.
fn releases_first(summary: &Summary) -> bool {
    let is_first = |obj: &ObjId| is_first(summary, *obj);
    !summary.degraded
        && summary
            .outcomes
            .iter()
            .any(|outcome| outcome.objs.iter().any(|(obj, known)| is_first(obj) && known.status.must(Status::FREED)))
}

fn object(summary: &Summary, id: ObjId) -> String {
    match &summary.objects[id.index()] {
        Object::Deref(base) => format!("*{}", term(summary, *base)),
        other => format!("{other:?}"),
    }
}

fn term(summary: &Summary, id: TermId) -> String {
    match &summary.terms[id.index()] {
        Term::Content { obj, off: Off::At(at), .. } => format!("{}[{at}]", object(summary, *obj)),
        Term::Content { obj, .. } => format!("{}[?]", object(summary, *obj)),
        Term::Addr { obj, off } => format!("&{}{off:?}", object(summary, *obj)),
        Term::Param(index) => format!("arg{index}"),
        Term::Elem { base, .. } => format!("{}[…]", term(summary, *base)),
        Term::Int(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}
