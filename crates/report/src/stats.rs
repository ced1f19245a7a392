//! The table behind `--stats`.

use caulk_findings::RunSummary;

use crate::words::{alloc_class, duration, thousands};

/// Allocation sites by class, how they were decided, what the cache spared, and where the time went.
pub fn render_stats(summary: &RunSummary) -> String {
    let stats = &summary.stats;
    let mut out = String::new();

    let mut rows = vec![["allocation sites".to_owned(), "sites".to_owned(), "reported".to_owned()]];
    for class in &stats.classes {
        rows.push([alloc_class(class.class).0.to_owned(), thousands(class.sites), thousands(class.reported)]);
    }
    let sites = stats.classes.iter().map(|class| class.sites).sum();
    let reported = stats.classes.iter().map(|class| class.reported).sum();
    rows.push(["all".to_owned(), thousands(sites), thousands(reported)]);
    table(&mut out, &rows);

    let share = |part: u64, whole: u64| match whole {
        0 => String::new(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    };
    out.push('\n');
    table(
        &mut out,
        &[
            ["decided".to_owned(), String::new(), String::new()],
            [
                "without a formula".to_owned(),
                thousands(stats.decided_in_stage_one),
                share(stats.decided_in_stage_one, summary.alloc_sites),
            ],
            ["candidates for path verification".to_owned(), thousands(stats.candidates), String::new()],
            ["refuted by contradiction".to_owned(), thousands(stats.refuted_by_contradiction), String::new()],
            ["SMT queries".to_owned(), thousands(stats.smt_queries), String::new()],
            ["refuted by SMT".to_owned(), thousands(stats.refuted_by_smt), String::new()],
        ],
    );

    let spared = summary.functions.saturating_sub(stats.functions_analysed);
    out.push('\n');
    table(
        &mut out,
        &[
            ["functions".to_owned(), thousands(summary.functions), String::new()],
            [
                "analysed".to_owned(),
                thousands(stats.functions_analysed),
                share(stats.functions_analysed, summary.functions),
            ],
            ["from the cache".to_owned(), thousands(spared), share(spared, summary.functions)],
        ],
    );

    let total: u64 = stats.phases.iter().map(|(_, micros)| micros).sum();
    let mut rows = vec![["phase".to_owned(), "time".to_owned(), "share".to_owned()]];
    for (phase, micros) in &stats.phases {
        rows.push([phase.clone(), duration(*micros), share(*micros, total)]);
    }
    rows.push(["all".to_owned(), duration(total), String::new()]);
    out.push('\n');
    table(&mut out, &rows);
    out
}

/// First column to the left, the others to the right.
fn table(out: &mut String, rows: &[[String; 3]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for row in rows {
        let line = format!(
            "{:<w0$}  {:>w1$}  {:>w2$}",
            row[0],
            row[1],
            row[2],
            w0 = widths[0],
            w1 = widths[1],
            w2 = widths[2]
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
