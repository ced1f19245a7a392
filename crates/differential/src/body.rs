//! Bodies of generated functions: random operations on pointers that keep their ownership in order.
//!
//! Each variable has a state; an operation is chosen among those that are right in the current state, and
//! every exit releases what is owned.
//!
//! ```text
//! a = node_new(3);          a: owned
//! b = a;                    a: owned, b: alias of a
//! if (bit(1)) {
//!     node_free(a);         a: dead, b: dead
//!     a = NULL;             a: null        made at the join, because the other arm owns
//! }                         a: owned or null
//! node_free(a);
//! ```
//!
//! "Owned" always means owned or NULL: every allocation can fail.

use crate::library::{node_construct, node_release};
use crate::rng::Rng;
use crate::tree::Stmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Node,
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Null,
    Owned,
    /// Released or handed over; the name must not be read.
    Dead,
    /// Points to what this other variable owns.
    Alias(usize),
    /// A parameter that belongs to the caller.
    Borrowed,
}

#[derive(Clone, Debug)]
pub struct Var {
    pub name: String,
    pub kind: Kind,
    pub state: State,
    /// Only ever an alias: no exit releases it.
    pub alias_only: bool,
    /// Owned only if this input bit is set.
    pub guard: Option<usize>,
}

/// What a generated function does with pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    Work,
    Borrow,
    Consume,
    Create,
    Out,
    /// Takes a node into a box, or fails and leaves it with the caller.
    Store,
}

#[derive(Clone, Debug)]
pub struct Callee {
    pub name: String,
    pub contract: Contract,
}

pub struct Body<'r> {
    pub rng: &'r mut Rng,
    pub bits: usize,
    /// Nodes own a name.
    pub names: bool,
    pub callees: &'r [Callee],
    pub contract: Contract,
    pub vars: Vec<Var>,
    pub has_list: bool,
    pub has_box: bool,
    /// Exits jump to one label that releases everything.
    pub goto_style: bool,
    pub jumped: bool,
    /// Releases and checks go through the program's macros.
    pub macros: bool,
    pub calls_left: usize,
}

impl Body<'_> {
    pub fn bit(&mut self) -> usize {
        self.rng.below(self.bits)
    }

    /// Some statements, nested to a depth.
    pub fn block(&mut self, length: usize, depth: usize) -> Vec<Stmt> {
        let mut out = Vec::new();
        // Not every operation is possible in every state.
        for _ in 0..4 * length {
            if out.len() >= length {
                break;
            }
            self.operation(&mut out, depth);
        }
        out
    }

    fn operation(&mut self, out: &mut Vec<Stmt>, depth: usize) {
        match self.rng.below(16) {
            0..=2 => self.allocate(out),
            3 | 4 => self.read(out),
            5 => self.alias(out),
            6 => self.release(out),
            7 => self.insert(out),
            8 => self.put(out),
            9..=11 if depth > 0 => self.branch(out, depth),
            12 if depth > 0 => self.early_exit(out),
            13 if depth > 0 => self.looped(out),
            14 => self.grow(out),
            _ => self.call(out),
        }
    }

    fn choose(&mut self, test: impl Fn(&Var) -> bool) -> Option<usize> {
        let found: Vec<usize> = (0..self.vars.len()).filter(|n| test(&self.vars[*n])).collect();
        self.rng.pick(&found).copied()
    }

    fn readable(var: &Var) -> bool {
        matches!(var.state, State::Owned | State::Alias(_) | State::Borrowed)
    }

    /// What was an alias of `var` must not be read any more.
    fn kill_aliases(&mut self, var: usize) {
        for other in &mut self.vars {
            if other.state == State::Alias(var) {
                other.state = State::Dead;
            }
        }
    }

    pub fn free_text(&self, var: usize) -> Stmt {
        let var = &self.vars[var];
        let function = if var.kind == Kind::Node { node_release(self.names) } else { "free" };
        Stmt::Free { text: format!("{function}({});", var.name), var: var.name.clone() }
    }

    fn allocate(&mut self, out: &mut Vec<Stmt>) {
        let Some(var) = self.choose(|v| !v.alias_only && v.state != State::Borrowed) else { return };
        let (name, kind) = (self.vars[var].name.clone(), self.vars[var].kind);
        if self.vars[var].state == State::Owned {
            if self.rng.percent(60) {
                return;
            }
            out.push(self.free_text(var));
            self.kill_aliases(var);
        }
        let value = self.rng.below(80);
        let call = match (kind, self.rng.below(4)) {
            (Kind::Node, 0 | 1) => format!("node_new({value})"),
            (Kind::Node, 2) => node_construct(self.names, value, &format!("n{value}")),
            (Kind::Node, _) => {
                // An out-parameter needs a defined value for the case of failure.
                if self.vars[var].state != State::Null {
                    out.push(Stmt::Clear { var: name.clone() });
                }
                self.vars[var].state = State::Owned;
                self.vars[var].guard = None;
                let failure = self.failure();
                self.fallible(out, format!("node_make(&{name}, {value}) < 0"), failure);
                return;
            }
            (Kind::Text, 0 | 1) => format!("text_new({value})"),
            (Kind::Text, _) => format!("strdup(\"t{value}\")"),
        };
        out.push(Stmt::plain(format!("{name} = {call};")));
        self.vars[var].state = State::Owned;
        self.vars[var].guard = None;
        if self.rng.percent(40) {
            let cond = if self.rng.percent(50) { format!("!{name}") } else { format!("{name} == NULL") };
            // On that path the variable is null: nothing to release.
            self.vars[var].state = State::Null;
            let failure = self.failure();
            self.fallible(out, cond, failure);
            self.vars[var].state = State::Owned;
        }
    }

    /// `if (cond) { … }` with an exit or just a message.
    fn fallible(&mut self, out: &mut Vec<Stmt>, cond: String, then: Vec<Stmt>) {
        let leaves = matches!(then.last(), Some(Stmt::Plain(text)) if text == "goto out;");
        if self.macros && leaves && self.contract != Contract::Create {
            out.push(Stmt::plain(format!("FAIL_IF({cond});")));
            return;
        }
        out.push(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    fn failure(&mut self) -> Vec<Stmt> {
        if self.rng.percent(60) { self.exit_block() } else { vec![Stmt::plain("printf(\"failed\\n\");")] }
    }

    fn read(&mut self, out: &mut Vec<Stmt>) {
        let Some(var) = self.choose(Self::readable) else { return };
        let (name, kind) = (self.vars[var].name.clone(), self.vars[var].kind);
        let text = match (kind, self.rng.below(3)) {
            (Kind::Node, 0) => format!("node_show({name});"),
            (Kind::Node, 1) => format!("if ({name}) total += {name}->value;"),
            (Kind::Node, _) => format!("if ({name} != NULL) {name}->value += {};", self.rng.below(9)),
            (Kind::Text, 0) => format!("if ({name}) {name}[0] = 'z';"),
            (Kind::Text, _) => format!("if ({name}) printf(\"%s\\n\", {name});"),
        };
        out.push(Stmt::Use { text, var: name });
    }

    fn alias(&mut self, out: &mut Vec<Stmt>) {
        let Some(from) = self.choose(|v| Self::readable(v) && !v.alias_only) else { return };
        let kind = self.vars[from].kind;
        let Some(to) = self.choose(|v| v.alias_only && v.kind == kind) else { return };
        out.push(Stmt::plain(format!("{} = {};", self.vars[to].name, self.vars[from].name)));
        self.vars[to].state =
            if self.vars[from].state == State::Borrowed { State::Borrowed } else { State::Alias(from) };
    }

    fn release(&mut self, out: &mut Vec<Stmt>) {
        let Some(var) = self.choose(|v| v.state == State::Owned && !v.alias_only) else { return };
        // Through an alias, now and then.
        let alias = self.choose(|v| v.state == State::Alias(var));
        let by = alias.filter(|_| self.rng.percent(40)).unwrap_or(var);
        let plain_free = self.vars[var].kind == Kind::Text || !self.names;
        if self.macros && plain_free && by == var {
            let name = self.vars[var].name.clone();
            out.push(Stmt::Free { text: format!("RELEASE({name});"), var: name });
            self.kill_aliases(var);
            self.vars[var].state = State::Null;
            return;
        }
        out.push(self.free_text(by));
        self.kill_aliases(var);
        self.dispose(out, var);
    }

    /// The variable's value is gone: with a jump to the common exit it must be NULL.
    fn dispose(&mut self, out: &mut Vec<Stmt>, var: usize) {
        if self.goto_style || self.rng.percent(40) {
            out.push(Stmt::Clear { var: self.vars[var].name.clone() });
            self.vars[var].state = State::Null;
        } else {
            self.vars[var].state = State::Dead;
        }
    }

    fn insert(&mut self, out: &mut Vec<Stmt>) {
        if !self.has_list {
            return;
        }
        let Some(var) = self.choose(|v| v.state == State::Owned && v.kind == Kind::Node && !v.alias_only) else {
            return;
        };
        let name = self.vars[var].name.clone();
        out.push(Stmt::Insert {
            call: "list_push(&list, $)".into(),
            free: format!("{}({name});", node_release(self.names)),
            value: name,
            checked: true,
        });
        self.kill_aliases(var);
        self.dispose(out, var);
    }

    fn put(&mut self, out: &mut Vec<Stmt>) {
        if !self.has_box {
            return;
        }
        let Some(var) = self.choose(|v| v.state == State::Owned && v.kind == Kind::Node && !v.alias_only) else {
            return;
        };
        let name = self.vars[var].name.clone();
        let stores: Vec<String> =
            self.callees.iter().filter(|c| c.contract == Contract::Store).map(|c| c.name.clone()).collect();
        let function = self.rng.pick(&stores).cloned().unwrap_or_else(|| "box_put".into());
        out.push(Stmt::Insert {
            call: format!("{function}(&box, $)"),
            free: format!("{}({name});", node_release(self.names)),
            value: name,
            checked: true,
        });
        self.kill_aliases(var);
        self.dispose(out, var);
    }

    /// `realloc` through a temporary, so that a failure keeps the old block.
    fn grow(&mut self, out: &mut Vec<Stmt>) {
        let Some(var) = self.choose(|v| v.state == State::Owned && v.kind == Kind::Text && !v.alias_only) else {
            return;
        };
        let name = self.vars[var].name.clone();
        self.kill_aliases(var);
        let then = vec![
            Stmt::plain(format!("char *bigger = realloc({name}, 32);")),
            Stmt::If {
                cond: "bigger != NULL".into(),
                then: vec![Stmt::plain(format!("{name} = bigger;"))],
                otherwise: Vec::new(),
            },
        ];
        out.push(Stmt::If { cond: format!("{name} != NULL"), then, otherwise: Vec::new() });
    }

    fn branch(&mut self, out: &mut Vec<Stmt>, depth: usize) {
        let arms = if self.rng.percent(15) { 3 } else { 2 };
        // Three arms look at two bits that no other branch looks at: so every arm meets every branch.
        let bit = if arms == 3 { self.bits + 1 } else { self.bit() };
        let start: Vec<Var> = self.vars.clone();
        let mut blocks = Vec::new();
        let mut ends = Vec::new();
        for arm in 0..arms {
            self.vars = start.clone();
            let length = if arm > 0 && arms == 2 && self.rng.percent(50) { 0 } else { 1 + self.rng.below(3) };
            blocks.push(self.block(length, depth - 1));
            ends.push(self.vars.clone());
        }
        self.join(&start, &mut blocks, ends, (arms == 2).then_some(bit));
        if arms == 3 {
            out.push(Stmt::Switch { selector: format!("(input >> {bit}) & 3u"), arms: blocks });
            return;
        }
        let otherwise = blocks.pop().unwrap_or_default();
        let then = blocks.pop().unwrap_or_default();
        if then.is_empty() && otherwise.is_empty() {
            return;
        }
        if then.is_empty() {
            out.push(Stmt::If { cond: format!("!bit({bit})"), then: otherwise, otherwise: Vec::new() });
        } else {
            out.push(Stmt::If { cond: format!("bit({bit})"), then, otherwise });
        }
    }

    /// Makes the arms agree: where one owns and another has a dead pointer, the dead one becomes NULL.
    fn join(&mut self, start: &[Var], blocks: &mut [Vec<Stmt>], mut ends: Vec<Vec<Var>>, bit: Option<usize>) {
        for var in 0..start.len() {
            let states: Vec<State> = ends.iter().map(|end| end[var].state).collect();
            let name = start[var].name.clone();
            let joined = if states.iter().all(|state| *state == states[0]) {
                states[0]
            } else if start[var].alias_only {
                State::Dead
            } else if states.contains(&State::Owned) {
                for (arm, state) in states.iter().enumerate() {
                    if *state == State::Dead {
                        blocks[arm].push(Stmt::Clear { var: name.clone() });
                    }
                }
                State::Owned
            } else {
                State::Dead
            };
            let guard = ends[0][var].guard;
            if ends.iter().any(|end| end[var].guard != guard) {
                ends[0][var].guard = None;
            }
            let only_first = states.first() == Some(&State::Owned) && states.get(1) == Some(&State::Null);
            ends[0][var].state = joined;
            if only_first && ends[0][var].guard.is_none() && start[var].state == State::Null {
                ends[0][var].guard = bit;
            } else if joined == State::Owned && states[0] != states[states.len() - 1] {
                ends[0][var].guard = None;
            }
        }
        // An alias may have lost its owner in another arm.
        for var in 0..start.len() {
            if let State::Alias(owner) = ends[0][var].state {
                let kept = ends
                    .iter()
                    .all(|end| end[var].state == State::Alias(owner) || end[var].state == ends[0][var].state);
                if !kept || ends[0][owner].state != State::Owned {
                    ends[0][var].state = State::Dead;
                }
            }
        }
        self.vars = ends.swap_remove(0);
    }

    fn early_exit(&mut self, out: &mut Vec<Stmt>) {
        let bit = self.bit();
        let mut then = Vec::new();
        if self.rng.percent(40) {
            then.push(Stmt::plain(format!("printf(\"exit {}\\n\");", self.rng.below(9))));
        }
        then.extend(self.exit_block());
        out.push(Stmt::If { cond: format!("bit({bit})"), then, otherwise: Vec::new() });
    }

    /// Leaves the function without success.
    pub fn exit_block(&mut self) -> Vec<Stmt> {
        if self.goto_style {
            self.jumped = true;
            let code = if self.contract == Contract::Create { "NULL" } else { "-1" };
            let variable = if self.contract == Contract::Create { "result" } else { "rc" };
            return vec![Stmt::plain(format!("{variable} = {code};")), Stmt::plain("goto out;")];
        }
        let mut out = self.releases(None);
        out.push(Stmt::plain(if self.contract == Contract::Create { "return NULL;" } else { "return -1;" }));
        out
    }

    /// Releases all that is owned, except one variable.
    pub fn releases(&mut self, except: Option<usize>) -> Vec<Stmt> {
        let mut out = Vec::new();
        for var in 0..self.vars.len() {
            if self.vars[var].state != State::Owned || self.vars[var].alias_only || Some(var) == except {
                continue;
            }
            let free = self.free_text(var);
            match self.vars[var].guard {
                Some(bit) if !self.goto_style && self.rng.percent(50) => {
                    out.push(Stmt::If { cond: format!("bit({bit})"), then: vec![free], otherwise: Vec::new() });
                }
                _ => out.push(free),
            }
        }
        if self.has_list {
            out.push(Stmt::Free { text: "list_clear(&list);".into(), var: "list".into() });
        }
        if self.has_box {
            out.push(Stmt::Free { text: format!("{}(box.item);", node_release(self.names)), var: "box.item".into() });
        }
        out
    }

    /// A loop with a pointer of its own, released on every way round.
    fn looped(&mut self, out: &mut Vec<Stmt>) {
        let rounds = 1 + self.rng.below(3);
        let bit = self.bit();
        let release = format!("{}(item);", node_release(self.names));
        let free = Stmt::Free { text: release.clone(), var: "item".into() };
        let mut body = vec![Stmt::plain(format!("struct node *item = node_new(i + {});", self.rng.below(20)))];
        if self.rng.percent(50) {
            let leave = if self.rng.percent(50) { "continue;" } else { "break;" };
            let cond = if self.rng.percent(50) { format!("bit({bit})") } else { format!("i == 1 && bit({bit})") };
            let then = vec![free.clone(), Stmt::plain(leave)];
            body.push(Stmt::If { cond, then, otherwise: Vec::new() });
        }
        body.push(Stmt::Use { text: "node_show(item);".into(), var: "item".into() });
        if self.has_list && self.rng.percent(50) {
            body.push(Stmt::Insert {
                call: "list_push(&list, $)".into(),
                value: "item".into(),
                free: release,
                checked: true,
            });
        } else {
            body.push(free);
        }
        out.push(Stmt::Loop { head: format!("for (int i = 0; i < {rounds}; i++)"), body });
    }

    fn call(&mut self, out: &mut Vec<Stmt>) {
        if self.calls_left == 0 {
            return;
        }
        let Some(callee) = self.rng.pick(self.callees).cloned() else { return };
        let name = callee.name;
        let owned = |v: &Var| v.state == State::Owned && v.kind == Kind::Node && !v.alias_only;
        match callee.contract {
            Contract::Work => out.push(Stmt::plain(format!("total += {name}({});", self.rng.below(9)))),
            Contract::Borrow => {
                let Some(var) = self.choose(|v| Self::readable(v) && v.kind == Kind::Node) else { return };
                let var = self.vars[var].name.clone();
                out.push(Stmt::Use { text: format!("total += {name}({var});"), var });
            }
            Contract::Consume => {
                let Some(var) = self.choose(owned) else { return };
                let text = format!("{name}({});", self.vars[var].name);
                out.push(Stmt::Free { text, var: self.vars[var].name.clone() });
                self.kill_aliases(var);
                self.dispose(out, var);
            }
            Contract::Create | Contract::Out => {
                let free =
                    |v: &Var| !v.alias_only && v.kind == Kind::Node && matches!(v.state, State::Null | State::Dead);
                let Some(var) = self.choose(free) else { return };
                let target = self.vars[var].name.clone();
                if callee.contract == Contract::Create {
                    out.push(Stmt::plain(format!("{target} = {name}({});", self.rng.below(9))));
                } else {
                    if self.vars[var].state == State::Dead {
                        out.push(Stmt::Clear { var: target.clone() });
                    }
                    self.vars[var].state = State::Null;
                    let failure = self.failure();
                    self.fallible(out, format!("{name}(&{target}) < 0"), failure);
                }
                self.vars[var].state = State::Owned;
                self.vars[var].guard = None;
            }
            Contract::Store => return,
        }
        self.calls_left -= 1;
    }
}
