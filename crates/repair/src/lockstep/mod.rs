//! Is the program otherwise unchanged? The functions that a patch touches, before and after it, run in lockstep.
//!
//! The rest of the proof compares findings, releases and what callers are told of blocks. None of that sees that a `return
//! -1` became `ok = -1; goto out;` with a `bool ok`. So both functions are walked together, from one visible act to the
//! next: calls, writes, decisions, returns. What both do must be the same, given the same:
//!
//! ```c
//! int work(const char *s) {                  int work(const char *s) {
//!     bool ok = false;                           bool ok = false;
//!     char *p = strdup(s);                       char *p = strdup(s);
//!     if (!p)                                    if (!p)
//!         return -1;                                 return -1;
//!     if (strlen(p) > 5)                         if (strlen(p) > 5) {
//!         return -1;                                 ok = -1;
//!                                                    goto out;
//!                                                }
//! ```
//!
//! | old | new | known |
//! | --- | --- | --- |
//! | `strdup(s)` | `strdup(s)` | both results are t1 |
//! | `t1 != null`? | `t1 != null`? | the same question; on to both answers |
//! | `strlen(t1)` | `strlen(t1)` | both results are t2 |
//! | `5 < t2`? | `5 < t2`? | the same; where it is true: |
//! | return -1 | `free(t1)` | the new one releases, which it may |
//! | return -1 | return 1 | **differs** |
//!
//! What the new function may do alone: release, ask (both answers are followed), write into its own variables, write again
//! what is there, and null over a pointer to a released block as long as nobody else looks at it. What the old one may do
//! alone: ask, and release what the patch does not release any more, or later. Where the old function looks into a block
//! that it has released, or releases it again, it is no measure any more.
//!
//! # Invariants
//! - Places in the text only say who goes first. What is equal, and what may be done alone, does not depend on them,
//!   except for what the program's representation leaves out, such as floating constants.
//! - A pair of places that is come to again adds nothing if no less is known there than before. So the walk ends.
//!
//! # Known imprecision
//! - A release is taken to do nothing else; see [`crate::sides`]. Reads do not count as acts, not even of `volatile` memory.
//! - A pointer is not read as a small number.

mod alone;
mod callee;
mod cells;
mod exec;
mod fold;
mod literals;
mod rules;
mod side;
mod state;
mod terms;
#[cfg(test)]
mod tests;
mod walk;

use std::path::Path;
use std::sync::Arc;

use caulk_base::FxHashMap;
use caulk_ir::{Callee, Function, Op, SymbolId, Unit, ValueKind};

use self::rules::Rules;
use self::terms::Which;
use self::walk::Walk;
use crate::change::Change;
use crate::survey::Survey;

/// What is known of two functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The new one does what the old one did, and releases.
    Same,
    Differs {
        old: u32,
        new: u32,
        what: String,
    },
    Unknown {
        why: String,
    },
}

/// Compares all functions that are others after a change.
pub fn compare(before: &Survey, after: &Survey, change: &Change, release: &str) -> Verdict {
    let rules = Rules::new(before, after, release);
    let (old, new) = (&before.program, &after.program);
    if old.units.len() != new.units.len() {
        return Verdict::Unknown { why: "the program has other parts".into() };
    }
    for (id, unit) in new.units.iter_ids().filter(|(id, unit)| !Arc::ptr_eq(&old.units[*id], unit)) {
        let verdict = of_unit(&old.units[id], unit, change, &rules);
        if verdict != Verdict::Same {
            return verdict;
        }
    }
    Verdict::Same
}

fn of_unit(old: &Unit, new: &Unit, change: &Change, rules: &Rules<'_>) -> Verdict {
    let named: FxHashMap<&str, &Function> =
        old.functions.iter().map(|function| (function.name.as_str(), function)).collect();
    if old.functions.len() != new.functions.len() {
        return Verdict::Unknown { why: "the file has other functions".into() };
    }
    let text = |which: Which, file: &str, line: u32, column: u32| {
        let here = Path::new(file) == change.file;
        match which {
            _ if !here => Some((line, column)),
            Which::New => (!change.is_new(line, column)).then_some((line, column)),
            Which::Old => (!change.is_gone(line, column)).then(|| change.position(line, column)),
        }
    };
    for function in new.functions.iter() {
        let Some(was) = named.get(function.name.as_str()) else {
            return Verdict::Unknown { why: "the file has other functions".into() };
        };
        if is_alike((old, was), (new, function)) {
            continue;
        }
        if (was.param_count, was.ret, was.variadic) != (function.param_count, function.ret, function.variadic) {
            return Verdict::Unknown { why: "the function is called in another way".into() };
        }
        let (old, new) = side::pair((old, was), (new, function), &text);
        let verdict = Walk::new(old, new, rules, 0).run();
        if verdict != Verdict::Same {
            return verdict;
        }
    }
    Verdict::Same
}

/// Whether two functions are the same but for positions and the numbers of names.
fn is_alike(old: (&Unit, &Function), new: (&Unit, &Function)) -> bool {
    let name = |a: SymbolId, b: SymbolId| old.0.symbols[a].name == new.0.symbols[b].name;
    let value = |(a, b): (&caulk_ir::Value, &caulk_ir::Value)| match (a.kind, b.kind) {
        (ValueKind::Address(x, at), ValueKind::Address(y, to)) => a.ty == b.ty && at == to && name(x, y),
        _ => a == b,
    };
    let op = |(a, b): (&caulk_ir::Inst, &caulk_ir::Inst)| {
        a.result == b.result
            && match (&a.op, &b.op) {
                (Op::Call(x), Op::Call(y)) => match (&x.callee, &y.callee) {
                    (Callee::Symbol(p), Callee::Symbol(q)) => name(*p, *q) && x.args == y.args,
                    (p, q) => p == q && x.args == y.args,
                },
                (
                    Op::Offset { base, bytes, indices, .. },
                    Op::Offset { base: other, bytes: far, indices: others, .. },
                ) => base == other && bytes == far && indices == others,
                (a, b) => a == b,
            }
    };
    let (old, new) = (old.1, new.1);
    old.blocks == new.blocks
        && (old.values.len(), old.insts.len()) == (new.values.len(), new.insts.len())
        && old.values.iter().zip(new.values.iter()).all(value)
        && old.insts.iter().zip(new.insts.iter()).all(op)
}
