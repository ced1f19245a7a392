//! The report of a program that `caulk cc` made: which of its guarded sites lost blocks, and how much.

use serde_json::Value;

use crate::{Alarm, Alarms, Frame, Kind, Role, Track};

pub fn is_one(value: &Value) -> bool {
    value["tool"] == "caulk-runtime" && value["sites"].is_array()
}

pub fn read(value: &Value) -> Alarms {
    let mut all = Alarms::default();
    for site in value["sites"].as_array().into_iter().flatten() {
        all.add(alarm(site));
    }
    all
}

/// A site that lost nothing is no alarm.
fn alarm(site: &Value) -> Option<Alarm> {
    let text = |key: &str| site[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| site[key].as_u64().unwrap_or(0);
    let (blocks, bytes) = (number("blocks"), number("bytes"));
    if blocks == 0 {
        return None;
    }
    let frame = Frame {
        file: text("file"),
        line: u32::try_from(number("line")).ok()?,
        column: u32::try_from(number("column")).unwrap_or(0),
        function: text("function"),
    };
    let kind = if site["family"] == "memory" { Kind::Leak } else { Kind::ResourceLeak };
    let message = format!("lost {blocks} times, {bytes} bytes in all");
    let tracks = vec![Track { role: Role::Allocation, frames: vec![frame] }];
    Some(Alarm { tool: "caulk's runtime".into(), kind, message, observed: true, tracks })
}
