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

use crate::outward::{self, Origin, origin};
use crate::survey::releases_first;
use caulk_analysis::Analysis;
use caulk_ir::{Callee, FuncId, Function, InstId, Op, SymbolKind, Target, Unit, ValueId, ValueKind};

/// Who is called when it is not known who is.
const ANYBODY: &str = "(*)";

/// `fcntl` where it locks.
pub const LOCKS: &str = "fcntl to lock";

/// `F_SETLK`, `F_SETLKW`, `F_OFD_SETLK`, `F_OFD_SETLKW`.
const LOCK_COMMANDS: &[i64] = &[6, 7, 37, 38];

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
    "putc_unlocked",
    "putchar_unlocked",
    "fputc_unlocked",
    "fputs_unlocked",
    "fwrite_unlocked",
    "puts_unlocked",
    "putwc",
    "putwchar",
    "fputwc",
    "fputws",
    "wprintf",
    "fwprintf",
    "vwprintf",
    "vfwprintf",
    "warn",
    "warnx",
    "vwarn",
    "vwarnx",
    "error",
    "error_at_line",
    "psignal",
    "killpg",
    "pthread_kill",
    "sigqueue",
    "ioctl",
    "lseek",
    "lseek64",
    "fseek",
    "fseeko",
    "rewind",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "mkdir",
    "mkdirat",
    "mkfifo",
    "mknod",
    "chown",
    "fchown",
    "lchown",
    "utime",
    "utimes",
    "utimensat",
    "futimens",
    "fork",
    "vfork",
    "posix_spawn",
    "posix_spawnp",
    "pwritev",
    "sendmmsg",
    "__vprintf_chk",
    "__vfprintf_chk",
    "__dprintf_chk",
    "__vdprintf_chk",
    "__syslog_chk",
    "__vsyslog_chk",
    "fsync",
    "fdatasync",
    "msync",
    "srand",
    "srandom",
    "setlocale",
    "umask",
    "chdir",
    "fchdir",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    calls: BTreeMap<String, BTreeSet<String>>,
    writes: BTreeMap<String, BTreeSet<String>>,
    /// Offsets of numbers that a function writes in what it is given, and behind that.
    given: BTreeMap<String, BTreeSet<i64>>,
    behind: BTreeMap<String, BTreeSet<i64>>,
    /// Caller and callee, where the callee is given something that lies behind what the caller was given, and does not
    /// release it.
    handed: BTreeSet<(String, String)>,
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
                    Target::Functions(all) => {
                        let behind = |arg: &ValueId| matches!(origin(function, *arg).0, Origin::Behind(_));
                        let handed = call.args.iter().any(behind);
                        // Who does not come back is not part of what is done here.
                        for &one in all.iter().filter(|&&one| !analysis.knowledge.never[one]) {
                            let name = program.function(one).name.clone();
                            let releases =
                                || analysis.knowledge.summary(one).is_some_and(|known| releases_first(&known));
                            if handed && !releases() {
                                sides.handed.insert((function.name.clone(), name.clone()));
                            }
                            calls.insert(name);
                        }
                    }
                    Target::Extern(_) => {
                        let name = &unit.symbols[symbol].name;
                        let command = call.args.get(1).map(|arg| &function.values[*arg].kind);
                        let locks = matches!(command, Some(ValueKind::Int(command)) if LOCK_COMMANDS.contains(command));
                        let locks = locks && matches!(name.as_str(), "fcntl" | "fcntl64");
                        calls.insert(if locks { LOCKS.to_owned() } else { name.clone() });
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
            let numbers = outward::written(function);
            for (offsets, all) in [(numbers.given, &mut sides.given), (numbers.behind, &mut sides.behind)] {
                if !offsets.is_empty() {
                    all.entry(function.name.clone()).or_default().extend(offsets);
                }
            }
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
        let numbers = self.numbers(function, &called, false);
        let own_numbers =
            constructor.map(|name| self.numbers(name, &self.reached(name, &[]).0, true)).unwrap_or_default();
        unlocks
            || !numbers.is_subset(&own_numbers)
            || called.iter().any(|name| *name == ANYBODY || HEARD.contains(name))
            || !written.is_subset(&own)
    }

    /// Where a function and those that it calls write numbers of others; `all`: and numbers in what they are given.
    fn numbers(&self, function: &str, called: &BTreeSet<&str>, all: bool) -> BTreeSet<i64> {
        let mut offsets: BTreeSet<i64> = BTreeSet::new();
        for name in called.iter().copied().chain([function]) {
            offsets.extend(self.behind.get(name).into_iter().flatten());
            let handed = || {
                self.handed.iter().any(|(from, to)| to == name && (from == function || called.contains(from.as_str())))
            };
            if all || name != function && self.given.contains_key(name) && handed() {
                offsets.extend(self.given.get(name).into_iter().flatten());
            }
        }
        offsets
    }

    /// Do both write a global variable: the releasing function itself, or one that it calls, and the other one, however far
    /// down?
    pub fn keep_same_books(&self, maker: &str, releaser: &str) -> bool {
        let made = self.reached(maker, &[]).1;
        let near = self.calls.get(releaser).into_iter().flatten().map(String::as_str).chain([releaser]);
        let mut written = near.filter_map(|name| self.writes.get(name)).flatten();
        written.any(|name| made.contains(name.as_str()))
    }

    /// Whom the function calls, directly or through others, and what they write.
    fn reached(&self, function: &str, left_out: &[String]) -> (BTreeSet<&str>, BTreeSet<&str>) {
        let (mut called, mut written) = (BTreeSet::new(), BTreeSet::new());
        let mut open: Vec<&str> =
            self.calls.get_key_value(function).map(|known| known.0.as_str()).into_iter().collect();
        while let Some(name) = open.pop() {
            written.extend(self.writes.get(name).into_iter().flatten().map(String::as_str));
            for callee in self.calls.get(name).into_iter().flatten() {
                if !(name == function && left_out.contains(callee)) && called.insert(callee.as_str()) {
                    open.push(callee);
                }
            }
        }
        (called, written)
    }

    /// Does the function, or one that it calls, write numbers of others?
    pub fn writes_outward(&self, function: &str) -> bool {
        !self.numbers(function, &self.reached(function, &[]).0, false).is_empty()
    }

    /// Does the function, or one that it calls, call one of these?
    pub fn calls_any(&self, function: &str, names: &[&str]) -> bool {
        names.contains(&function) || self.reached(function, &[]).0.iter().any(|called| names.contains(called))
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
