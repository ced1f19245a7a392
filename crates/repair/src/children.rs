//! What becomes of a child that the program forks, and who tells the last error behind a call.
//!
//! ```c
//! int split(void) { return fork(); }                 // comes back twice
//! int run(void) { if (fork() == 0) { execv(…); _exit(127); } … }      // comes back once
//! ```
//!
//! Where a child comes back, or ends by `exit`, it writes what was in the buffers of its parent's streams, too.
//!
//! # Known imprecision
//! - The result of `fork` is followed as a value, not through memory: there, a child is taken to come back.

use std::collections::{BTreeMap, BTreeSet};

use caulk_analysis::{Analysis, successors};
use caulk_ir::{
    BlockId, Call, Callee, CastOp, CmpOp, FuncId, Function, Inst, InstId, Op, Program, Target, ValueId, ValueKind,
};

/// Functions that say or read what `errno` is.
const TELL: &[&str] = &["__errno_location", "perror", "warn", "vwarn", "err", "verr", "strerror"];

/// Functions that return twice, once in a child.
const SPLITTING: &[&str] = &["fork", "vfork", "forkpty"];

/// Functions that leave `errno` as it was where they succeed, and are often called before it is told.
const LEAVE: &[&str] =
    &["free", "printf", "fprintf", "puts", "fputs", "fputc", "putc", "putchar", "fflush", "gettext", "dcgettext"];

/// Ends of a process that write nothing that is left in a buffer.
const AT_ONCE: &[&str] = &["_exit", "_Exit", "abort", "quick_exit", "__assert_fail"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Children {
    /// Functions that a child may come back from.
    returning: BTreeSet<String>,
    /// Some child writes what is left in the buffers.
    writing: bool,
    /// Functions whose caller, or the caller's, may tell `errno` as it is when they have returned.
    told: BTreeSet<String>,
}

impl Children {
    pub fn of(analysis: &Analysis<'_>) -> Self {
        let mut all = Self::default();
        all.follow_forks(analysis);
        all.follow_errors(analysis.knowledge.program);
        all
    }

    /// Does a child come back from a call of this function?
    pub fn comes_back(&self, function: &str) -> bool {
        self.returning.contains(function)
    }

    /// Is there a child that writes what its parent's streams have in their buffers?
    pub fn write_buffers(&self) -> bool {
        self.writing
    }

    /// Is `errno` told as this function leaves it?
    pub fn is_error_told(&self, function: &str) -> bool {
        self.told.contains(function)
    }

    fn follow_forks(&mut self, analysis: &Analysis<'_>) {
        let program = analysis.knowledge.program;
        // Callers of those that come back are asked in the next round.
        loop {
            let known = self.returning.len();
            let named = calls(program).map(|(id, function, at, name)| (id, function, at, vec![name]));
            for (id, function, at, names) in named.chain(calls_through_pointers(analysis)) {
                if !names.iter().any(|name| SPLITTING.contains(name) || self.returning.contains(*name)) {
                    continue;
                }
                let (returns, writes) = as_child(analysis, id, function, at);
                self.writing |= writes || returns && function.name == "main";
                if returns {
                    self.returning.insert(function.name.clone());
                }
            }
            if self.returning.len() == known {
                break;
            }
        }
    }

    fn follow_errors(&mut self, program: &Program) {
        let mut passed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (id, function, at, name) in calls(program) {
            let (told, left) = error_behind(program, id, function, at);
            if told {
                self.told.insert(name.to_owned());
            }
            if left {
                passed.entry(function.name.clone()).or_default().insert(name.to_owned());
            }
        }
        let mut open: Vec<String> = self.told.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for callee in passed.get(&name).into_iter().flatten() {
                if self.told.insert(callee.clone()) {
                    open.push(callee.clone());
                }
            }
        }
    }
}

/// All calls by name: where, and of whom.
fn calls(program: &Program) -> impl Iterator<Item = (FuncId, &Function, InstId, &str)> {
    program.functions.ids().flat_map(move |id| {
        let function = program.function(id);
        function.insts.iter_ids().filter_map(move |(at, inst)| match &inst.op {
            Op::Call(call) => Some((id, function, at, name_of(program, id, call)?)),
            _ => None,
        })
    })
}

/// All calls through pointers: where, and of whom.
fn calls_through_pointers<'a>(
    analysis: &'a Analysis<'_>,
) -> impl Iterator<Item = (FuncId, &'a Function, InstId, Vec<&'a str>)> {
    let program = analysis.knowledge.program;
    analysis.knowledge.graph.indirect.iter().map(move |(&(id, at), targets)| {
        let functions = targets.functions.iter().map(|&one| program.function(one).name.as_str());
        let library = targets.library.iter().map(|&one| program.externs[one].as_str());
        (id, program.function(id), at, functions.chain(library).collect())
    })
}

fn name_of<'a>(program: &'a Program, id: FuncId, call: &Call) -> Option<&'a str> {
    let Callee::Symbol(symbol) = call.callee else { return None };
    Some(program.units[program.unit_of(id)].symbols[symbol].name.as_str())
}

/// From behind an instruction on, as far as `visit` says; `chosen` knows where some branches lead.
fn walk(
    function: &Function,
    at: InstId,
    visit: &mut dyn FnMut(&Inst) -> bool,
    chosen: &dyn Fn(&Op) -> Option<BlockId>,
) {
    let Some(block) = function.blocks.ids().find(|block| {
        let range = function.blocks[*block];
        (range.first.0..range.end.0).contains(&at.0)
    }) else {
        return;
    };
    let mut seen: BTreeSet<BlockId> = BTreeSet::new();
    let mut open = vec![(block, Some(at))];
    while let Some((block, from)) = open.pop() {
        let mut rest = function.block_insts(block).filter(|(id, _)| from.is_none_or(|from| *id > from));
        if !rest.all(|(_, inst)| visit(inst)) {
            continue;
        }
        let last = &function.terminator(block).1.op;
        let next = chosen(last).map_or_else(|| successors(last).into_iter().collect(), |to| vec![to]);
        open.extend(next.into_iter().filter(|to| seen.insert(*to)).map(|to| (to, None)));
    }
}

/// Does the child come back from the function that forks here, and may it end so that buffers are written?
fn as_child(analysis: &Analysis<'_>, id: FuncId, function: &Function, at: InstId) -> (bool, bool) {
    let program = analysis.knowledge.program;
    let (mut returns, mut writes) = (false, false);
    let mut visit = |inst: &Inst| match &inst.op {
        Op::Return { .. } => {
            returns = true;
            false
        }
        Op::Call(call) => {
            let name = name_of(program, id, call).unwrap_or_default();
            let never = match call.callee {
                Callee::Symbol(symbol) => match program.target(program.unit_of(id), symbol) {
                    Target::Functions(all) => all.iter().all(|one| analysis.knowledge.never[*one]),
                    Target::Extern(external) => {
                        analysis.knowledge.model(*external).is_some_and(|model| model.returns.never)
                    }
                    Target::Globals(_) => false,
                },
                _ => false,
            };
            let ends = call.noreturn || never;
            writes |= ends && !AT_ONCE.contains(&name);
            !ends
        }
        _ => true,
    };
    let result = function.insts[at].result;
    let behind = reached(function, at);
    walk(function, at, &mut visit, &|op| result.and_then(|result| with_zero(function, op, result, &behind)));
    (returns, writes)
}

/// The blocks that are come to from an instruction, its own among them.
fn reached(function: &Function, at: InstId) -> BTreeSet<BlockId> {
    let own = function.blocks.ids().filter(|block| {
        let range = function.blocks[*block];
        (range.first.0..range.end.0).contains(&at.0)
    });
    let mut seen: BTreeSet<BlockId> = own.collect();
    let mut open: Vec<BlockId> = seen.iter().copied().collect();
    while let Some(block) = open.pop() {
        let next = successors(&function.terminator(block).1.op);
        open.extend(next.into_iter().filter(|to| seen.insert(*to)));
    }
    seen
}

/// Where a branch leads if a value is 0, on the ways through these blocks.
fn with_zero(function: &Function, op: &Op, zero: ValueId, behind: &BTreeSet<BlockId>) -> Option<BlockId> {
    let of = |value: ValueId| match function.values[value].kind {
        ValueKind::Inst(inst) => Some(&function.insts[inst].op),
        _ => None,
    };
    let number = |value: ValueId| match function.values[value].kind {
        ValueKind::Int(number) => Some(number),
        ValueKind::Inst(_) => {
            let plain = |value: ValueId| {
                let mut at = value;
                while let Some(Op::Cast { op: CastOp::SExt | CastOp::ZExt | CastOp::Trunc | CastOp::Same, a }) = of(at)
                {
                    at = *a;
                }
                at
            };
            let at = plain(value);
            // `if (terminal) pid = forkpty(…); else pid = fork();`
            let is_zero = match of(at) {
                Some(Op::Phi { incoming }) => {
                    let mut from = incoming.iter().filter(|(block, _)| behind.contains(block)).peekable();
                    from.peek().is_some() && from.all(|(_, value)| plain(*value) == zero)
                }
                _ => at == zero,
            };
            is_zero.then_some(0)
        }
        _ => None,
    };
    match op {
        Op::Switch { value, cases, default } => {
            let number = number(*value)?;
            Some(cases.iter().find(|case| case.value == number).map_or(*default, |case| case.to))
        }
        Op::Branch { cond, then, els } => {
            let Some(Op::Cmp { op, a, b }) = of(*cond) else { return None };
            let (a, b) = (number(*a)?, number(*b)?);
            let holds = match op {
                CmpOp::Eq => a == b,
                CmpOp::Ne => a != b,
                CmpOp::Slt => a < b,
                CmpOp::Sle => a <= b,
                CmpOp::Sgt => a > b,
                CmpOp::Sge => a >= b,
                _ => return None,
            };
            Some(if holds { *then } else { *els })
        }
        _ => None,
    }
}

/// Is `errno` told behind a call, and may the function return with it as it is there?
fn error_behind(program: &Program, id: FuncId, function: &Function, at: InstId) -> (bool, bool) {
    let (mut told, mut left) = (false, false);
    let mut visit = |inst: &Inst| match &inst.op {
        Op::Return { .. } => {
            left = true;
            false
        }
        Op::Call(call) => match name_of(program, id, call) {
            // `errno = 0;`
            Some("__errno_location") if is_set(function, inst.result) => false,
            Some(name) if TELL.contains(&name) => {
                told = true;
                false
            }
            Some(name) => LEAVE.contains(&name),
            None => matches!(call.callee, Callee::Intrinsic(_)),
        },
        _ => true,
    };
    walk(function, at, &mut visit, &|_| None);
    (told, left)
}

fn is_set(function: &Function, place: Option<ValueId>) -> bool {
    place.is_some_and(|place| {
        let stores = |inst: &Inst| matches!(inst.op, Op::Store { ptr, .. } if ptr == place);
        function.insts.iter().any(stores)
    })
}
