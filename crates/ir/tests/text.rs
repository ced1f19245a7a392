//! The text form: what is written comes back, and what is wrong is named with its line.

use caulk_ir::{
    Callee, Linkage, Op, ParamAttrs, SymbolId, SymbolKind, Ty, Unit, ValueKind, parse_unit, print_function, print_unit,
    verify,
};

fn parse(text: &str) -> Unit {
    parse_unit(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> String {
    match parse_unit(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Every instruction and every kind of constant.
const EVERYTHING: &str = r#"
unit "/src/t.c"
file0 "/src/t.c"
file1 "/src/a \"b\" \\ c.h"
scope0 file0:1:0
scope1 file1:2:3 in scope0
loc0 none:0:0
loc1 file0:1:5 scope0
loc2 file1:2:9 scope1 macro
ty0 "int" 4 base
ty1 "" 8 pointer ty2
ty2 "node" 16 struct { "value" 0 ty0, "next" 8 ty1 }
ty3 "u" 8 union { "" 0 }
ty4 "e" 4 enum
ty5 "T" 4 typedef ty0
ty6 "" 4 const ty0
ty7 "" 4 qualified ty0
ty8 "" 40 array ty0
ty9 "" 0 function
ty10 "" 0 other
ty11 "" 8 pointer
sym0 external define @f = f0
sym1 external declare @malloc noalias_result (_, nocapture readonly byval sret pointer_to_const nonnull)
sym2 internal define @table = g0
sym3 weak alias @g = sym0
sym4 common variable @"odd name"
sym5 external declare @loc7 noreturn readonly readnone returns_twice
sym6 available_externally define @h = f1
sym7 external declare @free (_)
global @table size 32 const thread_local literal incomplete @loc1 ty1 init { 0: -5 x 4, 8: @f, 16: @table[-8] }
gap "f" "callbr"

f0 @f(v0: ptr nocapture, v1: i32, ...) -> i32 noreturn ty0 scope0 @loc1 {
  var0 "p" param 0 ty1 scope0 @loc1
  var1 "q"
bb0:
  v2 = alloca 16 var1 @loc2
  v3 = alloca 4 x v1
  v4 = load i64 v2
  store i32 -1 to v3
  v5 = offset v0 + -8 + v4 * 4 + i64 3 * 1
  v6 = cmp ne v5, null
  v7 = add i32 v1, i32 2
  v8 = float float v4, float undef
  v9 = tofloat float v1
  v10 = select ptr v6, v5, @table[8]
  v11 = call ptr @malloc(i64 8, ptr 5)
  v12 = call i32 *v11(v10, true, false) noreturn
  call void asm clobbers()
  v13 = call i64 intrinsic "llvm.objectsize"(v10, i64 @table)
  v14 = call i64 asm(sym5)
  copy v2, @"odd name", i64 16
  fill v2, i8 0, i64 16
  v15 = extract i64 agg16 zero at 8
  v16 = insert agg16 agg16 undef, v4 at 8
  v17 = atomic i32 v2, i32 1
  v18 = va_arg ptr v2
  v19 = opaque i32 "shuffle" clobbers (v1, v4)
  v20 = opaque i32 "shuffle" ()
  bind var0, bb2
  branch v6, bb1, bb2
bb1:
  v21 = phi i32 [bb0: i32 1], [bb3: v22]
  switch v21 [-1: bb2, 5: bb3] default bb3
bb2:
  indirect v5 [bb3, bb4]
bb3:
  v22 = same i32 v1
  jump bb1
bb4:
  return v1
}
f1 @h() -> void {
bb0:
  return @loc2
}
"#;

#[test]
fn everything_that_can_be_written_comes_back() {
    let unit = parse(EVERYTHING);
    let text = print_unit(&unit);
    let again = parse(&text);
    assert_eq!(again, unit, "{text}");
    assert_eq!(print_unit(&again), text);
    assert_eq!(verify(&unit), []);
    let SymbolKind::DeclaredFunction(free) = &unit.symbols[SymbolId(7)].kind else { panic!("free is declared") };
    assert_eq!(free.params, [ParamAttrs::default()]);
    for line in ["v5 = offset v0 + -8 + v4 * 4 + i64 3 * 1", "store i32 -1 to v3", "v10 = select ptr v6, v5, @table[8]"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_unit_without_anything_comes_back() {
    let unit = parse("");
    assert_eq!(parse(&print_unit(&unit)), unit);
}

#[test]
fn names_are_declared_by_their_use() {
    let unit = parse(
        "global internal @cache size 8 init { 0: @helper }
         fn @main() -> i32 {
         bb0:
           v0 = call ptr @malloc(i64 8) @3:14
           store v0 to @cache @util.c:4:2
           call void @helper(@errno)
           return i32 0
         }
         fn internal @helper(v0: ptr) {
         bb0:
           return
         }",
    );
    let kind = |name: &str| {
        let symbol = unit.symbols.iter().find(|symbol| symbol.name == name).expect(name);
        (symbol.linkage, symbol.kind.clone())
    };
    assert!(matches!(kind("malloc"), (Linkage::External, SymbolKind::DeclaredFunction(_))));
    assert!(matches!(kind("errno"), (Linkage::External, SymbolKind::DeclaredGlobal)));
    assert!(matches!(kind("helper"), (Linkage::Internal, SymbolKind::Function(_))));
    assert!(matches!(kind("cache"), (Linkage::Internal, SymbolKind::Global(_))));
    let main = unit.functions.iter().next().expect("main");
    let store = main.insts.iter().find(|inst| matches!(inst.op, Op::Store { .. })).expect("a store");
    let loc = unit.locs[store.loc];
    assert_eq!((unit.files[loc.file.expect("a file")].as_str(), loc.line, loc.column), ("util.c", 4, 2));
    assert_eq!(parse(&print_unit(&unit)), unit);
}

#[test]
fn a_symbol_that_is_first_an_address_and_then_called_is_a_function() {
    let unit = parse("fn @f() {\nbb0:\n store @g to ptr undef\n call void @g()\n return\n}");
    let f = unit.functions.iter().next().expect("f");
    let Op::Call(call) = &f.insts.iter().nth(1).expect("a call").op else { panic!("no call") };
    let Callee::Symbol(symbol) = call.callee else { panic!("not by name") };
    assert!(matches!(unit.symbols[symbol].kind, SymbolKind::DeclaredFunction(_)));
}

#[test]
fn two_symbols_of_one_name_stay_apart() {
    let mut unit =
        parse("sym0 external declare @f\nsym1 internal variable @f\nfn @g() -> ptr {\nbb0:\n return sym1\n}");
    assert_eq!(parse(&print_unit(&unit)), unit);
    let f = unit.functions.iter_mut().next().expect("g");
    assert!(f.values.iter().any(|value| matches!(value.kind, ValueKind::Address(symbol, 0) if symbol.0 == 1)));
    assert_eq!(f.ret, Ty::Ptr);
}

#[test]
fn a_function_for_reading_has_its_positions_in_place() {
    let unit = parse(EVERYTHING);
    let text = print_function(&unit, unit.functions.iter().next().expect("f"));
    assert!(text.starts_with("f0 @f(v0: ptr nocapture, v1: i32, ...) -> i32 noreturn @t.c:1:5 {\n"), "{text}");
    assert!(text.contains("v2 = alloca 16 var1 @\"a \\\"b\\\" \\\\ c.h\":2:9\n"), "{text}");
    assert!(!text.contains("const v"), "{text}");
    parse(&text.replace("sym5", "@abort"));
}

#[test]
fn errors_name_their_line() {
    let head = "unit \"t.c\"\nfn @f(v0: ptr) {\nbb0:\n";
    for (body, wanted) in [
        (" v1 = lode i32 v0\n return\n}", "line 4: unknown instruction `lode`"),
        (" v1 = load v0\n return\n}", "line 4: `load` needs the type of its result"),
        (" v1 = load i32 v9\n return\n}", "line 4: v9 is never defined"),
        (" v0 = load i32 v0\n return\n}", "line 4: v0 is defined twice"),
        (" store v0 v0\n return\n}", "line 4: `to` and an address are expected"),
        (" call void @g(v0\n return\n}", "line 4: `,` is expected at the end of the line"),
        (" return i32 99999999999999999999\n}", "line 4: 99999999999999999999 is out of range"),
        (" return \"x\n}", "line 4: a quotation mark is missing"),
        (" return ?\n}", "line 4: `?` has no meaning here"),
        (" return\n", "line 2: this function has no closing `}`"),
        (" jump bb7\n}", "line 2: i0: bb7 does not exist"),
        (" v4000000000 = load i32 v0\n return\n}", "line 2: the numbers of the values have large gaps"),
    ] {
        assert_eq!(error(&format!("{head}{body}")), wanted);
    }
    assert_eq!(error("loc1 none:0:0"), "line 1: number 0 is expected here, not 1");
    assert_eq!(error("ty0 \"\" 8 pointer ty5"), "line 1: ty0: ty5 does not exist");
}

#[test]
fn broken_text_is_an_error_and_never_a_panic() {
    // Each line dropped, each character dropped, and the text cut anywhere.
    let text = print_unit(&parse(EVERYTHING));
    let lines: Vec<&str> = text.lines().collect();
    for skip in 0..lines.len() {
        let without: String =
            lines.iter().enumerate().filter(|(i, _)| *i != skip).map(|(_, l)| format!("{l}\n")).collect();
        let _ = parse_unit(&without);
    }
    for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
        let _ = parse_unit(&text[..at]);
        let mut characters: Vec<char> = text.chars().collect();
        if at < characters.len() && at % 3 == 0 {
            characters.remove(at);
            let _ = parse_unit(&characters.into_iter().collect::<String>());
        }
    }
}
