//! What one function does by itself and nobody sees: arithmetic, reading memory, jumping.

use std::collections::BTreeSet;

use caulk_base::{FxHashSet, Id};
use caulk_ir::{BinOp, BlockId, CastOp, CmpOp, InstId, Op, Ty, ValueId, ValueKind};

use super::side::Side;
use super::state::State;
use super::terms::{Member, Term, TermId, Terms, Which};

/// Operands of phis are counted from here: they are read where the way into the block begins.
const AT_EDGE: u32 = 1000;

/// A step that cannot be followed, and why.
pub type Lost = &'static str;

pub struct Runner<'a> {
    pub old: Side<'a>,
    pub new: Side<'a>,
    pub terms: Terms,
    /// Parameters that lead to a variable of a caller, by which alone it can be reached from here.
    pub only: BTreeSet<u32>,
}

impl<'a> Runner<'a> {
    pub fn side(&self, which: Which) -> &Side<'a> {
        match which {
            Which::Old => &self.old,
            Which::New => &self.new,
        }
    }

    /// Whether two places have nothing in common, as far as that is known.
    pub fn are_apart(&self, one: (TermId, Ty), other: (TermId, Ty)) -> bool {
        self.terms.are_apart(one, other) || self.is_elsewhere(one.0, other.0) || self.is_elsewhere(other.0, one.0)
    }

    /// Whether an address lies in a variable of a caller to which one parameter alone leads, and another one does not come
    /// from that parameter: it was given or found here, and nobody has put the parameter anywhere.
    fn is_elsewhere(&self, variable: TermId, other: TermId) -> bool {
        let root = self.terms.root(variable);
        let alone = matches!(self.terms.get(root), Term::Param(number) if self.only.contains(number));
        let from = self.terms.root(other);
        let found = match *self.terms.get(from) {
            Term::Param(_) | Term::Symbol(..) | Term::Slot(_) | Term::OwnSlot(_) | Term::Private(..) => true,
            Term::Load(..) => true,
            // A cursor: `for (item = items; item->name != NULL; item++)`.
            Term::Joined(_, Member::Value(which, value)) => match *self.terms.get(root) {
                Term::Param(number) => self.side(which).comes_from_elsewhere(value, number),
                _ => false,
            },
            _ => false,
        };
        alone && found && from != root
    }

    /// Runs up to the next instruction that somebody may notice, or that needs a decision.
    pub fn advance(&mut self, which: Which, from: InstId, state: &mut State) -> Result<InstId, Lost> {
        let (mut at, mut entered) = (from, FxHashSet::default());
        loop {
            let op = self.side(which).op(at);
            let to = match op {
                Op::Jump { to } => Some(*to),
                Op::Branch { cond, then, els } => {
                    let cond = self.operand(which, state, at, 0, *cond);
                    let cond = state.resolved(&mut self.terms, cond);
                    self.terms.number(cond).map(|number| if number != 0 { *then } else { *els })
                }
                Op::Switch { value, cases, default } => {
                    let value = self.operand(which, state, at, 0, *value);
                    let value = state.resolved(&mut self.terms, value);
                    let number = self.terms.number(value);
                    let of = |number| cases.iter().find(|case| case.value == number).map_or(*default, |case| case.to);
                    number.map(of)
                }
                _ => None,
            };
            match to {
                Some(to) => {
                    if !entered.insert(to) {
                        return Err("a loop in which nothing is done");
                    }
                    at = self.enter(which, at, to, state);
                }
                None if op.is_terminator() || !self.silent(which, at, state) => return Ok(at),
                None => at = InstId(at.0 + 1),
            }
        }
    }

    /// Goes from a terminator into a block: its first instruction behind the phis.
    pub fn enter(&mut self, which: Which, from: InstId, to: BlockId, state: &mut State) -> InstId {
        let function = self.side(which).function;
        let pred = self.side(which).block_of(from);
        let mut made: Vec<(ValueId, TermId)> = Vec::new();
        let mut first = function.blocks[to].first;
        for (id, inst) in function.block_insts(to) {
            let incoming = match &inst.op {
                Op::Phi { incoming } => incoming,
                Op::Bind { .. } => continue,
                _ => break,
            };
            first = InstId(id.0 + 1);
            let value = incoming.iter().find(|(block, _)| *block == pred);
            if let (Some(result), Some((_, value))) = (inst.result, value) {
                made.push((result, self.operand(which, state, from, AT_EDGE, *value)));
            }
        }
        for (result, term) in made {
            state.values.insert(Member::Value(which, result), term);
        }
        first
    }

    /// Does what nobody sees; false, if it is something else.
    fn silent(&mut self, which: Which, at: InstId, state: &mut State) -> bool {
        let side = self.side(which);
        let (inst, placed) = (&side.function.insts[at], side.placed[at.index()]);
        let ty = inst.result.map_or(Ty::Void, |result| side.function.values[result].ty);
        let slot = side.slots.get(&at).cloned();
        let part = |runner: &mut Self, number: u32, value: ValueId| runner.operand(which, state, at, number, value);
        let term = match &inst.op {
            Op::Phi { .. } | Op::Bind { .. } => return true,
            Op::Alloca { .. } => match slot {
                Some(slot) => self.terms.put(slot, Ty::Ptr),
                None => return false,
            },
            Op::Load { ptr } => {
                let ptr = part(self, 0, *ptr);
                state.wrong |= which == Which::Old && state.parted && state.gone.contains(&self.terms.root(ptr));
                self.load(which, state, ptr, ty, at)
            }
            Op::Offset { base, bytes, indices, .. } => {
                let base = part(self, 0, *base);
                let indices = indices.iter().zip(1..).map(|((index, scale), n)| (part(self, n, *index), *scale));
                let indices = indices.collect();
                self.terms.offset(base, *bytes, indices)
            }
            Op::Cmp { op: CmpOp::Float, a, b } | Op::Bin { op: BinOp::Float, a, b } => {
                let parts = vec![part(self, 0, *a), part(self, 1, *b)];
                self.by_place(which, at, placed, parts, ty)
            }
            Op::Cast { op: CastOp::Float, a } => {
                let parts = vec![part(self, 0, *a)];
                self.by_place(which, at, placed, parts, ty)
            }
            Op::Opaque { operands, clobbers: false, .. } => {
                let parts = operands.iter().zip(0..).map(|(value, n)| part(self, n, *value)).collect();
                self.by_place(which, at, placed, parts, ty)
            }
            Op::Cmp { op, a, b } => {
                let (a, b) = (part(self, 0, *a), part(self, 1, *b));
                self.terms.cmp(*op, a, b)
            }
            Op::Bin { op, a, b } => {
                let (a, b) = (part(self, 0, *a), part(self, 1, *b));
                self.terms.bin(*op, a, b, ty)
            }
            Op::Cast { op, a } => {
                let a = part(self, 0, *a);
                self.terms.cast(*op, a, ty)
            }
            Op::Select { cond, a, b } => {
                let (cond, a, b) = (part(self, 0, *cond), part(self, 1, *a), part(self, 2, *b));
                let cond = state.resolved(&mut self.terms, cond);
                self.terms.select(cond, a, b)
            }
            Op::Extract { aggregate, offset } => {
                let whole = part(self, 0, *aggregate);
                self.terms.put(Term::Extract(whole, *offset), ty)
            }
            Op::Insert { aggregate, value, offset } => {
                let (whole, value) = (part(self, 0, *aggregate), part(self, 1, *value));
                self.terms.put(Term::Insert(whole, value, *offset), ty)
            }
            Op::Store { value, ptr } => {
                let (value, ptr) = (part(self, 0, *value), part(self, 1, *ptr));
                let Some(to) = self.private(ptr) else { return false };
                self.store_cell(which, state, to, value);
                return true;
            }
            Op::Copy { dst, src, len } => {
                let (dst, src, len) = (part(self, 0, *dst), part(self, 1, *src), part(self, 2, *len));
                let (Some(to), Some(length)) = (self.private(dst), self.terms.number(len)) else { return false };
                self.copy_cells(which, state, to, src, length, at);
                return true;
            }
            Op::Fill { dst, byte, len } => {
                let (dst, byte, len) = (part(self, 0, *dst), part(self, 1, *byte), part(self, 2, *len));
                let (Some(to), Some(length)) = (self.private(dst), self.terms.number(len)) else { return false };
                self.fill_cells(which, state, to, byte, length);
                return true;
            }
            _ => return false,
        };
        if let Some(result) = inst.result {
            state.values.insert(Member::Value(which, result), term);
        }
        true
    }

    /// An operation that is not told apart from others of its kind but by where it stands.
    fn by_place(&mut self, which: Which, at: InstId, placed: Option<u32>, parts: Vec<TermId>, ty: Ty) -> TermId {
        match placed {
            Some(number) => self.terms.put(Term::Placed(number, u32::MAX, parts), ty),
            None => self.terms.put(Term::Lossy(which, at, u32::MAX), ty),
        }
    }

    /// The term of a value that an instruction reads.
    pub fn operand(&mut self, which: Which, state: &State, at: InstId, number: u32, value: ValueId) -> TermId {
        let side = self.side(which);
        let caulk_ir::Value { ty, kind } = side.function.values[value];
        let term = match kind {
            ValueKind::Param(number) => Term::Param(number),
            ValueKind::Inst(_) => match state.values.get(&Member::Value(which, value)) {
                Some(term) => return *term,
                None => Term::Lossy(which, at, number),
            },
            ValueKind::Int(number) => Term::Int(number),
            ValueKind::Null => Term::Null,
            ValueKind::Zero => Term::Zero,
            ValueKind::Address(symbol, offset) => Term::Symbol(side.symbols[symbol.0 as usize], offset),
            ValueKind::Block(block) => match side.labels.binary_search(&block) {
                Ok(label) => Term::Label(label as u32),
                Err(_) => Term::Lossy(which, at, number),
            },
            ValueKind::Undef => match (ty, side.placed[at.index()]) {
                (Ty::Int(..=64) | Ty::Ptr, _) => Term::Undef,
                (_, Some(place)) => Term::Placed(place, number, Vec::new()),
                (_, None) => Term::Lossy(which, at, number),
            },
        };
        self.terms.put(term, ty)
    }

    /// All operands of an instruction, in order.
    pub fn operands(&mut self, which: Which, state: &State, at: InstId) -> Vec<TermId> {
        let mut values = Vec::new();
        self.side(which).op(at).visit_operands(|value| values.push(value));
        let numbered = values.into_iter().zip(0..);
        let mut all: Vec<TermId> =
            numbered.map(|(value, number)| self.operand(which, state, at, number, value)).collect();
        // What is copied from where nobody else looks is what counts, not where it was.
        if let Op::Copy { .. } = self.side(which).op(at)
            && let (Some(from), Some(length)) = (self.private(all[1]), self.terms.number(all[2]))
        {
            let ty = Ty::Aggregate(u64::try_from(length).unwrap_or(0));
            all[1] = self.load_cell(which, state, from, ty);
        }
        all
    }

    /// What lies at an address.
    pub fn load(&mut self, which: Which, state: &State, ptr: TermId, ty: Ty, at: InstId) -> TermId {
        if let Some(from) = self.private(ptr) {
            return self.load_cell(which, state, from, ty);
        }
        // A variable without a value: that it is this one is a way the old function may go.
        if which == Which::Old
            && let Some(value) = state.first_value(ptr)
            && self.terms.ty(value) == ty
        {
            return value;
        }
        if which == Which::New {
            for (address, value) in state.written() {
                let value_ty = self.terms.ty(value);
                if address == ptr && value_ty == ty {
                    return value;
                }
                if !self.are_apart((address, value_ty), (ptr, ty)) && !differ(ty, value_ty) {
                    return self.terms.put(Term::Lossy(which, at, 0), ty);
                }
            }
        }
        if matches!(self.terms.get(self.terms.root(ptr)), Term::OwnSlot(_)) {
            return self.terms.put(Term::Lossy(which, at, 0), ty);
        }
        let mut memory = state.memory();
        loop {
            match *self.terms.get(memory) {
                Term::Stored { memory: before, ptr: to, value } => {
                    let value_ty = self.terms.ty(value);
                    if to == ptr && value_ty == ty {
                        return value;
                    }
                    if !self.are_apart((to, value_ty), (ptr, ty)) {
                        break;
                    }
                    memory = before;
                }
                Term::Calm(before, _) if ty == Ty::Ptr => memory = before,
                _ => break,
            }
        }
        self.terms.put(Term::Load(ptr, memory), ty)
    }
}

/// A pointer is not read as a small number, nor the other way round.
fn differ(a: Ty, b: Ty) -> bool {
    let small = |ty: Ty| matches!(ty, Ty::Int(..64));
    a == Ty::Ptr && small(b) || b == Ty::Ptr && small(a)
}
