use std::path::PathBuf;
use std::process::Command;

use caulk_findings::{Findings, Rule};
use caulk_report::{Level, Report, render_sarif};
use serde_json::{Value, json};

use crate::sample;

fn rendered() -> Value {
    let findings = sample::findings();
    let sources = sample::sources();
    let patches = [sample::patch(), sample::refusal()];
    let mut report = Report { patches: &patches, ..Report::new(&findings, sample::ROOT, &sources) };
    report.levels.set(Rule::DoubleFree, Level::Warning);
    serde_json::from_str(&render_sarif(&report)).expect("valid JSON")
}

/// The official schema, which the SARIF types are generated from, out of cargo's own store.
fn official_schema() -> Value {
    // Crates for other systems are not in the store.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", &platform])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == "serde-sarif").expect("a dependency");
    let manifest = PathBuf::from(package["manifest_path"].as_str().expect("a path"));
    let schema = std::fs::read_to_string(manifest.with_file_name("src").join("schema.json")).expect("the schema");
    let mut schema: Value = serde_json::from_str(&schema).expect("valid JSON");
    // A stray bracket makes these patterns no regular expressions; we write no `language`.
    for definition in schema["definitions"].as_object_mut().expect("definitions").values_mut() {
        if let Some(language) = definition.pointer_mut("/properties/language").and_then(Value::as_object_mut) {
            language.remove("pattern");
        }
    }
    schema
}

#[test]
fn valid_against_the_official_schema() {
    let validator = jsonschema::validator_for(&official_schema()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&rendered()).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, [""; 0]);
    let mut broken = rendered();
    broken["runs"][0]["results"][0]["level"] = json!("fatal");
    assert!(!validator.is_valid(&broken));

    let empty = Findings::default();
    let sources = sample::sources();
    let nothing: Value = serde_json::from_str(&render_sarif(&Report::new(&empty, "/", &sources))).unwrap();
    assert!(validator.is_valid(&nothing));
    assert_eq!(nothing["runs"][0]["results"], json!([]));
    assert_eq!(nothing["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

#[test]
fn read_back_it_is_the_same() {
    let read: serde_sarif::sarif::Sarif = serde_json::from_value(rendered()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), rendered());
}

#[test]
fn a_leak_is_shown_at_its_allocation_with_its_path() {
    let run = &rendered()["runs"][0];
    let leak = &run["results"][0];
    assert_eq!(leak["ruleId"], "memory-leak");
    assert_eq!(leak["level"], "error");
    assert_eq!(leak["message"]["text"], "`buf` is never released when `append` fails");
    let physical = &leak["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"], json!({ "uri": "src/load.c", "uriBaseId": "%SRCROOT%" }));
    assert_eq!(physical["region"], json!({ "startLine": 6, "startColumn": 8, "endLine": 6, "endColumn": 17 }));
    assert_eq!(leak["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 11);
    assert_eq!(leak["partialFingerprints"]["caulk/v1"], "00c0ffee00c0ffee");
    assert_eq!(run["originalUriBaseIds"]["%SRCROOT%"]["uri"], "file:///p/");

    let flow = leak["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
    assert_eq!(flow.len(), 7);
    assert_eq!(flow[3]["nestingLevel"], 1);
    assert_eq!(flow[3]["kinds"], json!(["branch", "true"]));
    assert_eq!(flow[6]["location"]["message"]["text"], "the last reference is lost here");
    assert_eq!(flow[6]["state"]["buf"]["text"], "lost");
}

#[test]
fn a_double_free_is_shown_at_the_second_release() {
    let result = &rendered()["runs"][0]["results"][1];
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 20);
    assert_eq!(result["level"], "warning");
    assert_eq!(result["fixes"], Value::Null);
}

#[test]
fn every_rule_has_help_and_every_result_its_rule() {
    let run = &rendered()["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), Rule::ALL.len());
    for rule in rules {
        assert!(rule["help"]["text"].as_str().unwrap().contains("caulk-ignore["));
    }
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
}

#[test]
fn patches_become_fixes_and_gaps_notifications() {
    let run = &rendered()["runs"][0];
    let change = &run["results"][0]["fixes"][0]["artifactChanges"][0];
    assert_eq!(change["artifactLocation"]["uri"], "src/load.c");
    assert_eq!(change["replacements"][0]["insertedContent"]["text"], "free(buf);\n\t\t");
    assert_eq!(
        change["replacements"][0]["deletedRegion"],
        json!({ "startLine": 11, "startColumn": 3, "endLine": 11, "endColumn": 3 })
    );
    let notifications = run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    assert_eq!(notifications.len(), 2);
    assert_eq!(notifications[0]["level"], "error");
    assert_eq!(notifications[0]["message"]["text"], "src/broken.c: fatal error: 'config.h' file not found");
    let hostile = &run["results"][2]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(hostile, "src/%3Cb%3E/hostile.c");
}
