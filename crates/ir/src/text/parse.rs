//! Text as a unit: the tables. Function bodies are in `function.rs`.

use caulk_base::{FxHashMap, Id};

use super::TextError;
use super::function;
use super::lex::{Cursor, Line, Token, id_number, lines};
use super::names::{self, meaning};
use crate::verify::verify;
use crate::{
    DebugType, Field, FileId, FunctionAttrs, Global, GlobalRef, Init, InitValue, Linkage, Loc, LocId, LocalFuncId,
    Member, ParamAttrs, Scope, ScopeId, Symbol, SymbolId, SymbolKind, Ty, TypeId, TypeKind, Unit,
};

type Result<T> = std::result::Result<T, TextError>;

/// Reads a unit; see the module's text for what may be left out.
pub fn parse_unit(text: &str) -> Result<Unit> {
    let lines = lines(text)?;
    let mut tables = Tables::default();
    let mut bodies: Vec<&[Line]> = Vec::new();
    let mut globals: Vec<&Line> = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((line, after)) = rest.split_first() {
        rest = after;
        let cursor = Cursor::new(line);
        match cursor.peek_word() {
            Some("global") => globals.push(line),
            Some(word) if word == "fn" || id_number(word, "f").is_some() => {
                let Some(length) = after.iter().position(|line| line.tokens == [Token::Sign('}')]) else {
                    return cursor.fail("this function has no closing `}`");
                };
                bodies.push(&lines[lines.len() - after.len() - 1..lines.len() - after.len() + length]);
                rest = &after[length + 1..];
            }
            _ => tables.line(line)?,
        }
    }
    if tables.unit.locs.is_empty() {
        tables.unit.locs.push(Loc { file: None, line: 0, column: 0, scope: None, in_macro: false, at_return: false });
    }
    tables.resolve_kinds()?;
    tables.declare(&globals, &bodies)?;
    for line in globals {
        tables.global(line)?;
    }
    let mut starts = Vec::new();
    for body in bodies {
        starts.push(body.first().map_or(0, |line| line.number));
        let function = function::parse(&mut tables, body)?;
        tables.unit.functions.push(function);
    }
    let unit = tables.unit;
    match verify(&unit).into_iter().next() {
        None => Ok(unit),
        Some(problem) => {
            let line = problem.function.and_then(|id| starts.get(id.index())).copied().unwrap_or(1);
            Err(TextError { line, message: problem.what })
        }
    }
}

/// The unit as far as it has been read, and its names.
#[derive(Default)]
pub struct Tables {
    pub unit: Unit,
    names: FxHashMap<String, SymbolId>,
    places: FxHashMap<Loc, LocId>,
}

impl Tables {
    fn line(&mut self, line: &Line) -> Result<()> {
        let mut c = Cursor::new(line);
        let unit = &mut self.unit;
        if c.take_word("unit") {
            unit.source = c.text()?;
        } else if c.take_word("gap") {
            unit.gaps.push((c.text()?, c.text()?));
        } else if let Some(id) = c.take_id("file") {
            in_order(&c, id, unit.files.len())?;
            unit.files.push(c.text()?);
        } else if let Some(id) = c.take_id("scope") {
            in_order(&c, id, unit.scopes.len())?;
            let (file, line, column) = table_place(&mut c)?;
            let parent = if c.take_word("in") { Some(ScopeId(c.id("scope")?)) } else { None };
            unit.scopes.push(Scope { parent, file, line, column });
        } else if let Some(id) = c.take_id("loc") {
            in_order(&c, id, unit.locs.len())?;
            let (file, line, column) = table_place(&mut c)?;
            let scope = c.take_id("scope").map(ScopeId);
            unit.locs.push(Loc {
                file,
                line,
                column,
                scope,
                in_macro: c.take_word("macro"),
                at_return: c.take_word("return"),
            });
        } else if let Some(id) = c.take_id("mem") {
            in_order(&c, id, unit.members.len())?;
            unit.members.push(Member { record: c.text()?, size: c.number()?, offset: c.number()? });
        } else if let Some(id) = c.take_id("ty") {
            in_order(&c, id, unit.types.len())?;
            let ty = debug_type(&mut c)?;
            self.unit.types.push(ty);
        } else if let Some(id) = c.take_id("sym") {
            in_order(&c, id, unit.symbols.len())?;
            self.symbol_line(&mut c)?;
        } else {
            return c.fail("a table line, `global` or a function is expected");
        }
        c.end()
    }

    fn symbol_line(&mut self, c: &mut Cursor) -> Result<()> {
        let Some(linkage) = meaning(&names::LINKAGE, c.word("a linkage")?) else {
            return c.fail("unknown linkage");
        };
        let word = c.word("`define`, `declare`, `variable` or `alias`")?;
        let Some(Token::At(name)) = c.next() else { return c.fail("a name after `@` is expected") };
        let kind = match word {
            "define" => {
                c.sign('=')?;
                match c.take_id("f") {
                    Some(id) => SymbolKind::Function(LocalFuncId(id)),
                    None => SymbolKind::Global(GlobalRef(c.id("g")?)),
                }
            }
            "declare" => {
                let mut attrs = FunctionAttrs::default();
                while let Some(word) = c.peek_word() {
                    if !function_attr(&mut attrs, word) {
                        return c.fail(format!("unknown attribute `{word}`"));
                    }
                    c.next();
                }
                if c.take('(') {
                    attrs.params = c.list(')', param_attrs)?;
                }
                SymbolKind::DeclaredFunction(attrs)
            }
            "variable" => SymbolKind::DeclaredGlobal,
            "alias" => {
                c.sign('=')?;
                SymbolKind::Alias(SymbolId(c.id("sym")?))
            }
            other => return c.fail(format!("unknown kind of symbol `{other}`")),
        };
        self.add_symbol(name, linkage, kind);
        Ok(())
    }

    fn add_symbol(&mut self, name: &str, linkage: Linkage, kind: SymbolKind) -> SymbolId {
        let id = self.unit.symbols.push(Symbol { name: name.to_string(), linkage, kind });
        self.names.entry(name.to_string()).or_insert(id);
        id
    }

    /// Tables must be complete before bodies refer to them.
    fn resolve_kinds(&self) -> Result<()> {
        let count = self.unit.symbols.len();
        for symbol in self.unit.symbols.iter() {
            if let SymbolKind::Alias(to) = symbol.kind
                && to.index() >= count
            {
                return Err(TextError { line: 1, message: format!("{to}, alias of {}, does not exist", symbol.name) });
            }
        }
        Ok(())
    }

    /// Gives the definitions that have no line in the symbol table one.
    fn declare(&mut self, globals: &[&Line], bodies: &[&[Line]]) -> Result<()> {
        let lines = globals.iter().copied().map(|line| (line, true));
        let heads = bodies.iter().filter_map(|body| body.first()).map(|line| (line, false));
        let (mut global_count, mut function_count) = (0, 0);
        for (line, is_global) in lines.chain(heads) {
            let mut c = Cursor::new(line);
            c.next();
            let linkage = take_linkage(&mut c);
            let kind = if is_global {
                global_count += 1;
                SymbolKind::Global(GlobalRef(global_count - 1))
            } else {
                function_count += 1;
                SymbolKind::Function(LocalFuncId(function_count - 1))
            };
            if let Some(Token::At(name)) = c.next() {
                match self.names.get(name) {
                    None => {
                        self.add_symbol(name, linkage.unwrap_or(Linkage::External), kind);
                    }
                    Some(&id) if self.unit.symbols[id].kind != kind => {
                        return c.fail(format!("`@{name}` is not what its symbol says"));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// `@name` or `sym3`; a new name is declared by its use.
    pub fn symbol(&mut self, c: &mut Cursor, called: bool) -> Result<Option<SymbolId>> {
        let id = match c.peek() {
            Some(Token::At(name)) => match self.names.get(name) {
                Some(&id) => id,
                None => self.add_symbol(name, Linkage::External, SymbolKind::DeclaredGlobal),
            },
            Some(Token::Word(word)) => match id_number(word, "sym") {
                Some(id) if (id as usize) < self.unit.symbols.len() => SymbolId(id),
                Some(_) => return c.fail(format!("{word} does not exist")),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        c.next();
        let symbol = &mut self.unit.symbols[id];
        if called && symbol.kind == SymbolKind::DeclaredGlobal {
            symbol.kind = SymbolKind::DeclaredFunction(FunctionAttrs::default());
        }
        Ok(Some(id))
    }

    /// A symbol with an optional offset: `@table[8]`.
    pub fn address(&mut self, c: &mut Cursor) -> Result<Option<(SymbolId, i64)>> {
        let Some(symbol) = self.symbol(c, false)? else { return Ok(None) };
        let mut offset = 0;
        if c.take('[') {
            offset = c.number()?;
            c.sign(']')?;
        }
        Ok(Some((symbol, offset)))
    }

    fn global(&mut self, line: &Line) -> Result<()> {
        let mut c = Cursor::new(line);
        c.next();
        take_linkage(&mut c);
        let Some(symbol) = self.symbol(&mut c, false)? else { return c.fail("a symbol is expected") };
        let mut global = Global {
            symbol,
            size: 0,
            is_const: false,
            thread_local: false,
            init: Vec::new(),
            init_complete: true,
            is_literal: false,
            loc: LocId(0),
            ty: None,
        };
        while let Some(token) = c.peek() {
            if let Token::At(_) = token {
                global.loc = self.loc(&mut c)?;
            } else if let Some(id) = c.take_id("ty") {
                global.ty = Some(TypeId(id));
            } else {
                match c.word("a property of the global")? {
                    "size" => global.size = c.number()?,
                    "const" => global.is_const = true,
                    "thread_local" => global.thread_local = true,
                    "literal" => global.is_literal = true,
                    "incomplete" => global.init_complete = false,
                    "init" => {
                        c.sign('{')?;
                        global.init = c.list('}', |c| self.init(c))?;
                    }
                    other => return c.fail(format!("unknown property `{other}`")),
                }
            }
        }
        self.unit.globals.push(global);
        Ok(())
    }

    fn init(&mut self, c: &mut Cursor) -> Result<Init> {
        let offset = c.number()?;
        c.sign(':')?;
        let value = match self.address(c)? {
            Some((symbol, offset)) => InitValue::Address(symbol, offset),
            None => {
                let value = c.number()?;
                let size = if c.take_word("x") { c.number()? } else { 4 };
                InitValue::Int(value, size)
            }
        };
        Ok(Init { offset, value })
    }

    /// `@loc3`, `@12:5`, `@util.c:12:5`, or nothing.
    pub fn loc(&mut self, c: &mut Cursor) -> Result<LocId> {
        let Some(Token::At(name)) = c.peek() else { return Ok(LocId(0)) };
        c.next();
        if !c.take(':') {
            return match id_number(name, "loc") {
                Some(id) if (id as usize) < self.unit.locs.len() => Ok(LocId(id)),
                _ => c.fail(format!("`@{name}` is no position")),
            };
        }
        let first: u32 = c.number()?;
        let (file, line, column) = if c.take(':') {
            let known = self.unit.files.iter_ids().find(|(_, path)| path.rsplit('/').next() == Some(name.as_str()));
            let file = known.map(|(id, _)| id);
            (Some(file.unwrap_or_else(|| self.unit.files.push(name.clone()))), first, c.number()?)
        } else {
            let Ok(line) = name.parse() else { return c.fail(format!("`@{name}` is no position")) };
            if self.unit.files.is_empty() {
                self.unit.files.push(self.unit.source.clone());
            }
            (Some(FileId(0)), line, first)
        };
        let loc =
            Loc { file, line, column, scope: None, in_macro: c.take_word("macro"), at_return: c.take_word("return") };
        Ok(*self.places.entry(loc).or_insert_with(|| self.unit.locs.push(loc)))
    }
}

fn in_order(c: &Cursor, id: u32, next: usize) -> Result<()> {
    if id as usize == next { Ok(()) } else { c.fail(format!("number {next} is expected here, not {id}")) }
}

pub fn take_linkage(c: &mut Cursor) -> Option<Linkage> {
    let linkage = meaning(&names::LINKAGE, c.peek_word()?)?;
    c.next();
    Some(linkage)
}

/// `file0:12:5` or `none:0:0`
fn table_place(c: &mut Cursor) -> Result<(Option<FileId>, u32, u32)> {
    let file = if c.take_word("none") { None } else { Some(FileId(c.id("file")?)) };
    c.sign(':')?;
    let line = c.number()?;
    c.sign(':')?;
    Ok((file, line, c.number()?))
}

fn debug_type(c: &mut Cursor) -> Result<DebugType> {
    let name = c.text()?;
    let size = c.number()?;
    let word = c.word("a kind of type")?;
    let to = c.take_id("ty").map(TypeId);
    let fields = if c.take('{') {
        c.list('}', |c| Ok(Field { name: c.text()?, offset: c.number()?, ty: c.take_id("ty").map(TypeId) }))?
    } else {
        Vec::new()
    };
    let kind = match word {
        "base" => TypeKind::Base,
        "enum" => TypeKind::Enum,
        "pointer" => TypeKind::Pointer(to),
        "typedef" => TypeKind::Typedef(to),
        "const" => TypeKind::Const(to),
        "qualified" => TypeKind::Qualified(to),
        "array" => TypeKind::Array(to),
        "struct" => TypeKind::Struct(fields),
        "union" => TypeKind::Union(fields),
        "function" => TypeKind::Function,
        "other" => TypeKind::Other,
        other => return c.fail(format!("unknown kind of type `{other}`")),
    };
    Ok(DebugType { name, size, kind })
}

pub fn function_attr(attrs: &mut FunctionAttrs, word: &str) -> bool {
    match word {
        "noreturn" => attrs.noreturn = true,
        "readonly" => attrs.readonly = true,
        "readnone" => attrs.readnone = true,
        "noalias_result" => attrs.noalias_result = true,
        "returns_twice" => attrs.returns_twice = true,
        _ => return false,
    }
    true
}

pub fn param_attrs(c: &mut Cursor) -> Result<ParamAttrs> {
    let mut attrs = ParamAttrs::default();
    while let Some(word) = c.peek_word() {
        match word {
            "nocapture" => attrs.nocapture = true,
            "readonly" => attrs.readonly = true,
            "byval" => attrs.byval = true,
            "sret" => attrs.sret = true,
            "pointer_to_const" => attrs.pointer_to_const = true,
            "nonnull" => attrs.nonnull = true,
            "_" => {}
            other => return c.fail(format!("unknown attribute `{other}`")),
        }
        c.next();
    }
    Ok(attrs)
}

pub fn ty(c: &mut Cursor) -> Result<Option<Ty>> {
    let Some(word) = c.peek_word() else { return Ok(None) };
    let ty = match word {
        "void" => Ty::Void,
        "ptr" => Ty::Ptr,
        "float" => Ty::Float,
        _ => match (id_number(word, "i"), word.strip_prefix("agg").map(str::parse)) {
            (Some(bits), _) => Ty::Int(bits),
            (None, Some(Ok(bytes))) => Ty::Aggregate(bytes),
            _ => return Ok(None),
        },
    };
    c.next();
    Ok(Some(ty))
}
