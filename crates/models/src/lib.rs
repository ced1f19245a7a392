//! What library functions do with memory and resources, as data.
//!
//! A model says of one function what it allocates, releases, borrows, keeps and
//! returns. Models come from the files built into caulk (`data/`, one per library)
//! and from the user's `caulk.toml`, in the same form: see `reader.rs` for it. A
//! later file overrides an earlier one by function name; the user's come last.
//!
//! ```text
//! fdopen = { allocates = "file", takes = "0 on success", fails = "null" }
//!
//! FILE *f = fdopen(fd, "r");   // fd: descriptor, live
//! if (!f)                      // fails = "null": here fd is still the caller's
//!     return -1;               //   -> fd leaks
//! fclose(f);                   // f released; fd went with it
//! ```
//!
//! # Invariants
//! - A function that has a model only *borrows* every argument the model does
//!   not mention: it may look at what it points to during the call, changes no
//!   pointer in there, and forgets it at its end.
//! - A function without a model and without a body is not this crate's business:
//!   the analysis assumes the worst of it.
//!
//! # Known imprecision
//! - What a function does depends on null arguments and on success at most, never
//!   on the value of a flag (`open(…, O_CLOEXEC)`, `scanf("%ms")`).
//! - A callback's own effects are not modelled here: `Calls` and `Registers` name
//!   it, and the analysis looks at its body.

mod builtin;
mod describe;
mod document;
mod phrase;
mod reader;
mod types;

pub use document::{ConfigError, ConfigErrors, Document, Section, nearest};
pub use types::{Condition, Course, Effect, FamilyId, FamilySpec, FunctionModel, Models, Origin, Place, ReturnModel};
