//! The report as a folder of pages that opens from disk.
//!
//! ```text
//! report/index.html              overview, and the list with search and filters
//! report/finding/<print>.html    one page a finding: source, path, graph, patch
//! report/data/source-<n>.js      whole sources, loaded when a fold is opened
//! report/assets/caulk.{css,js}
//! ```
//!
//! Pages are complete without script: it filters the list, walks the path, opens
//! folds and copies. Data comes as scripts because pages from disk may not fetch.
//!
//! # Invariants
//! - Everything from the user's program goes through `maud`, which escapes it;
//!   the exceptions are our own style, script and source data, see [`source_data`].
//! - A page loads nothing from outside its folder; its content policy says so too.
//! - Nothing inline: no style attributes, no handlers. The policy forbids them.

mod diff;
mod finding;
mod frames;
mod graph;
mod highlight;
mod items;
mod layout;
mod list;
mod overview;
mod page;
mod patch;
mod source;

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use items::items;
use source::Sources;

use crate::Report;

const STYLE: &str = include_str!("assets/caulk.css");
const SCRIPT: &str = include_str!("assets/caulk.js");
/// In every page, so that a later run knows which files are its own to remove.
const GENERATOR: &str = "<meta name=\"generator\" content=\"caulk\">";

/// What the pages cannot tell from the report.
#[derive(Clone, Copy, Debug, Default)]
pub struct HtmlOptions {
    /// The patches are already in the sources.
    pub applied: bool,
}

/// Gives every file of the report to `write`: its path within the folder and its text.
pub fn render_html(
    report: &Report<'_>,
    options: &HtmlOptions,
    write: &mut dyn FnMut(&str, &str) -> io::Result<()>,
) -> io::Result<()> {
    let items = items(report, options);
    write("assets/caulk.css", STYLE)?;
    write("assets/caulk.js", SCRIPT)?;
    write("index.html", &page::index(report, &items).into_string())?;
    let mut sources = Sources::new(report.sources);
    for (index, item) in items.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| items.get(before));
        let page = finding::page(report, item, [before, items.get(index + 1)], items.len(), &mut sources);
        write(&item.page, &page.into_string())?;
    }
    for (name, text) in sources.data_files() {
        write(&name, &text)?;
    }
    Ok(())
}

/// Writes the report into `folder` and gives the page to open. Pages of findings
/// that an earlier run left there are removed; other files are left alone.
pub fn write_html(report: &Report<'_>, options: &HtmlOptions, folder: &Path) -> io::Result<PathBuf> {
    let mut written = BTreeSet::new();
    for part in ["assets", "data", "finding"] {
        std::fs::create_dir_all(folder.join(part))?;
    }
    render_html(report, options, &mut |name, text| {
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        written.insert(path);
        Ok(())
    })?;
    for entry in std::fs::read_dir(folder.join("finding"))? {
        let path = entry?.path();
        if !written.contains(&path) && is_ours(&path) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(folder.join("index.html"))
}

fn is_ours(path: &Path) -> bool {
    let mut start = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(300).read_to_string(&mut start));
    path.extension().is_some_and(|extension| extension == "html") && read.is_ok() && start.contains(GENERATOR)
}

/// JavaScript that hands the lines of source `index` to the page. `<` is written
/// as an escape, so that the text could stand in a page as well.
fn source_data(index: usize, lines: &[String]) -> String {
    let json = serde_json::to_string(lines).unwrap_or_else(|_| "[]".to_owned());
    let json = json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    format!("caulkSource({index},{json});\n")
}
