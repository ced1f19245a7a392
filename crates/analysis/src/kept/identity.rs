//! Names of functions and globals that stay the same from run to run.
//!
//! Ids are positions: a function more in one file shifts all that follow. So what is kept refers to functions and
//! globals by hashes of their names, and a function's body is hashed with every name in it resolved:
//!
//!     static char *dup(char *s) {        body of `dup`: call sym0(v0) …
//!         return strdup(s);              sym0: the extern `strdup`, with its attributes
//!     }
//!
//! # Invariants
//! - Moving code up or down changes no hash here; positions are looked up in the unit when a finding is made.
//! - Two functions, or two globals, of one program never share an identity.

use std::sync::{Arc, OnceLock};

use caulk_base::{ContentHash, FxHashMap, Hasher, Id, IdVec};
use caulk_ir::{
    Callee, ExternId, FuncId, Function, GlobalId, GlobalRef, InitValue, LocalFuncId, Op, Program, SymbolId, SymbolKind,
    Target, Unit, UnitId, ValueKind,
};
use serde::Serialize;

/// What an identity means in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Function(FuncId),
    Global(GlobalId),
    Extern(ExternId),
}

/// The identities of everything in one program.
pub struct Identities {
    pub units: IdVec<UnitId, ContentHash>,
    pub functions: IdVec<FuncId, ContentHash>,
    pub globals: IdVec<GlobalId, ContentHash>,
    pub externs: IdVec<ExternId, ContentHash>,
    meanings: OnceLock<FxHashMap<ContentHash, Meaning>>,
}

impl Identities {
    pub fn of(program: &Program) -> Self {
        let mut seen: FxHashMap<&str, u64> = FxHashMap::default();
        let units: IdVec<UnitId, ContentHash> = program
            .units
            .iter()
            .map(|unit| {
                // One source under several sets of flags is several units.
                let number = seen.entry(unit.source.as_str()).or_default();
                *number += 1;
                Hasher::new().field(&unit.source).number(*number).finish()
            })
            .collect();
        let (mut functions, mut globals) = (Vec::new(), Vec::new());
        for (id, unit) in program.units.iter_ids() {
            let (of_functions, of_globals) = of_unit(unit, units[id]);
            functions.extend(of_functions);
            globals.extend(of_globals);
        }
        Identities {
            functions: IdVec::from(functions),
            globals: IdVec::from(globals),
            externs: program.externs.iter().map(|name| Hasher::new().field("extern").field(name).finish()).collect(),
            meanings: OnceLock::new(),
            units,
        }
    }

    /// Are these the identities of another program, too? `old` is the one they were made for.
    pub fn fit(&self, old: &Program, program: &Program) -> bool {
        let numbered = old.units.len() == program.units.len()
            && old.functions.as_slice() == program.functions.as_slice()
            && old.globals.as_slice() == program.globals.as_slice()
            && old.externs.as_slice() == program.externs.as_slice();
        let same = |id: UnitId| {
            let (was, unit) = (&old.units[id], &program.units[id]);
            let (functions, globals) = match Arc::ptr_eq(was, unit) || was.source != unit.source {
                true => return was.source == unit.source,
                false => of_unit(unit, self.units[id]),
            };
            let from = program.function_id(id, LocalFuncId(0)).index();
            let globals_from = program.global_id(id, GlobalRef(0)).index();
            self.functions.as_slice()[from..from + functions.len()] == functions
                && self.globals.as_slice()[globals_from..globals_from + globals.len()] == globals
        };
        numbered && program.units.ids().all(same)
    }

    pub fn meaning(&self, identity: ContentHash) -> Option<Meaning> {
        let meanings = self.meanings.get_or_init(|| {
            let functions = self.functions.iter_ids().map(|(id, hash)| (*hash, Meaning::Function(id)));
            let globals = self.globals.iter_ids().map(|(id, hash)| (*hash, Meaning::Global(id)));
            let externs = self.externs.iter_ids().map(|(id, hash)| (*hash, Meaning::Extern(id)));
            functions.chain(globals).chain(externs).collect()
        });
        meanings.get(&identity).copied()
    }

    fn target(&self, target: &Target, out: &mut Hasher) {
        match target {
            Target::Functions(all) => {
                out.field("functions").number(all.len() as u64);
                all.iter().for_each(|&id| _ = out.raw(&self.functions[id].0));
            }
            Target::Globals(all) => {
                out.field("globals").number(all.len() as u64);
                all.iter().for_each(|&id| _ = out.raw(&self.globals[id].0));
            }
            Target::Extern(id) => _ = out.field("extern").raw(&self.externs[*id].0),
        }
    }

    /// The initial contents of a global, with the names in them resolved.
    pub fn initial(&self, program: &Program, id: GlobalId) -> ContentHash {
        let (unit, _) = program.globals[id];
        let global = program.global(id);
        let mut out = Hasher::new();
        out.number(global.size).number(u64::from(global.init_complete));
        for init in &global.init {
            out.number(init.offset);
            match init.value {
                InitValue::Int(value, size) => _ = out.field("int").number(value as u64).number(u64::from(size)),
                InitValue::Address(symbol, offset) => {
                    out.field("address").number(offset as u64);
                    self.target(program.target(unit, symbol), &mut out);
                }
            }
        }
        out.finish()
    }

    /// Everything in a function's own body that its analysis may depend on.
    pub fn content(&self, program: &Program, id: FuncId) -> ContentHash {
        let unit_id = program.unit_of(id);
        let unit = &program.units[unit_id];
        let function = program.function(id);
        let mut body = Body::default();
        body.put(&(&function.name, &function.attrs, function.variadic, function.ret, function.param_count));
        body.put(&unit.symbols[function.symbol].linkage);
        body.put(&function.blocks);
        for var in function.vars.iter() {
            body.put(&(&var.name, var.param, unit.is_pointer_to_pointer(var.ty)));
        }
        for value in function.values.iter() {
            match value.kind {
                ValueKind::Address(symbol, offset) => {
                    let at = body.symbol(symbol);
                    body.put(&(value.ty, at, offset));
                }
                _ => body.put(value),
            }
        }
        for inst in function.insts.iter() {
            body.put(&inst.result);
            body.put(&place(unit, function, inst.loc));
            match &inst.op {
                Op::Call(call) => match &call.callee {
                    Callee::Symbol(symbol) => {
                        let at = body.symbol(*symbol);
                        body.put(&("call", at, &call.args, call.noreturn));
                    }
                    _ => body.put(&inst.op),
                },
                // Members are numbered by unit; what depends on them is a question of its own.
                Op::Offset { base, bytes, indices, member } => {
                    body.put(&("offset", base, bytes, indices, member.is_some()));
                }
                op => body.put(op),
            }
        }
        let mut out = Hasher::new();
        out.field(&body.bytes);
        for symbol in body.symbols {
            let described = &unit.symbols[symbol];
            if !is_unnamed(&described.name) {
                // A model of the user's goes by this name.
                out.field(&described.name);
            }
            if let SymbolKind::DeclaredFunction(attrs) = &described.kind {
                out.field(postcard::to_extend(attrs, Vec::new()).unwrap_or_default());
            }
            self.target(program.target(unit_id, symbol), &mut out);
        }
        out.finish()
    }
}

/// The identities of a unit's functions and globals.
fn of_unit(unit: &Unit, own: ContentHash) -> (Vec<ContentHash>, Vec<ContentHash>) {
    let named = |kind: &str, name: &str| Hasher::new().raw(&own.0).field(kind).field(name).finish();
    let functions = unit.functions.iter().map(|function| named("function", &function.name));
    let unnamed = unnamed_globals(unit);
    let globals = unit.globals.iter().enumerate().map(|(at, global)| match &unnamed[at] {
        Some(place) => named("unnamed", place),
        None => named("global", &unit.symbols[global.symbol].name),
    });
    (functions.collect(), globals.collect())
}

/// What a position says that does not change when the function moves.
fn place(unit: &Unit, function: &Function, loc: caulk_ir::LocId) -> (bool, bool, Option<u32>) {
    let (own, loc) = (unit.locs[function.loc], unit.locs[loc]);
    let line = (loc.line > 0).then(|| if loc.file == own.file { loc.line.wrapping_sub(own.line) } else { u32::MAX });
    (loc.in_macro, loc.at_return, line)
}

/// A function's body on its way into a hash.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    /// By first use.
    symbols: Vec<SymbolId>,
    places: FxHashMap<SymbolId, u32>,
}

impl Body {
    fn put(&mut self, part: &impl Serialize) {
        // Writing plain data to memory does not fail; if it did, the hash would only match itself less often.
        self.bytes = postcard::to_extend(part, std::mem::take(&mut self.bytes)).unwrap_or_default();
    }

    fn symbol(&mut self, symbol: SymbolId) -> u32 {
        let next = self.symbols.len() as u32;
        let at = *self.places.entry(symbol).or_insert(next);
        if at == next {
            self.symbols.push(symbol);
        }
        at
    }
}

/// The compiler numbers string literals and their like through the unit: one more shifts all that follow.
fn is_unnamed(name: &str) -> bool {
    name.starts_with('.')
}

/// For each global without a name of its own: who uses it first, and which of the user's it is.
fn unnamed_globals(unit: &Unit) -> Vec<Option<String>> {
    let mut names: Vec<Option<String>> = vec![None; unit.globals.len()];
    let mut name = |symbol: SymbolId, by: &str, number: &mut usize| {
        let SymbolKind::Global(global) = unit.symbols[symbol].kind else { return };
        let slot = &mut names[global.index()];
        if is_unnamed(&unit.symbols[symbol].name) && slot.is_none() {
            *slot = Some(format!("{by} {number}"));
            *number += 1;
        }
    };
    for function in unit.functions.iter() {
        let mut number = 0;
        for value in function.values.iter() {
            if let ValueKind::Address(symbol, _) = value.kind {
                name(symbol, &function.name, &mut number);
            }
        }
    }
    for global in unit.globals.iter() {
        let mut number = 0;
        for init in &global.init {
            if let InitValue::Address(symbol, _) = init.value {
                name(symbol, &format!("={}", unit.symbols[global.symbol].name), &mut number);
            }
        }
    }
    names
}
