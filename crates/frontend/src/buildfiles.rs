//! Link commands from what a build system leaves on disk, when none were captured.
//!
//! CMake writes `CMakeFiles/<target>.dir/link.txt` for make, and CMake and Meson write `build.ninja` for ninja. Both
//! say which objects go into which program or library:
//!
//! ```text
//! build app: C_EXECUTABLE_LINKER__app_ CMakeFiles/app.dir/a.c.o | libcore.a || libcore.a
//!   -> program app, of CMakeFiles/app.dir/a.c.o and libcore.a
//! ```
//!
//! Only read, never run; what is not understood is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::capture::{kind_of_output, link_of_command};
use crate::database::CompileCommand;
use crate::link::{LinkKind, LinkRecord};
use crate::paths::absolute;
use crate::words::{expand_responses, split_shell};

/// The link commands that belong to these compile commands.
pub fn links(commands: &[CompileCommand]) -> Vec<LinkRecord> {
    let folders: BTreeSet<&Path> = commands.iter().map(|command| command.directory.as_path()).collect();
    let mut links = Vec::new();
    for folder in folders {
        if let Ok(bytes) = std::fs::read(folder.join("build.ninja")) {
            links.extend(ninja(&String::from_utf8_lossy(&bytes), folder));
        }
    }
    for (folder, target) in cmake_targets(commands) {
        if let Ok(bytes) = std::fs::read(target.join("link.txt")) {
            links.extend(link_text(&String::from_utf8_lossy(&bytes), &folder));
        }
    }
    links
}

/// Folder of the commands and folder of the target, from `<folder>/CMakeFiles/<target>.dir/…`.
fn cmake_targets(commands: &[CompileCommand]) -> BTreeSet<(PathBuf, PathBuf)> {
    let objects = commands.iter().filter_map(|command| command.output.as_deref());
    let targets = objects.filter_map(|object| {
        let target = object.ancestors().find(|folder| {
            folder.extension().is_some_and(|ending| ending == "dir")
                && folder.parent().is_some_and(|above| above.ends_with("CMakeFiles"))
        })?;
        Some((target.parent()?.parent()?.to_path_buf(), target.to_path_buf()))
    });
    targets.collect()
}

fn link_text(text: &str, folder: &Path) -> Vec<LinkRecord> {
    let words = text.lines().map(|line| expand_responses(split_shell(line), folder));
    words.filter_map(|words| link_of_command(&words, folder)).collect()
}

/// The link edges of a `build.ninja`.
fn ninja(text: &str, folder: &Path) -> Vec<LinkRecord> {
    let text = text.replace("$\r\n", "").replace("$\n", "");
    text.lines().filter_map(|line| ninja_edge(line, folder)).collect()
}

fn ninja_edge(line: &str, folder: &Path) -> Option<LinkRecord> {
    let words = split_ninja(line.strip_prefix("build ")?);
    let colon = words.iter().position(|word| word == ":")?;
    let output = words[..colon].first()?;
    let rule = words.get(colon + 1)?;
    if !rule.to_ascii_lowercase().contains("link") {
        return None;
    }
    let inputs = words[colon + 2..].iter().take_while(|word| *word != "||" && *word != "|@");
    let path = |word: &String| absolute(folder, Path::new(word)).display().to_string();
    let inputs = inputs.filter(|word| *word != "|" && is_linkable(word)).map(path).collect();
    let output = absolute(folder, Path::new(output));
    let kind = kind_of_output(&output).unwrap_or(LinkKind::Program);
    Some(LinkRecord { output, kind, inputs })
}

fn is_linkable(word: &str) -> bool {
    [".o", ".lo", ".obj", ".a", ".so"].iter().any(|ending| word.ends_with(ending)) || word.contains(".so.")
}

/// Splits at spaces; `$ ` is a space in a name, `$:` a colon, `$$` a dollar; a plain `:` is a word of its own.
fn split_ninja(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '$' => word.extend(chars.next()),
            ' ' | ':' => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                if c == ':' {
                    words.push(":".to_owned());
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_edges_of_ninja_are_read() {
        let text = "rule C_EXECUTABLE_LINKER__app_\n  command = x\n\
            build CMakeFiles/app.dir/a.c.o: C_COMPILER__app a.c || dep\n\
            build bin/my$ app: C_EXECUTABLE_LINKER__app_ CMakeFiles/app.dir/a.c.o $\n  b.o | libcore.a /usr/x.so || order\n\
            build libcore.a: STATIC_LINKER core.p/c.c.o | libcore.a.symbols\n\
            build broken\nbuild :\nbuild x:\nbuild $";
        let links = ninja(text, Path::new("/p"));
        assert_eq!(links.len(), 2);
        assert_eq!(links[0].output, Path::new("/p/bin/my app"));
        assert_eq!(links[0].kind, LinkKind::Program);
        assert_eq!(links[0].inputs, ["/p/CMakeFiles/app.dir/a.c.o", "/p/b.o", "/p/libcore.a", "/usr/x.so"]);
        assert_eq!((links[1].kind, links[1].inputs.len()), (LinkKind::Archive, 1));
    }
}
