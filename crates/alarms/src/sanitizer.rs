//! The text of AddressSanitizer and LeakSanitizer, wherever it stands in a log.

use crate::words::kind;
use crate::{Alarm, Alarms, Frame, Kind, Role, Track};

const TOOLS: [&str; 2] = ["AddressSanitizer", "LeakSanitizer"];

pub fn is_one(text: &str) -> bool {
    TOOLS.iter().any(|tool| text.contains(&format!("ERROR: {tool}: ")))
}

pub fn read(text: &str) -> Alarms {
    let mut all = Alarms::default();
    let mut open: Option<Alarm> = None;
    let mut tool = "";
    for line in text.lines() {
        if let Some((found, rest)) = header(line) {
            tool = found;
            close(&mut all, &mut open);
            if !rest.contains("detected memory leaks") {
                let role = Track { role: Role::Error, frames: Vec::new() };
                match kind(rest) {
                    Some(kind) => open = Some(alarm(tool, kind, rest, role)),
                    None => all.passed_over += 1,
                }
            }
        } else if let Some(message) = leak(line) {
            close(&mut all, &mut open);
            open = Some(alarm(tool, Kind::Leak, message, Track { role: Role::Allocation, frames: Vec::new() }));
        } else if let Some(alarm) = &mut open {
            let role = if line.contains("freed by thread") {
                Some(Role::Release)
            } else if line.contains("allocated by thread") {
                Some(Role::Allocation)
            } else {
                None
            };
            if let Some(role) = role {
                alarm.tracks.push(Track { role, frames: Vec::new() });
            } else if line.contains("SUMMARY: ") {
                close(&mut all, &mut open);
            } else if let (Some(frame), Some(track)) = (frame(line), alarm.tracks.last_mut()) {
                track.frames.push(frame);
            }
        }
    }
    close(&mut all, &mut open);
    all
}

fn alarm(tool: &str, kind: Kind, message: &str, track: Track) -> Alarm {
    Alarm { tool: tool.to_owned(), kind, message: message.trim().to_owned(), observed: true, tracks: vec![track] }
}

fn close(all: &mut Alarms, open: &mut Option<Alarm>) {
    if let Some(mut alarm) = open.take() {
        alarm.tracks.retain(|track| !track.frames.is_empty());
        all.add(Some(alarm));
    }
}

fn header(line: &str) -> Option<(&'static str, &str)> {
    let rest = line.split_once("ERROR: ")?.1;
    TOOLS.iter().find_map(|tool| Some((*tool, rest.strip_prefix(tool)?.strip_prefix(": ")?)))
}

/// `Direct leak of 14 byte(s) in 1 object(s) allocated from:`
fn leak(line: &str) -> Option<&str> {
    let start = line.find("Direct leak of ").or_else(|| line.find("Indirect leak of "))?;
    line[start..].strip_suffix(" allocated from:").or(Some(&line[start..]))
}

/// `    #1 0x55ae77389e04 in must_alloc src/notes.c:7:19`; `None` where there is no place in a source file.
fn frame(line: &str) -> Option<Frame> {
    let rest = line.trim_start().strip_prefix('#')?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let rest = if rest.starts_with("0x") { rest.split_once(" in ")?.1 } else { rest.strip_prefix("in ")? };
    let (function, place) = rest.split_once(' ')?;
    if place.starts_with('(') {
        return None;
    }
    let (file, line, column) = position(place)?;
    Some(Frame { file: file.to_owned(), line, column, function: function.to_owned() })
}

/// `dir/a.c:7:19` or `dir/a.c:7`.
fn position(place: &str) -> Option<(&str, u32, u32)> {
    let (rest, last) = place.trim_end().rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    match rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => Some((file, line, last)),
        None => Some((rest, last, 0)),
    }
}
