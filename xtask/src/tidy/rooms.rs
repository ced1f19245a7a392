//! Which room may look into which.
//!
//!     [dependencies]
//!     caulk-checkers.workspace = true     in crates/report: refused, report reads findings only
//!     z3.workspace = true                 in crates/analysis: refused, z3 stays behind solver

use super::{Complaint, File};

/// Each crate with the rooms it may depend on. A crate that is not listed has to be given a place here first.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "caulk",
        &[
            "alarms",
            "base",
            "ir",
            "models",
            "findings",
            "frontend",
            "analysis",
            "checkers",
            "repair",
            "report",
            "source",
            "solver",
            "instrument",
            "runtime",
        ],
    ),
    ("repair", &["base", "ir", "models", "analysis", "solver", "source", "findings"]),
    ("checkers", &["base", "ir", "models", "analysis", "solver", "findings"]),
    ("report", &["base", "findings", "source"]),
    ("analysis", &["base", "ir", "models"]),
    ("fuzz", &["frontend", "models"]),
    ("frontend", &["base", "ir"]),
    ("instrument", &["models"]),
    ("runtime", &[]),
    ("models", &["base"]),
    ("ir", &["base"]),
    ("solver", &["base"]),
    ("source", &["base"]),
    ("findings", &["base"]),
    ("alarms", &[]),
    ("base", &[]),
    ("bench", &[]),
    ("differential", &[]),
    ("xtask", &[]),
];

/// Libraries that only some rooms may know.
const DOORS: &[(&str, &[&str])] = &[
    ("cc", &["frontend", "instrument", "runtime"]),
    ("inkwell", &["frontend"]),
    ("llvm-sys", &["frontend"]),
    ("z3", &["solver"]),
    ("z3-sys", &["solver"]),
    ("clang-sys", &["source"]),
    ("clap", &["caulk"]),
    ("indicatif", &["caulk"]),
];

pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in files {
        let Some(room) = room_of_manifest(&file.path) else { continue };
        let manifest: toml::Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                complaints.push(Complaint::new(&file.path, 0, format!("not valid TOML: {}", error.message())));
                continue;
            }
        };
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            complaints.push(Complaint::new(
                &file.path,
                0,
                format!("the room `{room}` has no place in the house: add it to ROOMS in xtask/src/tidy/rooms.rs"),
            ));
            continue;
        };
        let mut refuse = |dependency: &str, why: String| {
            let line = line_of(&file.text, dependency);
            complaints.push(Complaint::new(&file.path, line, why));
        };
        // Tests may borrow any tool, but they live in the room all the same: the same table holds for them.
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(section).and_then(toml::Value::as_table) else { continue };
            for dependency in dependencies.keys() {
                if let Some(neighbour) = dependency.strip_prefix("caulk-")
                    && !allowed.contains(&neighbour)
                {
                    refuse(dependency, format!("`{room}` must not depend on `{neighbour}`"));
                }
                if let Some((_, doors)) = DOORS.iter().find(|(library, _)| library == dependency)
                    && !doors.contains(&room)
                {
                    refuse(dependency, format!("`{dependency}` may only be used in `{}`", doors.join("`, `")));
                }
            }
        }
        if manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool) != Some(true) {
            complaints.push(Complaint::new(
                &file.path,
                0,
                "does not take the workspace's lints: [lints] workspace = true",
            ));
        }
    }
    complaints
}

/// `crates/ir/Cargo.toml` is the room `ir`; the manifest at the root is none.
fn room_of_manifest(path: &str) -> Option<&str> {
    let folder = path.strip_suffix("/Cargo.toml")?;
    let room = folder.strip_prefix("crates/").unwrap_or(folder);
    (!room.contains('/')).then_some(room)
}

fn line_of(text: &str, dependency: &str) -> usize {
    let starts = |line: &str| {
        line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with(['.', ' ', '=']) || rest.is_empty())
    };
    text.lines().position(starts).map_or(0, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn complaints(path: &str, dependencies: &str) -> Vec<String> {
        let manifest = format!("[dependencies]\n{dependencies}\n[lints]\nworkspace = true\n");
        check(&[file(path, &manifest)]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_room_may_use_the_rooms_below_it() {
        assert_eq!(complaints("crates/analysis/Cargo.toml", "caulk-ir.workspace = true"), [""; 0]);
        assert_eq!(complaints("crates/solver/Cargo.toml", "z3.workspace = true"), [""; 0]);
    }

    #[test]
    fn looking_upwards_is_refused_with_the_line() {
        assert_eq!(
            complaints("crates/report/Cargo.toml", "serde.workspace = true\ncaulk-checkers.workspace = true"),
            ["crates/report/Cargo.toml:3: `report` must not depend on `checkers`"]
        );
        let dev = "[dev-dependencies]\ncaulk-frontend = { path = \"../frontend\" }\n[lints]\nworkspace = true\n";
        assert_eq!(check(&[file("crates/ir/Cargo.toml", dev)]).len(), 1);
    }

    #[test]
    fn a_library_stays_behind_its_door() {
        assert_eq!(
            complaints("crates/analysis/Cargo.toml", "z3.workspace = true"),
            ["crates/analysis/Cargo.toml:2: `z3` may only be used in `solver`"]
        );
    }

    #[test]
    fn an_unknown_room_and_missing_lints_are_named() {
        assert!(complaints("crates/attic/Cargo.toml", "")[0].contains("no place in the house"));
        assert!(check(&[file("crates/ir/Cargo.toml", "")])[0].to_string().contains("workspace's lints"));
        assert!(check(&[file("crates/ir/Cargo.toml", "[dep")])[0].to_string().contains("not valid TOML"));
    }

    #[test]
    fn the_table_points_one_way() {
        // Every room's neighbours come later in the table, so no cycle can be written into it.
        for (index, (room, allowed)) in ROOMS.iter().enumerate() {
            for neighbour in *allowed {
                let position = ROOMS.iter().position(|(name, _)| name == neighbour);
                assert!(position > Some(index), "{room} -> {neighbour}");
            }
        }
    }
}
