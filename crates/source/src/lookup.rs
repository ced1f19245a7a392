//! From the positions of debug information to statements and calls.
//!
//! Debug information gives the line and byte column where an instruction's code starts; inside a
//! macro, where the macro is invoked. Column 0 stands for "somewhere on this line".

use caulk_base::Id;

use crate::lex::Span;
use crate::syntax::{CallId, FunctionSource, StmtId, StmtKind};

impl FunctionSource {
    /// The innermost statement at a position. Where none covers it (blanks, `else`), the first that
    /// starts later on the line.
    pub fn stmt_at(&self, line: u32, column: u32) -> Option<StmtId> {
        let offset = self.file.offset_of(line, column)?;
        if column == 0 {
            return self.first_stmt_on(line);
        }
        self.innermost(offset)
            .filter(|id| !matches!(self.stmts[*id].kind, StmtKind::Compound { .. }))
            .or_else(|| self.first_stmt_from(offset, self.file.line_end(offset)))
            .or_else(|| self.innermost(offset))
    }

    /// The innermost statement whose text covers the offset. What a macro makes counts as its invocation:
    /// the statement written in the file, not one of the macro's body.
    pub fn innermost(&self, offset: usize) -> Option<StmtId> {
        self.stmts
            .iter_ids()
            .filter(|(_, stmt)| stmt.span.contains(offset))
            .filter(|(id, _)| self.is_editable(*id))
            .max_by_key(|(id, stmt)| (stmt.depth, id.index()))
            .map(|(id, _)| id)
    }

    /// The statement in the file that stands for this one: itself, or the macro invocation that makes it.
    pub fn editable(&self, id: StmtId) -> Option<StmtId> {
        self.ancestors(id).find(|at| self.is_editable(*at))
    }

    /// Calls at a position: those that start there, outermost first. For a macro, all that it makes there.
    pub fn calls_at(&self, line: u32, column: u32) -> Vec<CallId> {
        let Some(offset) = self.file.offset_of(line, column) else { return Vec::new() };
        let line_span = Span::new(self.file.line_start(offset), self.file.line_end(offset));
        let mut found: Vec<(CallId, Span)> = self
            .calls
            .iter_ids()
            .map(|(id, call)| (id, call.span))
            .filter(|(_, span)| if column == 0 { line_span.contains(span.start) } else { span.start == offset })
            .collect();
        found.sort_by_key(|(id, span)| (span.start, std::cmp::Reverse(span.end), *id));
        found.into_iter().map(|(id, _)| id).collect()
    }

    /// The call of `callee` at a position; any call there if none has that name and there is just one.
    pub fn call_at(&self, line: u32, column: u32, callee: &str) -> Option<CallId> {
        let calls = self.calls_at(line, column);
        calls.iter().copied().find(|id| self.calls[*id].callee == callee).or(match calls[..] {
            [only] => Some(only),
            _ => None,
        })
    }

    /// The calls in a statement itself, not in statements below it.
    pub fn calls_of(&self, stmt: StmtId) -> impl Iterator<Item = CallId> + '_ {
        self.calls.iter_ids().filter(move |(_, call)| call.stmt == stmt).map(|(id, _)| id)
    }

    fn first_stmt_on(&self, line: u32) -> Option<StmtId> {
        let start = self.file.offset_of(line, 1)?;
        let end = self.file.line_end(start);
        self.first_stmt_from(start, end).or_else(|| self.innermost(start))
    }

    fn first_stmt_from(&self, start: usize, end: usize) -> Option<StmtId> {
        self.stmts
            .iter_ids()
            .filter(|(id, stmt)| stmt.span.start >= start && stmt.span.start < end && self.is_editable(*id))
            .filter(|(_, stmt)| !matches!(stmt.kind, StmtKind::Compound { .. }))
            .min_by_key(|(id, stmt)| (stmt.span.start, id.index()))
            .map(|(id, _)| id)
    }

    fn is_editable(&self, id: StmtId) -> bool {
        use crate::syntax::Origin;
        matches!(self.stmts[id].origin, Origin::Written | Origin::WholeMacro(_))
    }
}
