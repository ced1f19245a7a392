//! The words of the text form, for printer and parser alike.

use crate::{BinOp, CastOp, CmpOp, Linkage};

pub const LINKAGE: [(&str, Linkage); 5] = [
    ("internal", Linkage::Internal),
    ("external", Linkage::External),
    ("weak", Linkage::Weak),
    ("common", Linkage::Common),
    ("available_externally", Linkage::AvailableExternally),
];

pub const CMP: [(&str, CmpOp); 11] = [
    ("eq", CmpOp::Eq),
    ("ne", CmpOp::Ne),
    ("ult", CmpOp::Ult),
    ("ule", CmpOp::Ule),
    ("ugt", CmpOp::Ugt),
    ("uge", CmpOp::Uge),
    ("slt", CmpOp::Slt),
    ("sle", CmpOp::Sle),
    ("sgt", CmpOp::Sgt),
    ("sge", CmpOp::Sge),
    ("float", CmpOp::Float),
];

pub const BIN: [(&str, BinOp); 14] = [
    ("add", BinOp::Add),
    ("sub", BinOp::Sub),
    ("mul", BinOp::Mul),
    ("udiv", BinOp::UDiv),
    ("sdiv", BinOp::SDiv),
    ("urem", BinOp::URem),
    ("srem", BinOp::SRem),
    ("and", BinOp::And),
    ("or", BinOp::Or),
    ("xor", BinOp::Xor),
    ("shl", BinOp::Shl),
    ("lshr", BinOp::LShr),
    ("ashr", BinOp::AShr),
    ("float", BinOp::Float),
];

pub const CAST: [(&str, CastOp); 7] = [
    ("trunc", CastOp::Trunc),
    ("zext", CastOp::ZExt),
    ("sext", CastOp::SExt),
    ("ptrtoint", CastOp::PtrToInt),
    ("inttoptr", CastOp::IntToPtr),
    ("same", CastOp::Same),
    ("tofloat", CastOp::Float),
];

pub fn word<T: PartialEq>(table: &[(&'static str, T)], item: &T) -> &'static str {
    table.iter().find(|(_, other)| other == item).map_or("?", |(word, _)| word)
}

pub fn meaning<T: Copy>(table: &[(&'static str, T)], word: &str) -> Option<T> {
    table.iter().find(|(other, _)| *other == word).map(|(_, item)| *item)
}
