//! What happens inside the calls of a path: the steps of the callee, one level deeper.
//!
//! ```text
//! 3: `append` returns -1 here          depth 0
//!      `n == NULL` is true here        depth 1, in `append`
//! ```
//!
//! The analysis keeps no paths of callees; a callee is run again when somebody looks into it, once for all findings.

use std::cell::RefCell;
use std::rc::Rc;

use caulk_analysis::{Analysis, Event, Limits, ways_out};
use caulk_base::FxHashMap;
use caulk_findings::{Step, StepKind};
use caulk_ir::{Callee, FuncId, InstId, Op, Target};

use crate::naming::Names;
use crate::steps;

/// Calls within calls within calls are not opened.
const MAX_DEPTH: u32 = 2;
/// More steps than this inside one call are not shown; the ends matter most.
const MAX_STEPS: usize = 8;

/// A way to each outcome of a function, by its number.
type Ways = Rc<Vec<Vec<Event>>>;

/// The insides of calls.
pub struct Inside<'a> {
    analysis: &'a Analysis<'a>,
    limits: Limits,
    ways: RefCell<FxHashMap<FuncId, Ways>>,
}

impl<'a> Inside<'a> {
    pub fn new(analysis: &'a Analysis<'a>, limits: Limits) -> Self {
        Self { analysis, limits, ways: RefCell::default() }
    }

    /// The steps inside a call of `caller` that ended in an outcome.
    pub fn steps(&self, caller: FuncId, call: InstId, outcome: usize, depth: u32, state: &str) -> Vec<Step> {
        let Some(callee) = self.callee(caller, call) else { return Vec::new() };
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let ways = self.ways(callee);
        let Some(events) = ways.get(outcome) else { return Vec::new() };
        let names = Names::new(&self.analysis.knowledge, callee);
        let mut inner: Vec<Step> = Vec::new();
        let mut push = |kind, inst: InstId, text: String, decision| {
            inner.push(Step { kind, place: names.place(inst), text, depth, decision, state: state.into() });
        };
        let by = |inst: InstId| names.callee(inst).map(|name| format!(" by `{name}`")).unwrap_or_default();
        for event in events {
            match *event {
                Event::Branch { inst, first, .. } => {
                    if let Some((text, decision)) = steps::branch(&names, inst, first) {
                        push(StepKind::Branch, inst, text, Some(decision));
                    }
                }
                Event::Outcome { inst, outcome } => {
                    if let Some(text) = steps::outcome_text(self.analysis, callee, &names, inst, outcome as usize) {
                        push(StepKind::Call, inst, text, None);
                    }
                }
                Event::Failed { inst, .. } => {
                    push(StepKind::Branch, inst, "the allocation failed here".to_owned(), None);
                }
                Event::Alloc { inst, .. } => {
                    push(StepKind::Allocate, inst, format!("allocated{} here", by(inst)), None)
                }
                Event::Release { inst, .. } => {
                    push(StepKind::Release, inst, format!("released{} here", by(inst)), None)
                }
                Event::Store { inst, .. } => push(StepKind::Store, inst, "stored here".to_owned(), None),
            }
        }
        inner.dedup_by(|a, b| a.place == b.place && a.text == b.text);
        if inner.len() > MAX_STEPS {
            inner.drain(MAX_STEPS / 2..inner.len() - MAX_STEPS / 2);
        }
        inner
    }

    fn callee(&self, caller: FuncId, call: InstId) -> Option<FuncId> {
        let program = self.analysis.knowledge.program;
        let Op::Call(call) = &program.function(caller).insts[call].op else { return None };
        let Callee::Symbol(symbol) = call.callee else { return None };
        match program.target(program.unit_of(caller), symbol) {
            Target::Functions(all) => match all.as_slice() {
                [one] => Some(*one),
                _ => None,
            },
            _ => None,
        }
    }

    fn ways(&self, callee: FuncId) -> Ways {
        if let Some(known) = self.ways.borrow().get(&callee) {
            return known.clone();
        }
        let ways = Rc::new(ways_out(&self.analysis.knowledge, callee, self.limits));
        self.ways.borrow_mut().insert(callee, ways.clone());
        ways
    }
}
