//! What follows in a function from one of its instructions on, if something is known of a value.
//!
//! ```text
//! if (load(&c) < 0) {        // load returned -1: the other side is not looked at
//!     report("…");           // passed: says something and comes back
//!     return 1;              // returns 1
//! }
//! serve(&c);
//! ```
//!
//! Values are ranges; branches that a range decides are taken one way. Every block is looked at once for each set of
//! ranges it is come to with.
//!
//! # Invariants
//! - What is not understood goes on: a region is a promise that nothing else happens.

use std::collections::{BTreeMap, BTreeSet};

use caulk_analysis::{Range, negate, successors, swapped};
use caulk_ir::{BinOp, BlockId, CastOp, CmpOp, FuncId, Function, InstId, Op, Ty, ValueId, ValueKind};

use super::around::{Kind, is_main};
use super::dying::Dying;

/// Blocks that are looked at from one call: whoever needs more is not leaving straight.
const FAR: usize = 400;
/// How deep a value is worked out.
const DEEP: u32 = 8;

/// All that may follow until the function returns or the process ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// What may be returned; not of `main`, whose return ends the process.
    pub returns: BTreeSet<Range>,
    /// The process may end before that.
    pub ends: bool,
    /// If it is not the main one, only the thread may end.
    pub thread: bool,
    /// Something is called on the way, be it only to say something.
    pub calls: bool,
    /// Something may be read on the way.
    pub reads: bool,
    /// Another program may take over, with all that is open.
    pub replaced: bool,
}

/// Why it is no straight way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// The program goes on: it waits, reads, starts something, or calls what nobody knows.
    Works,
    /// Another round of a loop, or too much to look at: nobody can tell.
    Unclear,
}

type Env = BTreeMap<ValueId, Range>;

/// Where the way through a function begins.
pub struct Start {
    pub function: FuncId,
    /// The instruction behind which it begins; `None`: the entry.
    pub behind: Option<InstId>,
    /// What is known of its result.
    pub result: Option<Range>,
}

/// What follows, if it is a straight way out.
pub fn region(dying: &mut Dying<'_>, start: &Start) -> Result<Region, Stays> {
    let program = dying.around.program;
    let function = program.function(start.function);
    let ends_program = is_main(program, start.function);
    let mut region = Region::default();
    let mut seen: BTreeSet<(BlockId, Env)> = BTreeSet::new();
    let mut edges: BTreeMap<BlockId, BTreeSet<BlockId>> = BTreeMap::new();
    // Blocks that make something: a loop of them is work.
    let mut making: BTreeSet<BlockId> = BTreeSet::new();
    let mut env = Env::new();
    let (mut block, mut first) = (BlockId(0), 0);
    if let Some(behind) = start.behind {
        block = function.blocks.ids().find(|block| holds(function, *block, behind)).ok_or(Stays::Unclear)?;
        first = behind.0 + 1;
        if let (Some(value), Some(range)) = (function.insts[behind].result, &start.result) {
            env.insert(value, range.clone());
        }
    }
    let mut open = vec![(block, first.max(function.blocks[block].first.0), env)];
    let (mut looked_at, mut unclear) = (0, false);
    while let Some((block, first, env)) = open.pop() {
        looked_at += 1;
        if looked_at > FAR {
            return Err(Stays::Unclear);
        }
        let end = function.blocks[block].end.0;
        let mut stopped = false;
        for inst in (first..end).map(InstId) {
            // Once more to where it began: the function is called in a loop.
            if Some(inst) == start.behind {
                (unclear, stopped) = (true, true);
                break;
            }
            if !matches!(function.insts[inst].op, Op::Call(_)) {
                continue;
            }
            let kind = dying.kind(start.function, inst);
            region.calls |= !matches!(kind, Kind::Ends { .. });
            match kind {
                Kind::Passed { makes, reads } => {
                    region.reads |= reads;
                    if makes || reads {
                        making.insert(block);
                    }
                }
                Kind::Replaces => region.replaced = true,
                Kind::Ends { thread } => {
                    region.ends = true;
                    region.thread |= thread;
                    stopped = true;
                    break;
                }
                Kind::Works if start.behind.is_none() && dying.around.is_common(start.function) => {
                    making.insert(block);
                }
                Kind::Works | Kind::GoesOn => return Err(Stays::Works),
            }
        }
        if stopped {
            continue;
        }
        let (_, terminator) = function.terminator(block);
        match &terminator.op {
            Op::Return { .. } if ends_program => region.ends = true,
            Op::Return { value } => {
                let range = value.map_or_else(Range::full, |value| eval(function, &env, value, DEEP));
                region.returns.insert(range);
            }
            Op::Unreachable => {}
            Op::IndirectJump { .. } => return Err(Stays::Unclear),
            op => {
                for (to, known) in ways(function, op, &env) {
                    edges.entry(block).or_default().insert(to);
                    let env = enter(function, block, to, known);
                    if seen.insert((to, env.clone())) {
                        open.push((to, function.blocks[to].first.0, env));
                    }
                }
            }
        }
    }
    match unclear || making.into_iter().any(|block| comes_back(&edges, block)) {
        true => Err(Stays::Unclear),
        false => Ok(region),
    }
}

fn holds(function: &Function, block: BlockId, inst: InstId) -> bool {
    let range = function.blocks[block];
    range.first <= inst && inst < range.end
}

fn comes_back(edges: &BTreeMap<BlockId, BTreeSet<BlockId>>, block: BlockId) -> bool {
    let mut seen: BTreeSet<BlockId> = BTreeSet::new();
    let mut open: Vec<BlockId> = edges.get(&block).into_iter().flatten().copied().collect();
    while let Some(at) = open.pop() {
        if at == block {
            return true;
        }
        if seen.insert(at) {
            open.extend(edges.get(&at).into_iter().flatten());
        }
    }
    false
}

/// What is known at the beginning of a block, coming from another.
fn enter(function: &Function, from: BlockId, to: BlockId, known: Env) -> Env {
    let range = function.blocks[to];
    let mut phis: Vec<(ValueId, Range)> = Vec::new();
    for (_, inst) in function.block_insts(to) {
        let (Op::Phi { incoming }, Some(result)) = (&inst.op, inst.result) else { continue };
        if let Some((_, value)) = incoming.iter().find(|entry| entry.0 == from) {
            phis.push((result, eval(function, &known, *value, DEEP)));
        }
    }
    // What is made in this block is made anew.
    let is_older = |value: &ValueId| match function.values[*value].kind {
        ValueKind::Inst(inst) => !(range.first <= inst && inst < range.end),
        _ => true,
    };
    let mut env: Env = known.into_iter().filter(|entry| is_older(&entry.0)).collect();
    env.extend(phis.into_iter().filter(|entry| !entry.1.is_full()));
    env
}

/// Where a terminator may go, with what is known then.
fn ways(function: &Function, op: &Op, env: &Env) -> Vec<(BlockId, Env)> {
    match op {
        Op::Branch { cond, then, els } => {
            let mut all = Vec::new();
            for (to, truth) in [(*then, true), (*els, false)] {
                let mut known = env.clone();
                if assume(function, &mut known, *cond, truth, DEEP) {
                    all.push((to, known));
                }
            }
            all
        }
        Op::Switch { value, cases, default } => {
            let range = eval(function, env, *value, DEEP);
            let mut all = Vec::new();
            let mut rest = range.clone();
            for case in cases {
                rest.exclude(case.value);
                if !range.excludes(case.value) {
                    let mut known = env.clone();
                    narrow(function, &mut known, *value, &Range::point(case.value), DEEP);
                    all.push((case.to, known));
                }
            }
            if !rest.is_empty() {
                let mut known = env.clone();
                narrow(function, &mut known, *value, &rest, DEEP);
                all.push((*default, known));
            }
            all
        }
        other => successors(other).into_iter().map(|to| (to, env.clone())).collect(),
    }
}

/// What a value may be.
fn eval(function: &Function, env: &Env, value: ValueId, depth: u32) -> Range {
    if let Some(known) = env.get(&value) {
        return known.clone();
    }
    let known = function.values[value];
    let inst = match known.kind {
        // A truth value is 0 or 1 here, whatever its bits are.
        ValueKind::Int(number) if known.ty == Ty::Int(1) => return Range::point(i64::from(number != 0)),
        ValueKind::Int(number) => return Range::point(number),
        ValueKind::Null | ValueKind::Zero => return Range::point(0),
        ValueKind::Address(..) => return Range::except(0),
        ValueKind::Inst(inst) if depth > 0 => inst,
        _ => return Range::full(),
    };
    let part = |value: ValueId| eval(function, env, value, depth - 1);
    match &function.insts[inst].op {
        Op::Cmp { op, a, b } => match holds_between(*op, &part(*a), &part(*b)) {
            Some(truth) => Range::point(i64::from(truth)),
            None => Range::between(0, 1),
        },
        Op::Cast { op, a } => cast(*op, function.values[*a].ty, known.ty, part(*a)),
        Op::Select { cond, a, b } => {
            let cond = part(*cond);
            match cond.constant() {
                Some(0) => part(*b),
                _ if cond.excludes(0) => part(*a),
                _ => Range::hull(&part(*a), &part(*b)),
            }
        }
        Op::Bin { op: BinOp::Xor, a, b } if known.ty == Ty::Int(1) => {
            match (part(*a).constant(), part(*b).constant()) {
                (Some(a), Some(b)) => Range::point(i64::from((a != 0) != (b != 0))),
                _ => Range::between(0, 1),
            }
        }
        Op::Bin { op: BinOp::Sub, a, b } if part(*a).constant() == Some(0) => match part(*b) {
            range if range.lo > i64::MIN && range.hi < i64::MAX => Range::between(-range.hi, -range.lo),
            _ => Range::full(),
        },
        Op::Bin { op: BinOp::And, a, b } => match (part(*a).constant(), part(*b).constant()) {
            (Some(a), Some(b)) => Range::point(a & b),
            _ => Range::full(),
        },
        Op::Bin { op: BinOp::Or, a, b } => match (part(*a).constant(), part(*b).constant()) {
            (Some(a), Some(b)) => Range::point(a | b),
            _ => Range::full(),
        },
        Op::Alloca { .. } => Range::except(0),
        _ => Range::full(),
    }
}

fn cast(op: CastOp, from: Ty, to: Ty, range: Range) -> Range {
    match (op, to) {
        (CastOp::SExt, _) if from == Ty::Int(1) => match range.constant() {
            Some(truth) => Range::point(-truth),
            None => Range::between(-1, 0),
        },
        (CastOp::SExt | CastOp::Same | CastOp::PtrToInt | CastOp::IntToPtr, _) => range,
        (CastOp::ZExt, _) if range.lo >= 0 => range,
        (CastOp::ZExt, _) if range.excludes(0) => Range::except(0),
        (CastOp::Trunc, Ty::Int(bits @ 2..=63)) => {
            let high = (1_i64 << (bits - 1)) - 1;
            if range.lo >= -high - 1 && range.hi <= high { range } else { Range::full() }
        }
        (CastOp::Trunc, Ty::Int(1)) if range.lo >= 0 && range.hi <= 1 => range,
        _ => Range::full(),
    }
}

/// Is the comparison decided?
fn holds_between(op: CmpOp, a: &Range, b: &Range) -> Option<bool> {
    let signs = a.lo >= 0 && b.lo >= 0;
    let less = || match () {
        () if a.hi < b.lo => Some(true),
        () if a.lo >= b.hi => Some(false),
        () => None,
    };
    let at_most = || match () {
        () if a.hi <= b.lo => Some(true),
        () if a.lo > b.hi => Some(false),
        () => None,
    };
    match op {
        CmpOp::Eq | CmpOp::Ne => {
            let same = match (a.constant(), b.constant()) {
                (Some(a), Some(b)) => Some(a == b),
                (Some(a), None) if b.excludes(a) => Some(false),
                (None, Some(b)) if a.excludes(b) => Some(false),
                _ => None,
            };
            same.map(|same| same == (op == CmpOp::Eq))
        }
        CmpOp::Slt => less(),
        CmpOp::Sle => at_most(),
        CmpOp::Sgt => at_most().map(|truth| !truth),
        CmpOp::Sge => less().map(|truth| !truth),
        CmpOp::Ult if signs => less(),
        CmpOp::Ule if signs => at_most(),
        CmpOp::Ugt if signs => at_most().map(|truth| !truth),
        CmpOp::Uge if signs => less().map(|truth| !truth),
        _ => None,
    }
}

/// Takes a condition for true or false; no, if it cannot be.
fn assume(function: &Function, env: &mut Env, cond: ValueId, truth: bool, depth: u32) -> bool {
    let range = eval(function, env, cond, depth);
    if range.constant().is_some_and(|known| (known != 0) != truth) || (!truth && range.excludes(0)) {
        return false;
    }
    let wanted = if truth { Range::except(0) } else { Range::point(0) };
    narrow(function, env, cond, &wanted, depth)
}

/// Notes that a value lies in a range, and what that says of others; no, if it cannot.
fn narrow(function: &Function, env: &mut Env, value: ValueId, wanted: &Range, depth: u32) -> bool {
    let mut range = eval(function, env, value, depth);
    range.meet(wanted);
    if range.is_empty() {
        return false;
    }
    let known = function.values[value];
    let ValueKind::Inst(inst) = known.kind else {
        if matches!(known.kind, ValueKind::Param(_)) && !range.is_full() {
            env.insert(value, range);
        }
        return true;
    };
    if !range.is_full() {
        env.insert(value, range.clone());
    }
    let Some(depth) = depth.checked_sub(1) else { return true };
    match &function.insts[inst].op {
        Op::Cast { op: CastOp::SExt | CastOp::ZExt | CastOp::Same, a } => {
            let of_truth = function.values[*a].ty == Ty::Int(1);
            match (range.constant(), of_truth) {
                (Some(0), _) => narrow(function, env, *a, &Range::point(0), depth),
                _ if range.excludes(0) => narrow(function, env, *a, &Range::except(0), depth),
                _ => true,
            }
        }
        Op::Bin { op: BinOp::Xor, a, b } if known.ty == Ty::Int(1) => {
            match (range.constant(), eval(function, env, *b, depth).constant()) {
                (Some(is), Some(with)) => assume(function, env, *a, (is != 0) != (with != 0), depth),
                _ => true,
            }
        }
        Op::Cmp { op, a, b } => {
            let truth = match range.constant() {
                Some(0) => false,
                _ if range.excludes(0) => true,
                _ => return true,
            };
            let (ra, rb) = (eval(function, env, *a, depth), eval(function, env, *b, depth));
            match (ra.constant(), rb.constant()) {
                (_, Some(with)) => narrow_by(function, env, *a, if truth { *op } else { negate(*op) }, with, depth),
                (Some(with), _) => {
                    let op = swapped(*op);
                    narrow_by(function, env, *b, if truth { op } else { negate(op) }, with, depth)
                }
                _ => true,
            }
        }
        _ => true,
    }
}

fn narrow_by(function: &Function, env: &mut Env, value: ValueId, op: CmpOp, with: i64, depth: u32) -> bool {
    let is_positive = with >= 0 && eval(function, env, value, depth).lo >= 0;
    let below = Range::between(i64::MIN, with.saturating_sub(1));
    let above = Range::between(with.saturating_add(1), i64::MAX);
    let wanted = match op {
        CmpOp::Eq => Range::point(with),
        CmpOp::Ne => Range::except(with),
        CmpOp::Slt => below,
        CmpOp::Sgt => above,
        CmpOp::Sle => Range::between(i64::MIN, with),
        CmpOp::Sge => Range::between(with, i64::MAX),
        CmpOp::Ult if is_positive => below,
        CmpOp::Ugt if is_positive => above,
        CmpOp::Ule if is_positive => Range::between(i64::MIN, with),
        CmpOp::Uge if is_positive => Range::between(with, i64::MAX),
        _ => return true,
    };
    narrow(function, env, value, &wanted, depth)
}
