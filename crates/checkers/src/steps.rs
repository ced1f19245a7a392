//! The path from the allocation to the error, as steps a person can follow.

use caulk_analysis::{Analysis, Event, Incident, IncidentKind, Loss, Object, Subject, Summary, Term};
use caulk_base::Id;
use caulk_findings::{Decision, Step, StepKind};
use caulk_ir::{Callee, FuncId, Function, InstId, Op, Target};

use crate::inside::Inside;
use crate::naming::Names;

/// More steps than this are not shown; the ends matter most.
const MAX_STEPS: usize = 16;

pub fn steps(analysis: &Analysis<'_>, incident: &Incident, names: &Names<'_>, inside: &Inside<'_>) -> Vec<Step> {
    let mut steps: Vec<Opened> = Vec::new();
    let mut state = "allocated";
    let site = match incident.subject {
        Subject::Allocated { site, .. } => Some(site),
        Subject::Input(_) => None,
    };
    let events = incident.paths.first().map(Vec::as_slice).unwrap_or_default();
    let (start, end) = span(incident, site, names.function, events);
    let push = |steps: &mut Vec<Opened>, kind, inst: InstId, text: String, state: &str, decision, call| {
        let step = Step { kind, place: names.place(inst), text, depth: 0, decision, state: state.into() };
        steps.push(Opened { step, call });
    };
    if let Some(site) = site {
        let text = match names.callee(site) {
            Some(callee) => format!("allocated by `{callee}` here"),
            None => "allocated here".into(),
        };
        let outcome = outcome_before(events, start.unwrap_or(0), site);
        push(&mut steps, StepKind::Allocate, site, text, state, None, Some((site, outcome)));
    }
    let after = match (start, site) {
        (Some(at), site) => at + usize::from(site.is_some()),
        (None, None) => 0,
        // The way was merged with others, and this part of it is one on which nothing was allocated.
        (None, Some(_)) => end,
    };
    for (at, event) in events.iter().enumerate().take(end).skip(after) {
        match *event {
            Event::Branch { inst, first, .. } => {
                if let Some((text, decision)) = branch(names, inst, first) {
                    push(&mut steps, StepKind::Branch, inst, text, state, Some(decision), None);
                }
            }
            Event::Outcome { inst, outcome } => {
                let text = outcome_text(analysis, incident.function, names, inst, outcome as usize);
                // Which way it went at last says something, whatever it returns.
                let is_last = !events[at + 1..end]
                    .iter()
                    .any(|event| matches!(event, Event::Branch { .. } | Event::Outcome { .. }));
                let text = text.or_else(|| Some(format!("`{}` returns here", names.callee(inst).filter(|_| is_last)?)));
                if let Some(text) = text {
                    let call = Some((inst, outcome as usize));
                    push(&mut steps, StepKind::Call, inst, text, state, None, call);
                }
            }
            Event::Failed { inst, .. } => {
                push(&mut steps, StepKind::Branch, inst, "another allocation failed here".into(), state, None, None);
            }
            Event::Release { inst, .. } if Some(inst) == incident.freed_at => {
                state = "released";
                let text = match names.callee(inst) {
                    Some(callee) => format!("released by `{callee}` here"),
                    None => "released here".into(),
                };
                let call = Some((inst, outcome_before(events, at, inst)));
                push(&mut steps, StepKind::Release, inst, text, state, None, call);
            }
            Event::Release { .. } | Event::Alloc { .. } | Event::Store { .. } => {}
        }
    }
    if steps.len() > MAX_STEPS {
        steps.drain(MAX_STEPS / 2..steps.len() - MAX_STEPS / 2);
    }
    let (kind, text, state) = match &incident.kind {
        IncidentKind::Leak => match incident.loss {
            Some(Loss::Return) => (StepKind::Lose, "returns here without releasing it", "lost"),
            Some(Loss::Ignored) => (StepKind::Lose, "nothing keeps it from here on", "lost"),
            _ => (StepKind::Lose, "the last reference is lost here", "lost"),
        },
        IncidentKind::LeakAtExit => (StepKind::Lose, "the program ends here", "lost"),
        IncidentKind::DoubleFree => (StepKind::Release, "released again here", "released twice"),
        IncidentKind::UseAfterFree(_) => (StepKind::Use, "used here after its release", "released"),
        IncidentKind::Mismatched { .. } => (StepKind::Release, "released here by the wrong function", "released"),
        IncidentKind::InvalidFree(_) => (StepKind::Release, "released here", "not allocated"),
    };
    let last = (kind == StepKind::Release).then(|| (incident.at, outcome_before(events, events.len(), incident.at)));
    push(&mut steps, kind, incident.at, text.into(), state, None, last);
    look_inside(incident, inside, steps)
}

/// A step, and the call that it stands for, with the number of the outcome.
struct Opened {
    step: Step,
    call: Option<(InstId, usize)>,
}

/// The events of a path that concern the object: from where it is made, or released, to where it is lost.
fn span(incident: &Incident, site: Option<InstId>, function: &Function, events: &[Event]) -> (Option<usize>, usize) {
    let Some(site) = site else {
        let is_release =
            |event: &Event| matches!(event, Event::Release { inst, .. } if Some(*inst) == incident.freed_at);
        let end = match incident.loss {
            Some(Loss::Overwritten) => lost_by(function, events, 0, None, incident.at),
            _ => events.len(),
        };
        return (events.iter().position(is_release), end);
    };
    let is_made = |event: &Event| matches!(event, Event::Alloc { inst, .. } if *inst == site);
    let last = events.iter().rposition(is_made);
    if !matches!(incident.loss, Some(Loss::Overwritten | Loss::Ignored)) {
        return (last, events.len());
    }
    // The place that takes the new block loses the one of the round before.
    let before = last.and_then(|last| events[..last].iter().rposition(is_made));
    match (before, last) {
        (Some(before), Some(last)) if incident.at != site && takes(function, incident.at, site) => (Some(before), last),
        _ => (last, lost_by(function, events, last.map_or(0, |at| at + 1), Some(site), incident.at)),
    }
}

/// Does the instruction put the result of the call somewhere?
fn takes(function: &Function, at: InstId, site: InstId) -> bool {
    let result = function.insts[site].result;
    match function.insts[at].op {
        Op::Store { value, .. } | Op::Bind { value, .. } => Some(value) == result,
        _ => false,
    }
}

/// How many events lie before the first time that `at` is run after `site`, whose events are behind `from`; without one,
/// after the function has begun.
fn lost_by(function: &Function, events: &[Event], from: usize, site: Option<InstId>, at: InstId) -> usize {
    let mut next = from;
    let mut run = site.map_or(0, |site| site.0 + 1);
    // Every round of this passes a block.
    for _ in 0..function.blocks.len() + events.len() {
        let Some(block) = function.blocks.iter().find(|block| block.first.0 <= run && run < block.end.0) else { break };
        if (run..block.end.0).contains(&at.0) {
            let within = |event: &Event| match *event {
                Event::Branch { .. } => false,
                Event::Alloc { inst, .. }
                | Event::Failed { inst, .. }
                | Event::Release { inst, .. }
                | Event::Outcome { inst, .. }
                | Event::Store { inst, .. } => inst <= at,
            };
            return next + events[next..].iter().take_while(|event| within(event)).count();
        }
        let end = InstId(block.end.0 - 1);
        let to = match function.insts[end].op {
            Op::Jump { to } => to,
            _ => {
                let goes = |event: &Event| match *event {
                    Event::Branch { inst, to, .. } if inst == end => Some(to),
                    _ => None,
                };
                let taken = events[next..].iter().enumerate().find_map(|(at, event)| Some((at, goes(event)?)));
                let Some((behind, to)) = taken else { break };
                next += behind + 1;
                to
            }
        };
        run = function.blocks[to].first.0;
    }
    events.len()
}

/// The outcome in which the call ended the last time before an event.
fn outcome_before(events: &[Event], end: usize, call: InstId) -> usize {
    let number = events[..end.min(events.len())].iter().rev().find_map(|event| match event {
        Event::Outcome { inst, outcome } if *inst == call => Some(*outcome as usize),
        _ => None,
    });
    number.unwrap_or(0)
}

/// Puts what happens inside the calls behind the steps that stand for them.
fn look_inside(incident: &Incident, inside: &Inside<'_>, outer: Vec<Opened>) -> Vec<Step> {
    let mut all = Vec::with_capacity(outer.len());
    for Opened { step, call } in outer {
        let state = step.state.clone();
        all.push(step);
        if let Some((call, number)) = call {
            all.extend(inside.steps(incident.function, call, number, 1, &state));
        }
    }
    all
}

/// How a branch was decided, and in words.
pub fn branch(names: &Names<'_>, inst: InstId, taken: bool) -> Option<(String, Decision)> {
    let (text, condition) = match &names.function.insts[inst].op {
        Op::Branch { cond, .. } if names.is_constant(*cond) => return None,
        Op::Branch { cond, .. } => {
            let condition = names.condition(*cond);
            let text = match (condition.as_str(), taken) {
                // Made of several, which have steps of their own.
                ("…", true) => "the condition holds here".into(),
                ("…", false) => "the condition does not hold here".into(),
                _ => format!("`{condition}` is {taken} here"),
            };
            (text, condition)
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
