//! How a state came to be: a persistent graph of events, one node per event,
//! several predecessors where states were merged.

use std::rc::Rc;

use caulk_base::FxHashSet;
use caulk_ir::{BlockId, InstId};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::object::ObjId;

/// Something that happened on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// The terminator `inst` went to `to`; `first`: the "then" side, or a `case`.
    Branch {
        inst: InstId,
        to: BlockId,
        first: bool,
    },
    Alloc {
        inst: InstId,
        obj: ObjId,
    },
    /// A test showed that the allocation failed.
    Failed {
        inst: InstId,
        obj: ObjId,
    },
    Release {
        inst: InstId,
        obj: ObjId,
    },
    /// The call ended in its callee's outcome of this number.
    Outcome {
        inst: InstId,
        outcome: u32,
    },
    /// The object's address was written to memory.
    Store {
        inst: InstId,
        obj: ObjId,
    },
}

#[derive(Debug)]
pub struct Node {
    pub event: Option<Event>,
    pub prevs: SmallVec<[Trace; 2]>,
    /// Events on the shortest way here.
    pub depth: u32,
}

/// The end of a path; `None` is the function's entry.
pub type Trace = Option<Rc<Node>>;

/// More ways than this do not stand side by side: one of them stands for many.
const MAX_WAYS: usize = 8;

/// Events on the shortest way.
pub fn depth(trace: &Trace) -> u32 {
    trace.as_ref().map_or(0, |node| node.depth)
}

pub fn push(trace: &Trace, event: Event) -> Trace {
    let depth = depth(trace) + 1;
    Some(Rc::new(Node { event: Some(event), prevs: SmallVec::from_iter([trace.clone()]), depth }))
}

/// Both ways lead here.
pub fn merge(a: &Trace, b: &Trace) -> Trace {
    if same(a, b) {
        return a.clone();
    }
    let mut prevs: SmallVec<[Trace; 2]> = SmallVec::new();
    for way in ways(a).iter().chain(ways(b)) {
        if !prevs.iter().any(|known| same(known, way)) {
            prevs.push(way.clone());
        }
    }
    if prevs.len() > MAX_WAYS {
        prevs = SmallVec::from_iter([a.clone(), b.clone()]);
    }
    prevs.sort_by_key(depth);
    let depth = prevs.first().map_or(0, depth);
    Some(Rc::new(Node { event: None, prevs, depth }))
}

fn ways(trace: &Trace) -> &[Trace] {
    match trace {
        Some(node) if node.event.is_none() => &node.prevs,
        _ => std::slice::from_ref(trace),
    }
}

fn same(a: &Trace, b: &Trace) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

/// The events of the paths that end here, the shortest first, at most `limit` of them.
pub fn paths(trace: &Trace, limit: usize) -> Vec<Vec<Event>> {
    let mut done = Vec::new();
    let mut open: Vec<(Trace, Vec<Event>)> = vec![(trace.clone(), Vec::new())];
    while let Some((at, mut events)) = open.pop() {
        let mut at = at;
        loop {
            let Some(node) = at.clone() else {
                events.reverse();
                done.push(events);
                break;
            };
            if let Some(event) = node.event {
                events.push(event);
            }
            for other in node.prevs.iter().skip(1) {
                if open.len() + done.len() < limit {
                    open.push((other.clone(), events.clone()));
                }
            }
            at = node.prevs.first().cloned().flatten();
        }
        if done.len() >= limit {
            break;
        }
    }
    done.sort_by_key(Vec::len);
    done
}

/// Is there such an event on any of the ways?
pub fn any(trace: &Trace, is_wanted: impl Fn(&Event) -> bool) -> bool {
    let mut seen: FxHashSet<*const Node> = FxHashSet::default();
    let mut open: Vec<&Rc<Node>> = trace.iter().collect();
    while let Some(node) = open.pop() {
        if node.event.as_ref().is_some_and(&is_wanted) {
            return true;
        }
        if seen.insert(Rc::as_ptr(node)) {
            open.extend(node.prevs.iter().flatten());
        }
    }
    false
}

impl Drop for Node {
    /// Long chains are taken apart one by one: the default drop would recurse.
    fn drop(&mut self) {
        let mut open = std::mem::take(&mut self.prevs);
        while let Some(trace) = open.pop() {
            if let Some(mut node) = trace.and_then(Rc::into_inner) {
                open.append(&mut node.prevs);
            }
        }
    }
}
