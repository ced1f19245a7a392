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

use crate::children::Children;
use crate::dying::{self, Dying};
use crate::outward::{self, Origin, origin};
use caulk_analysis::Analysis;
use caulk_ir::{
    BinOp, Call, Callee, FuncId, Function, InstId, Op, Program, SymbolId, SymbolKind, Target, Unit, UnitId, ValueId,
    ValueKind,
};

/// Stands before the name of a variable that is counted up or down.
const COUNT: &str = "count of ";

/// Who is called when it is not known who is.
const ANYBODY: &str = "(*)";

/// What `assert` calls.
const ASSERTS: &str = "__assert_fail";

/// `fcntl` where it locks, or does something else that ends when the descriptor is closed.
pub const LOCKS: &str = "fcntl to lock";

/// `fcntl` where it makes another descriptor of the same open file: `F_DUPFD`, `F_DUPFD_CLOEXEC`.
pub const COPIES: &str = "fcntl to copy";
const COPYING_COMMANDS: &[i64] = &[0, 1030];

/// `strtok`, and where it goes on with a text that it was given before.
pub const SPLITS: &str = "strtok";
const SPLITS_ON: &str = "strtok to go on";

/// Who tells or looks at `errno`.
const TELL_ERROR: &[&str] = &["__errno_location", "perror", "strerror", "warn", "vwarn", "err", "verr"];

/// Functions that set `errno` where they are given nothing to release.
const SET_ERROR: &[&str] = &["close", "munmap", "fclose", "closedir", "shutdown", "unlink", "msync", "fflush"];

/// Commands of `fcntl` that ask, copy, or change what nobody else sees: `F_DUPFD`, flags of the descriptor and of the file,
/// `F_GETLK`, `F_GETOWN`, `F_GETSIG`, `F_OFD_GETLK`, `F_GETLEASE`, `F_DUPFD_CLOEXEC`, sizes of pipes, seals.
const HARMLESS_COMMANDS: &[i64] = &[0, 1, 2, 3, 4, 5, 9, 11, 36, 1025, 1030, 1031, 1032, 1033, 1034];

/// Functions that let something run beside the rest.
const COMPANY: &[&str] =
    &["pthread_create", "thrd_create", "clone", "timer_create", "signal", "bsd_signal", "__sysv_signal", "sigaction"];

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
    "mq_send",
    "mq_timedsend",
    "msgsnd",
    "semop",
    "semctl",
    "msgctl",
    "shmctl",
    // Who waits may wait for long.
    "wait",
    "waitpid",
    "wait3",
    "wait4",
    "waitid",
    "pclose",
    "pthread_join",
    "thrd_join",
    "sem_wait",
    "sem_timedwait",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_barrier_wait",
    "cnd_wait",
    "cnd_signal",
    "cnd_broadcast",
    "sleep",
    "usleep",
    "nanosleep",
    "clock_nanosleep",
    "select",
    "pselect",
    "poll",
    "ppoll",
    "epoll_wait",
    "epoll_pwait",
    "sigwait",
    "pause",
    // What is taken is not there for others.
    "read",
    "recv",
    "recvfrom",
    "recvmsg",
    "getchar",
    "fgets",
    "getline",
    "accept",
    "mq_receive",
    "msgrcv",
    "rand",
    "random",
    "drand48",
    "lrand48",
    "mrand48",
    "arc4random",
    // Texts that the library goes on with.
    SPLITS,
    SPLITS_ON,
    // The end of more than a block.
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "pthread_exit",
    "thrd_exit",
    "closelog",
    "endpwent",
    "endgrent",
    "hdestroy",
    "uselocale",
    "tzset",
];

/// What the compiler makes of `assert` and its like, and what it puts in by itself.
fn is_builtin(callees: &[String]) -> bool {
    callees.iter().all(|name| name.starts_with("__builtin_") || name.starts_with("__sanitizer") || name == "__chk_fail")
}

/// Functions without model that say by their names that they release what they are given.
fn is_named_for_releasing(name: &str) -> bool {
    const PARTS: &[&str] = &["free", "destroy", "delete", "release", "unref", "close", "cleanup", "dispose", "dealloc"];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    calls: BTreeMap<String, BTreeSet<String>>,
    writes: BTreeMap<String, BTreeSet<String>>,
    /// Functions that write in what they are given, and numbers behind that.
    given: BTreeSet<String>,
    behind: BTreeSet<String>,
    /// Caller and callee, where the callee is given something that lies behind what the caller was given, and does not
    /// release it.
    handed: BTreeSet<(String, String)>,
    /// Where a function passes a parameter on: to whom, and as which argument.
    passed: BTreeMap<(String, usize), BTreeSet<(String, usize)>>,
    /// Functions that may end the process themselves.
    dying: BTreeMap<String, Dying>,
    pub children: Children,
}

impl Sides {
    pub fn of(analysis: &Analysis<'_>) -> Self {
        let program = analysis.knowledge.program;
        let mut sides = Self { children: Children::of(analysis), ..Self::default() };
        for id in program.functions.ids() {
            let (unit_id, function) = (program.unit_of(id), program.function(id));
            let unit = &program.units[unit_id];
            if let Some(dying) = dying::of(analysis, id) {
                let known = sides.dying.entry(function.name.clone()).or_insert(dying);
                *known = dying.max(*known);
            }
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
                let callees = names(program, unit_id, call, function, symbol);
                for (at, arg) in call.args.iter().enumerate() {
                    let Some(parameter) = parameter(unit, function, *arg) else { continue };
                    let passed = sides.passed.entry((function.name.clone(), parameter)).or_default();
                    passed.extend(callees.iter().map(|name| (name.clone(), at)));
                }
                match program.target(unit_id, symbol) {
                    Target::Functions(all) => {
                        let behind = |arg: &ValueId| matches!(origin(function, *arg), Origin::Behind(_));
                        let handed = call.args.iter().any(behind) && !outward::releases(analysis, id, call);
                        // Who does not come back is not part of what is done here.
                        for &one in all.iter().filter(|&&one| !analysis.knowledge.never[one]) {
                            let name = program.function(one).name.clone();
                            if handed {
                                sides.handed.insert((function.name.clone(), name.clone()));
                            }
                            calls.insert(name);
                        }
                    }
                    Target::Extern(external) => {
                        let known = |name: &String| name.starts_with("llvm.") || is_named_for_releasing(name);
                        let model = analysis.knowledge.model(*external);
                        if model.is_none() && !callees.iter().all(known) && !is_builtin(&callees) {
                            calls.insert(ANYBODY.to_owned());
                        }
                        calls.extend(callees);
                    }
                    Target::Globals(_) => {}
                }
            }
            let mut written: BTreeSet<String> = BTreeSet::new();
            for inst in function.insts.iter() {
                for ptr in outward::places(analysis, id, &inst.op) {
                    let name = global(unit, function, ptr);
                    let count = is_count(function, &inst.op);
                    written.extend(name.map(|name| if count { format!("{COUNT}{name}") } else { name }));
                }
            }
            let outward = outward::written(analysis, id);
            for (does, all) in [(outward.given, &mut sides.given), (outward.behind, &mut sides.behind)] {
                if does {
                    all.insert(function.name.clone());
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
        let undone = |name: &&str| name.starts_with(COUNT) && own.contains(*name);
        let unlocks = called.contains("pthread_mutex_unlock") && !called.contains("pthread_mutex_lock");
        // What nobody has asked of the block so far may not be so.
        let ends = self.dying.get(function) == Some(&Dying::Perhaps)
            || called.iter().any(|name| *name != function && self.dying.contains_key(*name));
        unlocks
            || ends
            || self.is_outward(function, &called)
            || called.iter().any(|name| *name == ANYBODY || HEARD.contains(name))
            || !written.iter().all(undone)
    }

    /// Does the function, or one of those that it calls, write numbers of others?
    fn is_outward(&self, function: &str, called: &BTreeSet<&str>) -> bool {
        let within = |name: &str| name == function || called.contains(name);
        let handed = |(from, to): &(String, String)| within(from) && within(to) && self.given.contains(to);
        called.iter().copied().chain([function]).any(|name| self.behind.contains(name))
            || self.handed.iter().any(handed)
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
        self.is_outward(function, &self.reached(function, &[]).0)
    }

    /// The functions that call this one.
    pub fn callers(&self, function: &str) -> impl Iterator<Item = &str> {
        self.calls.iter().filter(move |(_, called)| called.contains(function)).map(|(name, _)| name.as_str())
    }

    /// Does some function go on splitting a text that another has begun with?
    pub fn splits_elsewhere(&self) -> bool {
        self.calls.values().any(|called| called.contains(SPLITS_ON) && !called.contains(SPLITS))
    }

    /// Would a caller of `function`, or itself, tell another error if `destructor` were called in it?
    pub fn spoils_error(&self, function: &str, destructor: &str) -> bool {
        let tells = |called: &BTreeSet<String>| called.iter().any(|name| TELL_ERROR.contains(&name.as_str()));
        let near = |(name, called): (&String, &BTreeSet<String>)| {
            (name == function || called.contains(function)) && tells(called)
        };
        self.calls.contains_key(destructor) && self.calls_any(destructor, SET_ERROR) && self.calls.iter().any(near)
    }

    /// Is calling some of these all that the function does?
    pub fn only_calls(&self, function: &str, those: &BTreeSet<String>) -> bool {
        let called = self.calls.get(function).filter(|called| !called.is_empty());
        called.is_some_and(|called| called.iter().all(|name| those.contains(name)))
            && !self.writes.contains_key(function)
            && !self.given.contains(function)
            && !self.behind.contains(function)
    }

    /// Does the function, or one that it calls, tell which error was the last one?
    pub fn tells_error(&self, function: &str) -> bool {
        self.calls_any(function, TELL_ERROR)
    }

    /// Does the function, or one that it calls, call one of these?
    pub fn calls_any(&self, function: &str, names: &[&str]) -> bool {
        self.reached(function, &[]).0.iter().any(|called| names.contains(called))
    }

    /// May something else run between two statements: another thread, a signal handler?
    pub fn has_company(&self) -> bool {
        let starts = |name: &String| COMPANY.contains(&name.as_str());
        self.calls.values().any(|called| called.iter().any(starts))
    }

    /// Functions that lock parts of files as POSIX does.
    pub fn locking(&self) -> Vec<&str> {
        let locks =
            |called: &BTreeSet<String>| called.iter().any(|name| [LOCKS, "lockf", "lockf64"].contains(&name.as_str()));
        self.calls.iter().filter(|(_, called)| locks(called)).map(|(name, _)| name.as_str()).collect()
    }

    /// Functions with assertions among these.
    pub fn asserting<'a>(&self, names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
        names.filter(|name| self.calls.get(*name).is_some_and(|called| called.contains(ASSERTS))).collect()
    }

    /// Whoever gets what a function is given as this argument, itself among them.
    pub fn receivers<'a>(&'a self, function: &'a str, argument: usize) -> BTreeSet<&'a str> {
        let mut seen: BTreeSet<(&str, usize)> = BTreeSet::from([(function, argument)]);
        let mut open = vec![(function, argument)];
        while let Some((name, at)) = open.pop() {
            for (to, at) in self.passed.get(&(name.to_owned(), at)).into_iter().flatten() {
                if seen.insert((to.as_str(), *at)) {
                    open.push((to.as_str(), *at));
                }
            }
        }
        seen.into_iter().map(|(name, _)| name).collect()
    }
}

/// `live--;`: what it was before, and one more or less.
fn is_count(function: &Function, op: &Op) -> bool {
    let Op::Store { ptr, value } = *op else { return matches!(op, Op::Atomic { .. }) };
    let of = |value: ValueId| match function.values[value].kind {
        ValueKind::Inst(inst) => Some(&function.insts[inst].op),
        _ => None,
    };
    let Some(Op::Bin { op: BinOp::Add | BinOp::Sub, a, b }) = of(value) else { return false };
    let same = |from: ValueId| function.values[from].kind == function.values[ptr].kind;
    matches!(function.values[*b].kind, ValueKind::Int(_)) && matches!(of(*a), Some(Op::Load { ptr }) if same(*ptr))
}

/// Whom a call by name means; `fcntl` that locks has a name of its own, and `strtok` that goes on.
fn names(program: &Program, unit: UnitId, call: &Call, function: &Function, symbol: SymbolId) -> Vec<String> {
    match program.target(unit, symbol) {
        Target::Functions(all) => all.iter().map(|one| program.function(*one).name.clone()).collect(),
        Target::Extern(_) => {
            let name = &program.units[unit].symbols[symbol].name;
            let command = call.args.get(1).map(|arg| &function.values[*arg].kind);
            let asks = match command {
                Some(ValueKind::Int(command)) => HARMLESS_COMMANDS.contains(command),
                Some(ValueKind::Zero) => true,
                _ => false,
            };
            let is_fcntl = matches!(name.as_str(), "fcntl" | "fcntl64");
            let locks = !asks && is_fcntl;
            let copies = is_fcntl
                && match command {
                    Some(ValueKind::Int(command)) => COPYING_COMMANDS.contains(command),
                    command => matches!(command, Some(ValueKind::Zero)),
                };
            let first = call.args.first().map(|arg| &function.values[*arg].kind);
            let goes_on = name == SPLITS && matches!(first, Some(ValueKind::Null | ValueKind::Zero));
            let known = if locks {
                Some(LOCKS)
            } else if copies {
                Some(COPIES)
            } else {
                goes_on.then_some(SPLITS_ON)
            };
            vec![known.map_or_else(|| name.clone(), str::to_owned)]
        }
        Target::Globals(_) => Vec::new(),
    }
}

/// The parameter that a value is, or whose number it is: `fileno(f)`.
fn parameter(unit: &Unit, function: &Function, value: ValueId) -> Option<usize> {
    let mut at = value;
    loop {
        match function.values[at].kind {
            ValueKind::Param(index) => return Some(index as usize),
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Cast { a, .. } => at = *a,
                Op::Call(call) => match call.callee {
                    Callee::Symbol(symbol) if matches!(unit.symbols[symbol].name.as_str(), "fileno" | "dirfd") => {
                        at = *call.args.first()?;
                    }
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        }
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
