//! SARIF 2.1.0, as gcc, clang, caulk and others write it.

use serde_json::Value;

use crate::event::{Event, tracks};
use crate::words::{kind, kind_of_cwe};
use crate::{Alarm, AlarmError, Alarms, Frame};

pub fn read(value: &Value) -> Result<Alarms, AlarmError> {
    let runs = value["runs"].as_array().ok_or_else(|| AlarmError::Shape("SARIF whose `runs` is not a list".into()))?;
    let mut all = Alarms::default();
    for run in runs {
        for result in run["results"].as_array().into_iter().flatten() {
            let silent = matches!(result["kind"].as_str(), Some("pass" | "notApplicable" | "informational"));
            if !silent {
                all.add(alarm(run, result));
            }
        }
    }
    Ok(all)
}

fn alarm(run: &Value, result: &Value) -> Option<Alarm> {
    let driver = &run["tool"]["driver"];
    let tool = driver["name"].as_str().unwrap_or("SARIF");
    let rule = result["ruleId"].as_str().or_else(|| result["rule"]["id"].as_str()).unwrap_or_default();
    let message = result["message"]["text"].as_str().unwrap_or_default();
    let kind = kind(rule).or_else(|| cwe(driver, result, rule)).or_else(|| kind(message))?;
    let flow = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array();
    let mut events: Vec<Event> = Vec::new();
    for step in flow.into_iter().flatten() {
        events.push(Event {
            text: step["location"]["message"]["text"].as_str().unwrap_or_default().to_owned(),
            frame: frame(run, &step["location"]),
            depth: step["nestingLevel"].as_i64().unwrap_or(0),
        });
    }
    for related in result["relatedLocations"].as_array().into_iter().flatten() {
        events.push(Event {
            text: related["message"]["text"].as_str().unwrap_or_default().to_owned(),
            frame: frame(run, related),
            depth: 0,
        });
    }
    let place = frame(run, &result["locations"][0]);
    let tracks = tracks(Some(place), &events);
    Some(Alarm { tool: tool.to_owned(), kind, message: message.to_owned(), observed: false, tracks })
}

/// gcc names the weakness as a taxon of the result, others in the rule's tags.
fn cwe(driver: &Value, result: &Value, rule: &str) -> Option<crate::Kind> {
    let taxa = result["taxa"].as_array().into_iter().flatten();
    let mut named = taxa.filter_map(|taxon| taxon["id"].as_str()?.trim_start_matches("CWE-").parse().ok());
    if let Some(kind) = named.find_map(kind_of_cwe) {
        return Some(kind);
    }
    let rules = driver["rules"].as_array()?;
    let rule = rules.iter().find(|one| one["id"].as_str() == Some(rule))?;
    let tags = rule["properties"]["tags"].as_array()?;
    let number = |tag: &Value| tag.as_str()?.to_ascii_lowercase().rsplit_once("cwe-")?.1.parse().ok();
    tags.iter().filter_map(number).find_map(kind_of_cwe)
}

fn frame(run: &Value, location: &Value) -> Frame {
    let place = &location["physicalLocation"];
    let artifact = &place["artifactLocation"];
    let number = |key: &str| place["region"][key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let listed = || {
        let index = usize::try_from(artifact["index"].as_u64()?).ok()?;
        run["artifacts"][index]["location"]["uri"].as_str()
    };
    let uri = artifact["uri"].as_str().or_else(listed).unwrap_or_default();
    let logical = &location["logicalLocations"][0];
    let function = logical["name"].as_str().or_else(|| logical["fullyQualifiedName"].as_str()).unwrap_or_default();
    Frame { file: path(uri), line: number("startLine"), column: number("startColumn"), function: function.to_owned() }
}

/// `file:///src/a%20b.c` as a path.
fn path(uri: &str) -> String {
    let bare = uri.strip_prefix("file://").unwrap_or(uri);
    let bare = bare.strip_prefix("localhost").unwrap_or(bare);
    let mut bytes = Vec::with_capacity(bare.len());
    let mut rest = bare.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'%')
            .then(|| tail.get(..2).and_then(|two| std::str::from_utf8(two).ok()))
            .flatten()
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
