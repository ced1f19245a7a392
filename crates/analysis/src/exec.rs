//! One instruction at a time.

use caulk_ir::{BinOp, BlockId, CastOp, CmpOp, Inst, InstId, Op, Target, Ty, ValueId, ValueKind};
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::incident::Use;
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::state::State;
use crate::term::{TermId, ZERO};
use crate::trace::Event;

/// The site of values that are undefined in the source.
const UNDEFINED: u32 = 0x7fff_0000;

pub(crate) fn size_of(ty: Ty) -> u64 {
    match ty {
        Ty::Void => 0,
        Ty::Int(bits) => u64::from(bits.div_ceil(8)).max(1),
        Ty::Ptr | Ty::Float => 8,
        Ty::Aggregate(bytes) => bytes,
    }
}

impl Engine<'_> {
    pub(crate) fn operand(&mut self, state: &State, value: ValueId) -> TermId {
        if let Some(known) = self.fixed[value] {
            return known;
        }
        let term = match self.function.values[value].kind {
            ValueKind::Inst(inst) => {
                return match state.value(value) {
                    Some(term) => term,
                    None => self.terms.sym(inst.0, value.0),
                };
            }
            ValueKind::Param(index) => self.terms.param(index),
            ValueKind::Int(value) => self.terms.int(value),
            ValueKind::Null | ValueKind::Zero => ZERO,
            ValueKind::Address(symbol, off) => self.address(symbol, off, value),
            ValueKind::Block(_) | ValueKind::Undef => self.terms.sym(UNDEFINED, value.0),
        };
        self.fixed[value] = Some(term);
        term
    }

    fn address(&mut self, symbol: caulk_ir::SymbolId, off: i64, value: ValueId) -> TermId {
        match self.program.target(self.unit, symbol) {
            Target::Functions(all) => match all.as_slice() {
                [one] => self.terms.func(*one),
                _ => self.terms.sym(UNDEFINED, value.0),
            },
            Target::Globals(all) => match all.as_slice() {
                [one, ..] => {
                    let obj = self.terms.intern_object(Object::Global(*one));
                    self.terms.addr(obj, off)
                }
                [] => self.terms.sym(UNDEFINED, value.0),
            },
            Target::Extern(id) => {
                let obj = self.terms.intern_object(Object::External(*id));
                self.terms.addr(obj, off)
            }
        }
    }

    fn bits(&self, value: ValueId) -> u32 {
        match self.function.values[value].ty {
            Ty::Int(bits) => bits,
            _ => 64,
        }
    }

    /// `((char *)&p)[i]`: who reads a pointer byte by byte may put it together again anywhere.
    fn read_byte(&mut self, state: &mut State, ptr: TermId) {
        let Some((obj, off)) = self.terms.pointee(ptr) else { return };
        let meets = |at: Off| match (at, off) {
            (Off::At(at), Off::At(read)) => (at..at.saturating_add(8)).contains(&read),
            _ => true,
        };
        let held = state.cells_of(obj).filter(|((_, at), cell)| cell.size == 8 && meets(*at));
        let held: Vec<ObjId> = held.flat_map(|(_, cell)| self.terms.mentions(cell.term)).copied().collect();
        for block in held {
            state.give_away(block);
        }
    }

    /// Runs a block with all states that reach it; those that leave it, with where they go, are added to
    /// `leaving`. Calls multiply states: they are merged again right there when they become too many.
    pub(crate) fn run_block(&mut self, block: BlockId, states: Vec<State>, leaving: &mut Vec<(BlockId, State)>) {
        let range = self.function.blocks[block];
        self.block = block;
        let mut states = states;
        for at in range.first.0..range.end.0 {
            let id = InstId(at);
            let inst = &self.function.insts[id];
            self.work += states
                .iter()
                .map(|state| 1 + (state.env.len() + state.cells.len() + state.objs.len()) / 8)
                .sum::<usize>();
            if inst.op.is_terminator() {
                for state in states {
                    self.terminate(state, id, inst, leaving);
                }
                return;
            }
            if let Op::Call(call) = &inst.op {
                let mut next = Vec::with_capacity(states.len());
                for state in states {
                    next.extend(self.call(state, id, inst, call));
                }
                states = next;
                self.keep_to_the_way(&mut states);
                if states.len() > self.fine_states() || (self.degraded && states.len() > 1) {
                    for state in &mut states {
                        let cfg = &self.cfg;
                        state.env.retain(|entry| cfg.is_live_after(block, entry.0, id));
                        self.collect(state, None, None);
                    }
                    states = self.merge_all(block, states, false);
                }
            } else {
                states.retain_mut(|state| self.step(state, id, inst));
            }
            if states.is_empty() {
                return;
            }
        }
    }

    /// Is the value the address of a pointer in a struct?
    fn is_member(&self, value: ValueId) -> bool {
        matches!(self.function.values[value].kind, ValueKind::Inst(inst)
            if matches!(self.function.insts[inst].op, Op::Offset { member: Some(_), .. }))
    }

    fn set(&mut self, state: &mut State, inst: &Inst, term: TermId) {
        if let Some(result) = inst.result {
            state.bind(result, term);
        }
    }

    /// `false`: the path ends here.
    fn step(&mut self, state: &mut State, id: InstId, inst: &Inst) -> bool {
        match &inst.op {
            Op::Alloca { .. } => {
                let obj = self.terms.intern_object(Object::Stack(id));
                let term = self.terms.addr(obj, 0);
                self.set(state, inst, term);
            }
            Op::Load { ptr } => {
                let is_member = self.is_member(*ptr);
                let ptr = self.operand(state, *ptr);
                if !self.touch(state, ptr, id, Use::Read) {
                    return false;
                }
                if is_member && self.knowledge.reads_null(id) {
                    self.set(state, inst, ZERO);
                    return true;
                }
                let ty = inst.result.map_or(Ty::Void, |result| self.function.values[result].ty);
                let mut term = self.load_from(state, ptr, ty, id);
                if self.limits.wary && matches!(ty, Ty::Int(_)) && self.may_change(state, ptr, term) {
                    term = self.terms.sym(id.0, 0);
                    state.facts.retain(|known| known != term);
                }
                self.set(state, inst, term);
                if ty == Ty::Int(8) {
                    self.read_byte(state, ptr);
                }
            }
            Op::Store { ptr, value } => {
                let term = self.operand(state, *value);
                let ptr = self.operand(state, *ptr);
                if !self.touch(state, ptr, id, Use::Write) {
                    return false;
                }
                let ty = self.function.values[*value].ty;
                if self.is_computed(*value)
                    && let Some((obj, off)) = self.terms.pointee(ptr)
                {
                    self.note_counter(obj, off, id);
                }
                self.doubt_kept(state, ptr, term);
                self.store_to(state, ptr, ty, term, id);
            }
            Op::Offset { base, bytes, indices, .. } => {
                let base = self.operand(state, *base);
                let mut term = base;
                let mut sum = ZERO;
                for &(index, scale) in indices {
                    let index = self.operand(state, index);
                    let scale = self.terms.int(scale);
                    let scaled = self.terms.bin(BinOp::Mul, index, scale);
                    sum = self.terms.bin(BinOp::Add, sum, scaled);
                }
                term = self.terms.elem(term, sum, *bytes);
                self.set(state, inst, term);
            }
            // What floating arithmetic does is not told: of the same numbers, `<` and `>=` say different things.
            Op::Cmp { op: CmpOp::Float, .. }
            | Op::Bin { op: BinOp::Float, .. }
            | Op::Cast { op: CastOp::Float, .. }
                if self.limits.wary =>
            {
                let term = self.terms.sym(id.0, 0);
                state.facts.retain(|known| known != term);
                self.set(state, inst, term);
            }
            Op::Cmp { op, a, b } => {
                let (a, b) = (self.operand(state, *a), self.operand(state, *b));
                let term = self.compare(state, *op, a, b);
                self.set(state, inst, term);
            }
            Op::Bin { op, a, b } => {
                let (a, b) = (self.operand(state, *a), self.operand(state, *b));
                let term = self.terms.bin(*op, a, b);
                self.set(state, inst, term);
            }
            Op::Cast { op, a } => {
                let from = self.bits(*a);
                let to = inst.result.map_or(64, |result| self.bits(result));
                let a = self.operand(state, *a);
                let mut term = self.terms.cast(*op, from, to, a);
                if self.limits.wary && *op == CastOp::Trunc && term == a && self.is_cut(state, a, to) {
                    term = self.terms.cut(a, to);
                }
                self.set(state, inst, term);
            }
            Op::Select { cond, a, b } => {
                let (cond, a, b) = (self.operand(state, *cond), self.operand(state, *a), self.operand(state, *b));
                let term = match state.facts.known(&self.terms, cond) {
                    Some(true) => a,
                    Some(false) => b,
                    None => self.terms.ite(cond, a, b),
                };
                self.set(state, inst, term);
            }
            Op::Phi { .. } => {}
            Op::Copy { dst, src, len } => {
                let (dst, src, len) = (self.operand(state, *dst), self.operand(state, *src), self.operand(state, *len));
                if !self.touch(state, src, id, Use::Read) || !self.touch(state, dst, id, Use::Write) {
                    return false;
                }
                let reach = self.reach(state, len);
                let len = self.terms.as_int(len);
                self.copy_as_far(state, dst, src, len, reach, id);
            }
            Op::Fill { dst, byte, len } => {
                let (dst, byte, len) =
                    (self.operand(state, *dst), self.operand(state, *byte), self.operand(state, *len));
                if !self.touch(state, dst, id, Use::Write) {
                    return false;
                }
                let len = self.terms.as_int(len);
                self.fill(state, dst, byte == ZERO, len, id);
            }
            Op::Extract { aggregate, offset } => {
                let aggregate = self.operand(state, *aggregate);
                let ty = inst.result.map_or(Ty::Void, |result| self.function.values[result].ty);
                let part = self.terms.ptr_add(aggregate, *offset as i64);
                let term = self.load_from(state, part, ty, id);
                self.set(state, inst, term);
            }
            Op::Insert { aggregate, value, offset } => {
                let old = self.operand(state, *aggregate);
                let term = self.operand(state, *value);
                let ty = self.function.values[*value].ty;
                let obj = self.terms.intern_object(Object::Stack(id));
                let place = self.terms.addr(obj, 0);
                self.copy(state, place, old, None, id);
                let part = self.terms.ptr_add(place, *offset as i64);
                self.store_to(state, part, ty, term, id);
                self.set(state, inst, place);
            }
            Op::Atomic { ptr, value } => {
                let (ptr, value) = (self.operand(state, *ptr), self.operand(state, *value));
                if !self.touch(state, ptr, id, Use::Write) {
                    return false;
                }
                self.escape(state, value);
                if let Some((obj, off)) = self.terms.pointee(ptr) {
                    let unknown = self.terms.sym(id.0, 1);
                    state.store(&self.terms, obj, off, 8, unknown);
                }
                let term = self.terms.sym(id.0, 0);
                self.set(state, inst, term);
            }
            Op::VaArg { .. } => {
                let term = self.terms.sym(id.0, 0);
                self.set(state, inst, term);
            }
            Op::Opaque { operands, clobbers, .. } => {
                for &operand in operands {
                    let term = self.operand(state, operand);
                    if *clobbers || !self.terms.mentions(term).is_empty() {
                        self.escape(state, term);
                        self.clobber(state, term, id);
                    }
                }
                let term = self.terms.sym(id.0, 0);
                self.set(state, inst, term);
            }
            Op::Bind { var, value } => {
                let term = self.operand(state, *value);
                self.ever_bound.extend(self.terms.mentions(term).to_vec());
                // A phi only says which assignment came through; it is none itself.
                let merged = matches!(self.function.values[*value].kind, ValueKind::Inst(inst) if matches!(self.function.insts[inst].op, Op::Phi { .. }));
                if !merged {
                    self.rebind(state, *var, *value, id);
                    // What the variable had before is held by it no longer.
                    for old in self.bindings.get(var).into_iter().flatten() {
                        if old != value
                            && !self.cfg.is_live_after(self.block, *old, id)
                            && let Ok(at) = state.env.binary_search_by_key(old, |entry| entry.0)
                        {
                            state.env.remove(at);
                        }
                    }
                }
            }
            Op::Call(_)
            | Op::Return { .. }
            | Op::Jump { .. }
            | Op::Branch { .. }
            | Op::Switch { .. }
            | Op::IndirectJump { .. }
            | Op::Unreachable => {}
        }
        true
    }

    /// A variable gets another value: what only it held is lost here. It is reported when the path ends,
    /// for a path that never returns loses nothing.
    fn rebind(&mut self, state: &mut State, var: caulk_ir::VarId, value: ValueId, id: InstId) {
        let now = self.operand(state, value);
        let held = |engine: &Self, obj: ObjId, known: &ObjState| {
            !known.escaped
                && known.lost_at.is_none()
                && known.status.without(Status::FAILED) == Status::LIVE
                && engine.is_held_by(obj, var)
                && !engine.terms.mentions(now).contains(&obj)
        };
        let holds: Vec<ObjId> =
            state.objs.iter().filter(|(obj, known)| held(self, *obj, known)).map(|entry| entry.0).collect();
        if holds.is_empty() {
            return;
        }
        // The new value is held, whether or not it is read again.
        self.pinned.push(now);
        self.forgotten = Some(var);
        self.collect(state, Some(id), None);
        self.forgotten = None;
        self.pinned.pop();
        for obj in holds {
            if let Some(known) = state.obj_mut(obj)
                && known.lost
            {
                known.lost_at = Some(id);
            }
        }
    }

    /// Is this one of the variables that the allocated pointer was put into?
    fn is_held_by(&self, obj: ObjId, var: caulk_ir::VarId) -> bool {
        let Object::Heap { site, .. } = *self.terms.object(obj) else { return false };
        let Some(result) = self.function.insts[site].result else { return false };
        self.function
            .insts
            .iter()
            .any(|inst| matches!(inst.op, Op::Bind { var: bound, value } if bound == var && value == result))
    }

    fn terminate(&mut self, mut state: State, id: InstId, inst: &Inst, leaving: &mut Vec<(BlockId, State)>) {
        match &inst.op {
            Op::Return { value } => {
                let result = value.map(|value| self.operand(&state, value));
                self.exit(state, result, id);
            }
            Op::Jump { to } => leaving.push((*to, state)),
            Op::Branch { cond, then, els } => {
                let cond = self.operand(&state, *cond);
                let mut other = state.clone();
                if self.assume(&mut state, cond, true, id) {
                    state.record(Event::Branch { inst: id, to: *then, first: true });
                    leaving.push((*then, state));
                }
                if self.assume(&mut other, cond, false, id) {
                    other.record(Event::Branch { inst: id, to: *els, first: false });
                    leaving.push((*els, other));
                }
            }
            Op::Switch { value, cases, default } => {
                let value = self.operand(&state, *value);
                let mut rest = state.clone();
                let mut by_target: Vec<(BlockId, SmallVec<[i64; 4]>)> = Vec::new();
                for case in cases {
                    match by_target.iter_mut().find(|entry| entry.0 == case.to) {
                        Some(entry) => entry.1.push(case.value),
                        None => by_target.push((case.to, SmallVec::from_iter([case.value]))),
                    }
                }
                for (to, values) in by_target {
                    let mut next = state.clone();
                    let mut possible = true;
                    if let [only] = values.as_slice() {
                        let k = self.terms.int(*only);
                        let cond = self.terms.cmp(CmpOp::Eq, value, k);
                        possible = self.assume(&mut next, cond, true, id);
                    } else {
                        let (lo, hi) = (values.iter().min().copied(), values.iter().max().copied());
                        if let (Some(lo), Some(hi)) = (lo, hi) {
                            let known = state.facts.range(&self.terms, value);
                            possible = values.iter().any(|value| !known.excludes(*value));
                            if self.terms.as_int(value).is_none() {
                                possible &= next.facts.narrow(value, &crate::facts::Range::between(lo, hi));
                            }
                        }
                    }
                    if possible {
                        next.record(Event::Branch { inst: id, to, first: true });
                        leaving.push((to, next));
                    }
                }
                let mut possible = true;
                for case in cases {
                    let k = self.terms.int(case.value);
                    let cond = self.terms.cmp(CmpOp::Eq, value, k);
                    possible = possible && self.assume(&mut rest, cond, false, id);
                }
                if possible {
                    rest.record(Event::Branch { inst: id, to: *default, first: false });
                    leaving.push((*default, rest));
                }
            }
            Op::IndirectJump { targets, .. } => {
                for &to in targets {
                    leaving.push((to, state.clone()));
                }
            }
            _ => {}
        }
    }
}
