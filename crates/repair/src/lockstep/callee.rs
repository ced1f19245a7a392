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

/// Calls are followed this deep.
const DEPTH: usize = 4;

impl<'r> Walk<'_, 'r> {
    /// Whether a call does the same for all that only the new function has written; what is left of it is noted.
    pub fn is_hidden(&mut self, at: InstId, call: &Call, operands: &[TermId], state: &mut State) -> bool {
        if state.written().is_empty() {
            return true;
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
                _ => library && (!given || released.contains(&root)),
            };
            if !hidden {
                seen.push((address, value));
            }
        }
        seen.is_empty() || !library && self.is_same_inside(at, call, &seen, state)
    }

    fn is_same_inside(&mut self, at: InstId, call: &Call, seen: &[(TermId, TermId)], state: &mut State) -> bool {
        if self.depth >= DEPTH {
            return false;
        }
        let Some((unit, function)) = self.body(call) else { return false };
        let text = |_: Which, _: &str, line: u32, column: u32| Some((line, column));
        let (old, new) = side::pair((unit, function), (unit, function), &text);
        let mut inner = Walk::new(old, new, self.rules, self.depth + 1);
        let mut start = State::new(&mut inner.runner.terms);
        let mut addresses = Vec::new();
        for (address, value) in seen {
            let Some(number) = self.runner.terms.number(*value).filter(|_| self.runner.terms.ty(*value) == Ty::Ptr)
            else {
                return false;
            };
            let Some((argument, bytes)) = self.through(at, call, *address, state) else { return false };
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
            addresses.push((*address, there));
        }
        if inner.all(start).is_err() {
            return false;
        }
        // On no way does it return, but where it has gone wrong.
        state.wrong |= inner.left.is_none();
        let left = inner.left.unwrap_or_default();
        for (address, there) in addresses {
            if !left.iter().any(|(at, _)| *at == there) {
                state.values.remove(&Member::Written(address));
            }
        }
        true
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
