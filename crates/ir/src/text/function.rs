//! Text as a function body.

use caulk_base::FxHashMap;

use super::TextError;
use super::lex::{Cursor, Line, Token, id_number};
use super::names::{self, meaning};
use super::parse::{Tables, function_attr, param_attrs, take_linkage, ty};
use crate::{
    Block, BlockId, Call, Callee, Case, Function, FunctionAttrs, Inst, InstId, LocId, MemberId, Op, ScopeId, Ty,
    TypeId, Value, ValueId, ValueKind, VarId, Variable,
};

type Result<T> = std::result::Result<T, TextError>;

/// Numbers may be left out, but not so many that the value table explodes.
const LARGEST_GAP: usize = 10_000;

/// Reads one function: its head, then the lines up to the closing brace.
pub fn parse(tables: &mut Tables, lines: &[Line]) -> Result<Function> {
    let Some((head, body)) = lines.split_first() else {
        return Err(TextError { line: 0, message: "a function is expected".to_string() });
    };
    let written = body.iter().chain([head]).flat_map(|line| &line.tokens);
    let highest = written.filter_map(|token| match token {
        Token::Word(word) => id_number(word, "v"),
        _ => None,
    });
    let next_constant = highest.max().map_or(0, |id| id.saturating_add(1));
    let mut parser = Parser {
        tables,
        function: empty_function(),
        values: FxHashMap::default(),
        constants: FxHashMap::default(),
        next_constant,
        used: Vec::new(),
        blocks: Vec::new(),
    };
    parser.head(head)?;
    for line in body {
        parser.body_line(line)?;
    }
    parser.finish(head.number)
}

fn empty_function() -> Function {
    Function {
        symbol: crate::SymbolId(0),
        name: String::new(),
        attrs: FunctionAttrs::default(),
        variadic: false,
        ret: Ty::Void,
        ret_type: None,
        param_count: 0,
        values: Default::default(),
        insts: Default::default(),
        blocks: Default::default(),
        vars: Default::default(),
        scope: None,
        loc: LocId(0),
    }
}

struct Parser<'a> {
    tables: &'a mut Tables,
    function: Function,
    /// What has been defined so far.
    values: FxHashMap<u32, Value>,
    constants: FxHashMap<Value, ValueId>,
    /// The number of the next constant that has none of its own.
    next_constant: u32,
    /// Values with the line that uses them.
    used: Vec<(u32, usize)>,
    /// The first instruction of each block.
    blocks: Vec<InstId>,
}

impl Parser<'_> {
    fn head(&mut self, line: &Line) -> Result<()> {
        let mut c = Cursor::new(line);
        c.next();
        take_linkage(&mut c);
        let Some(symbol) = self.tables.symbol(&mut c, false)? else { return c.fail("the function's name is expected") };
        self.function.symbol = symbol;
        self.function.name = self.tables.unit.symbols[symbol].name.clone();
        c.sign('(')?;
        let mut attrs = Vec::new();
        while !c.take(')') {
            if c.take_word("...") {
                self.function.variadic = true;
                c.sign(')')?;
                break;
            }
            let id = c.id("v")?;
            if id as usize != attrs.len() {
                return c.fail(format!("the parameter must be v{}", attrs.len()));
            }
            c.sign(':')?;
            let Some(ty) = ty(&mut c)? else { return c.fail("the parameter's type is expected") };
            self.define(&c, id, Value { ty, kind: ValueKind::Param(id) })?;
            attrs.push(param_attrs(&mut c)?);
            if c.peek() != Some(&Token::Sign(')')) {
                c.sign(',')?;
            }
        }
        self.function.param_count = attrs.len() as u32;
        self.function.attrs.params = attrs;
        if c.peek() == Some(&Token::Arrow) {
            c.next();
            let Some(ret) = ty(&mut c)? else { return c.fail("the result's type is expected") };
            self.function.ret = ret;
        }
        while !c.take('{') {
            if let Some(Token::At(_)) = c.peek() {
                self.function.loc = self.tables.loc(&mut c)?;
            } else if let Some(id) = c.take_id("ty") {
                self.function.ret_type = Some(TypeId(id));
            } else if let Some(id) = c.take_id("scope") {
                self.function.scope = Some(ScopeId(id));
            } else {
                let word = c.word("`{`")?;
                if !function_attr(&mut self.function.attrs, word) {
                    return c.fail(format!("unknown attribute `{word}`"));
                }
            }
        }
        c.end()
    }

    fn body_line(&mut self, line: &Line) -> Result<()> {
        let mut c = Cursor::new(line);
        if let Some(id) = c.take_id("var") {
            if id as usize != self.function.vars.len() {
                return c.fail(format!("var{} is expected", self.function.vars.len()));
            }
            self.variable(&mut c)?;
        } else if c.take_word("const") {
            let id = c.id("v")?;
            let Some(value) = self.constant(&mut c)? else { return c.fail("a constant is expected") };
            self.define(&c, id, value)?;
            self.constants.entry(value).or_insert(ValueId(id));
        } else if let Some(id) = c.take_id("bb") {
            c.sign(':')?;
            if id as usize != self.blocks.len() {
                return c.fail(format!("bb{} is expected", self.blocks.len()));
            }
            self.blocks.push(self.function.insts.next_id());
        } else {
            if self.blocks.is_empty() {
                return c.fail("`bb0:` is expected before the first instruction");
            }
            self.inst(&mut c)?;
        }
        c.end()
    }

    fn variable(&mut self, c: &mut Cursor) -> Result<()> {
        let mut var = Variable { name: c.text()?, ty: None, param: None, scope: None, loc: LocId(0) };
        while !c.is_at_end() {
            if let Some(Token::At(_)) = c.peek() {
                var.loc = self.tables.loc(c)?;
            } else if c.take_word("param") {
                var.param = Some(c.number()?);
            } else if let Some(id) = c.take_id("ty") {
                var.ty = Some(TypeId(id));
            } else {
                var.scope = Some(ScopeId(c.id("scope")?));
            }
        }
        self.function.vars.push(var);
        Ok(())
    }

    fn define(&mut self, c: &Cursor, id: u32, value: Value) -> Result<()> {
        if self.values.insert(id, value).is_some() {
            return c.fail(format!("v{id} is defined twice"));
        }
        Ok(())
    }

    fn constant(&mut self, c: &mut Cursor) -> Result<Option<Value>> {
        let written = ty(c)?;
        let ty = written.unwrap_or(Ty::Ptr);
        if let Some((symbol, offset)) = self.tables.address(c)? {
            return Ok(Some(Value { ty, kind: ValueKind::Address(symbol, offset) }));
        }
        let kind = match c.peek() {
            Some(Token::Number(_)) if written.is_some() => ValueKind::Int(c.number()?),
            Some(Token::Word(word)) => {
                let kind = match (word.as_str(), written) {
                    ("true", None) => return self.boolean(c, -1),
                    ("false", None) => return self.boolean(c, 0),
                    ("null", _) => ValueKind::Null,
                    ("undef", Some(_)) => ValueKind::Undef,
                    ("zero", Some(_)) => ValueKind::Zero,
                    (word, _) => match id_number(word, "bb") {
                        Some(block) => ValueKind::Block(BlockId(block)),
                        None => return Ok(None),
                    },
                };
                c.next();
                kind
            }
            _ => return Ok(None),
        };
        Ok(Some(Value { ty, kind }))
    }

    fn boolean(&self, c: &mut Cursor, number: i64) -> Result<Option<Value>> {
        c.next();
        Ok(Some(Value { ty: Ty::Int(1), kind: ValueKind::Int(number) }))
    }

    fn operand(&mut self, c: &mut Cursor) -> Result<ValueId> {
        if let Some(id) = c.take_id("v") {
            self.used.push((id, c.line));
            return Ok(ValueId(id));
        }
        let Some(value) = self.constant(c)? else { return c.fail("a value or a constant with its type is expected") };
        if let Some(&id) = self.constants.get(&value) {
            return Ok(id);
        }
        let id = self.next_constant;
        self.next_constant = self.next_constant.saturating_add(1);
        self.define(c, id, value)?;
        self.constants.insert(value, ValueId(id));
        Ok(ValueId(id))
    }

    fn operands<C: FromIterator<ValueId>>(&mut self, c: &mut Cursor) -> Result<C> {
        c.sign('(')?;
        c.list(')', |c| self.operand(c))
    }

    /// The operand after a comma.
    fn and(&mut self, c: &mut Cursor) -> Result<ValueId> {
        c.sign(',')?;
        self.operand(c)
    }

    fn block(&mut self, c: &mut Cursor) -> Result<BlockId> {
        c.id("bb").map(BlockId)
    }

    fn inst(&mut self, c: &mut Cursor) -> Result<()> {
        let result = c.take_id("v");
        if result.is_some() {
            c.sign('=')?;
        }
        let word = c.word("an instruction")?;
        // These have a type that goes without saying.
        let fixed = match word {
            "alloca" | "offset" => Some(Ty::Ptr),
            "cmp" => Some(Ty::Int(1)),
            "store" | "copy" | "fill" | "bind" | "return" | "jump" | "branch" | "switch" | "indirect"
            | "unreachable" => Some(Ty::Void),
            _ => None,
        };
        let ty = match fixed {
            Some(ty) => ty,
            None => match ty(c)? {
                Some(ty) => ty,
                None => return c.fail(format!("`{word}` needs the type of its result")),
            },
        };
        let op = self.op(c, word)?;
        let loc = self.tables.loc(c)?;
        let id = self.function.insts.push(Inst { op, result: result.map(ValueId), loc });
        match result {
            Some(result) => self.define(c, result, Value { ty, kind: ValueKind::Inst(id) }),
            None => Ok(()),
        }
    }

    fn op(&mut self, c: &mut Cursor, word: &str) -> Result<Op> {
        Ok(match word {
            "alloca" => {
                let size = c.number()?;
                let count = if c.take_word("x") { Some(self.operand(c)?) } else { None };
                Op::Alloca { size, count, var: c.take_id("var").map(VarId) }
            }
            "load" => Op::Load { ptr: self.operand(c)? },
            "store" => {
                let value = self.operand(c)?;
                if !c.take_word("to") {
                    return c.fail("`to` and an address are expected");
                }
                Op::Store { ptr: self.operand(c)?, value }
            }
            "offset" => self.offset(c)?,
            "cmp" => match meaning(&names::CMP, c.word("a comparison")?) {
                Some(op) => Op::Cmp { op, a: self.operand(c)?, b: self.and(c)? },
                None => return c.fail("unknown comparison"),
            },
            "select" => Op::Select { cond: self.operand(c)?, a: self.and(c)?, b: self.and(c)? },
            "phi" => self.phi(c)?,
            "call" => Op::Call(Box::new(self.call(c)?)),
            "copy" => Op::Copy { dst: self.operand(c)?, src: self.and(c)?, len: self.and(c)? },
            "fill" => Op::Fill { dst: self.operand(c)?, byte: self.and(c)?, len: self.and(c)? },
            "extract" => Op::Extract { aggregate: self.operand(c)?, offset: at(c)? },
            "insert" => Op::Insert { aggregate: self.operand(c)?, value: self.and(c)?, offset: at(c)? },
            "atomic" => Op::Atomic { ptr: self.operand(c)?, value: self.and(c)? },
            "va_arg" => Op::VaArg { list: self.operand(c)? },
            "opaque" => {
                let what = c.text()?;
                let clobbers = c.take_word("clobbers");
                Op::Opaque { what, operands: self.operands(c)?, clobbers }
            }
            "bind" => {
                let var = VarId(c.id("var")?);
                Op::Bind { var, value: self.and(c)? }
            }
            "return" => {
                let empty = c.is_at_end() || is_position(c);
                Op::Return { value: if empty { None } else { Some(self.operand(c)?) } }
            }
            "jump" => Op::Jump { to: self.block(c)? },
            "branch" => {
                let cond = self.operand(c)?;
                c.sign(',')?;
                let then = self.block(c)?;
                c.sign(',')?;
                Op::Branch { cond, then, els: self.block(c)? }
            }
            "switch" => {
                let value = self.operand(c)?;
                c.sign('[')?;
                let cases = c.list(']', |c| {
                    let value = c.number()?;
                    c.sign(':')?;
                    Ok(Case { value, to: self.block(c)? })
                })?;
                if !c.take_word("default") {
                    return c.fail("`default` and a block are expected");
                }
                Op::Switch { value, cases, default: self.block(c)? }
            }
            "indirect" => {
                let address = self.operand(c)?;
                c.sign('[')?;
                Op::IndirectJump { address, targets: c.list(']', |c| self.block(c))? }
            }
            "unreachable" => Op::Unreachable,
            other => {
                if let Some(op) = meaning(&names::BIN, other) {
                    Op::Bin { op, a: self.operand(c)?, b: self.and(c)? }
                } else if let Some(op) = meaning(&names::CAST, other) {
                    Op::Cast { op, a: self.operand(c)? }
                } else {
                    return c.fail(format!("unknown instruction `{other}`"));
                }
            }
        })
    }

    fn offset(&mut self, c: &mut Cursor) -> Result<Op> {
        let base = self.operand(c)?;
        let (mut bytes, mut indices) = (0i64, Vec::new());
        while c.take('+') {
            if let Some(Token::Number(_)) = c.peek() {
                bytes = bytes.wrapping_add(c.number()?);
            } else {
                let index = self.operand(c)?;
                c.sign('*')?;
                indices.push((index, c.number()?));
            }
        }
        let member = if c.take_word("of") { Some(MemberId(c.id("mem")?)) } else { None };
        Ok(Op::Offset { base, bytes, indices: indices.into(), member })
    }

    fn phi(&mut self, c: &mut Cursor) -> Result<Op> {
        let mut incoming = Vec::new();
        loop {
            c.sign('[')?;
            let from = self.block(c)?;
            c.sign(':')?;
            incoming.push((from, self.operand(c)?));
            c.sign(']')?;
            if !c.take(',') {
                return Ok(Op::Phi { incoming });
            }
        }
    }

    fn call(&mut self, c: &mut Cursor) -> Result<Call> {
        let callee = if c.take('*') {
            Callee::Value(self.operand(c)?)
        } else if c.take_word("intrinsic") {
            Callee::Intrinsic(c.text()?)
        } else if c.take_word("asm") {
            Callee::Asm(c.take_word("clobbers"))
        } else {
            match self.tables.symbol(c, true)? {
                Some(symbol) => Callee::Symbol(symbol),
                None => return c.fail("what is called is expected"),
            }
        };
        Ok(Call { callee, args: self.operands(c)?, noreturn: c.take_word("noreturn") })
    }

    fn finish(mut self, head: usize) -> Result<Function> {
        for (id, line) in &self.used {
            if !self.values.contains_key(id) {
                return Err(TextError { line: *line, message: format!("v{id} is never defined") });
            }
        }
        let count = self.values.keys().max().map_or(0, |&id| id as usize + 1);
        if count > self.values.len() + LARGEST_GAP {
            return Err(TextError { line: head, message: "the numbers of the values have large gaps".to_string() });
        }
        let unused = Value { ty: Ty::Void, kind: ValueKind::Undef };
        self.function.values = (0..count as u32).map(|id| self.values.get(&id).copied().unwrap_or(unused)).collect();
        let ends = self.blocks.iter().skip(1).copied().chain([self.function.insts.next_id()]);
        self.function.blocks = self.blocks.iter().zip(ends).map(|(&first, end)| Block { first, end }).collect();
        Ok(self.function)
    }
}

fn at(c: &mut Cursor) -> Result<u64> {
    if c.take_word("at") { c.number() } else { c.fail("`at` and an offset are expected") }
}

/// Tells `return @loc3` and `return @t.c:12:5` from the return of an address.
fn is_position(c: &Cursor) -> bool {
    match c.peek() {
        Some(Token::At(name)) => id_number(name, "loc").is_some() || c.peek_second() == Some(&Token::Sign(':')),
        _ => false,
    }
}
