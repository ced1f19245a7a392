//! The property lists of clang's analyzer: files, and diagnostics with their paths.

use roxmltree::Node;

use crate::event::{Event, tracks};
use crate::words::kind;
use crate::{Alarm, AlarmError, Alarms, Frame};

pub fn read(root: Node<'_, '_>) -> Result<Alarms, AlarmError> {
    let top = root.children().find(Node::is_element).ok_or_else(|| AlarmError::Shape("the plist is empty".into()))?;
    let missing = |what: &str| AlarmError::Shape(format!("a plist without `{what}` is not one of clang's analyzer"));
    let files: Vec<&str> =
        items(get(top, "files").ok_or_else(|| missing("files"))?).map(|file| file.text().unwrap_or_default()).collect();
    let mut all = Alarms::default();
    for diagnostic in items(get(top, "diagnostics").ok_or_else(|| missing("diagnostics"))?) {
        all.add(alarm(diagnostic, &files));
    }
    Ok(all)
}

fn alarm(diagnostic: Node<'_, '_>, files: &[&str]) -> Option<Alarm> {
    let text = |key: &str| get(diagnostic, key).and_then(|node| node.text()).unwrap_or_default();
    let kind = kind(text("description")).or_else(|| kind(text("type"))).or_else(|| kind(text("check_name")))?;
    let mut events = Vec::new();
    for piece in get(diagnostic, "path").into_iter().flat_map(items) {
        if get(piece, "kind").and_then(|node| node.text()) != Some("event") {
            continue;
        }
        let Some(place) = get(piece, "location") else { continue };
        events.push(Event {
            text: get(piece, "message").and_then(|node| node.text()).unwrap_or_default().to_owned(),
            frame: frame(place, files),
            depth: number(piece, "depth").map_or(0, i64::from),
        });
    }
    let mut place = get(diagnostic, "location").map(|place| frame(place, files));
    if let Some(place) = &mut place {
        place.function = text("issue_context").to_owned();
    }
    Some(Alarm {
        tool: "clang".into(),
        kind,
        message: text("description").to_owned(),
        observed: false,
        tracks: tracks(place, &events),
    })
}

fn frame(place: Node<'_, '_>, files: &[&str]) -> Frame {
    let file = number(place, "file").and_then(|file| files.get(file as usize));
    Frame {
        file: file.copied().unwrap_or_default().to_owned(),
        line: number(place, "line").unwrap_or(0),
        column: number(place, "col").unwrap_or(0),
        function: String::new(),
    }
}

fn number(dict: Node<'_, '_>, key: &str) -> Option<u32> {
    get(dict, key)?.text()?.trim().parse().ok()
}

fn items<'a, 'i: 'a>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

/// The value behind `<key>name</key>`.
fn get<'a, 'i: 'a>(dict: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    let mut children = items(dict);
    children.find(|node| node.has_tag_name("key") && node.text() == Some(name))?;
    children.next()
}
