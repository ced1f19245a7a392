//! Each invariant broken once: the problem is named, and nothing panics.

use caulk_ir::{Block, BlockId, InstId, Op, SymbolId, SymbolKind, Unit, ValueId, ValueKind, VarId, parse_unit, verify};

const GOOD: &str = "
global internal @cell size 8
fn @f(v0: ptr, v1: i1) -> ptr {
  var0 \"p\" param 0
bb0:
  v2 = load ptr v0
  branch v1, bb1, bb2
bb1:
  v3 = load ptr v2
  jump bb3
bb2:
  jump bb3
bb3:
  v4 = phi ptr [bb1: v3], [bb2: null]
  bind var0, v4
  return v4
}";

/// Breaks the good unit and gives the first problem.
fn broken(change: impl FnOnce(&mut Unit)) -> String {
    let mut unit = parse_unit(GOOD).expect("reads");
    assert_eq!(verify(&unit), []);
    change(&mut unit);
    verify(&unit).first().expect("a problem").to_string()
}

/// As [`broken`], for the body of the one function.
fn broken_op(inst: u32, op: Op) -> String {
    broken(|unit| unit.functions.iter_mut().next().expect("f").insts[InstId(inst)].op = op)
}

#[test]
fn a_definition_must_dominate_its_uses() {
    let text = GOOD.replace("bb2:\n  jump bb3", "bb2:\n  store v3 to v0\n  jump bb3");
    let error = parse_unit(&text).expect_err("v3 is not there in bb2");
    assert_eq!(error.to_string(), "line 3: i4 in bb2 uses v3, whose definition does not dominate it");
    let text = GOOD.replace("[bb2: null]", "[bb2: v3]");
    let error = parse_unit(&text).expect_err("v3 is not there at the end of bb2");
    assert_eq!(error.message, "i5: v3 is not there at the end of bb2");
    assert_eq!(
        broken_op(0, Op::Load { ptr: ValueId(2) }),
        "f0: i0 in bb0 uses v2, whose definition does not dominate it"
    );
}

#[test]
fn a_loop_may_use_what_it_defined_before() {
    let text = "fn @f(v0: i32) {\nbb0:\n jump bb1\nbb1:\n v1 = phi i32 [bb0: v0], [bb1: v2]\n v2 = add i32 v1, i32 1\n v3 = cmp slt v2, i32 9\n branch v3, bb1, bb2\nbb2:\n return\n}";
    assert!(parse_unit(text).is_ok());
}

#[test]
fn a_phi_names_each_predecessor_once() {
    for incoming in [
        vec![(BlockId(1), ValueId(3))],
        vec![(BlockId(1), ValueId(3)), (BlockId(1), ValueId(3))],
        vec![(BlockId(1), ValueId(3)), (BlockId(2), ValueId(0)), (BlockId(0), ValueId(0))],
    ] {
        let problem = broken_op(5, Op::Phi { incoming });
        assert!(problem.contains("does not name each predecessor of bb3 once"), "{problem}");
    }
    let text = GOOD.replace("  bind var0, v4\n", "  bind var0, v4\n  v5 = phi ptr [bb1: v3], [bb2: v0]\n");
    let late = parse_unit(&text).expect_err("the bind comes before the phi");
    assert_eq!(late.message, "i7: a phi does not stand at the start of bb3");
}

#[test]
fn blocks_end_in_their_one_terminator() {
    assert_eq!(broken_op(1, Op::Load { ptr: ValueId(0) }), "f0: bb0: i1 is no terminator");
    assert_eq!(broken_op(0, Op::Unreachable), "f0: bb0: i0 ends the block");
    let gap = broken(|unit| {
        let f = unit.functions.iter_mut().next().expect("f");
        f.blocks[BlockId(1)] = Block { first: InstId(3), end: InstId(3) };
    });
    assert_eq!(gap, "f0: bb1 does not follow the block before, or is empty");
    let none = broken(|unit| unit.functions.iter_mut().next().expect("f").blocks = Vec::new().into());
    assert_eq!(none, "f0: there is no entry block");
}

#[test]
fn ids_must_exist() {
    assert_eq!(broken_op(0, Op::Load { ptr: ValueId(77) }), "f0: i0: v77 does not exist");
    assert_eq!(broken_op(1, Op::Jump { to: BlockId(9) }), "f0: i1: bb9 does not exist");
    assert_eq!(broken_op(0, Op::Bind { var: VarId(4), value: ValueId(0) }), "f0: i0: var4 does not exist");
    let symbol = broken(|unit| {
        unit.functions.iter_mut().next().expect("f").values[ValueId(3)].kind = ValueKind::Address(SymbolId(50), 0);
    });
    assert_eq!(symbol, "f0: v3 is not what its definition says");
    let init = broken(|unit| {
        let value = caulk_ir::InitValue::Address(SymbolId(50), 0);
        unit.globals.iter_mut().next().expect("cell").init.push(caulk_ir::Init { offset: 0, value });
    });
    assert_eq!(init, "g0: sym50 does not exist");
}

#[test]
fn symbols_have_their_definitions_and_aliases_end() {
    let twice = broken(|unit| {
        let f = unit.symbols.iter_mut().find(|symbol| symbol.name == "f").expect("f");
        f.kind = SymbolKind::Alias(SymbolId(1));
    });
    assert_eq!(twice, "sym1 (f) has no definition");
    let wrong = broken(|unit| unit.functions.iter_mut().next().expect("f").symbol = SymbolId(0));
    assert_eq!(wrong, "sym1 (f) has no definition");
}
