//! Repairs of findings, as source edits that were proved before anybody sees them.
//!
//! ```text
//! finding ──target──► place in the text ──strategies──► candidates ──workshop──► patched program ──proof──► patch
//! ```
//!
//! A strategy may propose whatever looks natural at a place: it need not be right. What is right is decided by the
//! [`proof`], which looks at the patched program as a whole: it compiles without a new warning, the finding is gone,
//! nothing else appeared, and no inserted release can meet a pointer that somebody else still holds. So each new
//! strategy is a few lines and none of them can make caulk unsafe.
//!
//! Patches are made one after another, each on the text that the one before left: what is proved last is all of them
//! together.
//!
//! # Invariants
//! - No patch without a proof; what cannot be proved is refused with a reason.
//! - The result depends on the program alone, and repairing again changes nothing.
//!
//! # Known imprecision
//! - A patch lies in one file.

mod assertions;
mod change;
mod children;
mod configurations;
mod decided;
mod dying;
mod flushing;
mod lasting;
mod lockstep;
mod notes;
mod origin;
mod outward;
mod paired;
mod proof;
mod refuse;
mod release;
mod session;
mod sides;
mod strategies;
mod survey;
mod takes;
mod target;
mod unset;
mod watched;
mod weigh;
mod workshop;

pub use change::Change;
pub use notes::Notes;
pub use session::{Accept, Done, Repaired, repair};
pub use survey::{Spot, Survey};
pub use workshop::{Doubts, Rebuilt, Workshop};
