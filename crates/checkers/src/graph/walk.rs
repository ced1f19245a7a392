//! The walk over the control flow that draws the nodes.

use caulk_analysis::{Analysis, Event, Incident, IncidentKind, Subject};
use caulk_base::{FxHashMap, FxHashSet, Id};
use caulk_findings::{Graph, GraphEdge, GraphNode, StepKind};
use caulk_ir::{BlockId, Function, InstId, Op, ValueId};

use crate::graph::fate::{Ending, Fate};
use crate::graph::slice::Slice;
use crate::naming::Names;

/// Steps of the walk; a function that needs more gets no graph.
const BUDGET: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Held,
    /// Something that outlives the function refers to it.
    Kept,
    Released,
}

/// One instruction may be several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Start,
    Deed,
    /// What a call does in one of its endings.
    Ending,
    Exit,
    Failed,
}

/// What is known at a point of the walk.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    phase: Phase,
    /// Something outside of the function's variables refers to it, or did.
    pub(super) stored: bool,
    /// The call that last decided about the object, and its ending's number.
    pub(super) call: Option<(InstId, u8)>,
    /// Phis that hold something else on this way; sorted.
    pub(super) dead: Vec<ValueId>,
}

struct Front {
    node: u32,
    label: String,
    block: BlockId,
    inst: InstId,
    seat: Seat,
    /// The terminator that led here.
    from: Option<InstId>,
    /// On the finding's path: how many of its blocks are behind us.
    path: Option<usize>,
}

pub struct Walker<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    pub(super) incident: &'a Incident,
    names: &'a Names<'a>,
    pub(super) slice: &'a Slice<'a>,
    pub(super) function: &'a Function,
    pub(super) start: InstId,
    is_leak: bool,
    nodes: FxHashMap<(InstId, Phase, Role), u32>,
    graph: Graph,
    /// The instruction of each node.
    insts: Vec<InstId>,
    /// Edges by their ends.
    edges: FxHashMap<(u32, u32), Vec<usize>>,
    ends: Vec<u32>,
    seen: FxHashSet<(u32, BlockId, Seat)>,
    open: Vec<Front>,
    /// Where other findings about the same object end.
    others: FxHashSet<InstId>,
    sink: Option<u32>,
}

impl<'a> Walker<'a> {
    pub fn new(
        analysis: &'a Analysis<'a>,
        incident: &'a Incident,
        names: &'a Names<'a>,
        slice: &'a Slice<'a>,
        start: InstId,
    ) -> Self {
        let is_leak = matches!(incident.kind, IncidentKind::Leak | IncidentKind::LeakAtExit);
        let first = analysis.incidents.partition_point(|other| other.function < incident.function);
        let others = analysis.incidents[first..]
            .iter()
            .take_while(|other| other.function == incident.function)
            .filter(|other| other.kind == IncidentKind::Leak && other.subject == incident.subject)
            .map(|other| other.at)
            .collect();
        Walker {
            analysis,
            incident,
            names,
            slice,
            function: names.function,
            start,
            is_leak,
            nodes: FxHashMap::default(),
            graph: Graph::default(),
            insts: Vec::new(),
            edges: FxHashMap::default(),
            ends: Vec::new(),
            seen: FxHashSet::default(),
            open: Vec::new(),
            others,
            sink: None,
        }
    }

    /// Draws the finding's path.
    pub fn along(&mut self, path: &[BlockId]) {
        let mut front = self.first(path[0]);
        front.path = Some(1);
        self.open.push(front);
        let mut last = 0;
        let mut steps = 0;
        while let Some(front) = self.open.pop() {
            steps += 1;
            if steps > BUDGET {
                self.open.clear();
                break;
            }
            last = front.node;
            self.advance(front, path);
        }
        // The path of the analysis may take a turn that this walk does not understand: the error is still its end.
        if self.sink.is_none() {
            let last = self.graph.edges.last().map_or(last, |edge| edge.to);
            let sink = self.sink_node();
            self.edge(last, sink, String::new(), true);
        }
        self.seen.clear();
    }

    /// Draws all other ways. `None`: there are too many.
    pub fn everywhere(&mut self) -> Option<()> {
        let block = super::block_of(self.function, self.start)?;
        let front = self.first(block);
        self.open.push(front);
        for _ in 0..BUDGET {
            let Some(front) = self.open.pop() else { return Some(()) };
            self.advance(front, &[]);
        }
        None
    }

    /// The graph, the instructions of its nodes, and the nodes in which the story ends. Branches have no label yet:
    /// most of them do not stay.
    pub fn done(self) -> (Graph, Vec<InstId>, Vec<u32>) {
        (self.graph, self.insts, self.ends)
    }

    fn first(&mut self, block: BlockId) -> Front {
        let (kind, phase, state) = match self.incident.subject {
            Subject::Allocated { .. } => (StepKind::Allocate, Phase::Held, "allocated"),
            Subject::Input(_) => (StepKind::Release, Phase::Released, "released"),
        };
        let callee = self.names.callee(self.start).unwrap_or_else(|| "…".into());
        let label = match (kind, self.names.taken(self.start, self.incident.family)) {
            (StepKind::Allocate, Some(holder)) => format!("{holder} = {callee}(…)"),
            _ => format!("{callee}(…)"),
        };
        let node = self.node(self.start, phase, Role::Start, kind, label, state);
        let seat = Seat { phase, stored: phase == Phase::Released, call: None, dead: Vec::new() };
        let inst = InstId::new(self.start.index() + 1);
        Front { node, label: String::new(), block, inst, seat, from: None, path: None }
    }

    fn node(&mut self, inst: InstId, phase: Phase, role: Role, kind: StepKind, label: String, state: &str) -> u32 {
        let next = self.graph.nodes.len() as u32;
        match self.nodes.entry((inst, phase, role)) {
            std::collections::hash_map::Entry::Occupied(entry) => *entry.get(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(next);
                self.insts.push(inst);
                let place = self.names.place(inst);
                self.graph.nodes.push(GraphNode { kind, label, place, state: state.into(), step: None });
                next
            }
        }
    }

    fn edge(&mut self, from: u32, to: u32, label: String, on_path: bool) {
        let known = self.edges.entry((from, to)).or_default();
        match known.iter().find(|&&index| self.graph.edges[index].label == label) {
            Some(&index) => self.graph.edges[index].on_path |= on_path,
            None => {
                known.push(self.graph.edges.len());
                self.graph.edges.push(GraphEdge { from, to, label, on_path });
            }
        }
    }

    fn end(&mut self, node: u32) {
        if !self.ends.contains(&node) {
            self.ends.push(node);
        }
    }

    fn sink_node(&mut self) -> u32 {
        let at = self.incident.at;
        let callee = self.names.callee(at);
        let call = |verb: &str| callee.as_ref().map_or_else(|| verb.to_owned(), |callee| format!("{callee}(…)"));
        let (kind, label, state) = match &self.incident.kind {
            IncidentKind::Leak | IncidentKind::LeakAtExit => (StepKind::Lose, self.loss(at), "lost"),
            IncidentKind::DoubleFree => (StepKind::Release, call("released again"), "released twice"),
            IncidentKind::UseAfterFree(_) => (StepKind::Use, call("used"), "released"),
            IncidentKind::Mismatched { .. } | IncidentKind::InvalidFree(_) => {
                (StepKind::Release, call("released"), "released wrongly")
            }
        };
        let next = self.graph.nodes.len() as u32;
        let node = self.sink.unwrap_or(next);
        if node == next {
            let place = self.names.place(at);
            self.insts.push(at);
            self.graph.nodes.push(GraphNode { kind, label, place, state: state.into(), step: None });
            self.sink = Some(node);
            self.end(node);
        }
        node
    }

    fn loss(&self, at: InstId) -> String {
        match &self.function.insts[at].op {
            Op::Store { ptr, .. } => format!("{} = …", self.names.lvalue(*ptr, 4)),
            Op::Bind { var, .. } => format!("{} = …", self.function.vars[*var].name),
            Op::Call(_) => self.names.callee(at).map_or_else(|| "lost".into(), |callee| format!("{callee}(…)")),
            _ => "return".into(),
        }
    }

    /// Goes on to the next node, and queues what follows it.
    fn advance(&mut self, mut front: Front, path: &[BlockId]) {
        let on_path = front.path.is_some();
        if front.inst == self.function.blocks[front.block].first
            && !self.seen.insert((front.node, front.block, front.seat.clone()))
            && !on_path
        {
            return;
        }
        let end = self.function.blocks[front.block].end;
        while front.inst < end {
            let id = front.inst;
            front.inst = InstId::new(id.index() + 1);
            let op = &self.function.insts[id].op;
            if op.is_terminator() {
                return self.leave(front, id, path);
            }
            let right =
                if self.is_leak { front.seat.phase != Phase::Released } else { self.is_error_phase(front.seat.phase) };
            if id == self.incident.at && right {
                let sink = self.sink_node();
                return self.edge(front.node, sink, front.label, on_path);
            }
            match op {
                Op::Store { ptr, value } if self.holds(*value, &front.seat) => {
                    let outlives = self.slice.outlives(*ptr);
                    if outlives && front.seat.phase == Phase::Held {
                        front.seat.phase = Phase::Kept;
                    }
                    front.seat.stored |= outlives;
                    let cell = self.names.lvalue(*ptr, 4);
                    // The allocation's own node has said so.
                    if front.node == 0 && self.names.taken(self.start, self.incident.family).as_ref() == Some(&cell) {
                        continue;
                    }
                    let label = format!("{cell} = …");
                    let state = if outlives { "stored" } else { "allocated" };
                    self.reach(&mut front, id, StepKind::Store, label, state);
                }
                Op::Call(call) => {
                    let endings = self.slice.endings(id, call, front.seat.stored, &front.seat.dead);
                    if !endings.is_empty() && !self.called(&mut front, id, &endings) {
                        return;
                    }
                    if call.noreturn {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    fn is_error_phase(&self, phase: Phase) -> bool {
        match self.incident.kind {
            IncidentKind::DoubleFree | IncidentKind::UseAfterFree(_) => phase == Phase::Released,
            _ => true,
        }
    }

    fn reach(&mut self, front: &mut Front, inst: InstId, kind: StepKind, label: String, state: &str) -> u32 {
        let node = self.node(inst, front.seat.phase, Role::Deed, kind, label, state);
        self.edge(front.node, node, std::mem::take(&mut front.label), front.path.is_some());
        front.node = node;
        node
    }

    /// The object is given to a call. False: the story ends there, or goes on in several fronts.
    fn called(&mut self, front: &mut Front, id: InstId, endings: &[Ending]) -> bool {
        let Op::Call(call) = &self.function.insts[id].op else { return true };
        let callee = self.names.callee(id).unwrap_or_else(|| "…".into());
        let label = format!("{callee}(…)");
        if let [only] = endings {
            return match only.fate {
                Fate::Looked if self.slice.only_looks(call) => true,
                Fate::Looked => {
                    let state = state_of(front.seat.phase);
                    self.reach(front, id, StepKind::Call, label, state);
                    true
                }
                fate => self.meet(front, id, fate, StepKind::Call, label),
            };
        }
        // Which of them it was on the finding's path, the analysis knows.
        let taken = self.incident.paths.first().and_then(|events| {
            events.iter().rev().find_map(|event| match event {
                Event::Outcome { inst, outcome } if *inst == id => Some(*outcome),
                _ => None,
            })
        });
        let phase = front.seat.phase;
        self.reach(front, id, StepKind::Call, label, state_of(phase));
        let chosen = endings
            .iter()
            .position(|ending| taken.is_some_and(|taken| ending.outcomes.contains(&taken)))
            .or_else(|| endings.iter().position(|ending| ending.fate == Fate::Looked))
            .unwrap_or(0);
        for (number, ending) in endings.iter().enumerate() {
            if front.path.is_some() && number != chosen {
                continue;
            }
            let mut next = Front {
                node: front.node,
                label: match ending.fate {
                    Fate::Looked => "leaves it".into(),
                    Fate::Released => "releases it".into(),
                    Fate::Kept => "keeps it".into(),
                },
                block: front.block,
                inst: front.inst,
                seat: Seat { call: Some((id, number as u8)), ..front.seat.clone() },
                from: front.from,
                path: front.path,
            };
            match ending.fate {
                Fate::Looked => {}
                Fate::Kept => {
                    next.seat.stored = true;
                    if phase == Phase::Held {
                        next.seat.phase = Phase::Kept;
                    }
                }
                Fate::Released if self.is_leak && front.path.is_none() => {
                    let node = self.node(
                        id,
                        Phase::Released,
                        Role::Ending,
                        StepKind::Release,
                        format!("released by {callee}"),
                        "released",
                    );
                    self.edge(front.node, node, next.label, false);
                    self.end(node);
                    continue;
                }
                // The analysis says that it is lost on this path: there the release did not happen.
                Fate::Released if self.is_leak => {}
                Fate::Released => next.seat.phase = Phase::Released,
            }
            self.open.push(next);
        }
        false
    }

    /// A call with one ending that releases or keeps the object.
    fn meet(&mut self, front: &mut Front, id: InstId, fate: Fate, kind: StepKind, label: String) -> bool {
        let on_path = front.path.is_some();
        match fate {
            // The analysis says that it is lost on this path: there the release did not happen.
            Fate::Released if self.is_leak && on_path => {
                let state = state_of(front.seat.phase);
                self.reach(front, id, kind, label, state);
                true
            }
            Fate::Released => {
                front.seat.phase = Phase::Released;
                let node = self.reach(front, id, StepKind::Release, label, "released");
                if self.is_leak {
                    self.end(node);
                }
                !self.is_leak
            }
            _ => {
                front.seat.stored = true;
                if front.seat.phase == Phase::Held {
                    front.seat.phase = Phase::Kept;
                }
                let state = state_of(front.seat.phase);
                self.reach(front, id, kind, label, state);
                true
            }
        }
    }

    fn leave(&mut self, mut front: Front, id: InstId, path: &[BlockId]) {
        let op = &self.function.insts[id].op;
        match op {
            Op::Return { value } => self.exit(front, id, *value),
            Op::Jump { to } => self.enter(front, *to, id, path),
            Op::Branch { cond, then, els } => {
                let (mut yes, mut no) = self.sides(*cond, &front.seat);
                if let Some(behind) = front.path {
                    (yes, no) = (path.get(behind) == Some(then), path.get(behind) == Some(els) && then != els);
                }
                let tests_object = self.tests_object(*cond, &front.seat);
                let state = state_of(front.seat.phase);
                self.reach(&mut front, id, StepKind::Branch, String::new(), state);
                for (open, to, label) in [(yes, then, "true"), (no, els, "false")] {
                    if open {
                        self.enter(copy_of(&front, label.into()), *to, id, path);
                    } else if tests_object && front.path.is_none() && front.seat.phase == Phase::Held {
                        let inst = self.function.blocks[*to].first;
                        let label_of = "the allocation failed".to_owned();
                        let node =
                            self.node(inst, Phase::Held, Role::Failed, StepKind::Return, label_of, "not allocated");
                        self.edge(front.node, node, label.into(), false);
                        self.end(node);
                    }
                }
            }
            Op::Switch { cases, default, .. } => {
                let state = state_of(front.seat.phase);
                self.reach(&mut front, id, StepKind::Branch, String::new(), state);
                let all = cases.iter().map(|case| (case.to, format!("case {}", case.value)));
                for (to, label) in all.chain([(*default, "default".to_owned())]) {
                    if front.path.is_none_or(|behind| path.get(behind) == Some(&to)) {
                        self.enter(copy_of(&front, label), to, id, path);
                        if front.path.is_some() {
                            break;
                        }
                    }
                }
            }
            Op::IndirectJump { targets, .. } => {
                for to in targets {
                    if front.path.is_none_or(|behind| path.get(behind) == Some(to)) {
                        self.enter(copy_of(&front, String::new()), *to, id, path);
                    }
                }
            }
            _ => {}
        }
    }

    /// Goes over an edge of the control flow: some phis hold the object behind it, some do not.
    fn enter(&mut self, mut front: Front, to: BlockId, by: InstId, path: &[BlockId]) {
        if let Some(behind) = &mut front.path {
            // Behind the path's last block there may be one that only returns.
            if path.get(*behind).is_some_and(|block| *block != to) {
                return;
            }
            *behind += 1;
        }
        let before = front.seat.dead.clone();
        for (_, inst) in self.function.block_insts(to) {
            match (&inst.op, inst.result) {
                (Op::Phi { incoming }, Some(result)) if self.slice.holds(result, true, &[]) => {
                    let value = incoming.iter().find(|(block, _)| *block == front.block).map(|entry| entry.1);
                    let held = value.is_some_and(|value| self.slice.holds(value, front.seat.stored, &before));
                    front.seat.dead.retain(|dead| *dead != result);
                    if !held {
                        front.seat.dead.push(result);
                    }
                }
                (Op::Phi { .. } | Op::Bind { .. }, _) => {}
                _ => break,
            }
        }
        front.seat.dead.sort_unstable();
        front.block = to;
        front.inst = self.function.blocks[to].first;
        front.from = Some(by);
        self.open.push(front);
    }

    fn exit(&mut self, mut front: Front, own: InstId, value: Option<ValueId>) {
        let on_path = front.path.is_some();
        // The statement that was left, not the closing brace, where a block does nothing but return.
        let at = front.from.filter(|&from| from == self.incident.at || self.others.contains(&from)).unwrap_or(own);
        let returned = value.is_some_and(|value| self.holds(value, &front.seat));
        if at == self.incident.at && (on_path || (self.is_leak && front.seat.phase == Phase::Held && !returned)) {
            let sink = self.sink_node();
            return self.edge(front.node, sink, front.label, on_path);
        }
        let (label, state) = match front.seat.phase {
            _ if returned && front.seat.phase != Phase::Released => ("return it", "handed to the caller"),
            Phase::Held if self.others.contains(&at) => ("return", "lost"),
            Phase::Held => return,
            Phase::Kept => ("return", "stored"),
            Phase::Released => ("return", "released"),
        };
        let kind = if state == "lost" { StepKind::Lose } else { StepKind::Return };
        let at = match front.from {
            Some(from) if self.names.is_return(from) => from,
            _ => at,
        };
        let role = if returned { Role::Exit } else { Role::Ending };
        let node = self.node(at, front.seat.phase, role, kind, label.into(), state);
        self.edge(front.node, node, std::mem::take(&mut front.label), on_path);
        self.end(node);
    }
}

fn copy_of(front: &Front, label: String) -> Front {
    Front { label, seat: front.seat.clone(), ..*front }
}

fn state_of(phase: Phase) -> &'static str {
    match phase {
        Phase::Held => "allocated",
        Phase::Kept => "stored",
        Phase::Released => "released",
    }
}
