//! Which source to show for a path: one excerpt a function, callees inside
//! their callers.
//!
//! ```text
//! load   6 allocated        ┐ depth 0
//! load   9 passed to append │
//!   append 6 malloc fails     depth 1, below line 9 of load
//! load  11 lost             ┘
//! ```
//!
//! # Invariants
//! - A frame's parent has a smaller depth, so frames form a forest.
//! - Steps without a line belong to no frame.
//!
//! # Known imprecision
//! - Two calls of one function at one depth share a frame, below the first call.

use std::collections::{BTreeMap, BTreeSet};

use caulk_findings::{Graph, Place, Step};

/// One function's part of the path.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub file: &'a str,
    pub function: &'a str,
    pub depth: u32,
    /// Indices of the steps here.
    pub steps: Vec<usize>,
    /// Lines worth showing besides those of the steps.
    pub lines: BTreeSet<u32>,
    /// The calling frame and the line below which this one is shown.
    pub parent: Option<(usize, u32)>,
}

/// The frames of a path, in order of first appearance.
pub fn frames<'a>(steps: &'a [Step], graph: Option<&'a Graph>, ends: [&'a Place; 2]) -> Vec<Frame<'a>> {
    let mut frames: Vec<Frame<'a>> = Vec::new();
    let mut index: BTreeMap<(&str, &str, u32), usize> = BTreeMap::new();
    let mut frame_of: Vec<Option<usize>> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if step.place.line == 0 || step.place.file.is_empty() {
            frame_of.push(None);
            continue;
        }
        let key = (step.place.file.as_str(), step.place.function.as_str(), step.depth);
        let frame = *index.entry(key).or_insert_with(|| {
            frames.push(Frame {
                file: key.0,
                function: key.1,
                depth: key.2,
                steps: Vec::new(),
                lines: BTreeSet::new(),
                parent: None,
            });
            frames.len() - 1
        });
        frames[frame].steps.push(number);
        frames[frame].lines.insert(step.place.line);
        frame_of.push(Some(frame));
    }
    for frame in &mut frames {
        let Some(first) = frame.steps.first().copied() else { continue };
        // The call is the nearest shallower step before; a path that starts in a
        // callee hangs below the first step of its caller.
        let before = (0..first).rev();
        let caller = before.chain(first..steps.len()).find(|step| steps[*step].depth < frame.depth);
        frame.parent = caller.and_then(|step| Some((frame_of[step]?, steps[step].place.line)));
    }
    let nodes = graph.into_iter().flat_map(|graph| graph.nodes.iter().map(|node| &node.place));
    for place in nodes.chain(ends) {
        add_place(&mut frames, place);
    }
    frames
}

/// Makes sure that a place is shown somewhere.
fn add_place<'a>(frames: &mut Vec<Frame<'a>>, place: &'a Place) {
    if place.line == 0 || place.file.is_empty() {
        return;
    }
    let same = |frame: &&mut Frame<'_>| frame.file == place.file && frame.function == place.function;
    if let Some(frame) = frames.iter_mut().find(same) {
        frame.lines.insert(place.line);
        return;
    }
    frames.push(Frame {
        file: &place.file,
        function: &place.function,
        depth: 0,
        steps: Vec::new(),
        lines: BTreeSet::from([place.line]),
        parent: None,
    });
}

/// The lines to show around `lines`: ranges, first and last, sorted and apart.
pub fn windows(lines: &BTreeSet<u32>, context: u32, total: u32) -> Vec<(u32, u32)> {
    let mut windows: Vec<(u32, u32)> = Vec::new();
    for line in lines.iter().copied().filter(|line| *line <= total) {
        let (first, last) = (line.saturating_sub(context).max(1), line.saturating_add(context).min(total));
        match windows.last_mut() {
            // A fold that hides two lines or fewer costs more than it saves.
            Some(before) if first <= before.1.saturating_add(3) => before.1 = before.1.max(last),
            _ => windows.push((first, last)),
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use caulk_findings::StepKind;

    fn step(function: &str, line: u32, depth: u32) -> Step {
        Step {
            kind: StepKind::Use,
            place: Place { file: "/a.c".into(), line, column: 1, function: function.into(), in_macro: false },
            text: String::new(),
            depth,
            decision: None,
            state: String::new(),
        }
    }

    fn show(frames: &[Frame<'_>]) -> Vec<String> {
        frames.iter().map(|f| format!("{} {:?} {:?}", f.function, f.steps, f.parent)).collect()
    }

    #[test]
    fn callees_hang_below_the_call() {
        let steps =
            [step("load", 6, 0), step("load", 9, 0), step("append", 3, 1), step("grow", 20, 2), step("load", 11, 0)];
        let nowhere = Place::default();
        assert_eq!(
            show(&frames(&steps, None, [&nowhere, &nowhere])),
            ["load [0, 1, 4] None", "append [2] Some((0, 9))", "grow [3] Some((1, 3))"]
        );
    }

    #[test]
    fn a_path_that_starts_in_a_callee_hangs_below_what_follows() {
        let steps = [step("make", 3, 2), step("wrap", 9, 1), step("main", 20, 0), step("", 0, 0)];
        let elsewhere = Place { file: "/b.c".into(), line: 4, function: "other".into(), ..Place::default() };
        assert_eq!(
            show(&frames(&steps, None, [&elsewhere, &steps[2].place])),
            ["make [0] Some((1, 9))", "wrap [1] Some((2, 20))", "main [2] None", "other [] None"]
        );
    }

    #[test]
    fn windows_merge_when_they_nearly_touch() {
        let lines = BTreeSet::from([1, 5, 12, 40, 99]);
        assert_eq!(windows(&lines, 2, 50), [(1, 14), (38, 42)]);
        assert_eq!(windows(&BTreeSet::new(), 2, 50), []);
    }
}
