//! Builds the program: which definition each name means in each unit.
//!
//! A build often makes several programs, and a name means what the linker would have made of it there:
//!
//! ```text
//! a.o: main, usage   b.o: main, usage   common.o: die (calls usage)   link a: a.o common.o   link b: b.o common.o
//!   in a.o,      `die`   -> common.o's
//!   in common.o, `usage` -> a.o's and b.o's: one for each program it is linked into
//! ```
//!
//! Within one link unit a strong definition wins over a common one, a common one over a weak one, and the first in
//! link order among equals. `static` names and strong definitions mean the unit's own. An `inline` body that is only
//! available counts when there is no real one.
//!
//! Where no link command is known, the nearest definition is taken: the same folder first, then one folder up, and so
//! on; never one from another program, that is, from a unit with a `main` when there is one here too.
//!
//! # Invariants
//! - The result depends on units and link units alone, in their order; so a program can be linked again with some
//!   units replaced.
//! - External names are sorted.

mod flatten;
mod record;

use std::path::Path;
use std::sync::Arc;

use caulk_base::{FxHashMap, Id, IdVec};
use caulk_ir::{
    ExternId, FuncId, GlobalId, LinkUnit, LinkUnitId, Linkage, Program, SymbolId, SymbolKind, Target, Unit, UnitId,
};
use rayon::prelude::*;

pub use flatten::link_units;
pub use record::{LINKS_NAME, LinkKind, LinkRecord};

/// Puts units together, resolving every symbol.
pub fn link(units: Vec<Arc<Unit>>, link_units: Vec<LinkUnit>) -> Program {
    link_with(units, link_units, &[])
}

/// `others`: external names that are there whether anybody uses them or not.
fn link_with(units: Vec<Arc<Unit>>, link_units: Vec<LinkUnit>, others: &[&str]) -> Program {
    let mut program = Program::new(units);
    program.link_units = IdVec::from(link_units);
    let linker = Linker::new(&program);
    let resolved: Vec<Vec<Meaning<'_>>> =
        program.units.as_slice().par_iter().enumerate().map(|(unit, _)| linker.unit(UnitId::new(unit))).collect();
    let names = resolved.iter().flatten().filter_map(|meaning| match meaning {
        Meaning::Extern(name) => Some(*name),
        Meaning::Found(_) => None,
    });
    let mut externs: Vec<&str> = names.chain(others.iter().copied()).collect();
    externs.sort_unstable();
    externs.dedup();
    let index: FxHashMap<&str, ExternId> =
        externs.iter().enumerate().map(|(at, name)| (*name, ExternId::new(at))).collect();
    let targets = resolved.iter().map(|meanings| meanings.iter().map(|meaning| meaning.target(&index)).collect());
    let targets = targets.collect();
    let externs = externs.into_iter().map(str::to_owned).collect();
    program.targets = targets;
    program.externs = externs;
    program
}

/// The same program with some units replaced, as after a patch.
/// Names in `externs` are there whether anybody uses them or not, so that externals keep their numbers.
pub fn relink(program: &Program, replaced: &[(UnitId, Arc<Unit>)], externs: &[&str]) -> Program {
    let mut units: Vec<Arc<Unit>> = program.units.iter().cloned().collect();
    for (id, unit) in replaced {
        if let Some(slot) = units.get_mut(id.index()) {
            *slot = Arc::clone(unit);
        }
    }
    let mut linked = link_with(units, program.link_units.as_slice().to_vec(), externs);
    linked.gaps = program.gaps.clone();
    linked
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Definition {
    Function(FuncId),
    Global(GlobalId),
}

enum Meaning<'a> {
    Found(Vec<Definition>),
    Extern(&'a str),
}

impl Meaning<'_> {
    fn target(&self, externs: &FxHashMap<&str, ExternId>) -> Target {
        match self {
            Meaning::Extern(name) => Target::Extern(externs[name]),
            Meaning::Found(found) => {
                let functions: Vec<FuncId> = found
                    .iter()
                    .filter_map(|definition| match definition {
                        Definition::Function(id) => Some(*id),
                        Definition::Global(_) => None,
                    })
                    .collect();
                if !functions.is_empty() {
                    return Target::Functions(functions);
                }
                let global = |definition: &Definition| match definition {
                    Definition::Global(id) => Some(*id),
                    Definition::Function(_) => None,
                };
                Target::Globals(found.iter().filter_map(global).collect())
            }
        }
    }
}

/// A definition that other units can see.
#[derive(Clone, Copy)]
struct Candidate {
    unit: UnitId,
    /// Smaller wins.
    strength: u8,
    definition: Definition,
}

/// Units that are linked into the same link units see the same names.
#[derive(Default)]
struct Neighbours {
    links: Vec<LinkUnitId>,
    /// One bit for each unit that shares a link unit.
    visible: Vec<u64>,
    /// All of them are whole programs: what they do not define comes from a library.
    complete: bool,
}

impl Neighbours {
    fn sees(&self, unit: UnitId) -> bool {
        self.visible.get(unit.index() / 64).is_some_and(|word| word >> (unit.index() % 64) & 1 == 1)
    }
}

struct Linker<'a> {
    program: &'a Program,
    candidates: FxHashMap<&'a str, Vec<Candidate>>,
    neighbours: Vec<Neighbours>,
    /// For each unit, which of `neighbours`; the first one has no link units.
    class: IdVec<UnitId, usize>,
    positions: IdVec<LinkUnitId, FxHashMap<UnitId, usize>>,
    has_main: IdVec<UnitId, bool>,
    /// How many units of the same source come before: twins of one flavour (as with and without -fPIC) belong together.
    twin: IdVec<UnitId, u32>,
}

impl<'a> Linker<'a> {
    fn new(program: &'a Program) -> Self {
        let mut linker = Linker {
            program,
            candidates: FxHashMap::default(),
            neighbours: vec![Neighbours::default()],
            class: IdVec::filled(program.units.len(), 0),
            positions: IdVec::new(),
            has_main: IdVec::filled(program.units.len(), false),
            twin: IdVec::new(),
        };
        linker.collect_candidates();
        linker.collect_neighbours();
        linker
    }

    fn collect_candidates(&mut self) {
        let mut twins: FxHashMap<&str, u32> = FxHashMap::default();
        for (unit_id, unit) in self.program.units.iter_ids() {
            let seen = twins.entry(unit.source.as_str()).or_default();
            self.twin.push(*seen);
            *seen += 1;
            for (symbol_id, symbol) in unit.symbols.iter_ids() {
                let strength = match symbol.linkage {
                    Linkage::External => 0,
                    Linkage::Common => 1,
                    Linkage::Weak => 2,
                    Linkage::Internal | Linkage::AvailableExternally => continue,
                };
                let Some(definition) = self.own(unit_id, symbol_id) else { continue };
                self.candidates.entry(&symbol.name).or_default().push(Candidate {
                    unit: unit_id,
                    strength,
                    definition,
                });
                self.has_main[unit_id] |= symbol.name == "main";
            }
        }
    }

    fn collect_neighbours(&mut self) {
        let units = self.program.units.len();
        let mut links: IdVec<UnitId, Vec<LinkUnitId>> = IdVec::filled(units, Vec::new());
        for (link_id, link) in self.program.link_units.iter_ids() {
            let mut positions = FxHashMap::default();
            for (at, &unit) in link.units.iter().enumerate().filter(|(_, unit)| unit.index() < units) {
                if positions.insert(unit, at).is_none() {
                    links[unit].push(link_id);
                }
            }
            self.positions.push(positions);
        }
        let mut classes: FxHashMap<Vec<LinkUnitId>, usize> = FxHashMap::default();
        for (unit, links) in links.iter_ids().filter(|(_, links)| !links.is_empty()) {
            self.class[unit] = match classes.get(links) {
                Some(&class) => class,
                None => {
                    classes.insert(links.clone(), self.neighbours.len());
                    self.neighbours.push(self.neighbours_of(links));
                    self.neighbours.len() - 1
                }
            };
        }
    }

    fn neighbours_of(&self, links: &[LinkUnitId]) -> Neighbours {
        let mut visible = vec![0u64; self.program.units.len().div_ceil(64)];
        let mut complete = true;
        for &link in links {
            let mut program = false;
            for &unit in &self.program.link_units[link].units {
                if let Some(word) = visible.get_mut(unit.index() / 64) {
                    *word |= 1 << (unit.index() % 64);
                    program |= self.has_main.get(unit).copied().unwrap_or(false);
                }
            }
            complete &= program;
        }
        Neighbours { links: links.to_vec(), visible, complete }
    }

    /// The unit's own definition of a symbol, through aliases.
    fn own(&self, unit: UnitId, symbol: SymbolId) -> Option<Definition> {
        let symbols = &self.program.units[unit].symbols;
        let mut at = symbol;
        // An alias of an alias of …: never longer than there are symbols.
        for _ in 0..=symbols.len() {
            match symbols.get(at)?.kind {
                SymbolKind::Function(local) => {
                    return Some(Definition::Function(self.program.function_id(unit, local)));
                }
                SymbolKind::Global(local) => return Some(Definition::Global(self.program.global_id(unit, local))),
                SymbolKind::Alias(next) => at = next,
                SymbolKind::DeclaredFunction(_) | SymbolKind::DeclaredGlobal => return None,
            }
        }
        None
    }

    /// The name to look up elsewhere: that of the symbol, or of what it is an alias of without a definition here.
    fn name(&self, unit: UnitId, symbol: SymbolId) -> &'a str {
        let symbols = &self.program.units[unit].symbols;
        let mut at = symbol;
        for _ in 0..symbols.len() {
            match symbols.get(at).map(|symbol| &symbol.kind) {
                Some(SymbolKind::Alias(next)) if symbols.get(*next).is_some() => at = *next,
                _ => break,
            }
        }
        &symbols[at].name
    }

    fn unit(&self, unit: UnitId) -> Vec<Meaning<'a>> {
        let symbols = &self.program.units[unit].symbols;
        symbols.iter_ids().map(|(id, symbol)| self.symbol(unit, id, symbol.linkage)).collect()
    }

    fn symbol(&self, unit: UnitId, symbol: SymbolId, linkage: Linkage) -> Meaning<'a> {
        let own = self.own(unit, symbol);
        if let (Some(own), Linkage::Internal | Linkage::External) = (own, linkage) {
            return Meaning::Found(vec![own]);
        }
        let name = if own.is_some() { &self.program.units[unit].symbols[symbol].name } else { self.name(unit, symbol) };
        let mut found = self.look_up(unit, name);
        found.sort_unstable();
        found.dedup();
        match own {
            _ if !found.is_empty() => Meaning::Found(found),
            Some(own) => Meaning::Found(vec![own]),
            None => Meaning::Extern(name),
        }
    }

    fn look_up(&self, unit: UnitId, name: &str) -> Vec<Definition> {
        let Some(candidates) = self.candidates.get(name) else { return Vec::new() };
        let neighbours = &self.neighbours[self.class[unit]];
        if let [only] = candidates.as_slice()
            && neighbours.sees(only.unit)
        {
            return vec![only.definition];
        }
        let mut found = Vec::new();
        for &link in &neighbours.links {
            let positions = &self.positions[link];
            let placed = candidates.iter().filter_map(|c| Some((c.strength, *positions.get(&c.unit)?, c.definition)));
            found.extend(placed.min_by_key(|&(strength, position, _)| (strength, position)).map(|(.., it)| it));
        }
        if found.is_empty() && !neighbours.complete { self.nearest(unit, candidates) } else { found }
    }

    /// Without link commands: the definitions nearest in the tree of folders.
    fn nearest(&self, unit: UnitId, candidates: &[Candidate]) -> Vec<Definition> {
        let home = Path::new(&self.program.units[unit].source);
        let main_here = self.has_main[unit];
        let possible = candidates.iter().filter(|c| c.unit == unit || !(main_here && self.has_main[c.unit]));
        let ranked = possible.map(|candidate| {
            let other = Path::new(&self.program.units[candidate.unit].source);
            let twins = self.twin[candidate.unit] == self.twin[unit];
            ((folders_up(home, other), candidate.strength, !twins), candidate.definition)
        });
        let ranked: Vec<_> = ranked.collect();
        let Some(best) = ranked.iter().map(|(rank, _)| *rank).min() else { return Vec::new() };
        // Tentative and weak definitions of one name are one object, not several.
        let all = ranked.into_iter().filter(|(rank, _)| *rank == best).map(|(_, definition)| definition);
        if best.1 == 0 { all.collect() } else { all.take(1).collect() }
    }
}

/// How many folders up from one file lies the first that holds the other too.
fn folders_up(from: &Path, to: &Path) -> usize {
    from.ancestors().skip(1).position(|folder| to.starts_with(folder)).unwrap_or(usize::MAX / 2)
}

#[cfg(test)]
mod tests;
