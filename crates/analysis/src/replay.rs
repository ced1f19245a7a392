//! Does a path that leads to an error exist? It is run again, alone.
//!
//! Where many states meet, they are merged, and a merged state may go on where none of the merged ones could: it has
//! forgotten that `x` was true when the block was allocated. An incident therefore comes with the ways that were
//! recorded for it (`ways`). They are run once more with nothing merged, first the shortest, then those that leave it
//! once, twice, and so on; ways that begin alike are run together up to where they part, and all of them end where the
//! common part turns out to be impossible. The way on which the incident comes up is the one that is shown.
//!
//!     if (x) p = malloc(8);       // recorded: then, ..., else. Run again, `x` is known at the second test,
//!     ...                         // the else side is impossible, and every way that begins like this ends there.
//!     if (x) free(p);
//!
//! Where all ways end before the incident, it is only suspected. Where there are too many to run, a block that is used
//! after its release is only suspected as well, since that needs both on one way; a leak is reported with less
//! confidence.
//!
//! # Invariants
//! - A way is followed by its decisions alone: branches taken and outcomes of calls.
//! - Values of an earlier round of a loop are forgotten as in the analysis: what is equal here is equal there.

use std::collections::{BTreeMap, BinaryHeap};

use caulk_ir::BlockId;

use crate::engine::{Engine, IncidentKey};
use crate::incident::IncidentKind;
use crate::state::State;
use crate::trace;
use crate::ways::{self, Ways};

/// Blocks that are run to confirm one incident, for each decision of the shortest way to it.
const EFFORT: u32 = 32;
/// States within one block that are run on: a block with many calls, each with several outcomes, would have one for each
/// combination of them.
const CROWD: usize = 64;
/// Ways that are shown to whoever explains it.
const SHOWN: usize = 4;

/// The ways that may be followed, and how far the state that is being run has come on them.
pub struct Following {
    ways: Ways,
    /// Events that lie behind it.
    depth: u32,
    places: Vec<u32>,
    /// Some states were dropped because there were too many.
    crowded: bool,
}

/// A state that waits to be run.
struct Waiting {
    block: BlockId,
    state: State,
    places: Vec<u32>,
    /// Turns off the shortest way that was left, and what is left now.
    turns: u32,
    left: u32,
    number: u32,
}

enum Search {
    /// On this way.
    Found(Vec<trace::Event>),
    /// On none of the recorded ways.
    Nowhere,
    /// There are too many.
    GivenUp,
}

impl Engine<'_> {
    /// Notes which incidents come up again on a way of their own.
    pub(crate) fn confirm_incidents(&mut self) {
        let found = std::mem::take(&mut self.incidents);
        let traces = std::mem::take(&mut self.traces);
        let (degraded, exits, limits) = (self.degraded, self.exits.len(), self.limits);
        self.degraded = false;
        self.limits.fine_states = usize::MAX;
        self.limits.coarse_states = usize::MAX;
        let mut examined = BTreeMap::new();
        for (key, mut incident) in found {
            let trace = traces.get(&key).cloned().flatten();
            incident.paths = match self.comes_up(&key, Ways::to(&trace)) {
                Search::Found(way) => vec![way],
                // Of two things that happened on different ways, the second is no error.
                Search::GivenUp if matches!(key.0, IncidentKind::Leak | IncidentKind::LeakAtExit) => Vec::new(),
                Search::GivenUp | Search::Nowhere => {
                    self.suspicions.insert((key.2, key.0));
                    continue;
                }
            };
            incident.confirmed = !incident.paths.is_empty();
            for other in trace::paths(&trace, SHOWN) {
                if incident.paths.len() < SHOWN && !incident.paths.contains(&other) {
                    incident.paths.push(other);
                }
            }
            examined.insert(key, incident);
        }
        self.incidents = examined;
        self.exits.truncate(exits);
        (self.degraded, self.limits) = (degraded, limits);
    }

    /// Runs the ways, each alone, those first that turn off the shortest one least often: on which one does the
    /// incident come up?
    fn comes_up(&mut self, key: &IncidentKey, ways: Ways) -> Search {
        let mut left = EFFORT * (ways.length().min(1 << 16) + self.function.blocks.len().min(1 << 16) as u32);
        let (mut number, entry) = (0, ways.entry());
        let state = self.first_state();
        let first = Waiting { block: BlockId(0), state, places: entry, turns: 0, left: 0, number };
        let mut open = BinaryHeap::from([first]);
        self.following = Some(Following { ways, depth: 0, places: Vec::new(), crowded: false });
        let mut found = Search::Nowhere;
        while let Some(Waiting { block, state, places, turns, .. }) = open.pop() {
            if left == 0 || self.terms.len() > self.limits.terms {
                found = Search::GivenUp;
                break;
            }
            left -= 1;
            self.incidents.clear();
            self.traces.clear();
            if let Some(following) = &mut self.following {
                (following.depth, following.places) = (trace::depth(&state.trace), places);
            }
            let mut leaving = Vec::new();
            self.run_block(block, vec![state], &mut leaving);
            let mut next: Vec<(BlockId, State, Vec<u32>, u32)> = Vec::new();
            for (to, state) in leaving {
                let Some((places, left)) = self.following.as_ref().and_then(|ways| ways.reached(&state)) else {
                    continue;
                };
                if let Some((to, state)) = self.cross(block, to, state) {
                    next.push((to, state, places, left));
                }
            }
            if self.incidents.contains_key(key)
                && let Some(trace) = self.traces.get(key)
            {
                found = Search::Found(trace::paths(trace, 1).pop().unwrap_or_default());
                break;
            }
            let nearest = next.iter().map(|one| one.3).min().unwrap_or(0);
            for (block, state, places, left) in next {
                number += 1;
                open.push(Waiting { block, state, places, turns: turns + u32::from(left > nearest), left, number });
            }
        }
        let crowded = self.following.take().is_some_and(|following| following.crowded);
        if crowded && matches!(found, Search::Nowhere) { Search::GivenUp } else { found }
    }

    /// Where only some ways are followed, drops the states that leave them, and those farthest from the end where they are
    /// too many.
    pub(crate) fn keep_to_the_way(&mut self, states: &mut Vec<State>) {
        let Some(following) = &mut self.following else { return };
        if states.len() <= CROWD {
            states.retain(|state| following.reached(state).is_some());
            return;
        }
        let mut near: Vec<(u32, State)> = Vec::with_capacity(states.len());
        for state in states.drain(..) {
            if let Some((_, left)) = following.reached(&state) {
                near.push((left, state));
            }
        }
        near.sort_by_key(|entry| entry.0);
        following.crowded |= near.len() > CROWD;
        states.extend(near.into_iter().take(CROWD).map(|entry| entry.1));
    }
}

impl Following {
    /// Where a state is that has gone on, and how many decisions are left at least; `None`: on none of the ways.
    fn reached(&self, state: &State) -> Option<(Vec<u32>, u32)> {
        let mut places = self.places.clone();
        for decision in ways::decisions_behind(&state.trace, self.depth) {
            places = self.ways.follow(&places, decision);
        }
        let left = self.ways.left(&places);
        (!places.is_empty()).then_some((places, left))
    }
}

impl Waiting {
    /// The fewer turns and the nearer to the end, the sooner; then as they came.
    fn rank(&self) -> (u32, u32, u32) {
        (self.turns, self.left, self.number)
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Waiting {}
