//! New statements beside old ones.
//!
//! The one hard case is a statement that is the whole body of an `if`, `else` or loop: two statements need
//! braces, and braces need a style.
//!
//! ```text
//! if (x)                     if (x) {
//!     return -1;    ==>          free(p);
//! else                           return -1;
//!     y();                   } else
//!                                y();
//! ```
//!
//! # Invariants
//! - Nothing is inserted inside a macro invocation, nor where another `#if` configuration would read it differently.
//! - Braces are shared edits: two insertions at one statement add them once.

use crate::edit::EditSet;
use crate::error::Refusal;
use crate::lex::{Span, Token, TokenKind};
use crate::syntax::{FunctionSource, Origin, Slot, StmtId, StmtKind};
use crate::text::BraceStyle;

/// Lines of new code. A leading tab in a line stands for one step of the file's own indentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    pub lines: Vec<Vec<u8>>,
    /// The first line is a declaration: it cannot follow a label and may need a block of its own.
    pub declares: bool,
}

impl Snippet {
    pub fn line(text: impl Into<Vec<u8>>) -> Self {
        Self { lines: vec![text.into()], declares: false }
    }

    pub fn lines<T: Into<Vec<u8>>>(lines: impl IntoIterator<Item = T>) -> Self {
        Self { lines: lines.into_iter().map(Into::into).collect(), declares: false }
    }

    pub fn declaring(mut self) -> Self {
        self.declares = true;
        self
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl From<&str> for Snippet {
    fn from(text: &str) -> Self {
        Self::lines(text.lines())
    }
}

impl FunctionSource {
    /// Puts code before a statement, with braces where it becomes two.
    pub fn insert_before(&self, stmt: StmtId, code: &Snippet) -> Result<EditSet, Refusal> {
        self.insert_around(stmt, code, &Snippet::default())
    }

    /// Puts code after a statement, with braces where it becomes two.
    pub fn insert_after(&self, stmt: StmtId, code: &Snippet) -> Result<EditSet, Refusal> {
        self.insert_around(stmt, &Snippet::default(), code)
    }

    /// Puts code at the start of a block: after its declarations.
    pub fn insert_at_start(&self, block: StmtId, code: &Snippet) -> Result<EditSet, Refusal> {
        let StmtKind::Compound { items } = &self.stmts[block].kind else {
            return Err(Refusal::Shape("not a block"));
        };
        let is_decl = |id: &&StmtId| matches!(self.stmts[**id].kind, StmtKind::Decl { .. });
        // Not among declarations that only some configurations have.
        let always =
            |id: &&StmtId| self.file.regions.same_branch(self.stmts[block].span.start, self.stmts[**id].span.start);
        match (items.iter().take_while(is_decl).filter(always).last(), items.first()) {
            (Some(decl), _) => self.insert_after(*decl, code),
            (None, Some(first)) if !always(&first) => Err(Refusal::Shape("the block begins under a condition")),
            (None, Some(first)) => self.insert_before(*first, code),
            (None, None) => self.fill_empty(block, code),
        }
    }

    /// Puts code at the end of a block.
    pub fn insert_at_end(&self, block: StmtId, code: &Snippet) -> Result<EditSet, Refusal> {
        let StmtKind::Compound { items } = &self.stmts[block].kind else {
            return Err(Refusal::Shape("not a block"));
        };
        match items.last() {
            Some(last) => self.insert_after(*last, code),
            None => self.fill_empty(block, code),
        }
    }

    pub(crate) fn insert_around(&self, id: StmtId, before: &Snippet, after: &Snippet) -> Result<EditSet, Refusal> {
        self.check_stmt(id)?;
        let stmt = &self.stmts[id];
        let body_of_one = matches!(stmt.slot, Slot::Then | Slot::Else | Slot::LoopBody | Slot::SwitchBody);
        let is_block = matches!(stmt.kind, StmtKind::Compound { .. });
        if stmt.slot == Slot::FunctionBody || (body_of_one && is_block) {
            return Err(Refusal::Shape("a block cannot have a neighbour; insert at its start or end"));
        }
        if body_of_one {
            return self.wrap(id, before, after);
        }
        let labelled = matches!(stmt.slot, Slot::AfterLabel | Slot::AfterCase);
        if labelled {
            let outermost =
                self.ancestors(id).find(|at| !matches!(self.stmts[*at].slot, Slot::AfterLabel | Slot::AfterCase));
            if outermost.is_none_or(|label| self.stmts[label].slot != Slot::Item) {
                return Err(Refusal::Shape("the label is itself the body of a statement"));
            }
            let before_declaration = matches!(stmt.kind, StmtKind::Decl { .. }) && !before.is_empty();
            if before.declares || before_declaration {
                return self.wrap(id, before, after);
            }
        }
        let mut edits = EditSet::new();
        self.list_before(id, before, &mut edits)?;
        self.list_after(id, after, &mut edits)?;
        Ok(edits)
    }

    fn is_label(&self, id: StmtId) -> bool {
        matches!(self.stmts[id].kind, StmtKind::Label { .. } | StmtKind::Case { .. } | StmtKind::Default { .. })
    }

    fn list_before(&self, id: StmtId, code: &Snippet, edits: &mut EditSet) -> Result<(), Refusal> {
        if code.is_empty() {
            return Ok(());
        }
        let start = self.stmts[id].span.start;
        // A lone `;` behind a macro ends what the macro began, or stands for an empty one.
        let behind_macro = self.macros.iter().find(|used| used.outermost && used.span.end == start);
        if let (StmtKind::Null, Some(used)) = (&self.stmts[id].kind, behind_macro) {
            return Err(Refusal::InMacro(used.name.clone()));
        }
        let ends = |token: &Token| {
            [b';', b'{', b'}', b':'].iter().any(|punct| token.is(*punct))
                || self.macros.iter().any(|used| used.outermost && used.span.end == token.span.end)
        };
        if !self.file.regions.starts_statement(&self.file.lexed, start, &ends) {
            return Err(Refusal::Conditional);
        }
        if !self.file.is_first_on_line(start) {
            edits.insert(start, inline(code, b"", b" "));
            return Ok(());
        }
        if self.is_label(id) {
            // Labels stand further left than statements.
            let indent = self.item_indent(id);
            edits.insert(self.file.line_start(start), self.block_text(code, &indent, b"", true));
            return Ok(());
        }
        let indent = self.file.indent_of(start).to_vec();
        let mut text = self.block_text(code, &indent, b"", true);
        // The line's own blanks serve the first new line; the statement gets new ones.
        text.drain(..indent.len());
        text.extend_from_slice(&indent);
        edits.insert(start, text);
        Ok(())
    }

    fn list_after(&self, id: StmtId, code: &Snippet, edits: &mut EditSet) -> Result<(), Refusal> {
        if code.is_empty() {
            return Ok(());
        }
        let stmt = &self.stmts[id];
        let parent = stmt.parent.map(|parent| &self.stmts[parent]);
        if let Some(StmtKind::Compound { items }) = parent.map(|parent| &parent.kind)
            && items.last() == Some(&id)
            && parent.is_some_and(|parent| parent.slot == Slot::InExpression)
        {
            return Err(Refusal::StatementExpression);
        }
        let end = stmt.span.end;
        if self.file.regions.else_may_follow(&self.file.lexed, &self.file.bytes, end) {
            return Err(Refusal::Conditional);
        }
        match self.file.end_with_comment(end) {
            Some(line_end) => {
                let indent = self.item_indent(id);
                edits.insert(line_end, self.block_text(code, &indent, self.file.style.eol.as_bytes(), false));
            }
            None => edits.insert(end, inline(code, b" ", b"")),
        }
        Ok(())
    }

    /// Braces around the only statement of a body, with code before and after it.
    pub(crate) fn wrap(&self, id: StmtId, before: &Snippet, after: &Snippet) -> Result<EditSet, Refusal> {
        let file = &self.file;
        let stmt = &self.stmts[id];
        let (start, end) = (stmt.span.start, stmt.span.end);
        let header = file.token_before(start).ok_or(Refusal::Shape("no code before the statement"))?.span;
        self.check_offset(header.end)?;
        if file.regions.directive_between(header.end, start) || !file.regions.same_branch(start, end.max(1) - 1) {
            return Err(Refusal::Conditional);
        }
        let Some(owner) = stmt.parent else { return Err(Refusal::Shape("no statement around it")) };
        // Outer braces enclose inner ones where both meet at one place.
        let depth = self.ancestors(id).count() as i32;
        let (opening, closing) = (depth - 100_000, 100_000 - depth);
        let mut edits = EditSet::new();
        let owner_start = if stmt.slot == Slot::Else { header.start } else { self.stmts[owner].span.start };
        if !self.leads_line(owner_start) {
            edits.brace(Span::new(start, start), "{ ", opening);
            edits.insert(start, inline(before, b"", b" "));
            edits.insert(end, inline(after, b" ", b""));
            edits.brace(Span::new(end, end), " }", closing);
            return Ok(edits);
        }
        let eol = file.style.eol.as_bytes();
        let owner_indent = file.indent_of(owner_start).to_vec();
        let own_line = file.is_first_on_line(start);
        let deeper = file.deeper(&owner_indent);
        let (brace_indent, body_indent) = match file.style.braces {
            BraceStyle::Indented => (deeper.clone(), file.deeper(&deeper)),
            _ if own_line => (owner_indent.clone(), file.indent_of(start).to_vec()),
            _ => (owner_indent.clone(), deeper),
        };

        if file.style.braces == BraceStyle::Attached {
            edits.brace(Span::new(header.end, header.end), " {", opening);
        } else {
            let at = if own_line { file.end_with_comment(header.end).unwrap_or(header.end) } else { header.end };
            edits.brace(Span::new(at, at), concat(&[eol, &brace_indent, b"{"]), opening);
        }
        let blanks = Span::new(self.blanks_before(start).max(header.end), start);
        if !own_line {
            edits.brace(blanks, concat(&[eol, &body_indent]), opening + 1);
            self.shift_lines(stmt.span, &mut edits, opening);
        } else if file.style.braces == BraceStyle::Indented {
            edits.brace(Span::new(file.line_start(start), start), body_indent.clone(), opening + 1);
            self.shift_lines(stmt.span, &mut edits, opening);
        }
        if !before.is_empty() {
            let mut text = self.block_text(before, &body_indent, b"", true);
            text.drain(..body_indent.len());
            text.extend_from_slice(&body_indent);
            edits.insert(start, text);
        }

        let line_end = file.end_with_comment(end);
        let close_at = line_end.unwrap_or(end);
        edits.insert(close_at, self.block_text(after, &body_indent, eol, false));
        let close = concat(&[eol, &brace_indent, b"}"]);
        let next = file.token_at_or_after(end);
        match self.joined_keyword(id, next) {
            Some(keyword) if file.bytes[close_at..keyword].iter().all(u8::is_ascii_whitespace) => {
                let joins = file.style.cuddled_else || matches!(self.stmts[owner].kind, StmtKind::Do { .. });
                let rest = if joins { b" ".to_vec() } else { concat(&[eol, &owner_indent]) };
                edits.brace(Span::new(close_at, keyword), concat(&[&close, &rest]), closing);
            }
            _ if line_end.is_none() => {
                // Other code follows on the line: it gets a line of its own.
                let blanks = file.bytes[end..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
                edits.brace(Span::new(end, end + blanks), concat(&[&close, eol, &owner_indent]), closing);
            }
            _ => edits.brace(Span::new(close_at, close_at), close, closing),
        }
        Ok(edits)
    }

    /// The `else` or `while` that belongs behind the closing brace.
    fn joined_keyword(&self, id: StmtId, next: Option<&Token>) -> Option<usize> {
        let stmt = &self.stmts[id];
        let owner = &self.stmts[stmt.parent?];
        let next = next.filter(|token| token.kind == TokenKind::Word)?;
        let word = self.file.slice(next.span);
        let joined = match owner.kind {
            StmtKind::If { otherwise: Some(_), .. } if stmt.slot == Slot::Then => word == b"else",
            StmtKind::Do { .. } => word == b"while",
            _ => false,
        };
        (joined && !self.file.regions.directive_between(stmt.span.end, next.span.start)).then_some(next.span.start)
    }

    /// Lines of a statement after its first, one step deeper.
    fn shift_lines(&self, span: Span, edits: &mut EditSet, rank: i32) {
        let file = &self.file;
        let first = file.line_of(span.start);
        for line in first + 1..=file.line_of(span.end.max(1) - 1) {
            let Some(start) = file.offset_of(line, 1) else { continue };
            let indent = file.indent_of(start).to_vec();
            let content = start + indent.len();
            let in_literal =
                file.lexed.tokens.iter().any(|token| token.kind == TokenKind::Literal && token.span.splits_at(start));
            if content >= file.line_end(start) || file.bytes.get(content) == Some(&b'#') || in_literal {
                continue;
            }
            edits.brace(Span::new(start, content), file.deeper(&indent), rank);
        }
    }

    fn fill_empty(&self, block: StmtId, code: &Snippet) -> Result<EditSet, Refusal> {
        let stmt = &self.stmts[block];
        if !matches!(stmt.origin, Origin::Written) {
            return Err(self.in_macro(stmt.origin));
        }
        let file = &self.file;
        let inner = Span::new(stmt.span.start + 1, stmt.span.end.max(1) - 1);
        if file.regions.directive_between(inner.start, inner.end) {
            return Err(Refusal::Conditional);
        }
        let mut edits = EditSet::new();
        let outer = file.indent_of(stmt.span.start).to_vec();
        let indent = file.deeper(&outer);
        let eol = file.style.eol.as_bytes();
        let text = self.block_text(code, &indent, eol, false);
        if file.slice(inner).iter().all(u8::is_ascii_whitespace) {
            edits.replace(inner, concat(&[&text, eol, &outer]));
        } else {
            // Only a comment: keep it.
            let at = file.end_with_comment(inner.start).filter(|at| *at <= inner.end).unwrap_or(inner.start);
            edits.insert(at, text);
        }
        Ok(edits)
    }

    /// The indentation of an item of the same block as `id`.
    fn item_indent(&self, id: StmtId) -> Vec<u8> {
        let file = &self.file;
        let start = self.stmts[id].span.start;
        if file.is_first_on_line(start) && !self.is_label(id) {
            return file.indent_of(start).to_vec();
        }
        let block = self.enclosing_block(id);
        let StmtKind::Compound { items } = &self.stmts[block].kind else { return file.indent_of(start).to_vec() };
        let plain = |item: &&StmtId| {
            !self.is_label(**item)
                && file.is_first_on_line(self.stmts[**item].span.start)
                && self.is_editable_origin(**item)
        };
        let here = self.stmts[id].span.start;
        let earlier = items.iter().rev().filter(|item| self.stmts[**item].span.start < here).find(plain);
        if let Some(sibling) = earlier.or_else(|| items.iter().find(plain)) {
            return file.indent_of(self.stmts[*sibling].span.start).to_vec();
        }
        // A statement under its label, on a line of its own.
        if let Some(label) = self.ancestors(id).skip(1).find(|at| self.is_label(*at))
            && !file.is_first_on_line(start)
        {
            return file.deeper(file.indent_of(self.stmts[label].span.start));
        }
        file.deeper(file.indent_of(self.stmts[block].span.start))
    }

    fn is_editable_origin(&self, id: StmtId) -> bool {
        matches!(self.stmts[id].origin, Origin::Written | Origin::WholeMacro(_))
    }

    /// First on its line, or behind nothing but `}` and `else`.
    fn leads_line(&self, offset: usize) -> bool {
        let start = self.file.line_start(offset);
        self.file
            .tokens_in(Span::new(start, offset))
            .iter()
            .all(|token| token.is(b'}') || self.file.slice(token.span) == b"else")
            && !self.file.lexed.comments.iter().any(|comment| comment.splits_at(start))
    }

    fn blanks_before(&self, offset: usize) -> usize {
        offset - self.file.bytes[..offset].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
    }

    /// Lines at an indentation; `lead` before each, or a line ending after each.
    fn block_text(&self, code: &Snippet, indent: &[u8], lead: &[u8], trailing: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for line in &code.lines {
            let steps = line.iter().take_while(|byte| **byte == b'\t').count();
            let mut deep = indent.to_vec();
            for _ in 0..steps {
                deep = self.file.deeper(&deep);
            }
            text.extend_from_slice(lead);
            text.extend_from_slice(&deep);
            text.extend_from_slice(&self.file.style.line(&line[steps..]));
            if trailing {
                text.extend_from_slice(self.file.style.eol.as_bytes());
            }
        }
        text
    }

    /// Whether this statement's neighbourhood is text that can be edited.
    pub fn check_stmt(&self, id: StmtId) -> Result<(), Refusal> {
        if self.file.has_line_directives() {
            return Err(Refusal::Generated);
        }
        let stmt = &self.stmts[id];
        match stmt.origin {
            Origin::Written | Origin::WholeMacro(_) => {}
            origin => return Err(self.in_macro(origin)),
        }
        if stmt.slot == Slot::ForInit {
            return Err(Refusal::Shape("the statement stands in the head of a loop"));
        }
        if stmt.slot == Slot::InExpression {
            return Err(Refusal::StatementExpression);
        }
        let starts_with_parent = stmt.parent.is_some_and(|parent| self.stmts[parent].span.start == stmt.span.start);
        if starts_with_parent || (stmt.open_ended && !matches!(stmt.origin, Origin::WholeMacro(_))) {
            let used = self.macros.iter().find(|used| used.span.overlaps(stmt.span));
            return Err(used.map_or(Refusal::Shape("the statement has no text of its own"), |used| {
                Refusal::InMacro(used.name.clone())
            }));
        }
        self.check_offset(stmt.span.start)?;
        self.check_offset(stmt.span.end)
    }

    /// Whether an expression can be replaced as text.
    pub fn check_span(&self, span: Span) -> Result<(), Refusal> {
        if span.is_empty() {
            return Err(Refusal::Shape("the expression has no text of its own"));
        }
        self.check_offset(span.start)?;
        self.check_offset(span.end)?;
        let within = self.macros.iter().find(|used| used.outermost && used.span != span && used.span.covers(span));
        if let Some(used) = within {
            return Err(Refusal::InMacro(used.name.clone()));
        }
        if self.file.regions.directive_between(span.start, span.end) {
            return Err(Refusal::Conditional);
        }
        Ok(())
    }

    fn check_offset(&self, offset: usize) -> Result<(), Refusal> {
        match self.macros.iter().find(|used| used.outermost && used.span.splits_at(offset)) {
            Some(used) => Err(Refusal::InMacro(used.name.clone())),
            None => Ok(()),
        }
    }

    pub(crate) fn in_macro(&self, origin: Origin) -> Refusal {
        match origin {
            Origin::InMacro(id) | Origin::WholeMacro(id) => Refusal::InMacro(self.macro_name(id)),
            Origin::Foreign => Refusal::Shape("the code comes from another file"),
            Origin::Written => Refusal::Shape("the code cannot be edited"),
        }
    }
}

fn inline(code: &Snippet, lead: &[u8], trail: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in &code.lines {
        text.extend_from_slice(lead);
        text.extend_from_slice(line.trim_ascii_start());
        text.extend_from_slice(trail);
    }
    text
}

pub(crate) fn concat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}
