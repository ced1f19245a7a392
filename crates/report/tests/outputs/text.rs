use caulk_findings::{Findings, MemorySources, RunSummary, SuppressionIssue, SuppressionProblem};
use caulk_report::{Level, Report, TextOptions, closing_line, render_stats, render_text};

use crate::sample;

#[test]
fn findings_gaps_and_counts() {
    let findings = sample::findings();
    let sources = sample::sources();
    let patches = [sample::patch(), sample::refusal()];
    let report = Report { patches: &patches, ..Report::new(&findings, sample::ROOT, &sources) };
    insta::assert_snapshot!(render_text(&report, &TextOptions::default()));
}

#[test]
fn missing_and_shortened_files_degrade_to_places() {
    let findings = Findings {
        findings: vec![sample::leak()],
        summary: RunSummary { units: 1, ..RunSummary::default() },
        gaps: vec![],
    };
    let sources = MemorySources::new([("/p/src/load.c", "int x;\n")]);
    let report = Report::new(&findings, sample::ROOT, &sources);
    insta::assert_snapshot!(render_text(&report, &TextOptions::default()));
}

#[test]
fn colour_only_when_asked_and_levels_from_the_configuration() {
    let findings = sample::findings();
    let sources = sample::sources();
    let mut report = Report::new(&findings, sample::ROOT, &sources);
    report.levels.set(caulk_findings::Rule::MemoryLeak, Level::Warning);
    let plain = render_text(&report, &TextOptions::default());
    assert!(!plain.contains('\u{1b}'));
    assert!(plain.starts_with("warning[memory-leak]: "), "{plain}");
    let colour = render_text(&report, &TextOptions { colour: true, ..TextOptions::default() });
    assert!(colour.contains("\u{1b}["));
}

#[test]
fn a_run_over_nothing_does_not_look_clean() {
    let sources = sample::sources();
    let empty = Findings::default();
    assert_eq!(
        render_text(&Report::new(&empty, sample::ROOT, &sources), &TextOptions::default()),
        "warning: nothing was analysed: this is not a clean result\n0 units analysed; 0 functions, 0 allocation sites\n"
    );
    let summary = RunSummary { units: 2, functions: 3, alloc_sites: 1, ..RunSummary::default() };
    let clean = Findings { summary: summary.clone(), ..Findings::default() };
    assert_eq!(
        render_text(&Report::new(&clean, sample::ROOT, &sources), &TextOptions::default()),
        "note: no findings\n2 units analysed; 3 functions, 1 allocation site\n"
    );
    let gappy = Findings { summary, gaps: sample::gaps(), findings: vec![] };
    assert_eq!(
        closing_line(&Report::new(&gappy, sample::ROOT, &sources)),
        "no findings in what was analysed; 1 unit could not be"
    );
}

#[test]
fn suppressions_that_need_attention() {
    let findings = Findings::default();
    let sources = MemorySources::new([("/p/a.c", "f(); // caulk-ignore[leek]\n")]);
    let place = caulk_findings::Place { file: "/p/a.c".into(), line: 1, column: 6, ..Default::default() };
    let issues = [
        SuppressionIssue { place: place.clone(), problem: SuppressionProblem::UnknownRule("leek".into()) },
        SuppressionIssue { place, problem: SuppressionProblem::Unused },
    ];
    let report = Report { issues: &issues, ..Report::new(&findings, sample::ROOT, &sources) };
    insta::assert_snapshot!(render_text(&report, &TextOptions::default()));
}

#[test]
fn statistics() {
    insta::assert_snapshot!(render_stats(&sample::summary()));
}

#[test]
fn any_place_in_any_text_is_rendered() {
    let texts = [
        "",
        "\n",
        "\r\n\r\n",
        "é\u{301}中\tx;\n\n\u{1b}[31m\u{202e}f();",
        "int main(void) { return f(\n\t1); }\r\n",
        "\u{0}\n",
    ];
    for text in texts {
        let sources = MemorySources::new([("/p/src/load.c", text), ("/p/src/list.c", text)]);
        for line in 0..5 {
            for column in [0, 1, 2, 3, 5, 40, u32::MAX] {
                let mut leak = sample::leak();
                for place in [&mut leak.source, &mut leak.sink] {
                    (place.line, place.column) = (line, column);
                }
                for (index, step) in leak.steps.iter_mut().enumerate() {
                    step.place.line = (line + u32::try_from(index).unwrap()) % 5;
                    step.place.column = column;
                }
                let findings = Findings { findings: vec![leak], ..Findings::default() };
                let report = Report::new(&findings, sample::ROOT, &sources);
                let rendered = render_text(&report, &TextOptions::default());
                assert!(rendered.contains("error[memory-leak]"));
                assert!(!rendered.contains('\u{1b}') && !rendered.contains('\u{202e}'), "{rendered}");
                assert!(caulk_report::render_sarif(&report).contains("memory-leak"));
                let count = &mut 0;
                caulk_report::render_html(&report, &caulk_report::HtmlOptions::default(), &mut |_, _| {
                    *count += 1;
                    Ok(())
                })
                .unwrap();
                assert_eq!(*count, 6, "style, script, index, one finding, two sources");
            }
        }
    }
}

#[test]
fn lines_between_far_steps_are_folded() {
    let text = "f();\n".repeat(5000);
    let sources = MemorySources::new([("/p/src/load.c", text.as_str()), ("/p/src/list.c", text.as_str())]);
    let mut leak = sample::leak();
    leak.steps.truncate(3);
    for (step, line) in leak.steps.iter_mut().zip([6, 2500, 4990]) {
        step.place.line = line;
    }
    leak.sink.line = 4990;
    let findings = Findings { findings: vec![leak], ..Findings::default() };
    let rendered = render_text(&Report::new(&findings, sample::ROOT, &sources), &TextOptions::default());
    for part in ["2500 |", "4990 |", "3: passed to `append`"] {
        assert!(rendered.contains(part), "{part}\n{rendered}");
    }
    assert!(rendered.lines().count() < 25, "{rendered}");
}
