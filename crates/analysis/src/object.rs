//! Memory objects and what state they are in.

use caulk_base::define_id;
use caulk_ir::{ExternId, FuncId, GlobalId, InstId};
use caulk_models::FamilyId;
use serde::{Deserialize, Serialize};

use crate::term::TermId;

define_id!(
    /// A memory object, within one function's analysis or one summary.
    ObjId,
    "obj"
);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Object {
    /// A local variable whose address is taken.
    Stack(InstId),
    Global(GlobalId),
    /// A library's global (`stdin`, `environ`).
    External(ExternId),
    Code(FuncId),
    /// What a symbolic pointer points to.
    Deref(TermId),
    /// Allocated by the call at `site`; `sub` tells several results of one call apart.
    /// `older`: all blocks of this site but the most recent one.
    Heap {
        site: InstId,
        sub: u32,
        older: bool,
    },
}

/// The states an object may be in; one bit each, several after a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Status(pub u8);

impl Status {
    pub const LIVE: Status = Status(1);
    pub const FREED: Status = Status(2);
    /// The allocation may have failed; once a test shows it, the object is gone and its address
    /// is replaced by the family's failure value.
    pub const FAILED: Status = Status(4);

    pub fn may(self, other: Status) -> bool {
        self.0 & other.0 != 0
    }

    /// Nothing else is possible.
    pub fn must(self, other: Status) -> bool {
        self.0 != 0 && self.0 & !other.0 == 0
    }

    pub fn join(self, other: Status) -> Status {
        Status(self.0 | other.0)
    }

    pub fn without(self, other: Status) -> Status {
        Status(self.0 & !other.0)
    }
}

/// What is known of one object on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjState {
    pub status: Status,
    pub family: FamilyId,
    /// Someone we cannot see may hold the pointer: it is not ours to report or to release.
    pub escaped: bool,
    /// It is called escaped only because paths were merged: who refers to it is known all the same.
    pub merged: bool,
    /// Put into something by a function that releases what it finds there, nobody knows what.
    pub drained: bool,
    /// Given to a function of the recursion that is worked out, of which there may be more to know.
    pub unsettled: bool,
    /// Given to a recursion that was not followed to its end: it may be released, for all that is known.
    pub doubted: bool,
    /// A callee may have put something into it that is not this function's own.
    pub mixed: bool,
    /// Made through a pointer to an allocator that may be exchanged for another: what releases it is not known for sure.
    pub chosen: bool,
    /// Passed to a function without model or body that we assumed only to look at it.
    pub lent: bool,
    /// Its bytes were sent to somebody, and with them the pointers that lie in it.
    pub sent: bool,
    /// An input that turned out to be what lay in memory already: nobody has just made it.
    pub found: bool,
    /// Dereferenced on every path here (for input objects: what the callee needs alive).
    pub used: bool,
    /// Passed on to a function that may look at it, on every path here.
    pub passed: bool,
    /// An input object that became ours to watch: `realloc` failed on it.
    pub owned: bool,
    /// What its address is when the allocation failed: 0 or -1.
    pub failure: i32,
    /// Of the older blocks of its call there is this one, and variables and members by name are all that holds it.
    pub single: bool,
    /// The contents were all zero at allocation.
    pub zeroed: bool,
    /// Nobody has written there but what is told of it: for the rest it holds what lay in memory before.
    pub raw: bool,
    /// Some part was written on one of the ways here and not on another.
    pub ragged: bool,
    /// Where it was released; meaningful with `FREED`.
    pub freed_at: Option<InstId>,
    /// How far from the pointer the released block begins: `free(p - 16)`.
    pub freed_off: i32,
    /// Number of extra references taken by retain-like functions.
    pub retained: u8,
    /// Something is wrong with it on this way, which was told; no more is said of it.
    pub wrong: bool,
    /// No reference is left: a leak, unless the path never returns.
    pub lost: bool,
    /// The instruction that destroyed the last reference, where one did.
    pub lost_at: Option<InstId>,
    /// What it was last stored in.
    pub within: Option<ObjId>,
    /// The last instruction that did something with it.
    pub touched: Option<InstId>,
}

impl ObjState {
    pub fn input(family: FamilyId) -> Self {
        Self {
            status: Status::LIVE,
            family,
            escaped: false,
            merged: false,
            drained: false,
            unsettled: false,
            doubted: false,
            mixed: false,
            chosen: false,
            lent: false,
            sent: false,
            found: false,
            used: false,
            passed: false,
            owned: false,
            failure: 0,
            single: false,
            zeroed: false,
            raw: false,
            ragged: false,
            freed_at: None,
            freed_off: 0,
            retained: 0,
            wrong: false,
            lost: false,
            lost_at: None,
            within: None,
            touched: None,
        }
    }

    /// Someone we cannot see may hold the pointer.
    pub fn give_away(&mut self) {
        (self.escaped, self.merged) = (true, false);
    }

    pub fn is_given_away(&self) -> bool {
        self.escaped && !self.merged
    }

    pub fn fresh(family: FamilyId, may_fail: bool) -> Self {
        let status = if may_fail { Status::LIVE.join(Status::FAILED) } else { Status::LIVE };
        Self { status, ..Self::input(family) }
    }

    pub fn join(self, other: ObjState) -> ObjState {
        ObjState {
            status: self.status.join(other.status),
            family: self.family,
            escaped: self.escaped || other.escaped,
            merged: !self.is_given_away() && !other.is_given_away() && (self.merged || other.merged),
            drained: self.drained || other.drained,
            unsettled: self.unsettled || other.unsettled,
            doubted: self.doubted || other.doubted,
            mixed: self.mixed || other.mixed,
            chosen: self.chosen || other.chosen,
            lent: self.lent || other.lent,
            sent: self.sent || other.sent,
            found: self.found && other.found,
            used: self.used && other.used,
            passed: self.passed && other.passed,
            owned: self.owned && other.owned,
            failure: self.failure,
            single: self.single && other.single,
            zeroed: self.zeroed && other.zeroed,
            raw: self.raw || other.raw,
            ragged: self.ragged || other.ragged,
            freed_at: self.freed_at.or(other.freed_at),
            freed_off: if self.freed_at.is_some() { self.freed_off } else { other.freed_off },
            retained: self.retained.max(other.retained),
            wrong: self.wrong || other.wrong,
            lost: self.lost && other.lost,
            lost_at: self.lost_at.or(other.lost_at),
            within: self.within.or(other.within),
            touched: self.touched.max(other.touched),
        }
    }
}
