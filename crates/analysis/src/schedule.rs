//! In which order functions are analysed, by several threads at a time.
//!
//! A recursion (mostly one function) can begin when everything that its analysis may ask for is there: the summaries
//! of its callees, and of functions whose address may come up in it. Where several can begin, the one goes first that
//! most work waits for.
//!
//!     main ── run ── parse ── xmalloc      xmalloc, then parse or log, then run, then main;
//!               └─── log                   parse before log if it is longer
//!
//! # Invariants
//! - A function asks for the summary of another one only if that one is of a lower level, and then it is finished: the
//!   result does not depend on the number of threads.
//! - Ways of waiting lead to lower levels, so that there is always something to do until all is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caulk_base::{FxHashSet, IdVec};
use caulk_ir::{FuncId, GlobalId, InitValue, Program, SymbolId, Target, UnitId, ValueKind};

use crate::callgraph::CallGraph;
use crate::whole::Constancy;

/// A thread without work looks around for some as often as this.
const PATIENCE: Duration = Duration::from_millis(1);

pub struct Schedule<'a> {
    components: Vec<&'a [FuncId]>,
    /// How many others each one waits for.
    waits: Vec<usize>,
    /// Who waits for it.
    waiting: Vec<Vec<u32>>,
    /// Instructions on the longest chain of work that begins with it.
    urgency: Vec<usize>,
}

/// What the threads share.
struct Progress<T> {
    /// Those that can begin, the most urgent on top.
    ready: BinaryHeap<(usize, Reverse<usize>)>,
    waits: Vec<usize>,
    results: Vec<Option<T>>,
    left: usize,
}

impl<'a> Schedule<'a> {
    /// `constant`: globals that keep their initial contents.
    pub fn of(program: &Program, graph: &'a CallGraph, constant: &IdVec<GlobalId, Constancy>) -> Self {
        let components: Vec<&[FuncId]> = graph.levels.iter().flatten().map(Vec::as_slice).collect();
        let mut component_of: IdVec<FuncId, u32> = IdVec::filled(program.functions.len(), 0);
        for (at, members) in components.iter().enumerate() {
            members.iter().for_each(|&id| component_of[id] = at as u32);
        }
        let mut mentioned = Mentioned { program, constant, tables: IdVec::filled(program.globals.len(), None) };
        let mut late: Vec<Arc<[FuncId]>> = Vec::with_capacity(components.len());
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); components.len()];
        let mut waits = vec![0; components.len()];
        for (at, members) in components.iter().enumerate() {
            let level = members.first().map_or(0, |&id| graph.level_of[id]);
            let own = mentioned.in_functions(members, graph);
            let callees = members.iter().flat_map(|&id| &graph.callees[id]).map(|&callee| component_of[callee]);
            let mut callees: Vec<u32> = callees.filter(|&callee| callee != at as u32).collect();
            callees.sort_unstable();
            callees.dedup();
            let (earlier, later) =
                split(own, callees.iter().map(|&callee| &late[callee as usize]), |id| graph.level_of[id] < level);
            late.push(later);
            callees.extend(earlier.iter().map(|&id| component_of[id]));
            callees.sort_unstable();
            callees.dedup();
            waits[at] = callees.len();
            callees.iter().for_each(|&callee| waiting[callee as usize].push(at as u32));
        }
        let mut urgency: Vec<usize> = vec![0; components.len()];
        for at in (0..components.len()).rev() {
            let own: usize = components[at].iter().map(|&id| program.function(id).insts.len()).sum();
            let behind = waiting[at].iter().map(|&next| urgency[next as usize]).max().unwrap_or(0);
            urgency[at] = own + behind;
        }
        Self { components, waits, waiting, urgency }
    }

    /// Runs `work` on every recursion, on all threads of the pool; the results come callees first.
    pub fn run<T: Send>(&self, work: impl Fn(&'a [FuncId]) -> T + Sync) -> Vec<T> {
        let ready = (0..self.components.len()).filter(|&at| self.waits[at] == 0);
        let progress = Mutex::new(Progress {
            ready: ready.map(|at| (self.urgency[at], Reverse(at))).collect(),
            waits: self.waits.clone(),
            results: self.components.iter().map(|_| None).collect(),
            left: self.components.len(),
        });
        let changed = Condvar::new();
        rayon::broadcast(|_| {
            let _end = EndAll { progress: &progress, changed: &changed };
            let mut now = lock(&progress);
            while now.left > 0 {
                let Some((_, Reverse(at))) = now.ready.pop() else {
                    drop(now);
                    // Whoever works on a large recursion may have some of it to share (`recursion`).
                    let helped = rayon::yield_now() == Some(rayon::Yield::Executed);
                    now = lock(&progress);
                    if !helped && now.ready.is_empty() && now.left > 0 {
                        now = changed.wait_timeout(now, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
                    }
                    continue;
                };
                drop(now);
                let result = work(self.components[at]);
                now = lock(&progress);
                now.results[at] = Some(result);
                now.left = now.left.saturating_sub(1);
                for &next in &self.waiting[at] {
                    let next = next as usize;
                    now.waits[next] -= 1;
                    if now.waits[next] == 0 {
                        now.ready.push((self.urgency[next], Reverse(next)));
                    }
                }
                changed.notify_all();
            }
        });
        let progress = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        progress.results.into_iter().flatten().collect()
    }
}

fn lock<T>(progress: &Mutex<Progress<T>>) -> MutexGuard<'_, Progress<T>> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a thread panics, nobody waits for what it would have done: the panic goes on once all have ended.
struct EndAll<'a, T> {
    progress: &'a Mutex<Progress<T>>,
    changed: &'a Condvar,
}

impl<T> Drop for EndAll<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.progress).left = 0;
            self.changed.notify_all();
        }
    }
}

/// The addresses that may come up in a function: its own, and what its callees did not have to wait for. Those that are
/// earlier than it, and the others, sorted.
fn split<'s>(
    own: Vec<FuncId>,
    of_callees: impl Iterator<Item = &'s Arc<[FuncId]>>,
    is_earlier: impl Fn(FuncId) -> bool,
) -> (Vec<FuncId>, Arc<[FuncId]>) {
    let mut sets: Vec<&Arc<[FuncId]>> = of_callees.filter(|set| !set.is_empty()).collect();
    sets.sort_by_key(|set| Arc::as_ptr(set).cast::<FuncId>());
    sets.dedup_by(|a, b| Arc::ptr_eq(a, b));
    // Most functions take no address, and all their callees have the same ones.
    if let ([], [only]) = (own.as_slice(), sets.as_slice())
        && !only.iter().any(|&id| is_earlier(id))
    {
        return (Vec::new(), Arc::clone(only));
    }
    let mut all = own;
    sets.iter().for_each(|set| all.extend(set.iter()));
    all.sort_unstable();
    all.dedup();
    let (earlier, later): (Vec<FuncId>, Vec<FuncId>) = all.into_iter().partition(|&id| is_earlier(id));
    (earlier, later.into())
}

/// Looks up whose addresses are taken, here and in tables that never change.
struct Mentioned<'a> {
    program: &'a Program,
    constant: &'a IdVec<GlobalId, Constancy>,
    tables: IdVec<GlobalId, Option<Arc<[FuncId]>>>,
}

impl Mentioned<'_> {
    fn in_functions(&mut self, members: &[FuncId], graph: &CallGraph) -> Vec<FuncId> {
        let mut all = FxHashSet::default();
        for &id in members {
            let (unit, function) = (self.program.unit_of(id), self.program.function(id));
            for value in function.values.iter() {
                if let ValueKind::Address(symbol, _) = value.kind {
                    self.symbol(unit, symbol, &mut all);
                }
            }
            for call in graph.indirect_of(id) {
                all.extend(call.functions.iter().copied());
            }
        }
        all.into_iter().collect()
    }

    fn symbol(&mut self, unit: UnitId, symbol: SymbolId, all: &mut FxHashSet<FuncId>) {
        match self.program.target(unit, symbol) {
            Target::Functions(functions) => all.extend(functions.iter().copied()),
            Target::Globals(globals) => globals.iter().for_each(|&global| all.extend(self.table(global).iter())),
            Target::Extern(_) => {}
        }
    }

    /// The functions that can be reached through what lies in a constant global.
    fn table(&mut self, id: GlobalId) -> Arc<[FuncId]> {
        if let Some(known) = &self.tables[id] {
            return Arc::clone(known);
        }
        let (mut found, mut seen, mut open) = (FxHashSet::default(), FxHashSet::default(), vec![id]);
        while let Some(id) = open.pop() {
            if self.constant[id] != Constancy::Constant || !seen.insert(id) {
                continue;
            }
            let unit = self.program.globals[id].0;
            for init in &self.program.global(id).init {
                let InitValue::Address(symbol, _) = init.value else { continue };
                match self.program.target(unit, symbol) {
                    Target::Functions(functions) => found.extend(functions.iter().copied()),
                    Target::Globals(globals) => open.extend(globals),
                    Target::Extern(_) => {}
                }
            }
        }
        let mut found: Vec<FuncId> = found.into_iter().collect();
        found.sort_unstable();
        let found: Arc<[FuncId]> = found.into();
        self.tables[id] = Some(Arc::clone(&found));
        found
    }
}
