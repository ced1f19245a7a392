//! Source excerpts with the path drawn in.

use std::collections::{BTreeMap, BTreeSet};

use caulk_findings::{Decision, SourceProvider, Step};
use maud::{Markup, html};

use crate::html::frames::{Frame, windows};
use crate::html::highlight::{Lines, Token};
use crate::html::page::prose;
use crate::html::source_data;
use crate::span::span_in_line;
use crate::words::step_text;

/// Lines shown around each mark.
const CONTEXT: u32 = 5;
/// Bytes of a line that are shown; generated code can have very long ones.
const MAX_LINE: usize = 600;

/// The sources the pages show, numbered in order of first use.
pub struct Sources<'a> {
    provider: &'a dyn SourceProvider,
    files: BTreeMap<String, Option<(usize, Lines)>>,
}

impl<'a> Sources<'a> {
    pub fn new(provider: &'a dyn SourceProvider) -> Self {
        Self { provider, files: BTreeMap::new() }
    }

    fn file(&mut self, path: &str) -> Option<&(usize, Lines)> {
        if !self.files.contains_key(path) {
            let number = self.files.values().flatten().count();
            let lines = self.provider.text(path).map(|text| (number, Lines::of(text)));
            self.files.insert(path.to_owned(), lines);
        }
        self.files.get(path)?.as_ref()
    }

    /// The whole files as scripts, for folds that are opened.
    pub fn data_files(&self) -> impl Iterator<Item = (String, String)> {
        self.files.values().flatten().map(|(number, lines)| {
            let all = (1..=lines.count()).filter_map(|line| lines.line(line));
            let rendered: Vec<String> = all.map(|(text, tokens)| code(text, tokens, &[]).into_string()).collect();
            (format!("data/source-{number}.js"), source_data(*number, &rendered))
        })
    }
}

/// What the excerpts of one page share.
pub struct View<'a> {
    pub steps: &'a [Step],
    pub frames: &'a [Frame<'a>],
    /// Name of a file as shown.
    pub shown: &'a dyn Fn(&str) -> String,
}

impl View<'_> {
    /// All excerpts, callees inside their callers.
    pub fn render(&self, sources: &mut Sources<'_>) -> Markup {
        html! {
            @for (index, frame) in self.frames.iter().enumerate() {
                @if frame.parent.is_none() {
                    section.frame aria-label={ "Source of " (frame.function) } {
                        h3 { (self.title(frame)) }
                        (self.excerpt(index, frame, sources))
                    }
                }
            }
        }
    }

    fn title(&self, frame: &Frame<'_>) -> Markup {
        html! {
            @if !frame.function.is_empty() { code.fn { (frame.function) } " " }
            span.path { ((self.shown)(frame.file)) }
        }
    }

    fn excerpt(&self, index: usize, frame: &Frame<'_>, sources: &mut Sources<'_>) -> Markup {
        let total = sources.file(frame.file).map_or(0, |(_, lines)| lines.count());
        let windows = windows(&frame.lines, CONTEXT, total);
        // Steps behind the end of the file: it changed since, or is gone.
        let lost: Vec<usize> =
            frame.steps.iter().copied().filter(|step| self.steps[*step].place.line > total).collect();
        let (rail_from, rail_to) = rail(frame, self.steps);
        // Every window with the last line shown above it.
        let above: Vec<u32> = std::iter::once(0).chain(windows.iter().map(|(_, last)| *last)).collect();
        html! {
            div.code {
                @for ((first, last), above) in windows.iter().zip(above.iter().copied()) {
                    @if *first > above + 1 { (self.fold(frame, above + 1, first - 1, above == 0, sources)) }
                    @for line in *first..=*last {
                        (self.line(index, frame, line, line >= rail_from && line <= rail_to, sources))
                        (self.below(index, frame, line, sources))
                    }
                }
                @if let Some(last) = above.last().copied().filter(|last| *last < total) { (self.fold(frame, last + 1, total, false, sources)) }
                @if total == 0 { p.gone { "The source cannot be read." } }
                @for step in lost {
                    p.gone { "Line " (self.steps[step].place.line) ":" }
                    (self.step(step))
                    (self.callees(index, self.steps[step].place.line, sources))
                }
            }
        }
    }

    fn fold(&self, frame: &Frame<'_>, first: u32, last: u32, up: bool, sources: &mut Sources<'_>) -> Markup {
        let number = sources.file(frame.file).map_or(0, |(number, _)| *number);
        let lines = last - first + 1;
        html! {
            button.fold type="button" data-source=(number) data-from=(first) data-to=(last) data-up[up] {
                @if lines == 1 { "1 line" } @else { (lines) " lines" }
            }
        }
    }

    fn line(&self, index: usize, frame: &Frame<'_>, line: u32, rail: bool, sources: &mut Sources<'_>) -> Markup {
        let Some((text, tokens)) = sources.file(frame.file).and_then(|(_, lines)| lines.line(line)) else {
            return html! {};
        };
        let here = frame.steps.iter().filter(|step| self.steps[**step].place.line == line);
        let mut marks: Vec<(usize, usize)> = here
            .map(|step| span_in_line(text, self.steps[*step].place.column))
            .map(|span| (span.start, span.end))
            .collect();
        marks.sort_unstable();
        marks.dedup();
        let class = match (rail, marks.is_empty()) {
            (_, false) => "ln rail hit",
            (true, true) => "ln rail",
            (false, true) => "ln",
        };
        html! {
            div class=(class) id={ "f" (index) "-l" (line) } { span.no data-n=(line) {} code { (code(text, tokens, &marks)) } }
        }
    }

    /// Steps at a line and the callees that were entered there.
    fn below(&self, index: usize, frame: &Frame<'_>, line: u32, sources: &mut Sources<'_>) -> Markup {
        let here: Vec<usize> =
            frame.steps.iter().copied().filter(|step| self.steps[*step].place.line == line).collect();
        // A callee belongs between the step that enters it and the one after it.
        let entered = self.entered(index, line);
        let split = entered.iter().filter_map(|callee| self.frames[*callee].steps.first().copied()).min();
        let (before, after): (Vec<usize>, Vec<usize>) =
            here.into_iter().partition(|step| split.is_none_or(|split| *step < split));
        html! {
            @for step in before { (self.step(step)) }
            (self.callees(index, line, sources))
            @for step in after { (self.step(step)) }
        }
    }

    fn entered(&self, index: usize, line: u32) -> Vec<usize> {
        (0..self.frames.len()).filter(|callee| self.frames[*callee].parent == Some((index, line))).collect()
    }

    fn callees(&self, index: usize, line: u32, sources: &mut Sources<'_>) -> Markup {
        html! {
            @for callee in self.entered(index, line) {
                @let frame = &self.frames[callee];
                details.callee open {
                    summary { "inside " (self.title(frame)) }
                    (self.excerpt(callee, frame, sources))
                }
            }
        }
    }

    fn step(&self, number: usize) -> Markup {
        let step = &self.steps[number];
        let before = number.checked_sub(1).map(|before| self.steps[before].state.as_str());
        html! {
            div.step id={ "step-" (number + 1) } data-step=(number + 1) tabindex="-1" {
                span.num { (number + 1) }
                @if !step.decision.as_ref().is_some_and(|decision| repeats(&step.text, decision)) {
                    span.txt { (prose(&spoken(step))) }
                }
                @if let Some(decision) = &step.decision { (branch(decision)) }
                (state(&step.state, before == Some(step.state.as_str())))
            }
        }
    }
}

/// The step's text; the decision itself stands beside it.
fn spoken(step: &Step) -> String {
    match step.text.trim().is_empty() && step.decision.is_some() {
        true => "this branch is taken".to_owned(),
        false => step_text(step),
    }
}

/// "`p != NULL` is true here" beside "p != NULL → true" says it twice.
fn repeats(text: &str, decision: &Decision) -> bool {
    text == format!("`{}` is {} here", decision.condition, decision.taken)
}

/// The branch taken at a condition.
pub fn branch(decision: &Decision) -> Markup {
    html! {
        span class={ "branch taken-" (decision.taken) } {
            code { (decision.condition) } span.arrow aria-hidden="true" { " → " } span.sr { " is " } strong { (decision.taken) }
        }
    }
}

/// The object's state as a chip; quiet if it did not change.
pub fn state(state: &str, same: bool) -> Markup {
    let kind = match state.split(' ').next().unwrap_or_default() {
        "allocated" | "open" | "opened" => "live",
        "released" | "freed" | "closed" if state.contains("again") || state.contains("twice") => "bad",
        "released" | "freed" | "closed" => "gone",
        "lost" | "leaked" | "used" => "bad",
        _ => "other",
    };
    html! { @if !state.is_empty() { span class={ "state st-" (kind) @if same { " same" } } { span.sr { "state: " } (state) } } }
}

/// First and last line the rail of a frame runs along.
fn rail(frame: &Frame<'_>, steps: &[Step]) -> (u32, u32) {
    let lines: BTreeSet<u32> = frame.steps.iter().map(|step| steps[*step].place.line).collect();
    (lines.first().copied().unwrap_or(u32::MAX), lines.last().copied().unwrap_or(0))
}

/// One line with its colours and marks.
fn code(text: &str, tokens: &[Token], marks: &[(usize, usize)]) -> Markup {
    let mut limit = text.len().min(MAX_LINE);
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let mut cuts: BTreeSet<usize> = BTreeSet::from([0, limit]);
    cuts.extend(tokens.iter().flat_map(|token| [token.range.start, token.range.end]));
    cuts.extend(marks.iter().flat_map(|mark| [mark.0, mark.1]));
    let cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= limit && text.is_char_boundary(*cut)).collect();
    let mut tokens = tokens.iter().peekable();
    let parts: Vec<(&str, &str, bool)> = cuts
        .windows(2)
        .map(|pair| {
            while tokens.next_if(|token| token.range.end <= pair[0]).is_some() {}
            let colour = tokens.peek().filter(|token| token.range.start <= pair[0]).map(|token| token.colour.class());
            let marked = marks.iter().any(|(start, end)| *start <= pair[0] && pair[1] <= *end);
            (&text[pair[0]..pair[1]], colour.unwrap_or_default(), marked)
        })
        .collect();
    html! {
        @for (part, colour, marked) in parts {
            @match (colour, marked) {
                ("", false) => (part),
                (colour, false) => span class=(colour) { (part) },
                ("", true) => mark { (part) },
                (colour, true) => mark class=(colour) { (part) },
            }
        }
        @if limit < text.len() { span.cut { "…" } }
    }
}
