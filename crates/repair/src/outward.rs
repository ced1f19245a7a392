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
//! - Places are known by their offsets only. Pointers that are linked anew do not count: destructors take lists apart.

use caulk_ir::{Function, MemberId, Op, Ty, ValueId, ValueKind};

/// Where a pointer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A parameter, or a part of what it leads to.
    Given,
    /// Read from memory that somebody gave, so many times.
    Behind(u32),
    Elsewhere,
}

/// Where the function writes numbers, by offset: in what it was given, and behind that.
#[derive(Default)]
pub struct Written {
    pub given: Vec<i64>,
    pub behind: Vec<i64>,
}

pub fn written(function: &Function) -> Written {
    let mut all = Written::default();
    for inst in function.insts.iter() {
        let Op::Store { ptr, value } = inst.op else { continue };
        let null = matches!(function.values[value].kind, ValueKind::Null | ValueKind::Zero);
        let (origin, offset) = origin(function, ptr);
        match origin {
            Origin::Given => all.given.push(offset),
            Origin::Behind(reads) => {
                let counts = function.values[value].ty != Ty::Ptr || null && reads == 1;
                if counts && !is_handed_on(function, ptr) {
                    all.behind.push(offset);
                }
            }
            Origin::Elsewhere => {}
        }
    }
    all
}

/// Where a pointer comes from, and how far behind it lies.
pub fn origin(function: &Function, ptr: ValueId) -> (Origin, i64) {
    const STEPS: u32 = 64;
    let (mut at, mut reads, mut offset) = (ptr, 0, 0);
    for _ in 0..STEPS {
        match function.values[at].kind {
            ValueKind::Param(_) if reads == 0 => return (Origin::Given, offset),
            ValueKind::Param(_) => return (Origin::Behind(reads), offset),
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Offset { base, bytes, .. } => {
                    if reads == 0 {
                        offset += bytes;
                    }
                    at = *base;
                }
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
    (Origin::Elsewhere, offset)
}

/// Is what the pointer leads into given to somebody, to be released in most cases?
fn is_handed_on(function: &Function, ptr: ValueId) -> bool {
    let Some(from) = read_from(function, ptr) else { return false };
    function.insts.iter().any(|inst| match &inst.op {
        Op::Call(call) => call.args.iter().any(|arg| read_from(function, *arg) == Some(from)),
        _ => false,
    })
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
