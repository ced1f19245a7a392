//! From incidents to findings: which of them are feasible, what they are called,
//! and the path as steps a person can follow.

mod choice;
mod classes;
mod contrary;
mod graph;
mod inside;
mod latent;
mod leaving;
mod members;
mod memo;
mod naming;
mod repeated;
mod steps;
mod verify;

use std::sync::Arc;

use caulk_analysis::{Analysis, Incident, IncidentKind, Limits, Loss, NotHeap, Subject, Use};
use caulk_base::{FxHashMap, Hasher};
use caulk_findings::{Confidence, Finding, Findings, Fingerprint, Rule};
use caulk_ir::Program;
use caulk_models::Models;
use caulk_solver::Verdict;

pub use crate::memo::Memo;
use crate::naming::Names;
use crate::repeated::UNCONFIRMED;
pub use crate::repeated::repeated;
use crate::verify::Verified;

/// What to look for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Also report what is still allocated when the program ends.
    pub at_exit: bool,
    /// Leaks on the way out are told as the leaks that they are, and marked: for those who compare programs.
    pub raw: bool,
    pub limits: Limits,
}

/// Finds memory errors in the whole program.
pub fn check(program: &Program, models: &Models, options: &Options) -> Findings {
    let analysis = caulk_analysis::analyse(program, models, options.limits);
    findings_of(&analysis, options)
}

/// The findings of an analysis that is already done.
pub fn findings_of(analysis: &Analysis<'_>, options: &Options) -> Findings {
    findings_with(analysis, options, &mut Memo::default())
}

/// The same, where others that are much alike were looked at before, or will be.
pub fn findings_with(analysis: &Analysis<'_>, options: &Options, memo: &mut Memo) -> Findings {
    let program = analysis.knowledge.program;
    memo.turn();
    let wanted = wanted(analysis, options);
    let (all, verified, leaving) = list(analysis, options, &wanted, memo, true);
    let mut findings = Findings { findings: all, ..Findings::default() };
    findings.gaps.extend(analysis.gaps.iter().cloned());
    findings.summary.units = program.units.len() as u64;
    findings.summary.functions = program.functions.len() as u64;
    classes::count(analysis, &wanted, &verified, (&leaving, options.at_exit || options.raw), &mut findings);
    findings
}

/// Nothing but the list of them.
pub fn list_with(analysis: &Analysis<'_>, options: &Options, memo: &mut Memo) -> Vec<Finding> {
    memo.turn();
    list(analysis, options, &wanted(analysis, options), memo, true).0
}

/// Those of an analysis that is not one of a whole program: it does not count among those that are remembered.
pub fn list_beside(analysis: &Analysis<'_>, options: &Options, memo: &mut Memo) -> Vec<Finding> {
    list(analysis, options, &wanted(analysis, options), memo, false).0
}

fn wanted<'a>(analysis: &'a Analysis<'_>, options: &Options) -> Vec<&'a Arc<Incident>> {
    let considered: Vec<&Arc<Incident>> = analysis
        .incidents
        .iter()
        .filter(|incident| incident.kind != IncidentKind::LeakAtExit || options.at_exit)
        .collect();
    let callers = latent::Callers::of(analysis.knowledge.program, &considered);
    let reported = |incident: &&Arc<Incident>| {
        !incident.foreign
            && !callers.rule_out(incident)
            && !latent::needs_unexpected_null(analysis, incident)
            && !choice::asks_again(analysis.knowledge.program, incident)
            && !choice::is_copied_on_demand(analysis.knowledge.program, incident)
            && !choice::is_copied_by_mode(analysis.knowledge.program, incident)
            && !contrary::contradicts_itself(analysis.knowledge.program, incident)
            && !members::is_another_member(&Names::new(&analysis.knowledge, incident.function), incident)
    };
    considered.into_iter().filter(reported).collect()
}

/// `is_whole`: of a whole program, in which it makes sense to ask for callers.
fn list(
    analysis: &Analysis<'_>,
    options: &Options,
    wanted: &[&Arc<Incident>],
    memo: &mut Memo,
    is_whole: bool,
) -> (Vec<Finding>, Verified, Vec<bool>) {
    let verified = verify::verify(wanted, memo);
    let ways_out = match is_whole {
        true => leaving::ways_out(analysis, wanted, |at| verified.verdicts[at] != Verdict::Infeasible),
        false => vec![None; wanted.len()],
    };
    let inside = inside::Inside::new(analysis, options.limits);
    let mut all: Vec<Finding> = Vec::new();
    for ((incident, verdict), way_out) in wanted.iter().zip(&verified.verdicts).zip(&ways_out) {
        let mut tell = || {
            let mut told = memo.finding(analysis, incident, || finding(analysis, incident, &inside));
            told.at_exit.clone_from(way_out);
            told
        };
        match verdict {
            Verdict::Infeasible => {}
            Verdict::Feasible => all.push(tell()),
            Verdict::Undecided => all.push(undecided(tell())),
        }
    }
    // A function of a header is analysed with every unit that includes it. One of its copies behind which the program goes
    // on speaks for all.
    all.sort_by(|a, b| (order(a), a.at_exit.is_some()).cmp(&(order(b), b.at_exit.is_some())));
    all.dedup_by(|a, b| order(a) == order(b));
    fingerprint(&mut all);
    if !options.raw {
        all.retain(|finding| options.at_exit || finding.at_exit.is_none());
        all.iter_mut().for_each(tell_of_the_end);
        all.sort_by(|a, b| order(a).cmp(&order(b)));
    }
    (all, verified, ways_out.iter().map(Option::is_some).collect())
}

/// A leak on the way out becomes a finding of its own rule. It keeps its fingerprint.
fn tell_of_the_end(finding: &mut Finding) {
    let Some(steps) = finding.at_exit.take() else { return };
    finding.rule = Rule::LeakAtExit;
    finding.message.push_str(", and the process then ends");
    finding.steps.extend(steps);
}

/// The solver could not tell whether the path is possible.
fn undecided(mut finding: Finding) -> Finding {
    finding.confidence = finding.confidence.min(Confidence::Medium);
    finding.doubts.push("the path's conditions could not be decided".to_string());
    finding
}

fn order(finding: &Finding) -> (&str, u32, u32, Rule, &caulk_findings::Place, &str) {
    let primary = finding.primary();
    let other = if std::ptr::eq(primary, &finding.source) { &finding.sink } else { &finding.source };
    (&primary.file, primary.line, primary.column, finding.rule, other, &finding.object)
}

fn rule_of(models: &Models, incident: &Incident) -> Rule {
    match &incident.kind {
        IncidentKind::Leak if models.families[incident.family].is_memory => Rule::MemoryLeak,
        IncidentKind::Leak => Rule::ResourceLeak,
        IncidentKind::LeakAtExit => Rule::LeakAtExit,
        IncidentKind::DoubleFree => Rule::DoubleFree,
        IncidentKind::UseAfterFree(_) => Rule::UseAfterFree,
        IncidentKind::Mismatched { .. } => Rule::MismatchedRelease,
        IncidentKind::InvalidFree(_) => Rule::InvalidFree,
    }
}

fn finding(analysis: &Analysis<'_>, incident: &Incident, inside: &inside::Inside<'_>) -> Finding {
    let knowledge = &analysis.knowledge;
    let names = Names::new(knowledge, incident.function);
    let models = knowledge.models;
    let spec = &models.families[incident.family];
    let rule = rule_of(models, incident);
    let object = names.subject(&incident.subject, incident.family);
    let sink = names.place(incident.at);
    let source = match &incident.subject {
        Subject::Allocated { site, .. } => names.place(*site),
        Subject::Input(_) => match (rule, incident.freed_at) {
            (Rule::MemoryLeak | Rule::ResourceLeak | Rule::LeakAtExit, _) => sink.clone(),
            (_, Some(freed)) => names.place(freed),
            _ => sink.clone(),
        },
    };
    let noun = spec.noun.as_str();
    let from = match &incident.subject {
        Subject::Allocated { site, .. } => {
            names.callee(*site).map(|callee| format!(" from `{callee}`")).unwrap_or_default()
        }
        Subject::Input(_) => String::new(),
    };
    let function = &knowledge.program.function(incident.function).name;
    let message = match &incident.kind {
        IncidentKind::Leak => match incident.loss {
            Some(Loss::Overwritten) => {
                format!("the last reference to the {noun}{from} in {object} is lost here; it is never released")
            }
            Some(Loss::Ignored) => format!("nobody keeps the {noun}{from}; it is never released"),
            _ => format!("the {noun}{from} in {object} is not released when `{function}` returns"),
        },
        IncidentKind::LeakAtExit => format!("the {noun}{from} in {object} is still allocated when the program ends"),
        IncidentKind::DoubleFree => format!("{object} is released twice"),
        IncidentKind::UseAfterFree(how) => match how {
            Use::Read => format!("{object} is read after it was released"),
            Use::Write => format!("{object} is written after it was released"),
            Use::Passed => format!("{object} is passed on after it was released"),
            Use::Returned => format!("{object} is returned after it was released"),
        },
        IncidentKind::Mismatched { allocated, released } => format!(
            "{object} is a {noun} and must be released by `{}`, not by `{}`",
            models.families[*allocated].release,
            names.callee(incident.at).unwrap_or_else(|| models.families[*released].release.clone())
        ),
        IncidentKind::InvalidFree(what) => {
            let what = match what {
                NotHeap::Stack => "a local variable",
                NotHeap::Global => "a global or a literal",
                NotHeap::Function => "a function",
                NotHeap::Interior => "the middle of a block",
            };
            format!("the pointer released here points to {what}, not to an allocated block")
        }
    };
    let mut doubts = Vec::new();
    if incident.lent {
        doubts.push("it was passed to a function without body or model that takes it as pointer to const".to_string());
    }
    if !incident.confirmed {
        doubts.push(UNCONFIRMED.to_string());
    }
    let summary = knowledge.summary(incident.function);
    let assumptions = if incident.lent {
        summary.map(|summary| {
            summary.assumed.iter().map(|name| format!("`{name}` does not keep what it is given")).collect()
        })
    } else {
        None
    };
    let steps = steps::steps(analysis, incident, &names, inside);
    let graph = graph::graph(analysis, incident, &names, &steps);
    Finding {
        rule,
        confidence: if doubts.is_empty() { Confidence::High } else { Confidence::Medium },
        doubts,
        message,
        object,
        family: spec.name.clone(),
        release: spec.release.clone(),
        source,
        sink,
        steps,
        assumptions: assumptions.unwrap_or_default(),
        fingerprint: Fingerprint::default(),
        graph,
        at_exit: None,
    }
}

/// Identity without lines: rule, file, function, object and message, and a number among equals.
fn fingerprint(findings: &mut [Finding]) {
    let mut seen: FxHashMap<String, u64> = FxHashMap::default();
    for finding in findings {
        let file = finding.primary().file.rsplit('/').next().unwrap_or_default();
        let what = format!(
            "{}\0{file}\0{}\0{}\0{}\0{}",
            finding.rule.id(),
            finding.source.function,
            finding.sink.function,
            finding.object,
            finding.message
        );
        let number = seen.entry(what.clone()).or_default();
        *number += 1;
        let hash = Hasher::new().field(&what).number(*number).finish();
        finding.fingerprint = Fingerprint(hash.hex()[..16].to_string());
    }
}
