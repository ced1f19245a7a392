//! The two ways this crate says no: the environment failed, or an edit is not wanted.

use std::fmt;
use std::path::PathBuf;

/// The environment does not let us work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error(
        "libclang 19 could not be loaded ({}); install the Debian package libclang1-19, or set CAULK_LIBCLANG to the file",
        .tried.join("; ")
    )]
    NoLibclang { tried: Vec<String> },
    #[error("libclang could not parse {}: {reason}", .file.display())]
    Parse { file: PathBuf, reason: String },
    #[error("{} cannot be read: {reason}", .file.display())]
    Read { file: PathBuf, reason: String },
    #[error("{} cannot be written: {reason}", .file.display())]
    Write { file: PathBuf, reason: String },
    #[error("{} changed since it was analysed; run caulk again", .file.display())]
    Changed { file: PathBuf },
    #[error("two edits of {} overlap at byte {offset}", .file.display())]
    Overlap { file: PathBuf, offset: usize },
}

/// Why an edit cannot be made at this place. Not an error: the next candidate is tried,
/// and in the end the user reads the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The statement, or the place beside it, is made by this macro.
    InMacro(String),
    /// The edit would change what another `#if` configuration means.
    Conditional,
    /// The statement is the value of a GNU statement expression.
    StatementExpression,
    /// The expression is evaluated only sometimes, or more than once: `&&`, `?:`, a loop's condition.
    ConditionallyEvaluated,
    /// Moving the expression would change the order of side effects.
    EvaluationOrder,
    /// No declaration can be written for this type.
    Type(String),
    /// The statement does not have the shape this edit needs.
    Shape(&'static str),
    /// The name means something else at that place.
    Shadowed(String),
    /// The file is generated: its `#line` directives say that it is not the source.
    Generated,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::InMacro(name) => write!(f, "the code there comes out of the macro `{name}`"),
            Refusal::Conditional => f.write_str("the edit would change another `#if` configuration"),
            Refusal::StatementExpression => f.write_str("the statement is the value of a statement expression"),
            Refusal::ConditionallyEvaluated => f.write_str("the expression is evaluated only under a condition"),
            Refusal::EvaluationOrder => f.write_str("the edit would change the order of side effects"),
            Refusal::Type(spelling) => write!(f, "no variable of type `{spelling}` can be declared there"),
            Refusal::Shape(what) => f.write_str(what),
            Refusal::Shadowed(name) => write!(f, "`{name}` means something else there"),
            Refusal::Generated => f.write_str("the file is generated (`#line`); its source must be changed instead"),
        }
    }
}

impl std::error::Error for Refusal {}
