//! Values as terms: equal terms are equal values, in whichever of the two functions they come up.
//!
//! ```text
//! v7 = cast trunc i8 (v6: bool = -1)      Int(1) of i8, so `ok = -1` is not what `return -1` returned
//! v9 = cmp ne v3, null                    Xor(Eq(v3, null), true): every comparison is Eq, Ult or Slt, or not that
//! v4 = load ptr (v0 + 8)                  Load(Param 0 + 8, memory): the same as long as nothing was written
//! ```
//!
//! # Invariants
//! - A term is made once: two of them are equal if their numbers are.
//! - What is not known exactly (floating arithmetic, constants that the representation leaves out) is known by its place
//!   in the text, or is `Lossy`, which equals nothing but itself.

use caulk_base::{FxHashMap, Id, IdVec};
use caulk_ir::{BinOp, CastOp, CmpOp, InstId, Ty, ValueId};

/// A value, whichever function it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(u32);

impl Id for TermId {
    fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The function before the patch, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Which {
    Old,
    New,
}

/// What has a value at a point of both functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    Value(Which, ValueId),
    /// What the new function alone has written to an address.
    Written(TermId),
    /// Bytes of a slot that nobody else knows: from, and how many.
    Cell(Which, InstId, i64, i64),
    /// All memory, as far as both functions see the same.
    Memory,
}

/// A pair of instructions that the two functions come to together, numbered as they are met.
pub type Meeting = u32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// Sign-extended, so `i1` true is -1.
    Int(i64),
    Null,
    /// All bytes are zero.
    Zero,
    /// A variable that was not set.
    Undef,
    /// The address of something with a name.
    Symbol(u32, i64),
    Param(u32),
    /// A stack slot of both functions.
    Slot(u32),
    /// A stack slot of the new function alone.
    OwnSlot(u32),
    /// A stack slot of one function that nobody else knows.
    Private(Which, InstId),
    /// The address of a label.
    Label(u32),
    /// Memory when the function is entered.
    Memory,
    /// The result of what both functions did together.
    Result(Meeting),
    /// Memory after that.
    After(Meeting),
    /// Memory after a store.
    Stored {
        memory: TermId,
        ptr: TermId,
        value: TermId,
    },
    /// Memory after a call that writes no pointer that anybody has then.
    Calm(TermId, Meeting),
    /// The result of what one function did alone.
    Alone(Which, InstId),
    /// What is known of a value where paths meet: nothing but what else it equals.
    Joined(Meeting, Member),
    /// A constant or an operation that is known by its place.
    Placed(u32, u32, Vec<TermId>),
    Lossy(Which, InstId, u32),
    Load(TermId, TermId),
    Offset(TermId, i64, Vec<(TermId, i64)>),
    Cmp(CmpOp, TermId, TermId),
    Bin(BinOp, TermId, TermId),
    Cast(CastOp, TermId),
    Select(TermId, TermId, TermId),
    Extract(TermId, u64),
    /// So many times the same byte.
    Filled(TermId),
    /// Values next to each other, by offset.
    Parts(Vec<(i64, TermId)>),
    Insert(TermId, TermId, u64),
}

struct Known {
    term: Term,
    ty: Ty,
    /// Means the same whenever it is come to: nothing in it was made in the course of the function.
    timeless: bool,
    /// There is something in it that is not known.
    lossy: bool,
}

#[derive(Default)]
pub struct Terms {
    all: IdVec<TermId, Known>,
    ids: FxHashMap<(Term, Ty), TermId>,
}

impl Terms {
    pub fn get(&self, id: TermId) -> &Term {
        &self.all[id].term
    }

    pub fn ty(&self, id: TermId) -> Ty {
        self.all[id].ty
    }

    pub fn is_timeless(&self, id: TermId) -> bool {
        self.all[id].timeless
    }

    pub fn is_lossy(&self, id: TermId) -> bool {
        self.all[id].lossy
    }

    /// A term as it is.
    pub fn put(&mut self, term: Term, ty: Ty) -> TermId {
        let key = (term, ty);
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let (mut timeless, mut lossy) = match &key.0 {
            Term::Lossy(..) => (false, true),
            Term::Result(_) | Term::After(_) | Term::Calm(..) | Term::Alone(..) | Term::Joined(..) => (false, false),
            _ => (true, false),
        };
        each_part(&key.0, &mut |part| {
            timeless &= self.all[part].timeless;
            lossy |= self.all[part].lossy;
        });
        let id = self.all.push(Known { term: key.0.clone(), ty, timeless, lossy });
        self.ids.insert(key, id);
        id
    }

    pub fn int(&mut self, value: i64, bits: u32) -> TermId {
        self.put(Term::Int(super::fold::extended(value, bits)), Ty::Int(bits))
    }

    pub fn truth(&mut self, value: bool) -> TermId {
        self.int(-i64::from(value), 1)
    }

    /// The number that a term is; null is 0.
    pub fn number(&self, id: TermId) -> Option<i64> {
        match self.all[id].term {
            Term::Int(value) => Some(value),
            Term::Null => Some(0),
            _ => None,
        }
    }

    pub fn is_constant(&self, id: TermId) -> bool {
        matches!(self.all[id].term, Term::Int(_) | Term::Null | Term::Zero)
    }

    /// What an address is counted from.
    pub fn root(&self, id: TermId) -> TermId {
        let mut at = id;
        while let Term::Offset(base, ..) = self.all[at].term {
            at = base;
        }
        at
    }

    /// The address of a variable.
    pub fn is_named(&self, id: TermId) -> bool {
        matches!(self.all[id].term, Term::Slot(_) | Term::OwnSlot(_) | Term::Symbol(..))
    }

    /// The root and the number of bytes behind it, if that is known.
    pub fn place(&self, id: TermId) -> (TermId, Option<i64>) {
        match &self.all[id].term {
            Term::Offset(base, bytes, open) => {
                let (root, before) = self.place(*base);
                (root, before.filter(|_| open.is_empty()).map(|before| before.wrapping_add(*bytes)))
            }
            Term::Symbol(_, bytes) => (id, Some(*bytes)),
            _ => (id, Some(0)),
        }
    }

    /// Whether what lies at two addresses, each with the type of what is there, has nothing in common.
    pub fn are_apart(&self, (a, a_ty): (TermId, Ty), (b, b_ty): (TermId, Ty)) -> bool {
        let ((a_root, a_at), (b_root, b_at)) = (self.place(a), self.place(b));
        let (a_term, b_term) = (&self.all[a_root].term, &self.all[b_root].term);
        let same = match (a_term, b_term) {
            (Term::Symbol(a, _), Term::Symbol(b, _)) => a == b,
            _ => a_root == b_root,
        };
        if same {
            let (Some(a_at), Some(b_at)) = (a_at, b_at) else { return false };
            return a_at.saturating_add(size(a_ty)) <= b_at || b_at.saturating_add(size(b_ty)) <= a_at;
        }
        let own = |term: &Term| matches!(term, Term::Slot(_) | Term::OwnSlot(_) | Term::Private(..));
        let named = |term: &Term| own(term) || matches!(term, Term::Symbol(..));
        named(a_term) && named(b_term)
            || own(a_term) && matches!(b_term, Term::Param(_))
            || own(b_term) && matches!(a_term, Term::Param(_))
    }

    /// The same term with its parts replaced, as far as all of them have a replacement.
    pub fn rebuilt(&mut self, id: TermId, with: &mut dyn FnMut(TermId) -> Option<TermId>) -> Option<TermId> {
        if self.is_timeless(id) {
            return Some(id);
        }
        if let Some(found) = with(id) {
            return Some(found);
        }
        self.paired(id, id, &mut |terms, part, _| terms.rebuilt(part, with))
    }

    /// A term of the shape that two have in common, with parts for each pair of theirs.
    pub fn paired(&mut self, a: TermId, b: TermId, with: &mut Pairing<'_>) -> Option<TermId> {
        let ty = self.ty(a);
        if ty != self.ty(b) {
            return None;
        }
        match (self.all[a].term.clone(), self.all[b].term.clone()) {
            (Term::Offset(base, bytes, indices), Term::Offset(other, far, others)) if bytes == far => {
                let base = with(self, base, other)?;
                if indices.len() != others.len() {
                    return None;
                }
                let mut made = Vec::new();
                for ((index, scale), (other, times)) in indices.into_iter().zip(others) {
                    made.push((with(self, index, other).filter(|_| scale == times)?, scale));
                }
                Some(self.offset(base, bytes, made))
            }
            (Term::Cmp(op, x, y), Term::Cmp(other, p, q)) if op == other => {
                let (x, y) = (with(self, x, p)?, with(self, y, q)?);
                Some(self.cmp(op, x, y))
            }
            (Term::Bin(op, x, y), Term::Bin(other, p, q)) if op == other => {
                let (x, y) = (with(self, x, p)?, with(self, y, q)?);
                Some(self.bin(op, x, y, ty))
            }
            (Term::Cast(op, x), Term::Cast(other, p)) if op == other => {
                let x = with(self, x, p)?;
                Some(self.cast(op, x, ty))
            }
            (Term::Load(x, y), Term::Load(p, q)) => {
                let (x, y) = (with(self, x, p)?, with(self, y, q)?);
                Some(self.put(Term::Load(x, y), ty))
            }
            _ => None,
        }
    }
}

/// The term for two parts.
pub type Pairing<'a> = dyn FnMut(&mut Terms, TermId, TermId) -> Option<TermId> + 'a;

fn each_part(term: &Term, visit: &mut dyn FnMut(TermId)) {
    match term {
        Term::Stored { memory: a, ptr: b, value: c } | Term::Select(a, b, c) => {
            [*a, *b, *c].into_iter().for_each(visit)
        }
        Term::Load(a, b) | Term::Cmp(_, a, b) | Term::Bin(_, a, b) | Term::Insert(a, b, _) => {
            [*a, *b].into_iter().for_each(visit);
        }
        Term::Cast(_, a) | Term::Extract(a, _) | Term::Calm(a, _) | Term::Filled(a) => visit(*a),
        Term::Offset(base, _, indices) => {
            visit(*base);
            indices.iter().for_each(|(index, _)| visit(*index));
        }
        Term::Parts(parts) => parts.iter().for_each(|(_, part)| visit(*part)),
        Term::Placed(_, _, parts) => parts.iter().copied().for_each(visit),
        _ => {}
    }
}

/// In bytes.
pub fn size(ty: Ty) -> i64 {
    match ty {
        Ty::Void => 0,
        Ty::Int(bits) => i64::from(bits.div_ceil(8)),
        Ty::Ptr => 8,
        // `long double` is the largest.
        Ty::Float => 16,
        Ty::Aggregate(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
    }
}
