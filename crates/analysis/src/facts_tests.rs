//! Ranges, comparisons, and what follows from them.

use caulk_ir::{BinOp, CastOp, CmpOp};

use crate::facts::{Facts, Range};
use crate::term::{TermId, Terms};

fn start() -> (Terms, TermId, TermId) {
    let mut terms = Terms::new();
    let (x, y) = (terms.param(0), terms.param(1));
    (terms, x, y)
}

/// `a op k` is assumed; `false` is a contradiction.
fn holds(facts: &mut Facts, terms: &mut Terms, a: TermId, op: CmpOp, k: i64) -> bool {
    let k = terms.int(k);
    let cond = terms.cmp(op, a, k);
    facts.assume(terms, cond, true)
}

fn known(facts: &Facts, terms: &mut Terms, a: TermId, op: CmpOp, k: i64) -> Option<bool> {
    let k = terms.int(k);
    let cond = terms.cmp(op, a, k);
    facts.known(terms, cond)
}

#[test]
fn ranges_meet_until_nothing_is_left() {
    let (mut terms, x, _) = start();
    let mut facts = Facts::default();
    assert!(holds(&mut facts, &mut terms, x, CmpOp::Sgt, 3));
    assert!(holds(&mut facts, &mut terms, x, CmpOp::Sle, 5));
    assert_eq!(facts.range(&terms, x), Range::between(4, 5));
    assert!(holds(&mut facts, &mut terms, x, CmpOp::Ne, 5));
    assert_eq!(facts.range(&terms, x).constant(), Some(4));
    assert!(!holds(&mut facts, &mut terms, x, CmpOp::Ne, 4));
}

#[test]
fn holes_at_the_edge_move_the_edge() {
    let (mut terms, x, _) = start();
    let mut facts = Facts::default();
    for k in [1, 2] {
        assert!(holds(&mut facts, &mut terms, x, CmpOp::Ne, k));
    }
    assert!(facts.range(&terms, x).excludes(2) && !facts.range(&terms, x).excludes(3));
    assert!(holds(&mut facts, &mut terms, x, CmpOp::Sge, 1));
    assert_eq!(facts.range(&terms, x), Range::between(3, i64::MAX));
}

#[test]
fn what_both_paths_know_is_the_hull() {
    let (mut terms, x, _) = start();
    let (mut negative, mut positive) = (Facts::default(), Facts::default());
    assert!(holds(&mut negative, &mut terms, x, CmpOp::Slt, 0));
    assert!(holds(&mut positive, &mut terms, x, CmpOp::Sgt, 0));
    let joined = negative.join(&terms, &positive, true);
    assert_eq!(known(&joined, &mut terms, x, CmpOp::Eq, 0), Some(false));
    assert_eq!(known(&joined, &mut terms, x, CmpOp::Eq, 1), None);
    let unknown = joined.join(&terms, &Facts::default(), true);
    assert_eq!(unknown, Facts::default());
}

#[test]
fn a_comparison_of_two_terms_answers_others_about_them() {
    let (mut terms, x, y) = start();
    let mut facts = Facts::default();
    let less = terms.cmp(CmpOp::Slt, x, y);
    assert!(facts.assume(&mut terms, less, true));
    for (op, a, b, answer) in [
        (CmpOp::Sge, x, y, Some(false)),
        (CmpOp::Ne, x, y, Some(true)),
        (CmpOp::Sgt, y, x, Some(true)),
        (CmpOp::Sle, y, x, Some(false)),
        // The order without signs is another one.
        (CmpOp::Ult, x, y, None),
    ] {
        let cond = terms.cmp(op, a, b);
        assert_eq!(facts.known(&terms, cond), answer, "{op:?}");
    }
    let equal = terms.cmp(CmpOp::Eq, x, y);
    assert!(!facts.assume(&mut terms, equal, true));
}

#[test]
fn equal_terms_share_their_range() {
    let (mut terms, x, y) = start();
    let mut facts = Facts::default();
    assert!(holds(&mut facts, &mut terms, x, CmpOp::Eq, 7));
    let equal = terms.cmp(CmpOp::Eq, x, y);
    assert!(facts.assume(&mut terms, equal, true));
    assert_eq!(facts.range(&terms, y).constant(), Some(7));
}

#[test]
fn an_or_that_is_zero_has_only_zeros() {
    let (mut terms, x, y) = start();
    let either = terms.bin(BinOp::Or, x, y);
    let mut facts = Facts::default();
    assert!(facts.assume(&mut terms, either, false));
    assert_eq!(facts.range(&terms, x).constant(), Some(0));
    assert_eq!(facts.range(&terms, y).constant(), Some(0));
    let mut facts = Facts::default();
    assert!(holds(&mut facts, &mut terms, y, CmpOp::Ne, 0));
    assert_eq!(facts.known(&terms, either), Some(true));
    assert_eq!(facts.known(&terms, x), None);
}

#[test]
fn an_and_of_conditions_that_holds_has_both() {
    let (mut terms, x, y) = start();
    let (zero, one) = (terms.int(0), terms.int(1));
    let (a, b) = (terms.cmp(CmpOp::Eq, x, one), terms.cmp(CmpOp::Ne, y, zero));
    let both = terms.bin(BinOp::And, a, b);
    let mut facts = Facts::default();
    assert!(facts.assume(&mut terms, both, true));
    assert_eq!(facts.range(&terms, x).constant(), Some(1));
    assert!(facts.range(&terms, y).excludes(0));
    // One of them fails, and it is not known which.
    let mut facts = Facts::default();
    assert!(facts.assume(&mut terms, both, false));
    assert_eq!(facts.known(&terms, a), None);
}

#[test]
fn a_bit_of_a_mask_is_not_the_number() {
    let (mut terms, x, _) = start();
    let four = terms.int(4);
    let masked = terms.bin(BinOp::And, x, four);
    let mut facts = Facts::default();
    assert_eq!(facts.range(&terms, masked), Range::between(0, 4));
    assert!(facts.assume(&mut terms, masked, true));
    assert!(!facts.range(&terms, x).excludes(5));
    assert!(!facts.assume(&mut terms, masked, false));
}

#[test]
fn a_sum_tells_of_its_part() {
    let (mut terms, x, _) = start();
    let next = {
        let one = terms.int(1);
        terms.bin(BinOp::Add, x, one)
    };
    let mut facts = Facts::default();
    assert!(holds(&mut facts, &mut terms, next, CmpOp::Sgt, 5));
    assert_eq!(facts.range(&terms, x), Range::between(5, i64::MAX));
}

#[test]
fn a_digit_test_without_signs_does_not_lose_what_lies_below() {
    // `(unsigned)(c - '0') < 10`
    let (mut terms, c, _) = start();
    let digit = {
        let minus = terms.int(-48);
        terms.bin(BinOp::Add, c, minus)
    };
    let mut facts = Facts::default();
    assert!(holds(&mut facts, &mut terms, digit, CmpOp::Ult, 10));
    assert_eq!(facts.range(&terms, c), Range::between(48, 57));
    // No digit: a space, for one.
    let mut facts = Facts::default();
    assert!(holds(&mut facts, &mut terms, c, CmpOp::Sge, 0));
    assert!(holds(&mut facts, &mut terms, digit, CmpOp::Uge, 10));
    assert!(holds(&mut facts, &mut terms, c, CmpOp::Eq, 32));
}

#[test]
fn a_choice_is_decided_by_its_result() {
    let (mut terms, x, y) = start();
    let (zero, one) = (terms.int(0), terms.int(1));
    let cond = terms.cmp(CmpOp::Slt, x, y);
    let choice = terms.ite(cond, zero, one);
    let mut facts = Facts::default();
    assert!(facts.assume(&mut terms, choice, true));
    assert_eq!(facts.known(&terms, cond), Some(false));
}

#[test]
fn an_extension_with_zeros_is_not_negative() {
    let (mut terms, x, _) = start();
    let byte = terms.cast(CastOp::ZExt, 8, 32, x);
    let facts = Facts::default();
    assert_eq!(facts.range(&terms, byte), Range::between(0, 255));
}

#[test]
fn two_constants_are_not_what_lies_between_them() {
    let (three, seven) = (Range::point(3), Range::point(7));
    let both = Range::hull(&three, &seven);
    assert!(both.excludes(5) && !both.excludes(3) && !both.excludes(7));
    let far = Range::hull(&Range::point(i64::MIN), &Range::point(i64::MAX));
    assert!(!far.excludes(5));
}

#[test]
fn one_of_two_conditions_is_left_at_a_join() {
    let (mut terms, x, y) = start();
    let (mut first, mut second) = (Facts::default(), Facts::default());
    assert!(holds(&mut first, &mut terms, x, CmpOp::Eq, 0));
    assert!(holds(&mut second, &mut terms, y, CmpOp::Sge, 1));
    let mut joined = first.join(&terms, &second, true);
    assert!(holds(&mut joined, &mut terms, x, CmpOp::Ne, 0));
    assert_eq!(known(&joined, &mut terms, y, CmpOp::Sge, 1), Some(true));
    let mut joined = first.join(&terms, &second, true);
    assert!(holds(&mut joined, &mut terms, x, CmpOp::Ne, 0));
    assert!(!holds(&mut joined, &mut terms, y, CmpOp::Eq, 0));
    let mut forgotten = first.join(&terms, &second, false);
    assert!(holds(&mut forgotten, &mut terms, x, CmpOp::Ne, 0));
    assert!(holds(&mut forgotten, &mut terms, y, CmpOp::Eq, 0));
}
