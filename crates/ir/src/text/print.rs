//! Units as text.

use std::fmt::{Display, Write};

use caulk_base::FxHashMap;

use super::lex::id_number;
use super::names::{self, word};
use crate::{
    Block, BlockId, Call, Callee, Field, Function, FunctionAttrs, Global, InitValue, Inst, LocId, LocalFuncId, Op,
    ParamAttrs, Scope, SymbolId, SymbolKind, Ty, TypeKind, Unit, ValueId, ValueKind,
};

/// The whole unit, with its tables.
pub fn print_unit(unit: &Unit) -> String {
    let mut printer = Printer::new(unit, true);
    printer.tables();
    for (id, function) in unit.functions.iter_ids() {
        printer.function(id, function);
    }
    printer.out
}

/// One function for reading: positions in place, no tables.
pub fn print_function(unit: &Unit, function: &Function) -> String {
    let id = unit.functions.iter_ids().find(|(_, other)| std::ptr::eq(*other, function));
    let mut printer = Printer::new(unit, false);
    printer.function(id.map_or(LocalFuncId(0), |(id, _)| id), function);
    printer.out
}

struct Printer<'a> {
    unit: &'a Unit,
    /// Names that stand for one symbol only.
    unique: FxHashMap<&'a str, SymbolId>,
    /// With every id, to be read back; otherwise for reading only.
    exact: bool,
    out: String,
}

/// `String` takes all that is written.
macro_rules! put {
    ($printer:expr, $($argument:tt)*) => {
        let _ = write!($printer.out, $($argument)*);
    };
}

impl<'a> Printer<'a> {
    fn new(unit: &'a Unit, exact: bool) -> Self {
        let mut unique = FxHashMap::default();
        let mut repeated = Vec::new();
        for (id, symbol) in unit.symbols.iter_ids() {
            if unique.insert(symbol.name.as_str(), id).is_some() {
                repeated.push(symbol.name.as_str());
            }
        }
        for name in repeated {
            unique.remove(name);
        }
        Self { unit, unique, exact, out: String::new() }
    }

    fn tables(&mut self) {
        let unit = self.unit;
        put!(self, "unit {}\n", quoted(&unit.source));
        for (id, path) in unit.files.iter_ids() {
            put!(self, "{id} {}\n", quoted(path));
        }
        for (id, scope) in unit.scopes.iter_ids() {
            let Scope { parent, file, line, column } = scope;
            put!(self, "{id} {}:{line}:{column}{}\n", or_none(*file), prefixed(" in ", *parent));
        }
        for (id, loc) in unit.locs.iter_ids() {
            let in_macro = if loc.in_macro { " macro" } else { "" };
            let at_return = if loc.at_return { " return" } else { "" };
            let scope = prefixed(" ", loc.scope);
            put!(self, "{id} {}:{}:{}{scope}{in_macro}{at_return}\n", or_none(loc.file), loc.line, loc.column);
        }
        for (id, ty) in unit.types.iter_ids() {
            put!(self, "{id} {} {}", quoted(&ty.name), ty.size);
            self.type_kind(&ty.kind);
        }
        for (id, member) in unit.members.iter_ids() {
            put!(self, "{id} {} {} {}\n", quoted(&member.record), member.size, member.offset);
        }
        for id in unit.symbols.ids() {
            self.symbol_line(id);
        }
        for global in unit.globals.iter() {
            self.global(global);
        }
        for (function, what) in &unit.gaps {
            put!(self, "gap {} {}\n", quoted(function), quoted(what));
        }
    }

    fn type_kind(&mut self, kind: &TypeKind) {
        let (word, to, fields): (_, _, &[Field]) = match kind {
            TypeKind::Base => ("base", None, &[]),
            TypeKind::Enum => ("enum", None, &[]),
            TypeKind::Pointer(to) => ("pointer", *to, &[]),
            TypeKind::Typedef(to) => ("typedef", *to, &[]),
            TypeKind::Const(to) => ("const", *to, &[]),
            TypeKind::Qualified(to) => ("qualified", *to, &[]),
            TypeKind::Array(to) => ("array", *to, &[]),
            TypeKind::Struct(fields) => ("struct", None, fields),
            TypeKind::Union(fields) => ("union", None, fields),
            TypeKind::Function => ("function", None, &[]),
            TypeKind::Other => ("other", None, &[]),
        };
        put!(self, " {word}{}", prefixed(" ", to));
        if !fields.is_empty() {
            let fields = list(fields, |f| format!("{} {}{}", quoted(&f.name), f.offset, prefixed(" ", f.ty)));
            put!(self, " {{ {fields} }}");
        }
        self.out.push('\n');
    }

    fn symbol_line(&mut self, id: SymbolId) {
        let symbol = &self.unit.symbols[id];
        let (name, linkage) = (at_name(&symbol.name), word(&names::LINKAGE, &symbol.linkage));
        match &symbol.kind {
            SymbolKind::Function(function) => {
                put!(self, "{id} {linkage} define {name} = {function}\n");
            }
            SymbolKind::Global(global) => {
                put!(self, "{id} {linkage} define {name} = {global}\n");
            }
            SymbolKind::Alias(to) => {
                put!(self, "{id} {linkage} alias {name} = {to}\n");
            }
            SymbolKind::DeclaredGlobal => {
                put!(self, "{id} {linkage} variable {name}\n");
            }
            SymbolKind::DeclaredFunction(attrs) => {
                put!(self, "{id} {linkage} declare {name}{}", function_attrs(attrs));
                if !attrs.params.is_empty() {
                    put!(
                        self,
                        " ({})",
                        list(&attrs.params, |param| match param_attrs(param) {
                            none if none.is_empty() => "_".to_string(),
                            words => words.trim_start().to_string(),
                        })
                    );
                }
                self.out.push('\n');
            }
        }
    }

    fn global(&mut self, global: &Global) {
        put!(self, "global {} size {}", self.symbol(global.symbol), global.size);
        for (set, word) in [
            (global.is_const, " const"),
            (global.thread_local, " thread_local"),
            (global.is_literal, " literal"),
            (!global.init_complete, " incomplete"),
        ] {
            if set {
                self.out.push_str(word);
            }
        }
        if global.loc != LocId(0) {
            put!(self, " @{}", global.loc);
        }
        put!(self, "{}", prefixed(" ", global.ty));
        if !global.init.is_empty() {
            let init = list(&global.init, |init| match init.value {
                InitValue::Int(value, size) => format!("{}: {value} x {size}", init.offset),
                InitValue::Address(symbol, offset) => format!("{}: {}", init.offset, self.address(symbol, offset)),
            });
            put!(self, " init {{ {init} }}");
        }
        self.out.push('\n');
    }

    fn function(&mut self, id: LocalFuncId, function: &Function) {
        let params = list(&function.params().collect::<Vec<_>>(), |&value| {
            let attrs = function.attrs.params.get(value.0 as usize).map_or(String::new(), param_attrs);
            let ty = function.values.get(value).map_or(Ty::Void, |value| value.ty);
            format!("{value}: {}{attrs}", ty_text(ty))
        });
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let dots = match (function.variadic, params.is_empty()) {
            (false, _) => "",
            (true, true) => "...",
            (true, false) => ", ...",
        };
        let (name, ret) = (self.symbol(function.symbol), ty_text(function.ret));
        put!(self, "{id} {name}({params}{dots}) -> {ret}{}", function_attrs(&function.attrs));
        if self.exact {
            put!(self, "{}{}", prefixed(" ", function.ret_type), prefixed(" ", function.scope));
        }
        put!(self, "{} {{\n", self.at(function.loc));
        for (id, var) in function.vars.iter_ids() {
            put!(self, "  {id} {}", quoted(&var.name));
            if let Some(param) = var.param {
                put!(self, " param {param}");
            }
            if self.exact {
                put!(self, "{}{}", prefixed(" ", var.ty), prefixed(" ", var.scope));
            }
            put!(self, "{}\n", self.at(var.loc));
        }
        if self.exact {
            for (id, value) in function.values.iter_ids() {
                if !matches!(value.kind, ValueKind::Param(_) | ValueKind::Inst(_)) {
                    put!(self, "  const {id} {}\n", self.constant(value.ty, value.kind));
                }
            }
        }
        for (id, &Block { first, end }) in function.blocks.iter_ids() {
            put!(self, "{id}:\n");
            for inst in function.insts.as_slice().get(first.0 as usize..end.0 as usize).unwrap_or_default() {
                self.inst(function, inst);
            }
        }
        self.out.push_str("}\n");
    }

    fn inst(&mut self, function: &Function, inst: &Inst) {
        let start = self.out.len();
        self.out.push_str("  ");
        let mut ty = Ty::Void;
        if let Some(result) = inst.result {
            ty = function.values.get(result).map_or(Ty::Void, |value| value.ty);
            put!(self, "{result} = ");
        }
        let text = Operands { printer: self, function }.op(&inst.op, ty);
        self.out.push_str(&text);
        self.out.push_str(&self.at(inst.loc));
        if self.exact && inst.loc != LocId(0) {
            let width = self.out.len() - start;
            let pad = 48usize.saturating_sub(width);
            let (name, line, column) = self.place(inst.loc);
            put!(self, "{:pad$} ; {name}:{line}:{column}", "");
        }
        self.out.push('\n');
    }

    /// Where an instruction stands, as the parser reads it.
    fn at(&self, loc: LocId) -> String {
        match (loc, self.exact) {
            (LocId(0), _) => String::new(),
            (_, true) => format!(" @{loc}"),
            (_, false) => {
                let (name, line, column) = self.place(loc);
                format!(" {}:{line}:{column}", at_name(name))
            }
        }
    }

    /// File name, line and column.
    fn place(&self, id: LocId) -> (&'a str, u32, u32) {
        let Some(loc) = self.unit.locs.get(id) else { return ("none", 0, 0) };
        let path = loc.file.and_then(|file| self.unit.files.get(file));
        let name = path.map_or("none", |path| path.rsplit('/').next().unwrap_or(path));
        (name, loc.line, loc.column)
    }

    fn symbol(&self, id: SymbolId) -> String {
        match self.unit.symbols.get(id) {
            // `@loc3` would read as a position.
            Some(symbol)
                if self.unique.contains_key(symbol.name.as_str()) && id_number(&symbol.name, "loc").is_none() =>
            {
                at_name(&symbol.name)
            }
            _ => id.to_string(),
        }
    }

    fn address(&self, symbol: SymbolId, offset: i64) -> String {
        if offset == 0 { self.symbol(symbol) } else { format!("{}[{offset}]", self.symbol(symbol)) }
    }

    fn constant(&self, ty: Ty, kind: ValueKind) -> String {
        let text = match kind {
            ValueKind::Param(_) | ValueKind::Inst(_) => "?".to_string(),
            ValueKind::Int(0) if ty == Ty::Int(1) => return "false".to_string(),
            ValueKind::Int(-1) if ty == Ty::Int(1) => return "true".to_string(),
            ValueKind::Int(value) => value.to_string(),
            ValueKind::Null if ty == Ty::Ptr => return "null".to_string(),
            ValueKind::Null => "null".to_string(),
            ValueKind::Address(symbol, offset) if ty == Ty::Ptr => return self.address(symbol, offset),
            ValueKind::Address(symbol, offset) => self.address(symbol, offset),
            ValueKind::Block(block) if ty == Ty::Ptr => return block.to_string(),
            ValueKind::Block(block) => block.to_string(),
            ValueKind::Undef => "undef".to_string(),
            ValueKind::Zero => "zero".to_string(),
        };
        format!("{} {text}", ty_text(ty))
    }
}

/// Instructions of one function, whose constants are written in place.
struct Operands<'a, 'b> {
    printer: &'a Printer<'b>,
    function: &'a Function,
}

impl Operands<'_, '_> {
    fn v(&self, id: ValueId) -> String {
        match self.function.values.get(id) {
            Some(value) if !matches!(value.kind, ValueKind::Param(_) | ValueKind::Inst(_)) => {
                self.printer.constant(value.ty, value.kind)
            }
            _ => id.to_string(),
        }
    }

    fn vs(&self, ids: &[ValueId]) -> String {
        list(ids, |&id| self.v(id))
    }

    fn op(&self, op: &Op, ty: Ty) -> String {
        let v = |id: &ValueId| self.v(*id);
        let ty = ty_text(ty);
        match op {
            Op::Alloca { size, count, var } => {
                let count = count.map_or(String::new(), |count| format!(" x {}", v(&count)));
                format!("alloca {size}{count}{}", prefixed(" ", *var))
            }
            Op::Load { ptr } => format!("load {ty} {}", v(ptr)),
            Op::Store { ptr, value } => format!("store {} to {}", v(value), v(ptr)),
            Op::Offset { base, bytes, indices, member } => {
                let mut text = format!("offset {} + {bytes}", v(base));
                for (index, scale) in indices {
                    let _ = write!(text, " + {} * {scale}", v(index));
                }
                text + &prefixed(" of ", *member)
            }
            Op::Cmp { op, a, b } => format!("cmp {} {}, {}", word(&names::CMP, op), v(a), v(b)),
            Op::Bin { op, a, b } => format!("{} {ty} {}, {}", word(&names::BIN, op), v(a), v(b)),
            Op::Cast { op, a } => format!("{} {ty} {}", word(&names::CAST, op), v(a)),
            Op::Select { cond, a, b } => format!("select {ty} {}, {}, {}", v(cond), v(a), v(b)),
            Op::Phi { incoming } => {
                format!("phi {ty} {}", list(incoming, |(from, value)| format!("[{from}: {}]", v(value))))
            }
            Op::Call(call) => self.call(call, &ty),
            Op::Copy { dst, src, len } => format!("copy {}, {}, {}", v(dst), v(src), v(len)),
            Op::Fill { dst, byte, len } => format!("fill {}, {}, {}", v(dst), v(byte), v(len)),
            Op::Extract { aggregate, offset } => format!("extract {ty} {} at {offset}", v(aggregate)),
            Op::Insert { aggregate, value, offset } => {
                format!("insert {ty} {}, {} at {offset}", v(aggregate), v(value))
            }
            Op::Atomic { ptr, value } => format!("atomic {ty} {}, {}", v(ptr), v(value)),
            Op::VaArg { list } => format!("va_arg {ty} {}", v(list)),
            Op::Opaque { what, operands, clobbers } => {
                let clobbers = if *clobbers { " clobbers" } else { "" };
                format!("opaque {ty} {}{clobbers} ({})", quoted(what), self.vs(operands))
            }
            Op::Bind { var, value } => format!("bind {var}, {}", v(value)),
            Op::Return { value: None } => "return".to_string(),
            Op::Return { value: Some(value) } => format!("return {}", v(value)),
            Op::Jump { to } => format!("jump {to}"),
            Op::Branch { cond, then, els } => format!("branch {}, {then}, {els}", v(cond)),
            Op::Switch { value, cases, default } => {
                let cases = list(cases, |case| format!("{}: {}", case.value, case.to));
                format!("switch {} [{cases}] default {default}", v(value))
            }
            Op::IndirectJump { address, targets } => {
                format!("indirect {} [{}]", v(address), list(targets, BlockId::to_string))
            }
            Op::Unreachable => "unreachable".to_string(),
        }
    }

    fn call(&self, call: &Call, ty: &str) -> String {
        let callee = match &call.callee {
            Callee::Symbol(symbol) => self.printer.symbol(*symbol),
            Callee::Value(value) => format!("*{}", self.v(*value)),
            Callee::Intrinsic(name) => format!("intrinsic {}", quoted(name)),
            Callee::Asm(false) => "asm".to_string(),
            Callee::Asm(true) => "asm clobbers".to_string(),
        };
        let noreturn = if call.noreturn { " noreturn" } else { "" };
        format!("call {ty} {callee}({}){noreturn}", self.vs(&call.args))
    }
}

fn ty_text(ty: Ty) -> String {
    match ty {
        Ty::Void => "void".to_string(),
        Ty::Int(bits) => format!("i{bits}"),
        Ty::Ptr => "ptr".to_string(),
        Ty::Float => "float".to_string(),
        Ty::Aggregate(bytes) => format!("agg{bytes}"),
    }
}

fn function_attrs(attrs: &FunctionAttrs) -> String {
    words(&[
        (attrs.noreturn, "noreturn"),
        (attrs.readonly, "readonly"),
        (attrs.readnone, "readnone"),
        (attrs.noalias_result, "noalias_result"),
        (attrs.returns_twice, "returns_twice"),
    ])
}

fn param_attrs(attrs: &ParamAttrs) -> String {
    words(&[
        (attrs.nocapture, "nocapture"),
        (attrs.readonly, "readonly"),
        (attrs.byval, "byval"),
        (attrs.sret, "sret"),
        (attrs.pointer_to_const, "pointer_to_const"),
        (attrs.nonnull, "nonnull"),
    ])
}

fn words(words: &[(bool, &str)]) -> String {
    words.iter().filter(|(set, _)| *set).fold(String::new(), |text, (_, word)| text + " " + word)
}

fn list<T>(items: &[T], text: impl FnMut(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn prefixed<T: Display>(prefix: &str, item: Option<T>) -> String {
    item.map_or(String::new(), |item| format!("{prefix}{item}"))
}

fn or_none<T: Display>(item: Option<T>) -> String {
    item.map_or("none".to_string(), |item| item.to_string())
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
}

fn at_name(name: &str) -> String {
    if is_plain(name) { format!("@{name}") } else { format!("@{}", quoted(name)) }
}

/// In quotation marks, with `\` before these and before itself, and `\n`, `\r` for line ends.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
