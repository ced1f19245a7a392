//! Valgrind's memcheck: its text, and its XML.

use roxmltree::Node;

use crate::{Alarm, Alarms, Frame, Kind, Role, Track};

/// What is said, and the stack below it.
type Part = (String, Vec<Frame>);

pub fn is_text(text: &str) -> bool {
    text.lines().any(|line| {
        said(line).is_some_and(|said| {
            said.contains("Memcheck") || said.contains("in loss record") || said.starts_with("Invalid ")
        })
    })
}

/// What stands behind `==123== `.
fn said(line: &str) -> Option<&str> {
    let rest = &line[line.find("==")? + 2..];
    let (number, rest) = rest.split_once("==")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

pub fn read_text(text: &str) -> Alarms {
    let mut all = Alarms::default();
    let mut open: Option<(String, Vec<Part>)> = None;
    for said in text.lines().filter_map(said) {
        if let Some(frame) = said.trim_start().strip_prefix("at ").or_else(|| said.trim_start().strip_prefix("by ")) {
            if let (Some((_, parts)), Some(frame)) = (&mut open, text_frame(frame))
                && let Some(part) = parts.last_mut()
            {
                part.1.push(frame);
            }
            continue;
        }
        // An error's first line stands at the margin; what is said of its block is indented.
        if said.starts_with(' ') && !said.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            if let Some((_, parts)) = &mut open {
                parts.push((said.trim().to_owned(), Vec::new()));
            }
            continue;
        }
        finish(&mut all, open.take());
        let what = said.trim();
        if !what.is_empty() {
            open = Some((what.to_owned(), vec![(what.to_owned(), Vec::new())]));
        }
    }
    finish(&mut all, open.take());
    all
}

/// `0x1091B0: must_alloc (notes.c:7)`; `None` where there is no place in a source file.
fn text_frame(text: &str) -> Option<Frame> {
    let (function, place) = text.split_once(": ")?.1.rsplit_once(" (")?;
    let (file, line) = place.strip_suffix(')')?.rsplit_once(':')?;
    Some(Frame { file: file.to_owned(), line: line.parse().ok()?, column: 0, function: function.to_owned() })
}

fn finish(all: &mut Alarms, open: Option<(String, Vec<Part>)>) {
    let Some((what, parts)) = open else { return };
    // Titles and sums have no stack.
    if parts.iter().all(|(_, frames)| frames.is_empty()) {
        return;
    }
    all.add(kind(&what, &parts).map(|kind| alarm(kind, what, parts)));
}

fn alarm(kind: Kind, message: String, parts: Vec<Part>) -> Alarm {
    let leaks = matches!(kind, Kind::Leak | Kind::ResourceLeak | Kind::Reachable);
    let role = |said: &str| match said {
        _ if said.contains("free'd") => Role::Release,
        _ if said.contains("alloc'd") => Role::Allocation,
        _ if leaks => Role::Allocation,
        _ => Role::Error,
    };
    let tracks = parts
        .into_iter()
        .filter(|(_, frames)| !frames.is_empty())
        .map(|(said, frames)| Track { role: role(&said), frames })
        .collect();
    Alarm { tool: "Valgrind".into(), kind, message, observed: true, tracks }
}

fn kind(what: &str, parts: &[Part]) -> Option<Kind> {
    let freed = parts.iter().any(|(said, _)| said.contains("free'd"));
    if what.contains("still reachable") || what.contains("StillReachable") {
        Some(Kind::Reachable)
    } else if what.contains("Open file descriptor") || what.contains("FdNotClosed") {
        Some(Kind::ResourceLeak)
    } else if what.contains(" lost") || what.contains("Lost") {
        Some(Kind::Leak)
    } else if what.contains("Mismatched free") || what.contains("MismatchedFree") {
        Some(Kind::Mismatched)
    } else if what.starts_with("Invalid free") || what.starts_with("InvalidFree") {
        Some(if freed { Kind::DoubleFree } else { Kind::InvalidFree })
    } else if freed && what.starts_with("Invalid") {
        Some(Kind::UseAfterFree)
    } else {
        None
    }
}

pub fn read_xml(root: Node<'_, '_>) -> Alarms {
    let mut all = Alarms::default();
    for error in root.children().filter(|node| node.has_tag_name("error")) {
        let text = |name: &str| child(error, name).and_then(|node| node.text()).unwrap_or_default();
        let described = child(error, "xwhat").and_then(|node| child(node, "text")).and_then(|node| node.text());
        let what = described.unwrap_or_else(|| text("what")).to_owned();
        let mut parts: Vec<Part> = vec![(what.clone(), Vec::new())];
        for node in error.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "auxwhat" => parts.push((node.text().unwrap_or_default().to_owned(), Vec::new())),
                "stack" => {
                    if let Some(part) = parts.last_mut() {
                        part.1.extend(node.children().filter(|node| node.has_tag_name("frame")).filter_map(xml_frame));
                    }
                }
                _ => {}
            }
        }
        let kind = kind(text("kind"), &parts).or_else(|| kind(&what, &parts));
        all.add(kind.map(|kind| alarm(kind, what, parts)));
    }
    all
}

fn xml_frame(frame: Node<'_, '_>) -> Option<Frame> {
    let text = |name: &str| child(frame, name).and_then(|node| node.text());
    let file = text("file")?;
    let file = text("dir").map_or_else(|| file.to_owned(), |dir| format!("{dir}/{file}"));
    let line = text("line")?.trim().parse().ok()?;
    Some(Frame { file, line, column: 0, function: text("fn").unwrap_or_default().to_owned() })
}

fn child<'a, 'i: 'a>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(name))
}
