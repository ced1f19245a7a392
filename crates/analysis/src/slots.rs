//! Where the addresses of functions are kept, and what a pointer read from there may mean.
//!
//!     static const struct ops file_ops = { .open = file_open, .copy = NULL };
//!     struct ops { .open at 0; .copy at 8 }         ops+0 holds `file_open`, ops+8 holds nothing
//!
//! A pointer read from a member of a struct means a function that was put into this member of such a struct. What is
//! read from elsewhere (a union, an array, memory without a type) means one that was put at the same offset of
//! something, with a matching signature. That keeps operation tables apart without a points-to set for every variable.
//!
//! A member of a table of functions into which nobody ever puts anything is null.
//!
//! # Known imprecision
//! - Different structs of one name and size are mixed.
//! - A struct that is written as one type and read as another does not agree with itself.
//! - A function that is called with a number for an address is not found.

use caulk_base::{FxHashMap, FxHashSet};
use caulk_ir::{
    Call, Callee, ExternId, FuncId, Function, GlobalId, InitValue, InstId, Linkage, Op, Program, SymbolKind, Target,
    Ty, TypeId, TypeKind, Unit, UnitId, ValueId, ValueKind,
};

use crate::callgraph::MAX_TARGETS;
use crate::cfg::for_each_operand;

/// A struct by name and size.
type Record<'p> = (&'p str, u64);
/// A member by its struct and offset.
type Key<'p> = (Record<'p>, u64);

type Parameter = (FuncId, u32);

/// What a call through a pointer may mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    pub functions: Vec<FuncId>,
    /// Functions of a library.
    pub library: Vec<ExternId>,
    /// None of them was put there by name: they are what else there is with such a signature.
    pub guessed: bool,
    /// The pointer is a parameter: they are what is passed for it.
    pub by_parameter: bool,
}

/// Where the addresses of functions were seen.
#[derive(Default)]
pub struct Slots<'p> {
    by_member: FxHashMap<Key<'p>, FxHashSet<FuncId>>,
    /// Functions of a library, by the members that get them.
    foreign: FxHashMap<Key<'p>, FxHashSet<ExternId>>,
    /// Members that get values of which it is not known what they are.
    open: FxHashSet<Key<'p>>,
    /// Members that get a parameter: `set_allocator(m)` with `my_malloc = m`.
    given: FxHashMap<Key<'p>, FxHashSet<Parameter>>,
    /// What the program's own calls pass for a parameter.
    passed: FxHashMap<Parameter, FxHashSet<FuncId>>,
    /// Parameters that are passed on for a parameter.
    passed_on: FxHashMap<Parameter, FxHashSet<Parameter>>,
    /// Parameters for which something is passed that is neither.
    passed_open: FxHashSet<Parameter>,
    /// Structs that some variable fills with functions.
    tables: FxHashSet<Record<'p>>,
    by_offset: FxHashMap<i64, FxHashSet<FuncId>>,
    /// Passed on, returned or chosen between: they may be put anywhere.
    loose: FxHashSet<FuncId>,
    /// Put where no member is known.
    astray: FxHashSet<FuncId>,
    /// Members from which functions are taken to be kept or passed on, not only to be called.
    taken: FxHashSet<Key<'p>>,
    /// Members from which they are put where another member of the same struct points to: `*option->value = option->run`.
    handed: FxHashSet<Key<'p>>,
    /// Members that get functions elsewhere than in a local table beside the address of a local variable.
    unlisted: FxHashSet<Key<'p>>,
    /// The same for functions of a library, by the number of their parameters.
    loose_foreign: FxHashSet<usize>,
    anywhere: FxHashSet<FuncId>,
}

impl<'p> Slots<'p> {
    pub fn of(program: &'p Program) -> Self {
        let mut slots = Self::default();
        for global in program.globals.ids() {
            let (unit, _) = program.globals[global];
            let definition = program.global(global);
            let element = element_size(&program.units[unit], definition.ty);
            for init in &definition.init {
                let key = member_at(&program.units[unit], definition.ty, init.offset)
                    .or_else(|| (init.offset == 0).then(|| alone(global)));
                if let InitValue::Address(symbol, _) = init.value
                    && let Target::Functions(all) = program.target(unit, symbol)
                {
                    let at = if element > 0 { init.offset % element } else { init.offset };
                    slots.put(key, at as i64, all);
                    slots.unlisted.extend(key);
                    slots.tables.extend(key.map(|key| key.0));
                } else {
                    match (key, foreign(program, unit, &init.value)) {
                        (Some(key), Some(external)) => _ = slots.foreign.entry(key).or_default().insert(external),
                        _ => slots.open.extend(key),
                    }
                }
            }
        }
        for id in program.functions.ids() {
            slots.collect(program, program.unit_of(id), id);
        }
        slots.anywhere.extend(&slots.loose);
        slots
    }

    fn put(&mut self, key: Option<Key<'p>>, at: i64, all: &[FuncId]) {
        match key {
            Some(key) => self.by_member.entry(key).or_default().extend(all),
            None => self.astray.extend(all),
        }
        self.by_offset.entry(at).or_default().extend(all);
        self.anywhere.extend(all);
    }

    fn collect(&mut self, program: &'p Program, unit: UnitId, id: FuncId) {
        let function = program.function(id);
        self.note_taken(program, unit, function);
        let lists: Vec<ValueId> = listing(function).map(|(table, _)| table).collect();
        for inst in function.insts.iter() {
            match &inst.op {
                Op::Load { .. } => continue,
                Op::Store { ptr, value } => {
                    let key = member_of(program, unit, function, *ptr);
                    let all = functions_of(program, unit, function, *value);
                    let stored = function.values[*value];
                    let external = match stored.kind {
                        ValueKind::Address(symbol, offset) => {
                            foreign(program, unit, &InitValue::Address(symbol, offset))
                        }
                        _ => None,
                    };
                    if !all.is_empty() {
                        self.put(key, offset_of(function, *ptr), all);
                        if !local(function, *ptr).is_some_and(|table| lists.contains(&table)) {
                            self.unlisted.extend(key);
                        }
                    } else if let (Some(key), Some(external)) = (key, external) {
                        self.foreign.entry(key).or_default().insert(external);
                    } else if let (Some(key), ValueKind::Param(index)) = (key, stored.kind) {
                        self.given.entry(key).or_default().insert((id, index));
                    } else if !matches!(stored.kind, ValueKind::Null | ValueKind::Zero) {
                        // `ops->free = given ? given : free_default`
                        for choice in choices(function, *value) {
                            let all = functions_of(program, unit, function, choice);
                            if !all.is_empty() {
                                self.put(key, offset_of(function, *ptr), all);
                                self.unlisted.extend(key);
                            }
                        }
                        self.open.extend(key);
                    }
                    // The address of the place itself may be stored, too.
                    self.open.extend(member_of(program, unit, function, *value));
                    continue;
                }
                Op::Call(call) => {
                    self.pass(program, unit, id, call);
                    for &arg in &call.args {
                        self.loose.extend(functions_of(program, unit, function, arg));
                        self.loose_foreign.extend(foreign_params(program, unit, function, arg));
                    }
                }
                Op::Phi { incoming } => {
                    for &(_, value) in incoming {
                        self.loose.extend(functions_of(program, unit, function, value));
                    }
                }
                Op::Select { a, b, .. } => {
                    self.loose.extend(functions_of(program, unit, function, *a));
                    self.loose.extend(functions_of(program, unit, function, *b));
                }
                Op::Return { value: Some(value) } => self.loose.extend(functions_of(program, unit, function, *value)),
                _ => {}
            }
            // Whoever has the address of a member may write it.
            for_each_operand(&inst.op, |value| {
                if let ValueKind::Inst(_) = function.values[value].kind {
                    self.open.extend(member_of(program, unit, function, value));
                }
            });
        }
    }

    /// Notes the members whose values go elsewhere than into a call.
    fn note_taken(&mut self, program: &'p Program, unit: UnitId, function: &'p Function) {
        let read: FxHashMap<ValueId, Key<'p>> = function
            .insts
            .iter()
            .filter_map(|inst| match inst.op {
                Op::Load { ptr } => Some((inst.result?, member_of(program, unit, function, ptr)?)),
                _ => None,
            })
            .collect();
        if read.is_empty() {
            return;
        }
        for inst in function.insts.iter() {
            match &inst.op {
                Op::Bind { .. } | Op::Cmp { .. } => {}
                Op::Call(call) => self.taken.extend(call.args.iter().filter_map(|arg| read.get(arg))),
                Op::Store { ptr, value } if is_of_one(&read, *ptr, *value) => self.handed.extend(read.get(value)),
                op => for_each_operand(op, |value| self.taken.extend(read.get(&value))),
            }
        }
    }

    /// Notes what is passed for the parameters of functions that are called by name.
    fn pass(&mut self, program: &'p Program, unit: UnitId, caller: FuncId, call: &Call) {
        let Callee::Symbol(symbol) = &call.callee else { return };
        let Target::Functions(callees) = program.target(unit, *symbol) else { return };
        let function = program.function(caller);
        let pointers = call.args.iter().enumerate().filter(|(_, arg)| function.values[**arg].ty == Ty::Ptr);
        // `each(list, quick ? look : NULL)`
        let values = pointers.flat_map(|(index, &arg)| {
            let chosen = choices(function, arg);
            let all = if chosen.is_empty() { vec![arg] } else { chosen };
            all.into_iter().map(move |value| (index as u32, value))
        });
        for (index, value) in values {
            let all = functions_of(program, unit, function, value);
            for parameter in callees.iter().map(|&callee| (callee, index)) {
                match function.values[value].kind {
                    ValueKind::Null | ValueKind::Zero => {}
                    _ if !all.is_empty() => self.passed.entry(parameter).or_default().extend(all),
                    ValueKind::Param(own) => _ = self.passed_on.entry(parameter).or_default().insert((caller, own)),
                    _ => _ = self.passed_open.insert(parameter),
                }
            }
        }
    }

    /// The functions that a member gets through parameters of functions that are called by name only; `None`: nobody
    /// knows. What a user of a library may pass is not the program's.
    fn given(&self, key: Key<'p>) -> Option<Vec<FuncId>> {
        let mut found = Vec::new();
        for parameter in self.given.get(&key).into_iter().flatten() {
            found.extend(self.passed_for(*parameter, |_| true)?);
        }
        Some(found)
    }

    /// The functions that are passed for a parameter, also by way of other parameters; `None`: nobody knows.
    fn passed_for(&self, parameter: Parameter, is_closed: impl Fn(FuncId) -> bool) -> Option<FxHashSet<FuncId>> {
        let (mut found, mut seen, mut open) = (FxHashSet::default(), FxHashSet::default(), vec![parameter]);
        while let Some(parameter) = open.pop() {
            if !seen.insert(parameter) {
                continue;
            }
            let (function, _) = parameter;
            if self.passed_open.contains(&parameter) || self.anywhere.contains(&function) || !is_closed(function) {
                return None;
            }
            found.extend(self.passed.get(&parameter).into_iter().flatten());
            open.extend(self.passed_on.get(&parameter).into_iter().flatten());
        }
        Some(found)
    }

    /// Every function that a call through a pointer may mean, however many, and those of them that were put there by
    /// name. Who only lies in members from which functions are called, and nothing else, is called from there and from
    /// nowhere else; of the others (`strays`, see [`Slots::strays`]) all with the right types may be meant by a pointer
    /// that comes from anywhere. What a local table lists for a variable is what this variable means.
    pub fn all(
        &self,
        program: &'p Program,
        caller: FuncId,
        call: &Call,
        result: Option<Ty>,
        strays: &FxHashSet<FuncId>,
    ) -> (Targets, Vec<FuncId>) {
        let Callee::Value(value) = call.callee else { return Default::default() };
        let (unit, function) = (program.unit_of(caller), program.function(caller));
        let types: Vec<Ty> = call.args.iter().map(|&arg| function.values[arg].ty).collect();
        let direct = functions_of(program, unit, function, value);
        let mut listed = listed(program, unit, function, value);
        if !listed.is_empty() {
            listed.retain(|id| fits(program.function(*id), &types, result));
            return (Targets { functions: listed.clone(), ..Targets::default() }, listed);
        }
        let key = match function.values[value].kind {
            ValueKind::Inst(inst) => match function.insts[inst].op {
                Op::Load { ptr } => member_of(program, unit, function, ptr),
                _ => None,
            },
            _ => None,
        };
        let put = key.and_then(|key| self.by_member.get(&key)).into_iter().flatten();
        let given = key.and_then(|key| self.given(key)).into_iter().flatten();
        let mut named: Vec<FuncId> = direct.iter().chain(put).copied().chain(given).collect();
        named.retain(|id| fits(program.function(*id), &types, result));
        named.sort_unstable();
        named.dedup();
        let mut library: Vec<ExternId> =
            key.and_then(|key| self.foreign.get(&key)).into_iter().flatten().copied().collect();
        library.sort_unstable();
        let is_known = !direct.is_empty() || key.is_some_and(|key| !self.open.contains(&key));
        let mut functions = named.clone();
        if !is_known || named.is_empty() && library.is_empty() {
            let is_right = |id: &FuncId| {
                let function = program.function(*id);
                let same = function.params().zip(&types).all(|(param, ty)| function.values[param].ty == *ty);
                let shape = function.param_count as usize == types.len() || function.variadic;
                same && shape && function.ret == result.unwrap_or(Ty::Void)
            };
            functions.extend(strays.iter().copied().filter(is_right));
            functions.sort_unstable();
            functions.dedup();
        }
        (Targets { functions, library, ..Targets::default() }, named)
    }

    /// Functions that may be called from elsewhere than the members they were put into.
    pub fn strays(&self) -> FxHashSet<FuncId> {
        // What a local table lists is called through the variable it is listed with (`listed`).
        let handed = self.handed.iter().filter(|key| self.unlisted.contains(key));
        let taken = self.taken.iter().chain(handed).filter_map(|key| self.by_member.get(key)).flatten();
        taken.chain(&self.astray).chain(&self.loose).copied().collect()
    }

    /// Functions whose address is passed on, returned or chosen between: nobody knows who else may call them.
    pub fn into_loose(self) -> FxHashSet<FuncId> {
        self.loose
    }

    /// The functions that a call through `value` may mean; `None`: nobody knows, or too many.
    pub fn resolve(
        &self,
        program: &'p Program,
        caller: FuncId,
        value: ValueId,
        args: &[ValueId],
        result: Option<Ty>,
    ) -> Option<Targets> {
        let (unit, function) = (program.unit_of(caller), program.function(caller));
        let direct = functions_of(program, unit, function, value);
        if !direct.is_empty() {
            return Some(Targets { functions: direct.to_vec(), ..Targets::default() });
        }
        let types: Vec<Ty> = args.iter().map(|&arg| function.values[arg].ty).collect();
        let fitting = |all: &FxHashSet<FuncId>| -> Vec<FuncId> {
            all.iter().copied().filter(|id| fits(program.function(*id), &types, result)).collect()
        };
        // Only this file can call a static function: its parameter is what is passed there.
        let is_static = |id: FuncId| {
            let unit = &program.units[program.unit_of(id)];
            unit.symbols[program.function(id).symbol].linkage == Linkage::Internal
        };
        if let ValueKind::Param(index) = function.values[value].kind
            && let Some(passed) = self.passed_for((caller, index), is_static)
        {
            let mut functions = fitting(&passed);
            functions.sort_unstable();
            let is_known = !functions.is_empty() && functions.len() == passed.len();
            if is_known && functions.len() <= MAX_TARGETS {
                return Some(Targets { functions, by_parameter: true, ..Targets::default() });
            }
        }
        let from = match function.values[value].kind {
            ValueKind::Inst(inst) => match &function.insts[inst].op {
                Op::Load { ptr } => Some(*ptr),
                _ => None,
            },
            _ => None,
        };
        let mut library: Vec<ExternId> = Vec::new();
        let mut guessed = from.is_none();
        let mut found = match from {
            Some(ptr) => {
                let key = member_of(program, unit, function, ptr);
                library.extend(key.and_then(|key| self.foreign.get(&key)).into_iter().flatten());
                let mut found = key.and_then(|key| self.by_member.get(&key)).map(fitting).unwrap_or_default();
                let given = key.map_or(Some(Vec::new()), |key| self.given(key));
                // Where nobody puts anything by name, what is given is all there is to go by.
                let is_known = given.is_some() && !(found.is_empty() && library.is_empty());
                let has_given = key.is_some_and(|key| self.given.contains_key(&key));
                found.extend(given.into_iter().flatten().filter(|id| fits(program.function(*id), &types, result)));
                guessed = found.is_empty() && library.is_empty();
                if key.is_some_and(|key| self.open.contains(&key)) || (has_given && !is_known) {
                    // Whatever is handed around can be there; of a library, what somebody puts there by name.
                    if library.is_empty() && self.loose_foreign.contains(&args.len()) {
                        return None;
                    }
                    found.extend(fitting(&self.loose));
                } else if found.is_empty() && library.is_empty() {
                    found = self.by_offset.get(&offset_of(function, ptr)).map(fitting).unwrap_or_default();
                }
                // Nothing was put at this place by name: only what is handed around can be there.
                if found.is_empty() && library.is_empty() { fitting(&self.loose) } else { found }
            }
            None => fitting(&self.anywhere),
        };
        found.sort_unstable();
        found.dedup();
        library.sort_unstable();
        library.dedup();
        let count = found.len() + library.len();
        (1..=MAX_TARGETS).contains(&count).then_some(Targets {
            functions: found,
            library,
            guessed,
            by_parameter: false,
        })
    }

    /// Loads of a function that read null for sure.
    pub fn nulls(&self, program: &'p Program, unit: UnitId, function: &'p Function) -> Vec<InstId> {
        let reads = function.insts.iter_ids().filter_map(|(id, inst)| match &inst.op {
            Op::Load { ptr } => match function.values[*ptr].kind {
                ValueKind::Inst(_) => member_of(program, unit, function, *ptr).map(|key| (id, key)),
                _ => None,
            },
            _ => None,
        });
        reads
            .filter(|(_, key)| {
                self.tables.contains(&key.0)
                    && !self.open.contains(key)
                    && !self.foreign.contains_key(key)
                    && !self.given.contains_key(key)
                    && !self.by_member.contains_key(key)
            })
            .map(|(id, _)| id)
            .collect()
    }
}

/// Can the function be called like this? Addresses and numbers do not pass for each other; numbers of several sizes do.
fn fits(function: &Function, types: &[Ty], result: Option<Ty>) -> bool {
    let (params, args) = (function.param_count as usize, types.len());
    if function.params().zip(types).any(|(param, ty)| (function.values[param].ty == Ty::Ptr) != (*ty == Ty::Ptr)) {
        return false;
    }
    let (void, pointer) = (matches!(function.ret, Ty::Void), matches!(function.ret, Ty::Ptr));
    let shape = params == args || (function.variadic && args >= params);
    shape && result.is_none_or(|ty| !void && pointer == matches!(ty, Ty::Ptr))
}

/// The functions that a local table lists together with the address of the variable that a value is read from: whoever
/// is given the table chooses among them.
///
///     command *run = NULL;
///     struct option options[] = {{"add", &run, add}, {"show", &run, show}};
///     parse(argc, argv, options);
///     return run(argc, argv);
fn listed(program: &Program, unit: UnitId, function: &Function, value: ValueId) -> Vec<FuncId> {
    let load = |value: ValueId| match function.values[value].kind {
        ValueKind::Inst(inst) => match function.insts[inst].op {
            Op::Load { ptr } => Some(ptr),
            _ => None,
        },
        _ => None,
    };
    let Some(chosen) = load(value).filter(|ptr| local(function, *ptr) == Some(*ptr)) else { return Vec::new() };
    let tables: FxHashSet<ValueId> =
        listing(function).filter(|(_, variable)| *variable == chosen).map(|(table, _)| table).collect();
    let mut found = Vec::new();
    for (table, value) in stores(function).filter(|(table, _)| *table == chosen || tables.contains(table)) {
        let all = functions_of(program, unit, function, value);
        // The variable has been given something else, too.
        if table == chosen
            && all.is_empty()
            && !matches!(function.values[value].kind, ValueKind::Null | ValueKind::Zero)
        {
            return Vec::new();
        }
        if !tables.is_empty() {
            found.extend(all);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// What is stored into local variables, and into which.
fn stores(function: &Function) -> impl Iterator<Item = (ValueId, ValueId)> + '_ {
    function.insts.iter().filter_map(|inst| match inst.op {
        Op::Store { ptr, value } => Some((local(function, ptr)?, value)),
        _ => None,
    })
}

/// Local tables, with the local variables whose addresses lie in them.
fn listing(function: &Function) -> impl Iterator<Item = (ValueId, ValueId)> + '_ {
    stores(function).filter(|(table, value)| table != value && local(function, *value) == Some(*value))
}

/// Are both values read from members of one and the same kind of struct?
fn is_of_one(read: &FxHashMap<ValueId, Key<'_>>, a: ValueId, b: ValueId) -> bool {
    matches!((read.get(&a), read.get(&b)), (Some(a), Some(b)) if a.0 == b.0)
}

/// The local variable in which an address lies.
fn local(function: &Function, ptr: ValueId) -> Option<ValueId> {
    let mut at = ptr;
    // Members nest; the limit is for damaged code.
    for _ in 0..64 {
        let ValueKind::Inst(inst) = function.values[at].kind else { return None };
        match function.insts[inst].op {
            Op::Alloca { .. } => return Some(at),
            Op::Offset { base, .. } => at = base,
            _ => return None,
        }
    }
    None
}

/// The function without a body whose address it is.
fn foreign(program: &Program, unit: UnitId, value: &InitValue) -> Option<ExternId> {
    let InitValue::Address(symbol, _) = value else { return None };
    match (&program.units[unit].symbols[*symbol].kind, program.target(unit, *symbol)) {
        (SymbolKind::DeclaredFunction(_), Target::Extern(external)) => Some(*external),
        _ => None,
    }
}

/// The number of parameters of a library function whose address the value is.
fn foreign_params(program: &Program, unit: UnitId, function: &Function, value: ValueId) -> Option<usize> {
    let ValueKind::Address(symbol, offset) = function.values[value].kind else { return None };
    foreign(program, unit, &InitValue::Address(symbol, offset))?;
    match &program.units[unit].symbols[symbol].kind {
        SymbolKind::DeclaredFunction(attrs) => Some(attrs.params.len()),
        _ => None,
    }
}

fn functions_of<'p>(program: &'p Program, unit: UnitId, function: &Function, value: ValueId) -> &'p [FuncId] {
    if let ValueKind::Address(symbol, _) = function.values[value].kind
        && let Target::Functions(all) = program.target(unit, symbol)
    {
        return all;
    }
    &[]
}

/// The values among which a value is chosen.
fn choices(function: &Function, value: ValueId) -> Vec<ValueId> {
    let ValueKind::Inst(inst) = function.values[value].kind else { return Vec::new() };
    match &function.insts[inst].op {
        Op::Phi { incoming } => incoming.iter().map(|entry| entry.1).collect(),
        Op::Select { a, b, .. } => vec![*a, *b],
        _ => Vec::new(),
    }
}

/// The member whose address a value is.
fn member_of<'p>(program: &'p Program, unit: UnitId, function: &Function, value: ValueId) -> Option<Key<'p>> {
    match function.values[value].kind {
        ValueKind::Inst(inst) => match &function.insts[inst].op {
            Op::Offset { member: Some(member), .. } => {
                let member = &program.units[unit].members[*member];
                Some(((member.record.as_str(), member.size), member.offset))
            }
            _ => None,
        },
        ValueKind::Address(symbol, offset) => match program.target(unit, symbol) {
            Target::Globals(all) => {
                let &first = all.first()?;
                let (unit, _) = program.globals[first];
                let (ty, offset) = (program.global(first).ty, u64::try_from(offset).ok()?);
                let member = member_at(&program.units[unit], ty, offset);
                member.or_else(|| (offset == 0).then(|| alone(first)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A variable that is no struct: its own only member.
fn alone<'p>(global: GlobalId) -> Key<'p> {
    (("", u64::MAX - u64::from(global.0)), 0)
}

/// The pointer member at an offset of a variable, by the innermost struct.
fn member_at(unit: &Unit, ty: Option<TypeId>, offset: u64) -> Option<Key<'_>> {
    let (mut at, mut offset, mut alias) = (ty, offset, "");
    let mut key = None;
    // Types nest; the limit is for damaged ones.
    for _ in 0..64 {
        let known = unit.types.get(at?)?;
        match &known.kind {
            TypeKind::Typedef(inner) => (at, alias) = (*inner, known.name.as_str()),
            TypeKind::Const(inner) | TypeKind::Qualified(inner) => at = *inner,
            TypeKind::Array(element) => {
                let size = unit.types.get((*element)?)?.size;
                offset = offset.checked_rem(size)?;
                at = *element;
            }
            TypeKind::Struct(fields) => {
                let field = fields.iter().rev().find(|field| field.offset <= offset)?;
                let name = if known.name.is_empty() { alias } else { known.name.as_str() };
                key = Some(((name, known.size), offset));
                (at, offset, alias) = (field.ty, offset - field.offset, "");
            }
            TypeKind::Pointer(_) if offset == 0 => return key,
            _ => return None,
        }
    }
    None
}

/// The size of an array's element, so that every row of a table counts as one.
fn element_size(unit: &Unit, ty: Option<TypeId>) -> u64 {
    let mut at = ty;
    for _ in 0..16 {
        let Some(known) = at.and_then(|ty| unit.types.get(ty)) else { return 0 };
        match &known.kind {
            TypeKind::Typedef(inner) | TypeKind::Const(inner) | TypeKind::Qualified(inner) => at = *inner,
            TypeKind::Array(Some(element)) => return unit.types.get(*element).map_or(0, |element| element.size),
            _ => return 0,
        }
    }
    0
}

fn offset_of(function: &Function, ptr: ValueId) -> i64 {
    match function.values[ptr].kind {
        ValueKind::Inst(inst) => match &function.insts[inst].op {
            Op::Offset { bytes, .. } => *bytes,
            _ => 0,
        },
        ValueKind::Address(_, off) => off,
        _ => 0,
    }
}
