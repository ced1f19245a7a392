//! Which way the walk may go at a branch.

use caulk_ir::{CastOp, CmpOp, Op, ValueId, ValueKind};

use crate::graph::fate::{Known, compare};
use crate::graph::walk::{Seat, Walker};

impl Walker<'_> {
    /// Which sides of a branch are possible.
    pub(super) fn sides(&self, cond: ValueId, seat: &Seat) -> (bool, bool) {
        let Some((op, value, constant)) = self.comparison(cond) else { return (true, true) };
        let is_site = self.function.insts[self.start].result == Some(value);
        let known: Vec<Known> = if self.is_object(value, seat) {
            vec![self.valid()]
        } else if is_site && !self.slice.success().is_empty() {
            self.slice.success().to_vec()
        } else {
            match (self.function.values[value].kind, seat.call) {
                (ValueKind::Inst(inst), Some((call, number))) if inst == call => {
                    let Op::Call(op) = &self.function.insts[call].op else { return (true, true) };
                    match self.slice.endings(call, op, seat.stored, &seat.dead).get(usize::from(number)) {
                        Some(ending) => ending.results.clone(),
                        None => return (true, true),
                    }
                }
                _ => return (true, true),
            }
        };
        let answers: Vec<Option<bool>> = known.iter().map(|known| compare(op, *known, constant)).collect();
        (answers.iter().any(|answer| *answer != Some(false)), answers.iter().any(|answer| *answer != Some(true)))
    }

    pub(super) fn tests_object(&self, cond: ValueId, seat: &Seat) -> bool {
        self.comparison(cond).is_some_and(|(_, value, _)| {
            self.is_object(value, seat) || self.function.insts[self.start].result == Some(value)
        })
    }

    pub(super) fn holds(&self, value: ValueId, seat: &Seat) -> bool {
        self.slice.holds(value, seat.stored, &seat.dead)
    }

    /// Is it for certain: not because a cell held it at some time, or because a call may return it.
    fn is_object(&self, value: ValueId, seat: &Seat) -> bool {
        let by_other_call = match self.function.values[value].kind {
            ValueKind::Inst(inst) => inst != self.start && matches!(self.function.insts[inst].op, Op::Call(_)),
            _ => false,
        };
        !by_other_call && self.slice.holds(value, false, &seat.dead)
    }

    /// What the object's address is when there is one.
    fn valid(&self) -> Known {
        match self.analysis.knowledge.models.families[self.incident.family].is_integer {
            true => Known::NotNegative,
            false => Known::NotZero,
        }
    }

    /// `value op constant`.
    fn comparison(&self, cond: ValueId) -> Option<(CmpOp, ValueId, i64)> {
        let ValueKind::Inst(inst) = self.function.values[cond].kind else { return None };
        match &self.function.insts[inst].op {
            Op::Cast { op: CastOp::ZExt | CastOp::Trunc | CastOp::Same, a } => self.comparison(*a),
            Op::Cmp { op, a, b } => match (self.constant(*a), self.constant(*b)) {
                (None, Some(constant)) => Some((*op, *a, constant)),
                (Some(constant), None) if matches!(op, CmpOp::Eq | CmpOp::Ne) => Some((*op, *b, constant)),
                _ => None,
            },
            _ => None,
        }
    }

    fn constant(&self, value: ValueId) -> Option<i64> {
        match self.function.values[value].kind {
            ValueKind::Int(number) => Some(number),
            ValueKind::Null | ValueKind::Zero => Some(0),
            _ => None,
        }
    }
}
