//! Fixtures are files too: names that sort, and neighbours that belong to a source.
//!
//!     fixtures/leak/error_path.c          the source, written by hand
//!     fixtures/leak/error_path.fixed.c    what `fix` makes of it, blessed
//!     fixtures/leak/error_path.report     what `check` prints, blessed

use super::{Complaint, File};

/// Endings of blessed neighbours.
const NEIGHBOURS: [&str; 2] = [".fixed.c", ".report"];

pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("fixtures/")) {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        let conventional = ["Makefile", "CMakeLists.txt", "README.md"].contains(&name);
        if !name.chars().all(plain) && !conventional {
            complaints.push(Complaint::new(&file.path, 0, "fixture names are lower case letters, digits, `_`, `-`"));
        }
        for ending in NEIGHBOURS {
            if let Some(stem) = file.path.strip_suffix(ending)
                && !files.iter().any(|other| {
                    other.path.strip_suffix(".c") == Some(stem) || other.path.starts_with(&format!("{stem}/"))
                })
            {
                complaints.push(Complaint::new(&file.path, 0, "belongs to no source: its `.c` file or folder is gone"));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn names_and_neighbours() {
        let files = [
            file("fixtures/leak/a.c", ""),
            file("fixtures/leak/a.fixed.c", ""),
            file("fixtures/leak/a.report", ""),
            file("fixtures/leak/gone.report", ""),
            file("fixtures/leak/Bad Name.c", ""),
        ];
        let complained: Vec<_> = check(&files).into_iter().map(|complaint| complaint.path).collect();
        assert_eq!(complained, ["fixtures/leak/gone.report", "fixtures/leak/Bad Name.c"]);
    }
}
