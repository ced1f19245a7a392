//! One of the two functions, with what the walk asks of it again and again: which values are still needed, where an
//! instruction stands in the text, and which slot or symbol of the other function is meant by one of this.
//!
//! # Invariants
//! - Slots are paired one to one, and only those of the same size. Any such pairing is good, as both functions find
//!   nothing in a slot: a bad one shows something false of nobody.
//! - An instruction that is known by its place alone is the only one of its kind there, or the first, second … of as
//!   many in both functions.

use std::cell::RefCell;
use std::rc::Rc;

use caulk_base::{FxHashMap, FxHashSet, Id};
use caulk_ir::{BlockId, Function, InstId, Op, SymbolId, Unit, ValueId, ValueKind};

use super::cells::private_slots;
use super::literals;
use super::terms::{Term, Which};

/// Where an instruction stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// In text that both functions have: file (by number), line and column after the patch.
    Kept(u32, u32, u32),
    /// In text of this function alone.
    Own,
    Nowhere,
}

/// Tells where text of one of the two programs is in the other: file, line, column.
pub type Text<'a> = dyn Fn(Which, &str, u32, u32) -> Option<(u32, u32)> + 'a;

pub struct Side<'a> {
    pub which: Which,
    pub unit: &'a Unit,
    pub function: &'a Function,
    blocks: Vec<BlockId>,
    live_out: Vec<Bits>,
    live: RefCell<FxHashMap<InstId, Rc<Vec<ValueId>>>>,
    pub standing: Vec<Standing>,
    /// For what is known by its place: its number.
    pub placed: Vec<Option<u32>>,
    pub slots: FxHashMap<InstId, Term>,
    /// Of slots that nobody else knows: where their parts begin, and the end.
    pub edges: FxHashMap<InstId, Vec<i64>>,
    /// By symbol: its number among the names of both units.
    pub symbols: Vec<u32>,
    pub labels: Vec<BlockId>,
}

impl<'a> Side<'a> {
    fn new(which: Which, unit: &'a Unit, function: &'a Function) -> Self {
        let mut blocks = vec![BlockId(0); function.insts.len()];
        for block in function.blocks.ids() {
            for (inst, _) in function.block_insts(block) {
                blocks[inst.index()] = block;
            }
        }
        let mut labels: Vec<BlockId> = function
            .values
            .iter()
            .filter_map(|value| match value.kind {
                ValueKind::Block(block) => Some(block),
                _ => None,
            })
            .collect();
        labels.sort_unstable();
        labels.dedup();
        Self {
            which,
            unit,
            function,
            blocks,
            live_out: live_out(function),
            live: RefCell::default(),
            standing: Vec::new(),
            placed: vec![None; function.insts.len()],
            slots: FxHashMap::default(),
            edges: FxHashMap::default(),
            symbols: Vec::new(),
            labels,
        }
    }

    pub fn op(&self, inst: InstId) -> &'a Op {
        &self.function.insts[inst].op
    }

    pub fn block_of(&self, inst: InstId) -> BlockId {
        self.blocks[inst.index()]
    }

    /// File, line and column, as the compiler says.
    pub fn place(&self, inst: InstId) -> (&'a str, u32, u32) {
        let loc = self.unit.locs[self.function.insts[inst].loc];
        (loc.file.map_or("", |file| self.unit.files[file].as_str()), loc.line, loc.column)
    }

    pub fn name_of(&self, symbol: SymbolId) -> &'a str {
        &self.unit.symbols[symbol].name
    }

    /// Whether no value that a value may be, whichever way was taken, is counted from a parameter or given by a function
    /// that knows it. Where nobody has put the parameter anywhere, what is read from memory is not it.
    pub fn comes_from_elsewhere(&self, value: ValueId, parameter: u32) -> bool {
        let function = self.function;
        let (mut open, mut seen) = (vec![value], FxHashSet::default());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match function.values[value].kind {
                ValueKind::Param(number) if number == parameter => return false,
                ValueKind::Inst(inst) => match self.op(inst) {
                    Op::Phi { incoming } => open.extend(incoming.iter().map(|(_, from)| *from)),
                    Op::Offset { base, .. } => open.push(*base),
                    Op::Select { a, b, .. } => open.extend([*a, *b]),
                    Op::Load { .. } | Op::Alloca { .. } => {}
                    Op::Call(call) if call.args.iter().all(|arg| !self.is_counted_from(*arg, parameter)) => {}
                    _ => return false,
                },
                _ => {}
            }
        }
        true
    }

    /// Whether a value may be an address that is counted from a parameter.
    fn is_counted_from(&self, value: ValueId, parameter: u32) -> bool {
        let mut at = value;
        loop {
            match self.function.values[at].kind {
                ValueKind::Param(number) => return number == parameter,
                ValueKind::Inst(inst) => match self.op(inst) {
                    Op::Offset { base, .. } => at = *base,
                    // Whatever else is made of a parameter that nobody has put anywhere is no pointer any more.
                    _ => return false,
                },
                _ => return false,
            }
        }
    }

    /// The values that are read at an instruction or behind it.
    pub fn live_before(&self, inst: InstId) -> Rc<Vec<ValueId>> {
        if let Some(known) = self.live.borrow().get(&inst) {
            return Rc::clone(known);
        }
        let block = self.block_of(inst);
        let mut live = self.live_out[block.index()].clone();
        for (at, found) in self.function.block_insts(block).rev() {
            if at < inst {
                break;
            }
            found.result.iter().for_each(|result| live.clear(*result));
            if !matches!(found.op, Op::Phi { .. } | Op::Bind { .. }) {
                found.op.visit_operands(|value| live.set_if_made(self.function, value));
            }
        }
        let found: Rc<Vec<ValueId>> = Rc::new(live.iter().collect());
        self.live.borrow_mut().insert(inst, Rc::clone(&found));
        found
    }

    /// How many blocks lie on the shortest way from an instruction to one that stands at a place.
    pub fn distance(&self, from: InstId, to: Standing) -> Option<usize> {
        let first = self.block_of(from);
        let at = |block: BlockId, least: InstId| {
            self.function.block_insts(block).any(|(inst, _)| inst >= least && self.standing[inst.index()] == to)
        };
        if at(first, from) {
            return Some(0);
        }
        let (mut open, mut seen, mut far) = (vec![first], FxHashSet::default(), 0);
        while !open.is_empty() {
            far += 1;
            let mut next = Vec::new();
            for block in open {
                self.function.terminator(block).1.op.visit_successors(|to| {
                    if seen.insert(to) {
                        next.push(to);
                    }
                });
            }
            if next.iter().any(|block| at(*block, InstId(0))) {
                return Some(far);
            }
            open = next;
        }
        None
    }
}

/// Both functions, each with what is known of it from the other.
pub fn pair<'a>(old: (&'a Unit, &'a Function), new: (&'a Unit, &'a Function), text: &Text<'_>) -> (Side<'a>, Side<'a>) {
    let (mut old, mut new) = (Side::new(Which::Old, old.0, old.1), Side::new(Which::New, new.0, new.1));
    stand(&mut old, &mut new, text);
    place(&mut old, &mut new);
    slots(&mut old, &mut new);
    (old.symbols, new.symbols) = literals::symbols(old.unit, new.unit, text);
    (old, new)
}

fn stand<'a>(old: &mut Side<'a>, new: &mut Side<'a>, text: &Text<'_>) {
    let mut files: FxHashMap<String, u32> = FxHashMap::default();
    for side in [old, new] {
        let of = |inst: InstId| {
            let (file, line, column) = side.place(inst);
            if line == 0 {
                return Standing::Nowhere;
            }
            let next = files.len() as u32;
            let number = *files.entry(file.to_owned()).or_insert(next);
            text(side.which, file, line, column)
                .map_or(Standing::Own, |(line, column)| Standing::Kept(number, line, column))
        };
        side.standing = side.function.insts.ids().map(of).collect();
    }
}

/// Numbers what stands in the same place of both functions, if there is as much of it.
fn place(old: &mut Side<'_>, new: &mut Side<'_>) {
    let found = |side: &Side<'_>| {
        let mut found: FxHashMap<(Standing, std::mem::Discriminant<Op>), Vec<InstId>> = FxHashMap::default();
        for (id, inst) in side.function.insts.iter_ids() {
            if let standing @ Standing::Kept(..) = side.standing[id.index()] {
                found.entry((standing, std::mem::discriminant(&inst.op))).or_default().push(id);
            }
        }
        found
    };
    let (in_old, in_new) = (found(old), found(new));
    let mut next = 0;
    for (id, inst) in old.function.insts.iter_ids() {
        let key = (old.standing[id.index()], std::mem::discriminant(&inst.op));
        let (Some(here), Some(there)) = (in_old.get(&key), in_new.get(&key)) else { continue };
        if here.len() == there.len()
            && let Some(at) = here.iter().position(|one| *one == id)
        {
            (old.placed[id.index()], new.placed[there[at].index()]) = (Some(next), Some(next));
            next += 1;
        }
    }
}

/// Slots that others know, of the same variable and size, in the order in which they come.
fn slots<'a>(old: &mut Side<'a>, new: &mut Side<'a>) {
    for side in [&mut *old, &mut *new] {
        for (slot, edges) in private_slots(side) {
            side.slots.insert(slot, Term::Private(side.which, slot));
            side.edges.insert(slot, edges);
        }
    }
    let all = |side: &Side<'_>| {
        let mut found: Vec<(InstId, (String, u64))> = Vec::new();
        for (id, inst) in side.function.insts.iter_ids().filter(|(id, _)| !side.slots.contains_key(id)) {
            if let Op::Alloca { size, count: None, var } = inst.op {
                let name = var.map(|var| side.function.vars[var].name.clone());
                found.push((id, (name.unwrap_or_default(), size)));
            }
        }
        found
    };
    let mut left = all(new);
    for (next, (id, key)) in (0..).zip(all(old)) {
        old.slots.insert(id, Term::Slot(next));
        if let Some(at) = left.iter().position(|(_, other)| *other == key) {
            new.slots.insert(left.remove(at).0, Term::Slot(next));
        }
    }
    for (id, _) in left {
        new.slots.insert(id, Term::OwnSlot(id.0));
    }
}

/// A set of values.
#[derive(Clone, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// Constants and parameters are the same everywhere.
    fn set_if_made(&mut self, function: &Function, value: ValueId) {
        if matches!(function.values[value].kind, ValueKind::Inst(_)) {
            self.0[value.index() / 64] |= 1 << (value.index() % 64);
        }
    }

    fn clear(&mut self, value: ValueId) {
        self.0[value.index() / 64] &= !(1 << (value.index() % 64));
    }

    /// Whether there is more than before.
    fn add(&mut self, other: &Self) -> bool {
        let mut grown = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            grown |= *theirs & !*mine != 0;
            *mine |= *theirs;
        }
        grown
    }

    fn iter(&self) -> impl Iterator<Item = ValueId> + '_ {
        let of = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| ValueId::new(at * 64 + bit))
        };
        self.0.iter().enumerate().flat_map(of)
    }
}

fn live_out(function: &Function) -> Vec<Bits> {
    let count = function.values.len();
    let mut out = vec![Bits::new(count); function.blocks.len()];
    for inst in function.insts.iter() {
        if let Op::Phi { incoming } = &inst.op {
            incoming.iter().for_each(|(from, value)| out[from.index()].set_if_made(function, *value));
        }
    }
    let mut live_in = vec![Bits::new(count); function.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for block in function.blocks.ids().rev() {
            let mut live = out[block.index()].clone();
            function.terminator(block).1.op.visit_successors(|to| _ = live.add(&live_in[to.index()]));
            out[block.index()] = live.clone();
            for (_, inst) in function.block_insts(block).rev() {
                inst.result.iter().for_each(|result| live.clear(*result));
                if !matches!(inst.op, Op::Phi { .. } | Op::Bind { .. }) {
                    inst.op.visit_operands(|value| live.set_if_made(function, value));
                }
            }
            changed |= live_in[block.index()].add(&live);
        }
    }
    out
}
