//! All recorded ways to a place, as one graph of decisions that can be followed from the entry.
//!
//! ```text
//! entry ── x: then ──┬── y: then ──┬── z: else ── here        four ways, six decisions
//!       └─ x: else ──┘└─ y: else ──┘
//! ```
//!
//! Traces lead back from a state to the entry. Whoever runs the function again comes from the other side, with the
//! decisions that were taken so far, and asks whether there is still a recorded way that begins like this, and how far
//! it is to its end.

use std::rc::Rc;

use caulk_base::FxHashMap;
use smallvec::SmallVec;

use crate::trace::{Event, Node, Trace};

/// A place on a recorded way: the node of the event that came last.
type Place = u32;

#[derive(Default)]
struct Step {
    /// The decision that leads here, if it is one.
    decision: Option<Event>,
    next: SmallVec<[Place; 2]>,
    /// Decisions to the end, at least.
    left: u32,
}

pub(crate) struct Ways {
    /// The entry comes first.
    steps: Vec<Step>,
}

impl Ways {
    pub(crate) fn to(end: &Trace) -> Self {
        let mut steps = vec![Step { left: u32::MAX, ..Step::default() }];
        let mut places: FxHashMap<*const Node, Place> = FxHashMap::default();
        // Each node gets its place behind all that lead to it.
        let mut open: Vec<(Rc<Node>, bool)> = end.iter().map(|node| (node.clone(), false)).collect();
        while let Some((node, done)) = open.pop() {
            if places.contains_key(&Rc::as_ptr(&node)) {
                continue;
            }
            if done {
                let place = steps.len() as Place;
                places.insert(Rc::as_ptr(&node), place);
                let decision = node.event.filter(is_decision);
                for before in &node.prevs {
                    let before = before.as_ref().map_or(0, |before| places[&Rc::as_ptr(before)]);
                    steps[before as usize].next.push(place);
                }
                steps.push(Step { decision, next: SmallVec::new(), left: u32::MAX });
            } else {
                open.push((node.clone(), true));
                open.extend(node.prevs.iter().flatten().map(|before| (before.clone(), false)));
            }
        }
        let mut ways = Self { steps };
        ways.measure();
        ways
    }

    /// From the end back: the nearest one.
    fn measure(&mut self) {
        if let Some(end) = self.steps.last_mut() {
            end.left = 0;
        }
        for at in (0..self.steps.len()).rev() {
            let nearest = self.steps[at].next.iter().map(|&next| {
                let next = &self.steps[next as usize];
                next.left.saturating_add(u32::from(next.decision.is_some()))
            });
            if let Some(nearest) = nearest.min() {
                self.steps[at].left = nearest.min(self.steps[at].left);
            }
        }
    }

    /// Decisions on the shortest way.
    pub(crate) fn length(&self) -> u32 {
        self.left(&self.entry())
    }

    pub(crate) fn entry(&self) -> Vec<Place> {
        vec![0]
    }

    /// Where one is after a decision; nowhere, if no recorded way goes on like this.
    pub(crate) fn follow(&self, from: &[Place], decision: Event) -> Vec<Place> {
        let mut reached = Vec::new();
        let mut seen: Vec<Place> = from.to_vec();
        let mut open = from.to_vec();
        while let Some(place) = open.pop() {
            for &next in &self.steps[place as usize].next {
                if seen.contains(&next) {
                    continue;
                }
                seen.push(next);
                match self.steps[next as usize].decision {
                    None => open.push(next),
                    Some(known) if known == decision => reached.push(next),
                    Some(_) => {}
                }
            }
        }
        reached.sort_unstable();
        reached
    }

    /// Decisions from there to the end, at least.
    pub(crate) fn left(&self, from: &[Place]) -> u32 {
        from.iter().map(|&place| self.steps[place as usize].left).min().unwrap_or(u32::MAX)
    }
}

pub(crate) fn is_decision(event: &Event) -> bool {
    matches!(event, Event::Branch { .. } | Event::Outcome { .. })
}

/// The decisions of a way that is longer than `depth`, behind that many events.
pub(crate) fn decisions_behind(trace: &Trace, depth: u32) -> Vec<Event> {
    let mut found = Vec::new();
    let mut at = trace;
    while let Some(node) = at
        && node.depth > depth
    {
        found.extend(node.event.filter(is_decision));
        let Some(before) = node.prevs.first() else { break };
        at = before;
    }
    found.reverse();
    found
}
