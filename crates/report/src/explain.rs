//! `caulk explain`: a rule, or one finding step by step, in full sentences.

use caulk_findings::{Finding, Patch, PatchStatus, Place, Rule};

use crate::Report;
use crate::paths::shown;
use crate::rule_help::rule_help;
use crate::texts::Texts;
use crate::words::{clean, notes, step_text};

const WIDTH: usize = 80;

/// What the rule means, an example, how it is found, how to silence it.
pub fn explain_rule(rule: Rule) -> String {
    let title = format!("{} (CWE-{})", rule.id(), rule.cwe());
    format!("{title}\n{}\n\n{}", "=".repeat(title.len()), rule_text(rule))
}

/// The body of [`explain_rule`].
pub(crate) fn rule_text(rule: Rule) -> String {
    let help = rule_help(rule);
    let mut out = String::new();
    wrap(&mut out, "", &format!("{}.", help.short));
    out.push('\n');
    wrap(&mut out, "", help.what);
    for (title, code) in [("Wrong:", help.bad), ("Right:", help.good)] {
        out.push_str(&format!("\n{title}\n\n"));
        for line in code.lines() {
            out.push_str(format!("    {line}").trim_end());
            out.push('\n');
        }
    }
    out.push_str("\nHow caulk finds it:\n\n");
    wrap(&mut out, "", help.how);
    out.push_str("\nHow to silence it, at the allocation or where it goes wrong:\n\n");
    out.push_str(&format!("    // caulk-ignore[{}]: the reason\n", rule.id()));
    out
}

/// The same for readers of Markdown.
pub(crate) fn rule_markdown(rule: Rule) -> String {
    let help = rule_help(rule);
    format!(
        "{}\n\nWrong:\n\n```c\n{}\n```\n\nRight:\n\n```c\n{}\n```\n\n**How caulk finds it.** {}\n\n\
         **How to silence it.** Write `// caulk-ignore[{}]: the reason` at the allocation or where it goes wrong.\n",
        help.what,
        help.bad,
        help.good,
        help.how,
        rule.id()
    )
}

/// One finding as a story: each step with its code, the branch taken and the state.
pub fn explain_finding(report: &Report<'_>, finding: &Finding, patch: Option<&Patch>) -> String {
    let texts = Texts::of_finding(report, finding);
    let mut out = String::new();
    let title = clean(&format!("{}: {}", finding.rule.id(), finding.message));
    out.push_str(&format!("{title}\n{}\n\n", "=".repeat(title.chars().count())));
    for (name, value) in [
        ("object", finding.object.clone()),
        ("family", format!("{}, released by `{}`", finding.family, finding.release)),
        ("acquired", position(report, &finding.source)),
        ("error", position(report, &finding.sink)),
        ("fingerprint", finding.fingerprint.0.clone()),
    ] {
        out.push_str(&format!("{name:<12} {}\n", clean(&value)));
    }
    if !finding.steps.is_empty() {
        out.push_str("\nThe path\n--------\n");
    }
    for (index, step) in finding.steps.iter().enumerate() {
        let indent = "  ".repeat(step.depth.min(12) as usize);
        let head = format!("{indent}{}. ", index + 1);
        out.push('\n');
        wrap(&mut out, &head, &clean(&format!("{}: {}", position(report, &step.place), step_text(step))));
        let body = " ".repeat(head.len());
        if let Some(code) = code_line(&texts, &step.place) {
            out.push_str(&format!("{body}| {code}\n"));
        }
        if let Some(decision) = &step.decision {
            out.push_str(&format!("{body}branch: `{}` is {}\n", clean(&decision.condition), decision.taken));
        }
        if !step.state.is_empty() {
            out.push_str(&format!("{body}state: {}\n", clean(&step.state)));
        }
    }
    out.push_str("\nHow sure\n--------\n\n");
    for note in notes(finding) {
        wrap(&mut out, "- ", &clean(&note));
    }
    patch_text(&mut out, finding, patch);
    out.push_str("\nWhat this rule means\n--------------------\n\n");
    wrap(&mut out, "", rule_help(finding.rule).what);
    wrap(&mut out, "", &format!("`caulk explain {}` tells more.", finding.rule.id()));
    out
}

fn patch_text(out: &mut String, finding: &Finding, patch: Option<&Patch>) {
    let Some(patch) = patch else { return };
    out.push_str("\nThe patch\n---------\n\n");
    match &patch.status {
        PatchStatus::Refused { reason } => wrap(out, "", &clean(&format!("There is no safe patch: {reason}."))),
        PatchStatus::Fixed => {
            for line in patch.diff.lines() {
                out.push_str(&line.chars().map(|c| if c == '\t' { c } else { clean_char(c) }).collect::<String>());
                out.push('\n');
            }
            out.push_str("\nWhy it is safe:\n\n");
            for argument in &patch.why_safe {
                wrap(out, "- ", &clean(argument));
            }
            out.push_str(&format!("\nApply it: caulk fix --finding {} --apply\n", clean(&finding.fingerprint.0)));
        }
    }
}

fn clean_char(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}

/// `src/load.c:6:8 in load`.
fn position(report: &Report<'_>, place: &Place) -> String {
    let mut text = format!("{}:{}", shown(report.root, &place.file), place.line);
    if place.column > 0 {
        text += &format!(":{}", place.column);
    }
    if !place.function.is_empty() {
        text += &format!(" in {}", place.function);
    }
    text
}

fn code_line(texts: &Texts, place: &Place) -> Option<String> {
    let line = clean(texts.line(&place.file, place.line)?.trim());
    (!line.is_empty()).then_some(line)
}

/// Appends `text` behind `head`, broken between words, later lines indented like the first.
fn wrap(out: &mut String, head: &str, text: &str) {
    let indent = " ".repeat(head.chars().count());
    let mut line = head.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = indent.clone();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}
