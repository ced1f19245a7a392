//! Parts of a block that a releasing function looks at and that nobody has written yet.
//!
//! ```c
//! struct rec *r = malloc(sizeof *r);
//! if (!text)
//!     return NULL;                    // `rec_free(r)` here would free whatever `r->name` was in memory before
//! r->name = strdup(text);
//! ```
//!
//! What is looked at only if some part of the block says so is left to the analysis, which follows each way by itself.
//!
//! # Known imprecision
//! - Parts at places that are not constant are not looked at.

use std::collections::BTreeSet;

use caulk_analysis::{Analysis, Doubt, ReleaseFact};
use caulk_ir::{Block, Callee, FuncId, Function, Op, Target, Ty, ValueId, ValueKind};
use caulk_models::{Effect, Place};

/// Calls of callees deeper than this are not followed.
const DEPTH: u32 = 4;

/// What speaks against a release.
pub fn doubts(analysis: &Analysis<'_>, id: FuncId, fact: &ReleaseFact) -> Vec<Doubt> {
    let mut doubts = fact.doubts.clone();
    if is_unset(analysis, id, fact) && !doubts.contains(&Doubt::Unset) {
        doubts.push(Doubt::Unset);
        doubts.sort();
    }
    doubts
}

fn is_unset(analysis: &Analysis<'_>, id: FuncId, fact: &ReleaseFact) -> bool {
    let Some((argument, written)) = &fact.written else { return false };
    let program = analysis.knowledge.program;
    let Op::Call(call) = &program.function(id).insts[fact.inst].op else { return false };
    let Callee::Symbol(symbol) = call.callee else { return false };
    let Target::Functions(callees) = program.target(program.unit_of(id), symbol) else { return false };
    let is_written = |&(offset, size): &(i64, i64)| {
        written.iter().any(|&(start, length)| start <= offset && offset + size <= start + length as i64)
    };
    callees.iter().any(|&callee| {
        let mut parts = BTreeSet::new();
        looked_at(analysis, callee, *argument, 0, DEPTH, &mut parts);
        !parts.iter().all(is_written)
    })
}

/// The parts that a function looks at of what it is given, whatever lies there: offsets and sizes.
fn looked_at(
    analysis: &Analysis<'_>,
    id: FuncId,
    argument: u32,
    shift: i64,
    depth: u32,
    parts: &mut BTreeSet<(i64, i64)>,
) {
    let program = analysis.knowledge.program;
    let function = program.function(id);
    let (mut open, mut seen) = (vec![function.blocks.ids().next()], BTreeSet::new());
    while let Some(at) = open.pop() {
        let Some(at) = at.filter(|at| seen.insert(*at)) else { continue };
        let Block { first, end } = function.blocks[at];
        for inst in (first.0..end.0).map(caulk_ir::InstId) {
            match &function.insts[inst].op {
                Op::Load { ptr } => {
                    let size = function.insts[inst].result.map_or(8, |value| size(function.values[value].ty));
                    parts.extend(part(function, *ptr, argument).map(|offset| (offset + shift, size)));
                }
                Op::Call(call) => {
                    let Callee::Symbol(symbol) = call.callee else { continue };
                    for (to, arg) in call.args.iter().enumerate() {
                        let Some(offset) = part(function, *arg, argument).map(|offset| offset + shift) else {
                            continue;
                        };
                        match program.target(program.unit_of(id), symbol) {
                            Target::Functions(all) if depth > 0 => {
                                for &one in all {
                                    looked_at(analysis, one, to as u32, offset, depth - 1, parts);
                                }
                            }
                            Target::Extern(external) => {
                                let model = analysis.knowledge.model(*external);
                                if model
                                    .is_some_and(|model| model.effects.iter().any(|one| needs_it(analysis, one, to)))
                                {
                                    parts.insert((offset, 1));
                                }
                            }
                            _ => {}
                        }
                    }
                }
                Op::Jump { to } => open.push(Some(*to)),
                // What the block itself decides is left to the analysis.
                Op::Branch { cond, then, els } if !depends(function, *cond, argument) => {
                    open.extend([Some(*then), Some(*els)]);
                }
                _ => {}
            }
        }
    }
}

/// A library function that releases what lies there: `regfree(&r->pattern)`.
fn needs_it(analysis: &Analysis<'_>, effect: &Effect, argument: usize) -> bool {
    match effect {
        Effect::Releases { family, place: Place::Arg(at), .. } => {
            *at as usize == argument && analysis.knowledge.models.families[*family].is_inline
        }
        _ => false,
    }
}

/// Where in the argument's block a pointer leads.
fn part(function: &Function, ptr: ValueId, argument: u32) -> Option<i64> {
    let (mut at, mut offset) = (ptr, 0i64);
    loop {
        match function.values[at].kind {
            ValueKind::Param(index) => return (index == argument).then_some(offset),
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Offset { base, bytes, indices, .. } if indices.is_empty() => {
                    offset += bytes;
                    at = *base;
                }
                Op::Cast { a, .. } => at = *a,
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// Does the value hang on what lies in the argument's block?
fn depends(function: &Function, value: ValueId, argument: u32) -> bool {
    let (mut open, mut seen) = (vec![value], BTreeSet::new());
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        let ValueKind::Inst(inst) = function.values[at].kind else { continue };
        match &function.insts[inst].op {
            Op::Load { ptr } if part(function, *ptr, argument).is_some() => return true,
            Op::Load { ptr } => open.push(*ptr),
            Op::Offset { base, .. } => open.push(*base),
            Op::Cast { a, .. } => open.push(*a),
            Op::Cmp { a, b, .. } | Op::Bin { a, b, .. } => open.extend([*a, *b]),
            Op::Select { cond, a, b } => open.extend([*cond, *a, *b]),
            Op::Phi { incoming } => open.extend(incoming.iter().map(|entry| entry.1)),
            Op::Call(call) => open.extend(call.args.iter().copied()),
            _ => {}
        }
    }
    false
}

fn size(ty: Ty) -> i64 {
    match ty {
        Ty::Int(bits) => i64::from(bits.div_ceil(8)),
        _ => 8,
    }
}
