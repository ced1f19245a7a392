//! The path from the allocation to the error, as steps a person can follow.

use caulk_analysis::{Analysis, Event, Incident, IncidentKind, Object, Subject, Summary, Term};
use caulk_base::Id;
use caulk_findings::{Decision, Step, StepKind};
use caulk_ir::{Callee, FuncId, InstId, Op, Target};

use crate::inside::Inside;
use crate::naming::Names;

/// More steps than this are not shown; the ends matter most.
const MAX_STEPS: usize = 16;

pub fn steps(analysis: &Analysis<'_>, incident: &Incident, names: &Names<'_>, inside: &Inside<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut state = "allocated";
    let site = match incident.subject {
        Subject::Allocated { site, .. } => Some(site),
        Subject::Input(_) => None,
    };
    let events = incident.paths.first().map(Vec::as_slice).unwrap_or_default();
    // What came before the allocation does not concern the object.
    let start = match site {
        Some(site) => events.iter().rposition(|event| matches!(event, Event::Alloc { inst, .. } if *inst == site)),
        None => events
            .iter()
            .position(|event| matches!(event, Event::Release { inst, .. } if Some(*inst) == incident.freed_at)),
    };
    let push = |steps: &mut Vec<Step>, kind, inst: InstId, text: String, state: &str, decision| {
        steps.push(Step { kind, place: names.place(inst), text, depth: 0, decision, state: state.into() });
    };
    if let Some(site) = site {
        let text = match names.callee(site) {
            Some(callee) => format!("allocated by `{callee}` here"),
            None => "allocated here".into(),
        };
        push(&mut steps, StepKind::Allocate, site, text, state, None);
    }
    let after = start.map_or(0, |at| at + usize::from(site.is_some()));
    for event in &events[after.min(events.len())..] {
        match *event {
            Event::Branch { inst, first, .. } => {
                if let Some((text, decision)) = branch(names, inst, first) {
                    push(&mut steps, StepKind::Branch, inst, text, state, Some(decision));
                }
            }
            Event::Outcome { inst, outcome } => {
                if let Some(text) = outcome_text(analysis, incident.function, names, inst, outcome as usize) {
                    push(&mut steps, StepKind::Call, inst, text, state, None);
                }
            }
            Event::Failed { inst, .. } => {
                push(&mut steps, StepKind::Branch, inst, "another allocation failed here".into(), state, None);
            }
            Event::Release { inst, .. } if Some(inst) == incident.freed_at => {
                state = "released";
                let text = match names.callee(inst) {
                    Some(callee) => format!("released by `{callee}` here"),
                    None => "released here".into(),
                };
                push(&mut steps, StepKind::Release, inst, text, state, None);
            }
            Event::Release { .. } | Event::Alloc { .. } | Event::Store { .. } => {}
        }
    }
    if steps.len() > MAX_STEPS {
        steps.drain(MAX_STEPS / 2..steps.len() - MAX_STEPS / 2);
    }
    let (kind, text, end) = match &incident.kind {
        IncidentKind::Leak => match incident.loss {
            Some(caulk_analysis::Loss::Return) => (StepKind::Lose, "returns here without releasing it", "lost"),
            Some(caulk_analysis::Loss::Ignored) => (StepKind::Lose, "nothing keeps it from here on", "lost"),
            _ => (StepKind::Lose, "the last reference is lost here", "lost"),
        },
        IncidentKind::LeakAtExit => (StepKind::Lose, "the program ends here", "lost"),
        IncidentKind::DoubleFree => (StepKind::Release, "released again here", "released twice"),
        IncidentKind::UseAfterFree(_) => (StepKind::Use, "used here after its release", "released"),
        IncidentKind::Mismatched { .. } => (StepKind::Release, "released here by the wrong function", "released"),
        IncidentKind::InvalidFree(_) => (StepKind::Release, "released here", "not allocated"),
    };
    push(&mut steps, kind, incident.at, text.into(), end, None);
    look_inside(incident, events, names, inside, steps)
}

/// Puts what happens inside the calls behind the steps that stand for them.
fn look_inside(
    incident: &Incident,
    events: &[Event],
    names: &Names<'_>,
    inside: &Inside<'_>,
    outer: Vec<Step>,
) -> Vec<Step> {
    let site = match incident.subject {
        Subject::Allocated { site, .. } => Some(site),
        Subject::Input(_) => None,
    };
    let mut calls: Vec<InstId> = events
        .iter()
        .filter_map(|event| match event {
            Event::Outcome { inst, .. } => Some(*inst),
            _ => None,
        })
        .collect();
    calls.extend(site.into_iter().chain(incident.freed_at).chain([incident.at]));
    let mut all = Vec::with_capacity(outer.len());
    for step in outer {
        let opens = matches!(step.kind, StepKind::Call | StepKind::Allocate | StepKind::Release);
        let call = calls.iter().rev().copied().find(|&call| opens && names.place(call) == step.place);
        let state = step.state.clone();
        all.push(step);
        if let Some(call) = call {
            let number = events.iter().rev().find_map(|event| match event {
                Event::Outcome { inst, outcome } if *inst == call => Some(*outcome as usize),
                _ => None,
            });
            all.extend(inside.steps(incident.function, call, number.unwrap_or(0), 1, &state));
        }
    }
    all
}

/// How a branch was decided, and in words.
pub fn branch(names: &Names<'_>, inst: InstId, taken: bool) -> Option<(String, Decision)> {
    let (text, condition) = match &names.function.insts[inst].op {
        Op::Branch { cond, .. } => {
            let condition = names.condition(*cond);
            (format!("`{condition}` is {} here", if taken { "true" } else { "false" }), condition)
        }
        Op::Switch { value, .. } => {
            let condition = format!("switch on {}", names.condition(*value));
            (format!("{condition} takes {}", if taken { "this case" } else { "the default" }), condition)
        }
        _ => return None,
    };
    Some((text, Decision { condition, taken }))
}

/// "`append` returns -1 here".
pub fn outcome_text(
    analysis: &Analysis<'_>,
    caller: FuncId,
    names: &Names<'_>,
    inst: InstId,
    outcome: usize,
) -> Option<String> {
    let Op::Call(call) = &names.function.insts[inst].op else { return None };
    let program = analysis.knowledge.program;
    let Callee::Symbol(symbol) = call.callee else { return None };
    let Target::Functions(all) = program.target(program.unit_of(caller), symbol) else { return None };
    let [one] = all.as_slice() else { return None };
    let summary = analysis.knowledge.summary(*one)?;
    let callee = &program.function(*one).name;
    let result = describe_result(&summary, outcome)?;
    Some(format!("`{callee}` returns {result} here"))
}

fn describe_result(summary: &Summary, outcome: usize) -> Option<String> {
    let outcome = summary.outcomes.get(outcome)?;
    let result = outcome.result?;
    match &summary.terms[result.index()] {
        Term::Int(value) => Some(value.to_string()),
        Term::Addr { obj, .. } if matches!(summary.objects[obj.index()], Object::Heap { .. }) => {
            Some("what it allocated".into())
        }
        _ => None,
    }
}
