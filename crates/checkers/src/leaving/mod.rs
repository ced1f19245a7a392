//! Leaks on the way out: the block is lost, and all that the program does then is to end.
//!
//! ```text
//! static int load(struct config *c) {
//!     char *line = malloc(80);
//!     if (read_line(line) < 0)
//!         return -1;                     // lost: load returns -1
//!     …
//! int main(void) {
//!     if (load(&config) < 0) {           // every caller that gets -1 …
//!         complain();
//!         return 1;                      // … only leaves
//!     }
//!     serve(&config);                    // what it gets otherwise, it goes on with
//! ```
//!
//! Nobody wants such a block released: the system takes it back a moment later. It is a `leak-at-exit`.
//!
//! Asked for each function and what it returns behind the loss, over the whole program: *does every caller that gets
//! this go straight out?* Straight out is to clean up, to say something, and to end the process, or to return something
//! with which all callers of that one go straight out. Where the program waits, takes something in, starts something,
//! makes something in a loop or calls what nobody knows, it goes on (`region.rs`, `around.rs`).
//!
//! That alone would take in every function of a program that ends behind it. `work(); return 0;` has no way out, only
//! an end. So the callers must *look at* the result, or pass it up, and at one of them at least
//!
//! - the result decides: on another one that the function has, the program goes on; or
//! - the function is the program, as its user sees it: it is chosen from a table of commands, is given the arguments
//!   of the program, or is called instead of all the rest, and its result is what the process ends with (one without a
//!   result is followed by the end of `main` at once); or
//! - it runs in a child process that ends behind it.
//!
//! # Invariants
//! - Decided anew for each program as a whole: what is kept of a function between runs says nothing of its callers.
//! - Proofs compare leaks of both kinds: a patch cannot hide one here.
//!
//! # Known imprecision
//! - Only what is lost at a `return` counts, not what is overwritten or dropped on the way there.
//! - What is returned tells the ways apart, nothing else: an error that is told by a flag or an out-parameter is not seen.
//! - Handlers of `atexit` are not looked at.

mod alternative;
mod around;
mod child;
mod dying;
mod region;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use caulk_analysis::{Analysis, Incident, IncidentKind, Loss, Range, Subject, Summary, Term, TermId};
use caulk_base::{FxHashSet, Id};
use caulk_findings::{Step, StepKind};
use caulk_ir::{FuncId, Op};

use self::around::{Around, Site};
use self::dying::Dying;
use self::region::{Region, Start, Stays, region};
use crate::naming::Names;

/// Callers of callers that are told of, at most.
const MAX_STEPS: usize = 4;
/// Questions after which nothing more is asked: programs that ask more have not been seen.
const MAX_NODES: usize = 100_000;

/// A function, and what it has returned.
type Question = (FuncId, Range);

/// What is known of one question.
#[derive(Default)]
struct Node {
    /// Calls, in order; none if the answer is no.
    links: Vec<Link>,
    /// Some caller goes on.
    stays: bool,
    /// On some chain of callers nothing tells that the end is due to the result.
    plain: bool,
}

/// A call behind which its function goes straight out.
struct Link {
    site: Site,
    /// The result decides, or is that of the whole program.
    telling: bool,
    /// Another program may take over, with all that is open.
    replaced: bool,
    /// What the function returns then, if it does not end the process.
    parents: Vec<usize>,
}

/// For each incident the steps from the loss to the end of the process, if it is a leak on the way out. `is_possible`: may
/// the incident of this number happen?
pub fn ways_out(
    analysis: &Analysis<'_>,
    incidents: &[&Arc<Incident>],
    is_possible: impl Fn(usize) -> bool,
) -> Vec<Option<Vec<Step>>> {
    let leaving = Leaving::of(analysis, incidents.iter().map(|incident| &***incident));
    let mut ways: Vec<Option<Vec<Step>>> = incidents.iter().map(|incident| leaving.steps(analysis, incident)).collect();
    // A block that is also lost where the program goes on is to be released, and then everywhere.
    let goes_on = |at: usize| ways[at].is_none() && incidents[at].kind == IncidentKind::Leak && is_possible(at);
    let lost: FxHashSet<(FuncId, &Subject)> = (0..incidents.len())
        .filter(|at| goes_on(*at))
        .map(|at| (incidents[at].function, &incidents[at].subject))
        .collect();
    for (incident, way) in incidents.iter().zip(&mut ways) {
        if lost.contains(&(incident.function, &incident.subject)) {
            *way = None;
        }
    }
    ways
}

/// The answers for all leaks of a program.
struct Leaving {
    nodes: Vec<Node>,
    questions: BTreeMap<Question, usize>,
}

impl Leaving {
    fn of<'i>(analysis: &Analysis<'_>, incidents: impl Iterator<Item = &'i Incident>) -> Self {
        let mut leaving = Leaving { nodes: Vec::new(), questions: BTreeMap::new() };
        if analysis.knowledge.program.is_library() {
            return leaving;
        }
        let asked: Vec<Question> = incidents.flat_map(questions).collect();
        if asked.is_empty() {
            return leaving;
        }
        let around = Around::new(analysis);
        let mut dying = Dying::new(&around);
        let mut open: Vec<Question> = Vec::new();
        for question in asked {
            leaving.number(question, &mut open);
        }
        while let Some(question) = open.pop() {
            let at = leaving.questions[&question];
            match leaving.links(&mut dying, &question, &mut open) {
                Some(links) if leaving.nodes.len() < MAX_NODES => leaving.nodes[at].links = links,
                _ => leaving.nodes[at].stays = true,
            }
        }
        leaving.settle();
        leaving
    }

    /// The steps from the loss to the end of the process; `None`, if the program may go on.
    fn steps(&self, analysis: &Analysis<'_>, incident: &Incident) -> Option<Vec<Step>> {
        let asked = questions(incident);
        let numbers: Option<Vec<usize>> = asked.iter().map(|question| self.questions.get(question).copied()).collect();
        let numbers = numbers?;
        let is_memory = analysis.knowledge.models.families[incident.family].is_memory;
        let leaves = |number: &usize| {
            let node = &self.nodes[*number];
            !node.stays && !node.plain && (is_memory || !self.is_replaced(*number))
        };
        if numbers.is_empty() || !numbers.iter().all(leaves) {
            return None;
        }
        Some(self.told(analysis, numbers[0]))
    }

    fn told(&self, analysis: &Analysis<'_>, number: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let (mut at, mut next) = (number, self.nodes[number].links.first());
        while let Some(link) = next {
            let names = Names::new(&analysis.knowledge, link.site.caller);
            let caller = &names.function.name;
            let parent = link.parents.iter().copied().find(|parent| *parent != at);
            let text = match parent {
                Some(_) => format!("`{caller}` only returns behind this call"),
                None => format!("`{caller}` only ends the process behind this call"),
            };
            let place = names.place(link.site.inst);
            steps.push(Step { kind: StepKind::Return, place, text, depth: 0, decision: None, state: "lost".into() });
            if steps.len() == MAX_STEPS {
                break;
            }
            next = parent.and_then(|parent| self.nodes[parent].links.first());
            at = parent.unwrap_or(at);
        }
        steps
    }

    /// May another program take over on one of the ways out?
    fn is_replaced(&self, number: usize) -> bool {
        let (mut seen, mut open) = (vec![number], vec![number]);
        while let Some(at) = open.pop() {
            for link in &self.nodes[at].links {
                if link.replaced {
                    return true;
                }
                for &parent in link.parents.iter() {
                    if !seen.contains(&parent) {
                        seen.push(parent);
                        open.push(parent);
                    }
                }
            }
        }
        false
    }

    fn number(&mut self, question: Question, open: &mut Vec<Question>) -> usize {
        let next = self.nodes.len();
        let number = *self.questions.entry(question.clone()).or_insert(next);
        if number == next {
            self.nodes.push(Node::default());
            open.push(question);
        }
        number
    }

    /// All calls, if each of them goes straight out.
    fn links(&mut self, dying: &mut Dying<'_>, question: &Question, open: &mut Vec<Question>) -> Option<Vec<Link>> {
        let around = dying.around;
        let mut links = Vec::new();
        for site in around.sites(question.0)? {
            let (follows, telling) = follow(dying, *site, question)?;
            let parents = follows.returns.into_iter().map(|range| (site.caller, range));
            let parents = parents.map(|parent| self.number(parent, open)).collect();
            links.push(Link { site: *site, telling, replaced: follows.replaced, parents });
        }
        Some(links)
    }

    /// What one caller does decides for all that lead to it.
    fn settle(&mut self) {
        let mut below: Vec<Vec<(usize, bool)>> = vec![Vec::new(); self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            for link in &node.links {
                link.parents.iter().for_each(|parent| below[*parent].push((number, link.telling)));
            }
        }
        // A recursion that nobody begins has no end.
        let ends = |node: &Node| node.links.iter().any(|link| link.parents.is_empty());
        let mut begun: Vec<bool> = self.nodes.iter().map(ends).collect();
        let mut open: Vec<usize> = (0..self.nodes.len()).filter(|at| begun[*at]).collect();
        while let Some(at) = open.pop() {
            for (number, _) in &below[at] {
                if !std::mem::replace(&mut begun[*number], true) {
                    open.push(*number);
                }
            }
        }
        self.nodes.iter_mut().zip(begun).for_each(|(node, begun)| node.stays |= !begun);
        let mut open: Vec<usize> = (0..self.nodes.len()).filter(|at| self.nodes[*at].stays).collect();
        while let Some(at) = open.pop() {
            for (number, _) in &below[at] {
                if !std::mem::replace(&mut self.nodes[*number].stays, true) {
                    open.push(*number);
                }
            }
        }
        for node in &mut self.nodes {
            node.plain = node.links.iter().any(|link| !link.telling && link.parents.is_empty());
        }
        let mut open: Vec<usize> = (0..self.nodes.len()).filter(|at| self.nodes[*at].plain).collect();
        while let Some(at) = open.pop() {
            for (number, telling) in &below[at] {
                if !telling && !std::mem::replace(&mut self.nodes[*number].plain, true) {
                    open.push(*number);
                }
            }
        }
    }
}

/// What to ask of a leak: its function, with each thing that it may return then.
fn questions(incident: &Incident) -> Vec<Question> {
    match (&incident.kind, incident.loss) {
        (IncidentKind::Leak, Some(Loss::Return)) if incident.results.is_empty() => {
            vec![(incident.function, Range::full())]
        }
        (IncidentKind::Leak, Some(Loss::Return)) => {
            incident.results.iter().map(|range| (incident.function, range.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// What follows a call that has returned this, and whether the end is due to it; `None`, if the program goes on.
fn follow(dying: &mut Dying<'_>, site: Site, (callee, range): &Question) -> Option<(Region, bool)> {
    let around = dying.around;
    let start = |result: Range| Start { function: site.caller, behind: Some(site.inst), result: Some(result) };
    let follows = region(dying, &start(range.clone())).ok()?;
    if follows.returns.is_empty() && !follows.ends || follows.thread && around.is_in_thread(site.caller) {
        return None;
    }
    if child::is_in_child(around.program, site) {
        return Some((follows, true));
    }
    let goes = around.goes(site.caller, site.inst);
    if !goes.up && !goes.elsewhere {
        // `case 'V': version(); return 0;`
        let at_once = !follows.calls && around::is_main(around.program, site.caller);
        return (at_once && alternative::is_alternative(dying, site)).then_some((follows, true));
    }
    let telling = match region(dying, &start(Range::full())) {
        Err(Stays::Works) => has_other(around.analysis, *callee, range),
        // That a loop is left early says nothing: most loops of examples are.
        Err(Stays::Unclear) => false,
        // Whatever it returns, the process ends: then it is all that the process was for.
        Ok(all) if all.reads => false,
        Ok(_) if site.chosen => true,
        Ok(_) => goes.up && (is_given_words(around, site) || alternative::is_alternative(dying, site)),
    };
    // What reads on the way is no straight way, unless the result has decided so.
    if follows.reads && !telling {
        return None;
    }
    Some((follows, telling))
}

/// Is the function given the arguments of the program?
fn is_given_words(around: &Around<'_>, site: Site) -> bool {
    let function = around.program.function(site.caller);
    let Op::Call(call) = &function.insts[site.inst].op else { return false };
    call.args.iter().any(|arg| around.is_words(site.caller, *arg))
}

/// May the function return something else?
fn has_other(analysis: &Analysis<'_>, id: FuncId, range: &Range) -> bool {
    let Some(summary) = analysis.knowledge.summary(id) else { return false };
    let is_other = |result: &Option<TermId>| result.is_some_and(|term| is_other(&summary, term, range));
    summary.outcomes.iter().any(|outcome| is_other(&outcome.result))
}

fn is_other(summary: &Summary, term: TermId, range: &Range) -> bool {
    match summary.terms.get(term.index()) {
        Some(Term::Int(value)) => range.excludes(*value),
        Some(_) => !range.is_full(),
        None => false,
    }
}
