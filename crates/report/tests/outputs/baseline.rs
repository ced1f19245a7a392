use caulk_findings::Baseline;
use caulk_report::{BaselineError, parse_baseline, render_baseline};

use crate::sample;

#[test]
fn the_file_is_sorted_readable_and_read_back() {
    let twice = [sample::leak(), sample::hostile(), sample::leak()];
    let baseline = Baseline::of(&twice);
    let text = render_baseline(&baseline);
    insta::assert_snapshot!(text);
    assert_eq!(parse_baseline(&text), Ok(baseline));
}

#[test]
fn damaged_files_say_where() {
    let error = parse_baseline("{\n  \"format\": \"caulk-baseline\",\n  oops\n}").unwrap_err();
    assert!(matches!(error, BaselineError::Malformed { line: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("line 3"), "{error}");
    let other = r#"{"format":"x","version":1,"findings":[]}"#;
    assert_eq!(parse_baseline(other), Err(BaselineError::Format { found: "x".into() }));
    let newer = r#"{"format":"caulk-baseline","version":9,"findings":[]}"#;
    assert_eq!(parse_baseline(newer), Err(BaselineError::Version { found: 9 }));
}
