//! The solver against brute force, and by example.

use caulk_solver::{BinOp, Budget, CastOp, CmpOp, Solver, Term, TermId, Terms, Verdict, contradiction};

/// A small generator of numbers: the same sequence on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or(0)
    }
}

const TOTAL: [BinOp; 6] = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::And, BinOp::Or, BinOp::Xor];
const PARTIAL: [BinOp; 7] = [BinOp::UDiv, BinOp::SDiv, BinOp::URem, BinOp::SRem, BinOp::Shl, BinOp::LShr, BinOp::AShr];
const COMPARISONS: [CmpOp; 10] = [
    CmpOp::Eq,
    CmpOp::Ne,
    CmpOp::Ult,
    CmpOp::Ule,
    CmpOp::Ugt,
    CmpOp::Uge,
    CmpOp::Slt,
    CmpOp::Sle,
    CmpOp::Sgt,
    CmpOp::Sge,
];

/// A term as it was asked for, before any folding.
enum Plain {
    Const(i64, u32),
    Var(u32, u32),
    Bin(BinOp, Box<Plain>, Box<Plain>),
    Cmp(CmpOp, Box<Plain>, Box<Plain>),
    Not(Box<Plain>),
    Ite(Box<Plain>, Box<Plain>, Box<Plain>),
    Cast(CastOp, Box<Plain>, u32),
}

fn random(numbers: &mut Numbers, bits: u32, depth: u32, partial: bool) -> Plain {
    let smaller = |numbers: &mut Numbers, bits| Box::new(random(numbers, bits, depth - 1, partial));
    match numbers.below(if depth == 0 { 3 } else { 11 }) {
        0 => Plain::Const(numbers.next().cast_signed() % 6, bits),
        1 | 2 => Plain::Var(u32::try_from(numbers.below(2)).unwrap_or(0), bits),
        3 if partial => {
            let op = PARTIAL[numbers.below(PARTIAL.len())];
            Plain::Bin(op, smaller(numbers, bits), smaller(numbers, bits))
        }
        3..=5 => Plain::Bin(TOTAL[numbers.below(TOTAL.len())], smaller(numbers, bits), smaller(numbers, bits)),
        6 => Plain::Not(smaller(numbers, bits)),
        7 => Plain::Ite(smaller(numbers, 1), smaller(numbers, bits), smaller(numbers, bits)),
        8 if bits > 1 => {
            let op = if numbers.below(2) == 0 { CastOp::Zero } else { CastOp::Sign };
            let from = 1 + u32::try_from(numbers.below(bits as usize - 1)).unwrap_or(0);
            Plain::Cast(op, smaller(numbers, from), bits)
        }
        8 | 9 if bits < 4 => Plain::Cast(CastOp::Trunc, smaller(numbers, bits + 1), bits),
        _ if bits == 1 => {
            let width = 1 + u32::try_from(numbers.below(3)).unwrap_or(0);
            Plain::Cmp(COMPARISONS[numbers.below(10)], smaller(numbers, width), smaller(numbers, width))
        }
        _ => Plain::Bin(BinOp::Add, smaller(numbers, bits), smaller(numbers, bits)),
    }
}

fn build(terms: &mut Terms, plain: &Plain) -> TermId {
    match plain {
        Plain::Const(value, bits) => terms.constant(*value, *bits),
        Plain::Var(id, bits) => terms.var(*id, *bits),
        Plain::Bin(op, a, b) => {
            let (a, b) = (build(terms, a), build(terms, b));
            terms.bin(*op, a, b)
        }
        Plain::Cmp(op, a, b) => {
            let (a, b) = (build(terms, a), build(terms, b));
            terms.cmp(*op, a, b)
        }
        Plain::Not(a) => {
            let a = build(terms, a);
            terms.not(a)
        }
        Plain::Ite(condition, yes, no) => {
            let (condition, yes, no) = (build(terms, condition), build(terms, yes), build(terms, no));
            terms.ite(condition, yes, no)
        }
        Plain::Cast(op, a, bits) => {
            let a = build(terms, a);
            match op {
                CastOp::Zero => terms.zext(a, *bits),
                CastOp::Sign => terms.sext(a, *bits),
                CastOp::Trunc => terms.trunc(a, *bits),
            }
        }
    }
}

fn unsigned(value: i64, bits: u32) -> i64 {
    value & ((1 << bits) - 1)
}

fn signed(value: i64, bits: u32) -> i64 {
    let value = unsigned(value, bits);
    if value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
}

fn operate(op: BinOp, x: i64, y: i64, bits: u32) -> Option<i64> {
    let (ux, uy, sx, sy) = (unsigned(x, bits), unsigned(y, bits), signed(x, bits), signed(y, bits));
    let overflow = sx == -(1 << (bits - 1)) && sy == -1;
    Some(match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x * y,
        BinOp::And => x & y,
        BinOp::Or => x | y,
        BinOp::Xor => x ^ y,
        BinOp::UDiv => ux.checked_div(uy)?,
        BinOp::URem => ux.checked_rem(uy)?,
        BinOp::SDiv | BinOp::SRem if overflow => return None,
        BinOp::SDiv => sx.checked_div(sy)?,
        BinOp::SRem => sx.checked_rem(sy)?,
        _ if uy >= i64::from(bits) => return None,
        BinOp::Shl => ux << uy,
        BinOp::LShr => ux >> uy,
        BinOp::AShr => sx >> uy,
    })
}

fn compares(op: CmpOp, x: i64, y: i64, bits: u32) -> bool {
    let (ux, uy, sx, sy) = (unsigned(x, bits), unsigned(y, bits), signed(x, bits), signed(y, bits));
    match op {
        CmpOp::Eq => ux == uy,
        CmpOp::Ne => ux != uy,
        CmpOp::Ult => ux < uy,
        CmpOp::Ule => ux <= uy,
        CmpOp::Ugt => ux > uy,
        CmpOp::Uge => ux >= uy,
        CmpOp::Slt => sx < sy,
        CmpOp::Sle => sx <= sy,
        CmpOp::Sgt => sx > sy,
        CmpOp::Sge => sx >= sy,
    }
}

/// Value (read as unsigned) and width. Variables of different widths are different variables.
fn plain_value(plain: &Plain, values: &dyn Fn(u32, u32) -> i64) -> Option<(i64, u32)> {
    let (value, bits) = match plain {
        Plain::Const(value, bits) => (*value, *bits),
        Plain::Var(id, bits) => (values(*id, *bits), *bits),
        Plain::Bin(op, a, b) => {
            let ((x, bits), (y, _)) = (plain_value(a, values)?, plain_value(b, values)?);
            (operate(*op, x, y, bits)?, bits)
        }
        Plain::Cmp(op, a, b) => {
            let ((x, bits), (y, _)) = (plain_value(a, values)?, plain_value(b, values)?);
            (i64::from(compares(*op, x, y, bits)), 1)
        }
        Plain::Not(a) => {
            let (value, bits) = plain_value(a, values)?;
            (!value, bits)
        }
        Plain::Ite(condition, yes, no) => {
            // Both arms, as an undefined one may be folded away either way.
            let (yes, no) = (plain_value(yes, values)?, plain_value(no, values)?);
            if plain_value(condition, values)?.0 == 1 { yes } else { no }
        }
        Plain::Cast(op, a, bits) => {
            let (value, from) = plain_value(a, values)?;
            (if *op == CastOp::Sign { signed(value, from) } else { value }, *bits)
        }
    };
    Some((unsigned(value, bits), bits))
}

fn term_value(terms: &Terms, id: TermId, values: &dyn Fn(u32, u32) -> i64) -> Option<i64> {
    let of = |id| term_value(terms, id, values);
    let value = match terms.term(id) {
        Term::Const { value, .. } => value,
        Term::Var { id, bits } => values(id, bits),
        Term::Bin { op, a, b } => operate(op, of(a)?, of(b)?, terms.bits(a))?,
        Term::Cmp { op, a, b } => i64::from(compares(op, of(a)?, of(b)?, terms.bits(a))),
        Term::Not { a } => !of(a)?,
        Term::Ite { condition, yes, no } => of(if of(condition)? == 1 { yes } else { no })?,
        Term::Cast { op: CastOp::Sign, a, .. } => signed(of(a)?, terms.bits(a)),
        Term::Cast { a, .. } => of(a)?,
    };
    Some(unsigned(value, terms.bits(id)))
}

/// Values for variables 0 and 1 in widths 1 to 4, cut out of one number.
fn values_of(number: i64) -> impl Fn(u32, u32) -> i64 {
    move |id, bits| unsigned(number >> (id * 10 + (bits * (bits - 1)) / 2), bits)
}

/// The variables of a term, with their widths.
fn collect(terms: &Terms, id: TermId, variables: &mut std::collections::BTreeSet<(u32, u32)>) {
    match terms.term(id) {
        Term::Const { .. } => {}
        Term::Var { id, bits } => {
            variables.insert((id, bits));
        }
        Term::Bin { a, b, .. } | Term::Cmp { a, b, .. } => [a, b].iter().for_each(|&a| collect(terms, a, variables)),
        Term::Not { a } | Term::Cast { a, .. } => collect(terms, a, variables),
        Term::Ite { condition, yes, no } => {
            [condition, yes, no].iter().for_each(|&a| collect(terms, a, variables));
        }
    }
}

#[test]
fn folding_keeps_the_value() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    for _ in 0..20_000 {
        let mut terms = Terms::new();
        let bits = 1 + u32::try_from(numbers.below(4)).unwrap_or(0);
        let plain = random(&mut numbers, bits, 4, true);
        let id = build(&mut terms, &plain);
        assert_eq!(terms.bits(id), bits);
        for _ in 0..16 {
            let values = values_of(numbers.next().cast_signed());
            if let Some((expected, _)) = plain_value(&plain, &values) {
                assert_eq!(term_value(&terms, id, &values), Some(expected), "{}", terms.display(id));
            }
        }
    }
}

#[test]
fn verdicts_agree_with_brute_force() {
    let mut numbers = Numbers(0x0dd_ba11);
    let mut solver = Solver::new(Budget { queries: u32::MAX, steps: 10_000_000 });
    let (mut feasible, mut infeasible) = (0, 0);
    for _ in 0..1500 {
        let mut terms = Terms::new();
        let conditions: Vec<TermId> = (0..1 + numbers.below(4))
            .map(|_| {
                let width = 2 + u32::try_from(numbers.below(2)).unwrap_or(0);
                let (a, b) = (random(&mut numbers, width, 2, false), random(&mut numbers, width, 1, false));
                let condition = Plain::Cmp(COMPARISONS[numbers.below(10)], Box::new(a), Box::new(b));
                build(&mut terms, &condition)
            })
            .collect();
        let mut variables = std::collections::BTreeSet::new();
        conditions.iter().for_each(|&condition| collect(&terms, condition, &mut variables));
        let width: u32 = variables.iter().map(|&(_, bits)| bits).sum();
        if width > 12 {
            continue;
        }
        let possible = (0..1 << width).any(|number: i64| {
            // Each variable has its own bits of the number.
            let values = |id, bits| {
                let before: u32 = variables.iter().take_while(|&&v| v != (id, bits)).map(|&(_, bits)| bits).sum();
                unsigned(number >> before, bits)
            };
            conditions.iter().all(|&condition| term_value(&terms, condition, &values) == Some(1))
        });
        assert!(!(possible && contradiction(&terms, &conditions)));
        let expected = if possible { Verdict::Feasible } else { Verdict::Infeasible };
        assert_eq!(solver.check(&terms, &conditions), expected);
        if possible {
            feasible += 1;
        } else {
            infeasible += 1;
            let core = solver.explain(&terms, &conditions);
            assert!(!core.is_empty());
            let core: Vec<_> = core.into_iter().map(|place| conditions[place]).collect();
            assert_eq!(solver.check(&terms, &core), Verdict::Infeasible);
        }
    }
    assert!(feasible > 100 && infeasible > 100, "{feasible} {infeasible}");
    let statistics = solver.statistics();
    assert!(statistics.by_contradiction > 0 && statistics.by_witness > 0 && statistics.by_smt > 0, "{statistics:?}");
    assert_eq!(statistics.undecided, 0);
}

/// Conditions written as a person would: `a < 3`, with `a` to `d` variables of 32 bits.
fn conditions(terms: &mut Terms, texts: &[&str]) -> Vec<TermId> {
    let operand = |terms: &mut Terms, word: &str| match word.parse::<i64>() {
        Ok(value) => terms.constant(value, 32),
        Err(_) => terms.var(word.bytes().next().map_or(0, u32::from), 32),
    };
    texts
        .iter()
        .map(|text| {
            let words: Vec<_> = text.split(' ').collect();
            let mut left = operand(terms, words[0]);
            for pair in words[1..words.len() - 2].chunks(2) {
                let right = operand(terms, pair[1]);
                let op = match pair[0] {
                    "+" => BinOp::Add,
                    "*" => BinOp::Mul,
                    "&" => BinOp::And,
                    "|" => BinOp::Or,
                    other => panic!("{other}"),
                };
                left = terms.bin(op, left, right);
            }
            let right = operand(terms, words[words.len() - 1]);
            let op = match words[words.len() - 2] {
                "==" => CmpOp::Eq,
                "!=" => CmpOp::Ne,
                "<" => CmpOp::Slt,
                "<=" => CmpOp::Sle,
                ">" => CmpOp::Sgt,
                ">=" => CmpOp::Sge,
                "<u" => CmpOp::Ult,
                other => panic!("{other}"),
            };
            terms.cmp(op, left, right)
        })
        .collect()
}

#[test]
fn contradictions_that_linear_time_finds() {
    let cases: &[&[&str]] = &[
        &["a == 0", "a != 0"],
        &["a < 3", "a >= 3"],
        &["a == 1", "a == 2"],
        &["a == b", "b == c", "a != c"],
        &["a == b", "b == 4", "a < 4"],
        &["a < b", "b < a"],
        &["a < b", "b <= a"],
        &["a < b", "b < 5", "a > 3"],
        &["a == 3", "a + 1 == b", "b == 5"],
        &["a == 6", "a & 1 != 0"],
        &["a & 7 == 9"],
        &["a >= 0", "a <= 1", "a != 0", "a != 1"],
        &["a == b", "a + 1 < 9", "b + 1 >= 9"],
        &["a <u 4", "a < 0"],
        &["a + 4 == 9", "a > 5"],
        &["a == b", "a * c == 1", "b * c == 2"],
    ];
    for case in cases {
        let mut terms = Terms::new();
        let all = conditions(&mut terms, case);
        assert!(contradiction(&terms, &all), "{case:?}");
        let mut solver = Solver::new(Budget { queries: 0, steps: 0 });
        assert_eq!(solver.check(&terms, &all), Verdict::Infeasible);
        // Every condition of these is needed.
        assert_eq!(solver.explain(&terms, &all), (0..case.len()).collect::<Vec<_>>(), "{case:?}");
    }
}

#[test]
fn what_can_be_is_found_without_z3() {
    let cases: &[&[&str]] = &[
        &["a != 0", "b != 0", "a != b"],
        &["a < b", "b < 5"],
        &["a > 0", "a != 1", "a != 2", "a != 3"],
        &["a == b", "b >= 100", "c < 0"],
        &["a & 1 == 0", "b == 7"],
    ];
    let mut solver = Solver::new(Budget { queries: 0, steps: 0 });
    for case in cases {
        let mut terms = Terms::new();
        let all = conditions(&mut terms, case);
        assert_eq!(solver.check(&terms, &all), Verdict::Feasible, "{case:?}");
        assert!(solver.explain(&terms, &all).is_empty());
    }
    assert_eq!(solver.statistics().queries, 0);
}

#[test]
fn z3_decides_the_rest_and_explains_it() {
    let mut terms = Terms::new();
    // A sum over three variables, among conditions that have no part in it.
    let all = conditions(&mut terms, &["d != 3", "a + b == 10", "c > 4", "a + b + c == 12", "b < 100", "d > 7"]);
    let mut solver = Solver::new(Budget::default());
    assert!(!contradiction(&terms, &all));
    assert_eq!(solver.check(&terms, &all), Verdict::Infeasible);
    assert_eq!(solver.explain(&terms, &all), [1, 2, 3]);
    assert_eq!(solver.statistics().by_smt, 1);
}

#[test]
fn no_budget_leaves_it_undecided() {
    let mut terms = Terms::new();
    let hard = conditions(&mut terms, &["a * a + 1 == 3", "a > 1"]);
    let mut none = Solver::new(Budget { queries: 0, steps: 1_000_000 });
    assert_eq!(none.check(&terms, &hard), Verdict::Undecided);
    assert_eq!(none.statistics().undecided, 1);
    let factors = conditions(&mut terms, &["a * b == 2147117569", "a > 1", "b > 1", "a < b"]);
    let mut few = Solver::new(Budget { queries: 10, steps: 1000 });
    assert_eq!(few.check(&terms, &factors), Verdict::Undecided);
    assert_eq!(few.statistics().queries, 1);
}

#[test]
fn nothing_to_check_is_feasible_and_false_is_not() {
    let mut terms = Terms::new();
    let no = terms.truth(false);
    let mut solver = Solver::new(Budget::default());
    assert_eq!(solver.check(&terms, &[]), Verdict::Feasible);
    assert_eq!(solver.check(&terms, &[no]), Verdict::Infeasible);
    assert_eq!(solver.explain(&terms, &[no]), [0]);
    assert!(solver.explain(&terms, &[]).is_empty());
}

#[test]
fn terms_that_mean_the_same_are_the_same() {
    let mut terms = Terms::new();
    let (a, b) = (terms.var(1, 32), terms.var(2, 32));
    let three = terms.constant(3, 32);
    let less = terms.cmp(CmpOp::Slt, a, three);
    let wide = terms.zext(less, 32);
    let zero = terms.constant(0, 32);
    assert_eq!(terms.cmp(CmpOp::Ne, wide, zero), less);
    let (ab, ba) = (terms.bin(BinOp::Add, a, b), terms.bin(BinOp::Add, b, a));
    assert_eq!(ab, ba);
    let (not_less, more) = (terms.not(less), terms.cmp(CmpOp::Sge, a, three));
    assert_eq!(not_less, more);
    let plus = terms.bin(BinOp::Add, a, three);
    let back = terms.bin(BinOp::Sub, plus, three);
    assert_eq!(back, a);
    let either = terms.or(less, not_less);
    assert_eq!(either, terms.truth(true));
    assert_eq!(terms.display(more), "!(v1 < 3)");
    let chosen = terms.ite(less, ab, three);
    assert_eq!(terms.display(chosen), "(v1 < 3) ? (v1 + v2) : 3");
}

#[test]
fn answers_are_the_same_in_every_thread_and_order() {
    let ask = || {
        let mut terms = Terms::new();
        let all = conditions(&mut terms, &["a * b == 391", "a > 1", "b > 1", "a < 30", "b < 30"]);
        let mut solver = Solver::new(Budget { queries: 4, steps: 200_000 });
        (solver.check(&terms, &all), solver.explain(&terms, &all), solver.statistics())
    };
    let first = ask();
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(move || (ask(), ask()))).collect();
    for thread in threads {
        let (one, other) = thread.join().unwrap_or_else(|_| panic!("thread ended"));
        assert_eq!((&one, &other), (&first, &first));
    }
}
