//! Raw errors as the heap analysis meets them. The checkers turn them into findings.

use caulk_ir::{FuncId, InstId};
use caulk_models::FamilyId;
use serde::{Deserialize, Serialize};

use crate::facts::Range;
use crate::term::TermId;
use crate::trace::Event;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IncidentKind {
    /// The last reference is gone and the block is still allocated.
    Leak,
    /// The same, but the program ends here.
    LeakAtExit,
    DoubleFree,
    UseAfterFree(Use),
    /// Released by a function of another family.
    Mismatched {
        allocated: FamilyId,
        released: FamilyId,
    },
    InvalidFree(NotHeap),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Use {
    Read,
    Write,
    Passed,
    Returned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NotHeap {
    Stack,
    Global,
    Function,
    Interior,
}

/// How the last reference went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Loss {
    /// The function returned.
    Return,
    /// The variable or cell was overwritten, or its owner released, by the instruction `at`.
    Overwritten,
    /// Nobody ever took the result.
    Ignored,
}

/// What the incident is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// Allocated by this instruction of the same function (itself, or in what it calls).
    Allocated { site: InstId, sub: u32 },
    /// What an input of the function points to, in words of access paths (`*arg0`, `arg0->buf`).
    Input(String),
}

/// One error on one path of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    pub kind: IncidentKind,
    pub function: FuncId,
    pub subject: Subject,
    pub family: FamilyId,
    pub loss: Option<Loss>,
    /// Where the error happens.
    pub at: InstId,
    /// The earlier release, for double frees and uses after free.
    pub freed_at: Option<InstId>,
    /// Ways there, shortest first; at least one.
    pub paths: Vec<Vec<Event>>,
    /// What is known of the parameters in the states in which it was seen; none, if it can be anything.
    pub arguments: Vec<Vec<(u32, Range)>>,
    /// What the function returns in the states in which it was seen at a return; none, if it can be anything.
    pub results: Vec<Range>,
    /// One of the ways was run again alone, and the error came up.
    pub confirmed: bool,
    /// Only seen where something is so that nobody is known to make so: a library's variable that nothing in it writes has
    /// another value than at the start, or a block was made of no bytes.
    pub foreign: bool,
    /// Passed to functions without model or body that we assumed only to look at it.
    pub lent: bool,
    /// The conditions of the first states in which it was seen, for the solver: any of them will do. At least one.
    pub conditions: Vec<Condition>,
}

/// A conjunction, in terms that stand on their own.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Condition {
    pub terms: Vec<crate::term::Term>,
    /// Each term is non-zero (`true`) or zero.
    pub conjuncts: Vec<(TermId, bool)>,
}

/// An error that may happen, on a path we could not tell apart well enough to report it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Suspicion {
    pub function: FuncId,
    pub at: InstId,
    pub kind: IncidentKind,
}

/// Why a release is not certain to be right. What speaks against it on some path speaks against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Doubt {
    /// Someone we cannot see may hold the pointer.
    Escaped,
    /// It was passed to a function without body or model that we assumed only to look at it.
    Lent,
    /// It comes from an allocator behind a pointer, and is not released through one.
    Chosen,
    /// It may have been released before.
    MayBeReleased,
    /// It was not allocated in this function or by what it called.
    NotOurs,
    /// Memory that outlives this function still points to it.
    StillReferenced,
    /// The place that it was read from outlives this function, and still points to it.
    Held,
    /// Several blocks are treated as one here, or it is not known which block it is.
    Blurred,
    /// A destructor releases a part of a block of this function, and it is not known how the part came there: not
    /// by this function, and not from its inputs.
    Part,
    /// It was given to a function of the same recursion, which was not followed to its end.
    Unsettled,
    /// The pointer is what the block's maker handed out, which is not its beginning: whoever releases it must know the way
    /// back.
    Shifted,
    /// A destructor looks at a part of the block that nobody has written.
    Unset,
    /// What it works on, a buffer that it was given, may be gone already.
    Bereft,
}

/// A call that releases, over all states that reach it. No doubts: in every state the pointer is
/// null or the address of a live block of this function that nobody else holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseFact {
    pub inst: InstId,
    /// Sorted.
    pub doubts: Vec<Doubt>,
    /// Where the block is one that nobody has filled as a whole: the argument that it is, and the parts that were written
    /// on every path, by offset and size.
    pub written: Option<(u32, Vec<(i64, u64)>)>,
}
