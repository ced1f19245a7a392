//! Findings for a terminal, in the manner of rustc.
//!
//! ```text
//! error[memory-leak]: `buf` is never released when `fill` fails
//!  --> src/load.c:6:17
//!   |
//! 6 |     char *buf = malloc(n);
//!   |                 ^^^^^^^^^ 1: allocated here
//! 7 |     if (fill(buf, n) < 0)
//!   |     --------------------- 2: `fill` fails here
//! 8 |         return -1;
//!   |         --------- 3: the last reference is lost here
//!   |
//!   = note: confidence: high
//! ```
//!
//! Each file gets one snippet, the file of the primary place first; the numbers
//! tell the order of the path. Lines between marks are folded.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level as Colour, Origin, Renderer, Snippet};
use caulk_base::{Gap, GapKind};
use caulk_findings::{Finding, Patch, PatchStatus, Place};

use crate::level::Level;
use crate::paths::shown;
use crate::span::span_in_line;
use crate::texts::Texts;
use crate::words::{clean, notes, sink_text, source_text, step_text};
use crate::{Report, closing_line, summary_line};

/// Units that failed are always listed; of other gaps only this many.
const MAX_MINOR_GAPS: usize = 10;

/// How the text is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    pub colour: bool,
    /// Columns of the terminal.
    pub width: usize,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { colour: false, width: 140 }
    }
}

/// All findings, what is wrong with suppressions, gaps, and the closing lines.
pub fn render_text(report: &Report<'_>, options: &TextOptions) -> String {
    let renderer = if options.colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(options.width.max(40));
    let patches = report.patches_by_fingerprint();
    let texts = Texts::of_report(report);
    let mut out = String::new();
    let mut print = |group: Group<'_>| {
        out.push_str(&renderer.render(&[group]));
        out.push_str("\n\n");
    };
    for finding in &report.findings.findings {
        print(finding_group(report, &texts, finding, patches.get(&finding.fingerprint).copied()));
    }
    for issue in report.issues {
        let marks = [Mark { place: &issue.place, label: String::new(), primary: true }];
        let title = Colour::WARNING.primary_title(clean(&issue.message())).id("caulk-ignore");
        print(title.elements(snippets(report, &texts, &marks)));
    }
    for gap in shown_gaps(&report.findings.gaps) {
        let text = format!("{}: {}", shown(report.root, &gap.place), gap.reason.trim_end());
        let title = format!("{}: {}", gap_title(gap.kind), text.lines().next().unwrap_or_default());
        let mut group = Group::with_title(Colour::WARNING.primary_title(clean(&title)));
        for line in text.lines().skip(1) {
            group = group.element(Colour::NOTE.no_name().message(clean(line)));
        }
        print(group);
    }
    let left_out = report.findings.gaps.len() - shown_gaps(&report.findings.gaps).count();
    if left_out > 0 {
        let text = format!("{left_out} more places were looked at less closely; `--format json` lists them all");
        print(Group::with_title(Colour::NOTE.primary_title(text)));
    }
    out.push_str(&closing(report, &renderer));
    out
}

fn closing(report: &Report<'_>, renderer: &Renderer) -> String {
    let nothing = report.findings.summary.units == 0;
    let colour = match report.findings.findings.iter().map(|f| report.levels.get(f.rule)).max() {
        Some(Level::Error) => Colour::ERROR,
        Some(Level::Warning) => Colour::WARNING,
        None if nothing => Colour::WARNING,
        Some(Level::Note) | None => Colour::NOTE,
    };
    let group = Group::with_title(colour.primary_title(closing_line(report)));
    format!("{}\n{}\n", renderer.render(&[group]), summary_line(&report.findings.summary))
}

/// A label at a place.
struct Mark<'a> {
    place: &'a Place,
    label: String,
    primary: bool,
}

fn finding_group<'a>(report: &Report<'_>, texts: &Texts, finding: &'a Finding, patch: Option<&Patch>) -> Group<'a> {
    let colour = match report.levels.get(finding.rule) {
        Level::Error => Colour::ERROR,
        Level::Warning => Colour::WARNING,
        Level::Note => Colour::NOTE,
    };
    let title = colour.primary_title(clean(&finding.message)).id(finding.rule.id());
    let mut group = title.elements(snippets(report, texts, &marks(finding)));
    for note in notes(finding) {
        group = group.element(Colour::NOTE.message(clean(&note)));
    }
    let fingerprint = clean(&finding.fingerprint.0);
    group = group.element(Colour::NOTE.message(format!("fingerprint: {fingerprint}")));
    match patch.map(|patch| (&patch.status, patch)) {
        Some((PatchStatus::Fixed, patch)) => group.element(Colour::HELP.message(format!(
            "{}: `caulk fix --finding {fingerprint} --apply`",
            clean(if patch.title.is_empty() { "a proven patch exists" } else { &patch.title })
        ))),
        Some((PatchStatus::Refused { reason }, _)) => {
            group.element(Colour::NOTE.message(clean(&format!("no safe patch: {reason}"))))
        }
        None => group,
    }
}

/// The steps with their numbers; source and sink where no step stands for them.
fn marks(finding: &Finding) -> Vec<Mark<'_>> {
    let primary = finding.primary();
    let mut marks: Vec<Mark<'_>> = finding
        .steps
        .iter()
        // What happens inside of calls is for those who ask.
        .filter(|step| step.depth == 0)
        .enumerate()
        .map(|(index, step)| Mark {
            place: &step.place,
            label: format!("{}: {}", index + 1, clean(&step_text(step))),
            primary: false,
        })
        .collect();
    let at = |place: &Place, mark: &Mark<'_>| (&mark.place.file, mark.place.line) == (&place.file, place.line);
    for (place, label) in [(&finding.source, source_text(finding.rule)), (&finding.sink, sink_text(finding.rule))] {
        if place.line > 0 && !marks.iter().any(|mark| at(place, mark)) {
            marks.push(Mark { place, label: label.to_owned(), primary: false });
        }
    }
    // The error is the last step at its place, the allocation the first at its.
    let chosen = match std::ptr::eq(primary, &finding.source) {
        true => marks.iter_mut().find(|mark| at(primary, mark)),
        false => marks.iter_mut().rfind(|mark| at(primary, mark)),
    };
    if let Some(mark) = chosen {
        mark.primary = true;
    }
    marks
}

/// One snippet a file, the primary mark's first.
fn snippets<'a>(report: &Report<'_>, texts: &Texts, marks: &[Mark<'_>]) -> Vec<annotate_snippets::Element<'a>> {
    let mut files: Vec<&str> = Vec::new();
    for mark in marks.iter().filter(|mark| mark.primary).chain(marks) {
        if !files.contains(&mark.place.file.as_str()) && !mark.place.file.is_empty() {
            files.push(&mark.place.file);
        }
    }
    let mut elements = Vec::new();
    for file in files {
        let here: Vec<&Mark<'_>> = marks.iter().filter(|mark| mark.place.file == file).collect();
        let path = clean(&shown(report.root, file));
        match snippet(texts, &path, &here) {
            Some(snippet) => elements.push(snippet.into()),
            None => elements.extend(here.iter().map(|mark| without_source(&path, mark))),
        }
    }
    elements
}

fn snippet<'a>(texts: &Texts, path: &str, marks: &[&Mark<'_>]) -> Option<Snippet<'a, Annotation<'a>>> {
    let line = |mark: &Mark<'_>| mark.place.line.max(1);
    let first = marks.iter().map(|mark| line(mark)).min()?;
    let last = marks.iter().map(|mark| line(mark)).max()?;
    let file = &marks.first()?.place.file;
    // A file that got shorter since it was analysed has no snippet: it would lie.
    let window = texts.lines(file, first, last)?;
    let mut snippet = Snippet::source(window.to_owned()).path(path.to_owned()).line_start(first as usize);
    for mark in marks {
        let text = texts.line(file, line(mark))?;
        let start = if line(mark) == first { 0 } else { texts.lines(file, first, line(mark))?.len() - text.len() };
        let span = span_in_line(text, mark.place.column);
        let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(start + span.start..start + span.end);
        snippet = snippet.annotation(match mark.label.as_str() {
            "" => annotation,
            label => annotation.label(label.to_owned()),
        });
    }
    Some(snippet)
}

fn without_source<'a>(path: &str, mark: &Mark<'_>) -> annotate_snippets::Element<'a> {
    let origin = Origin::path(match mark.label.as_str() {
        "" => path.to_owned(),
        label => format!("{path}:{}: {label}", mark.place.line),
    });
    match mark.label.as_str() {
        "" => origin.line(mark.place.line as usize).into(),
        _ => origin.into(),
    }
}

fn shown_gaps(gaps: &[Gap]) -> impl Iterator<Item = &Gap> {
    let units = gaps.iter().filter(|gap| gap.kind == GapKind::Unit);
    units.chain(gaps.iter().filter(|gap| gap.kind != GapKind::Unit).take(MAX_MINOR_GAPS))
}

fn gap_title(kind: GapKind) -> &'static str {
    match kind {
        GapKind::Unit => "not analysed",
        GapKind::Function => "only partly understood",
        GapKind::Limit => "a limit was reached",
        GapKind::Cache => "cache rebuilt",
    }
}
