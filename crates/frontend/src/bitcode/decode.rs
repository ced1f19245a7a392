//! The shim's flat buffer as a [`Unit`]. The C++ half is `cpp/module.cpp` and
//! `cpp/function.cpp`; the tags below are the enums there.
//!
//! Every id is checked against the length of its list while it is read, so a
//! unit that comes out can be indexed without a second thought.

use caulk_base::Id;
use caulk_ir::{
    Block, DebugType, Field, FileId, Function, FunctionAttrs, Global, GlobalRef, Init, InitValue, InstId, Linkage, Loc,
    LocId, LocalFuncId, Member, ParamAttrs, Scope, ScopeId, Symbol, SymbolId, SymbolKind, Ty, TypeId, TypeKind, Unit,
    Value, ValueKind, Variable,
};

use super::reader::{Reader, Result};

mod op;

/// The buffer's first bytes; the last of them changes with every change of the format, on both sides.
pub const MAGIC: &[u8; 8] = b"CAULKIR\x02";

pub fn unit(bytes: &[u8]) -> Result<Unit> {
    let mut reader = Reader::new(bytes);
    let r = &mut reader;
    for wanted in MAGIC {
        if r.byte()? != *wanted {
            return r.damaged("its format is another version's");
        }
    }
    let source = r.text()?;
    let files: Vec<String> = r.list(Reader::text)?;
    let mut locs: Vec<Loc> = r.list(|r| loc(r, files.len()))?;
    let scopes = scopes(r, files.len())?;
    if locs.iter().any(|loc| loc.scope.is_some_and(|scope| scope.index() >= scopes.len())) || locs.is_empty() {
        return r.damaged("a position has no scope");
    }
    locs.shrink_to_fit();
    let types = types(r)?;
    let members: Vec<Member> = r.list(|r| Ok(Member { record: r.text()?, size: r.number()?, offset: r.number()? }))?;
    let symbols = symbols(r)?;
    let sizes = Sizes {
        locs: locs.len(),
        scopes: scopes.len(),
        types: types.len(),
        members: members.len(),
        symbols: symbols.len(),
    };
    let globals: Vec<Global> = r.list(|r| global(r, &sizes))?;
    let functions: Vec<Function> = r.list(|r| function(r, &sizes, &symbols))?;
    let gaps = r.list(|r| Ok((r.text()?, r.text()?)))?;
    if !r.is_at_end() {
        return r.damaged("something follows its end");
    }
    let definitions_exist = symbols.iter().all(|symbol| match symbol.kind {
        SymbolKind::Function(id) => id.index() < functions.len(),
        SymbolKind::Global(id) => id.index() < globals.len(),
        _ => true,
    });
    if !definitions_exist {
        return r.damaged("a symbol has no definition");
    }
    Ok(Unit {
        source,
        files: files.into(),
        locs: locs.into(),
        scopes: scopes.into(),
        types: types.into(),
        members: members.into(),
        symbols: symbols.into(),
        functions: functions.into(),
        globals: globals.into(),
        gaps,
    })
}

/// The lengths of the unit's lists, against which ids are checked.
struct Sizes {
    locs: usize,
    scopes: usize,
    types: usize,
    members: usize,
    symbols: usize,
}

impl Sizes {
    fn loc(&self, r: &mut Reader) -> Result<LocId> {
        r.index(self.locs).map(LocId)
    }

    fn scope(&self, r: &mut Reader) -> Result<Option<ScopeId>> {
        Ok(r.optional(self.scopes)?.map(ScopeId))
    }

    fn ty(&self, r: &mut Reader) -> Result<Option<TypeId>> {
        Ok(r.optional(self.types)?.map(TypeId))
    }

    fn symbol(&self, r: &mut Reader) -> Result<SymbolId> {
        r.index(self.symbols).map(SymbolId)
    }
}

fn loc(r: &mut Reader, files: usize) -> Result<Loc> {
    Ok(Loc {
        file: r.optional(files)?.map(FileId),
        line: r.small()?,
        column: r.small()?,
        // Scopes follow later in the buffer; `unit` compares when it has them.
        scope: r.optional(u32::MAX as usize)?.map(ScopeId),
        in_macro: false,
        at_return: false,
    })
}

fn scopes(r: &mut Reader, files: usize) -> Result<Vec<Scope>> {
    let count = r.count()?;
    let mut scopes = Vec::with_capacity(count);
    for id in 0..count {
        scopes.push(Scope {
            // Parents come first, so that there is no cycle.
            parent: r.optional(id)?.map(ScopeId),
            file: r.optional(files)?.map(FileId),
            line: r.small()?,
            column: r.small()?,
        });
    }
    Ok(scopes)
}

fn types(r: &mut Reader) -> Result<Vec<DebugType>> {
    let count = r.count()?;
    let mut types = Vec::with_capacity(count);
    for _ in 0..count {
        let name = r.text()?;
        let size = r.number()?;
        let tag = r.byte()?;
        let to = |r: &mut Reader| Ok(r.optional(count)?.map(TypeId));
        let fields = |r: &mut Reader| r.list(|r| Ok(Field { name: r.text()?, offset: r.number()?, ty: to(r)? }));
        let kind = match tag {
            0 => TypeKind::Base,
            1 => TypeKind::Enum,
            2 => TypeKind::Pointer(to(r)?),
            3 => TypeKind::Typedef(to(r)?),
            4 => TypeKind::Const(to(r)?),
            5 => TypeKind::Qualified(to(r)?),
            6 => TypeKind::Array(to(r)?),
            7 => TypeKind::Struct(fields(r)?),
            8 => TypeKind::Union(fields(r)?),
            9 => TypeKind::Function,
            10 => TypeKind::Other,
            _ => return r.damaged("an unknown kind of type"),
        };
        types.push(DebugType { name, size, kind });
    }
    Ok(types)
}

fn symbols(r: &mut Reader) -> Result<Vec<Symbol>> {
    let count = r.count()?;
    let mut symbols = Vec::with_capacity(count);
    for _ in 0..count {
        let name = r.text()?;
        let linkage = match r.byte()? {
            0 => Linkage::Internal,
            1 => Linkage::External,
            2 => Linkage::Weak,
            3 => Linkage::Common,
            4 => Linkage::AvailableExternally,
            _ => return r.damaged("an unknown linkage"),
        };
        let kind = match r.byte()? {
            0 => SymbolKind::Function(LocalFuncId(r.small()?)),
            1 => SymbolKind::Global(GlobalRef(r.small()?)),
            2 => SymbolKind::Alias(SymbolId(r.index(count)?)),
            3 => SymbolKind::DeclaredFunction(attrs(r)?),
            4 => SymbolKind::DeclaredGlobal,
            _ => return r.damaged("an unknown kind of symbol"),
        };
        symbols.push(Symbol { name, linkage, kind });
    }
    Ok(symbols)
}

fn attrs(r: &mut Reader) -> Result<FunctionAttrs> {
    let flags = r.byte()?;
    let params = r.list(|r| {
        let flags = r.byte()?;
        Ok(ParamAttrs {
            nocapture: flags & 1 != 0,
            readonly: flags & 2 != 0,
            byval: flags & 4 != 0,
            sret: flags & 8 != 0,
            pointer_to_const: flags & 16 != 0,
            nonnull: flags & 32 != 0,
        })
    })?;
    Ok(FunctionAttrs {
        noreturn: flags & 1 != 0,
        readonly: flags & 2 != 0,
        readnone: flags & 4 != 0,
        noalias_result: flags & 8 != 0,
        returns_twice: flags & 16 != 0,
        params,
    })
}

fn global(r: &mut Reader, sizes: &Sizes) -> Result<Global> {
    let symbol = sizes.symbol(r)?;
    let size = r.number()?;
    let flags = r.byte()?;
    let loc = sizes.loc(r)?;
    let ty = sizes.ty(r)?;
    let init_complete = r.flag()?;
    let init = r.list(|r| {
        let offset = r.number()?;
        let value = match r.byte()? {
            0 => InitValue::Int(r.signed()?, r.byte()?),
            1 => InitValue::Address(sizes.symbol(r)?, r.signed()?),
            _ => return r.damaged("an unknown kind of initialiser"),
        };
        Ok(Init { offset, value })
    })?;
    Ok(Global {
        symbol,
        size,
        is_const: flags & 1 != 0,
        thread_local: flags & 2 != 0,
        is_literal: flags & 4 != 0,
        init,
        init_complete,
        loc,
        ty,
    })
}

fn ty(r: &mut Reader) -> Result<Ty> {
    Ok(match r.byte()? {
        0 => Ty::Void,
        1 => Ty::Int(r.small()?),
        2 => Ty::Ptr,
        3 => Ty::Float,
        4 => Ty::Aggregate(r.number()?),
        _ => return r.damaged("an unknown machine type"),
    })
}

/// The lengths of one function's lists.
#[derive(Clone, Copy)]
struct Body<'a> {
    sizes: &'a Sizes,
    values: usize,
    blocks: usize,
    vars: usize,
}

fn function(r: &mut Reader, sizes: &Sizes, symbols: &[Symbol]) -> Result<Function> {
    let symbol = sizes.symbol(r)?;
    let name = symbols[symbol.index()].name.clone();
    let attrs = attrs(r)?;
    let variadic = r.flag()?;
    let ret = ty(r)?;
    let ret_type = sizes.ty(r)?;
    let param_count = r.small()?;
    let scope = sizes.scope(r)?;
    let loc = sizes.loc(r)?;

    let body = Body { sizes, values: r.count()?, blocks: r.count()?, vars: r.count()? };
    let inst_count = r.count()?;
    if param_count as usize > body.values {
        return r.damaged("a parameter has no value");
    }
    let mut values = Vec::with_capacity(body.values);
    for _ in 0..body.values {
        values.push(Value { ty: ty(r)?, kind: value_kind(r, &body, param_count, inst_count)? });
    }
    let mut vars = Vec::with_capacity(body.vars);
    for _ in 0..body.vars {
        vars.push(Variable {
            name: r.text()?,
            ty: sizes.ty(r)?,
            param: r.optional(param_count as usize)?,
            scope: sizes.scope(r)?,
            loc: sizes.loc(r)?,
        });
    }
    let mut blocks = Vec::with_capacity(body.blocks);
    let mut first = InstId(0);
    for _ in 0..body.blocks {
        let end = InstId(first.0.saturating_add(r.small()?));
        if end == first || end.index() > inst_count {
            return r.damaged("a block has a wrong length");
        }
        blocks.push(Block { first, end });
        first = end;
    }
    if first.index() != inst_count || blocks.is_empty() {
        return r.damaged("the blocks do not cover the instructions");
    }
    let mut insts = Vec::with_capacity(inst_count);
    for _ in 0..inst_count {
        insts.push(op::inst(r, &body)?);
    }
    for block in &blocks {
        for id in block.first.0..block.end.0 {
            if insts[id as usize].op.is_terminator() != (id + 1 == block.end.0) {
                return r.damaged("a block does not end in its one terminator");
            }
        }
    }
    Ok(Function {
        symbol,
        name,
        attrs,
        variadic,
        ret,
        ret_type,
        param_count,
        values: values.into(),
        insts: insts.into(),
        blocks: blocks.into(),
        vars: vars.into(),
        scope,
        loc,
    })
}

fn value_kind(r: &mut Reader, body: &Body, params: u32, insts: usize) -> Result<ValueKind> {
    Ok(match r.byte()? {
        0 => ValueKind::Param(r.index(params as usize)?),
        1 => ValueKind::Inst(InstId(r.index(insts)?)),
        2 => ValueKind::Int(r.signed()?),
        3 => ValueKind::Null,
        4 => ValueKind::Address(body.sizes.symbol(r)?, r.signed()?),
        5 => ValueKind::Block(caulk_ir::BlockId(r.index(body.blocks)?)),
        6 => ValueKind::Undef,
        7 => ValueKind::Zero,
        _ => return r.damaged("an unknown kind of value"),
    })
}
