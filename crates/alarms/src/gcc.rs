//! gcc's `-fdiagnostics-format=json` with `-fanalyzer`: an array of diagnostics for each unit.

use serde_json::Value;

use crate::event::{Event, tracks};
use crate::words::{kind, kind_of_cwe};
use crate::{Alarm, Alarms, Frame};

pub fn is_one(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(|one| one.get("kind").is_some() && one.get("message").is_some()))
}

pub fn read(value: &Value) -> Alarms {
    let mut all = Alarms::default();
    for diagnostic in value.as_array().into_iter().flatten() {
        all.add(alarm(diagnostic));
    }
    all
}

fn alarm(diagnostic: &Value) -> Option<Alarm> {
    let message = diagnostic["message"].as_str().unwrap_or_default();
    let option = diagnostic["option"].as_str().unwrap_or_default();
    let cwe = diagnostic["metadata"]["cwe"].as_u64();
    let kind = kind(option).or_else(|| cwe.and_then(kind_of_cwe)).or_else(|| kind(message))?;
    let events: Vec<Event> = diagnostic["path"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|event| Event {
            text: event["description"].as_str().unwrap_or_default().to_owned(),
            frame: frame(&event["location"], event["function"].as_str()),
            depth: event["depth"].as_i64().unwrap_or(0),
        })
        .collect();
    let function = events.last().map(|event| event.frame.function.clone());
    let place = frame(&diagnostic["locations"][0]["caret"], function.as_deref());
    Some(Alarm {
        tool: "gcc".into(),
        kind,
        message: message.to_owned(),
        observed: false,
        tracks: tracks(Some(place), &events),
    })
}

fn frame(place: &Value, function: Option<&str>) -> Frame {
    let number = |key: &str| place[key].as_u64().and_then(|number| u32::try_from(number).ok());
    Frame {
        file: place["file"].as_str().unwrap_or_default().to_owned(),
        line: number("line").unwrap_or(0),
        column: number("byte-column").or_else(|| number("column")).unwrap_or(0),
        function: function.unwrap_or_default().to_owned(),
    }
}
