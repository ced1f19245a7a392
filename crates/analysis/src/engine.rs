//! Symbolic execution of one function: every block with the states that reach it,
//! merged where their property is the same, until nothing new arrives.
//!
//! # Invariants
//! - No path is dropped because of a limit: states are merged more coarsely
//!   instead, which turns "must" into "may".
//! - The result depends on the function, its callees' summaries and the models alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use caulk_base::{FxHashMap, FxHashSet, IdVec};
use caulk_ir::{BlockId, Call, Callee, FuncId, Function, InstId, Op, Program, Target, UnitId, ValueId, VarId};
use caulk_models::{Effect, FamilyId, Models, Place};
use smallvec::SmallVec;

use crate::asked::{Asked, Question};
use crate::cfg::{self, Cfg, ValueSet};
use crate::covers::covers;
use crate::facts::Range;
use crate::heap::Origin;
use crate::incident::{Doubt, Incident, IncidentKind, Loss, ReleaseFact, Subject, Suspicion, Use};
use crate::keys::{self, Keys};
use crate::merge::{self, Grain};
use crate::object::{ObjId, Status};
use crate::place::Off;
use crate::replay::Following;
use crate::short::Counter;
use crate::state::State;
use crate::summary::Summary;
use crate::term::{TermId, Terms};
use crate::trace::{Event, Trace};
use crate::whole::Knowledge;

/// How many times more a function may cost that is looked at more closely.
const CLOSER: usize = 8;

/// How much work one function may cost before precision is traded for time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// States per block that are kept apart by objects, references and constants.
    pub fine_states: usize,
    /// States per block that are kept apart at all.
    pub coarse_states: usize,
    /// Block visits per function before everything is merged.
    pub visits: usize,
    /// Instructions run per function, counted once for each state, before everything is merged.
    pub work: usize,
    pub outcomes: usize,
    /// Times a loop head is visited before everything is merged, by every way around and into it. Loops in loops need
    /// many; what is not followed to its end is nothing that a release can be proved of.
    pub rounds: usize,
    /// Memory cells a state may remember.
    pub cells: usize,
    pub terms: usize,
    /// Nothing is taken for granted that others may change or that programs merely use to do: a number in memory may be
    /// another one whenever it is read, a number that is cut may be anything, and callees may do whatever they can do. An
    /// analysis like this finds errors that do not exist; no doubt in it means a lot.
    pub wary: bool,
}

impl Limits {
    /// For the few functions that are to be repaired: what is merged there is a patch that cannot be proved.
    pub fn closer(self) -> Self {
        Self {
            fine_states: self.fine_states * CLOSER,
            coarse_states: self.coarse_states * CLOSER,
            visits: self.visits * CLOSER,
            work: self.work * CLOSER,
            terms: self.terms * CLOSER,
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fine_states: 8,
            coarse_states: 16,
            visits: 4_000,
            work: 40_000,
            outcomes: 8,
            rounds: 96,
            cells: 96,
            terms: 100_000,
            wary: false,
        }
    }
}

/// What the analysis of one function gives.
pub struct Analysed {
    pub summary: Summary,
    pub incidents: Vec<Incident>,
    /// Calls that allocate, in this function.
    pub sites: Vec<crate::summary::SiteFact>,
    /// Calls that release, and what speaks against them.
    pub releases: Vec<ReleaseFact>,
    pub suspicions: Vec<Suspicion>,
    /// The limit was reached and precision lost.
    pub degraded: bool,
    /// What was asked of the rest of the program, sorted; `None` if that is not known.
    pub asked: Option<Vec<Question>>,
}

/// Incidents that agree in this are one.
pub(crate) type IncidentKey = (IncidentKind, Subject, InstId);

/// The states that come to a block: over its edges in the order of the blocks, and over those that lead back to it.
#[derive(Default)]
struct Arrived {
    forward: Vec<State>,
    back: Vec<State>,
}

/// One way out of the function.
pub(crate) struct Exit {
    pub state: State,
    pub result: Option<TermId>,
}

pub(crate) struct Engine<'a> {
    pub program: &'a Program,
    pub models: &'a Models,
    pub knowledge: Asked<'a>,
    pub unit: UnitId,
    pub id: FuncId,
    pub function: &'a Function,
    pub cfg: Cfg,
    pub terms: Terms,
    pub memory: FamilyId,
    pub limits: Limits,
    /// The terms of values that are the same in every state: parameters, constants, addresses.
    pub fixed: IdVec<ValueId, Option<TermId>>,
    /// Values that some source variable holds.
    pub bound: ValueSet,
    /// The values each source variable is given.
    pub bindings: FxHashMap<VarId, Vec<ValueId>>,
    /// Values that some instruction reads.
    pub used: ValueSet,
    /// Pointers that somebody may compare with null: here, or after they were handed on.
    pub tested: ValueSet,
    /// Values that are read otherwise than to release what may be null.
    pub needed: ValueSet,
    /// Values that are written to memory or come together with others.
    pub stored: ValueSet,
    /// `main`: what is lost when it returns is lost at exit.
    pub ends_program: bool,
    pub incidents: BTreeMap<IncidentKey, Incident>,
    pub sites: FxHashMap<(InstId, u32), crate::summary::SiteFact>,
    pub releases: BTreeMap<InstId, BTreeSet<Doubt>>,
    /// Where objects were released, on any way.
    pub released: FxHashMap<Origin, BTreeSet<InstId>>,
    /// Is the second behind the first?
    pub behind: FxHashMap<(InstId, InstId), bool>,
    /// See [`ReleaseFact::written`].
    pub written: BTreeMap<InstId, (u32, Vec<(i64, u64)>)>,
    /// Streams and their like whose descriptor somebody closed by its number, on some way, and where they are closed.
    pub undermined: BTreeSet<ObjId>,
    pub closed: BTreeSet<(InstId, ObjId)>,
    pub suspicions: BTreeSet<(InstId, IncidentKind)>,
    pub exits: Vec<Exit>,
    /// Some path releases parts of a structure we cannot name one by one.
    pub drained: bool,
    /// Functions without body and model that were given an object.
    pub assumed: FxHashSet<String>,
    /// Something unknown may have been called: globals may have changed.
    pub calls_unknown: bool,
    /// As in `Summary`.
    pub draws: bool,
    pub asks: bool,
    pub degraded: bool,
    pub work: usize,
    /// Objects that some variable held at some time.
    pub ever_bound: FxHashSet<ObjId>,
    /// Pointers into the middle of blocks that calls returned: for the caller they are the block.
    pub handed_out: FxHashMap<ObjId, BTreeSet<TermId>>,
    /// Phi and incoming value: is it a counter?
    pub counted: FxHashMap<(ValueId, ValueId), bool>,
    /// Cells that are given computed values within a loop, and where.
    pub counters: FxHashSet<(ObjId, Off, InstId)>,
    /// What is known of phis from the next round on.
    pub floors: Vec<(TermId, Range)>,
    /// Arrays of which some element was released or put elsewhere, whichever it was.
    pub emptied: FxHashSet<ObjId>,
    /// Parameters that were put into memory.
    pub put_away: BTreeSet<u32>,
    /// Some paths were not followed to their end.
    pub cut: bool,
    /// Local variables whose address somebody has who is not seen: who is called later may look there.
    pub exposed: FxHashSet<ObjId>,
    /// The objects that each object was put into, on any way, and by which store.
    pub ever_within: FxHashMap<ObjId, BTreeSet<(ObjId, Option<InstId>)>>,
    /// Blocks that were exchanged for a larger one, with that one.
    pub grown: BTreeSet<(ObjId, ObjId)>,
    /// The sizes that were asked for where a block was to become larger.
    pub asked: FxHashMap<ObjId, BTreeSet<(InstId, TermId)>>,
    /// How much the calls that made the objects were asked for, where that was worked out.
    pub sizes: FxHashMap<ObjId, BTreeSet<TermId>>,
    /// What held the objects of which leaks were reported.
    pub held: BTreeMap<IncidentKey, Vec<ObjId>>,
    /// Values that are held although no variable has them: they are about to be written.
    pub pinned: Vec<TermId>,
    /// A variable is being overwritten: what it held counts as held no more.
    pub forgotten: Option<VarId>,
    /// The ways on which the objects of the incidents came there.
    pub traces: BTreeMap<IncidentKey, Trace>,
    /// The ways that are being followed, if it is not all of them.
    pub following: Option<Following>,
    /// The block that is being run.
    pub block: BlockId,
    /// The `return` statement that is being left.
    pub return_at: Option<InstId>,
    /// By loop head and term: does it speak of something that came up within the loop?
    pub stale: RefCell<Vec<Vec<Option<bool>>>>,
    /// What the exit that is being left returns.
    pub returned: Option<TermId>,
    /// Loops of a few rounds that are run one by one, by their heads.
    pub short: FxHashMap<BlockId, Option<Counter>>,
}

/// The arguments that a call does not merely release, null or not.
fn needed_by(knowledge: &Knowledge<'_>, unit: UnitId, call: &Call, mut note: impl FnMut(ValueId)) {
    let model = match call.callee {
        Callee::Symbol(symbol) => match knowledge.program.target(unit, symbol) {
            Target::Extern(external) => knowledge.model(*external),
            _ => None,
        },
        _ => None,
    };
    let released = |at: usize| {
        let fits = |effect: &Effect| matches!(effect, Effect::Releases { place: Place::Arg(arg), null_ok: true, .. } if *arg as usize == at);
        model.is_some_and(|model| model.effects.iter().any(fits))
    };
    call.args.iter().enumerate().filter(|(at, _)| !released(*at)).for_each(|(_, value)| note(*value));
}

fn engine<'a>(knowledge: &'a Knowledge<'a>, id: FuncId, limits: Limits) -> Engine<'a> {
    let program = knowledge.program;
    let limits = if knowledge.close.contains(&id) { limits.closer() } else { limits };
    let function = program.function(id);
    let none = ValueSet::new(function.values.len());
    let (mut bound, mut stored, mut used, mut needed) = (none.clone(), none.clone(), none.clone(), none);
    let mut bindings: FxHashMap<VarId, Vec<ValueId>> = FxHashMap::default();
    for inst in function.insts.iter() {
        if !matches!(inst.op, Op::Bind { .. }) {
            cfg::for_each_operand(&inst.op, |value| used.insert(value));
            match &inst.op {
                Op::Call(call) => {
                    needed_by(knowledge, program.unit_of(id), call, |value| needed.insert(value));
                }
                op => cfg::for_each_operand(op, |value| needed.insert(value)),
            }
        }
        match &inst.op {
            Op::Bind { var, value } => {
                bindings.entry(*var).or_default().push(*value);
                bound.insert(*value);
            }
            Op::Store { value, .. } => stored.insert(*value),
            Op::Phi { incoming } => incoming.iter().for_each(|entry| stored.insert(entry.1)),
            _ => {}
        }
    }
    Engine {
        program,
        models: knowledge.models,
        knowledge: Asked::new(knowledge, id),
        unit: program.unit_of(id),
        id,
        function,
        cfg: cfg::build(function),
        terms: Terms::new(),
        memory: knowledge.memory,
        limits,
        fixed: IdVec::filled(function.values.len(), None),
        bound,
        bindings,
        used,
        tested: cfg::tested(function),
        needed,
        stored,
        ends_program: function.name == "main",
        incidents: BTreeMap::new(),
        sites: FxHashMap::default(),
        releases: BTreeMap::new(),
        written: BTreeMap::new(),
        undermined: BTreeSet::new(),
        closed: BTreeSet::new(),
        suspicions: BTreeSet::new(),
        exits: Vec::new(),
        drained: false,
        assumed: FxHashSet::default(),
        calls_unknown: false,
        draws: false,
        asks: false,
        degraded: false,
        work: 0,
        ever_bound: FxHashSet::default(),
        handed_out: FxHashMap::default(),
        released: FxHashMap::default(),
        behind: FxHashMap::default(),
        counted: FxHashMap::default(),
        counters: FxHashSet::default(),
        floors: Vec::new(),
        emptied: FxHashSet::default(),
        put_away: BTreeSet::new(),
        cut: false,
        exposed: FxHashSet::default(),
        ever_within: FxHashMap::default(),
        grown: BTreeSet::new(),
        asked: FxHashMap::default(),
        sizes: FxHashMap::default(),
        held: BTreeMap::new(),
        pinned: Vec::new(),
        forgotten: None,
        traces: BTreeMap::new(),
        following: None,
        block: BlockId(0),
        return_at: None,
        stale: RefCell::default(),
        returned: None,
        short: FxHashMap::default(),
    }
}

/// What is known of a function once it has been run: what callers are told, and what it takes to look into errors.
pub struct Found<'a> {
    pub summary: Summary,
    engine: Engine<'a>,
}

pub fn run<'a>(knowledge: &'a Knowledge<'a>, id: FuncId, limits: Limits) -> Found<'a> {
    let mut engine = engine(knowledge, id, limits);
    engine.run();
    let summary = engine.summarise();
    Found { summary, engine }
}

impl Found<'_> {
    /// Are there errors to look into?
    pub fn is_suspicious(&self) -> bool {
        !self.engine.incidents.is_empty()
    }

    /// The errors do not matter; what was asked does.
    pub fn give_up(self) -> Vec<Question> {
        self.engine.terms.leave();
        self.engine.knowledge.into_questions()
    }

    /// The errors that come up again on a way of their own, and all the rest. Callees' summaries must be as they were.
    pub fn conclude(mut self) -> Analysed {
        self.engine.confirm_incidents();
        self.engine.finish(self.summary)
    }
}

/// A way to each outcome of a function, by its number, for people who want to look into a call. The function is run
/// again: nobody else needs the ways. None, if that does not give the summary that callers have used.
pub fn ways_out(knowledge: &Knowledge<'_>, id: FuncId, limits: Limits) -> Vec<Vec<Event>> {
    let mut engine = engine(knowledge, id, limits);
    engine.run();
    let states = engine.merged_exits();
    let same = knowledge.summary(id).is_some_and(|summary| engine.export(&states).outcomes == summary.outcomes);
    if !same {
        return Vec::new();
    }
    states.iter().map(|state| crate::trace::paths(&state.trace, 1).pop().unwrap_or_default()).collect()
}

impl Engine<'_> {
    fn run(&mut self) {
        if self.function.blocks.is_empty() {
            return;
        }
        // Blocks by position in reverse post-order: all forward ways into a block come before it.
        let mut pending: BTreeMap<(u32, BlockId), Arrived> = BTreeMap::new();
        let mut heads: FxHashMap<BlockId, Vec<State>> = FxHashMap::default();
        pending.insert((0, BlockId(0)), Arrived { forward: vec![self.first_state()], back: Vec::new() });
        let mut visits = 0;
        let mut rounds: FxHashMap<BlockId, usize> = FxHashMap::default();
        while let Some(((_, block), arrived)) = pending.pop_first() {
            visits += 1;
            if (visits > self.limits.visits || self.work > self.limits.work || self.terms.len() > self.limits.terms)
                && !self.degraded
            {
                self.degraded = true;
            }
            let loop_head = self.cfg.loop_head[block];
            if loop_head {
                let rounds = rounds.entry(block).or_insert(0usize);
                *rounds += 1;
                // With everything merged, most loops come to their end in a few rounds more.
                self.degraded |= *rounds > self.limits.rounds;
                if *rounds > self.limits.rounds + self.limits.rounds / 4 {
                    // What still changes after so many rounds is not worth following.
                    let known = heads.entry(block).or_default();
                    let covered = |state: &State| known.iter().any(|known| covers(&self.terms, known, state));
                    self.cut |= !arrived.forward.iter().chain(&arrived.back).all(covered);
                    continue;
                }
            }
            let mut leaving: Vec<(BlockId, State)> = Vec::new();
            let states = if loop_head {
                let round = rounds.get(&block).copied().unwrap_or(0);
                let mut arrived = arrived;
                self.begin_for_sure(block, &mut arrived.forward, &mut leaving);
                arrived.forward.append(&mut arrived.back);
                self.new_at_head(block, arrived.forward, heads.entry(block).or_default(), round)
            } else {
                self.merge_all(block, arrived.forward, false)
            };
            if states.is_empty() && leaving.is_empty() {
                continue;
            }
            self.run_block(block, states, &mut leaving);
            for (to, state) in leaving {
                if let Some((to, state)) = self.cross(block, to, state) {
                    let arrived = pending.entry((self.cfg.order[to], to)).or_default();
                    if self.cfg.loop_head[to] && self.cfg.order[to] <= self.cfg.order[block] {
                        arrived.back.push(state);
                    } else {
                        arrived.forward.push(state);
                    }
                }
            }
            if visits > self.limits.visits * 2 || self.work > self.limits.work * 2 {
                // Cannot happen with everything merged, but a hang would be worse than a gap.
                // Callers take the function for one they know nothing of.
                self.exits.clear();
                self.incidents.clear();
                (self.degraded, self.cut) = (true, true);
                self.calls_unknown = true;
                break;
            }
        }
    }

    /// Takes a state over an edge; `None` where the function ends behind it.
    pub(crate) fn cross(&mut self, from: BlockId, to: BlockId, mut state: State) -> Option<(BlockId, State)> {
        self.enter(from, to, &mut state);
        if self.is_exit(to) {
            let (terminator, _) = self.function.terminator(from);
            self.leave_through(to, state, terminator);
            return None;
        }
        if self.cfg.loop_head[to]
            && self.cfg.order[to] <= self.cfg.order[from]
            && !self.runs_by_number(to, &state, false)
        {
            self.begin_round(&mut state, to);
        }
        Some((to, state))
    }

    /// The nearer the limit, the fewer states are kept apart: better a little less of everything than nothing at the end.
    fn pressure(&self) -> u32 {
        (4 * self.work / self.limits.work.max(1)).clamp(1, 3) as u32 - 1
    }

    pub(crate) fn fine_states(&self) -> usize {
        self.limits.fine_states >> self.pressure()
    }

    fn coarse_states(&self) -> usize {
        self.limits.coarse_states >> self.pressure()
    }

    fn grain(&self, count: usize) -> Grain {
        if self.degraded {
            Grain::One
        } else if count <= self.fine_states() {
            Grain::Fine
        } else {
            Grain::Coarse
        }
    }

    /// Merges the states that arrive at a block as far as their number demands.
    pub(crate) fn merge_all(&mut self, block: BlockId, states: Vec<State>, loop_head: bool) -> Vec<State> {
        let mut merged = self.merge_by(block, states, loop_head, self.grain(0));
        if merged.len() > self.fine_states() {
            merged = self.merge_by(block, merged, loop_head, Grain::Coarse);
        }
        for grain in [Grain::Lost, Grain::One] {
            if merged.len() > self.coarse_states() {
                merged = self.merge_by(block, merged, loop_head, grain);
            }
        }
        merged
    }

    fn merge_by(&mut self, block: BlockId, states: Vec<State>, loop_head: bool, grain: Grain) -> Vec<State> {
        if states.len() < 2 {
            return states;
        }
        let of = Keys::new(grain, loop_head);
        let mut keys: SmallVec<[u64; 16]> = SmallVec::new();
        let mut merged: Vec<State> = Vec::with_capacity(states.len());
        for state in states {
            let key = of.of(&state, &self.terms);
            match keys.iter().position(|known| *known == key) {
                Some(at) => {
                    merged[at] = merge::join(&mut self.terms, self.memory, &merged[at], &state, block, loop_head);
                }
                None => {
                    keys.push(key);
                    merged.push(state);
                }
            }
        }
        merged
    }

    /// States that enter a loop and cannot pass it by (`for (i = 1; i < 9; i++)`) run its first round by themselves: what
    /// leaves the loop has been through it. The others stay in `entering`.
    fn begin_for_sure(&mut self, head: BlockId, entering: &mut Vec<State>, leaving: &mut Vec<(BlockId, State)>) {
        let stays = |engine: &Self, to: BlockId| engine.cfg.is_in_loop(head, merge::block_site(to));
        let leads_out = cfg::successors(&self.function.terminator(head).1.op).iter().any(|&to| !stays(self, to));
        if self.degraded || !leads_out {
            return;
        }
        let states = self.merge_all(head, std::mem::take(entering), false);
        for state in states {
            if let Some(mut through) = self.run_through(head, &state) {
                leaving.append(&mut through);
                continue;
            }
            let mut next = Vec::new();
            self.run_block(head, vec![state.clone()], &mut next);
            if next.iter().all(|&(to, _)| stays(self, to)) {
                leaving.append(&mut next);
            } else {
                entering.push(state);
            }
        }
    }

    /// The states at a loop head that say something new, merged into what is known there.
    /// The longer it takes, the less is told apart.
    fn new_at_head(&mut self, block: BlockId, arrived: Vec<State>, known: &mut Vec<State>, round: usize) -> Vec<State> {
        let mut fresh: Vec<usize> = Vec::new();
        // Of known states, by what they were told apart last.
        let mut told: Vec<Option<(Grain, u64)>> = vec![None; known.len()];
        for state in arrived {
            let grain = match self.grain(known.len()) {
                Grain::Fine if round > self.limits.rounds / 3 => Grain::Coarse,
                Grain::Coarse | Grain::Fine if round > 2 * self.limits.rounds / 3 => Grain::One,
                grain => grain,
            };
            let full = known.len() >= self.coarse_states();
            let key = keys::key(&state, &self.terms, grain, true);
            let found = known.iter().zip(&mut told).position(|(old, known)| match known {
                Some((by, known)) if *by == grain => *known == key,
                _ => known.insert((grain, keys::key(old, &self.terms, grain, true))).1 == key,
            });
            let found = if full { found.or(Some(known.len() - 1)) } else { found };
            match found {
                Some(at) => {
                    let joined = merge::join(&mut self.terms, self.memory, &known[at], &state, block, true);
                    if !merge::same(&joined, &known[at]) {
                        (known[at], told[at]) = (joined, None);
                        if !fresh.contains(&at) {
                            fresh.push(at);
                        }
                    }
                }
                None => {
                    known.push(state);
                    told.push(Some((grain, key)));
                    fresh.push(known.len() - 1);
                }
            }
        }
        fresh.into_iter().map(|at| known[at].clone()).collect()
    }

    /// Moves a state over the edge: phis take their values, dead values go, lost objects are noticed.
    fn enter(&mut self, from: BlockId, to: BlockId, state: &mut State) {
        let function = self.function;
        let back = self.cfg.order[to] <= self.cfg.order[from]
            && !(self.cfg.loop_head[to] && self.runs_by_number(to, state, true));
        let mut phis: Vec<(ValueId, TermId)> = Vec::new();
        for (_, inst) in function.block_insts(to) {
            match &inst.op {
                Op::Phi { incoming } => {
                    let Some(&(_, value)) = incoming.iter().find(|entry| entry.0 == from) else { continue };
                    let Some(result) = inst.result else { continue };
                    let mut term = self.operand(state, value);
                    if back {
                        term = self.carried(to, result, value, term);
                    }
                    phis.push((result, term));
                }
                Op::Bind { .. } => {}
                _ => break,
            }
        }
        state.env.retain(|entry| self.cfg.is_live_in(to, entry.0));
        for (result, term) in phis {
            state.bind(result, term);
        }
        self.collect(state, None, None);
        self.slim(state, to);
    }

    /// A state that remembers too much forgets plain numbers in memory.
    fn slim(&self, state: &mut State, block: BlockId) {
        // That something nameless was looked at, or kept, matters to nobody.
        state.objs.retain(|(obj, known)| !self.terms.is_nameless(*obj) || known.status != Status::LIVE || known.owned);
        if state.cells.len() <= self.limits.cells {
            return;
        }
        let mut changed: Vec<ObjId> = Vec::new();
        state.cells.retain(|((obj, _), cell)| {
            let keep = self.terms.is_held_by_name(cell.term);
            if !keep && changed.last() != Some(obj) {
                changed.push(*obj);
            }
            keep
        });
        for obj in changed {
            crate::state::put(&mut state.epochs, obj, merge::block_site(block));
            if let Some(known) = state.obj_mut(obj) {
                known.zeroed = false;
            }
        }
    }

    /// A block that only returns: every `return` statement jumps to it, and each is an exit of its own.
    fn is_exit(&self, block: BlockId) -> bool {
        self.function.block_insts(block).all(|(_, inst)| {
            matches!(
                inst.op,
                Op::Phi { .. }
                    | Op::Bind { .. }
                    | Op::Return { .. }
                    | Op::Cast { .. }
                    | Op::Load { .. }
                    | Op::Cmp { .. }
            )
        }) && matches!(self.function.terminator(block).1.op, Op::Return { .. })
    }

    /// Runs a block that only returns. The statement that was left is the `return`, not the
    /// function's closing brace.
    fn leave_through(&mut self, block: BlockId, state: State, from: InstId) {
        let locs = &self.program.units[self.unit].locs;
        let own = self.function.terminator(block).0;
        let left = &self.function.insts[from];
        let loc = locs[left.loc];
        // A macro that returns stands where it is used.
        let at_return = loc.at_return
            || (loc.in_macro && matches!(left.op, Op::Jump { .. }))
            || locs[self.function.insts[own].loc].line == 0;
        self.return_at = Some(if at_return { from } else { own });
        self.run_block(block, vec![state], &mut Vec::new());
        self.return_at = None;
    }

    pub(crate) fn exit(&mut self, mut state: State, result: Option<TermId>, at: InstId) {
        let at = self.return_at.unwrap_or(at);
        if let Some(term) = result
            && self.function.ret == caulk_ir::Ty::Ptr
            && let Some((obj, Off::At(_) | Off::Elem(..))) = self.terms.pointee(term)
            && let Some(known) = state.obj(obj).copied()
            && known.status.without(Status::FAILED) == Status::FREED
            && !self.models.families[known.family].is_integer
        {
            self.tell(&mut state, IncidentKind::UseAfterFree(Use::Returned), obj, at);
        }
        self.collect(&mut state, None, Some(result));
        self.returned = result;
        self.report_lost(&mut state, at, Loss::Return, |_, _, _| true);
        self.returned = None;
        self.exits.push(Exit { state, result });
    }
}
