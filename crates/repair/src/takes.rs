//! What a call does with a pointer: takes it for sure, perhaps, or not at all.
//!
//! The analysis trusts a function that releases its argument on some ways to have done so: no leak is reported where it
//! did not. So whoever takes a release away, or forgets a pointer, because of such a call must ask here.

use caulk_source::{Call, FunctionSource, Span};

use crate::survey::{DRAINS, Survey, Way};

/// Whether the call surely releases or stores `value`.
pub fn surely(survey: &Survey, function: &FunctionSource, call: &Call, value: &str, release: &str) -> bool {
    let given = |at: usize| call.args.get(at).is_some_and(|arg| function.text(arg.span) == value);
    if call.callee == release || call.callee == "free" {
        return given(0);
    }
    let ways = |at: usize| survey.takers.get(&(call.callee.clone(), at));
    (0..call.args.len())
        .filter(|at| given(*at))
        .any(|at| ways(at).is_some_and(|ways| ways.iter().all(|(result, taken)| *taken && tells(call, result))))
}

/// A function that computes something is not there to take what it is given: that it does so is not relied upon.
fn tells(call: &Call, result: &Option<i64>) -> bool {
    call.result_type == "void" || result.is_some()
}

/// Whether the callee releases parts of what it is given on every way through.
pub fn surely_parts(survey: &Survey, call: &Call) -> bool {
    let of_callee = survey.effects.iter().filter(|((_, name), _)| *name == call.callee);
    let effects: Vec<&String> = of_callee.flat_map(|(_, effects)| effects).collect();
    effects.iter().any(|effect| effect.starts_with("releases *"))
        && !effects.iter().any(|effect| effect.starts_with("does not release") || *effect == DRAINS)
}

/// Whether the call surely takes `value` wherever the condition around it does not hold: `put(b, p) < 0`.
pub fn unless(survey: &Survey, function: &FunctionSource, call: &Call, value: &str, condition: Span) -> bool {
    let text = function.text(condition);
    let called = function.text(call.span);
    let Some((before, behind)) = text.split_once(called.as_str()) else { return false };
    let holds: fn(i64) -> bool = match (before.trim(), behind.trim()) {
        ("", "< 0" | "<0") => |result| result < 0,
        ("", "" | "!= 0") => |result| result != 0,
        ("", "== -1") => |result| result == -1,
        ("!", "") | ("", "== 0" | "== NULL") => |result| result == 0,
        _ => return false,
    };
    let given = |at: &usize| call.args.get(*at).is_some_and(|arg| function.text(arg.span) == value);
    (0..call.args.len()).filter(given).any(|at| {
        let ways = survey.takers.get(&(call.callee.clone(), at));
        ways.is_some_and(|ways| ways.iter().all(|(result, taken)| *taken || result.is_some_and(holds)))
    })
}

/// Whether some call of the function takes `value` on some ways and leaves it on others.
pub fn perhaps(survey: &Survey, function: &FunctionSource, value: &str) -> bool {
    function.calls.iter().any(|call| {
        call.args.iter().enumerate().filter(|(_, arg)| function.text(arg.span) == value).any(|(at, _)| {
            let ways = survey.takers.get(&(call.callee.clone(), at));
            // Whoever asks for the result may know which way it was.
            let untold = |left: &Option<i64>, ways: &Vec<Way<bool>>| {
                let same = |result: &Option<i64>| result.is_none() || left.is_none() || result == left;
                call.result_ignored || ways.iter().any(|(result, taken)| *taken && same(result))
            };
            ways.is_some_and(|ways| ways.iter().any(|(left, taken)| !taken && untold(left, ways)))
                || ways.is_some_and(|ways| ways.iter().any(|(result, _)| !tells(call, result)))
                || survey.draining.get(&call.callee).is_some_and(|ways| ways.iter().any(|way| way.1.contains(&at)))
        })
    })
}
