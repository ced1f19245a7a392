//! From libclang's cursors to a [`FunctionSource`].

use std::os::raw::c_int;
use std::sync::Arc;

use caulk_base::{Id, IdVec};

use crate::clang::{Cursor, Location, kind};
use crate::lex::Span;
use crate::syntax::{
    Argument, Assign, Call, Decl, DeclId, DeclKind, FunctionSource, MacroId, MacroUse, Origin, Part, Slot, Stmt,
    StmtId, StmtKind, UnitNames, VarRef,
};
use crate::text::FileText;

/// Expressions nested deeper than this are not looked into: the stack is finite.
const MAX_DEPTH: u32 = 600;

pub(crate) struct FunctionInput<'u> {
    pub cursor: Cursor<'u>,
    pub file: Arc<FileText>,
    pub start: Location,
    pub names: Arc<UnitNames>,
    pub macros: IdVec<MacroId, MacroUse>,
    pub inactive: Vec<Span>,
    pub in_main_file: bool,
    pub order: usize,
}

/// `None` if the function has no body of its own in the file, e.g. when a macro makes it.
pub(crate) fn extract(input: FunctionInput<'_>) -> Option<FunctionSource> {
    let cursor = input.cursor;
    let (start, end) = cursor.extent()?;
    let body = cursor.children().into_iter().find(|child| child.kind() == kind::COMPOUND)?;
    let span = Span::new(start.offset, end.offset);
    let function = FunctionSource {
        name: cursor.name(),
        return_type: cursor.result_type(),
        in_main_file: input.in_main_file,
        is_static: cursor.is_static(),
        is_inline: cursor.is_inline(),
        is_knr: false,
        span,
        body: StmtId::new(0),
        order: input.order,
        stmts: IdVec::new(),
        decls: IdVec::new(),
        calls: IdVec::new(),
        assigns: Vec::new(),
        refs: Vec::new(),
        increments: Vec::new(),
        macros: input.macros,
        inactive: input.inactive,
        file: input.file,
        names: input.names,
    };
    let mut extractor = Extractor { function, home: input.start, declared: Vec::new() };
    let body_span = extractor.span(body);
    for parameter in cursor.arguments() {
        extractor.declare(parameter, DeclKind::Parameter, body_span, None);
    }
    let body = extractor.statement(body, None, Slot::FunctionBody, 0);
    let mut function = extractor.function;
    function.body = body;
    let block = function.stmts[body].span;
    // A macro that makes the whole body leaves no braces in the file.
    if function.file.bytes.get(block.start) != Some(&b'{') {
        return None;
    }
    // Between `)` and `{` an old-style definition declares its parameters.
    function.is_knr = function.file.token_before(block.start).is_some_and(|token| token.is(b';'));
    Some(function)
}

#[derive(Clone, Copy)]
struct Context {
    stmt: StmtId,
    part: Part,
    unconditional: bool,
    /// The expression is the statement.
    top: bool,
    depth: u32,
}

struct Extractor<'u> {
    function: FunctionSource,
    home: Location,
    declared: Vec<(Cursor<'u>, DeclId)>,
}

impl<'u> Extractor<'u> {
    fn own_extent(&self, cursor: Cursor<'u>) -> Option<Span> {
        let (start, end) = cursor.extent()?;
        (start.file == self.home.file).then(|| Span::new(start.offset, end.offset))
    }

    fn span(&self, cursor: Cursor<'u>) -> Span {
        self.own_extent(cursor).unwrap_or_default()
    }

    fn origin(&self, span: Option<Span>) -> Origin {
        let Some(span) = span else { return Origin::Foreign };
        for (id, used) in self.function.macros.iter_ids() {
            if !used.outermost || !(used.span.overlaps(span) || (span.is_empty() && used.span.contains(span.start))) {
                continue;
            }
            if used.span == span {
                return Origin::WholeMacro(id);
            }
            let inside = used.span.covers(span);
            if inside || used.span.splits_at(span.start) || used.span.splits_at(span.end) {
                return Origin::InMacro(id);
            }
        }
        Origin::Written
    }

    fn statement(&mut self, cursor: Cursor<'u>, parent: Option<StmtId>, slot: Slot, depth: u32) -> StmtId {
        let extent = self.own_extent(cursor);
        let core = extent.unwrap_or_default();
        let mut origin = self.origin(extent);
        // Only the outermost of the statements that one invocation makes is "the" invocation.
        if let (Origin::WholeMacro(id), Some(parent)) = (origin, parent) {
            let outer = &self.function.stmts[parent];
            if outer.core == core || matches!(outer.origin, Origin::InMacro(_)) {
                origin = Origin::InMacro(id);
            }
        }
        // Declarations below ask for their block before it is complete.
        let provisional = match cursor.kind() {
            kind::COMPOUND => StmtKind::Compound { items: Vec::new() },
            _ => StmtKind::Other,
        };
        let id = self.function.stmts.push(Stmt {
            kind: provisional,
            span: core,
            core,
            parent,
            slot,
            depth,
            origin,
            open_ended: false,
        });
        let kind = if depth > MAX_DEPTH { StmtKind::Other } else { self.kind(cursor, id, depth) };
        let last_child = last_child(&kind).map(|child| self.function.stmts[child].span.end);
        let takes_semicolon = match kind {
            StmtKind::Expr
            | StmtKind::Return { .. }
            | StmtKind::Goto { .. }
            | StmtKind::IndirectGoto
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Do { .. } => true,
            // A declaration has its own, unless a macro makes all of it.
            StmtKind::Decl { .. } | StmtKind::Other => {
                slot != Slot::ForInit && !self.function.file.slice(core).ends_with(b";")
            }
            _ => false,
        };
        let stmt = &mut self.function.stmts[id];
        stmt.kind = kind;
        if let Some(end) = last_child.filter(|end| *end > stmt.span.end && extent.is_some()) {
            stmt.span.end = end;
            stmt.core.end = end;
        }
        if takes_semicolon && extent.is_some() && slot != Slot::ForInit {
            let end = stmt.span.end;
            let file = &self.function.file;
            match file.token_at_or_after(end) {
                Some(token) if token.is(b';') && !file.regions.directive_between(end, token.span.end) => {
                    stmt.span.end = token.span.end;
                }
                _ => stmt.open_ended = true,
            }
        }
        id
    }

    fn kind(&mut self, cursor: Cursor<'u>, id: StmtId, depth: u32) -> StmtKind {
        let children = cursor.children();
        let context = |part| Context { stmt: id, part, unconditional: true, top: false, depth: 0 };
        let first = children.first().copied();
        let last = children.last().copied();
        match cursor.kind() {
            kind::COMPOUND => StmtKind::Compound { items: self.block(&children, id, depth) },
            kind::IF if children.len() >= 2 => {
                self.expression(children[0], context(Part::Cond));
                let then = self.statement(children[1], Some(id), Slot::Then, depth + 1);
                let otherwise = children.get(2).map(|child| self.statement(*child, Some(id), Slot::Else, depth + 1));
                StmtKind::If { cond: self.span(children[0]), then, otherwise }
            }
            kind::FOR if last.is_some_and(is_statement_like) => {
                let scope = self.span(cursor);
                for child in &children[..children.len() - 1] {
                    if child.kind() == kind::DECL_STMT {
                        let init = self.statement(*child, Some(id), Slot::ForInit, depth + 1);
                        self.widen_scopes(init, scope);
                    } else {
                        self.expression(*child, context(Part::LoopHead));
                    }
                }
                StmtKind::For {
                    body: self.statement(children[children.len() - 1], Some(id), Slot::LoopBody, depth + 1),
                }
            }
            kind::WHILE if children.len() >= 2 => {
                self.expression(children[0], context(Part::LoopHead));
                let body = self.statement(children[children.len() - 1], Some(id), Slot::LoopBody, depth + 1);
                StmtKind::While { cond: self.span(children[0]), body }
            }
            kind::DO if children.len() >= 2 => {
                let body = self.statement(children[0], Some(id), Slot::LoopBody, depth + 1);
                self.expression(children[1], context(Part::LoopHead));
                StmtKind::Do { cond: self.span(children[1]), body }
            }
            kind::SWITCH if children.len() >= 2 => {
                self.expression(children[0], context(Part::Cond));
                let body = self.statement(children[children.len() - 1], Some(id), Slot::SwitchBody, depth + 1);
                StmtKind::Switch { cond: self.span(children[0]), body }
            }
            kind::CASE => {
                let body = children
                    .get(1..)
                    .and_then(<[_]>::last)
                    .map(|child| self.statement(*child, Some(id), Slot::AfterCase, depth));
                StmtKind::Case { value: first.map(|value| self.span(value)).unwrap_or_default(), body }
            }
            kind::DEFAULT => {
                StmtKind::Default { body: last.map(|child| self.statement(child, Some(id), Slot::AfterCase, depth)) }
            }
            kind::LABEL => StmtKind::Label {
                name: cursor.name(),
                body: last.map(|child| self.statement(child, Some(id), Slot::AfterLabel, depth)),
            },
            kind::GOTO => StmtKind::Goto { label: first.map(Cursor::name).unwrap_or_default() },
            kind::INDIRECT_GOTO => StmtKind::IndirectGoto,
            kind::RETURN => {
                if let Some(value) = first {
                    self.expression(value, context(Part::ReturnValue));
                }
                StmtKind::Return { value: first.map(|value| self.span(value)) }
            }
            kind::BREAK => StmtKind::Break,
            kind::CONTINUE => StmtKind::Continue,
            kind::NULL => StmtKind::Null,
            kind::DECL_STMT => StmtKind::Decl { decls: self.declarations(&children, id) },
            other if kind::is_expression(other) => {
                self.expression(cursor, Context { top: true, ..context(Part::Value) });
                StmtKind::Expr
            }
            _ => {
                for child in children {
                    if is_statement_like(child) && kind::is_statement(child.kind()) {
                        self.statement(child, Some(id), Slot::InExpression, depth + 1);
                    } else {
                        self.expression(child, context(Part::Value));
                    }
                }
                StmtKind::Other
            }
        }
    }

    /// The items of a block. The `;` behind a statement-like macro is part of the invocation, not a
    /// statement of its own.
    fn block(&mut self, children: &[Cursor<'u>], id: StmtId, depth: u32) -> Vec<StmtId> {
        let mut items: Vec<StmtId> = Vec::with_capacity(children.len());
        for child in children {
            let extent = self.own_extent(*child);
            if let (kind::NULL, Some(previous), Some(extent)) = (child.kind(), items.last(), extent) {
                let file = &self.function.file;
                let stmt = &mut self.function.stmts[*previous];
                let next = file.token_at_or_after(stmt.span.end).map(|token| token.span);
                if matches!(stmt.origin, Origin::WholeMacro(_)) && stmt.span == stmt.core && next == Some(extent) {
                    stmt.span.end = extent.end;
                    stmt.open_ended = false;
                    continue;
                }
            }
            let item = self.statement(*child, Some(id), Slot::Item, depth + 1);
            if !self.joins_macro(items.last().copied(), item) {
                items.push(item);
            }
        }
        items
    }

    /// One invocation can make several statements; the first stands for all of them.
    fn joins_macro(&mut self, previous: Option<StmtId>, item: StmtId) -> bool {
        let Some(previous) = previous else { return false };
        let Origin::WholeMacro(made_by) = self.function.stmts[previous].origin else { return false };
        if self.function.stmts[item].origin != Origin::WholeMacro(made_by) {
            return false;
        }
        self.function.stmts[item].origin = Origin::InMacro(made_by);
        let Stmt { span, open_ended, .. } = self.function.stmts[item];
        let first = &mut self.function.stmts[previous];
        first.span.end = first.span.end.max(span.end);
        first.open_ended = open_ended;
        true
    }

    fn declarations(&mut self, children: &[Cursor<'u>], id: StmtId) -> Vec<DeclId> {
        let block = self.function.enclosing_block(id);
        let scope_end = self.function.stmts[block].span.end;
        let mut decls = Vec::new();
        for child in children {
            if child.kind() != kind::VARIABLE {
                continue;
            }
            let kind = if child.is_static() { DeclKind::StaticLocal } else { DeclKind::Local };
            let span = self.span(*child);
            // Not from its start: what is inserted before a declaration does not see it.
            let decl = self.declare(*child, kind, Span::new(span.end, scope_end), Some(id));
            decls.push(decl);
            let context = Context { stmt: id, part: Part::Init, unconditional: true, top: false, depth: 0 };
            for part in child.children() {
                if kind::is_expression(part.kind()) {
                    self.expression(part, context);
                }
            }
        }
        decls
    }

    fn widen_scopes(&mut self, stmt: StmtId, scope: Span) {
        if let StmtKind::Decl { decls } = &self.function.stmts[stmt].kind {
            for decl in decls.clone() {
                let start = self.function.decls[decl].scope.start;
                self.function.decls[decl].scope = Span::new(start, scope.end);
            }
        }
    }

    fn declare(&mut self, cursor: Cursor<'u>, kind: DeclKind, scope: Span, stmt: Option<StmtId>) -> DeclId {
        let extent = self.own_extent(cursor);
        let file_level = matches!(kind, DeclKind::Global | DeclKind::Function | DeclKind::EnumConstant);
        let id = self.function.decls.push(Decl {
            name: cursor.name(),
            kind,
            type_name: cursor.type_name(),
            canonical_type: cursor.canonical_type(),
            span: if file_level { Span::default() } else { extent.unwrap_or_default() },
            scope,
            init: if file_level { None } else { cursor.initialiser().and_then(|init| self.own_extent(init)) },
            stmt,
            origin: if file_level { Origin::Written } else { self.origin(extent) },
        });
        self.declared.push((cursor.canonical(), id));
        id
    }

    fn declaration_of(&mut self, target: Cursor<'u>) -> Option<DeclId> {
        let target = target.canonical();
        if let Some((_, id)) = self.declared.iter().find(|(cursor, _)| *cursor == target) {
            return Some(*id);
        }
        let kind = match target.kind() {
            kind::FUNCTION => DeclKind::Function,
            kind::ENUM_CONSTANT => DeclKind::EnumConstant,
            kind::VARIABLE => DeclKind::Global,
            _ => return None,
        };
        let everywhere = Span::new(0, self.function.file.bytes.len() + 1);
        Some(self.declare(target, kind, everywhere, None))
    }

    fn expression(&mut self, cursor: Cursor<'u>, context: Context) {
        if context.depth > MAX_DEPTH {
            return;
        }
        let extent = self.own_extent(cursor);
        let span = extent.unwrap_or_default();
        let below = Context { top: false, depth: context.depth + 1, ..context };
        let maybe = Context { unconditional: false, ..below };
        let cursor_kind: c_int = cursor.kind();
        let children = cursor.children();
        match cursor_kind {
            kind::STMT_EXPR => {
                for child in children {
                    let depth = self.function.stmts[context.stmt].depth + 1;
                    self.statement(child, Some(context.stmt), Slot::InExpression, depth);
                }
                return;
            }
            kind::CALL => self.call(cursor, &children, context),
            kind::DECL_REF => {
                let origin = self.origin(extent);
                if let Some(decl) = cursor.referenced().and_then(|target| self.declaration_of(target)) {
                    self.function.refs.push(VarRef { span, decl, stmt: context.stmt, origin });
                }
            }
            kind::BINARY | kind::COMPOUND_ASSIGN if children.len() == 2 => {
                if cursor_kind == kind::COMPOUND_ASSIGN || cursor.is_assignment() {
                    let target = Self::plain_variable(children[0]).and_then(|target| self.declaration_of(target));
                    let assign = Assign {
                        span,
                        lhs: self.span(children[0]),
                        rhs: self.span(children[1]),
                        target,
                        compound: cursor_kind == kind::COMPOUND_ASSIGN,
                        stmt: context.stmt,
                        whole: context.top,
                        origin: self.origin(extent),
                    };
                    self.function.assigns.push(assign);
                } else if cursor.is_sequencing() {
                    self.expression(children[0], below);
                    self.expression(children[1], maybe);
                    return;
                }
            }
            kind::UNARY if cursor.is_increment() => self.function.increments.push(span),
            kind::CONDITIONAL => {
                for (n, child) in children.into_iter().enumerate() {
                    self.expression(child, if n == 0 { below } else { maybe });
                }
                return;
            }
            // `(void)f(x);` and `(f(x));` ignore the result just the same.
            kind::CAST if context.top && cursor.type_name() == "void" => {
                for child in children {
                    self.expression(child, Context { top: true, ..below });
                }
                return;
            }
            clang_sys::CXCursor_ParenExpr | clang_sys::CXCursor_UnexposedExpr => {
                for child in children {
                    self.expression(child, Context { top: context.top, ..below });
                }
                return;
            }
            _ => {}
        }
        for child in children {
            if kind::is_expression(child.kind()) || child.kind() == clang_sys::CXCursor_UnexposedExpr {
                self.expression(child, below);
            }
        }
    }

    fn call(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>], context: Context) {
        let extent = self.own_extent(cursor);
        let name = cursor.name();
        let target = cursor.referenced().map(Cursor::kind);
        let direct = target == Some(kind::FUNCTION);
        let callee = match children.first() {
            Some(callee) if !direct || name.is_empty() => self.function.file.text(self.span(*callee)),
            _ => name,
        };
        let args = cursor
            .arguments()
            .into_iter()
            .map(|argument| Argument { span: self.span(argument), type_name: argument.value_type() })
            .collect();
        let call = Call {
            span: extent.unwrap_or_default(),
            callee,
            direct,
            args,
            result_type: cursor.value_type(),
            stmt: context.stmt,
            part: context.part,
            unconditional: context.unconditional,
            result_ignored: context.top,
            origin: self.origin(extent),
        };
        self.function.calls.push(call);
    }

    /// The variable that an expression just names, through parentheses and casts made by the compiler.
    fn plain_variable(cursor: Cursor<'u>) -> Option<Cursor<'u>> {
        match cursor.kind() {
            kind::DECL_REF => cursor.referenced(),
            clang_sys::CXCursor_ParenExpr | clang_sys::CXCursor_UnexposedExpr => {
                let [child] = cursor.children()[..] else { return None };
                Self::plain_variable(child)
            }
            _ => None,
        }
    }
}

fn is_statement_like(cursor: Cursor<'_>) -> bool {
    kind::is_statement(cursor.kind()) || kind::is_expression(cursor.kind())
}

fn last_child(kind: &StmtKind) -> Option<StmtId> {
    match kind {
        StmtKind::If { then, otherwise, .. } => Some(otherwise.unwrap_or(*then)),
        StmtKind::For { body } | StmtKind::While { body, .. } | StmtKind::Switch { body, .. } => Some(*body),
        StmtKind::Case { body, .. } | StmtKind::Default { body } | StmtKind::Label { body, .. } => *body,
        _ => None,
    }
}
