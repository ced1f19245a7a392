//! The syntax tree of one function as plain data: what an editor of its text must know.
//!
//! Spans are bytes of the function's own file. Code that comes out of a macro has the span of the
//! macro's invocation (of the argument, where it is written there), and says so in [`Origin`].
//!
//! # Invariants
//! - A statement's `span` includes its `;`, its `core` does not.
//! - Children lie within their parent, except code from another file, whose span is empty.
//! # Known imprecision
//! - Expressions are kept only as far as repair asks for them: calls, assignments, references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use caulk_base::{IdVec, define_id};

use crate::lex::Span;
use crate::text::FileText;

define_id!(
    /// A statement of one function; prints as `st3`.
    StmtId,
    "st"
);
define_id!(
    /// A declaration seen by one function: local, parameter, or a file-level name it uses.
    DeclId,
    "decl"
);
define_id!(
    /// A call expression.
    CallId,
    "call"
);
define_id!(
    /// A macro invocation written in the function's text.
    MacroId,
    "macro"
);

/// How a piece of code came to be where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Written in the file; it may contain macro invocations.
    Written,
    /// The whole statement is one macro invocation: `FAIL_IF(x);`. Its neighbourhood can be edited.
    WholeMacro(MacroId),
    /// Inside a macro's body or arguments, or cut through by one.
    InMacro(MacroId),
    /// From another file, included into the function.
    Foreign,
}

/// The place a statement has in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    FunctionBody,
    /// An item of a block.
    Item,
    Then,
    Else,
    LoopBody,
    SwitchBody,
    AfterLabel,
    AfterCase,
    ForInit,
    /// The block of a GNU statement expression.
    InExpression,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    Compound {
        items: Vec<StmtId>,
    },
    If {
        cond: Span,
        then: StmtId,
        otherwise: Option<StmtId>,
    },
    For {
        body: StmtId,
    },
    While {
        cond: Span,
        body: StmtId,
    },
    Do {
        cond: Span,
        body: StmtId,
    },
    Switch {
        cond: Span,
        body: StmtId,
    },
    Case {
        value: Span,
        body: Option<StmtId>,
    },
    Default {
        body: Option<StmtId>,
    },
    Label {
        name: String,
        body: Option<StmtId>,
    },
    Goto {
        label: String,
    },
    IndirectGoto,
    Return {
        value: Option<Span>,
    },
    Break,
    Continue,
    Decl {
        decls: Vec<DeclId>,
    },
    Expr,
    Null,
    /// `asm`, attributed statements, what clang could not make sense of.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    pub kind: StmtKind,
    /// With the trailing `;`.
    pub span: Span,
    /// Without it.
    pub core: Span,
    pub parent: Option<StmtId>,
    pub slot: Slot,
    /// Blocks around it; the function's body has 0.
    pub depth: u32,
    pub origin: Origin,
    /// The `;` is missing where it was expected: a macro supplies it.
    pub open_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclKind {
    Parameter,
    Local,
    StaticLocal,
    Global,
    Function,
    EnumConstant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decl {
    pub name: String,
    pub kind: DeclKind,
    /// As spelled: `char *`, `struct node *`.
    pub type_name: String,
    /// Seen through typedefs.
    pub canonical_type: String,
    /// The whole declarator with its initialiser; empty for file-level names.
    pub span: Span,
    /// Where the name can be used; shadowing not considered.
    pub scope: Span,
    pub init: Option<Span>,
    pub stmt: Option<StmtId>,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub span: Span,
    /// The type of its value.
    pub type_name: String,
}

/// Where in its statement an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The expression statement's expression itself, or below it.
    Value,
    /// The condition of an `if` or the selector of a `switch`: evaluated once, before the bodies.
    Cond,
    /// Head of a loop: evaluated any number of times.
    LoopHead,
    ReturnValue,
    Init,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub span: Span,
    /// The function's name, or the text of the callee for calls through pointers.
    pub callee: String,
    pub direct: bool,
    pub args: Vec<Argument>,
    pub result_type: String,
    pub stmt: StmtId,
    pub part: Part,
    /// Evaluated whenever its statement is: not under `&&`, `||`, `?:` or a statement expression.
    pub unconditional: bool,
    /// The result is not used: the call is the whole statement, perhaps cast to void.
    pub result_ignored: bool,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assign {
    pub span: Span,
    pub lhs: Span,
    pub rhs: Span,
    /// The variable, where the left side is just its name.
    pub target: Option<DeclId>,
    /// `+=` and its kin.
    pub compound: bool,
    pub stmt: StmtId,
    /// The assignment is the whole statement.
    pub whole: bool,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarRef {
    pub span: Span,
    pub decl: DeclId,
    pub stmt: StmtId,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacroUse {
    pub name: String,
    /// The invocation with its arguments.
    pub span: Span,
    pub args: Vec<Span>,
    /// Not inside the arguments of another invocation.
    pub outermost: bool,
}

/// A file-level name of the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopLevel {
    pub is_function: bool,
    /// Function or variable type as spelled.
    pub type_name: String,
    /// Position among all file-level declarations of the unit, in translation order.
    pub order: usize,
}

/// Names of a translation unit that a new local name or call must respect.
#[derive(Clone, Debug, Default)]
pub struct UnitNames {
    pub macros: BTreeSet<String>,
    pub top_level: BTreeMap<String, TopLevel>,
}

/// One function definition, detached from libclang.
#[derive(Clone, Debug)]
pub struct FunctionSource {
    pub name: String,
    pub file: Arc<FileText>,
    pub names: Arc<UnitNames>,
    pub return_type: String,
    pub in_main_file: bool,
    pub is_static: bool,
    pub is_inline: bool,
    /// `int f(a) char *a; { … }`
    pub is_knr: bool,
    /// From the return type to the closing brace.
    pub span: Span,
    pub body: StmtId,
    /// Position among the unit's file-level declarations.
    pub order: usize,
    pub stmts: IdVec<StmtId, Stmt>,
    pub decls: IdVec<DeclId, Decl>,
    pub calls: IdVec<CallId, Call>,
    pub assigns: Vec<Assign>,
    pub refs: Vec<VarRef>,
    /// `++` and `--`.
    pub increments: Vec<Span>,
    pub macros: IdVec<MacroId, MacroUse>,
    /// Parts of the file that this configuration passes over.
    pub inactive: Vec<Span>,
}

impl FunctionSource {
    pub fn text(&self, span: Span) -> String {
        self.file.text(span)
    }

    pub fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id]
    }

    /// From `id` outwards, itself first.
    pub fn ancestors(&self, id: StmtId) -> impl Iterator<Item = StmtId> + '_ {
        std::iter::successors(Some(id), move |at| self.stmts[*at].parent)
    }

    /// The block whose item `id` is or lies below.
    pub fn enclosing_block(&self, id: StmtId) -> StmtId {
        self.ancestors(id)
            .skip(1)
            .find(|at| matches!(self.stmts[*at].kind, StmtKind::Compound { .. }))
            .unwrap_or(self.body)
    }

    pub fn is_inactive(&self, offset: usize) -> bool {
        self.inactive.iter().any(|span| span.contains(offset))
    }

    pub fn labels(&self) -> impl Iterator<Item = (StmtId, &str)> {
        self.stmts.iter_ids().filter_map(|(id, stmt)| match &stmt.kind {
            StmtKind::Label { name, .. } => Some((id, name.as_str())),
            _ => None,
        })
    }

    /// The macro that stands in the way of editing here.
    pub fn macro_name(&self, id: MacroId) -> String {
        self.macros[id].name.clone()
    }
}
