//! caulk over the Juliet test suite for C: what share of the bad functions is
//! found, what share of the good ones is flagged.
//!
//! The suite is not part of this repository; the command is given its folder.
//! All cases of one weakness are one program for caulk, as Juliet's authors mean
//! them to be given to source analysers: good and bad functions together, no
//! `main`. Cases in C++ and cases for Windows are left out.

mod cases;
mod score;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::args::JulietOptions;
use crate::database;
use crate::projects::{CheckRun, check_with_report};
use crate::{say, table};

use cases::Suite;
use score::Score;

/// The weaknesses with the rule that has to find each.
const RULES: [(u32, &str); 5] = [
    (401, "memory-leak"),
    (415, "double-free"),
    (416, "use-after-free"),
    (773, "resource-leak"),
    (775, "resource-leak"),
];

pub(crate) fn bench(options: &JulietOptions) -> Result<()> {
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for &cwe in &options.cwes {
        match weakness(options, cwe) {
            Ok((score, run)) => {
                say(&format!(
                    "CWE-{cwe}: {} cases, found {}, good flagged {}, {:.1} s",
                    score.bad(),
                    table::percent(score.found(), score.bad()),
                    table::percent(score.flagged(), score.good()),
                    run.cost.wall.as_secs_f64(),
                ))?;
                rows.push((cwe, score, run));
            }
            Err(error) => {
                say(&format!("CWE-{cwe}: {error:#}"))?;
                failed.push(format!("CWE-{cwe}"));
            }
        }
    }
    let text = markdown(options, &rows);
    table::save(&options.common.output, &text, &json(&rows))?;
    say(&text)?;
    if failed.is_empty() { Ok(()) } else { bail!("no numbers for {}", failed.join(", ")) }
}

fn weakness(options: &JulietOptions, cwe: u32) -> Result<(Score, CheckRun)> {
    let Some((_, rule)) = RULES.into_iter().find(|(number, _)| *number == cwe) else {
        bail!("no rule for CWE-{cwe}");
    };
    let suite = Suite::read(&options.folder, cwe, options.every)?;
    let scratch = tempfile::tempdir()?;
    let path = scratch.path().join("compile_commands.json");
    database::write(&path, &options.folder, &suite.files, &suite.flags)?;
    let cache = scratch.path().join("cache");
    let (run, report) = check_with_report(&path, &cache, &options.common, scratch.path())?;
    // What caulk said in full: a miss is understood there, not in the table.
    let raw = options.common.output.with_extension(format!("cwe{cwe}.json"));
    std::fs::copy(scratch.path().join("check.json"), &raw)
        .with_context(|| format!("cannot write {}", raw.display()))?;
    Ok((score::score(&suite, rule, &report.findings), run))
}

fn markdown(options: &JulietOptions, rows: &[(u32, Score, CheckRun)]) -> String {
    let mut text = format!(
        "# caulk on Juliet C\n\nCases in C for Linux{}, {} jobs. A bad function is found when a finding of the right \
         rule touches it; a good one is flagged when one lies in it.\n\n\
         | weakness | cases | bad found | good flagged | findings of other rules | units failed | seconds | peak MiB |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        if options.every > 1 { format!(", every {}th", options.every) } else { String::new() },
        options.common.jobs,
    );
    for (cwe, score, run) in rows {
        table::line(
            &mut text,
            &[
                format!("CWE-{cwe}"),
                score.bad().to_string(),
                format!("{} ({})", table::percent(score.found(), score.bad()), score.found()),
                format!("{} ({} of {})", table::percent(score.flagged(), score.good()), score.flagged(), score.good()),
                score.other_rules.to_string(),
                run.units_failed.to_string(),
                format!("{:.1}", run.cost.wall.as_secs_f64()),
                (run.cost.peak_kib / 1024).to_string(),
            ],
        );
    }
    for (cwe, score, _) in rows {
        list(&mut text, &format!("CWE-{cwe}: missed, by flow variant"), &score.missed_by_variant());
        list(&mut text, &format!("CWE-{cwe}: good flagged, by flow variant"), &score.flagged_by_variant());
    }
    text
}

fn list(text: &mut String, title: &str, groups: &[(String, Vec<String>)]) {
    if groups.is_empty() {
        return;
    }
    text.push_str(&format!("\n## {title}\n\n"));
    for (variant, names) in groups {
        let first = names.first().map_or("", String::as_str);
        text.push_str(&format!("- {variant}: {} (`{first}`)\n", names.len()));
    }
}

fn json(rows: &[(u32, Score, CheckRun)]) -> Value {
    rows.iter()
        .map(|(cwe, score, run)| {
            json!({
                "cwe": cwe, "bad": score.bad(), "found": score.found(), "good": score.good(),
                "flagged": score.flagged(), "other_rules": score.other_rules,
                "missed": score.missed(), "good_flagged": score.flagged_names(), "elsewhere": score.elsewhere,
                "units_failed": run.units_failed, "wall_s": run.cost.wall.as_secs_f64(),
                "cpu_s": run.cost.cpu.as_secs_f64(), "peak_kib": run.cost.peak_kib,
            })
        })
        .collect()
}
