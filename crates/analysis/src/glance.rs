//! One function of a program that was changed, with everything else taken to be as it was.
//!
//! A patch that a look at its own function speaks against need not be followed through the whole program:
//!
//! ```text
//! free(p);            // new: `p` may be released already, or is used below
//! ```
//!
//! # Invariants
//! - What is seen at a glance can only speak against a change: that nothing is seen shows nothing. Nobody asks here
//!   whether the rest of the program still means the same to the function.
//! - Where it would take more than the function and what it calls to tell, there is no answer.

use std::sync::Arc;

use caulk_base::{ContentHash, IdVec, Store};
use caulk_ir::{Callee, FuncId, LocalFuncId, Op, Program, Target};
use caulk_models::Models;

use crate::engine::Limits;
use crate::kept::{Identities, Kept, Shelf};
use crate::learned::Learned;
use crate::recursion::component;
use crate::whole::{Analysis, Common, Knowledge};

/// A whole program that was analysed, to compare others with.
pub struct Basis {
    pub(crate) program: Arc<Program>,
    pub(crate) ids: Arc<Identities>,
    pub(crate) contents: IdVec<FuncId, ContentHash>,
    /// Of the summaries.
    pub(crate) hashes: IdVec<FuncId, ContentHash>,
    pub(crate) common: Common,
    learned: IdVec<FuncId, Arc<Learned>>,
}

impl Basis {
    /// The analysis must be the last one for which the shelf was used.
    pub fn of(analysis: &Analysis<'_>, shelf: &Shelf) -> Option<Basis> {
        let last = shelf.last()?;
        let learned = analysis.learned.clone();
        (last.program.functions.len() == learned.len()).then(|| Basis {
            program: last.program,
            ids: last.ids,
            contents: last.contents,
            hashes: last.hashes,
            common: analysis.knowledge.common.clone(),
            learned,
        })
    }

    /// The only function that is another one in a program of the same numbers, and what it contains now.
    fn changed(&self, program: &Program) -> Option<(FuncId, ContentHash)> {
        if !self.ids.fit(&self.program, program) {
            return None;
        }
        let mut changed = None;
        for (unit_id, unit) in program.units.iter_ids() {
            if Arc::ptr_eq(unit, &self.program.units[unit_id]) {
                continue;
            }
            for local in unit.functions.ids() {
                let id = program.function_id(unit_id, LocalFuncId(local.0));
                let content = self.ids.content(program, id);
                if content == self.contents[id] {
                    continue;
                }
                if changed.is_some() {
                    return None;
                }
                changed = Some((id, content));
            }
        }
        changed
    }

    /// Does the function depend on nothing but its callees, and are these finished before it?
    fn stands_alone(&self, program: &Program, id: FuncId) -> bool {
        let graph = &self.common.graph;
        let level = graph.level_of[id];
        let alone = graph.levels.get(level as usize).into_iter().flatten().any(|members| members[..] == [id]);
        let unit = program.unit_of(id);
        let known = |callee: &FuncId| *callee == id || graph.level_of[*callee] < level || self.common.never[*callee];
        let plain = program.function(id).insts.iter().all(|inst| match &inst.op {
            Op::Call(call) => match &call.callee {
                Callee::Value(_) => false,
                Callee::Symbol(symbol) => match program.target(unit, *symbol) {
                    Target::Functions(all) => all.iter().all(known),
                    _ => true,
                },
                _ => true,
            },
            _ => true,
        });
        let nulls = self.program.function(id).insts.ids().any(|inst| graph.nulls.contains(&(id, inst)));
        alone && plain && !nulls && !self.common.never[id]
    }
}

/// The changed function of a program that differs from the basis in one, and an analysis that has nothing new but it.
pub fn glance<'a>(
    basis: &Basis,
    program: &'a Arc<Program>,
    models: &'a Models,
    limits: Limits,
    store: &Store,
    shelf: &Shelf,
) -> Option<(FuncId, Analysis<'a>)> {
    let (id, content) = basis.changed(program)?;
    // Who is wary only looks for reasons to refuse.
    if !limits.wary && !basis.stands_alone(program, id) {
        return None;
    }
    let knowledge = Knowledge::with(program, models, basis.common.clone());
    for (other, learned) in basis.learned.iter_ids().filter(|(other, _)| *other != id) {
        knowledge.set_summary(other, Arc::clone(&learned.summary));
    }
    let (_, new) = if limits.wary {
        component(&knowledge, &[id], limits).into_iter().next().map(|(id, new)| (id, Arc::new(Learned::from(new))))?
    } else {
        let kept = Kept::beside(store, shelf, basis, (id, content));
        let found = kept.find(&knowledge, &[id]);
        let found = found.unwrap_or_else(|| kept.keep(&knowledge, component(&knowledge, &[id], limits)));
        found.into_iter().next()?
    };
    knowledge.set_summary(id, Arc::clone(&new.summary));
    let mut learned = basis.learned.clone();
    learned[id] = Arc::clone(&new);
    let mut analysis = Analysis {
        knowledge,
        learned,
        incidents: new.incidents.clone(),
        suspicions: new.suspicions.clone(),
        gaps: Vec::new(),
        analysed: 1,
    };
    analysis.sort();
    Some((id, analysis))
}
