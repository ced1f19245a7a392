//! The documents exist, name every room, and their links lead somewhere.

use super::{Complaint, File};

const PAPERS: [&str; 7] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "deny.toml"];

pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for paper in PAPERS {
        if !files.iter().any(|file| file.path == paper) {
            complaints.push(Complaint::new(paper, 0, "is missing"));
        }
    }
    if let Some(architecture) = files.iter().find(|file| file.path == "ARCHITECTURE.md") {
        for room in rooms(files) {
            if !architecture.text.contains(&format!("`{room}`")) {
                complaints.push(Complaint::new(
                    &architecture.path,
                    0,
                    format!("the code map does not name the room `{room}`"),
                ));
            }
        }
    }
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        links(file, files, &mut complaints);
    }
    complaints
}

/// The folders under `crates/`, in the order of the files.
fn rooms(files: &[File]) -> Vec<&str> {
    files
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
        .filter(|room| !room.contains('/'))
        .collect()
}

/// Relative links of the form `[text](path#anchor)`.
fn links(file: &File, files: &[File], complaints: &mut Vec<Complaint>) {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for (index, line) in file.text.lines().enumerate() {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let Some(end) = rest.find(')') else { continue };
            let target = rest[..end].split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let path = if folder.is_empty() { target.to_owned() } else { format!("{folder}/{target}") };
            let path = path.trim_end_matches('/');
            let inside = format!("{path}/");
            if !files.iter().any(|other| other.path == path || other.path.starts_with(&inside)) {
                complaints.push(Complaint::new(
                    &file.path,
                    index + 1,
                    format!("link to `{target}`, which is not there"),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn missing_papers_are_named() {
        let complaints = check(&[file("README.md", "")]);
        assert_eq!(complaints.len(), PAPERS.len() - 1);
    }

    #[test]
    fn every_room_is_on_the_map() {
        let files = [
            file("ARCHITECTURE.md", "`ir` and more"),
            file("crates/ir/Cargo.toml", ""),
            file("crates/base/Cargo.toml", ""),
        ];
        let on_map: Vec<_> =
            check(&files).into_iter().filter(|complaint| complaint.path == "ARCHITECTURE.md").collect();
        assert_eq!(on_map.len(), 1);
        assert!(on_map[0].text.contains("`base`"));
    }

    #[test]
    fn links_lead_somewhere() {
        let text = "[a](LICENSE-MIT) [b](examples/notes) [c](https://x.example/y) [d](#top) [e](gone.md#x)\n";
        let files = [file("README.md", text), file("LICENSE-MIT", ""), file("examples/notes/main.c", "")];
        let broken: Vec<_> = check(&files).into_iter().filter(|complaint| complaint.path == "README.md").collect();
        assert_eq!(broken, [Complaint::new("README.md", 1, "link to `gone.md`, which is not there")]);
    }
}
