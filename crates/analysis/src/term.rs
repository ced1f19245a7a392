//! Symbolic values of one function, hash-consed in an arena.
//!
//! A term says where a value comes from: a parameter, the initial content of a
//! cell, the address of an object, or an operation on those. Two values with
//! the same term are equal on that path; that is all the alias analysis there is.
//!
//!     char *p = s->buf;      // p: content(*arg0, 8)
//!     s->buf = malloc(4);    // cell (*arg0, 8): addr obj3
//!     free(p);               // releases *content(*arg0, 8), not obj3
//!
//! # Invariants
//! - Integers are mathematical: sign-extended constants, sign extension is the identity.
//! - `Addr { obj: Deref(t), off: 0 }` never exists: it is `t` itself.
//! - A term's `mentions` are all heap objects whose address it was computed from.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};

use caulk_base::{FxHashMap, FxHasher, Id, define_id};
use caulk_ir::{BinOp, CastOp, CmpOp, FuncId};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::index::Index;
use crate::object::{ObjId, Object};
use crate::place::Off;

define_id!(
    /// A symbolic value, within one function's analysis or one summary.
    TermId,
    "t"
);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Term {
    Int(i64),
    Param(u32),
    /// What a cell held when it was last unknown: at entry (`epoch` 0) or after the
    /// instruction `epoch - 1` overwrote the object in an unknown way.
    Content {
        obj: ObjId,
        off: Off,
        epoch: u32,
    },
    Addr {
        obj: ObjId,
        off: i64,
    },
    /// `base + index + bytes`, with a variable index.
    Elem {
        base: TermId,
        index: TermId,
        bytes: i64,
    },
    Func(FuncId),
    /// A value nobody can name: `site` is where it came up, `slot` tells several apart.
    Sym {
        site: u32,
        slot: u32,
    },
    /// These are few, and would make all others larger.
    Pure(Box<PureCall>),
    Bin(BinOp, TermId, TermId),
    Cmp(CmpOp, TermId, TermId),
    Cast(CastOp, u32, TermId),
    Ite(TermId, TermId, TermId),
}

/// The result of a function that depends on its arguments and on memory alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PureCall {
    pub callee: u64,
    pub args: Vec<TermId>,
    pub version: u32,
}

/// Bits of which it is known that they are clear or set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    pub zeros: u64,
    pub ones: u64,
}

/// A term and what is asked of it all the time: a line of the processor's cache.
#[derive(Debug)]
#[repr(align(64))]
struct Entry {
    term: Term,
    mentions: SmallVec<[ObjId; 2]>,
    /// What lies behind it, once somebody looked there.
    deref: Option<ObjId>,
    /// How deep it nests.
    depth: u32,
    /// Means nothing outside the function: it speaks of locals, of blocks' contents, or of values that came up.
    private: bool,
}

/// All terms and objects of one function's analysis.
#[derive(Debug, Default)]
pub struct Terms {
    terms: Vec<Entry>,
    /// `HOLDS` and its like of each term: lists of a state are looked through for these, and a line of the cache has
    /// the answers for many terms.
    marks: Vec<u8>,
    index: Index,
    objects: Vec<Object>,
    /// `HEAP` and its like of each object.
    kinds: Vec<u8>,
    /// Does some term speak of what lies in the object?
    contents: Vec<bool>,
    /// Was a stretch of bytes written anywhere (`stretch.rs`)?
    pub has_stretches: bool,
    /// Objects that lie behind no term.
    object_index: FxHashMap<Object, ObjId>,
    /// By object and term: is the term what lies in the object, or reached through it?
    inside: RefCell<FxHashMap<ObjId, Vec<Option<bool>>>>,
}

/// Of a term: the address of some block went into it.
const HOLDS: u8 = 1;
/// Of a term: a constant.
const CONSTANT: u8 = 2;
/// Of a term: a parameter.
const PARAM: u8 = 4;
/// Of a term: no formula, no comparison and no address.
const PLAIN: u8 = 8;
/// What lies in memory was read as a number, or as a pointer.
const AS_NUMBER: u8 = 1 << 6;
const AS_POINTER: u8 = 1 << 7;

/// Of an object: a block.
const HEAP: u8 = 1;
/// Of an object: it lies behind a value that means nothing outside the function.
const NAMELESS: u8 = 2;

thread_local! {
    /// Memory of functions that are done, for the next ones.
    static SPARE: RefCell<Vec<Terms>> = const { RefCell::new(Vec::new()) };
}

/// Larger tables than this are given back.
const LARGEST_SPARE: usize = 1 << 16;

const _: () = assert!(size_of::<Entry>() == 64);

fn hash_of(term: &Term) -> u64 {
    let mut hasher = FxHasher::default();
    // Most are one of these, and a word takes less time than its parts.
    let pair = |kind: u64, a: u32, b: u32| (kind << 60) ^ (u64::from(a) << 32 | u64::from(b));
    match *term {
        Term::Content { obj, off, epoch } => {
            hasher.write_u64(pair(1, obj.0, epoch));
            match off {
                Off::At(at) => hasher.write_u64(at as u64),
                Off::Elem(index, bytes) => {
                    hasher.write_u64(pair(2, index.0, 0));
                    hasher.write_u64(bytes as u64);
                }
                Off::Some => hasher.write_u64(pair(3, 0, 0)),
            }
        }
        Term::Sym { site, slot } => hasher.write_u64(pair(4, site, slot)),
        Term::Addr { obj, off } => {
            hasher.write_u64(pair(5, obj.0, 0));
            hasher.write_u64(off as u64);
        }
        Term::Cmp(op, a, b) => {
            hasher.write_u64(pair(6, a.0, b.0));
            op.hash(&mut hasher);
        }
        ref other => other.hash(&mut hasher),
    }
    hasher.finish()
}

/// The same term? Most are one of these.
#[inline]
fn is_same(a: &Term, b: &Term) -> bool {
    match (a, b) {
        (Term::Content { obj, off, epoch }, Term::Content { obj: of, off: at, epoch: since }) => {
            obj == of && epoch == since && off == at
        }
        (Term::Sym { site, slot }, Term::Sym { site: by, slot: other }) => site == by && slot == other,
        (Term::Addr { obj, off }, Term::Addr { obj: of, off: at }) => obj == of && off == at,
        _ => a == b,
    }
}

/// What a formula is called that is too deep to be written out.
fn name_of(term: &Term) -> u32 {
    let mut hasher = FxHasher::default();
    term.hash(&mut hasher);
    hasher.finish() as u32
}

/// Terms that nest deeper than this are named, not written out.
const MAX_DEPTH: u32 = 14;
/// The site of such names.
pub(crate) const DEEP: u32 = 0x7ffe_0000;

/// The constant zero: null and false.
pub const ZERO: TermId = TermId(0);
/// The constant one: true.
pub const ONE: TermId = TermId(1);

impl Terms {
    pub fn new() -> Self {
        let mut terms = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        terms.intern(Term::Int(0));
        terms.intern(Term::Int(1));
        terms
    }

    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Leaves its memory to the next function of this thread.
    pub fn leave(mut self) {
        if self.terms.len() <= LARGEST_SPARE {
            self.terms.clear();
            self.marks.clear();
            self.index.clear();
            self.objects.clear();
            self.kinds.clear();
            self.contents.clear();
            self.has_stretches = false;
            self.object_index.clear();
            self.inside.get_mut().clear();
            SPARE.with_borrow_mut(|all| all.push(self));
        }
    }

    fn entry(&self, id: TermId) -> &Entry {
        &self.terms[id.index()]
    }

    pub fn get(&self, id: TermId) -> &Term {
        &self.entry(id).term
    }

    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    pub fn object(&self, id: ObjId) -> &Object {
        &self.objects[id.index()]
    }

    /// Is there a term for something that lies in the object?
    pub fn has_contents(&self, id: ObjId) -> bool {
        self.contents[id.index()]
    }

    /// Heap objects whose address went into this value.
    pub fn mentions(&self, id: TermId) -> &[ObjId] {
        &self.entry(id).mentions
    }

    /// Has `mentions` any?
    #[inline]
    pub fn holds_block(&self, id: TermId) -> bool {
        self.marks[id.index()] & HOLDS != 0
    }

    #[inline]
    pub fn is_constant(&self, id: TermId) -> bool {
        self.marks[id.index()] & CONSTANT != 0
    }

    #[inline]
    pub fn is_param(&self, id: TermId) -> bool {
        self.marks[id.index()] & PARAM != 0
    }

    /// Does the value say nothing of itself: it is no formula, no comparison and no address?
    #[inline]
    pub fn is_plain(&self, id: TermId) -> bool {
        self.marks[id.index()] & PLAIN != 0
    }

    /// What lies in memory was read as a number, and never as a pointer.
    pub fn is_read_as_number(&self, id: TermId) -> bool {
        self.marks[id.index()] & (AS_NUMBER | AS_POINTER) == AS_NUMBER
    }

    pub fn note_read(&mut self, id: TermId, as_pointer: bool) {
        self.marks[id.index()] |= if as_pointer { AS_POINTER } else { AS_NUMBER };
    }

    /// Was the object allocated in the function or one that it calls?
    #[inline]
    pub fn is_block(&self, id: ObjId) -> bool {
        self.kinds[id.index()] & HEAP != 0
    }

    /// Does the object lie behind a value that means nothing outside the function?
    #[inline]
    pub fn is_nameless(&self, id: ObjId) -> bool {
        self.kinds[id.index()] & NAMELESS != 0
    }

    /// Does the value carry an object that somebody may ask for: a block of ours, or an argument?
    pub fn is_held_by_name(&self, id: TermId) -> bool {
        !self.entry(id).mentions.is_empty()
            || match self.entry(id).term {
                Term::Param(_) => true,
                Term::Addr { obj, .. } => {
                    matches!(self.objects[obj.index()], Object::Deref(base) if matches!(self.entry(base).term, Term::Param(_)))
                }
                _ => false,
            }
    }

    /// May somebody ask where the value went: this function, or its callers?
    pub fn is_told(&self, id: TermId) -> bool {
        self.is_held_by_name(id) || !(self.is_private(id) || self.is_number(id))
    }

    /// Can the value be neither an address nor a descriptor, whatever it is?
    pub fn is_number(&self, id: TermId) -> bool {
        if !self.entry(id).mentions.is_empty() {
            return false;
        }
        let is_address = |id: TermId| {
            matches!(self.entry(id).term, Term::Addr { .. } | Term::Elem { .. }) || !self.entry(id).mentions.is_empty()
        };
        match self.entry(id).term {
            Term::Int(_) | Term::Cmp(..) => true,
            Term::Bin(BinOp::Add, a, b) => self.is_number(a) && self.is_number(b),
            // The distance of two addresses.
            Term::Bin(BinOp::Sub, a, b) => is_address(b) || (self.is_number(a) && self.is_number(b)),
            Term::Bin(BinOp::And | BinOp::Or | BinOp::Xor, a, b) => self.is_number(a) && self.is_number(b),
            Term::Bin(..) => true,
            Term::Cast(_, bits, a) => bits < 64 || self.is_number(a),
            Term::Ite(_, a, b) => self.is_number(a) && self.is_number(b),
            _ => false,
        }
    }

    fn add_object(&mut self, object: Object) -> ObjId {
        let id = ObjId::new(self.objects.len());
        self.kinds.push(match object {
            Object::Heap { .. } => HEAP,
            Object::Deref(base) if self.is_private(base) => NAMELESS,
            _ => 0,
        });
        self.objects.push(object);
        self.contents.push(false);
        id
    }

    pub fn intern_object(&mut self, object: Object) -> ObjId {
        if let Object::Deref(ptr) = object {
            return match self.entry(ptr).deref {
                Some(known) => known,
                None => {
                    let id = self.add_object(object);
                    *self.terms[ptr.index()].deref.insert(id)
                }
            };
        }
        if let Some(&id) = self.object_index.get(&object) {
            return id;
        }
        let id = self.add_object(object.clone());
        self.object_index.insert(object, id);
        id
    }

    pub(crate) fn intern(&mut self, term: Term) -> TermId {
        let hash = hash_of(&term);
        if let Some(id) = self.index.find(hash, |id| is_same(&self.entry(id).term, &term)) {
            return id;
        }
        let mentions = self.mentions_of(&term);
        let depth = self.depth_of(&term);
        if depth > MAX_DEPTH && mentions.is_empty() {
            // Nobody reasons about a formula this deep: it is some value, always the same for the same parts.
            return self.intern(Term::Sym { site: DEEP, slot: name_of(&term) });
        }
        if let Term::Content { obj, .. } = term {
            self.contents[obj.index()] = true;
        }
        let private = self.private_of(&term);
        let id = TermId::new(self.terms.len());
        let mark = match term {
            Term::Int(_) => CONSTANT,
            Term::Param(_) => PARAM | PLAIN,
            Term::Content { .. } | Term::Sym { .. } | Term::Pure(_) => PLAIN,
            _ => 0,
        };
        self.marks.push(if mentions.is_empty() { mark } else { mark | HOLDS });
        self.terms.push(Entry { term, mentions, deref: None, depth, private });
        self.index.push(hash);
        id
    }

    /// Forgets the terms that were added since there were `count`. Nothing may speak of them any more.
    pub fn forget_since(&mut self, count: usize) {
        while self.terms.len() > count {
            self.terms.pop();
            self.marks.pop();
            self.index.pop();
        }
        self.inside.get_mut().values_mut().for_each(|known| known.truncate(count));
    }

    /// Is the value the content of the object, or reached through it? Terms do not change: each is looked into once.
    pub fn speaks_of(&self, id: TermId, obj: ObjId) -> bool {
        if !self.has_contents(obj) || !self.is_private(id) {
            return false;
        }
        let mut inside = self.inside.borrow_mut();
        let known = inside.entry(obj).or_default();
        if known.len() <= id.index() {
            known.resize(self.terms.len(), None);
        }
        *known[id.index()].get_or_insert_with(|| {
            self.contains(id, &mut |part, _| matches!(part, Term::Content { obj: of, .. } if *of == obj))
        })
    }

    /// Does the term mean nothing outside the function?
    pub fn is_private(&self, id: TermId) -> bool {
        self.entry(id).private
    }

    fn private_of(&self, term: &Term) -> bool {
        let object = |obj: ObjId| match self.objects[obj.index()] {
            Object::Stack(_) => true,
            Object::Deref(base) => self.entry(base).private,
            _ => false,
        };
        match term {
            Term::Sym { .. } | Term::Pure(_) => true,
            Term::Content { obj, off, epoch } => {
                *epoch != 0
                    || object(*obj)
                    || matches!(self.objects[obj.index()], Object::Heap { .. })
                    || matches!(off, Off::Elem(index, _) if self.entry(*index).private)
            }
            Term::Addr { obj, .. } => object(*obj),
            Term::Elem { base, index, .. } => self.entry(*base).private || self.entry(*index).private,
            Term::Bin(_, a, b) | Term::Cmp(_, a, b) => self.entry(*a).private || self.entry(*b).private,
            Term::Cast(_, _, a) => self.entry(*a).private,
            Term::Ite(c, a, b) => self.entry(*c).private || self.entry(*a).private || self.entry(*b).private,
            Term::Int(_) | Term::Param(_) | Term::Func(_) => false,
        }
    }

    /// How deep the term nests; a leaf has depth 1.
    pub fn depth(&self, id: TermId) -> u32 {
        self.entry(id).depth
    }

    fn depth_of(&self, term: &Term) -> u32 {
        let object = |obj: ObjId| match self.objects[obj.index()] {
            Object::Deref(base) => self.entry(base).depth,
            _ => 0,
        };
        1 + match term {
            Term::Int(_) | Term::Param(_) | Term::Func(_) | Term::Sym { .. } => 0,
            Term::Content { obj, off, .. } => match off {
                Off::Elem(index, _) => object(*obj).max(self.entry(*index).depth),
                _ => object(*obj),
            },
            Term::Addr { obj, .. } => object(*obj),
            Term::Elem { base, index, .. } => self.entry(*base).depth.max(self.entry(*index).depth),
            Term::Pure(call) => call.args.iter().map(|&arg| self.entry(arg).depth).max().unwrap_or(0),
            Term::Bin(_, a, b) | Term::Cmp(_, a, b) => self.entry(*a).depth.max(self.entry(*b).depth),
            Term::Cast(_, _, a) => self.entry(*a).depth,
            Term::Ite(c, a, b) => self.entry(*c).depth.max(self.entry(*a).depth).max(self.entry(*b).depth),
        }
    }

    fn mentions_of(&self, term: &Term) -> SmallVec<[ObjId; 2]> {
        let mut all: SmallVec<[ObjId; 2]> = SmallVec::new();
        let mut add = |ids: &[ObjId]| {
            for &id in ids {
                if !all.contains(&id) {
                    all.push(id);
                }
            }
        };
        match term {
            Term::Addr { obj, .. } => match self.objects[obj.index()] {
                Object::Heap { .. } => add(&[*obj]),
                Object::Deref(base) => add(&self.entry(base).mentions),
                _ => {}
            },
            Term::Elem { base, index, .. } => {
                add(&self.entry(*base).mentions);
                add(&self.entry(*index).mentions);
            }
            // The distance of two pointers is none.
            Term::Bin(BinOp::Sub, a, b)
                if !self.entry(*a).mentions.is_empty() && !self.entry(*b).mentions.is_empty() => {}
            Term::Bin(_, a, b) => {
                add(&self.entry(*a).mentions);
                add(&self.entry(*b).mentions);
            }
            Term::Cast(_, _, a) => add(&self.entry(*a).mentions),
            Term::Ite(_, a, b) => {
                add(&self.entry(*a).mentions);
                add(&self.entry(*b).mentions);
            }
            // A comparison, a loaded value or a call's result does not keep its operands alive.
            Term::Cmp(..) | Term::Content { .. } | Term::Pure(_) => {}
            Term::Int(_) | Term::Param(_) | Term::Func(_) | Term::Sym { .. } => {}
        }
        all
    }

    pub fn int(&mut self, value: i64) -> TermId {
        match value {
            0 => ZERO,
            1 => ONE,
            _ => self.intern(Term::Int(value)),
        }
    }

    pub fn as_int(&self, id: TermId) -> Option<i64> {
        match self.entry(id).term {
            Term::Int(value) => Some(value),
            _ => None,
        }
    }

    pub fn param(&mut self, index: u32) -> TermId {
        self.intern(Term::Param(index))
    }

    pub fn func(&mut self, id: FuncId) -> TermId {
        self.intern(Term::Func(id))
    }

    pub fn sym(&mut self, site: u32, slot: u32) -> TermId {
        self.intern(Term::Sym { site, slot })
    }

    pub fn content(&mut self, obj: ObjId, off: Off, epoch: u32) -> TermId {
        self.intern(Term::Content { obj, off, epoch })
    }

    pub fn pure_call(&mut self, callee: u64, args: Vec<TermId>, version: u32) -> TermId {
        self.intern(Term::Pure(Box::new(PureCall { callee, args, version })))
    }

    pub fn ite(&mut self, cond: TermId, a: TermId, b: TermId) -> TermId {
        if a == b {
            return a;
        }
        match self.as_int(cond) {
            Some(0) => b,
            Some(_) => a,
            None => self.intern(Term::Ite(cond, a, b)),
        }
    }

    pub fn addr(&mut self, obj: ObjId, off: i64) -> TermId {
        if let (Object::Deref(base), 0) = (&self.objects[obj.index()], off) {
            return *base;
        }
        self.intern(Term::Addr { obj, off })
    }

    /// `ptr + bytes`.
    pub fn ptr_add(&mut self, ptr: TermId, bytes: i64) -> TermId {
        if bytes == 0 {
            return ptr;
        }
        match *self.get(ptr) {
            Term::Addr { obj, off } => self.addr(obj, off.wrapping_add(bytes)),
            Term::Elem { base, index, bytes: old } => {
                self.intern(Term::Elem { base, index, bytes: old.wrapping_add(bytes) })
            }
            Term::Int(value) => self.int(value.wrapping_add(bytes)),
            // `strchr(block, ':') + 1` leads into the block, or nowhere.
            Term::Ite(cond, a, b) if !self.mentions(ptr).is_empty() => {
                let (a, b) = (self.ptr_add(a, bytes), self.ptr_add(b, bytes));
                self.ite(cond, a, b)
            }
            _ if !self.mentions(ptr).is_empty() => self.intern(Term::Elem { base: ptr, index: ZERO, bytes }),
            _ => {
                let obj = self.intern_object(Object::Deref(ptr));
                self.addr(obj, bytes)
            }
        }
    }

    /// `base + index + bytes` where the index is not constant.
    pub fn elem(&mut self, base: TermId, index: TermId, bytes: i64) -> TermId {
        if let Some(constant) = self.as_int(index) {
            return self.ptr_add(base, constant.wrapping_add(bytes));
        }
        match *self.get(base) {
            Term::Elem { base, index: first, bytes: old } => {
                let index = self.bin(BinOp::Add, first, index);
                self.intern(Term::Elem { base, index, bytes: old.wrapping_add(bytes) })
            }
            Term::Addr { obj, off } => {
                let base = self.addr(obj, 0);
                self.intern(Term::Elem { base, index, bytes: off.wrapping_add(bytes) })
            }
            _ => self.intern(Term::Elem { base, index, bytes }),
        }
    }

    /// The object a pointer points into, and where. `None`: the null pointer or another constant.
    pub fn pointee(&mut self, ptr: TermId) -> Option<(ObjId, Off)> {
        match *self.get(ptr) {
            Term::Int(_) => None,
            Term::Addr { obj, off } => Some((obj, Off::At(off))),
            Term::Elem { base, index, bytes } => {
                let (obj, off) = self.pointee(base)?;
                Some(match off {
                    Off::At(at) => (obj, Off::Elem(index, at.wrapping_add(bytes))),
                    _ => (obj, Off::Some),
                })
            }
            Term::Func(id) => Some((self.intern_object(Object::Code(id)), Off::At(0))),
            Term::Bin(..) | Term::Ite(..) if self.entry(ptr).mentions.len() == 1 => {
                Some((self.entry(ptr).mentions[0], Off::Some))
            }
            _ => Some((self.intern_object(Object::Deref(ptr)), Off::At(0))),
        }
    }

    /// The object behind a symbolic pointer, if anyone has looked there yet.
    pub fn known_deref(&self, ptr: TermId) -> Option<ObjId> {
        self.entry(ptr).deref
    }

    /// Does the term contain `part`? Bounded, so that a huge term answers "yes".
    pub fn contains(&self, term: TermId, part: &mut dyn FnMut(&Term, TermId) -> bool) -> bool {
        self.contains_within(term, part, 12)
    }

    fn contains_within(&self, id: TermId, part: &mut dyn FnMut(&Term, TermId) -> bool, depth: u32) -> bool {
        if part(&self.entry(id).term, id) {
            return true;
        }
        if depth == 0 {
            return true;
        }
        let mut go = |id: TermId| self.contains_within(id, part, depth - 1);
        match &self.entry(id).term {
            Term::Int(_) | Term::Param(_) | Term::Func(_) | Term::Sym { .. } => false,
            Term::Content { obj, off, .. } => {
                let by_object = matches!(self.objects[obj.index()], Object::Deref(t) if go(t));
                by_object || matches!(off, Off::Elem(index, _) if go(*index))
            }
            Term::Addr { obj, .. } => matches!(self.objects[obj.index()], Object::Deref(t) if go(t)),
            Term::Elem { base, index, .. } => go(*base) || go(*index),
            Term::Pure(call) => call.args.iter().any(|&arg| go(arg)),
            Term::Bin(_, a, b) | Term::Cmp(_, a, b) => go(*a) || go(*b),
            Term::Cast(_, _, a) => go(*a),
            Term::Ite(c, a, b) => go(*c) || go(*a) || go(*b),
        }
    }
}
