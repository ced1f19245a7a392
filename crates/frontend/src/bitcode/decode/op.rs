//! Instructions of the flat buffer; the C++ half is `cpp/instructions.cpp` and
//! `cpp/calls.cpp`.

use caulk_ir::{BinOp, BlockId, Call, Callee, Case, CastOp, CmpOp, Inst, LocId, MemberId, Op, ValueId, VarId};

use super::Body;
use crate::bitcode::reader::{Reader, Result};

const CMP: [CmpOp; 11] = [
    CmpOp::Eq,
    CmpOp::Ne,
    CmpOp::Ult,
    CmpOp::Ule,
    CmpOp::Ugt,
    CmpOp::Uge,
    CmpOp::Slt,
    CmpOp::Sle,
    CmpOp::Sgt,
    CmpOp::Sge,
    CmpOp::Float,
];

const BIN: [BinOp; 14] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::UDiv,
    BinOp::SDiv,
    BinOp::URem,
    BinOp::SRem,
    BinOp::And,
    BinOp::Or,
    BinOp::Xor,
    BinOp::Shl,
    BinOp::LShr,
    BinOp::AShr,
    BinOp::Float,
];

const CAST: [CastOp; 7] =
    [CastOp::Trunc, CastOp::ZExt, CastOp::SExt, CastOp::PtrToInt, CastOp::IntToPtr, CastOp::Same, CastOp::Float];

impl Body<'_> {
    fn value(&self, r: &mut Reader) -> Result<ValueId> {
        r.index(self.values).map(ValueId)
    }

    fn block(&self, r: &mut Reader) -> Result<BlockId> {
        r.index(self.blocks).map(BlockId)
    }
}

pub fn inst(r: &mut Reader, body: &Body) -> Result<Inst> {
    let tag = r.byte()?;
    let loc = LocId(r.index(body.sizes.locs)?);
    let result = r.optional(body.values)?.map(ValueId);
    Ok(Inst { op: op(r, body, tag)?, result, loc })
}

fn op(r: &mut Reader, body: &Body, tag: u8) -> Result<Op> {
    Ok(match tag {
        0 => Op::Alloca {
            size: r.number()?,
            count: r.optional(body.values)?.map(ValueId),
            var: r.optional(body.vars)?.map(VarId),
        },
        1 => Op::Load { ptr: body.value(r)? },
        2 => Op::Store { ptr: body.value(r)?, value: body.value(r)? },
        3 => Op::Offset {
            base: body.value(r)?,
            bytes: r.signed()?,
            indices: r.list(|r| Ok((body.value(r)?, r.signed()?)))?,
            member: r.optional(body.sizes.members)?.map(MemberId),
        },
        4 => Op::Cmp { op: one_of(r, &CMP)?, a: body.value(r)?, b: body.value(r)? },
        5 => Op::Bin { op: one_of(r, &BIN)?, a: body.value(r)?, b: body.value(r)? },
        6 => Op::Cast { op: one_of(r, &CAST)?, a: body.value(r)? },
        7 => Op::Select { cond: body.value(r)?, a: body.value(r)?, b: body.value(r)? },
        8 => Op::Phi { incoming: r.list(|r| Ok((body.block(r)?, body.value(r)?)))? },
        9 => Op::Call(Box::new(call(r, body)?)),
        10 => Op::Copy { dst: body.value(r)?, src: body.value(r)?, len: body.value(r)? },
        11 => Op::Fill { dst: body.value(r)?, byte: body.value(r)?, len: body.value(r)? },
        12 => Op::Extract { aggregate: body.value(r)?, offset: r.number()? },
        13 => Op::Insert { aggregate: body.value(r)?, value: body.value(r)?, offset: r.number()? },
        14 => Op::Atomic { ptr: body.value(r)?, value: body.value(r)? },
        15 => Op::VaArg { list: body.value(r)? },
        16 => Op::Opaque { what: r.text()?, operands: r.list(|r| body.value(r))?, clobbers: r.flag()? },
        17 => Op::Bind { var: VarId(r.index(body.vars)?), value: body.value(r)? },
        18 => Op::Return { value: r.optional(body.values)?.map(ValueId) },
        19 => Op::Jump { to: body.block(r)? },
        20 => Op::Branch { cond: body.value(r)?, then: body.block(r)?, els: body.block(r)? },
        21 => Op::Switch {
            value: body.value(r)?,
            cases: r.list(|r| Ok(Case { value: r.signed()?, to: body.block(r)? }))?,
            default: body.block(r)?,
        },
        22 => Op::IndirectJump { address: body.value(r)?, targets: r.list(|r| body.block(r))? },
        23 => Op::Unreachable,
        _ => return r.damaged("an unknown instruction"),
    })
}

fn call(r: &mut Reader, body: &Body) -> Result<Call> {
    let callee = match r.byte()? {
        0 => Callee::Symbol(body.sizes.symbol(r)?),
        1 => Callee::Value(body.value(r)?),
        2 => Callee::Intrinsic(r.text()?),
        3 => Callee::Asm(r.flag()?),
        _ => return r.damaged("an unknown kind of callee"),
    };
    Ok(Call { callee, args: r.list(|r| body.value(r))?, noreturn: r.flag()? })
}

fn one_of<T: Copy>(r: &mut Reader, table: &[T]) -> Result<T> {
    Ok(table[r.index(table.len())? as usize])
}
