//! Names: what a name means at a place, and names that are still free.

use crate::lex::Span;
use crate::syntax::{Decl, DeclId, DeclKind, FunctionSource, StmtId, StmtKind};

/// What a name stands for at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A local, a parameter, or a file-level name that the function uses.
    Declared(DeclId),
    /// A file-level name that the function does not mention.
    TopLevel,
    /// A macro of that name exists somewhere in the unit.
    Macro,
    Unknown,
}

impl FunctionSource {
    /// What `name` means when written at `offset`.
    pub fn lookup(&self, name: &str, offset: usize) -> Meaning {
        if self.names.macros.contains(name) && !self.is_library_function(name) {
            return Meaning::Macro;
        }
        let visible = self.decls.iter_ids().filter(|(_, decl)| decl.name == name && self.reaches(decl.scope, offset));
        // The scope that starts last is the innermost; file-level names start at 0.
        if let Some((id, _)) = visible.max_by_key(|(id, decl)| (self.rank(decl.kind), decl.scope.start, *id)) {
            return Meaning::Declared(id);
        }
        match self.names.top_level.get(name) {
            Some(found) if found.order <= self.order => Meaning::TopLevel,
            _ => Meaning::Unknown,
        }
    }

    /// Whether writing `name` at `offset` reaches exactly this declaration.
    pub fn visible_as(&self, name: &str, decl: DeclId, offset: usize) -> bool {
        self.lookup(name, offset) == Meaning::Declared(decl)
    }

    /// Whether a call of the function `name` can be written at `offset`: declared before, not shadowed.
    pub fn callable_at(&self, name: &str, offset: usize) -> bool {
        match self.lookup(name, offset) {
            Meaning::Declared(decl) => self.decls[decl].kind == DeclKind::Function,
            Meaning::TopLevel => {
                self.names.top_level.get(name).is_some_and(|found| found.is_function && found.order < self.order)
            }
            // A function-like macro in the place of a function: `#define free(p) my_free(p)`.
            Meaning::Macro => true,
            Meaning::Unknown => false,
        }
    }

    /// The innermost local or parameter that this name reaches.
    pub fn variable_at(&self, name: &str, offset: usize) -> Option<DeclId> {
        match self.lookup(name, offset) {
            Meaning::Declared(decl) if self.decls[decl].kind != DeclKind::Function => Some(decl),
            _ => None,
        }
    }

    /// All variables that can be named at `offset`, shadowed ones left out, in order of declaration.
    pub fn variables_in_scope(&self, offset: usize) -> Vec<DeclId> {
        self.decls
            .iter_ids()
            .filter(|(_, decl)| !matches!(decl.kind, DeclKind::Function | DeclKind::EnumConstant))
            .filter(|(id, decl)| self.visible_as(&decl.name, *id, offset))
            .map(|(id, _)| id)
            .collect()
    }

    /// A name that occurs nowhere in the function and that no macro replaces: `wanted`, else `wanted2`, ….
    pub fn fresh_name(&self, wanted: &str) -> String {
        self.fresh_name_besides(wanted, &[])
    }

    /// Likewise, with names that other edits of this function already took.
    pub fn fresh_name_besides(&self, wanted: &str, taken: &[String]) -> String {
        (1..)
            .map(|n| if n == 1 { wanted.to_string() } else { format!("{wanted}{n}") })
            .find(|name| self.is_fresh(name) && !taken.contains(name))
            .unwrap_or_else(|| wanted.to_string())
    }

    /// A name for a variable of a block alone: others may have it elsewhere in the function.
    pub fn fresh_name_in(&self, block: StmtId, wanted: &str) -> String {
        let span = self.stmt(block).span;
        let fits = |name: &String| {
            let seen = |decl: &Decl| decl.name == *name && (decl.scope.covers(span) || span.covers(decl.scope));
            !self.file.mentions(span, name)
                && !self.names.macros.contains(name)
                && !self.names.top_level.contains_key(name)
                && !self.decls.iter().any(seen)
                && self.labels().all(|(_, label)| label != name)
        };
        (1..)
            .map(|n| if n == 1 { wanted.to_string() } else { format!("{wanted}{n}") })
            .find(fits)
            .unwrap_or_else(|| wanted.to_string())
    }

    fn is_fresh(&self, name: &str) -> bool {
        // A macro expanded in the function may use a name that its text does not show; its references are decls.
        !self.file.mentions(self.span, name)
            && !self.names.macros.contains(name)
            && !self.names.top_level.contains_key(name)
            && self.decls.iter().all(|decl| decl.name != name)
            && self.labels().all(|(_, label)| label != name)
    }

    /// glibc and friends define some functions as macros too; calling them is what the author does.
    fn is_library_function(&self, name: &str) -> bool {
        self.names.top_level.get(name).is_some_and(|found| found.is_function)
    }

    fn rank(&self, kind: DeclKind) -> u8 {
        match kind {
            DeclKind::Local | DeclKind::StaticLocal => 2,
            DeclKind::Parameter => 1,
            DeclKind::Global | DeclKind::Function | DeclKind::EnumConstant => 0,
        }
    }

    fn reaches(&self, scope: Span, offset: usize) -> bool {
        scope.start <= offset && offset < scope.end
    }

    /// Whether the function, or its file's loops, declare variables after statements.
    pub fn mixes_declarations(&self) -> bool {
        self.stmts.iter().any(|stmt| match &stmt.kind {
            StmtKind::Compound { items } => {
                let is_decl = |id: &crate::syntax::StmtId| matches!(self.stmts[*id].kind, StmtKind::Decl { .. });
                let leading = items.iter().take_while(|id| is_decl(id)).count();
                items[leading..].iter().any(|id| is_decl(id) && self.is_written(*id))
            }
            StmtKind::For { .. } => false,
            _ => stmt.slot == crate::syntax::Slot::ForInit && stmt.origin == crate::syntax::Origin::Written,
        })
    }

    fn is_written(&self, id: crate::syntax::StmtId) -> bool {
        self.stmts[id].origin == crate::syntax::Origin::Written
    }
}
