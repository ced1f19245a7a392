//! A finding in its function's text: the expression that names the block, the statements of its source and sink.

use caulk_findings::{Finding, Place};
use caulk_source::{FunctionSource, StmtId, StmtKind};

/// Words in the names of types that hold no pointer.
const NUMBERS: &[&str] = &["int", "long", "short", "char", "unsigned", "size", "uint", "int32", "uint32", "double"];

pub struct Target<'a> {
    pub finding: &'a Finding,
    pub function: FunctionSource,
    /// What the programmer calls the block, where that is an expression that can be written down.
    pub name: Option<String>,
    pub source: Option<StmtId>,
    pub sink: Option<StmtId>,
}

impl<'a> Target<'a> {
    pub fn new(finding: &'a Finding, function: FunctionSource) -> Self {
        let name = expression(&finding.object);
        let source = place(&function, &finding.source);
        let sink = place(&function, &finding.sink);
        Self { finding, function, name, source, sink }
    }

    /// Names that may hold the block: its own first, then those it was copied to.
    pub fn holders(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let function = &self.function;
        if let Some(name) = &self.name {
            found.push(name.clone());
        }
        if let Some(source) = self.source {
            // `T *p = make();` and `p = make();` at the source itself.
            // Others may be assigned in the same statement: `if (!(a = make()) || !(b = make()))`.
            let place = &self.finding.source;
            let at = function.file.offset_of(place.line, place.column.max(1)).filter(|_| place.column > 0);
            let made_here = |value: caulk_source::Span| at.is_none_or(|at| value.contains(at));
            for assign in function.assigns.iter().filter(|assign| assign.stmt == source && !assign.compound) {
                // What an assignment itself loses is where it was before: `t->p = realloc(t->p, n);`
                let lost_here =
                    self.finding.source == self.finding.sink && at.is_some_and(|at| assign.span.contains(at));
                if made_here(assign.rhs) || lost_here {
                    push(&mut found, function.text(assign.lhs));
                }
            }
            for decl in function.decls.iter().filter(|decl| decl.stmt == Some(source)) {
                if decl.init.is_some_and(made_here) {
                    push(&mut found, decl.name.clone());
                }
            }
            for name in self.outputs() {
                push(&mut found, name);
            }
        }
        for _ in 0..2 {
            for assign in function.assigns.iter().filter(|assign| !assign.compound) {
                if found.contains(&function.text(assign.rhs)) {
                    push(&mut found, function.text(assign.lhs));
                }
            }
            for decl in function.decls.iter() {
                if decl.init.is_some_and(|init| found.contains(&function.text(init))) {
                    push(&mut found, decl.name.clone());
                }
            }
        }
        // A structure that a call has filled: the part of it that is released elsewhere.
        let at = self.source.map_or(function.span.end, |source| function.stmt(source).span.end);
        let structures = found.iter().filter(|name| is_structure(function, name, at)).map(|name| format!("{name}."));
        for structure in structures.collect::<Vec<_>>() {
            for call in function.calls.iter().filter(|call| call.args.len() == 1) {
                let given = function.text(call.args[0].span);
                if given.starts_with(&structure) {
                    push(&mut found, given);
                }
            }
        }
        found.retain(|name| is_plain(name) && !self.is_status(name));
        found
    }

    /// What the allocating call was given to put its result into: `make(&p)`, `pipe(ends)`.
    fn outputs(&self) -> Vec<String> {
        let function = &self.function;
        let place = &self.finding.source;
        let calls = function.calls_at(place.line, place.column);
        let args = calls.iter().flat_map(|call| &function.calls[*call].args);
        let mut found = Vec::new();
        for arg in args {
            let text = function.text(arg.span);
            if let Some(name) = text.strip_prefix('&') {
                if !self.is_number(name.trim(), arg) {
                    push(&mut found, name.trim().to_owned());
                }
            } else if matches!(arg.type_name.as_str(), "int[2]" | "int [2]") || self.is_pair(&text, arg.span.start) {
                push(&mut found, format!("{text}[0]"));
                push(&mut found, format!("{text}[1]"));
            }
        }
        found
    }

    /// `&length`, beside the pointer.
    fn is_number(&self, name: &str, arg: &caulk_source::Argument) -> bool {
        let kind = match self.function.variable_at(name, arg.span.start).filter(|_| name == root(name)) {
            Some(decl) => self.function.decls[decl].canonical_type.clone(),
            None => arg.type_name.strip_suffix('*').unwrap_or("*").to_owned(),
        };
        self.finding.release != "close"
            && !kind.contains(['*', '['])
            && !kind.starts_with("struct ")
            && NUMBERS.iter().any(|word| kind.split([' ', '_']).any(|part| part == *word))
    }

    fn is_pair(&self, name: &str, offset: usize) -> bool {
        let decl = self.function.variable_at(name, offset);
        decl.is_some_and(|decl| matches!(self.function.decls[decl].canonical_type.as_str(), "int[2]" | "int [2]"))
    }

    /// A number that says whether a call that makes pointers went well.
    fn is_status(&self, name: &str) -> bool {
        let function = &self.function;
        let at = self.source.map_or(function.span.end, |source| function.stmt(source).span.end);
        let Some(decl) = function.variable_at(name, at).filter(|_| name == root(name)) else { return false };
        let kind = function.decls[decl].canonical_type.as_str();
        self.finding.release != "close" && is_number(kind)
    }

    /// Whether an expression means at `offset` what it means at the source: same root variable, in scope.
    pub fn reaches(&self, expression: &str, offset: usize) -> bool {
        let root = root(expression);
        let Some(here) = self.function.variable_at(root, offset) else { return false };
        // A name that is declared twice must mean the one that the source's statement sees.
        let twice = self.function.decls.iter().filter(|decl| decl.name == root).count() > 1;
        match self.source {
            Some(source) if twice => {
                let end = self.function.stmt(source).span.end;
                self.function.variable_at(root, end) == Some(here) || self.function.decls[here].stmt == Some(source)
            }
            _ => true,
        }
    }

    /// A closing brace ends the function there.
    pub fn sink_is_end(&self) -> bool {
        let function = &self.function;
        let end = function.file.line_of(function.span.end.saturating_sub(1));
        self.finding.sink.line == end
            && self.sink.is_none_or(|stmt| matches!(function.stmt(stmt).kind, StmtKind::Compound { .. }))
    }
}

/// A variable that is a structure itself.
pub fn is_structure(function: &FunctionSource, expression: &str, offset: usize) -> bool {
    let decl = function.variable_at(expression, offset).filter(|_| expression == root(expression));
    decl.is_some_and(|decl| {
        let kind = function.decls[decl].canonical_type.as_str();
        !kind.contains(['*', '[']) && !is_number(kind)
    })
}

/// A type whose values are numbers, seen through typedefs: not even a structure without a name of its own.
pub fn is_number(kind: &str) -> bool {
    const WORDS: &[&str] =
        &["const", "volatile", "unsigned", "signed", "char", "short", "int", "long", "_Bool", "float", "double"];
    kind.starts_with("enum ") && !kind.contains(['*', '[']) || kind.split(' ').all(|word| WORDS.contains(&word))
}

fn push(all: &mut Vec<String>, one: String) {
    if !all.contains(&one) {
        all.push(one);
    }
}

fn place(function: &FunctionSource, place: &Place) -> Option<StmtId> {
    function.stmt_at(place.line, place.column)
}

/// The code in a finding's name for its object: "`ctx->name`".
fn expression(object: &str) -> Option<String> {
    let code = object.strip_prefix('`')?.strip_suffix('`')?;
    is_plain(code).then(|| code.to_owned())
}

/// Variables, members and dereferences: evaluated without effect, and meaning the same wherever it is written.
pub fn is_plain(code: &str) -> bool {
    let starts = code.trim_start_matches('*').chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let code = code.replace("->", ".");
    // A constant index means the same everywhere, too.
    let constant = code.split('[').skip(1).all(|rest| {
        rest.split_once(']').is_some_and(|(index, _)| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()))
    });
    starts && constant && code.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '*' | '[' | ']'))
}

pub fn root(expression: &str) -> &str {
    let code = expression.trim_start_matches('*');
    let end = code.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(code.len());
    &code[..end]
}
