//! Decides whether conditions can be true together. Knows terms, never instructions.
//!
//! Three steps, each dearer than the one before: a check in linear time that finds most contradictions (`facts.rs`), a
//! guess of values that proves most of the rest feasible, and z3 with bit-vectors for what is left (`smt.rs`).
//!
//! ```
//! use caulk_solver::{Budget, CmpOp, Solver, Terms, Verdict};
//!
//! let mut terms = Terms::new();
//! let (n, three) = (terms.var(0, 32), terms.constant(3, 32));
//! let small = terms.cmp(CmpOp::Slt, n, three);
//! let large = terms.not(small);
//! let mut solver = Solver::new(Budget::default());
//! assert_eq!(solver.check(&terms, &[small]), Verdict::Feasible);
//! assert_eq!(solver.check(&terms, &[small, large]), Verdict::Infeasible);
//! assert_eq!(solver.explain(&terms, &[small, large]), [0, 1]);
//! ```
//!
//! # Invariants
//! - The answer depends on the terms and the budget alone: limits are counts, never time.
//! - `Infeasible` and `Feasible` are proofs; what is not proved is `Undecided`.

mod facts;
mod fold;
mod range;
mod smt;
mod solver;
mod terms;
mod value;

pub use solver::{Budget, Solver, Statistics, Verdict, contradiction};
pub use terms::{BinOp, CastOp, CmpOp, Term, TermId, Terms};
