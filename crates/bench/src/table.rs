//! The tables, for people and as JSON.
//!
//! Each number that has a target is printed as a ratio to clang's bitcode time.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::args::Common;
use crate::projects::{CheckRun, ProjectRun};

/// Writes `bench.md` and `bench.json`.
pub(crate) fn write(common: &Common, repeats: usize, runs: &[ProjectRun]) -> Result<()> {
    save(&common.output, &markdown(common, repeats, runs), &json(common, repeats, runs))
}

pub(crate) fn save(path: &Path, markdown: &str, json: &Value) -> Result<()> {
    std::fs::write(path, markdown).with_context(|| format!("cannot write {}", path.display()))?;
    let beside = path.with_extension("json");
    std::fs::write(&beside, serde_json::to_vec_pretty(json)?)
        .with_context(|| format!("cannot write {}", beside.display()))
}

pub(crate) fn one_line(run: &ProjectRun) -> String {
    format!(
        "  {} units, clang {:.1} s, cold {:.1} s ({}), warm {:.2} s ({}), {} MiB, {} findings",
        run.units,
        run.clang.wall.as_secs_f64(),
        run.cold.cost.wall.as_secs_f64(),
        ratio(run.cold.cost.wall, run.clang.wall),
        run.warm.cost.wall.as_secs_f64(),
        ratio(run.warm.cost.wall, run.clang.wall),
        run.cold.cost.peak_kib / 1024,
        findings(&run.cold),
    )
}

pub(crate) fn markdown(common: &Common, repeats: usize, runs: &[ProjectRun]) -> String {
    let mut text = format!(
        "# caulk against clang and its peers\n\n{} jobs, best of {repeats}; wall seconds, CPU seconds in brackets. \
         × is the ratio to clang's wall time for the same units.\n\n",
        common.jobs
    );
    speed(&mut text, runs);
    front_end(&mut text, runs);
    edits(&mut text, runs);
    looked_at(&mut text, runs);
    peers(&mut text, runs);
    text
}

fn speed(text: &mut String, runs: &[ProjectRun]) {
    text.push_str(
        "## Speed and size\n\n\
         | project | KLoC | units | clang -emit-llvm | cold check | × (1.5) | after bitcode × (0.3) | warm | × (0.05) | peak MiB |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for run in runs {
        let clang = run.clang.wall;
        let cold = run.cold.cost.wall;
        line(
            text,
            &[
                run.name.clone(),
                format!("{:.1}", run.lines as f64 / 1000.0),
                run.units.to_string(),
                seconds(run.clang.wall, run.clang.cpu),
                seconds(cold, run.cold.cost.cpu),
                ratio(cold, clang),
                ratio(cold.saturating_sub(clang), clang),
                format!("{:.2}", run.warm.cost.wall.as_secs_f64()),
                ratio(run.warm.cost.wall, clang),
                (run.cold.cost.peak_kib / 1024).to_string(),
            ],
        );
    }
    if runs.len() > 1 {
        let sum = |of: fn(&ProjectRun) -> Duration| runs.iter().map(of).sum::<Duration>();
        let (clang, cold) = (sum(|run| run.clang.wall), sum(|run| run.cold.cost.wall));
        let warm = sum(|run| run.warm.cost.wall);
        line(
            text,
            &[
                "all".to_owned(),
                format!("{:.1}", runs.iter().map(|run| run.lines).sum::<usize>() as f64 / 1000.0),
                runs.iter().map(|run| run.units).sum::<usize>().to_string(),
                seconds(clang, sum(|run| run.clang.cpu)),
                seconds(cold, sum(|run| run.cold.cost.cpu)),
                ratio(cold, clang),
                ratio(cold.saturating_sub(clang), clang),
                format!("{:.2}", warm.as_secs_f64()),
                ratio(warm, clang),
                runs.iter().map(|run| run.cold.cost.peak_kib / 1024).max().unwrap_or(0).to_string(),
            ],
        );
    }
}

/// Reach: at most 15 % beyond clang, which writes bitcode that nobody reads. In CPU seconds: those are the same on a
/// machine that has other things to do.
fn front_end(text: &mut String, runs: &[ProjectRun]) {
    text.push_str(
        "\n## Up to the program in memory\n\n| project | units | failed | functions | clang CPU s | caulk CPU s | \
         × (1.15) | clang s | caulk s | peak MiB |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for run in runs {
        line(
            text,
            &[
                run.name.clone(),
                (run.cold.units + run.cold.units_failed).to_string(),
                run.cold.units_failed.to_string(),
                run.cold.functions.to_string(),
                format!("{:.2}", run.clang.cpu.as_secs_f64()),
                format!("{:.2}", run.front.cpu.as_secs_f64()),
                ratio(run.front.cpu, run.clang.cpu),
                format!("{:.2}", run.clang.wall.as_secs_f64()),
                format!("{:.2}", run.front.wall.as_secs_f64()),
                (run.front.peak_kib / 1024).to_string(),
            ],
        );
    }
}

/// Reach: that file's clang time plus a tenth of the cold analysis.
fn edits(text: &mut String, runs: &[ProjectRun]) {
    if runs.iter().all(|run| run.edited.is_none()) {
        return;
    }
    text.push_str(
        "\n## One file edited\n\n| project | file | its clang time | check after the edit | reach | functions analysed |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    for run in runs {
        let Some(edited) = &run.edited else { continue };
        let analysis = run.cold.cost.wall.saturating_sub(run.clang.wall);
        let file = edited.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        line(
            text,
            &[
                run.name.clone(),
                file,
                format!("{:.2}", edited.clang.as_secs_f64()),
                format!("{:.2}", edited.check.cost.wall.as_secs_f64()),
                format!("{:.2}", (edited.clang + analysis / 10).as_secs_f64()),
                edited.check.analysed.to_string(),
            ],
        );
    }
}

fn looked_at(text: &mut String, runs: &[ProjectRun]) {
    text.push_str(
        "\n## What was looked at\n\n| project | units | failed (clang alone) | functions | allocation sites | \
         decided in stage 1 | SMT queries | findings |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    for run in runs {
        let cold = &run.cold;
        let rules: Vec<String> = cold.findings.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        line(
            text,
            &[
                run.name.clone(),
                cold.units.to_string(),
                format!("{} ({})", cold.units_failed, run.clang_failed),
                cold.functions.to_string(),
                cold.alloc_sites.to_string(),
                percent(cold.decided_in_stage_one, cold.alloc_sites),
                cold.smt_queries.to_string(),
                if rules.is_empty() { "none".to_owned() } else { rules.join(", ") },
            ],
        );
    }
}

fn peers(text: &mut String, runs: &[ProjectRun]) {
    if runs.iter().all(|run| run.peers.is_empty()) {
        return;
    }
    text.push_str(
        "\n## Peers\n\n| project | tool | seconds | × | memory findings | all findings | units failed | out of time |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for run in runs {
        line(
            text,
            &[
                run.name.clone(),
                "caulk check".to_owned(),
                seconds(run.cold.cost.wall, run.cold.cost.cpu),
                ratio(run.cold.cost.wall, run.clang.wall),
                findings(&run.cold).to_string(),
                findings(&run.cold).to_string(),
                run.cold.units_failed.to_string(),
                "0".to_owned(),
            ],
        );
        for peer in &run.peers {
            line(
                text,
                &[
                    String::new(),
                    peer.peer.name().to_owned(),
                    seconds(peer.cost.wall, peer.cost.cpu),
                    ratio(peer.cost.wall, run.clang.wall),
                    peer.memory_findings.to_string(),
                    peer.findings.to_string(),
                    peer.failed.to_string(),
                    peer.timed_out.to_string(),
                ],
            );
        }
    }
}

fn json(common: &Common, repeats: usize, runs: &[ProjectRun]) -> Value {
    let check = |run: &CheckRun| {
        json!({
            "wall_s": run.cost.wall.as_secs_f64(), "cpu_s": run.cost.cpu.as_secs_f64(), "peak_kib": run.cost.peak_kib,
            "exit": format!("{:?}", run.end), "units": run.units, "units_failed": run.units_failed,
            "functions": run.functions, "functions_analysed": run.analysed, "alloc_sites": run.alloc_sites,
            "decided_in_stage_one": run.decided_in_stage_one, "smt_queries": run.smt_queries,
            "phases": run.phases, "findings": run.findings,
        })
    };
    let projects: Vec<Value> = runs
        .iter()
        .map(|run| {
            json!({
                "name": run.name, "units": run.units, "lines": run.lines, "clang_failed": run.clang_failed,
                "clang": {
                    "wall_s": run.clang.wall.as_secs_f64(), "cpu_s": run.clang.cpu.as_secs_f64(),
                    "peak_kib": run.clang.peak_kib,
                },
                "front": {
                    "wall_s": run.front.wall.as_secs_f64(), "cpu_s": run.front.cpu.as_secs_f64(),
                    "peak_kib": run.front.peak_kib,
                },
                "cold": check(&run.cold), "warm": check(&run.warm),
                "edited": run.edited.as_ref().map(|edited| json!({
                    "file": edited.file, "clang_s": edited.clang.as_secs_f64(), "check": check(&edited.check),
                })),
                "peers": run.peers.iter().map(|peer| json!({
                    "tool": peer.peer.name(), "wall_s": peer.cost.wall.as_secs_f64(),
                    "cpu_s": peer.cost.cpu.as_secs_f64(), "peak_kib": peer.cost.peak_kib,
                    "units_failed": peer.failed, "timed_out": peer.timed_out,
                    "findings": peer.findings, "memory_findings": peer.memory_findings,
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "jobs": common.jobs, "runs": repeats, "projects": projects })
}

pub(crate) fn line(text: &mut String, cells: &[String]) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

fn findings(run: &CheckRun) -> usize {
    run.findings.values().sum()
}

fn seconds(wall: Duration, cpu: Duration) -> String {
    format!("{:.2} ({:.2})", wall.as_secs_f64(), cpu.as_secs_f64())
}

fn ratio(part: Duration, whole: Duration) -> String {
    if whole.is_zero() { "–".to_owned() } else { format!("{:.2}", part.as_secs_f64() / whole.as_secs_f64()) }
}
