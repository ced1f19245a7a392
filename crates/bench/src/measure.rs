//! Runs processes and says what they cost.
//!
//! Wall time is read off the clock, CPU time off `/proc/self/stat` (the children
//! we waited for, and theirs), peak memory off the child's `VmHWM` while it runs.
//!
//! # Known imprecision
//! - Peak memory is that of the process itself, not of compilers it starts.
//!   Memory taken in its last hundredth of a second can be missed.
//! - CPU time is exact only while nothing else is measured beside it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What one process, or one batch of processes, cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub wall: Duration,
    pub cpu: Duration,
    pub peak_kib: u64,
}

/// How one process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exit(i32),
    /// By a signal.
    Killed,
    TimedOut,
}

/// Runs one process to its end, or to the end of our patience.
pub(crate) fn run(command: &mut Command, timeout: Duration) -> Result<(Cost, End)> {
    let cpu = children_cpu();
    let start = Instant::now();
    let (peak_kib, end) = watch(command, timeout)?;
    let wall = start.elapsed();
    Ok((Cost { wall, cpu: children_cpu().saturating_sub(cpu), peak_kib }, end))
}

/// Runs one process per item, `jobs` at a time. The ends come in the order of the items.
pub(crate) fn batch<T: Sync>(
    items: &[T],
    jobs: usize,
    timeout: Duration,
    command: impl Fn(usize, &T) -> Result<Command> + Sync,
) -> Result<(Cost, Vec<(End, Duration)>)> {
    let cpu = children_cpu();
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let work = || -> Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(()) };
            let begun = Instant::now();
            let (peak, end) = watch(&mut command(index, item)?, timeout)?;
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            done.push((index, peak, end, begun.elapsed()));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the benchmark failed")))
        })
    })?;
    let wall = start.elapsed();
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, ..)| *index);
    let peak_kib = done.iter().map(|(_, peak, ..)| *peak).max().unwrap_or(0);
    let cost = Cost { wall, cpu: children_cpu().saturating_sub(cpu), peak_kib };
    Ok((cost, done.into_iter().map(|(_, _, end, time)| (end, time)).collect()))
}

/// Waits in short naps: a blocking wait could neither sample memory nor give up.
fn watch(command: &mut Command, timeout: Duration) -> Result<(u64, End)> {
    const NAP: Duration = Duration::from_micros(500);
    const NAPS_PER_SAMPLE: u32 = 20;
    // A group of its own: a compiler driver that is ended leaves the compiler behind it to run on.
    let mut child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    let start = Instant::now();
    let mut peak = 0;
    let mut naps = 0_u32;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((peak, status.code().map_or(End::Killed, End::Exit)));
        }
        if naps.is_multiple_of(NAPS_PER_SAMPLE) {
            peak = peak.max(peak_kib(&child));
            if start.elapsed() > timeout {
                Command::new("sh").args(["-c", &format!("kill -KILL -{}", child.id())]).status()?;
                child.wait()?;
                return Ok((peak, End::TimedOut));
            }
        }
        naps = naps.wrapping_add(1);
        std::thread::sleep(NAP);
    }
}

fn peak_kib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(PathBuf::from(format!("/proc/{}/status", child.id()))).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// User and system time of all children waited for so far.
fn children_cpu() -> Duration {
    // USER_HZ has been 100 on every Linux that runs clang 19.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold spaces; cutime and cstime are fields 16 and 17, the 14th and 15th after it.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u32 = after.split_whitespace().skip(13).take(2).filter_map(|number| number.parse::<u32>().ok()).sum();
    TICK * ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_command_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {0}.new && mv {0}.new {0}; wait", file.display());
        // As soon as the file is there, or after a time that no machine needs.
        let mut patience = Duration::from_millis(100);
        let pid = loop {
            assert_eq!(run(&mut shell(&script), patience).unwrap().1, End::TimedOut);
            if let Ok(pid) = std::fs::read_to_string(&file) {
                break pid;
            }
            patience *= 2;
            assert!(patience < Duration::from_secs(120));
        };
        // Ended, and perhaps not yet waited for by whoever has inherited it.
        let is_running = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ") && !state.contains(") X ")
        };
        for _ in 0..1000 {
            if !is_running() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{pid} runs on");
    }

    #[test]
    fn ends_are_told_apart() {
        let patience = Duration::from_secs(60);
        assert_eq!(run(&mut shell("exit 3"), patience).unwrap().1, End::Exit(3));
        assert_eq!(run(&mut shell("kill -9 $$"), patience).unwrap().1, End::Killed);
        assert_eq!(run(&mut shell("exec sleep 60"), Duration::ZERO).unwrap().1, End::TimedOut);
        assert!(run(&mut Command::new("./no-such-program"), patience).is_err());
    }

    #[test]
    fn a_batch_keeps_the_order_of_its_items() {
        let items = [1, 0, 7, 0];
        let (_, ends) =
            batch(&items, 3, Duration::from_secs(60), |_, code| Ok(shell(&format!("exit {code}")))).unwrap();
        let codes: Vec<End> = ends.into_iter().map(|(end, _)| end).collect();
        assert_eq!(codes, items.map(End::Exit));
    }
}
