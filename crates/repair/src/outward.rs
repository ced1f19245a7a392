//! What a function writes behind the pointers that lie in its arguments: numbers and flags that belong to others.
//!
//! ```c
//! void item_free(struct item *i) {
//!     i->pool->live--;          // outward: whose pool it is, is not for the item to say
//!     i->text = NULL;           // its own
//!     i->buf->used = 0;         // goes with it: the next line hands `i->buf` on
//!     buf_free(i->buf);
//! }
//! ```
//!
//! # Known imprecision
//! - Pointers that are linked anew do not count: destructors take lists apart.

use caulk_analysis::Analysis;
use caulk_ir::{Call, Callee, FuncId, Function, MemberId, Op, Target, Ty, ValueId, ValueKind};
use caulk_models::{Effect, Place};

use crate::survey::releases_first;

/// Where a pointer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A parameter, or a part of what it leads to.
    Given,
    /// Read from memory that somebody gave, so many times.
    Behind(u32),
    Elsewhere,
}

/// Does a function write in what it was given, and numbers behind that?
#[derive(Default)]
pub struct Written {
    pub given: bool,
    pub behind: bool,
}

pub fn written(analysis: &Analysis<'_>, id: FuncId) -> Written {
    let function = analysis.knowledge.program.function(id);
    let mut all = Written::default();
    for inst in function.insts.iter() {
        // Pointers that are linked anew do not count, unless it is the end of a link.
        let (linked, cut) = match inst.op {
            Op::Store { value, .. } => (
                function.values[value].ty == Ty::Ptr,
                matches!(function.values[value].kind, ValueKind::Null | ValueKind::Zero),
            ),
            _ => (false, false),
        };
        for ptr in places(analysis, id, &inst.op) {
            match origin(function, ptr) {
                Origin::Given => all.given = true,
                Origin::Behind(reads) if !linked || cut && reads == 1 => {
                    all.behind |= !is_released(analysis, id, ptr);
                }
                _ => {}
            }
        }
    }
    all
}

/// The places that an instruction writes to.
pub fn places(analysis: &Analysis<'_>, id: FuncId, op: &Op) -> Vec<ValueId> {
    let (program, function) = (analysis.knowledge.program, analysis.knowledge.program.function(id));
    match op {
        Op::Store { ptr, .. } | Op::Atomic { ptr, .. } | Op::Copy { dst: ptr, .. } | Op::Fill { dst: ptr, .. } => {
            vec![*ptr]
        }
        Op::Call(call) => {
            let Callee::Symbol(symbol) = call.callee else { return Vec::new() };
            let Target::Extern(external) = program.target(program.unit_of(id), symbol) else { return Vec::new() };
            let is_pointer = |value: &ValueId| function.values[*value].ty == Ty::Ptr;
            let pointers = || call.args.iter().copied().filter(is_pointer).collect();
            // Who is not known may write anywhere.
            let Some(model) = analysis.knowledge.model(*external) else { return pointers() };
            let written = model.effects.iter().flat_map(|effect| match *effect {
                Effect::Writes { arg, .. } => arg as usize..arg as usize + 1,
                Effect::WritesRest { from } => from as usize..call.args.len(),
                _ => 0..0,
            });
            written.filter_map(|at| call.args.get(at).copied()).filter(is_pointer).collect()
        }
        _ => Vec::new(),
    }
}

/// Where a pointer comes from.
pub fn origin(function: &Function, ptr: ValueId) -> Origin {
    const STEPS: u32 = 64;
    let (mut at, mut reads) = (ptr, 0);
    for _ in 0..STEPS {
        match function.values[at].kind {
            ValueKind::Param(_) if reads == 0 => return Origin::Given,
            ValueKind::Param(_) => return Origin::Behind(reads),
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Offset { base, .. } => at = *base,
                Op::Cast { a, .. } => at = *a,
                Op::Load { ptr } => {
                    reads += 1;
                    at = *ptr;
                }
                _ => break,
            },
            _ => break,
        }
    }
    Origin::Elsewhere
}

/// Does the function hand what the pointer leads into to somebody who releases it?
fn is_released(analysis: &Analysis<'_>, id: FuncId, ptr: ValueId) -> bool {
    let function = analysis.knowledge.program.function(id);
    let Some(from) = read_from(function, ptr) else { return false };
    function.insts.iter().any(|inst| match &inst.op {
        Op::Call(call) => {
            call.args.first().is_some_and(|arg| read_from(function, *arg) == Some(from)) && releases(analysis, id, call)
        }
        _ => false,
    })
}

/// Does the callee release its first argument?
pub fn releases(analysis: &Analysis<'_>, id: FuncId, call: &Call) -> bool {
    let program = analysis.knowledge.program;
    let Callee::Symbol(symbol) = call.callee else { return false };
    match program.target(program.unit_of(id), symbol) {
        Target::Functions(all) => {
            all.iter().all(|one| analysis.knowledge.summary(*one).is_some_and(|known| releases_first(&known)))
        }
        Target::Extern(external) => analysis.knowledge.model(*external).is_some_and(|model| {
            model.effects.iter().any(|effect| matches!(effect, Effect::Releases { place: Place::Arg(0), .. }))
        }),
        Target::Globals(_) => false,
    }
}

/// The member that a pointer was read from, or the place.
fn read_from(function: &Function, ptr: ValueId) -> Option<(Option<MemberId>, i64)> {
    let mut at = ptr;
    loop {
        let ValueKind::Inst(inst) = function.values[at].kind else { return None };
        match &function.insts[inst].op {
            Op::Offset { base, .. } => at = *base,
            Op::Cast { a, .. } => at = *a,
            Op::Load { ptr } => {
                let ValueKind::Inst(inst) = function.values[*ptr].kind else { return Some((None, 0)) };
                let Op::Offset { member, bytes, .. } = function.insts[inst].op else { return None };
                return Some((member, bytes));
            }
            _ => return None,
        }
    }
}
