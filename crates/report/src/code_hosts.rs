//! What code hosts read from a job: GitHub's workflow commands, and GitLab's
//! Code Quality report, which is Code Climate's JSON.

use caulk_base::GapKind;
use caulk_findings::{Finding, Rule};
use serde::Serialize;

use crate::paths::shown;
use crate::rule_help::rule_help;
use crate::words::{notes, step_text};
use crate::{Level, Report};

/// One workflow command a line: findings, suppressions that need attention, units that failed.
pub fn render_github(report: &Report<'_>) -> String {
    let mut out = String::new();
    for finding in &report.findings.findings {
        let place = finding.primary();
        let command = match report.levels.get(finding.rule) {
            Level::Note => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let mut body = vec![finding.message.clone()];
        body.extend(finding.steps.iter().filter(|step| step.depth == 0).enumerate().map(|(index, step)| {
            let place = &step.place;
            format!("{}. {}:{}: {}", index + 1, shown(report.root, &place.file), place.line, step_text(step))
        }));
        body.extend(notes(finding));
        body.push(format!("fingerprint: {}", finding.fingerprint.0));
        let title = format!("{} (CWE-{})", finding.rule.id(), finding.rule.cwe());
        annotation(
            &mut out,
            command,
            Some((&shown(report.root, &place.file), place.line, place.column)),
            &title,
            &body.join("\n"),
        );
    }
    for issue in report.issues {
        let place = &issue.place;
        let at = (&*shown(report.root, &place.file), place.line, place.column);
        annotation(&mut out, "warning", Some(at), "caulk-ignore", &issue.message());
    }
    for gap in report.findings.gaps.iter().filter(|gap| gap.kind == GapKind::Unit) {
        annotation(&mut out, "warning", Some((&shown(report.root, &gap.place), 0, 0)), "not analysed", &gap.reason);
    }
    out
}

fn annotation(out: &mut String, command: &str, at: Option<(&str, u32, u32)>, title: &str, body: &str) {
    let mut properties = Vec::new();
    if let Some((file, line, column)) = at {
        properties.push(format!("file={}", escape_property(file)));
        if line > 0 {
            properties.push(format!("line={line}"));
        }
        if column > 0 {
            properties.push(format!("col={column}"));
        }
    }
    properties.push(format!("title={}", escape_property(title)));
    out.push_str(&format!("::{command} {}::{}\n", properties.join(","), escape_data(body)));
}

fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A JSON array of issues, ending in a line break.
pub fn render_codeclimate(report: &Report<'_>) -> String {
    let issues: Vec<Issue> = report.findings.findings.iter().map(|finding| issue(report, finding)).collect();
    let mut text = serde_json::to_string_pretty(&issues).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Issue {
    #[serde(rename = "type")]
    kind: &'static str,
    check_name: &'static str,
    description: String,
    content: Content,
    categories: [&'static str; 1],
    location: Lines,
    other_locations: Vec<Lines>,
    severity: &'static str,
    fingerprint: String,
}

#[derive(Serialize)]
struct Content {
    body: &'static str,
}

#[derive(Serialize)]
struct Lines {
    path: String,
    lines: Span,
}

#[derive(Serialize)]
struct Span {
    begin: u32,
    end: u32,
}

fn issue(report: &Report<'_>, finding: &Finding) -> Issue {
    let lines = |place: &caulk_findings::Place| Lines {
        path: shown(report.root, &place.file),
        lines: Span { begin: place.line.max(1), end: place.line.max(1) },
    };
    let severity = match (report.levels.get(finding.rule), finding.rule) {
        (Level::Note, _) => "info",
        (Level::Warning, _) => "minor",
        (Level::Error, Rule::UseAfterFree | Rule::DoubleFree) => "critical",
        (Level::Error, _) => "major",
    };
    Issue {
        kind: "issue",
        check_name: finding.rule.id(),
        description: finding.message.clone(),
        content: Content { body: rule_help(finding.rule).what },
        categories: ["Bug Risk"],
        location: lines(finding.primary()),
        other_locations: finding.steps.iter().filter(|step| step.depth == 0).map(|step| lines(&step.place)).collect(),
        severity,
        fingerprint: finding.fingerprint.0.clone(),
    }
}
