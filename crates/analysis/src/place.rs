//! Places within objects.

use serde::{Deserialize, Serialize};

use crate::term::TermId;

/// From here on, and far below any offset of a program, lie the hidden cells of resources that a struct holds in itself.
pub const INLINE_PLACES: i64 = i64::MIN / 2;

/// The hidden cell of a stream that holds its descriptor's number.
pub const NUMBER: Off = Off::At(i64::MIN / 3);

/// From here on lie the hidden cells of a handle for what its library's functions returned.
pub const LENT: i64 = i64::MIN / 3 + 1;

/// The hidden cell of a block that holds how far from its beginning the pointer lies that its maker returned.
pub const HANDED_OUT: Off = Off::At(i64::MIN / 3 - 1);

/// A place within an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Off {
    /// A constant byte offset.
    At(i64),
    /// A variable index (already scaled) plus a constant.
    Elem(TermId, i64),
    /// Some element; which one is not known. Cells here are updated weakly.
    Some,
}

impl Off {
    /// Where a part at `inner` of what begins here lies.
    pub fn plus(self, inner: Off) -> Off {
        match (self, inner) {
            (_, Off::At(hidden)) if hidden < INLINE_PLACES / 2 => inner,
            (Off::At(a), Off::At(b)) => Off::At(a.saturating_add(b)),
            (Off::At(a), Off::Elem(index, b)) | (Off::Elem(index, a), Off::At(b)) => {
                Off::Elem(index, a.saturating_add(b))
            }
            _ => Off::Some,
        }
    }
}
