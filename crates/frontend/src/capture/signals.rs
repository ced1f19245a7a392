//! Lets a build be interrupted without losing its record.

#![expect(unsafe_code, reason = "sets signal handlers, which the standard library cannot")]

use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

const HANGUP: i32 = 1;
const INTERRUPT: i32 = 2;
const QUIT: i32 = 3;
const TERMINATE: i32 = 15;
const DEFAULT_ACTION: usize = 0;

static CHILD: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
    fn kill(process: i32, number: i32) -> i32;
}

/// The terminal sends its signals to the build itself; here they only must not end us. Others are passed on.
extern "C" fn outlive(number: i32) {
    let child = CHILD.load(Ordering::Relaxed);
    if matches!(number, TERMINATE | HANGUP) && child > 0 {
        // SAFETY: `kill` is async-signal-safe and takes no memory.
        unsafe { kill(child, number) };
    }
}

/// Runs a command to its end; signals that would end us reach only the command, so that its record can be kept.
pub fn wait_through(command: &mut Command) -> std::io::Result<ExitStatus> {
    let handler = outlive as extern "C" fn(i32) as usize;
    let numbers = [HANGUP, INTERRUPT, QUIT, TERMINATE];
    // SAFETY: the handler is async-signal-safe; a handler (unlike an ignored signal) is not inherited by the build.
    let before = numbers.map(|number| (number, unsafe { signal(number, handler) }));
    let result = command.spawn().and_then(|mut child| {
        CHILD.store(i32::try_from(child.id()).unwrap_or(0), Ordering::Relaxed);
        child.wait()
    });
    CHILD.store(0, Ordering::Relaxed);
    for (number, old) in before {
        // SAFETY: `old` is what `signal` gave for this number; its error value is replaced by the default action.
        unsafe { signal(number, if old == usize::MAX { DEFAULT_ACTION } else { old }) };
    }
    result
}
