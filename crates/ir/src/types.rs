//! Machine types of values, and the source types that debug information knows.

use caulk_base::define_id;
use serde::{Deserialize, Serialize};

use crate::unit::Unit;

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

impl Unit {
    /// Was it declared as a pointer to a pointer, as out-parameters are?
    pub fn is_pointer_to_pointer(&self, ty: Option<TypeId>) -> bool {
        let pointee = |ty: Option<TypeId>| match self.kind(ty?)? {
            TypeKind::Pointer(inner) => Some(*inner),
            _ => None,
        };
        pointee(ty).is_some_and(|inner| pointee(inner).is_some())
    }

    /// What a type is, behind its names and qualifiers.
    pub fn kind(&self, mut ty: TypeId) -> Option<&TypeKind> {
        // Types nest; the limit is for damaged ones.
        for _ in 0..64 {
            match &self.types.get(ty)?.kind {
                TypeKind::Typedef(inner) | TypeKind::Const(inner) | TypeKind::Qualified(inner) => ty = (*inner)?,
                kind => return Some(kind),
            }
        }
        None
    }

    /// What a pointer points to, or what an array consists of.
    pub fn pointee(&self, ty: TypeId) -> Option<TypeId> {
        match self.kind(ty)? {
            TypeKind::Pointer(inner) | TypeKind::Array(inner) => *inner,
            _ => None,
        }
    }

    /// The members that lead to a byte of a struct or a union, from the outermost in.
    pub fn members_at(&self, ty: TypeId, bytes: i64) -> Vec<&Field> {
        let (mut at, mut rest) = (Some(ty), u64::try_from(bytes).ok());
        let mut found = Vec::new();
        while found.len() < 8
            && let (Some(ty), Some(left)) = (at, rest)
            && let Some(TypeKind::Struct(fields) | TypeKind::Union(fields)) = self.kind(ty)
            && let Some(field) = fields.iter().rev().find(|field| field.offset <= left)
        {
            found.push(field);
            (at, rest) = (field.ty, Some(left - field.offset));
        }
        found
    }

    /// The same as it is written, `u.name`, and the type of the last one.
    pub fn field_at(&self, ty: TypeId, bytes: i64) -> Option<(String, Option<TypeId>)> {
        let members = self.members_at(ty, bytes);
        let names: Vec<&str> =
            members.iter().map(|field| field.name.as_str()).filter(|name| !name.is_empty()).collect();
        (!names.is_empty()).then(|| (names.join("."), members.last().and_then(|field| field.ty)))
    }
}
