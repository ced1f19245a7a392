//! Suppression comments and baselines over hand-made findings.

use caulk_findings::{
    Baseline, Confidence, Finding, Fingerprint, MemorySources, Place, Rule, SuppressionProblem, apply_suppressions,
};

fn place(line: u32) -> Place {
    Place { file: "/p/a.c".into(), line, column: 5, function: "load".into(), in_macro: false }
}

fn finding(rule: Rule, source: u32, sink: u32, fingerprint: &str) -> Finding {
    Finding {
        rule,
        confidence: Confidence::High,
        doubts: vec![],
        message: "`buf` is never released".into(),
        object: "buf".into(),
        family: "memory".into(),
        release: "free".into(),
        source: place(source),
        sink: place(sink),
        steps: vec![],
        assumptions: vec![],
        fingerprint: Fingerprint(fingerprint.into()),
        graph: None,
        at_exit: None,
    }
}

const SOURCE: &str = "int f(void) {
    // caulk-ignore[memory-leak]: lives until exit
    char *a = malloc(1);
    char *b = malloc(2);
    return 1; /* caulk-ignore */
    // caulk-ignore[double-free]: not here
    free(b);
    g(); // caulk-ignore[leek]: typo
}
";

#[test]
fn comments_at_allocation_and_at_loss_silence() {
    let sources = MemorySources::new([("/p/a.c", SOURCE)]);
    let findings = vec![
        finding(Rule::MemoryLeak, 3, 9, "a"),
        finding(Rule::ResourceLeak, 3, 9, "b"),
        finding(Rule::ResourceLeak, 4, 5, "c"),
        finding(Rule::UseAfterFree, 4, 7, "d"),
        finding(Rule::MemoryLeak, 8, 9, "e"),
    ];
    let result = apply_suppressions(findings, &sources, &[]);
    let prints = |findings: Vec<&Finding>| findings.iter().map(|f| f.fingerprint.0.clone()).collect::<Vec<_>>();
    assert_eq!(prints(result.kept.iter().collect()), ["b", "d", "e"]);
    assert_eq!(prints(result.suppressed.iter().map(|s| &s.finding).collect()), ["a", "c"]);
    assert_eq!(result.suppressed[0].reason, "lives until exit");
    assert_eq!(result.suppressed[0].place.line, 2);

    let issues: Vec<_> = result.issues.iter().map(|issue| (issue.place.line, issue.problem.clone())).collect();
    assert_eq!(
        issues,
        [
            (5, SuppressionProblem::NoReason),
            (6, SuppressionProblem::Unused),
            (8, SuppressionProblem::UnknownRule("leek".into())),
        ]
    );
}

#[test]
fn unused_comments_are_found_in_files_without_findings() {
    let sources = MemorySources::new([("/p/a.c", "// caulk-ignore: old\nf();\n"), ("/p/b.c", "f();")]);
    let result = apply_suppressions(vec![], &sources, &["/p/a.c".into(), "/p/b.c".into(), "/p/gone.c".into()]);
    assert_eq!(result.issues.len(), 1);
    assert_eq!(result.issues[0].message(), "this `caulk-ignore` silences nothing; remove it");
}

#[test]
fn baseline_counts_fingerprints_and_ignores_lines() {
    let old = vec![
        finding(Rule::MemoryLeak, 3, 9, "bb"),
        finding(Rule::MemoryLeak, 5, 9, "aa"),
        finding(Rule::MemoryLeak, 6, 9, "aa"),
        finding(Rule::DoubleFree, 7, 9, "cc"),
    ];
    let baseline = Baseline::of(&old);
    let shown: Vec<_> = baseline.entries.iter().map(|e| (e.fingerprint.0.as_str(), e.count)).collect();
    assert_eq!(shown, [("aa", 2), ("bb", 1), ("cc", 1)]);

    let now = vec![
        finding(Rule::MemoryLeak, 103, 109, "aa"),
        finding(Rule::MemoryLeak, 105, 109, "aa"),
        finding(Rule::MemoryLeak, 106, 109, "aa"),
        finding(Rule::MemoryLeak, 107, 109, "bb"),
        finding(Rule::DoubleFree, 107, 109, "dd"),
    ];
    let filtered = baseline.filter_new(now);
    let lines: Vec<_> = filtered.new.iter().map(|f| (f.fingerprint.0.as_str(), f.source.line)).collect();
    assert_eq!(lines, [("aa", 106), ("dd", 107)]);
    assert_eq!(filtered.known.len(), 3);
    let gone: Vec<_> = filtered.gone.iter().map(|e| (e.fingerprint.0.as_str(), e.count)).collect();
    assert_eq!(gone, [("cc", 1)]);
}
