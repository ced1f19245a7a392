//! Names, linkage, initialisers and attributes.

use caulk_ir::Linkage;

use super::*;

fn lines_with<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(word)).collect()
}

#[test]
fn every_kind_of_symbol() {
    let unit = unit_with(
        "static int hidden(void) { return 1; } int shown(void) { return hidden(); }
         __attribute__((weak)) int soft(void) { return 2; } extern int elsewhere(void); extern int far_away;
         int again(void) __attribute__((alias(\"shown\"))); int tentative; static char *mine = \"text\";
         int renamed(void) __asm__(\"other_name\");
         static void *pick(void) { return shown; } int chosen(void) __attribute__((ifunc(\"pick\")));
         int *all(void) { elsewhere(); renamed(); return chosen() ? &far_away : mine; }",
        &["-fcommon"],
    );
    let kind = |name: &str| {
        let symbol = unit.symbols.iter().find(|symbol| symbol.name == name).unwrap_or_else(|| panic!("no {name}"));
        (symbol.linkage, symbol.kind.clone())
    };
    assert!(matches!(kind("hidden"), (Linkage::Internal, SymbolKind::Function(_))));
    assert!(matches!(kind("shown"), (Linkage::External, SymbolKind::Function(_))));
    assert!(matches!(kind("soft"), (Linkage::Weak, SymbolKind::Function(_))));
    assert!(matches!(kind("elsewhere"), (Linkage::External, SymbolKind::DeclaredFunction(_))));
    assert!(matches!(kind("far_away"), (Linkage::External, SymbolKind::DeclaredGlobal)));
    assert!(matches!(kind("tentative"), (Linkage::Common, SymbolKind::Global(_))));
    assert!(matches!(kind("other_name"), (Linkage::External, SymbolKind::DeclaredFunction(_))));
    let (_, SymbolKind::Alias(to)) = kind("again") else { panic!("an alias") };
    assert_eq!(unit.symbols[to].name, "shown");
    assert!(
        matches!(kind("chosen"), (Linkage::External, SymbolKind::DeclaredFunction(_))),
        "an ifunc is decided later"
    );
    let literal = unit.globals.iter().find(|global| unit.symbols[global.symbol].name == ".str").expect("a literal");
    assert!(literal.is_literal && literal.is_const && !literal.init_complete);
    assert_eq!(literal.size, 5);
}

#[test]
fn tables_of_functions_and_nested_structs() {
    let unit = unit(
        "int a(void) { return 1; } int b(void) { return 2; } int cell[8];
         struct op { const char *name; int (*run)(void); int *p; short n; double d; };
         struct op table[2] = { { \"a\", a, &cell[3], 7 }, { 0, b, 0, 0 } };
         int small[3] = { 5, 0, -6 }; int large[40] = { 1 }; long tag = (long)&cell; double d = 1.5;",
    );
    let text = print_unit(&unit);
    assert_eq!(
        lines_with(&text, "global @table size")[0].split(" init ").nth(1),
        Some("{ 0: @.str, 8: @a, 16: @cell[12], 24: 7 x 2, 48: @b }")
    );
    assert!(lines_with(&text, "global @small")[0].ends_with("init { 0: 5 x 4, 8: -6 x 4 }"), "{text}");
    assert!(lines_with(&text, "global @tag")[0].ends_with("init { 0: @cell }"), "{text}");
    assert!(lines_with(&text, "global @d size")[0].contains(" incomplete"), "{text}");
    assert!(!lines_with(&text, "global @cell")[0].contains("incomplete"), "zeros are all there is");
}

#[test]
fn constructors_are_in_a_table_and_used_is_not_a_use() {
    let unit = unit(
        "static void start(void) __attribute__((constructor)); static void start(void) {}
         __attribute__((used)) static void kept(void) {}",
    );
    let text = print_unit(&unit);
    assert!(lines_with(&text, "global @llvm.global_ctors")[0].contains("8: @start"), "{text}");
    assert!(!text.contains("llvm.used") && !text.contains("llvm.compiler.used"), "{text}");
}

#[test]
fn library_functions_get_what_llvm_knows_of_them() {
    let unit = unit(
        "#include <string.h>
         #include <stdlib.h>
         unsigned long f(const char *s) { if (!s) abort(); free(malloc(3)); return strlen(s); }",
    );
    let text = print_unit(&unit);
    assert!(lines_with(&text, "declare @strlen")[0].contains("(nocapture"), "{text}");
    assert!(lines_with(&text, "declare @strlen")[0].contains(" readonly"), "{text}");
    assert!(lines_with(&text, "declare @abort")[0].contains(" noreturn"), "{text}");
    assert!(lines_with(&text, "declare @malloc")[0].contains(" noalias_result"), "{text}");
    assert!(lines_with(&text, "declare @free")[0].contains("(nocapture"), "{text}");
}

#[test]
fn pointers_to_const_are_known_of_definitions() {
    let unit = unit(
        "typedef const char *text; typedef const struct s cs;
         void f(const char *a, char *b, text c, cs *d, char *const e, int g, const void *const *h, ...) {}",
    );
    let params: Vec<bool> = function(&unit, "f").attrs.params.iter().map(|param| param.pointer_to_const).collect();
    assert_eq!(params, [true, false, true, true, false, false, true]);
}

/// The parameters of a declared function that are pointers to const, by position.
fn declared(unit: &Unit, name: &str) -> Vec<bool> {
    let symbol = unit.symbols.iter().find(|symbol| symbol.name == name).unwrap_or_else(|| panic!("{name}"));
    let SymbolKind::DeclaredFunction(attrs) = &symbol.kind else { panic!("{name} has a body") };
    attrs.params.iter().map(|param| param.pointer_to_const).collect()
}

#[test]
fn pointers_to_const_are_known_of_declarations() {
    let unit = unit(
        "typedef const char *text; struct pair { char *a, *b; }; struct big { char a[80]; };
         int take(const char *a, char *b, text c, char *const d, const char e[], ...);
         int renamed(const char *a) __asm__(\"real_name\");
         struct big result(const char *a, char *b);
         int after(const char *a, struct pair by_value, const char *unknown);
         int (*pointer)(const char *a); int old(); int unused(const char *a);
         typedef union { const struct big *__b; const char *__c; } either __attribute__((transparent_union));
         int socket_like(int n, either which, const char *name);
         int later(char *a);
         int f(char *p, struct pair s) {
             extern int inside(const void *a);
             int (*kept)(char *) = later;
             result(p, p); after(p, s, p); pointer(p); old(p); socket_like(1, (const struct big *)p, p); inside(p);
             return take(p, p, p, p, p, p) + renamed(p) + !kept;
         }",
    );
    assert_eq!(declared(&unit, "take"), [true, false, true, false, true]);
    assert_eq!(declared(&unit, "real_name"), [true]);
    assert_eq!(declared(&unit, "result"), [false, true, false], "the place of the result comes first");
    assert!(declared(&unit, "after")[0], "what comes before a struct is known");
    assert_eq!(declared(&unit, "after")[1..], [false, false, false], "what follows is not");
    assert_eq!(declared(&unit, "old"), [false; 0]);
    assert_eq!(declared(&unit, "socket_like"), [false, true, true]);
    assert_eq!(declared(&unit, "inside"), [true]);
    assert_eq!(declared(&unit, "later"), [false]);
    assert!(!unit.symbols.iter().any(|symbol| symbol.name == "unused"));
    assert!(print_unit(&unit).contains("declare @inside (pointer_to_const)"), "{}", print_unit(&unit));
}

/// The last prototype counts; one without parameters says nothing.
#[test]
fn a_function_declared_more_than_once() {
    let unit = unit(
        "int f(const char *); int f(const char *text); int g(const char *); int g();
         int h(char *p) { return f(p) + g(p); }",
    );
    assert_eq!(declared(&unit, "f"), [true]);
    assert_eq!(declared(&unit, "g"), [true]);
}

#[test]
fn functions_without_a_prototype_know_their_parameters() {
    let unit = unit_with("int f(a, n, b) const char *a; int n; char *b; { return a[n] + *b; }", &["-std=gnu89"]);
    let f = function(&unit, "f");
    let vars: Vec<_> = f.vars.iter().map(|var| (var.name.as_str(), var.param)).collect();
    assert_eq!(vars, [("a", Some(0)), ("n", Some(1)), ("b", Some(2))]);
    let to_const: Vec<bool> = f.attrs.params.iter().map(|param| param.pointer_to_const).collect();
    assert_eq!(to_const, [true, false, false]);
}

#[test]
fn parameters_are_found_behind_those_that_take_two_registers() {
    let unit = unit("void f(double _Complex z, struct { char a[12]; } s, const char *p) {}");
    let f = function(&unit, "f");
    let p = f.vars.iter().find(|var| var.name == "p").expect("p").param.expect("a position");
    assert!(f.attrs.params[p as usize].pointer_to_const);
    assert_eq!(p, f.param_count - 1);
}
