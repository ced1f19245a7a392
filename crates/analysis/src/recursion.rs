//! Functions that call each other are worked out together, in rounds, until their summaries no longer change.
//!
//!     parse ── list ── item ── parse       round 1: `parse` sees no way back from `list` yet, `list` sees none from
//!                                          `item`; `item` returns what it does without `parse`
//!                                          round 2: those whose callees have changed, and so on
//!
//! The members of a round have an order, and each sees what those before it have found out. A large recursion is worked
//! out by several threads: members of which neither calls the other cannot tell which of them was first.
//!
//! # Invariants
//! - A member is run when those before it that call it or are called by it are done, and none behind it is: the result
//!   is that of one thread.
//! - Errors are looked into when no other round makes them vain, while callees' summaries are as they were.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caulk_base::FxHashMap;
use caulk_ir::FuncId;

use crate::asked::Question;
use crate::engine::{self, Analysed, Found, Limits};
use crate::incident::Doubt;
use crate::summary::Summary;
use crate::whole::Knowledge;

/// Rounds through a recursion before its summaries count as complete.
const MAX_ROUNDS: usize = 3;
/// Rounds at most until it is known what a recursion of a few functions does with its arguments.
const MAX_SETTLING_ROUNDS: usize = 5;
const FEW: usize = 4;
/// Rounds at most until every member of a recursion is seen to come back.
const MAX_RETURNING_ROUNDS: usize = 8;

/// A function of a recursion while it is worked out.
struct Member {
    id: FuncId,
    /// Positions of those of the recursion that call it.
    callers: Vec<usize>,
    runs: usize,
    /// The summary of a callee has changed since the last run.
    outdated: bool,
    /// What it then does with its arguments has changed, too.
    misled: bool,
    /// A callee that had no way back has got one.
    opened: bool,
    /// It was too large to be followed to any end; it would be so again.
    given_up: bool,
    /// What callers are told, as of the last run.
    summary: Option<Summary>,
    result: Option<Analysed>,
    asked: Vec<Question>,
}

impl Member {
    fn new(id: FuncId) -> Self {
        Self {
            id,
            callers: Vec::new(),
            runs: 0,
            outdated: true,
            misled: true,
            opened: false,
            given_up: false,
            summary: None,
            result: None,
            asked: Vec::new(),
        }
    }

    fn is_stuck(&self, knowledge: &Knowledge<'_>) -> bool {
        !knowledge.never[self.id] && self.summary.as_ref().is_none_or(|summary| summary.outcomes.is_empty())
    }

    /// Must it be run (again)? `of`: so many are in the recursion.
    fn is_due(&self, of: usize) -> bool {
        let rounds = if self.misled && of <= FEW { MAX_SETTLING_ROUNDS } else { MAX_ROUNDS };
        !self.given_up && (self.opened || self.outdated && self.runs < rounds)
    }

    fn begin(&mut self) {
        (self.outdated, self.misled, self.opened) = (false, false, false);
        self.runs += 1;
    }

    fn note(&mut self, result: Analysed) {
        self.asked.extend(result.asked.iter().flatten());
        self.result = Some(result);
    }
}

/// Analyses the functions of one recursion until their summaries no longer change.
pub(crate) fn component(knowledge: &Knowledge<'_>, members: &[FuncId], limits: Limits) -> Vec<(FuncId, Analysed)> {
    let position: FxHashMap<FuncId, usize> = members.iter().enumerate().map(|(at, &id)| (id, at)).collect();
    let mut work: Vec<Member> = members.iter().map(|&id| Member::new(id)).collect();
    for (at, id) in members.iter().enumerate() {
        for callee in knowledge.graph.callees[*id].iter().filter_map(|callee| position.get(callee)) {
            work[*callee].callers.push(at);
        }
    }
    let mut rounds = if work.len() > FEW && rayon::current_num_threads() > 1 {
        Rounds::Shared(Order::of(&work))
    } else {
        Rounds::Alone(work.iter().map(|_| None).collect())
    };
    for round in 1..=MAX_RETURNING_ROUNDS + 1 {
        if !rounds.run(knowledge, &mut work, limits, round) {
            break;
        }
        if round == MAX_RETURNING_ROUNDS {
            // That there is no way back is only what the rounds have not come to.
            for at in 0..work.len() {
                if work[at].is_stuck(knowledge) {
                    knowledge.set_summary(work[at].id, Arc::new(Summary::unknown()));
                    for caller in work[at].callers.clone() {
                        work[caller].opened = true;
                    }
                }
            }
        }
    }
    rounds.conclude(knowledge, &mut work, limits);
    let settled = !work.iter().any(|member| member.misled);
    let finished = work.into_iter().filter_map(|member| {
        // Every way was given up, or ends in an error: that is not to say that it does not come back.
        let stuck = member.is_stuck(knowledge);
        let mut result = member.result?;
        if member.given_up {
            result.summary = Summary::unknown();
        }
        let cut = result.summary.cut;
        if stuck {
            result.summary = Summary::unknown();
            result.degraded |= cut;
            knowledge.set_summary(member.id, Arc::new(result.summary.clone()));
        }
        if settle(&mut result, settled) && !stuck {
            knowledge.set_summary(member.id, Arc::new(result.summary.clone()));
        }
        let mut asked = member.asked;
        asked.sort_unstable();
        asked.dedup();
        result.asked = result.asked.take().map(|_| asked);
        Some((member.id, result))
    });
    finished.collect()
}

/// Once the rounds are over: does what was given to the recursion have to be doubted? `true` if the summary has changed.
fn settle(result: &mut Analysed, settled: bool) -> bool {
    if settled {
        result.releases.iter_mut().for_each(|fact| fact.doubts.retain(|doubt| *doubt != Doubt::Unsettled));
    }
    let mut changed = !settled;
    result.summary.incomplete = !settled;
    for (_, known) in result.summary.outcomes.iter_mut().flat_map(|outcome| &mut outcome.objs) {
        changed |= known.unsettled;
        known.doubted |= known.unsettled && !settled;
        known.unsettled = false;
    }
    changed
}

/// Who works on the rounds.
enum Rounds<'a> {
    /// One thread. The last run of each member, as long as nobody has looked into its errors.
    Alone(Vec<Option<Found<'a>>>),
    /// All of them.
    Shared(Order),
}

impl<'a> Rounds<'a> {
    /// `true` if some summary has changed.
    fn run(&mut self, knowledge: &'a Knowledge<'a>, work: &mut Vec<Member>, limits: Limits, round: usize) -> bool {
        match self {
            Rounds::Alone(open) => {
                if round == MAX_RETURNING_ROUNDS {
                    // There may be no other round for those whose callees change from here on.
                    conclude(open, work);
                }
                let mut changed = false;
                for at in 0..work.len() {
                    if work[at].is_due(work.len()) {
                        let again = round < MAX_RETURNING_ROUNDS && !work[at].callers.is_empty();
                        changed |= run_member(knowledge, work, &mut open[at], at, limits, again);
                    }
                }
                changed
            }
            Rounds::Shared(order) => {
                let count = work.len();
                let turn = Turn {
                    knowledge,
                    limits,
                    order,
                    count,
                    is_first: round == 1,
                    now: Mutex::new(Now { work: std::mem::take(work), waits: order.waits.clone(), changed: false }),
                };
                rayon::scope(|scope| turn.go_on(scope, (0..count).filter(|&at| order.waits[at] == 0).collect()));
                let now = turn.now.into_inner().unwrap_or_else(PoisonError::into_inner);
                *work = now.work;
                now.changed
            }
        }
    }

    fn conclude(self, knowledge: &'a Knowledge<'a>, work: &mut [Member], limits: Limits) {
        if let Rounds::Alone(mut open) = self {
            conclude(&mut open, work);
        }
        // Whose errors were left for another round had one; should that ever be wrong, nobody is forgotten.
        for member in work.iter_mut().filter(|member| member.result.is_none()) {
            debug_assert!(false, "left for a round that did not come");
            member.note(guarded(|| engine::run(knowledge, member.id, limits)).map_or_else(unknown, concluded));
        }
    }
}

fn conclude(open: &mut [Option<Found<'_>>], work: &mut [Member]) {
    for (member, found) in work.iter_mut().zip(open).filter_map(|(member, open)| Some((member, open.take()?))) {
        member.note(concluded(found));
    }
}

/// Analyses one function of a recursion; `true` if its summary has changed. `again`: there may be another round.
fn run_member<'a>(
    knowledge: &'a Knowledge<'a>,
    work: &mut [Member],
    open: &mut Option<Found<'a>>,
    at: usize,
    limits: Limits,
    again: bool,
) -> bool {
    let member = &mut work[at];
    member.begin();
    // What an earlier round asked has led here, too.
    member.asked.extend(open.take().into_iter().flat_map(Found::give_up));
    let summary = match guarded(|| engine::run(knowledge, member.id, limits)) {
        Some(found) => {
            let summary = found.summary.clone();
            let given_up = summary.cut && summary.outcomes.is_empty();
            if again && member.runs < MAX_ROUNDS && !given_up && found.is_suspicious() {
                *open = Some(found);
            } else {
                member.note(concluded(found));
            }
            summary
        }
        None => {
            member.note(unknown());
            Summary::unknown()
        }
    };
    tell_callers(knowledge, work, at, summary)
}

/// A member has been run; `true` if its summary has changed.
fn tell_callers(knowledge: &Knowledge<'_>, work: &mut [Member], at: usize, summary: Summary) -> bool {
    let member = &mut work[at];
    let old = knowledge.summary(member.id);
    let was_closed = old.as_ref().is_none_or(|old| old.outcomes.is_empty());
    member.given_up = summary.cut && summary.outcomes.is_empty() && !knowledge.never[member.id];
    let summary = if member.given_up { Summary::unknown() } else { summary };
    let opened = member.given_up || (was_closed && !summary.outcomes.is_empty());
    let misleading = old.as_ref().is_none_or(|old| old.fate_of_arguments() != summary.fate_of_arguments());
    let changed = old.is_none_or(|old| *old != summary);
    if changed {
        knowledge.set_summary(member.id, Arc::new(summary.clone()));
    }
    member.summary = Some(summary);
    for caller in member.callers.clone() {
        work[caller].outdated |= changed;
        work[caller].misled |= misleading;
        work[caller].opened |= opened;
    }
    changed
}

/// Which members of a round wait for which: those that call it, or that it calls, and come before it.
struct Order {
    waits: Vec<usize>,
    /// It calls one that does not come before it: after the first round there is more to know of that one for sure.
    looks_ahead: Vec<bool>,
    /// Who waits for it.
    waiting: Vec<Vec<usize>>,
}

impl Order {
    fn of(work: &[Member]) -> Self {
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); work.len()];
        let mut looks_ahead = vec![false; work.len()];
        for (at, member) in work.iter().enumerate() {
            member.callers.iter().filter(|&&caller| caller <= at).for_each(|&caller| looks_ahead[caller] = true);
            for &caller in member.callers.iter().filter(|&&caller| caller != at) {
                waiting[at.min(caller)].push(at.max(caller));
            }
        }
        let mut waits = vec![0; work.len()];
        for list in &mut waiting {
            list.sort_unstable();
            list.dedup();
            list.iter().for_each(|&at| waits[at] += 1);
        }
        Self { waits, looks_ahead, waiting }
    }
}

/// One round, by several threads.
struct Turn<'t> {
    knowledge: &'t Knowledge<'t>,
    limits: Limits,
    order: &'t Order,
    count: usize,
    is_first: bool,
    now: Mutex<Now>,
}

struct Now {
    work: Vec<Member>,
    waits: Vec<usize>,
    changed: bool,
}

impl Turn<'_> {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that can begin do; those that need not are done.
    fn go_on<'s>(&'s self, scope: &rayon::Scope<'s>, mut ready: Vec<usize>) {
        let mut due = Vec::new();
        let mut now = self.lock();
        while let Some(at) = ready.pop() {
            if now.work[at].is_due(self.count) {
                now.work[at].begin();
                due.push((at, now.work[at].id));
            } else {
                now.done(at, self.order, &mut ready);
            }
        }
        drop(now);
        for (at, id) in due {
            scope.spawn(move |scope| self.run(scope, at, id));
        }
    }

    fn run<'s>(&'s self, scope: &rayon::Scope<'s>, at: usize, id: FuncId) {
        let found = guarded(|| engine::run(self.knowledge, id, self.limits));
        let vain = |found: &Found<'_>| {
            let given_up = found.summary.cut && found.summary.outcomes.is_empty();
            self.is_first && self.order.looks_ahead[at] && !given_up && found.is_suspicious()
        };
        let (summary, result, asked) = match found {
            // It is run again: its errors need not be looked into.
            Some(found) if vain(&found) => (found.summary.clone(), None, found.give_up()),
            found => {
                let result = found.map_or_else(unknown, concluded);
                (result.summary.clone(), Some(result), Vec::new())
            }
        };
        let mut ready = Vec::new();
        let mut now = self.lock();
        now.work[at].asked.extend(asked);
        result.into_iter().for_each(|result| now.work[at].note(result));
        now.changed |= tell_callers(self.knowledge, &mut now.work, at, summary);
        now.done(at, self.order, &mut ready);
        drop(now);
        self.go_on(scope, ready);
    }
}

impl Now {
    fn done(&mut self, at: usize, order: &Order, ready: &mut Vec<usize>) {
        for &next in &order.waiting[at] {
            self.waits[next] -= 1;
            if self.waits[next] == 0 {
                ready.push(next);
            }
        }
    }
}

/// A bug of ours in one function must not take the others with it: in release builds it becomes a gap.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    if cfg!(debug_assertions) {
        return Some(work());
    }
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}

fn concluded(found: Found<'_>) -> Analysed {
    let summary = found.summary.clone();
    guarded(|| found.conclude()).unwrap_or_else(|| Analysed { summary, ..unknown() })
}

/// Of a function that could not be analysed.
fn unknown() -> Analysed {
    Analysed {
        summary: Summary::unknown(),
        incidents: Vec::new(),
        sites: Vec::new(),
        releases: Vec::new(),
        suspicions: Vec::new(),
        degraded: true,
        asked: None,
    }
}
