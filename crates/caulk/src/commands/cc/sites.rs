//! Which allocation sites to guard: leaks that no patch repairs, or what the user names.

use std::path::Path;

use anyhow::{Context, Result, bail};
use caulk_alarms::{Kind, Role};
use caulk_findings::{Finding, Rule};
use caulk_instrument::{Record, Site, Wanted};
use serde_json::json;

use crate::args::GuardArgs;
use crate::commands::fix;

pub(super) fn choose(args: &GuardArgs, records: &[&Record]) -> Result<Wanted> {
    if args.guard_everything {
        return Ok(Wanted::Everything);
    }
    let mut sites = Vec::new();
    for file in &args.sites {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        sites.extend(listed(&text).with_context(|| format!("cannot use {} as a list of sites", file.display()))?);
    }
    for file in &args.from {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let alarms = caulk_alarms::read(&String::from_utf8_lossy(&bytes))
            .with_context(|| format!("cannot read alarms from {}", file.display()))?;
        sites.extend(alarmed(&alarms.alarms));
    }
    if args.sites.is_empty() && args.from.is_empty() {
        sites.extend(found(records, args.all_leaks)?);
    }
    sites.sort();
    sites.dedup();
    Ok(Wanted::Sites(sites))
}

/// `src/a.c:12` or `src/a.c:12:5` on each line; `#` begins a comment.
fn listed(text: &str) -> Result<Vec<Site>> {
    let mut sites = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut words = line.rsplitn(3, ':').collect::<Vec<_>>();
        words.reverse();
        let site = match words[..] {
            [file, line, column] if line.parse::<u32>().is_ok() => {
                Some((file.to_owned(), line.parse().ok(), column.parse().ok()))
            }
            [file, line] => Some((file.to_owned(), line.parse().ok(), Some(0))),
            [first, second, line] => Some((format!("{first}:{second}"), line.parse().ok(), Some(0))),
            _ => None,
        };
        let Some((file, Some(line), Some(column))) = site else {
            bail!("line {}: expected FILE:LINE or FILE:LINE:COLUMN", number + 1);
        };
        sites.push(Site { file, line, column });
    }
    Ok(sites)
}

/// Every place that an alarm about a leak names as an allocation, the callers' included: which of them owned the block is
/// not for the tool to say.
fn alarmed(alarms: &[caulk_alarms::Alarm]) -> Vec<Site> {
    let mut sites = Vec::new();
    for alarm in alarms.iter().filter(|alarm| matches!(alarm.kind, Kind::Leak | Kind::ResourceLeak)) {
        let allocations: Vec<_> = alarm.tracks.iter().filter(|track| track.role == Role::Allocation).collect();
        let tracks = if allocations.is_empty() { alarm.tracks.iter().collect() } else { allocations };
        for frame in tracks.iter().flat_map(|track| &track.frames) {
            sites.push(Site { file: frame.file.clone(), line: frame.line, column: frame.column });
        }
    }
    sites
}

/// What `check` reports of this program; without `all`, only what `fix` has no patch for.
fn found(records: &[&Record], all: bool) -> Result<Vec<Site>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let commands: Vec<_> = records
        .iter()
        .filter(|record| Path::new(&record.file).is_file())
        .map(|record| json!({"directory": record.directory, "file": record.file, "arguments": record.arguments}))
        .collect();
    if commands.is_empty() {
        bail!("none of its sources is there");
    }
    let database = folder.path().join("compile_commands.json");
    std::fs::write(&database, serde_json::to_vec(&commands)?)?;
    let findings = fix::unrepaired(&database, all)?;
    Ok(findings.iter().filter(|finding| is_leak(finding)).map(site).collect())
}

fn is_leak(finding: &Finding) -> bool {
    matches!(finding.rule, Rule::MemoryLeak | Rule::ResourceLeak)
}

fn site(finding: &Finding) -> Site {
    Site { file: finding.source.file.clone(), line: finding.source.line, column: finding.source.column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_sites_is_read_with_comments_and_columns() {
        let sites = listed("# all\n src/a.c:12:5 # one\n\nb.c:7\n").unwrap();
        assert_eq!(sites[0], Site { file: "src/a.c".into(), line: 12, column: 5 });
        assert_eq!(sites[1], Site { file: "b.c".into(), line: 7, column: 0 });
        assert!(listed("a.c\n").is_err());
        assert!(listed("a.c:x\n").is_err());
    }
}
