use caulk_findings::{Findings, Place, Rule, SuppressionIssue, SuppressionProblem};
use caulk_report::{Level, Report, render_codeclimate, render_github};
use serde_json::{Value, json};

use crate::sample;

#[test]
fn github_annotations_are_one_escaped_line_each() {
    let mut findings = sample::findings();
    findings.findings.truncate(2);
    findings.findings[1].message = "100 % sure:\nreally, yes".into();
    let sources = sample::sources();
    let place = Place { file: "/p/src/a,b.c".into(), line: 3, column: 1, ..Place::default() };
    let issues = [SuppressionIssue { place, problem: SuppressionProblem::Unused }];
    let mut report = Report { issues: &issues, ..Report::new(&findings, sample::ROOT, &sources) };
    report.levels.set(Rule::DoubleFree, Level::Warning);
    insta::assert_snapshot!(render_github(&report));
}

#[test]
fn code_climate_has_what_gitlab_asks_for() {
    let findings = sample::findings();
    let sources = sample::sources();
    let report = Report::new(&findings, sample::ROOT, &sources);
    let issues: Value = serde_json::from_str(&render_codeclimate(&report)).unwrap();
    let leak = &issues[0];
    assert_eq!(leak["type"], "issue");
    assert_eq!(leak["check_name"], "memory-leak");
    assert_eq!(leak["description"], "`buf` is never released when `append` fails");
    assert_eq!(leak["fingerprint"], "00c0ffee00c0ffee");
    assert_eq!(leak["severity"], "major");
    assert_eq!(leak["location"], json!({ "path": "src/load.c", "lines": { "begin": 6, "end": 6 } }));
    assert_eq!(issues[1]["severity"], "critical");
    assert_eq!(issues[1]["location"]["lines"]["begin"], 20);

    let nothing = Findings::default();
    assert_eq!(render_codeclimate(&Report::new(&nothing, sample::ROOT, &sources)), "[]\n");
}
