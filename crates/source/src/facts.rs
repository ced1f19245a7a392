//! What the function's author already does: comments, releases, cleanup labels.

use crate::lex::Span;
use crate::syntax::{CallId, FunctionSource, Origin, StmtId, StmtKind};

/// A label with the statements that run from it to the function's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanupLabel {
    pub name: String,
    pub label: StmtId,
    /// In order, the labelled one first, up to and with the return; nested labels included.
    pub stmts: Vec<StmtId>,
    /// The return that ends it; `None` if it falls off the end of the function.
    pub ends_in: Option<StmtId>,
    /// Jumps to it.
    pub jumps: Vec<StmtId>,
}

impl FunctionSource {
    /// Comments that speak about a statement: on its lines, behind it, or directly above.
    pub fn comments_near(&self, stmt: StmtId) -> Vec<String> {
        self.comments_beside(self.stmts[stmt].span)
    }

    /// Comments on the lines of this span or directly above them, in text order.
    pub fn comments_beside(&self, span: Span) -> Vec<String> {
        let file = &self.file;
        let mut first = file.line_of(span.start);
        let last = file.line_of(span.end.max(span.start + 1) - 1);
        let mut found = Vec::new();
        for comment in file.lexed.comments.iter().rev() {
            let from = file.line_of(comment.start);
            let to = file.line_of(comment.end.max(1) - 1);
            let alone = file.is_first_on_line(comment.start) && file.is_last_on_line(comment.end);
            let beside = from <= last && to >= first;
            // A run of comment lines above belongs together.
            let above = alone && to + 1 == first;
            if beside || above {
                first = first.min(from);
                found.push(file.text(*comment));
            }
        }
        found.reverse();
        found
    }

    /// The comments near an offset: of the innermost statement there.
    pub fn comment_near(&self, offset: usize) -> Vec<String> {
        match self.innermost(offset) {
            Some(stmt) if !matches!(self.stmts[stmt].kind, StmtKind::Compound { .. }) => {
                let mut span = self.stmts[stmt].span;
                // For a statement with a body, only its own line.
                span.end = span.end.min(self.file.line_end(offset).max(offset + 1));
                span.start = span.start.min(offset);
                self.comments_beside(span)
            }
            _ => self.comments_beside(Span::new(offset, offset + 1)),
        }
    }

    /// The comment right before the function.
    pub fn function_comments(&self) -> Vec<String> {
        self.comments_beside(Span::new(self.span.start, self.span.start + 1))
    }

    /// Calls of these functions written in this function, in text order.
    pub fn calls_of_any(&self, names: &[&str]) -> Vec<CallId> {
        let mut calls: Vec<CallId> = self
            .calls
            .iter_ids()
            .filter(|(_, call)| call.direct && names.contains(&call.callee.as_str()))
            .filter(|(_, call)| matches!(call.origin, Origin::Written | Origin::WholeMacro(_)))
            .map(|(id, _)| id)
            .collect();
        calls.sort_by_key(|id| self.calls[*id].span.start);
        calls
    }

    /// Call statements that release this expression, as text: `("node_free", call)` for `node_free(n);`.
    pub fn releases_of(&self, argument: &str) -> Vec<(String, CallId)> {
        self.calls
            .iter_ids()
            .filter(|(_, call)| call.result_ignored || call.result_type == "void")
            .filter(|(_, call)| call.args.iter().any(|arg| self.file.slice(arg.span) == argument.as_bytes()))
            .map(|(id, call)| (call.callee.clone(), id))
            .collect()
    }

    /// Labels of the function's outermost block whose statements run straight to a return or to the end.
    pub fn cleanup_labels(&self) -> Vec<CleanupLabel> {
        let StmtKind::Compound { items } = &self.stmts[self.body].kind else { return Vec::new() };
        let mut found = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let StmtKind::Label { name, body } = &self.stmts[*item].kind else { continue };
            let mut stmts: Vec<StmtId> = body.iter().copied().collect();
            stmts.extend(&items[at + 1..]);
            let end =
                stmts.iter().position(|id| matches!(self.stmts[self.unlabelled(*id)].kind, StmtKind::Return { .. }));
            let ends_in = end.map(|at| self.unlabelled(stmts[at]));
            stmts.truncate(end.map_or(stmts.len(), |at| at + 1));
            let jumps_away = stmts.iter().any(|id| matches!(self.stmts[*id].kind, StmtKind::Goto { .. }));
            if jumps_away {
                continue;
            }
            let jumps = self
                .stmts
                .iter_ids()
                .filter(|(_, stmt)| matches!(&stmt.kind, StmtKind::Goto { label } if label == name))
                .map(|(id, _)| id)
                .collect();
            found.push(CleanupLabel { name: name.clone(), label: *item, stmts, ends_in, jumps });
        }
        found
    }

    /// The statement behind its labels.
    fn unlabelled(&self, id: StmtId) -> StmtId {
        match &self.stmts[id].kind {
            StmtKind::Label { body: Some(body), .. } => self.unlabelled(*body),
            _ => id,
        }
    }
}
