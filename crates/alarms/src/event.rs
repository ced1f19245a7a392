//! Paths of events, as the static tools draw them, become tracks.

use crate::words::role;
use crate::{Frame, Role, Track};

pub struct Event {
    pub text: String,
    pub frame: Frame,
    /// How many calls deep; the same for all where the tool does not say.
    pub depth: i64,
}

/// The tool's own place first, then where the path says that something was allocated or released.
pub fn tracks(place: Option<Frame>, events: &[Event]) -> Vec<Track> {
    let mut all = Vec::new();
    if let Some(place) = place.filter(|place| place.line > 0) {
        all.push(Track { role: Role::Error, frames: vec![place] });
    }
    for (at, event) in events.iter().enumerate() {
        if let Some(role) = role(&event.text).filter(|_| event.frame.line > 0) {
            let mut frames = vec![event.frame.clone()];
            frames.extend(callers(&events[..=at]));
            all.push(Track { role, frames });
        }
    }
    all
}

/// Where the calls stand that led to the last event, innermost first.
fn callers(events: &[Event]) -> Vec<Frame> {
    let Some((last, before)) = events.split_last() else { return Vec::new() };
    let told = before.iter().any(|event| event.depth != last.depth);
    let mut depth = last.depth;
    let mut found = Vec::new();
    for event in before.iter().rev() {
        let calls = event.text.to_ascii_lowercase().starts_with("calling");
        if (told && event.depth < depth) || (!told && calls) {
            depth = event.depth;
            found.push(event.frame.clone());
        }
    }
    found
}
