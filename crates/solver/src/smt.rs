//! The same question, put to z3.
//!
//! # Invariants
//! - Every question has a context of its own and a limit in z3's own steps, not in time: the answer depends on the
//!   question alone, not on the machine, the thread or what was asked before.

use caulk_base::FxHashMap;
use z3::ast::{BV, Bool};
use z3::{Config, Params, SatResult, with_z3_config};

use crate::terms::{BinOp, CastOp, CmpOp, Term, TermId, Terms};

pub(crate) enum Answer {
    Satisfiable,
    /// With the places of conjuncts that exclude each other.
    Unsatisfiable(Vec<usize>),
    Unknown,
}

/// `steps`: z3's `rlimit`.
pub(crate) fn ask(terms: &Terms, conjuncts: &[TermId], steps: u32) -> Answer {
    with_z3_config(&Config::new(), || {
        let values = translate(terms, conjuncts);
        let Some(solver) = z3::Solver::new_for_logic("QF_BV") else { return Answer::Unknown };
        let mut params = Params::new();
        params.set_u32("rlimit", steps);
        params.set_u32("random_seed", 0);
        solver.set_params(&params);
        let one = BV::from_u64(1, 1);
        let mut names = Vec::new();
        for (place, condition) in conjuncts.iter().enumerate() {
            let name = Bool::new_const(format!("c{place}"));
            if let Some(value) = values.get(condition) {
                solver.assert_and_track(value.eq(&one), &name);
            }
            names.push(name);
        }
        match solver.check() {
            SatResult::Sat => Answer::Satisfiable,
            SatResult::Unknown => Answer::Unknown,
            SatResult::Unsat => {
                let core = solver.get_unsat_core();
                let places = (0..names.len()).filter(|&place| core.contains(&names[place])).collect();
                Answer::Unsatisfiable(places)
            }
        }
    })
}

fn translate(terms: &Terms, conjuncts: &[TermId]) -> FxHashMap<TermId, BV> {
    let mut values: FxHashMap<TermId, BV> = FxHashMap::default();
    let (yes_bit, no_bit) = (BV::from_u64(1, 1), BV::from_u64(0, 1));
    for id in terms.cone(conjuncts) {
        let value = match terms.term(id) {
            Term::Const { value, bits } => BV::from_i64(value, bits),
            Term::Var { id, bits } => BV::new_const(format!("v{id}_{bits}"), bits),
            Term::Bin { op, a, b } => binary(op, &values[&a], &values[&b]),
            Term::Cmp { op, a, b } => compare(op, &values[&a], &values[&b]).ite(&yes_bit, &no_bit),
            Term::Not { a } => values[&a].bvnot(),
            Term::Ite { condition, yes, no } => values[&condition].eq(&yes_bit).ite(&values[&yes], &values[&no]),
            Term::Cast { op, a, bits } => {
                let from = terms.bits(a);
                match op {
                    CastOp::Zero => values[&a].zero_ext(bits.saturating_sub(from)),
                    CastOp::Sign => values[&a].sign_ext(bits.saturating_sub(from)),
                    CastOp::Trunc => values[&a].extract(bits - 1, 0),
                }
            }
        };
        values.insert(id, value);
    }
    values
}

fn binary(op: BinOp, a: &BV, b: &BV) -> BV {
    match op {
        BinOp::Add => a.bvadd(b),
        BinOp::Sub => a.bvsub(b),
        BinOp::Mul => a.bvmul(b),
        BinOp::UDiv => a.bvudiv(b),
        BinOp::SDiv => a.bvsdiv(b),
        BinOp::URem => a.bvurem(b),
        BinOp::SRem => a.bvsrem(b),
        BinOp::And => a.bvand(b),
        BinOp::Or => a.bvor(b),
        BinOp::Xor => a.bvxor(b),
        BinOp::Shl => a.bvshl(b),
        BinOp::LShr => a.bvlshr(b),
        BinOp::AShr => a.bvashr(b),
    }
}

fn compare(op: CmpOp, a: &BV, b: &BV) -> Bool {
    match op {
        CmpOp::Eq => a.eq(b),
        CmpOp::Ne => a.ne(b),
        CmpOp::Ult => a.bvult(b),
        CmpOp::Ule => a.bvule(b),
        CmpOp::Ugt => a.bvugt(b),
        CmpOp::Uge => a.bvuge(b),
        CmpOp::Slt => a.bvslt(b),
        CmpOp::Sle => a.bvsle(b),
        CmpOp::Sgt => a.bvsgt(b),
        CmpOp::Sge => a.bvsge(b),
    }
}
