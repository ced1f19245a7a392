//! The original text of C files: what it says, and how to change it so that its author would not mind.
//!
//! A [`SourceUnit`] is one translation unit, parsed by libclang at run time with the flags of its
//! build. From it comes a [`FunctionSource`]: one function's statements, calls, declarations, scopes,
//! macros and comments as plain data with byte ranges. Its methods make [`EditSet`]s, or say in a
//! [`Refusal`] why the place cannot be edited.
//!
//! ```text
//! SourceUnit::parse ──function_at──► FunctionSource ──insert_before, …──► EditSet ──apply──► bytes
//!                                                                      unified_diff, write_atomically
//! ```
//!
//! # Invariants
//! - Bytes that no edit names come out as they went in: encoding, tabs, line endings, comments.
//! - No edit changes the inside of a macro invocation, or what another `#if` configuration means.
//! - A [`FunctionSource`] holds nothing of libclang: it can be kept, sent and shared.
//!
//! # Known imprecision
//! - `#line` makes a file "generated": positions of debug information then mean another file.
//! - Name lookup does not see types declared in blocks, nor extern declarations in other blocks.

mod branch;
mod clang;
mod columns;
mod declarator;
mod diff;
mod edit;
mod error;
mod extract;
mod facts;
mod insert;
mod lex;
mod lookup;
mod regions;
mod rewrite;
mod scope;
mod syntax;
mod text;
mod unit;
mod write;

pub use clang::{Diagnostic, ParseRequest, Severity};
pub use declarator::declarator;
pub use diff::{diff_size, unified_diff};
pub use edit::{Edit, EditSet};
pub use error::{Refusal, SourceError};
pub use facts::CleanupLabel;
pub use insert::Snippet;
pub use lex::{Span, Token, TokenKind};
pub use rewrite::Placement;
pub use scope::Meaning;
pub use syntax::{
    Argument, Assign, Call, CallId, Decl, DeclId, DeclKind, FunctionSource, MacroId, MacroUse, Origin, Part, Slot,
    Stmt, StmtId, StmtKind, TopLevel, UnitNames, VarRef,
};
pub use text::{BraceStyle, FileStyle, FileText};
pub use unit::{FunctionInfo, SourceUnit};
pub use write::write_atomically;
