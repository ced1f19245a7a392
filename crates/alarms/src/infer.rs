//! Infer's `report.json`: an array of issues, each with its trace.

use serde_json::Value;

use crate::event::{Event, tracks};
use crate::words::kind;
use crate::{Alarm, Alarms, Frame};

pub fn is_one(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(|one| one.get("bug_type").is_some()))
}

pub fn read(value: &Value) -> Alarms {
    let mut all = Alarms::default();
    for issue in value.as_array().into_iter().flatten() {
        all.add(alarm(issue));
    }
    all
}

fn alarm(issue: &Value) -> Option<Alarm> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let number = |value: &Value, key: &str| value[key].as_u64().and_then(|number| u32::try_from(number).ok());
    let kind = kind(&text(issue, "bug_type"))?;
    let events: Vec<Event> = issue["bug_trace"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|event| Event {
            text: text(event, "description"),
            frame: Frame {
                file: text(event, "filename"),
                line: number(event, "line_number").unwrap_or(0),
                column: number(event, "column_number").unwrap_or(0),
                function: String::new(),
            },
            depth: event["level"].as_i64().unwrap_or(0),
        })
        .collect();
    let place = Frame {
        file: text(issue, "file"),
        line: number(issue, "line").unwrap_or(0),
        column: number(issue, "column").unwrap_or(0),
        function: text(issue, "procedure"),
    };
    let tracks = tracks(Some(place), &events);
    Some(Alarm { tool: "Infer".into(), kind, message: text(issue, "qualifier"), observed: false, tracks })
}
