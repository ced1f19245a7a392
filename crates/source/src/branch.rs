//! A branch that is not there yet.
//!
//! ```text
//! if (fits(p))               if (fits(p))
//!     slot = p;     ==>          slot = p;
//!                            else
//!                                free(p);
//! ```

use crate::edit::EditSet;
use crate::error::Refusal;
use crate::syntax::{FunctionSource, StmtId, StmtKind};
use crate::text::BraceStyle;

impl FunctionSource {
    /// Gives an `if` that has none an `else` of one statement.
    pub fn insert_else(&self, id: StmtId, line: &str) -> Result<EditSet, Refusal> {
        let StmtKind::If { then, otherwise: None, .. } = self.stmts[id].kind else {
            return Err(Refusal::Shape("the `if` has an `else`, or is none"));
        };
        self.check_stmt(id)?;
        self.check_stmt(then)?;
        let (file, span) = (&self.file, self.stmts[id].span);
        let end = self.stmts[then].span.end;
        if file.regions.else_may_follow(&file.lexed, &file.bytes, end)
            || !file.regions.same_branch(span.start, end.max(1) - 1)
        {
            return Err(Refusal::Conditional);
        }
        let Some(line_end) = file.end_with_comment(end).filter(|_| file.line_of(span.start) < file.line_of(end)) else {
            return Err(Refusal::Shape("the `if` does not end its line"));
        };
        // `else if`: its line begins with the `else`, or with the brace before it.
        let indent = file.indent_of(span.start).to_vec();
        let eol = file.style.eol.as_bytes();
        let braced = matches!(self.stmts[then].kind, StmtKind::Compound { .. });
        let mut edits = EditSet::new();
        let mut text = Vec::new();
        let cuddled = braced && file.style.cuddled_else && file.style.braces == BraceStyle::Attached;
        if cuddled && line_end == end {
            text.extend_from_slice(b" else");
        } else {
            text.extend_from_slice(eol);
            text.extend_from_slice(&indent);
            text.extend_from_slice(b"else");
        }
        text.extend_from_slice(eol);
        text.extend(file.deeper(&indent));
        text.extend_from_slice(line.as_bytes());
        edits.insert(line_end, text);
        Ok(edits)
    }
}
