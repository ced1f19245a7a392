//! One translation unit in memory.

use caulk_base::{IdVec, define_id};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::types::{DebugType, Member, MemberId, Ty, TypeId};

define_id!(
    /// A source file, within one unit.
    FileId,
    "file"
);
define_id!(
    /// A source position, within one unit. `LocId(0)` is "nowhere".
    LocId,
    "loc"
);
define_id!(
    /// A lexical scope, within one unit.
    ScopeId,
    "scope"
);
define_id!(
    /// A name that the linker may resolve, within one unit.
    SymbolId,
    "sym"
);
define_id!(
    /// A function body, within one unit.
    LocalFuncId,
    "f"
);
define_id!(
    /// A global variable's definition, within one unit.
    GlobalRef,
    "g"
);
define_id!(
    /// A source variable, within one function.
    VarId,
    "var"
);
define_id!(
    /// A value, within one function.
    ValueId,
    "v"
);
define_id!(
    /// An instruction, within one function, in block order.
    InstId,
    "i"
);
define_id!(
    /// A basic block, within one function; `bb0` is the entry.
    BlockId,
    "bb"
);

/// One translation unit: everything the analysis keeps of it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Unit {
    /// The main source file, as an absolute path.
    pub source: String,
    /// Absolute paths.
    pub files: IdVec<FileId, String>,
    pub locs: IdVec<LocId, Loc>,
    pub scopes: IdVec<ScopeId, Scope>,
    pub types: IdVec<TypeId, DebugType>,
    pub members: IdVec<MemberId, Member>,
    pub symbols: IdVec<SymbolId, Symbol>,
    pub functions: IdVec<LocalFuncId, Function>,
    pub globals: IdVec<GlobalRef, Global>,
    /// What could not be lowered: function name and what was in the way.
    pub gaps: Vec<(String, String)>,
}

/// A position in the source: where the code stands after macro expansion (the macro's use).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Loc {
    /// `None`: compiler-made code.
    pub file: Option<FileId>,
    pub line: u32,
    pub column: u32,
    pub scope: Option<ScopeId>,
    /// The code at this place comes out of a macro.
    pub in_macro: bool,
    /// The source here says `return`.
    pub at_return: bool,
}

/// A lexical block or a function's outermost scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    pub parent: Option<ScopeId>,
    pub file: Option<FileId>,
    pub line: u32,
    pub column: u32,
}

/// A name as the linker sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    pub name: String,
    pub linkage: Linkage,
    pub kind: SymbolKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SymbolKind {
    /// A function with a body in this unit.
    Function(LocalFuncId),
    /// A global variable defined in this unit.
    Global(GlobalRef),
    /// `__attribute__((alias))` or an ifunc: another symbol of this unit.
    Alias(SymbolId),
    /// A function declared here and defined elsewhere, or nowhere we see.
    DeclaredFunction(FunctionAttrs),
    /// A variable declared here and defined elsewhere.
    DeclaredGlobal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Linkage {
    /// `static`
    Internal,
    External,
    /// May be overridden by an external definition.
    Weak,
    /// A tentative definition (`-fcommon`): merged with the others of its name.
    Common,
    /// `inline` without `extern`: this body may be used, another one is the real one.
    AvailableExternally,
}

/// What the compiler knows of a function from its declaration.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct FunctionAttrs {
    pub noreturn: bool,
    /// Neither writes memory nor has other effects.
    pub readonly: bool,
    /// Reads no memory either.
    pub readnone: bool,
    /// `__attribute__((malloc))`: the result aliases nothing.
    pub noalias_result: bool,
    pub returns_twice: bool,
    /// By position; shorter than the call's arguments for varargs.
    pub params: Vec<ParamAttrs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct ParamAttrs {
    pub nocapture: bool,
    pub readonly: bool,
    /// The callee gets a copy of the pointed-to struct.
    pub byval: bool,
    /// The caller passes the place for the result.
    pub sret: bool,
    /// Declared as a pointer to const in the source.
    pub pointer_to_const: bool,
    pub nonnull: bool,
}

/// A global variable with its initial contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    pub symbol: SymbolId,
    pub size: u64,
    pub is_const: bool,
    pub thread_local: bool,
    /// Pointers and integers in the initialiser by offset; everything else is zero or without interest.
    pub init: Vec<Init>,
    /// What `init` does not list is zero. Otherwise strings, floating values or long tables of plain numbers were
    /// left out of it; never an address, except that of a label.
    pub init_complete: bool,
    /// A string literal or another unnamed constant of the compiler.
    pub is_literal: bool,
    pub loc: LocId,
    pub ty: Option<TypeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Init {
    pub offset: u64,
    pub value: InitValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitValue {
    /// Value and size in bytes.
    Int(i64, u8),
    /// The address of a symbol plus an offset.
    Address(SymbolId, i64),
}

/// A function with its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    pub symbol: SymbolId,
    /// Copied from the symbol, for reading.
    pub name: String,
    pub attrs: FunctionAttrs,
    pub variadic: bool,
    pub ret: Ty,
    pub ret_type: Option<TypeId>,
    /// The first values are the parameters, in order.
    pub param_count: u32,
    pub values: IdVec<ValueId, Value>,
    pub insts: IdVec<InstId, Inst>,
    pub blocks: IdVec<BlockId, Block>,
    pub vars: IdVec<VarId, Variable>,
    pub scope: Option<ScopeId>,
    /// The function's name in its definition.
    pub loc: LocId,
}

/// A source variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub ty: Option<TypeId>,
    /// Position among the function's parameter values, from 0 (the first of them for a struct passed in registers).
    pub param: Option<u32>,
    pub scope: Option<ScopeId>,
    pub loc: LocId,
}

/// A half-open range of instructions; the last one is the terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub first: InstId,
    pub end: InstId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Value {
    pub ty: Ty,
    pub kind: ValueKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ValueKind {
    Param(u32),
    Inst(InstId),
    /// An integer constant, sign-extended (so `i1` true is -1); those of more than 64 bits are `Undef` unless they
    /// fit. Of type `Ptr`: an address written as a number, as in `(void *)-1`.
    Int(i64),
    Null,
    /// The address of a function or global, plus an offset; also as an integer of 64 bits.
    Address(SymbolId, i64),
    /// The address of a block, for `goto *p`.
    Block(BlockId),
    /// Undefined, poison, floating or aggregate constants: some value, without a name.
    Undef,
    /// An aggregate or vector of zeros.
    Zero,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inst {
    pub op: Op,
    pub result: Option<ValueId>,
    pub loc: LocId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// A stack slot of `size` bytes, times `count` for variable-length arrays and `alloca`.
    Alloca {
        size: u64,
        count: Option<ValueId>,
        var: Option<VarId>,
    },
    /// Reads a value of the result's type.
    Load {
        ptr: ValueId,
    },
    Store {
        ptr: ValueId,
        value: ValueId,
    },
    /// `base + bytes + Σ index·scale`. An empty index list means a constant offset.
    Offset {
        base: ValueId,
        bytes: i64,
        indices: SmallVec<[(ValueId, i64); 1]>,
        /// The pointer member of a struct that this is the address of.
        member: Option<MemberId>,
    },
    Cmp {
        op: CmpOp,
        a: ValueId,
        b: ValueId,
    },
    Bin {
        op: BinOp,
        a: ValueId,
        b: ValueId,
    },
    Cast {
        op: CastOp,
        a: ValueId,
    },
    Select {
        cond: ValueId,
        a: ValueId,
        b: ValueId,
    },
    Phi {
        incoming: Vec<(BlockId, ValueId)>,
    },
    Call(Box<Call>),
    /// `memcpy`, `memmove`, struct assignment.
    Copy {
        dst: ValueId,
        src: ValueId,
        len: ValueId,
    },
    /// `memset`.
    Fill {
        dst: ValueId,
        byte: ValueId,
        len: ValueId,
    },
    /// The part of a first-class aggregate at a byte offset.
    Extract {
        aggregate: ValueId,
        offset: u64,
    },
    Insert {
        aggregate: ValueId,
        value: ValueId,
        offset: u64,
    },
    /// Reads, and if it succeeds writes: `cmpxchg` and `atomicrmw`. The result is unknown;
    /// `value` may have been stored.
    Atomic {
        ptr: ValueId,
        value: ValueId,
    },
    /// The next variadic argument, through the list at `list`.
    VaArg {
        list: ValueId,
    },
    /// What is not modelled; see the crate's invariants.
    Opaque {
        what: String,
        operands: Vec<ValueId>,
        clobbers: bool,
    },
    /// From here on the source variable has this value.
    Bind {
        var: VarId,
        value: ValueId,
    },
    Return {
        value: Option<ValueId>,
    },
    Jump {
        to: BlockId,
    },
    Branch {
        cond: ValueId,
        then: BlockId,
        els: BlockId,
    },
    Switch {
        value: ValueId,
        cases: Vec<Case>,
        default: BlockId,
    },
    /// `goto *p`.
    IndirectJump {
        address: ValueId,
        targets: Vec<BlockId>,
    },
    Unreachable,
}

/// `case value:` (clang has spread ranges out already, or made comparisons of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub value: i64,
    pub to: BlockId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub callee: Callee,
    pub args: SmallVec<[ValueId; 4]>,
    pub noreturn: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Callee {
    Symbol(SymbolId),
    /// Through a function pointer.
    Value(ValueId),
    /// An LLVM intrinsic without a place of its own here, by its base name (`llvm.objectsize`).
    Intrinsic(String),
    /// Inline assembly; `true`: it clobbers memory.
    Asm(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CmpOp {
    Eq,
    Ne,
    Ult,
    Ule,
    Ugt,
    Uge,
    Slt,
    Sle,
    Sgt,
    Sge,
    /// A floating comparison: the result is not followed.
    Float,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    And,
    Or,
    Xor,
    Shl,
    LShr,
    AShr,
    /// Floating arithmetic.
    Float,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CastOp {
    Trunc,
    ZExt,
    SExt,
    PtrToInt,
    IntToPtr,
    /// Same bits: bitcast, freeze, address-space cast.
    Same,
    /// To, from or between floating types.
    Float,
}

impl Op {
    pub fn is_terminator(&self) -> bool {
        matches!(
            self,
            Op::Return { .. }
                | Op::Jump { .. }
                | Op::Branch { .. }
                | Op::Switch { .. }
                | Op::IndirectJump { .. }
                | Op::Unreachable
        )
    }
}

impl CmpOp {
    /// As it is written in C; signed and unsigned ones look alike there.
    pub fn sign(self) -> &'static str {
        match self {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Ult | CmpOp::Slt => "<",
            CmpOp::Ule | CmpOp::Sle => "<=",
            CmpOp::Ugt | CmpOp::Sgt => ">",
            CmpOp::Uge | CmpOp::Sge => ">=",
            CmpOp::Float => "~",
        }
    }
}

impl BinOp {
    /// As it is written in C.
    pub fn sign(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::UDiv | BinOp::SDiv => "/",
            BinOp::URem | BinOp::SRem => "%",
            BinOp::And => "&",
            BinOp::Or => "|",
            BinOp::Xor => "^",
            BinOp::Shl => "<<",
            BinOp::LShr | BinOp::AShr => ">>",
            BinOp::Float => "~",
        }
    }
}

impl Function {
    /// The instructions of a block with their ids.
    pub fn block_insts(&self, block: BlockId) -> impl DoubleEndedIterator<Item = (InstId, &Inst)> {
        let Block { first, end } = self.blocks[block];
        (first.0..end.0).map(|i| (InstId(i), &self.insts[InstId(i)]))
    }

    pub fn terminator(&self, block: BlockId) -> (InstId, &Inst) {
        let last = InstId(self.blocks[block].end.0 - 1);
        (last, &self.insts[last])
    }

    pub fn params(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.param_count).map(ValueId)
    }
}
