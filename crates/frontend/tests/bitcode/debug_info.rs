//! Positions, scopes, variables and types.

use caulk_ir::{Loc, Op, TypeKind};

use super::*;

fn loc(unit: &Unit, name: &str, wanted: impl Fn(&Op) -> bool) -> Loc {
    let inst = function(unit, name).insts.iter().find(|inst| wanted(&inst.op)).expect("the instruction");
    unit.locs[inst.loc]
}

#[test]
fn instructions_know_their_line_and_column() {
    let unit = unit("void g(int);\nvoid f(int x) {\n  if (x)\n    g(x);\n}\n");
    let call = loc(&unit, "f", |op| matches!(op, Op::Call(_)));
    assert_eq!((call.line, call.column), (4, 5));
    let path = &unit.files[call.file.expect("a file")];
    assert!(path.starts_with('/') && path.ends_with("/t.c"), "{path}");
    assert_eq!(path, &unit.source);
    assert_eq!(unit.locs[function(&unit, "f").loc].line, 2);
}

#[test]
fn code_of_a_header_is_in_the_header() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir_all(folder.path().join("a/b")).expect("makes folders");
    std::fs::write(folder.path().join("a/h.h"), "static int inner(int *p) {\n return *p; }\n").expect("writes");
    std::fs::write(folder.path().join("t.c"), "#include \"a/b/.././h.h\"\nint f(int *p) { return inner(p); }\n")
        .expect("writes");
    let unit = lower(&clang(folder.path(), &["-emit-llvm".into()], &[])).expect("lowers");
    let load = loc(&unit, "inner", |op| matches!(op, Op::Load { .. }));
    let path = &unit.files[load.file.expect("a file")];
    assert!(path.ends_with("/a/h.h") && !path.contains(".."), "{path}");
    assert_eq!(load.line, 2);
}

#[test]
fn scopes_nest_and_variables_stand_in_theirs() {
    let unit =
        unit("void g(int *);\nvoid f(void) {\n  int a = 1;\n  {\n    int a = 2;\n    g(&a);\n  }\n  g(&a);\n}\n");
    let f = function(&unit, "f");
    let scopes: Vec<_> = f.vars.iter().map(|var| var.scope.expect("a scope")).collect();
    assert_eq!(scopes.len(), 2);
    assert_eq!(Some(scopes[0]), f.scope);
    assert_eq!(unit.scopes[scopes[1]].parent, f.scope);
    assert_eq!(unit.scopes[scopes[1]].line, 4);
    let homes = f.insts.iter().filter(|inst| matches!(inst.op, Op::Alloca { var: Some(_), .. })).count();
    assert_eq!(homes, 2);
}

#[test]
fn a_variable_without_a_value_is_bound_to_the_unknown() {
    let unit = unit("char *get(void); char *f(int x) { char *p; if (x) p = get(); return p; }");
    let text = print_function(&unit, function(&unit, "f"));
    assert!(text.contains("[bb0: ptr undef]"), "{text}");
    assert_eq!(text.matches("  bind var1, v2 @t.c:1:").count(), 1, "{text}");
    assert_eq!(text.matches("bind var1, v2").count(), 1, "once, and where it is assigned: {text}");
}

#[test]
fn fields_have_names_and_offsets() {
    let unit = unit(
        "typedef struct node { struct node *next; const char *name; unsigned a : 3, b : 9; union { int i; void *p; }; int list[3]; } node_t;
         volatile int v; enum colour { RED } c; int (*call)(void); node_t *head; void f(node_t *n) {}",
    );
    let node = unit.types.iter().find(|ty| ty.name == "node").expect("the struct");
    let TypeKind::Struct(fields) = &node.kind else { panic!("a struct") };
    let offsets: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.offset)).collect();
    assert_eq!(offsets, [("next", 0), ("name", 8), ("a", 16), ("b", 16), ("", 24), ("list", 32)]);
    assert_eq!(node.size, 48);
    let next = fields[0].ty.expect("a type");
    assert!(matches!(unit.types[next].kind, TypeKind::Pointer(Some(to)) if unit.types[to].name == "node"));
    let typedef = unit.types.iter().find(|ty| ty.name == "node_t").expect("the typedef");
    assert_eq!(typedef.size, 48, "a typedef has the size of its type");
    assert!(unit.types.iter().any(|ty| matches!(ty.kind, TypeKind::Array(_)) && ty.size == 12));
    assert!(unit.types.iter().any(|ty| matches!(ty.kind, TypeKind::Enum) && ty.name == "colour"));
    assert!(unit.types.iter().any(|ty| matches!(ty.kind, TypeKind::Qualified(_))));
    assert!(unit.types.iter().any(|ty| matches!(ty.kind, TypeKind::Function)));
}

#[test]
fn without_debug_information_nothing_is_missing_but_positions() {
    let unit = unit_with("char *f(int x) { char *p = 0; return x ? p : \"a\"; }", &["-g0"]);
    assert!(function(&unit, "f").vars.is_empty());
    assert_eq!(unit.locs.len(), 1);
}
