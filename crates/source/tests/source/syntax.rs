//! What is read from the text: statements, scopes, names, positions.

use caulk_source::{DeclKind, Meaning, Origin, Slot, StmtKind};

use super::{function_in, parse, stmt};

#[test]
fn shadowed_names_are_not_visible() {
    let text = "char *p;\nint f(char *q)\n{\n\tchar *r = q;\n\tg(p);\n\tif (q) {\n\t\tint q = 1, p = 2;\n\t\tg(r + q + p);\n\t}\n\treturn 0;\n}\n";
    let function = function_in(text);
    let outer_q = function.decls.iter_ids().find(|(_, d)| d.kind == DeclKind::Parameter).unwrap().0;
    let inner = text.find("g(r").unwrap();
    let end = text.find("return").unwrap();
    assert!(!function.visible_as("q", outer_q, inner));
    assert!(function.visible_as("q", outer_q, end));
    let global = function.decls.iter_ids().find(|(_, d)| d.kind == DeclKind::Global).unwrap().0;
    assert!(function.visible_as("p", global, end));
    assert!(!function.visible_as("p", global, inner));
    let r = function.variable_at("r", inner).unwrap();
    assert_eq!(function.decls[r].type_name, "char *");
    assert_eq!(function.variable_at("r", text.find("char *r").unwrap()), None, "not before its declaration");
    let names: Vec<_> = function.variables_in_scope(end).into_iter().map(|d| function.decls[d].name.clone()).collect();
    assert_eq!(names, ["q", "r", "p"]);
}

#[test]
fn loop_variables_end_with_their_loop_and_macros_hide_everything() {
    let text = "#define hidden 3\nint f(int n)\n{\n\tfor (int i = 0; i < n; i++)\n\t\tg(0);\n\treturn n;\n}\nvoid later(void);\n";
    let function = function_in(text);
    assert!(function.variable_at("i", text.find("g(0)").unwrap()).is_some());
    let end = text.find("return").unwrap();
    assert_eq!(function.lookup("i", end), Meaning::Unknown);
    assert_eq!(function.lookup("hidden", end), Meaning::Macro);
    assert!(function.callable_at("free", end));
    assert!(!function.callable_at("later", end), "declared below");
    assert!(!function.callable_at("nowhere", end));
}

#[test]
fn a_local_that_hides_a_function_stops_calls_of_it() {
    let text = "int f(int n)\n{\n\tif (n) {\n\t\tint free = 1;\n\t\tg(&free);\n\t}\n\treturn n;\n}\n";
    let function = function_in(text);
    assert!(!function.callable_at("free", text.find("g(&").unwrap()));
    assert!(function.callable_at("free", text.find("return").unwrap()));
}

#[test]
fn fresh_names_avoid_everything_in_sight() {
    let text = "#define tmp2 0\n#define USES g(&tmp4)\nint tmp3, tmp4;\nint f(int tmp)\n{\n\tUSES;\n\treturn tmp;\n}\n";
    assert_eq!(function_in(text).fresh_name("tmp"), "tmp5");
    assert_eq!(function_in(text).fresh_name("ret"), "ret");
    assert_eq!(function_in(text).fresh_name_besides("ret", &["ret".into()]), "ret2");
}

#[test]
fn positions_lead_to_statements_and_calls() {
    let text = "#define CHECK(x) do { if (x) g(0); } while (0)\nint f(char *p)\n{\n\tif (g(p)) return add(p, strdup(p));\n\tCHECK(g(p));\n\treturn 0;\n}\n";
    let function = function_in(text);
    let text_at = |line, column| function.text(function.stmts[function.stmt_at(line, column).unwrap()].span);
    assert_eq!(text_at(4, 6), "if (g(p)) return add(p, strdup(p));");
    assert_eq!(text_at(4, 12), "return add(p, strdup(p));");
    assert_eq!(text_at(4, 0), "if (g(p)) return add(p, strdup(p));");
    assert_eq!(text_at(5, 2), "CHECK(g(p));");
    assert_eq!(text_at(6, 1), "return 0;");
    let strdup = function.call_at(4, 26, "strdup").unwrap();
    assert_eq!(function.text(function.calls[strdup].span), "strdup(p)");
    assert_eq!(function.calls_at(5, 2).len(), 1, "the call in the macro's body");
    let argument = function.call_at(5, 8, "g").unwrap();
    assert!(matches!(function.calls[argument].origin, Origin::InMacro(_)));
    assert!(function.calls_at(99, 1).is_empty());
}

#[test]
fn statements_know_their_place() {
    let text = "int f(a, b)\n\tint a;\n\tchar *b;\n{\n\tswitch (a) {\n\tcase 1:\n\tout:\n\t\treturn g(b);\n\tdefault:;\n\t}\n\tif (a) goto out;\n\treturn 0;\n}\n";
    let function = function_in(text);
    assert!(function.is_knr);
    assert_eq!(function.return_type, "int");
    let ret = stmt(&function, "return g(b);");
    assert_eq!(function.stmts[ret].slot, Slot::AfterLabel);
    assert_eq!(function.stmts[function.enclosing_block(ret)].slot, Slot::SwitchBody);
    assert_eq!(function.labels().map(|(_, name)| name).collect::<Vec<_>>(), ["out"]);
    let StmtKind::Return { value: Some(value) } = function.stmts[ret].kind else { panic!("a return") };
    assert_eq!(function.text(value), "g(b)");
    assert!(!function_in("int f(int a) { return a; }").is_knr);
}

#[test]
fn inactive_code_is_known() {
    let text = "int f(char *p)\n{\n#if 0\n\tg(p); don't\n#endif\n\treturn 0;\n}\n";
    let function = function_in(text);
    assert!(function.is_inactive(text.find("g(p)").unwrap()));
    assert!(!function.is_inactive(text.find("return").unwrap()));
}

#[test]
fn functions_are_found_by_line_and_broken_files_still_parse() {
    let text = b"int a(void)\n{\n\treturn 1;\n}\nint f(void)\n{\n\tundeclared x;\n\treturn 2;\n}\n";
    let unit = parse(text);
    let path = std::path::Path::new("/virtual/t.c");
    assert_eq!(unit.function_at(path, 3).map(|f| f.name), Some("a".into()));
    assert_eq!(unit.function_at(path, 8).map(|f| f.name), Some("f".into()));
    assert!(unit.function_at(path, 20).is_none());
    assert!(unit.diagnostics().iter().any(|d| d.line == 7));
}

#[test]
fn a_function_made_by_a_macro_has_no_source() {
    let unit = parse(b"#define MAKE(n) int n(void) { return 1; }\nMAKE(f)\n");
    assert!(unit.function("f").is_none());
}

#[test]
fn headers_are_told_from_the_main_file() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("sub")).unwrap();
    std::fs::create_dir(root.join("inc")).unwrap();
    std::fs::write(root.join("inc/h.h"), "static inline int h(void)\n{\n\treturn 1;\n}\n").unwrap();
    std::fs::write(root.join("sub/t.c"), "#error not this one\n").unwrap();
    let request = caulk_source::ParseRequest {
        file: "t.c".into(),
        directory: root.join("sub"),
        flags: vec!["-I../inc".into(), "-DN=4".into()],
        unsaved: vec![(root.join("sub/t.c"), b"#include \"h.h\"\nint f(void) { return h() + N; }\n".to_vec())],
    };
    let unit = caulk_source::SourceUnit::parse(&request).unwrap();
    assert_eq!(unit.diagnostics(), []);
    let main = unit.function("f").unwrap();
    let header = unit.function("h").unwrap();
    assert!(main.in_main_file && !header.in_main_file && header.is_inline && header.is_static);
    assert_eq!(header.file.path, root.join("inc/h.h"));
}
