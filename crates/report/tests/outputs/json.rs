use caulk_report::{JSON_VERSION, Report, render_json};
use serde_json::Value;

use crate::sample;

fn rendered() -> Value {
    let findings = sample::findings();
    let sources = sample::sources();
    let patches = [sample::patch(), sample::refusal()];
    let report = Report { patches: &patches, known: Some(&[]), ..Report::new(&findings, sample::ROOT, &sources) };
    serde_json::from_str(&render_json(&report)).expect("valid JSON")
}

#[test]
fn conforms_to_the_published_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/caulk-findings.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&rendered()).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, [""; 0]);

    // The schema is strict enough to notice what it must.
    for broken in ["fingerprint", "rule", "primary", "steps"] {
        let mut value = rendered();
        value["findings"][0].as_object_mut().unwrap().remove(broken);
        assert!(!validator.is_valid(&value), "{broken} is not required");
    }
}

#[test]
fn says_what_the_finding_says() {
    let value = rendered();
    assert_eq!(value["format"], "caulk-findings");
    assert_eq!(value["version"], JSON_VERSION);
    let leak = &value["findings"][0];
    assert_eq!(leak["rule"], "memory-leak");
    assert_eq!(leak["cwe"], 401);
    assert_eq!(leak["primary"]["file"], "src/load.c");
    assert_eq!(leak["primary"]["line"], 6);
    assert_eq!(leak["sink"]["line"], 11);
    assert_eq!(leak["steps"][3]["location"]["function"], "append");
    assert_eq!(leak["steps"][3]["decision"]["taken"], true);
    assert_eq!(leak["steps"][5]["text"], "taking the branch where `append(l, buf) < 0` is true");
    assert_eq!(leak["patch"]["status"], "fixed");
    assert_eq!(leak["graph"]["edges"][6]["on_path"], false);
    assert_eq!(value["findings"][1]["patch"]["reason"], "the release lies in a macro body");
    assert_eq!(value["findings"][1]["primary"]["line"], 20);
    assert_eq!(value["findings"][2]["patch"], Value::Null);
    assert_eq!(value["gaps"][0]["kind"], "unit");
}
