//! Changes of statements themselves: values into temporaries, results into tests, returns into jumps.

use crate::declarator::declarator;
use crate::edit::EditSet;
use crate::error::Refusal;
use crate::insert::{Snippet, concat};
use crate::lex::Span;
use crate::syntax::{Call, CallId, FunctionSource, Part, Slot, StmtId, StmtKind};
use crate::text::BraceStyle;

/// Where a new variable is declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// At its use where C89 or the function's own habit allows it, else at the start of the block.
    #[default]
    Auto,
    AtUse,
    AtBlockStart,
}

impl FunctionSource {
    /// Replaces a statement by some lines.
    pub fn replace_stmt(&self, stmt: StmtId, code: &Snippet) -> Result<EditSet, Refusal> {
        let Some((last, before)) = code.lines.split_last() else { return self.delete_stmt(stmt) };
        let before = Snippet { lines: before.to_vec(), declares: code.declares && !before.is_empty() };
        self.check_stmt(stmt)?;
        self.check_inside(self.stmts[stmt].span)?;
        let mut edits = if before.is_empty() { EditSet::new() } else { self.insert_before(stmt, &before)? };
        edits.replace(self.stmts[stmt].span, last.clone());
        Ok(edits)
    }

    /// Deletes a statement and the lines that it leaves empty.
    pub fn delete_stmt(&self, id: StmtId) -> Result<EditSet, Refusal> {
        self.check_stmt(id)?;
        let stmt = &self.stmts[id];
        let file = &self.file;
        self.check_inside(stmt.span)?;
        let mut edits = EditSet::new();
        match stmt.slot {
            Slot::Item => {}
            // The label goes to the next statement.
            Slot::AfterLabel | Slot::AfterCase if self.has_statement_behind(id) => {}
            Slot::AfterLabel | Slot::AfterCase => {
                edits.replace(stmt.span, ";");
                return Ok(edits);
            }
            _ => {
                edits.replace(stmt.span, "{ }");
                return Ok(edits);
            }
        }
        if matches!(stmt.kind, StmtKind::Decl { .. }) {
            return Err(Refusal::Shape("a declaration cannot be deleted"));
        }
        let (start, end) = (stmt.span.start, stmt.span.end);
        let first = file.is_first_on_line(start);
        match file.end_with_comment(end) {
            Some(line_end) if first => {
                let below = file.bytes[line_end..].iter().position(|byte| *byte == b'\n');
                let next_line = below.map_or(file.bytes.len(), |at| line_end + at + 1);
                edits.delete(Span::new(file.line_start(start), next_line));
            }
            _ => {
                let blanks = file.bytes[end..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                if file.is_last_on_line(end) {
                    let before = file.bytes[..start].iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
                    edits.delete(Span::new(start - before, end));
                } else {
                    edits.delete(Span::new(start, end + blanks));
                }
            }
        }
        Ok(edits)
    }

    /// Replaces the condition of an `if`, loop or `switch`.
    pub fn replace_condition(&self, stmt: StmtId, text: impl Into<Vec<u8>>) -> Result<EditSet, Refusal> {
        let (StmtKind::If { cond, .. }
        | StmtKind::While { cond, .. }
        | StmtKind::Do { cond, .. }
        | StmtKind::Switch { cond, .. }) = self.stmts[stmt].kind
        else {
            return Err(Refusal::Shape("the statement has no condition"));
        };
        self.replace_expr(cond, text)
    }

    /// Replaces an expression's text.
    pub fn replace_expr(&self, span: Span, text: impl Into<Vec<u8>>) -> Result<EditSet, Refusal> {
        if self.file.has_line_directives() {
            return Err(Refusal::Generated);
        }
        self.check_span(span)?;
        let mut edits = EditSet::new();
        self.put_expr(&mut edits, span, text.into());
        Ok(edits)
    }

    /// `return(x)` must not become `returny`.
    fn put_expr(&self, edits: &mut EditSet, span: Span, mut text: Vec<u8>) {
        let word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        if span.start > 0 && word(self.file.bytes.get(span.start - 1)) && word(text.first()) {
            text.insert(0, b' ');
        }
        edits.replace(span, text);
    }

    /// `return f(p);` becomes `T name = f(p); …; return name;` with `code` in between.
    pub fn return_through_temp(
        &self,
        stmt: StmtId,
        name: &str,
        code: &Snippet,
        placement: Placement,
    ) -> Result<EditSet, Refusal> {
        let StmtKind::Return { value: Some(value) } = self.stmts[stmt].kind else {
            return Err(Refusal::Shape("the statement returns no value"));
        };
        self.check_stmt(stmt)?;
        self.check_span(value)?;
        let text = within_parentheses(self.file.slice(value));
        if self.return_type == "void" {
            let mut before = Snippet::line(concat(&[text, b";"]));
            before.lines.extend(code.lines.iter().cloned());
            let mut edits = self.insert_before(stmt, &before)?;
            edits.delete(Span::new(self.stmts[stmt].span.start + b"return".len(), value.end));
            return Ok(edits);
        }
        let mut edits = self.bind(stmt, &self.spelled(&self.return_type), name, text, code, placement)?;
        self.put_expr(&mut edits, value, name.into());
        Ok(edits)
    }

    /// Evaluates a call before its statement: `append(a, strdup(s));` becomes
    /// `char *name = strdup(s); …; append(a, name);` with `code` in between.
    pub fn hoist_call(
        &self,
        call: CallId,
        type_name: Option<&str>,
        name: &str,
        code: &Snippet,
        placement: Placement,
    ) -> Result<EditSet, Refusal> {
        let call = &self.calls[call];
        self.check_hoist(call)?;
        let type_name = type_name.map_or_else(|| self.spelled(&call.result_type), str::to_string);
        let text = self.file.slice(call.span);
        let mut edits = self.bind(call.stmt, &type_name, name, text, code, placement)?;
        self.put_expr(&mut edits, call.span, name.into());
        Ok(edits)
    }

    /// Tests an ignored result: `add(l, item);` becomes `if (add(l, item) < 0)` with `body` below.
    /// `prefix` and `suffix` make the condition: `!` and nothing, or nothing and ` < 0`.
    pub fn test_ignored_result(
        &self,
        call: CallId,
        prefix: &str,
        suffix: &str,
        body: &Snippet,
    ) -> Result<EditSet, Refusal> {
        let call = &self.calls[call];
        let stmt = &self.stmts[call.stmt];
        if !call.result_ignored || !matches!(stmt.kind, StmtKind::Expr) {
            return Err(Refusal::Shape("the call's result is used"));
        }
        if call.result_type == "void" {
            return Err(Refusal::Shape("the call has no result"));
        }
        self.check_stmt(call.stmt)?;
        self.check_span(call.span)?;
        self.check_inside(stmt.span)?;
        let file = &self.file;
        let alone = matches!(stmt.slot, Slot::Then | Slot::Else | Slot::LoopBody | Slot::SwitchBody);
        // Without braces an `else` behind would change its owner.
        let nothing = Snippet::default();
        let mut edits = if alone { self.wrap(call.stmt, &nothing, &nothing)? } else { EditSet::new() };
        let head = file.style.line(format!("if ({prefix}").as_bytes());
        edits.replace(Span::new(stmt.span.start, call.span.start), head);
        let mut tail = format!("{suffix})").into_bytes();
        let own_line = file.is_first_on_line(stmt.span.start);
        let outer_lines = alone && edits.edits().iter().any(|edit| edit.text.contains(&b'\n'));
        if own_line || outer_lines {
            let indent = if own_line {
                file.indent_of(stmt.span.start).to_vec()
            } else {
                file.deeper(file.indent_of(stmt.span.start))
            };
            tail.extend(self.body_text(body, &indent));
        } else {
            let braces = body.lines.len() != 1;
            tail.extend_from_slice(if braces { b" {" } else { b"" });
            for line in &body.lines {
                tail.push(b' ');
                tail.extend_from_slice(line.trim_ascii_start());
            }
            tail.extend_from_slice(if braces { b" }" } else { b"" });
        }
        edits.replace(Span::new(call.span.end, stmt.span.end), tail);
        Ok(edits)
    }

    /// `return X;` becomes `variable = X; goto label;`; just the jump where X is the variable already, or where
    /// nothing is returned.
    pub fn return_to_goto(&self, stmt: StmtId, variable: &str, label: &str) -> Result<EditSet, Refusal> {
        let StmtKind::Return { value } = self.stmts[stmt].kind else {
            return Err(Refusal::Shape("the statement is not a return"));
        };
        let mut code = Snippet::default();
        if let Some(value) = value {
            let text = self.file.slice(value);
            if text != variable.as_bytes() {
                code.lines.push(concat(&[variable.as_bytes(), b" = ", text, b";"]));
            }
        }
        code.lines.push(format!("goto {label};").into_bytes());
        self.replace_stmt(stmt, &code)
    }

    /// Adds `lvalue = NULL;` behind a statement.
    pub fn set_null_after(&self, stmt: StmtId, lvalue: &str) -> Result<EditSet, Refusal> {
        self.insert_after(stmt, &Snippet::line(format!("{lvalue} = NULL;")))
    }

    /// Whether a statement that can carry a label follows the labelled one in its block.
    fn has_statement_behind(&self, labelled: StmtId) -> bool {
        let is_item = |at: &StmtId| !matches!(self.stmts[*at].slot, Slot::AfterLabel | Slot::AfterCase);
        let Some(item) = self.ancestors(labelled).find(is_item) else { return false };
        let block = self.stmts[item].parent.map(|parent| &self.stmts[parent].kind);
        let Some(StmtKind::Compound { items }) = block else { return false };
        let at = items.iter().position(|one| *one == item);
        let next = at.and_then(|at| items.get(at + 1));
        next.is_some_and(|next| !matches!(self.stmts[*next].kind, StmtKind::Decl { .. }))
    }

    /// Declares a variable at the start of a block, where C89 wants it: `declaration` with its `;`.
    pub fn declare_in(&self, block: StmtId, declaration: &str) -> Result<EditSet, Refusal> {
        self.insert_at_start(block, &Snippet::line(self.in_columns(block, declaration)).declaring())
    }

    /// The spelling to use for a type in new code.
    pub fn spelled(&self, type_name: &str) -> String {
        match type_name.strip_prefix("_Bool") {
            Some(rest) if self.names.macros.contains("bool") => format!("bool{rest}"),
            _ => type_name.to_string(),
        }
    }

    /// `T name = text;` and `code` before a statement, the declaration apart where it must be.
    fn bind(
        &self,
        stmt: StmtId,
        type_name: &str,
        name: &str,
        text: &[u8],
        code: &Snippet,
        placement: Placement,
    ) -> Result<EditSet, Refusal> {
        let declared = declarator(type_name, name)?;
        let at_use = match placement {
            Placement::AtUse => true,
            Placement::AtBlockStart => false,
            Placement::Auto => self.may_declare_at(stmt),
        };
        let (head, mut edits) = if at_use {
            (concat(&[declared.as_bytes(), b" = ", text, b";"]), EditSet::new())
        } else {
            let edits = self.declare_in(self.enclosing_block(stmt), &format!("{declared};"))?;
            (concat(&[name.as_bytes(), b" = ", text, b";"]), edits)
        };
        let mut before = Snippet { lines: vec![head], declares: at_use };
        before.lines.extend(code.lines.iter().cloned());
        edits.merge(&self.insert_before(stmt, &before)?);
        Ok(edits)
    }

    /// Whether a declaration right before this statement is what C89 allows or the author does anyway.
    fn may_declare_at(&self, id: StmtId) -> bool {
        let stmt = &self.stmts[id];
        if stmt.slot != Slot::Item || self.mixes_declarations() {
            // A body or a labelled statement gets a block of its own.
            return true;
        }
        let Some(StmtKind::Compound { items }) = stmt.parent.map(|parent| &self.stmts[parent].kind) else {
            return false;
        };
        let is_decl = |id: &&StmtId| matches!(self.stmts[**id].kind, StmtKind::Decl { .. });
        items.iter().find(|item| !is_decl(item)).is_none_or(|first| *first == id)
            || matches!(stmt.kind, StmtKind::Decl { .. })
    }

    fn check_hoist(&self, call: &Call) -> Result<(), Refusal> {
        if !call.unconditional || call.part == Part::LoopHead {
            return Err(Refusal::ConditionallyEvaluated);
        }
        self.check_stmt(call.stmt)?;
        self.check_span(call.span)?;
        let stmt = &self.stmts[call.stmt];
        let others = self
            .assigns
            .iter()
            .filter(|assign| assign.stmt == call.stmt)
            .map(|assign| assign.span)
            .chain(self.increments.iter().copied().filter(|span| self.head_of(call.stmt).covers(*span)));
        if others.into_iter().any(|span| !span.covers(call.span)) {
            return Err(Refusal::EvaluationOrder);
        }
        let earlier = |other: &Call| {
            other.stmt == call.stmt && other.span.start < call.span.start && !other.span.covers(call.span)
        };
        if self.calls.iter().any(earlier) {
            return Err(Refusal::EvaluationOrder);
        }
        if let StmtKind::Decl { decls } = &stmt.kind {
            let uses_sibling = decls.iter().any(|decl| self.file.mentions(call.span, &self.decls[*decl].name));
            if uses_sibling {
                return Err(Refusal::EvaluationOrder);
            }
        }
        Ok(())
    }

    /// The part of a statement that is not a statement of its own.
    fn head_of(&self, id: StmtId) -> Span {
        match self.stmts[id].kind {
            StmtKind::If { cond, .. } | StmtKind::Switch { cond, .. } => cond,
            _ => self.stmts[id].span,
        }
    }

    /// No directive may be lost with replaced text.
    fn check_inside(&self, span: Span) -> Result<(), Refusal> {
        let cut = self.file.lexed.directives.iter().any(|directive| directive.span.overlaps(span));
        if cut { Err(Refusal::Conditional) } else { Ok(()) }
    }

    /// The body of a new `if` whose own indentation is given.
    fn body_text(&self, body: &Snippet, indent: &[u8]) -> Vec<u8> {
        let file = &self.file;
        let eol = file.style.eol.as_bytes();
        let line = |text: &mut Vec<u8>, indent: &[u8], line: &[u8]| {
            text.extend_from_slice(eol);
            text.extend_from_slice(indent);
            text.extend_from_slice(line);
        };
        let mut text = Vec::new();
        if let [only] = &body.lines[..] {
            line(&mut text, &file.deeper(indent), only);
            return text;
        }
        let brace_indent =
            if file.style.braces == BraceStyle::Indented { file.deeper(indent) } else { indent.to_vec() };
        match file.style.braces {
            BraceStyle::Attached => text.extend_from_slice(b" {"),
            BraceStyle::OwnLine | BraceStyle::Indented => line(&mut text, &brace_indent, b"{"),
        }
        for inner in &body.lines {
            line(&mut text, &file.deeper(&brace_indent), inner);
        }
        line(&mut text, &brace_indent, b"}");
        text
    }
}

/// `f(p)` of `(f(p))`: where it is not returned any more, it needs none. Those of `(a, b)` it needs.
fn within_parentheses(text: &[u8]) -> &[u8] {
    let Some(inner) = text.strip_prefix(b"(").and_then(|text| text.strip_suffix(b")")) else { return text };
    let mut open = 0i32;
    let closed = inner.iter().all(|byte| {
        open += i32::from(*byte == b'(') - i32::from(*byte == b')');
        let separates = *byte == b',' && open == 0;
        open >= 0 && !separates && !matches!(byte, b'"' | b'\'')
    });
    if closed && open == 0 { inner } else { text }
}
