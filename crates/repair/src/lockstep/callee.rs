//! What callees make of what only the new function has written: they are walked, too, once with it and once without.
//!
//! ```c
//! free(c->buf);
//! c->buf = NULL;          // only the new function has this
//! report(c);              // puts(c->buf ? "had a buffer" : "never had a buffer"): it looks, and says something else
//! conn_free(c);           // free(c->buf): the old one released it twice, the new one does nothing
//! ```

use caulk_ir::{Call, Callee, Function, InstId, Program, Target, Ty, Unit};

use super::side;
use super::state::State;
use super::terms::{Member, Term, TermId, Which};
use super::walk::Walk;

/// What holds behind a call, and the number that it returns then, if it is one.
pub type Behind = (State, Option<i64>);

/// Calls are followed this deep.
const DEPTH: usize = 4;

impl<'r> Walk<'_, 'r> {
    /// What may hold behind a call that does the same for all that only the new function has written, and what it returns
    /// then, where that is a number. `None`: it may do something else.
    pub fn hidden(&mut self, at: InstId, call: &Call, operands: &[TermId], state: &State) -> Option<Vec<Behind>> {
        if state.written().is_empty() {
            return Some(vec![(state.clone(), None)]);
        }
        let released = self.released(at, state);
        let lent = self.lent();
        let library = self.callee(Which::Old, call).is_some_and(|callee| self.rules.is_library(callee));
        let mut seen = Vec::new();
        for (address, value) in state.written() {
            let terms = &self.runner.terms;
            let root = terms.root(address);
            let given = operands.iter().any(|term| terms.root(*term) == root);
            let hidden = match terms.get(root) {
                Term::OwnSlot(_) => true,
                Term::Slot(number) => !given && !lent.contains(number),
                Term::Param(number) if self.runner.only.contains(number) => !given,
                _ => library && (!given || released.contains(&root)),
            };
            if !hidden {
                seen.push((address, value));
            }
        }
        match seen[..] {
            [] => Some(vec![(state.clone(), None)]),
            [(address, _)] if library => self.filled(at, call, address, state),
            _ if library => None,
            _ => self.same_inside(at, call, &seen, state),
        }
    }

    /// `asprintf(&p, …)`: it is overwritten, or nothing happens.
    fn filled(&mut self, at: InstId, call: &Call, address: TermId, state: &State) -> Option<Vec<Behind>> {
        let (argument, bytes) = self.through(at, call, address, state)?;
        let fails = self.rules.fills(self.callee(Which::Old, call)?, argument as usize).filter(|_| bytes == 0)?;
        let mut set = state.clone();
        set.is_written_by_both(address);
        Some(vec![(set, None), (state.clone(), Some(fails))])
    }

    fn same_inside(
        &mut self,
        at: InstId,
        call: &Call,
        seen: &[(TermId, TermId)],
        state: &State,
    ) -> Option<Vec<Behind>> {
        if self.depth >= DEPTH {
            return None;
        }
        let (unit, function) = self.body(call)?;
        let text = |_: Which, _: &str, line: u32, column: u32| Some((line, column));
        let (old, new) = side::pair((unit, function), (unit, function), &text);
        let mut inner = Walk::new(old, new, self.rules, self.depth + 1);
        let mut start = State::new(&mut inner.runner.terms);
        let mut addresses = Vec::new();
        let lent = self.lent();
        for (address, value) in seen {
            let number = self.runner.terms.number(*value).filter(|_| self.runner.terms.ty(*value) == Ty::Ptr)?;
            let (argument, bytes) = self.through(at, call, *address, state)?;
            let terms = &mut inner.runner.terms;
            let base = terms.put(Term::Param(argument), Ty::Ptr);
            let there = terms.offset(base, bytes, Vec::new());
            let value =
                if number == 0 { terms.put(Term::Null, Ty::Ptr) } else { terms.put(Term::Int(number), Ty::Ptr) };
            let content = inner.runner.load(Which::Old, &start, there, Ty::Ptr, InstId(0));
            let was = self.runner.load(Which::Old, state, *address, Ty::Ptr, at);
            if state.gone.contains(&was) {
                start.gone.insert(content);
            }
            start.values.insert(Member::Written(there), value);
            if state.unset.contains(address) {
                start.unset.insert(there);
            }
            addresses.push((*address, there));
            let root = self.runner.terms.root(*address);
            let known_here = match self.runner.terms.get(root) {
                Term::Slot(number) => !lent.contains(number),
                Term::Param(number) => self.runner.only.contains(number),
                _ => false,
            };
            if known_here && self.is_given_once(at, call, root, state) && !inner.is_passed_round(argument) {
                inner.runner.only.insert(argument);
            }
        }
        inner.all(start).ok()?;
        // On no way does it return, but where it has gone wrong.
        let wrong = inner.left.is_empty();
        if wrong {
            inner.left.push((Vec::new(), None));
        }
        let behind = inner.left.iter().map(|(left, result)| {
            let mut state = state.clone();
            state.wrong |= wrong;
            for (address, there) in &addresses {
                if !left.iter().any(|(at, _)| at == there) {
                    state.is_written_by_both(*address);
                }
            }
            (state, *result)
        });
        Some(behind.collect())
    }

    /// Whether only one argument leads to what an address is counted from.
    fn is_given_once(&mut self, at: InstId, call: &Call, root: TermId, state: &State) -> bool {
        let mut given = 0;
        for (number, value) in call.args.iter().enumerate() {
            let term = self.runner.operand(Which::Old, state, at, number as u32, *value);
            given += usize::from(self.runner.terms.root(term) == root);
        }
        given == 1
    }

    /// The argument through which an address is reached, and how far behind it lies.
    fn through(&mut self, at: InstId, call: &Call, address: TermId, state: &State) -> Option<(u32, i64)> {
        let (root, bytes) = self.runner.terms.place(address);
        for (number, value) in call.args.iter().enumerate() {
            let given = self.runner.operand(Which::Old, state, at, number as u32, *value);
            let (from, start) = self.runner.terms.place(given);
            if from == root {
                return Some((number as u32, bytes?.checked_sub(start?)?));
            }
        }
        None
    }

    /// The function that is called, if there is only one.
    fn body(&self, call: &Call) -> Option<(&'r Unit, &'r Function)> {
        let Callee::Symbol(symbol) = call.callee else { return None };
        let program: &'r Program = &self.rules.before.program;
        let mut units = program.units.iter_ids();
        let (unit, _) = units.find(|(_, unit)| std::ptr::eq(&raw const ***unit, self.runner.old.unit))?;
        let Target::Functions(all) = program.target(unit, symbol) else { return None };
        let [one] = all[..] else { return None };
        Some((&program.units[program.unit_of(one)], program.function(one)))
    }
}
