//! What library functions do with memory and resources, as data.
//!
//! A model says of one function what it allocates, releases, borrows, keeps and
//! returns. Models come from the files built into caulk (one per library) and
//! from the user's `caulk.toml`, in the same form. A later file overrides an
//! earlier one by function name; the user's come last.
//!
//! # Invariants
//! - A function that has a model only *borrows* every argument the model does
//!   not mention: it may read and write what it points to during the call, and
//!   forgets it at its end.
//! - A function without a model and without a body is not this crate's business:
//!   the analysis assumes the worst of it.

mod types;

pub use types::{Condition, Effect, FamilyId, FamilySpec, FunctionModel, Models, Origin, Place, ReturnModel};
