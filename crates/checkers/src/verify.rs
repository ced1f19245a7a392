//! Stage two: can the conditions of an incident's path hold together?
//!
//! The heap analysis drops what its own intervals contradict. What is left is put to the solver: the linear check, a
//! guess of values, then z3. What is proved impossible is no finding; what stays open is one with a doubt.
//!
//! ```text
//! a + b == 4, a == 3, b == 3      no interval contradicts another; the solver says: infeasible
//! ```
//!
//! # Invariants
//! - One solver with one budget for each function: the verdicts do not depend on other functions or on threads.
//! - A verdict of `Infeasible` needs arithmetic that is right for the width the program used. The analysis keeps
//!   integers sign-extended and forgets their width, so that operations which read a negative number as a large one
//!   (`/`, `%` and `>>` on unsigned) become variables: equal to themselves, and otherwise anything.
//!
//! # Known imprecision
//! - Addresses are variables: that two objects lie apart is not known here.
//! - Sums and products are those of 64 bits, also where the program wraps at 32.

use std::sync::Arc;

use caulk_analysis::{Condition, Incident, Term as From};
use caulk_ir::{BinOp as FromBin, CastOp as FromCast, CmpOp as FromCmp};
use caulk_solver::{BinOp, Budget, CmpOp, Solver, Statistics, TermId, Terms, Verdict};
use rayon::prelude::*;

use crate::memo::Memo;

const BITS: u32 = 64;

/// What the solver said of each incident, in their order, and what it took.
pub struct Verified {
    pub verdicts: Vec<Verdict>,
    pub statistics: Statistics,
}

/// Asks about every incident of which the memo knows nothing. They must be sorted by function.
pub fn verify(incidents: &[&Arc<Incident>], memo: &mut Memo) -> Verified {
    let groups: Vec<&[&Arc<Incident>]> = incidents.chunk_by(|a, b| a.function == b.function).collect();
    let known: Vec<Option<(Vec<Verdict>, Statistics)>> =
        groups.iter().map(|group| memo.verdicts(group).cloned()).collect();
    let answers: Vec<(Vec<Verdict>, Statistics)> = groups
        .par_iter()
        .zip(&known)
        .map(|(group, known)| {
            if let Some(known) = known {
                return known.clone();
            }
            let mut solver = Solver::new(Budget::default());
            let verdicts = group.iter().map(|incident| any_of(&mut solver, &incident.conditions)).collect();
            (verdicts, solver.statistics())
        })
        .collect();
    let mut verified = Verified { verdicts: Vec::with_capacity(incidents.len()), statistics: Statistics::default() };
    for ((group, known), answer) in groups.iter().zip(&known).zip(answers) {
        if known.is_none() {
            memo.judge(group, answer.clone());
        }
        let (verdicts, statistics) = answer;
        verified.verdicts.extend(verdicts);
        verified.statistics += statistics;
    }
    verified
}

/// One of the states in which it was seen is enough.
fn any_of(solver: &mut Solver, conditions: &[Condition]) -> Verdict {
    let mut last = Verdict::Feasible;
    for condition in conditions {
        last = verdict(solver, condition);
        if last != Verdict::Infeasible {
            break;
        }
    }
    last
}

fn verdict(solver: &mut Solver, condition: &Condition) -> Verdict {
    let mut terms = Terms::new();
    let conjuncts = translate(&mut terms, condition);
    solver.check(&terms, &conjuncts)
}

/// The conjuncts as terms of one bit.
fn translate(terms: &mut Terms, condition: &Condition) -> Vec<TermId> {
    let zero = terms.constant(0, BITS);
    // Parts come before what is made of them.
    let mut values: Vec<TermId> = Vec::with_capacity(condition.terms.len());
    for (place, term) in condition.terms.iter().enumerate() {
        let value = value(terms, &values, place, term);
        values.push(value);
    }
    let mut conjuncts = Vec::with_capacity(condition.conjuncts.len());
    for &(id, truth) in &condition.conjuncts {
        let Some(&value) = values.get(id.0 as usize) else { continue };
        let op = if truth { CmpOp::Ne } else { CmpOp::Eq };
        conjuncts.push(terms.cmp(op, value, zero));
    }
    conjuncts
}

fn value(terms: &mut Terms, values: &[TermId], place: usize, term: &From) -> TermId {
    let unknown = |terms: &mut Terms, bits: u32| {
        let variable = terms.var(place as u32, bits);
        if bits == BITS { variable } else { terms.zext(variable, BITS) }
    };
    let part = |id: &caulk_analysis::TermId| values.get(id.0 as usize).copied();
    match term {
        From::Int(value) => terms.constant(*value, BITS),
        From::Bin(op, a, b) => match (binary(*op), part(a), part(b)) {
            (Some(op), Some(a), Some(b)) => terms.bin(op, a, b),
            _ => unknown(terms, BITS),
        },
        From::Cmp(op, a, b) => match (compare(*op), part(a), part(b)) {
            (Some(op), Some(a), Some(b)) => {
                let truth = terms.cmp(op, a, b);
                terms.zext(truth, BITS)
            }
            _ => unknown(terms, 1),
        },
        From::Cast(op, bits, a) => match (op, part(a)) {
            (FromCast::Trunc, Some(a)) if *bits < BITS => {
                let narrow = terms.trunc(a, *bits);
                terms.sext(narrow, BITS)
            }
            (FromCast::ZExt, Some(a)) if *bits < BITS => {
                let narrow = terms.trunc(a, *bits);
                terms.zext(narrow, BITS)
            }
            (FromCast::Float, _) | (_, None) => unknown(terms, BITS),
            (_, Some(a)) => a,
        },
        From::Ite(condition, a, b) => match (part(condition), part(a), part(b)) {
            (Some(condition), Some(a), Some(b)) => {
                let zero = terms.constant(0, BITS);
                let truth = terms.cmp(CmpOp::Ne, condition, zero);
                terms.ite(truth, a, b)
            }
            _ => unknown(terms, BITS),
        },
        From::Param(_)
        | From::Content { .. }
        | From::Addr { .. }
        | From::Elem { .. }
        | From::Func(_)
        | From::Sym { .. }
        | From::Pure(_) => unknown(terms, BITS),
    }
}

fn binary(op: FromBin) -> Option<BinOp> {
    Some(match op {
        FromBin::Add => BinOp::Add,
        FromBin::Sub => BinOp::Sub,
        FromBin::Mul => BinOp::Mul,
        FromBin::SDiv => BinOp::SDiv,
        FromBin::SRem => BinOp::SRem,
        FromBin::And => BinOp::And,
        FromBin::Or => BinOp::Or,
        FromBin::Xor => BinOp::Xor,
        FromBin::Shl => BinOp::Shl,
        FromBin::AShr => BinOp::AShr,
        FromBin::UDiv | FromBin::URem | FromBin::LShr | FromBin::Float => return None,
    })
}

fn compare(op: FromCmp) -> Option<CmpOp> {
    Some(match op {
        FromCmp::Eq => CmpOp::Eq,
        FromCmp::Ne => CmpOp::Ne,
        FromCmp::Ult => CmpOp::Ult,
        FromCmp::Ule => CmpOp::Ule,
        FromCmp::Ugt => CmpOp::Ugt,
        FromCmp::Uge => CmpOp::Uge,
        FromCmp::Slt => CmpOp::Slt,
        FromCmp::Sle => CmpOp::Sle,
        FromCmp::Sgt => CmpOp::Sgt,
        FromCmp::Sge => CmpOp::Sge,
        FromCmp::Float => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use caulk_analysis::TermId as Id;

    fn ask(terms: Vec<From>, conjuncts: &[(u32, bool)]) -> Verdict {
        let condition = Condition { terms, conjuncts: conjuncts.iter().map(|&(id, truth)| (Id(id), truth)).collect() };
        verdict(&mut Solver::new(Budget::default()), &condition)
    }

    /// `a + b == k` with `a == 3` and `b == 3`.
    fn sum(k: i64) -> Verdict {
        let terms = vec![
            From::Param(0),
            From::Param(1),
            From::Bin(FromBin::Add, Id(0), Id(1)),
            From::Int(k),
            From::Cmp(FromCmp::Eq, Id(2), Id(3)),
            From::Int(3),
            From::Cmp(FromCmp::Eq, Id(0), Id(5)),
            From::Cmp(FromCmp::Eq, Id(1), Id(5)),
        ];
        ask(terms, &[(4, true), (6, true), (7, true)])
    }

    #[test]
    fn sums_are_computed() {
        assert_eq!(sum(6), Verdict::Feasible);
        assert_eq!(sum(4), Verdict::Infeasible);
    }

    #[test]
    fn bits_that_exclude_each_other_need_the_solver() {
        // x & 6 == x, x > 4, x & 2 == 0, x != …: only 4 and 6 are left, and neither fits.
        let terms = vec![
            From::Param(0),
            From::Int(6),
            From::Bin(FromBin::And, Id(0), Id(1)),
            From::Cmp(FromCmp::Eq, Id(2), Id(0)),
            From::Int(4),
            From::Cmp(FromCmp::Sgt, Id(0), Id(4)),
            From::Int(2),
            From::Bin(FromBin::And, Id(0), Id(6)),
        ];
        assert_eq!(ask(terms.clone(), &[(3, true), (5, true), (7, false)]), Verdict::Infeasible);
        assert_eq!(ask(terms, &[(3, true), (5, true), (7, true)]), Verdict::Feasible);
    }

    #[test]
    fn a_term_and_its_negation_exclude_each_other_whatever_it_is() {
        let terms = vec![From::Sym { site: 1, slot: 2 }, From::Bin(FromBin::UDiv, Id(0), Id(0))];
        assert_eq!(ask(terms.clone(), &[(1, true), (1, false)]), Verdict::Infeasible);
        // The quotient itself is not computed: its width is not known.
        assert_eq!(ask(terms, &[(1, false), (0, true)]), Verdict::Feasible);
    }

    #[test]
    fn narrow_casts_keep_their_sign_or_lose_it() {
        let cast = |op, bits| {
            vec![From::Param(0), From::Cast(op, bits, Id(0)), From::Int(0), From::Cmp(FromCmp::Slt, Id(1), Id(2))]
        };
        assert_eq!(ask(cast(FromCast::ZExt, 8), &[(3, true)]), Verdict::Infeasible);
        assert_eq!(ask(cast(FromCast::Trunc, 8), &[(3, true)]), Verdict::Feasible);
    }

    #[test]
    fn broken_ids_are_no_panic() {
        assert_eq!(ask(vec![From::Cast(FromCast::Trunc, 8, Id(9))], &[(0, true), (7, true)]), Verdict::Feasible);
    }
}
