//! Members of structs whose value itself is of interest: somebody asks whether it is null, and does not go on to look at
//! what it leads to.
//!
//! ```c
//! if (c->host)              // not watched: a pointer to a block that is gone
//!     puts(c->host);        //   must not come here
//! n = c->buf ? 1 : 0;       // watched: null tells another story than a dangling pointer
//! ```
//!
//! # Invariants
//! - Whatever is not understood is watched.

use std::collections::BTreeSet;

use caulk_analysis::for_each_operand;
use caulk_base::IdVec;
use caulk_ir::{BlockId, CmpOp, Function, InstId, MemberId, Op, Program, TypeKind, Unit, ValueId, ValueKind};

/// Struct and member, by their names.
pub type Watched = BTreeSet<(String, String)>;

pub fn of(program: &Program) -> Watched {
    let mut all = Watched::new();
    for unit in program.units.iter() {
        let mut members: BTreeSet<MemberId> = BTreeSet::new();
        for function in unit.functions.iter() {
            collect(function, &mut members);
        }
        all.extend(members.into_iter().flat_map(|member| names(unit, member)));
    }
    all
}

/// Is the member that an expression names watched? Of `a->b->c`, any `c` counts.
pub fn is_watched(watched: &Watched, type_name: &str, value: &str) -> bool {
    let Some((base, member)) = value.rsplit_once("->").or_else(|| value.rsplit_once('.')) else { return true };
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let word = type_name.trim_start_matches("const ").trim_start_matches("struct ").trim_end_matches(['*', ' ']);
    let record = (is_word(base) && is_word(word)).then_some(word);
    !is_word(member)
        || watched.iter().any(|(of, name)| name == member && record.is_none_or(|record| of.is_empty() || of == record))
}

fn collect(function: &Function, members: &mut BTreeSet<MemberId>) {
    let mut readers: Option<Readers> = None;
    for (at, inst) in function.insts.iter_ids() {
        let (Op::Load { ptr }, Some(value)) = (&inst.op, inst.result) else { continue };
        let Some(member) = member_at(function, *ptr) else { continue };
        if is_just_set(function, at, member) {
            continue;
        }
        let readers = readers.get_or_insert_with(|| readers_of(function));
        if !members.contains(&member) && is_looked_at(function, readers, value, member) {
            members.insert(member);
        }
    }
}

/// `c->host = strdup(name); if (!c->host)`: a question about the new value.
fn is_just_set(function: &Function, at: InstId, member: MemberId) -> bool {
    let before = (0..at.0).rev().map(|at| &function.insts[InstId(at)].op);
    let within = before.take_while(|op| !matches!(op, Op::Call(_)) && !op.is_terminator());
    within.into_iter().any(|op| matches!(op, Op::Store { ptr, .. } if member_at(function, *ptr) == Some(member)))
}

/// For each value the instructions that read it.
type Readers = IdVec<ValueId, Vec<InstId>>;

fn readers_of(function: &Function) -> Readers {
    let mut all = IdVec::filled(function.values.len(), Vec::new());
    for (id, inst) in function.insts.iter_ids() {
        for_each_operand(&inst.op, |value| all[value].push(id));
    }
    all
}

fn member_at(function: &Function, ptr: ValueId) -> Option<MemberId> {
    match function.values[ptr].kind {
        ValueKind::Inst(inst) => match function.insts[inst].op {
            Op::Offset { member, .. } => member,
            _ => None,
        },
        _ => None,
    }
}

/// Does the function make anything of the pointer itself?
fn is_looked_at(function: &Function, readers: &Readers, value: ValueId, member: MemberId) -> bool {
    readers[value].iter().any(|&at| match &function.insts[at].op {
        Op::Cmp { op, a, b } => {
            let other = if *a == value { *b } else { *a };
            let null = matches!(function.values[other].kind, ValueKind::Null | ValueKind::Zero | ValueKind::Int(0));
            let test = function.insts[at].result.filter(|_| null);
            let differs = *op == CmpOp::Ne;
            !test.is_some_and(|test| {
                readers[test].iter().all(|&at| match function.insts[at].op {
                    Op::Branch { then, els, .. } => {
                        let (there, nothing) = if differs { (then, els) } else { (els, then) };
                        is_used_in(function, there, nothing, value, member)
                    }
                    _ => false,
                })
            })
        }
        Op::Store { value: given, .. } => *given == value,
        Op::Load { .. } | Op::Offset { .. } | Op::Call(_) | Op::Copy { .. } | Op::Fill { .. } | Op::Bind { .. } => {
            false
        }
        _ => true,
    })
}

/// `a && b`: the next test leads to the same place if it fails.
fn is_used_in(function: &Function, from: BlockId, nothing: BlockId, value: ValueId, member: MemberId) -> bool {
    const TESTS: usize = 8;
    let mut block = from;
    for _ in 0..TESTS {
        let used = function.block_insts(block).any(|(_, inst)| match &inst.op {
            Op::Load { ptr } => *ptr == value || member_at(function, *ptr) == Some(member),
            Op::Store { ptr, .. } | Op::Offset { base: ptr, .. } => *ptr == value,
            Op::Call(call) => call.args.contains(&value),
            _ => false,
        });
        if used {
            return true;
        }
        block = match function.terminator(block).1.op {
            Op::Branch { then, els, .. } if els == nothing => then,
            Op::Branch { then, els, .. } if then == nothing => els,
            _ => return false,
        };
    }
    false
}

fn names(unit: &Unit, member: MemberId) -> Vec<(String, String)> {
    let member = &unit.members[member];
    let fields = unit.types.iter().filter_map(|known| match &known.kind {
        TypeKind::Struct(fields) | TypeKind::Union(fields) if known.size == member.size => Some((known, fields)),
        _ => None,
    });
    let named = fields.filter(|(known, _)| known.name == member.record || known.name.is_empty());
    named
        .flat_map(|(known, fields)| {
            let here = fields.iter().filter(|field| field.offset == member.offset);
            here.map(|field| (known.name.clone(), field.name.clone()))
        })
        .collect()
}
