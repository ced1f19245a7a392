//! Words every room shares: typed ids, vectors indexed by them, content
//! hashes, files kept between runs, and the way we say "this we could not know".

mod gap;
mod hash;
mod id;
mod store;

pub use gap::{Checked, Gap, GapKind};
pub use hash::{ContentHash, Hasher};
pub use id::{Id, IdVec};
/// Hash containers with a fast, unkeyed hash. Never iterate one into a result.
pub use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
pub use store::Store;
