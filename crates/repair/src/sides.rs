//! What functions do besides: whom they call, and which global variables they write, in the program as it was.
//!
//! A destructor that is called where nobody called it before must release, and nothing else that anybody could notice:
//!
//! ```c
//! void user_free(struct user *u) { remove_name(u->name); free(u); }      // takes another user of that name off the list
//! ```
//!
//! What its constructor does as well, it may undo: a count of blocks goes up and down.
//!
//! # Known imprecision
//! - Functions of one name count as one.

use std::collections::{BTreeMap, BTreeSet};

use caulk_analysis::Analysis;
use caulk_ir::{Callee, FuncId, Function, InstId, Op, SymbolKind, Target, Unit, ValueId, ValueKind};

/// Calls are followed this deep.
const DEPTH: usize = 4;

/// Who is called when it is not known who is.
const ANYBODY: &str = "(*)";

/// Functions that somebody reads or hears of.
const HEARD: &[&str] = &[
    "printf",
    "fprintf",
    "vprintf",
    "vfprintf",
    "dprintf",
    "vdprintf",
    "puts",
    "fputs",
    "putchar",
    "putc",
    "fputc",
    "fwrite",
    "write",
    "pwrite",
    "pwrite64",
    "writev",
    "send",
    "sendto",
    "sendmsg",
    "perror",
    "syslog",
    "vsyslog",
    "unlink",
    "unlinkat",
    "remove",
    "rename",
    "renameat",
    "rmdir",
    "kill",
    "raise",
    "setenv",
    "unsetenv",
    "putenv",
    "clearenv",
    "system",
    "sem_post",
    "shm_unlink",
    "sem_unlink",
    "mq_unlink",
    "chmod",
    "fchmod",
    "fflush",
    "truncate",
    "truncate64",
    "ftruncate",
    "ftruncate64",
    "tcsetattr",
    "shutdown",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_cancel",
    "alarm",
    "setitimer",
    "timer_settime",
    "signal",
    "sigaction",
    "__printf_chk",
    "__fprintf_chk",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    calls: BTreeMap<String, BTreeSet<String>>,
    writes: BTreeMap<String, BTreeSet<String>>,
}

impl Sides {
    pub fn of(analysis: &Analysis<'_>) -> Self {
        let program = analysis.knowledge.program;
        let mut sides = Self::default();
        for id in program.functions.ids() {
            let (unit_id, function) = (program.unit_of(id), program.function(id));
            let unit = &program.units[unit_id];
            let calls = sides.calls.entry(function.name.clone()).or_default();
            for (inst_id, inst) in function.insts.iter_ids() {
                let Op::Call(call) = &inst.op else { continue };
                let symbol = match call.callee {
                    Callee::Symbol(symbol) => symbol,
                    Callee::Value(pointer) => {
                        calls.extend(through_pointer(analysis, id, inst_id, pointer));
                        continue;
                    }
                    _ => continue,
                };
                match program.target(unit_id, symbol) {
                    // Who does not come back is not part of what is done here.
                    Target::Functions(all) => calls.extend(
                        all.iter()
                            .filter(|&&one| !analysis.knowledge.never[one])
                            .map(|&one| program.function(one).name.clone()),
                    ),
                    Target::Extern(_) => {
                        calls.insert(unit.symbols[symbol].name.clone());
                    }
                    Target::Globals(_) => {}
                }
            }
            let written = function.insts.iter().filter_map(|inst| match inst.op {
                Op::Store { ptr, .. } | Op::Copy { dst: ptr, .. } | Op::Fill { dst: ptr, .. } => {
                    global(unit, function, ptr)
                }
                _ => None,
            });
            let written: BTreeSet<String> = written.collect();
            if !written.is_empty() {
                sides.writes.entry(function.name.clone()).or_default().extend(written);
            }
        }
        sides
    }

    /// Does the function, or one that it calls, do something that is noticed elsewhere, apart from what `constructor` does
    /// as well, and from the functions `left_out` that it does not call this time?
    pub fn is_heard(&self, function: &str, constructor: Option<&str>, left_out: &[String]) -> bool {
        let (called, written) = self.reached(function, left_out);
        let own = constructor.map(|constructor| self.reached(constructor, &[]).1).unwrap_or_default();
        let unlocks = called.contains("pthread_mutex_unlock") && !called.contains("pthread_mutex_lock");
        unlocks || called.iter().any(|name| *name == ANYBODY || HEARD.contains(name)) || !written.is_subset(&own)
    }

    fn reached(&self, function: &str, left_out: &[String]) -> (BTreeSet<&str>, BTreeSet<&str>) {
        let (mut called, mut written) = (BTreeSet::new(), BTreeSet::new());
        let mut open: Vec<(&str, usize)> =
            self.calls.get_key_value(function).map(|known| (known.0.as_str(), 0)).into_iter().collect();
        while let Some((name, depth)) = open.pop() {
            written.extend(self.writes.get(name).into_iter().flatten().map(String::as_str));
            for callee in self.calls.get(name).into_iter().flatten() {
                if !(depth == 0 && left_out.contains(callee)) && called.insert(callee.as_str()) && depth < DEPTH {
                    open.push((callee, depth + 1));
                }
            }
        }
        (called, written)
    }
}

/// Whom a call through a pointer may mean.
fn through_pointer(analysis: &Analysis<'_>, id: FuncId, inst: InstId, pointer: ValueId) -> Vec<String> {
    let (program, graph) = (analysis.knowledge.program, &analysis.knowledge.graph);
    match graph.indirect.get(&(id, inst)) {
        Some(targets) => {
            let functions = targets.functions.iter().map(|&one| program.function(one).name.clone());
            functions.chain(targets.library.iter().map(|&one| program.externs[one].clone())).collect()
        }
        None => match program.function(id).values[pointer].kind {
            // Nobody has ever put a function there.
            ValueKind::Inst(load) if graph.nulls.contains(&(id, load)) => Vec::new(),
            _ => vec![ANYBODY.to_owned()],
        },
    }
}

/// The variable that a pointer leads into, or through.
fn global(unit: &Unit, function: &Function, ptr: ValueId) -> Option<String> {
    let (mut open, mut seen) = (vec![ptr], BTreeSet::new());
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        match function.values[at].kind {
            ValueKind::Address(symbol, _) => {
                let symbol = &unit.symbols[symbol];
                if !matches!(symbol.kind, SymbolKind::DeclaredFunction(_)) {
                    return Some(symbol.name.clone());
                }
            }
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Offset { base, .. } => open.push(*base),
                Op::Cast { a, .. } => open.push(*a),
                Op::Load { ptr } => open.push(*ptr),
                Op::Phi { incoming } => open.extend(incoming.iter().map(|entry| entry.1)),
                Op::Select { a, b, .. } => open.extend([*a, *b]),
                _ => {}
            },
            _ => {}
        }
    }
    None
}
