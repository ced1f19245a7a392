//! The compact intermediate representation: what is left of a C program when
//! only memory, pointers, comparisons, calls and branches matter.
//!
//! One translation unit is one immutable [`Unit`], self-contained and
//! serialisable, so that the cache stores it as it is. A [`Program`] is all
//! units plus the resolution of every symbol by link unit; later facts lie
//! beside it in vectors indexed by [`FuncId`] and friends.
//!
//! # Invariants
//! - Values are SSA: one definition, which dominates its uses.
//! - Every block ends in exactly one terminator, and only there.
//! - What clang produces and we do not model is [`Op::Opaque`]: it may read
//!   what its operands reach, its result is unknown, and if `clobbers` is set
//!   it may also write or keep what they reach.

mod program;
mod text;
mod types;
mod unit;
mod verify;
mod visit;

pub use program::{ExternId, FuncId, GlobalId, LinkUnit, LinkUnitId, Program, Target, UnitId};
pub use text::{TextError, parse_unit, print_function, print_unit};
pub use types::{DebugType, Field, Member, MemberId, Ty, TypeId, TypeKind};
pub use unit::{
    BinOp, Block, BlockId, Call, Callee, Case, CastOp, CmpOp, FileId, Function, FunctionAttrs, Global, GlobalRef, Init,
    InitValue, Inst, InstId, Linkage, Loc, LocId, LocalFuncId, Op, ParamAttrs, Scope, ScopeId, Symbol, SymbolId,
    SymbolKind, Unit, Value, ValueId, ValueKind, VarId, Variable,
};
pub use verify::{Problem, verify};
