//! Descriptors that take the places of standard input, output and error, and are meant to stay.
//!
//!     while (fcntl(2, F_GETFD) == -1) open("/dev/null", O_RDWR);          // whatever is not open yet
//!
//!     close(0);                                                           // the lowest number that is free
//!     if (open("/dev/null", O_RDONLY) != 0) complain();                   // is the one just closed
//!
//! # Invariants
//! - Only numbers that are written down count: `close(fd); if (open(…) == fd)` says nothing of the standard ones.

use caulk_ir::{Callee, CmpOp, InstId, Op, ValueId, ValueKind};

use crate::engine::Engine;

impl Engine<'_> {
    /// Is what this call opens meant to take the place of a standard descriptor?
    pub(crate) fn is_for_standard(&self, call: InstId) -> bool {
        self.fills_standard() || self.replaces_standard(call)
    }

    /// Does the function ask whether standard input, output or error are open? Then what it opens takes their places.
    fn fills_standard(&self) -> bool {
        const F_GETFD: i64 = 1;
        self.calls_with(&["fcntl", "fcntl64"], |args| match *args {
            [descriptor, command, ..] => self.number(command) == Some(F_GETFD) && self.standard(descriptor).is_some(),
            _ => false,
        })
    }

    /// Does the function close one of them, and ask whether it has its number again?
    fn replaces_standard(&self, call: InstId) -> bool {
        let Some(result) = self.function.insts[call].result else { return false };
        self.function.insts.iter().any(|inst| match inst.op {
            Op::Cmp { op: CmpOp::Eq | CmpOp::Ne, a, b } if a == result => self.standard(b).is_some_and(|number| {
                self.calls_with(&["close"], |args| args.first().is_some_and(|&arg| self.number(arg) == Some(number)))
            }),
            _ => false,
        })
    }

    fn calls_with(&self, names: &[&str], suits: impl Fn(&[ValueId]) -> bool) -> bool {
        let symbols = &self.program.units[self.unit].symbols;
        self.function.insts.iter().any(|inst| match &inst.op {
            Op::Call(call) => match call.callee {
                Callee::Symbol(symbol) => names.contains(&symbols[symbol].name.as_str()) && suits(&call.args),
                _ => false,
            },
            _ => false,
        })
    }

    fn standard(&self, value: ValueId) -> Option<i64> {
        self.number(value).filter(|number| (0..=2).contains(number))
    }

    fn number(&self, value: ValueId) -> Option<i64> {
        match self.function.values[value].kind {
            ValueKind::Int(number) => Some(number),
            _ => None,
        }
    }
}
