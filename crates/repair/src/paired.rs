//! Blocks that are known by a pointer into their middle: only the program's own release knows the way back.
//!
//! ```c
//! char *text = text_new(n);     // malloc(header_of(n) + n) + header_of(n)
//! text_free(text);              // free(text - header_of(text[-1]))
//! ```
//!
//! That the one undoes what the other has done cannot be shown: how long the header is lies in memory. So it is taken from
//! the program, which somewhere gives to this release what this maker has returned.
//!
//! # Invariants
//! - A pointer that was counted up or down on the way from the maker to the release is not what the maker returned.

use std::collections::BTreeSet;

use caulk_ir::{Callee, Function, InstId, Op, Unit, ValueId, ValueKind};

use crate::survey::{Spot, Survey};

/// Whether the release at a place of the program after a change is given nothing but what comes from makers whose blocks
/// the program before it releases in the same way.
pub fn is_own(before: &Survey, after: &Survey, spot: &Spot) -> bool {
    let calls = after.program.units.iter().flat_map(|unit| {
        let functions = unit.functions.iter().filter(|function| function.name == spot.function);
        functions.flat_map(move |function| releases_at(unit, function, spot))
    });
    let mut found = false;
    for (release, makers) in calls {
        let Some(makers) = makers.filter(|makers| !makers.is_empty()) else { return false };
        let known = released_by(before, &release);
        if !makers.is_subset(&known) {
            return false;
        }
        found = true;
    }
    found
}

/// The calls of a function that stand at a place, and who has made what they are given.
fn releases_at(unit: &Unit, function: &Function, spot: &Spot) -> Vec<(String, Option<BTreeSet<String>>)> {
    let here = |inst: &caulk_ir::Inst| {
        let loc = unit.locs[inst.loc];
        (loc.line, loc.column) == (spot.line, spot.column) && loc.file.is_some_and(|file| unit.files[file] == spot.file)
    };
    let calls = function.insts.iter().filter(|inst| here(inst)).filter_map(|inst| match &inst.op {
        Op::Call(call) => Some(&**call),
        _ => None,
    });
    let of = |call: &caulk_ir::Call| {
        let Callee::Symbol(symbol) = call.callee else { return None };
        let given = *call.args.first()?;
        Some((unit.symbols[symbol].name.clone(), makers(unit, function, given)))
    };
    calls.filter_map(of).collect()
}

/// Functions whose results the program gives to a release, as they are.
fn released_by(survey: &Survey, release: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for unit in survey.program.units.iter() {
        for function in unit.functions.iter() {
            for inst in function.insts.iter() {
                let Op::Call(call) = &inst.op else { continue };
                let Callee::Symbol(symbol) = call.callee else { continue };
                if unit.symbols[symbol].name == release
                    && let Some(given) = call.args.first()
                {
                    all.extend(makers(unit, function, *given).into_iter().flatten());
                }
            }
        }
    }
    all
}

/// The functions that may have returned a value. `None`: it may have been computed.
fn makers(unit: &Unit, function: &Function, value: ValueId) -> Option<BTreeSet<String>> {
    let (mut open, mut seen, mut found) = (vec![value], BTreeSet::new(), BTreeSet::new());
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        let ValueKind::Inst(inst) = function.values[at].kind else { continue };
        match &function.insts[inst].op {
            Op::Phi { incoming } => open.extend(incoming.iter().map(|entry| entry.1)),
            Op::Select { a, b, .. } => open.extend([*a, *b]),
            Op::Cast { a, .. } => open.push(*a),
            Op::Load { ptr } => open.extend(stored(function, slot(function, *ptr)?)),
            Op::Call(call) => match call.callee {
                Callee::Symbol(symbol) => _ = found.insert(unit.symbols[symbol].name.clone()),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(found)
}

/// The variable that a pointer leads to.
fn slot(function: &Function, ptr: ValueId) -> Option<InstId> {
    match function.values[ptr].kind {
        ValueKind::Inst(inst) if matches!(function.insts[inst].op, Op::Alloca { .. }) => Some(inst),
        _ => None,
    }
}

/// What is put into a variable.
fn stored(function: &Function, variable: InstId) -> Vec<ValueId> {
    let of = |inst: &caulk_ir::Inst| match inst.op {
        Op::Store { ptr, value } => (slot(function, ptr) == Some(variable)).then_some(value),
        _ => None,
    };
    function.insts.iter().filter_map(of).collect()
}
