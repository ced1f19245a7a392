//! The side that survives: starts children, watches them, keeps what killed them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::child::{COUNT, INPUT};
use crate::targets::Target;

/// What came of one target.
pub(crate) struct Outcome {
    pub(crate) inputs: u64,
    /// What happened, and the input that did it.
    pub(crate) bad: Vec<(String, PathBuf)>,
}

/// One input takes milliseconds; a child that shows no progress for this long hangs.
const HANG: Duration = Duration::from_secs(20);
/// Enough to work with.
const MAX_BAD: usize = 10;

pub(crate) fn run(target: Target, time: Duration, seed: u64, out: &Path) -> Result<Outcome> {
    let end = Instant::now() + time;
    let mut outcome = Outcome { inputs: 0, bad: Vec::new() };
    let mut seed = seed;
    while Instant::now() < end && outcome.bad.len() < MAX_BAD {
        let folder = tempfile::tempdir()?;
        let mut child = start(target, folder.path(), seed)?;
        let death = watch(&mut child, folder.path(), end)?;
        // Not only the one that was waited for: it must not outlive this run.
        let _ = child.kill();
        let _ = child.wait();
        let count = progress(folder.path());
        outcome.inputs += count;
        if let Some(reason) = death {
            if count == 0 {
                bail!("the {} target dies on its first, sound input: {reason}", target.name());
            }
            outcome.bad.push((reason, keep(target, folder.path(), seed, count, out)?));
        }
        // The next child makes other inputs.
        seed = seed.wrapping_add(0x1_0000);
    }
    Ok(outcome)
}

fn start(target: Target, folder: &Path, seed: u64) -> Result<Child> {
    let program = std::env::current_exe().context("cannot find this program")?;
    Command::new(program)
        .args(["--seed", &seed.to_string(), "--child", target.name()])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the child")
}

/// How the child died, or nothing if the time was up first.
fn watch(child: &mut Child, folder: &Path, end: Instant) -> Result<Option<String>> {
    let (mut last, mut since) = (progress(folder), Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(describe(status)));
        }
        let now = progress(folder);
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > HANG {
            return Ok(Some(format!("no answer in {} s", HANG.as_secs())));
        }
        if Instant::now() >= end && since.elapsed() < HANG && now > 0 {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn progress(folder: &Path) -> u64 {
    std::fs::read_to_string(folder.join(COUNT)).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("ended with {code}"),
        (None, None) => "ended".to_owned(),
    }
}

fn keep(target: Target, folder: &Path, seed: u64, count: u64, out: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let path = out.join(format!("{}-{seed}-{count}", target.name()));
    std::fs::copy(folder.join(INPUT), &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
