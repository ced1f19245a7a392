//! The sources a report refers to, with the starts of their lines.
//!
//! Outputs ask for thousands of lines, often of few and large files: each file is
//! fetched and indexed once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use caulk_findings::{Finding, SourceProvider};

use crate::Report;

struct Text {
    text: Arc<str>,
    /// Byte offset of every line's start.
    starts: Vec<usize>,
}

/// Texts by path; what could not be read is not there.
pub struct Texts(BTreeMap<String, Text>);

impl Texts {
    /// All files that the report's findings, patches and suppressions name.
    pub fn of_report(report: &Report<'_>) -> Texts {
        let findings = report.findings.findings.iter().flat_map(files_of);
        let edits = report.patches.iter().flat_map(|patch| &patch.edits).map(|edit| edit.file.as_str());
        let issues = report.issues.iter().map(|issue| issue.place.file.as_str());
        Texts::of(report.sources, findings.chain(edits).chain(issues))
    }

    /// The files of one finding.
    pub fn of_finding(report: &Report<'_>, finding: &Finding) -> Texts {
        Texts::of(report.sources, files_of(finding))
    }

    fn of<'a>(sources: &dyn SourceProvider, files: impl Iterator<Item = &'a str>) -> Texts {
        let mut known: BTreeMap<&str, Option<Text>> = BTreeMap::new();
        for file in files {
            known.entry(file).or_insert_with(|| {
                let text = sources.text(file)?;
                let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
                let starts = std::iter::once(0).chain(breaks).collect();
                Some(Text { text, starts })
            });
        }
        Texts(known.into_iter().filter_map(|(file, text)| Some((file.to_owned(), text?))).collect())
    }

    /// Lines `first` to `last` (from 1), without the last line ending. `None` if the file has fewer.
    pub fn lines(&self, file: &str, first: u32, last: u32) -> Option<&str> {
        let text = self.0.get(file)?;
        Some(&text.text[text.line(first)?.start..text.line(last)?.end])
    }

    pub fn line(&self, file: &str, line: u32) -> Option<&str> {
        self.lines(file, line, line)
    }
}

impl Text {
    /// Bytes of a line without its line ending.
    fn line(&self, line: u32) -> Option<Range<usize>> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        Some(start..end)
    }
}

fn files_of(finding: &Finding) -> impl Iterator<Item = &str> {
    let steps = finding.steps.iter().map(|step| &step.place);
    [&finding.source, &finding.sink].into_iter().chain(steps).map(|place| place.file.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use caulk_findings::MemorySources;

    #[test]
    fn lines_are_found_whatever_ends_them() {
        let sources = MemorySources::new([("a", "one\r\ntwo\n\nfour"), ("b", "")]);
        let texts = Texts::of(&sources, ["a", "b", "gone"].into_iter());
        assert_eq!(texts.line("a", 1), Some("one"));
        assert_eq!(texts.lines("a", 1, 2), Some("one\r\ntwo"));
        assert_eq!(texts.line("a", 3), Some(""));
        assert_eq!(texts.line("a", 4), Some("four"));
        for (file, line) in [("a", 0), ("a", 5), ("b", 2), ("gone", 1)] {
            assert_eq!(texts.line(file, line), None, "{file} {line}");
        }
        assert_eq!(texts.line("b", 1), Some(""));
    }
}
