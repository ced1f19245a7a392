//! Checks the invariants of the IR, for tests, for text written by hand and for
//! debug builds. Whatever is in the unit, it answers with problems and never
//! panics.
//!
//! ```text
//! bb0: v1 = load ptr v2     v2 is used before its definition -> problem
//!      v2 = offset v0 + 8
//! ```
//!
//! # Invariants
//! - A unit without problems can be indexed by every id in it, its scopes and
//!   aliases end somewhere, and its functions are in SSA form.
//! - Blocks that control never reaches are checked for ids only.

use std::fmt;

use caulk_base::{FxHashMap, FxHashSet, Id, IdVec};

use crate::{
    Block, BlockId, Callee, Function, InitValue, InstId, LocalFuncId, Op, SymbolId, SymbolKind, Ty, TypeKind, Unit,
    ValueId, ValueKind,
};

mod dominance;

use dominance::Dominance;

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `None`: in the unit's tables.
    pub function: Option<LocalFuncId>,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function {
            Some(function) => write!(f, "{function}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Everything that is wrong with the unit, in order.
pub fn verify(unit: &Unit) -> Vec<Problem> {
    let mut checker = Checker { unit, function: None, problems: Vec::new() };
    checker.tables();
    for (id, function) in unit.functions.iter_ids() {
        checker.function = Some(id);
        checker.body(function);
    }
    checker.problems
}

struct Checker<'a> {
    unit: &'a Unit,
    function: Option<LocalFuncId>,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(Problem { function: self.function, what: what.into() });
    }

    /// Whether the id lies in its table.
    fn exists<I: Id + fmt::Display, T>(&mut self, table: &IdVec<I, T>, id: I, place: &dyn fmt::Display) -> bool {
        let found = table.get(id).is_some();
        if !found {
            self.problem(format!("{place}: {id} does not exist"));
        }
        found
    }

    fn exists_if_any<I: Id + fmt::Display, T>(&mut self, table: &IdVec<I, T>, id: Option<I>, place: &dyn fmt::Display) {
        if let Some(id) = id {
            self.exists(table, id, place);
        }
    }

    fn tables(&mut self) {
        let unit = self.unit;
        if unit.locs.is_empty() {
            self.problem("there is no loc0, the position of what has none");
        }
        for (id, loc) in unit.locs.iter_ids() {
            self.exists_if_any(&unit.files, loc.file, &id);
            self.exists_if_any(&unit.scopes, loc.scope, &id);
        }
        for (id, scope) in unit.scopes.iter_ids() {
            self.exists_if_any(&unit.files, scope.file, &id);
            if scope.parent.is_some_and(|parent| parent >= id) {
                self.problem(format!("{id} does not come after its parent"));
            }
        }
        for (id, ty) in unit.types.iter_ids() {
            match &ty.kind {
                TypeKind::Pointer(to)
                | TypeKind::Typedef(to)
                | TypeKind::Const(to)
                | TypeKind::Qualified(to)
                | TypeKind::Array(to) => self.exists_if_any(&unit.types, *to, &id),
                TypeKind::Struct(fields) | TypeKind::Union(fields) => {
                    for field in fields {
                        self.exists_if_any(&unit.types, field.ty, &id);
                    }
                }
                TypeKind::Base | TypeKind::Enum | TypeKind::Function | TypeKind::Other => {}
            }
        }
        for (id, symbol) in unit.symbols.iter_ids() {
            let is_right = match symbol.kind {
                SymbolKind::Function(function) => unit.functions.get(function).is_some_and(|f| f.symbol == id),
                SymbolKind::Global(global) => unit.globals.get(global).is_some_and(|g| g.symbol == id),
                SymbolKind::Alias(_) => self.alias_ends(id),
                SymbolKind::DeclaredFunction(_) | SymbolKind::DeclaredGlobal => true,
            };
            if !is_right {
                self.problem(format!("{id} ({}) has no definition", symbol.name));
            }
        }
        for (id, global) in unit.globals.iter_ids() {
            self.exists(&unit.symbols, global.symbol, &id);
            self.exists(&unit.locs, global.loc, &id);
            self.exists_if_any(&unit.types, global.ty, &id);
            for init in &global.init {
                if let InitValue::Address(symbol, _) = init.value {
                    self.exists(&unit.symbols, symbol, &id);
                }
            }
        }
    }

    fn alias_ends(&self, start: SymbolId) -> bool {
        let mut at = start;
        for _ in 0..self.unit.symbols.len() {
            match self.unit.symbols.get(at).map(|symbol| &symbol.kind) {
                Some(SymbolKind::Alias(to)) => at = *to,
                Some(_) => return true,
                None => return false,
            }
        }
        false
    }

    fn body(&mut self, function: &Function) {
        let unit = self.unit;
        self.exists(&unit.symbols, function.symbol, &"the function's symbol");
        self.exists(&unit.locs, function.loc, &"the function");
        self.exists_if_any(&unit.types, function.ret_type, &"the result's type");
        self.exists_if_any(&unit.scopes, function.scope, &"the function");
        for (id, var) in function.vars.iter_ids() {
            self.exists_if_any(&unit.types, var.ty, &id);
            self.exists_if_any(&unit.scopes, var.scope, &id);
            self.exists(&unit.locs, var.loc, &id);
            if var.param.is_some_and(|param| param >= function.param_count) {
                self.problem(format!("{id} belongs to a parameter that does not exist"));
            }
        }
        let before = self.problems.len();
        self.blocks(function);
        self.values(function);
        for (id, inst) in function.insts.iter_ids() {
            self.exists(&unit.locs, inst.loc, &id);
            self.operands(function, id, &inst.op);
        }
        // What follows indexes by these ids.
        if self.problems.len() == before {
            self.ssa(function);
        }
    }

    fn blocks(&mut self, function: &Function) {
        if function.blocks.is_empty() {
            self.problem("there is no entry block");
        }
        let mut next = InstId(0);
        for (id, &Block { first, end }) in function.blocks.iter_ids() {
            if first != next || end <= first || end.index() > function.insts.len() {
                self.problem(format!("{id} does not follow the block before, or is empty"));
                return;
            }
            next = end;
            for at in first.0..end.0 {
                let is_last = at + 1 == end.0;
                if function.insts[InstId(at)].op.is_terminator() != is_last {
                    let place = InstId(at);
                    self.problem(format!(
                        "{id}: {place} {}",
                        if is_last { "is no terminator" } else { "ends the block" }
                    ));
                }
            }
        }
        if next != function.insts.next_id() {
            self.problem("instructions lie outside of the blocks");
        }
    }

    fn values(&mut self, function: &Function) {
        if function.param_count as usize > function.values.len() {
            self.problem("a parameter has no value");
        }
        let mut constants = FxHashMap::default();
        for (id, value) in function.values.iter_ids() {
            let is_param = id.0 < function.param_count;
            let is_right = match value.kind {
                ValueKind::Param(position) => is_param && position == id.0,
                ValueKind::Inst(inst) => {
                    !is_param && function.insts.get(inst).is_some_and(|inst| inst.result == Some(id))
                }
                ValueKind::Address(symbol, _) => !is_param && self.unit.symbols.get(symbol).is_some(),
                ValueKind::Block(block) => !is_param && function.blocks.get(block).is_some(),
                _ => !is_param,
            };
            if !is_right {
                self.problem(format!("{id} is not what its definition says"));
            }
            if !matches!(value.kind, ValueKind::Param(_) | ValueKind::Inst(_))
                && value.ty != Ty::Void
                && let Some(other) = constants.insert(*value, id)
            {
                self.problem(format!("{id} and {other} are the same constant"));
            }
        }
        for (id, inst) in function.insts.iter_ids() {
            if let Some(result) = inst.result
                && function.values.get(result).is_none_or(|value| value.kind != ValueKind::Inst(id))
            {
                self.problem(format!("{id}: its result {result} belongs to something else"));
            }
        }
    }

    fn operands(&mut self, function: &Function, id: InstId, op: &Op) {
        op.visit_operands(|value| {
            self.exists(&function.values, value, &id);
        });
        op.visit_successors(|block| {
            self.exists(&function.blocks, block, &id);
        });
        match op {
            Op::Phi { incoming } => {
                for (block, _) in incoming {
                    self.exists(&function.blocks, *block, &id);
                }
            }
            Op::Offset { member: Some(member), .. } => {
                self.exists(&self.unit.members, *member, &id);
            }
            Op::Alloca { var: Some(var), .. } | Op::Bind { var, .. } => {
                self.exists(&function.vars, *var, &id);
            }
            Op::Call(call) => {
                if let Callee::Symbol(symbol) = call.callee {
                    self.exists(&self.unit.symbols, symbol, &id);
                }
            }
            _ => {}
        }
    }

    /// Every use is dominated by its definition, and every phi names its predecessors.
    fn ssa(&mut self, function: &Function) {
        let dominance = Dominance::of(function);
        let mut block_of = IdVec::<InstId, BlockId>::filled(function.insts.len(), BlockId(0));
        for block in function.blocks.ids() {
            for (inst, _) in function.block_insts(block) {
                block_of[inst] = block;
            }
        }
        // Whether the value is there when control reaches the instruction.
        let is_available = |value: ValueId, block: BlockId, before: InstId| match function.values[value].kind {
            ValueKind::Inst(definition) => {
                let home = block_of[definition];
                if home == block { definition < before } else { dominance.dominates(home, block) }
            }
            _ => true,
        };
        for block in function.blocks.ids().filter(|&block| dominance.is_reachable(block)) {
            let mut after_phis = false;
            for (id, inst) in function.block_insts(block) {
                let Op::Phi { incoming } = &inst.op else {
                    after_phis = true;
                    inst.op.visit_operands(|value| {
                        if !is_available(value, block, id) {
                            self.problem(format!(
                                "{id} in {block} uses {value}, whose definition does not dominate it"
                            ));
                        }
                    });
                    continue;
                };
                if after_phis {
                    self.problem(format!("{id}: a phi does not stand at the start of {block}"));
                }
                let named: FxHashSet<BlockId> = incoming.iter().map(|(from, _)| *from).collect();
                let predecessors = dominance.predecessors(block);
                if named.len() != incoming.len() || named.len() != predecessors.len() {
                    self.problem(format!("{id}: the phi does not name each predecessor of {block} once"));
                }
                for &(from, value) in incoming {
                    if !predecessors.contains(&from) {
                        self.problem(format!("{id}: {from} is no predecessor of {block}"));
                    } else if !is_available(value, from, function.blocks[from].end) {
                        self.problem(format!("{id}: {value} is not there at the end of {from}"));
                    }
                }
            }
        }
    }
}
