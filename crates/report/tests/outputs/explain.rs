use caulk_findings::Rule;
use caulk_report::{Report, explain_finding, explain_rule};

use crate::sample;

#[test]
fn a_finding_is_told_step_by_step() {
    let findings = sample::findings();
    let sources = sample::sources();
    let report = Report::new(&findings, sample::ROOT, &sources);
    insta::assert_snapshot!(explain_finding(&report, &sample::leak(), Some(&sample::patch())));
}

#[test]
fn a_refused_patch_gives_its_reason() {
    let findings = sample::findings();
    let sources = sample::sources();
    let report = Report::new(&findings, sample::ROOT, &sources);
    let text = explain_finding(&report, &sample::double_free(), Some(&sample::refusal()));
    assert!(text.contains("There is no safe patch: the release lies in a macro body."), "{text}");
    assert!(!text.contains("--apply"));
}

#[test]
fn every_rule_is_explained_within_80_columns() {
    for rule in Rule::ALL {
        let text = explain_rule(rule);
        assert!(text.starts_with(&format!("{} (CWE-{})\n", rule.id(), rule.cwe())));
        for part in ["Wrong:", "Right:", "How caulk finds it:", &format!("caulk-ignore[{}]", rule.id())] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    insta::assert_snapshot!(explain_rule(Rule::UseAfterFree));
}
