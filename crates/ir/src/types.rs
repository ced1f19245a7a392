//! Machine types of values, and the source types that debug information knows.

use caulk_base::define_id;
use serde::{Deserialize, Serialize};

/// The machine type of a value: all the analysis needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ty {
    Void,
    /// An integer of so many bits.
    Int(u32),
    Ptr,
    Float,
    /// A first-class struct, array or vector of so many bytes.
    Aggregate(u64),
}

define_id!(
    /// A source type, from debug information.
    TypeId,
    "ty"
);

/// A type as the programmer wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebugType {
    /// `node` of `struct node`, `size_t` of a typedef; empty if it has none.
    pub name: String,
    /// Size in bytes; 0 if unknown.
    pub size: u64,
    pub kind: TypeKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypeKind {
    /// An integer, floating or boolean type.
    Base,
    Enum,
    /// `None`: `void *`.
    Pointer(Option<TypeId>),
    Typedef(Option<TypeId>),
    Const(Option<TypeId>),
    /// `volatile`, `restrict`, `_Atomic`.
    Qualified(Option<TypeId>),
    Array(Option<TypeId>),
    Struct(Vec<Field>),
    Union(Vec<Field>),
    Function,
    Other,
}

define_id!(
    /// A pointer in a struct that some instruction takes the address of.
    MemberId,
    "mem"
);

/// A pointer in a struct, by the innermost struct that has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member {
    /// `node` of `struct node`; a typedef's name for a struct without one.
    pub record: String,
    /// Of the struct, in bytes: namesakes are told apart by it.
    pub size: u64,
    /// In bytes from the struct's start.
    pub offset: u64,
}

/// A member of a struct or union.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Empty for an unnamed member.
    pub name: String,
    /// Offset in bytes (of the storage unit for a bit-field).
    pub offset: u64,
    pub ty: Option<TypeId>,
}
