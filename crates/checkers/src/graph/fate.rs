//! What calls do with an object they are given, by model and by summary, and what they return when they do.

use caulk_analysis::{Object, Off, Outcome, Status, Summary, Term, TermId};
use caulk_base::Id;
use caulk_ir::CmpOp;
use caulk_models::{Condition, Effect, FunctionModel, Place, ReturnModel};

/// What becomes of the object in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Looked,
    Released,
    Kept,
}

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Int(i64),
    NotZero,
    NotNegative,
    Any,
}

/// Outcomes of a call that do the same with the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub fate: Fate,
    /// What the call may return then.
    pub results: Vec<Known>,
    pub outcomes: Vec<u32>,
}

pub fn endings_by_model(model: &FunctionModel, n: u32, behind: Option<i64>) -> Vec<Ending> {
    let here = |place: &Place| match (place, behind) {
        (Place::Arg(arg), None) => *arg == n,
        (Place::Deref(arg), Some(0)) => *arg == n,
        (Place::Field(arg, at), Some(behind)) => *arg == n && *at == behind,
        _ => false,
    };
    let direct = |arg: &u32| *arg == n && behind.is_none();
    let found = model.effects.iter().find_map(|effect| match effect {
        Effect::Releases { place, when, .. } if here(place) => Some((Fate::Released, *when)),
        Effect::Reallocates { arg, frees_on_failure: true, .. } if direct(arg) => {
            Some((Fate::Released, Condition::Always))
        }
        Effect::Reallocates { arg, .. } if direct(arg) => Some((Fate::Released, Condition::OnSuccess)),
        Effect::Takes { place, when } if here(place) => Some((Fate::Kept, *when)),
        Effect::Stores { arg, when, .. } if direct(arg) => Some((Fate::Kept, *when)),
        Effect::Registers { data: Some(arg), .. } if direct(arg) => Some((Fate::Kept, Condition::OnSuccess)),
        _ => None,
    });
    let ending = |fate, result| Ending { fate, results: vec![result], outcomes: Vec::new() };
    let (success, failure) = (succeeds(&model.returns), fails(&model.returns));
    match found {
        Some((fate, Condition::OnSuccess)) if failure != Known::Any || success != Known::Any => {
            vec![ending(Fate::Looked, failure), ending(fate, success)]
        }
        Some((fate, _)) => vec![ending(fate, Known::Any)],
        None => vec![ending(Fate::Looked, Known::Any)],
    }
}

pub fn succeeds(returns: &ReturnModel) -> Known {
    match returns.fails {
        _ if returns.fails_nonzero => Known::Int(0),
        _ if returns.fails_negative => Known::NotNegative,
        _ if returns.fails_nonpositive => Known::NotZero,
        Some(0) => Known::NotZero,
        Some(-1) => Known::NotNegative,
        _ => Known::Any,
    }
}

fn fails(returns: &ReturnModel) -> Known {
    match returns.fails {
        Some(value) => Known::Int(value),
        None if returns.fails_nonzero => Known::NotZero,
        None => Known::Any,
    }
}

pub fn fate_by_outcome(summary: &Summary, outcome: &Outcome, n: u32, behind: Option<i64>) -> Fate {
    // The term that is the object's address: the argument, or what lies behind it.
    let is_address = |term: TermId| match (summary.terms.get(term.index()), behind) {
        (Some(Term::Param(index)), None) => *index == n,
        (Some(Term::Content { obj, off: Off::At(at), epoch: 0 }), Some(behind)) => {
            *at == behind
                && matches!(summary.objects.get(obj.index()), Some(Object::Deref(base))
                    if matches!(summary.terms.get(base.index()), Some(Term::Param(index)) if *index == n))
        }
        _ => false,
    };
    for (obj, state) in &outcome.objs {
        if matches!(summary.objects.get(obj.index()), Some(Object::Deref(base)) if is_address(*base)) {
            if state.status.may(Status::FREED) {
                return Fate::Released;
            }
            if state.escaped {
                return Fate::Kept;
            }
        }
    }
    let written = outcome.writes.iter().map(|write| write.term).chain(outcome.weak.iter().map(|entry| entry.1));
    match behind.is_none() && written.into_iter().any(is_address) {
        true => Fate::Kept,
        false => Fate::Looked,
    }
}

pub fn known(summary: &Summary, term: TermId) -> Known {
    match summary.terms.get(term.index()) {
        Some(Term::Int(value)) => Known::Int(*value),
        Some(Term::Addr { .. } | Term::Func(_)) => Known::NotZero,
        _ => Known::Any,
    }
}

/// `known op constant`, where that is certain.
pub fn compare(op: CmpOp, known: Known, constant: i64) -> Option<bool> {
    let by = |low: Option<i64>, high: Option<i64>, not: Option<i64>| match op {
        CmpOp::Eq if not == Some(constant) => Some(false),
        CmpOp::Ne if not == Some(constant) => Some(true),
        CmpOp::Eq if low.is_some_and(|low| constant < low) || high.is_some_and(|high| constant > high) => Some(false),
        CmpOp::Ne if low.is_some_and(|low| constant < low) || high.is_some_and(|high| constant > high) => Some(true),
        CmpOp::Eq if low == Some(constant) && high == low => Some(true),
        CmpOp::Ne if low == Some(constant) && high == low => Some(false),
        CmpOp::Slt if low.is_some_and(|low| low >= constant) => Some(false),
        CmpOp::Slt if high.is_some_and(|high| high < constant) => Some(true),
        CmpOp::Sle if low.is_some_and(|low| low > constant) => Some(false),
        CmpOp::Sle if high.is_some_and(|high| high <= constant) => Some(true),
        CmpOp::Sgt if low.is_some_and(|low| low > constant) => Some(true),
        CmpOp::Sgt if high.is_some_and(|high| high <= constant) => Some(false),
        CmpOp::Sge if low.is_some_and(|low| low >= constant) => Some(true),
        CmpOp::Sge if high.is_some_and(|high| high < constant) => Some(false),
        _ => None,
    };
    match known {
        Known::Int(value) => by(Some(value), Some(value), None),
        // No block lies at the last address either: `MAP_FAILED`.
        Known::NotZero => by(None, None, Some(if constant == -1 { -1 } else { 0 })),
        Known::NotNegative => by(Some(0), None, None),
        Known::Any => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_decided_only_where_they_are_certain() {
        for (known, op, constant, answer) in [
            (Known::Int(-1), CmpOp::Slt, 0, Some(true)),
            (Known::Int(-1), CmpOp::Eq, -1, Some(true)),
            (Known::Int(0), CmpOp::Ne, 0, Some(false)),
            (Known::Int(3), CmpOp::Sgt, 3, Some(false)),
            (Known::NotZero, CmpOp::Eq, 0, Some(false)),
            (Known::NotZero, CmpOp::Ne, -1, Some(true)),
            (Known::NotZero, CmpOp::Eq, 7, None),
            (Known::NotNegative, CmpOp::Slt, 0, Some(false)),
            (Known::NotNegative, CmpOp::Eq, -1, Some(false)),
            (Known::NotNegative, CmpOp::Eq, 3, None),
            (Known::Any, CmpOp::Eq, 0, None),
        ] {
            assert_eq!(compare(op, known, constant), answer, "{known:?} {op:?} {constant}");
        }
    }
}
