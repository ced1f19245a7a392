//! Whole-program heap analysis: symbolic execution of each function with a
//! symbolic heap, summarised by outcomes, bottom-up over the call graph.
//!
//! The states of a function are kept apart as long as they differ in what
//! matters for memory errors, and merged otherwise (see [`merge`]); calls are
//! replaced by the outcomes of their callee (see [`apply`]); what goes wrong on
//! the way is an [`Incident`].
//!
//! # Invariants
//! - A summary depends on the function and its callees' summaries alone: the
//!   result is the same at any number of threads.
//! - Over-approximation: merging loses "must", never a "may".

mod apply;
mod arithmetic;
mod asked;
mod call;
mod callgraph;
mod cfg;
mod clauses;
mod commons;
mod conditions;
mod counted;
mod covers;
mod describe;
mod doubts;
mod drain;
mod engine;
mod exchange;
mod exec;
mod exits;
mod facts;
#[cfg(test)]
mod facts_tests;
mod first;
mod flow;
mod glance;
mod heap;
mod incident;
mod index;
mod kept;
mod keys;
mod later;
mod learned;
mod loss;
mod memory;
mod merge;
mod modelled;
mod noreturn;
mod numbers;
mod object;
mod passing;
mod place;
mod range;
mod reach;
mod recursion;
mod replay;
mod report;
pub mod roles;
mod schedule;
mod sent;
mod shared;
mod short;
pub mod show;
mod slots;
mod standard;
mod state;
mod stretch;
mod summary;
mod term;
mod trace;
mod translate;
mod trust;
mod variadic;
mod ways;
mod whole;
mod widen;
mod words;
mod written;

pub use arithmetic::{negate, swapped};
pub use call::{RIGHT, WEIGH};
pub use callgraph::{CallGraph, MAX_TARGETS, PointerCalls, pointer_calls};
pub use cfg::{Cfg, ValueSet, for_each_operand, successors, tested};
pub use engine::{Analysed, Limits, ways_out};
pub use facts::Range;
pub use glance::{Basis, glance};
pub use incident::{Condition, Doubt, Incident, IncidentKind, Loss, NotHeap, ReleaseFact, Subject, Suspicion, Use};
pub use kept::Shelf;
pub use learned::Learned;
pub use object::{ObjId, ObjState, Object, Status};
pub use place::Off;
pub use show::unmodelled;
pub use slots::Targets;
pub use summary::{Outcome, SiteFact, Summary, Write};
pub use term::{Term, TermId};
pub use trace::Event;
pub use whole::{Analysis, Knowledge, analyse, analyse_again, analyse_with};
