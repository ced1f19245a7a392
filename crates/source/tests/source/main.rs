//! Edits of small C files through libclang, with the exact text before and after.

mod facts;
mod insert;
mod patch_tools;
mod rewrite;
mod syntax;

use std::path::Path;

use caulk_source::{EditSet, FunctionSource, Origin, ParseRequest, Refusal, Severity, Snippet, SourceUnit, StmtId};

const PRELUDE: &str = "void free(void *);\nvoid *malloc(unsigned long);\nchar *strdup(const char *);\n\
                       int g(void *);\nint add(void *, void *);\nchar *name(const char *);\n\
                       #define NULL ((void *)0)\n";

fn parse(text: &[u8]) -> SourceUnit {
    let file = Path::new("/virtual/t.c");
    let request = ParseRequest {
        file: file.into(),
        directory: "/".into(),
        flags: vec!["-include".into(), "/virtual/prelude.h".into()],
        unsaved: vec![(file.into(), text.to_vec()), ("/virtual/prelude.h".into(), PRELUDE.as_bytes().to_vec())],
    };
    SourceUnit::parse(&request).expect("libclang works")
}

/// The function `f` of a text that must compile.
fn function_in(text: impl AsRef<[u8]>) -> FunctionSource {
    let unit = parse(text.as_ref());
    assert_compiles(&unit, text.as_ref());
    unit.function("f").expect("a function f")
}

fn assert_compiles(unit: &SourceUnit, text: &[u8]) {
    let errors: Vec<_> = unit.diagnostics().into_iter().filter(|d| d.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?} in\n{}", String::from_utf8_lossy(text));
}

/// The statement with exactly this text; the innermost that can be edited, where several have it.
fn stmt(function: &FunctionSource, text: &str) -> StmtId {
    let found = function.stmts.iter_ids().filter(|(_, stmt)| function.file.slice(stmt.span) == text.as_bytes());
    let best = found.max_by_key(|(id, stmt)| (!matches!(stmt.origin, Origin::InMacro(_)), *id));
    best.unwrap_or_else(|| panic!("no statement `{text}`")).0
}

/// Applies edits and checks that the result still compiles.
fn applied(function: &FunctionSource, edits: &EditSet) -> String {
    let new = edits.apply(&function.file.path, &function.file.bytes).expect("edits do not overlap");
    assert_compiles(&parse(&new), &new);
    String::from_utf8(new).expect("utf-8")
}

fn before(text: &str, target: &str, code: &str) -> String {
    let function = function_in(text);
    let edits = function.insert_before(stmt(&function, target), &Snippet::from(code)).expect("not refused");
    applied(&function, &edits)
}

fn after(text: &str, target: &str, code: &str) -> String {
    let function = function_in(text);
    let edits = function.insert_after(stmt(&function, target), &Snippet::from(code)).expect("not refused");
    applied(&function, &edits)
}

fn refused_before(text: &str, target: &str) -> Refusal {
    let function = function_in(text);
    function.insert_before(stmt(&function, target), &Snippet::line("free(p);")).expect_err("refused")
}
