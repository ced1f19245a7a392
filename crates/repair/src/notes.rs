//! What a survey says of each function, for the next program that is almost the same.
//!
//! # Invariants
//! - What is noted of a function depends on what the analysis learned of it, and on the positions of its unit. Both are
//!   known again by their addresses, which the note keeps in place.

use std::collections::BTreeSet;
use std::sync::Arc;

use caulk_analysis::{Analysis, Doubt, Learned};
use caulk_base::FxHashMap;
use caulk_ir::{FuncId, InitValue, InstId, Program, SymbolId, Target, Unit, UnitId, ValueKind};

use crate::sides::Sides;
use crate::survey::{self, Spot, Way};
use crate::unset;
use crate::watched::{self, Watched};

/// Notes on the functions of the last program.
#[derive(Default)]
pub struct Notes {
    functions: FxHashMap<FuncId, Note>,
    addressed: FxHashMap<UnitId, Addressed>,
    /// Of the first program: patches do not change it.
    sides: Option<Arc<Sides>>,
    watched: Option<Arc<Watched>>,
    passing: Option<Arc<BTreeSet<(String, String)>>>,
}

struct Note {
    learned: Arc<Learned>,
    unit: Arc<Unit>,
    noted: Arc<Noted>,
}

/// The functions whose address goes anywhere in a unit, of a program with so many functions.
struct Addressed {
    unit: Arc<Unit>,
    functions: usize,
    names: BTreeSet<String>,
}

/// What a survey says of one function.
pub struct Noted {
    pub file: String,
    pub releases: Vec<(Spot, Vec<Doubt>)>,
    pub degraded: bool,
    /// Parameters that may be null.
    pub null_taking: Vec<usize>,
    pub needs_first: bool,
    pub calm: bool,
    pub takes: Vec<(usize, Vec<Way<bool>>)>,
    pub borrows: Vec<usize>,
    /// Parameters that may be released or kept.
    pub keeps: Vec<usize>,
    pub drains: Option<Vec<Way<BTreeSet<usize>>>>,
    pub releases_first: bool,
    pub effects: Option<BTreeSet<String>>,
}

impl Notes {
    pub(crate) fn sides(&mut self, analysis: &Analysis<'_>) -> Arc<Sides> {
        self.sides.get_or_insert_with(|| Arc::new(Sides::of(analysis))).clone()
    }

    pub(crate) fn watched(&mut self, program: &Program) -> Arc<Watched> {
        self.watched.get_or_insert_with(|| Arc::new(watched::of(program))).clone()
    }

    pub(crate) fn passing(&mut self, analysis: &Analysis<'_>) -> Arc<BTreeSet<(String, String)>> {
        self.passing.get_or_insert_with(|| Arc::new(passing(analysis))).clone()
    }

    pub fn of(&mut self, analysis: &Analysis<'_>, id: FuncId) -> Arc<Noted> {
        let program = analysis.knowledge.program;
        let (learned, unit) = (&analysis.learned[id], &program.units[program.unit_of(id)]);
        if let Some(note) = self.functions.get(&id)
            && Arc::ptr_eq(&note.learned, learned)
            && Arc::ptr_eq(&note.unit, unit)
        {
            return Arc::clone(&note.noted);
        }
        let noted = Arc::new(note(analysis, id));
        let kept = Note { learned: Arc::clone(learned), unit: Arc::clone(unit), noted: Arc::clone(&noted) };
        self.functions.insert(id, kept);
        noted
    }

    /// Names of the functions whose address goes anywhere.
    pub fn addressed(&mut self, program: &Program) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for (id, unit) in program.units.iter_ids() {
            let functions = program.functions.len();
            let known = self.addressed.get(&id);
            if !known.is_some_and(|known| Arc::ptr_eq(&known.unit, unit) && known.functions == functions) {
                let names = addressed(program, id);
                self.addressed.insert(id, Addressed { unit: Arc::clone(unit), functions, names });
            }
            all.extend(self.addressed[&id].names.iter().cloned());
        }
        all
    }
}

fn note(analysis: &Analysis<'_>, id: FuncId) -> Noted {
    let program = analysis.knowledge.program;
    let function = program.function(id);
    let releases =
        analysis.releases(id).iter().map(|fact| (spot(analysis, id, fact.inst), unset::doubts(analysis, id, fact)));
    let mut noted = Noted {
        file: program.units[program.unit_of(id)].source.clone(),
        releases: releases.collect(),
        degraded: false,
        null_taking: Vec::new(),
        needs_first: false,
        calm: false,
        takes: Vec::new(),
        borrows: Vec::new(),
        keeps: (0..function.param_count as usize).collect(),
        drains: None,
        releases_first: false,
        effects: None,
    };
    let Some(summary) = analysis.knowledge.summary(id) else { return noted };
    let parameters = 0..function.param_count as usize;
    noted.degraded = summary.degraded;
    noted.null_taking = parameters.clone().filter(|at| survey::takes_null(&summary, *at)).collect();
    noted.needs_first = !parameters.is_empty() && !summary.outcomes.is_empty() && !noted.null_taking.contains(&0);
    noted.borrows = parameters.clone().filter(|at| survey::borrows(&summary, *at)).collect();
    noted.keeps = parameters.clone().filter(|at| survey::may_take(&summary, *at)).collect();
    let taken = parameters.map(|at| (at, survey::taken(&summary, at)));
    noted.takes = taken.filter(|(_, ways)| ways.iter().any(|way| way.1)).collect();
    noted.drains = (summary.drained && !survey::always_releases_first(&summary)).then(|| survey::touched(&summary));
    noted.calm = survey::is_calm(&summary);
    noted.releases_first = survey::releases_first(&summary);
    noted.effects = Some(survey::effects(&summary));
    noted
}

pub fn spot(analysis: &Analysis<'_>, id: FuncId, inst: InstId) -> Spot {
    let program = analysis.knowledge.program;
    let unit = &program.units[program.unit_of(id)];
    let function = program.function(id);
    let loc = unit.locs[function.insts[inst].loc];
    let file = loc.file.map(|file| unit.files[file].clone()).unwrap_or_default();
    Spot { file, line: loc.line, column: loc.column, function: function.name.clone() }
}

/// Functions and the static variables by which they pass something on; only names that mean one thing in the program.
fn passing(analysis: &Analysis<'_>) -> BTreeSet<(String, String)> {
    let program = analysis.knowledge.program;
    let name = |global| {
        let (unit, _) = program.globals[global];
        program.units[unit].symbols[program.global(global).symbol].name.as_str()
    };
    let mut named: FxHashMap<&str, usize> = FxHashMap::default();
    program.globals.ids().for_each(|global| *named.entry(name(global)).or_default() += 1);
    let single = |function: &FuncId| program.functions_named(&program.function(*function).name).len() == 1;
    let mut found = BTreeSet::new();
    for global in program.globals.ids().filter(|global| named[name(*global)] == 1) {
        let unit = program.globals[global].0;
        let by =
            |function: &FuncId| program.unit_of(*function) == unit && analysis.knowledge.only_passes(global, *function);
        let owners = program.functions.ids().filter(by).filter(single);
        found.extend(owners.map(|owner| (program.function(owner).name.clone(), name(global).to_owned())));
    }
    found
}

fn addressed(program: &Program, id: UnitId) -> BTreeSet<String> {
    let mut all: BTreeSet<&str> = BTreeSet::new();
    let mut add = |symbol: SymbolId| {
        if let Target::Functions(functions) = program.target(id, symbol) {
            all.extend(functions.iter().map(|id| program.function(*id).name.as_str()));
        }
    };
    let unit = &program.units[id];
    for init in unit.globals.iter().flat_map(|global| &global.init) {
        if let InitValue::Address(symbol, _) = init.value {
            add(symbol);
        }
    }
    for value in unit.functions.iter().flat_map(|function| function.values.iter()) {
        if let ValueKind::Address(symbol, _) = value.kind {
            add(symbol);
        }
    }
    all.into_iter().map(str::to_owned).collect()
}
