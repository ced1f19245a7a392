//! Does a path that leads to an error exist? It is run again, alone.
//!
//! Where many states meet, they are merged, and a merged state may go on where none of the merged ones could: it has
//! forgotten that `x` was true when the block was allocated. An incident therefore comes with the ways that were
//! recorded for it; each is run once more with nothing merged, and the incident is confirmed if it comes up again on
//! one of them. That way is then the one that is shown.
//!
//!     if (x) p = malloc(8);       // recorded: then, ..., else. Run again, `x` is known at the second test,
//!     ...                         // the else side is impossible, and the way ends there.
//!     if (x) free(p);
//!
//! A block that is used after its release needs both on one way: where none of those recorded comes to it, it is only
//! suspected. A leak may be reported all the same, with less confidence.
//!
//! # Invariants
//! - A way is followed by its decisions alone: branches taken and outcomes of calls.
//! - Values of an earlier round of a loop are forgotten as in the analysis: what is equal here is equal there.

use caulk_ir::BlockId;

use crate::engine::{Engine, IncidentKey};
use crate::incident::IncidentKind;
use crate::state::State;
use crate::trace::{self, Event};

/// Ways that are tried for one incident.
pub(crate) const MAX_PATHS: usize = 12;
/// Ways that are shown to whoever explains it.
const SHOWN: usize = 4;

impl Engine<'_> {
    /// Notes which incidents come up again on a way of their own.
    pub(crate) fn confirm_incidents(&mut self) {
        let found = std::mem::take(&mut self.incidents);
        let (degraded, exits, limits) = (self.degraded, self.exits.len(), self.limits);
        self.degraded = false;
        self.limits.fine_states = usize::MAX;
        self.limits.coarse_states = usize::MAX;
        let mut examined = std::collections::BTreeMap::new();
        for (key, mut incident) in found {
            let paths = std::mem::take(&mut incident.paths);
            let found = paths.iter().position(|path| self.comes_up(&key, path));
            // Of two things that happened on different ways, the second is no error.
            if found.is_none() && !matches!(key.0, IncidentKind::Leak | IncidentKind::LeakAtExit) {
                self.suspicions.insert((key.2, key.0));
                continue;
            }
            incident.confirmed = found.is_some();
            incident.paths = paths[found.unwrap_or(0)..].iter().take(SHOWN).cloned().collect();
            examined.insert(key, incident);
        }
        self.incidents = examined;
        self.exits.truncate(exits);
        (self.degraded, self.limits) = (degraded, limits);
    }

    /// Runs the way alone: does the incident come up?
    fn comes_up(&mut self, key: &IncidentKey, path: &[Event]) -> bool {
        self.incidents.clear();
        let way = decisions(path);
        // Each block ends with at most one decision of the way; a way cannot be longer than this.
        let mut left = 4 * (way.len() + self.function.blocks.len());
        self.way = Some(way);
        let mut open: Vec<(BlockId, State)> = vec![(BlockId(0), State::default())];
        let mut found = false;
        while let Some((block, state)) = open.pop() {
            if left == 0 || self.terms.len() > self.limits.terms {
                break;
            }
            left -= 1;
            let mut leaving = Vec::new();
            self.run_block(block, vec![state], &mut leaving);
            leaving.retain(|(_, state)| self.is_on_the_way(state));
            for (to, state) in leaving {
                open.extend(self.cross(block, to, state));
            }
            found = self.incidents.contains_key(key);
            if found {
                break;
            }
        }
        self.way = None;
        found
    }

    /// Where only one way is followed, drops the states that leave it.
    pub(crate) fn keep_to_the_way(&self, states: &mut Vec<State>) {
        if self.way.is_some() {
            states.retain(|state| self.is_on_the_way(state));
        }
    }

    fn is_on_the_way(&self, state: &State) -> bool {
        let (Some(way), Some(taken)) = (&self.way, trace::paths(&state.trace, 1).pop()) else { return true };
        decisions(&taken).iter().zip(way).all(|(taken, wanted)| taken == wanted)
    }
}

fn decisions(path: &[Event]) -> Vec<Event> {
    path.iter().filter(|event| matches!(event, Event::Branch { .. } | Event::Outcome { .. })).copied().collect()
}
