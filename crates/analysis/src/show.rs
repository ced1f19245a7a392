//! What is known of a function, for people to hold against the source.
//!
//! ```text
//! push  store.c
//!   outcome 1: returns -1
//!   outcome 2: returns 0
//!     q->head = block 1
//!     block 1.text = text
//!     allocates block 1: memory, at store.c:4
//!     uses q
//! ```

use std::fmt::Write;

use caulk_base::Id;
use caulk_ir::{Callee, FuncId, InstId, Op, Target, Ty, ValueId};

use crate::clauses::{Clause, Literal};
use crate::commons::Stir;
use crate::incident::Doubt;
use crate::object::{ObjId, ObjState, Object, Status};
use crate::summary::{Outcome, Summary};
use crate::whole::{Analysis, Knowledge};
use crate::words::{Words, base_name};

/// The outcomes of a function: what it returns when, what it writes, allocates, releases and uses.
pub fn summary(knowledge: &Knowledge<'_>, id: FuncId) -> String {
    let mut out = heading(knowledge, id);
    let Some(summary) = knowledge.summary(id) else {
        out.push_str("  not analysed\n");
        return out;
    };
    let words = Words::new(knowledge.program, id, &summary);
    if summary.outcomes.is_empty() {
        out.push_str("  never returns\n");
    }
    for (place, outcome) in summary.outcomes.iter().enumerate() {
        let result = match outcome.result {
            Some(result) => format!("returns {}", words.term(result)),
            None => "returns".to_owned(),
        };
        line(&mut out, 1, &format!("outcome {}: {result}", place + 1));
        if outcome.starved {
            line(&mut out, 2, "only when something cannot be allocated or opened");
        }
        for condition in conditions(&words, outcome) {
            line(&mut out, 2, &format!("when {condition}"));
        }
        for text in writes(&words, outcome) {
            line(&mut out, 2, &text);
        }
        for (obj, known) in &outcome.objs {
            for text in effects(knowledge, &words, *obj, known) {
                line(&mut out, 2, &text);
            }
        }
        for &obj in &outcome.changed {
            line(&mut out, 2, &format!("other contents of {} may have changed", words.object(obj)));
        }
        for &obj in &outcome.rewired {
            line(&mut out, 2, &format!("what {} leads to may be rearranged", words.object(obj)));
        }
        match outcome.stir {
            Stir::Nothing => {}
            Stir::Changed => line(&mut out, 2, "what lies behind globals may have changed"),
            Stir::Released => line(&mut out, 2, "what lies behind globals may have changed or been released"),
        }
        for &family in &outcome.swept {
            let family = &knowledge.models.families[family].name;
            line(&mut out, 2, &format!("may release whatever there is of `{family}`, whoever has it"));
        }
        if outcome.drained && summary.outcomes.iter().any(|other| !summary.drains_with(other, |_| true)) {
            line(&mut out, 2, "releases parts of its inputs that have no name of their own");
        }
        for &(from, to) in &outcome.moved {
            line(&mut out, 2, &format!("what lay in {} lies in {}", words.object(from), words.object(to)));
        }
    }
    for text in remarks(&summary) {
        line(&mut out, 1, &text);
    }
    out
}

/// Where the pointers of a function go: allocation sites and what they are handed to, the targets of calls through
/// pointers, the cells that are written.
pub fn points_to(analysis: &Analysis<'_>, id: FuncId) -> String {
    let knowledge = &analysis.knowledge;
    let mut out = heading(knowledge, id);
    let unknown = Summary::default();
    let summary = knowledge.summary(id);
    let words = Words::new(knowledge.program, id, summary.as_deref().unwrap_or(&unknown));
    for site in analysis.sites(id) {
        let by = callee(&words, site.inst).unwrap_or_else(|| "a call".to_owned());
        let family = &knowledge.models.families[site.family].name;
        line(&mut out, 1, &format!("{by} allocates at {}: {family}", words.place(site.inst)));
        if site.released {
            line(&mut out, 2, "released in this function");
        }
        if site.shared {
            line(&mut out, 2, "handed out of this function");
        }
        // A number that comes with the block is no way to it.
        let result = words.function.insts[site.inst].result;
        if let Some(value) = result.filter(|&value| words.function.values[value].ty == Ty::Ptr) {
            for text in uses(&words, value) {
                line(&mut out, 2, &text);
            }
        }
    }
    for release in analysis.releases(id) {
        let by = callee(&words, release.inst).unwrap_or_else(|| "a call".to_owned());
        let doubts: Vec<&str> = release.doubts.iter().copied().map(doubt).collect();
        let doubts = if doubts.is_empty() { "certain".to_owned() } else { doubts.join("; ") };
        line(&mut out, 1, &format!("{by} releases at {}: {doubts}", words.place(release.inst)));
    }
    for (inst_id, inst) in words.function.insts.iter_ids() {
        if let Op::Call(call) = &inst.op
            && matches!(call.callee, Callee::Value(_))
        {
            let targets = match knowledge.indirect(id, inst_id) {
                Some(targets) => {
                    let own = targets.functions.iter().map(|&id| knowledge.program.function(id).name.as_str());
                    let library = targets.library.iter().map(|&id| knowledge.program.externs[id].as_str());
                    own.chain(library).collect::<Vec<_>>().join(", ")
                }
                None => "not known".to_owned(),
            };
            line(&mut out, 1, &format!("call through a pointer at {}: {targets}", words.place(inst_id)));
        }
    }
    for (place, outcome) in words.summary.outcomes.iter().enumerate() {
        let cells = writes(&words, outcome);
        if !cells.is_empty() {
            line(&mut out, 1, &format!("outcome {}", place + 1));
            cells.iter().for_each(|text| line(&mut out, 2, text));
        }
    }
    out
}

/// External functions without body or model that were given an object, with the number of calls in the functions
/// where that happens; most first.
pub fn unmodelled(knowledge: &Knowledge<'_>) -> Vec<(String, u64)> {
    let program = knowledge.program;
    let mut counts: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for id in program.functions.ids() {
        let Some(summary) = knowledge.summary(id) else { continue };
        if summary.assumed.is_empty() {
            continue;
        }
        let unit = program.unit_of(id);
        for inst in program.function(id).insts.iter() {
            if let Op::Call(call) = &inst.op
                && let Callee::Symbol(symbol) = call.callee
                && let Target::Extern(name) = program.target(unit, symbol)
                && summary.assumed.binary_search(&program.externs[*name]).is_ok()
            {
                *counts.entry(program.externs[*name].clone()).or_default() += 1;
            }
        }
    }
    let mut rows: Vec<(String, u64)> = counts.into_iter().collect();
    // Stable: equal counts stay in the order of the names.
    rows.sort_by_key(|row| std::cmp::Reverse(row.1));
    rows
}

fn line(out: &mut String, depth: usize, text: &str) {
    let _ = writeln!(out, "{:width$}{text}", "", width = depth * 2);
}

fn heading(knowledge: &Knowledge<'_>, id: FuncId) -> String {
    let unit = &knowledge.program.units[knowledge.program.unit_of(id)];
    format!("{}  {}\n", knowledge.program.function(id).name, base_name(&unit.source))
}

fn conditions(words: &Words<'_>, outcome: &Outcome) -> Vec<String> {
    let mut all = Vec::new();
    for (id, lo, hi, not) in &outcome.ranges {
        all.extend(bounds(&words.term(*id), (*lo, *hi), not));
    }
    for (id, truth) in &outcome.atoms {
        let text = words.term(*id);
        all.push(if *truth { text } else { format!("not ({text})") });
    }
    let side = |literal: &Literal| {
        let range = &literal.range;
        bounds(&words.term(literal.term), (range.lo, range.hi), &range.not).join(" and ")
    };
    all.extend(outcome.clauses.iter().map(|Clause(a, b)| format!("{} or {}", side(a), side(b))));
    all
}

fn bounds(text: &str, range: (i64, i64), not: &[i64]) -> Vec<String> {
    let within = match range {
        (lo, hi) if lo == hi => Some(format!("{text} == {lo}")),
        (i64::MIN, i64::MAX) => None,
        (i64::MIN, hi) => Some(format!("{text} <= {hi}")),
        (lo, i64::MAX) => Some(format!("{text} >= {lo}")),
        (lo, hi) => Some(format!("{lo} <= {text} <= {hi}")),
    };
    within.into_iter().chain(not.iter().map(|value| format!("{text} != {value}"))).collect()
}

fn writes(words: &Words<'_>, outcome: &Outcome) -> Vec<String> {
    let strong = outcome.writes.iter().map(|write| {
        let (cell, _) = words.cell(write.obj, write.off);
        format!("{cell} = {}", words.term(write.term))
    });
    let weak =
        outcome.weak.iter().map(|(obj, term)| format!("somewhere in {}: {}", words.object(*obj), words.term(*term)));
    strong.chain(weak).collect()
}

/// What happened to one object. An object that may be in several states is said to be in each of them perhaps.
fn effects(knowledge: &Knowledge<'_>, words: &Words<'_>, obj: ObjId, known: &ObjState) -> Vec<String> {
    let name = words.object(obj);
    let family = &knowledge.models.families[known.family].name;
    let mut all = Vec::new();
    if let Some(Object::Heap { site, .. }) = words.summary.objects.get(obj.index()) {
        let perhaps = if known.status.may(Status::FAILED) { ", or fails" } else { "" };
        all.push(format!("allocates {name}: {family}, at {}{perhaps}", words.place(*site)));
    }
    if known.status.may(Status::FREED) {
        let verb = if known.status.must(Status::FREED) { "releases" } else { "may release" };
        let at = known.freed_at.map(|inst| format!(" at {}", words.place(inst))).unwrap_or_default();
        all.push(format!("{verb} {name} ({family}){at}"));
    }
    if known.used {
        all.push(format!("uses {name}"));
    }
    if known.escaped {
        all.push(format!("may keep {name} where it is not seen"));
    }
    if known.found {
        all.push(format!("only if {name} lay in memory before"));
    }
    if known.doubted {
        all.push(format!("may release {name} in a recursion that was not followed to its end"));
    }
    if known.lent {
        all.push(format!("lends {name} to a function without body or model"));
    }
    if known.sent {
        all.push(format!("sends the bytes of {name} to somebody"));
    }
    if known.retained > 0 {
        all.push(format!("takes {} more references to {name}", known.retained));
    }
    all
}

fn remarks(summary: &Summary) -> Vec<String> {
    let mut all = Vec::new();
    if summary.drained {
        all.push("releases parts of its inputs that have no name of their own".to_owned());
    }
    if summary.calls_unknown {
        all.push("may call something unknown".to_owned());
    }
    if summary.degraded {
        all.push("a limit was reached: nothing of this is certain".to_owned());
    }
    if summary.cut {
        all.push("not every path was followed to its end".to_owned());
    }
    if !summary.assumed.is_empty() {
        all.push(format!("no body or model of: {}", summary.assumed.join(", ")));
    }
    all
}

fn doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Escaped => "someone we cannot see may hold it",
        Doubt::Chosen => "the allocator it comes from may be exchanged",
        Doubt::Lent => "a function without body or model was given it",
        Doubt::MayBeReleased => "it may have been released before",
        Doubt::NotOurs => "it was not allocated here",
        Doubt::StillReferenced => "memory that outlives this function points to it",
        Doubt::Held => "the place it was read from points to it",
        Doubt::Part => "a part of it was put there by others",
        Doubt::Unsettled => "a recursion that was not followed to its end was given it",
        Doubt::Unset => "a part of it that is looked at was never written",
        Doubt::Bereft => "what it works on may be released already",
        Doubt::Blurred => "several blocks are treated as one",
        Doubt::Shifted => "the pointer does not lead to its beginning",
    }
}

fn callee(words: &Words<'_>, inst: InstId) -> Option<String> {
    let Op::Call(call) = &words.function.insts[inst].op else { return None };
    match &call.callee {
        Callee::Symbol(symbol) => Some(words.unit.symbols[*symbol].name.clone()),
        _ => None,
    }
}

/// What becomes of a value: the calls it is passed to, the stores, the return; through copies.
fn uses(words: &Words<'_>, value: ValueId) -> Vec<String> {
    let function = words.function;
    let mut copies = vec![value];
    let mut texts: Vec<String> = Vec::new();
    let mut next = 0;
    while let Some(&value) = copies.get(next) {
        next += 1;
        for (id, inst) in function.insts.iter_ids() {
            let copied = match &inst.op {
                Op::Cast { a, .. } => *a == value,
                Op::Offset { base, .. } => *base == value,
                Op::Select { a, b, .. } => *a == value || *b == value,
                Op::Phi { incoming } => incoming.iter().any(|entry| entry.1 == value),
                _ => false,
            };
            if let Some(result) = inst.result.filter(|result| copied && !copies.contains(result)) {
                copies.push(result);
            }
            let text = match &inst.op {
                Op::Call(call) if call.args.contains(&value) => {
                    let to = callee(words, id).unwrap_or_else(|| "a function through a pointer".to_owned());
                    Some(format!("passed to {to} at {}", words.place(id)))
                }
                Op::Store { value: stored, .. } if *stored == value => Some(format!("stored at {}", words.place(id))),
                Op::Return { value: Some(returned) } if *returned == value => Some("returned".to_owned()),
                _ => None,
            };
            texts.extend(text.filter(|text| !texts.contains(text)));
        }
    }
    texts
}
