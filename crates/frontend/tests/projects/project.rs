//! Small projects in temporary folders.

use std::path::{Path, PathBuf};

use caulk_frontend::{Loaded, Quiet, Request, load};

/// A C project in a temporary folder.
pub struct Project(tempfile::TempDir);

impl Project {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let project = Project(tempfile::tempdir().unwrap());
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn database(&self, commands: &[(&str, &str)]) {
        let entries: Vec<String> = commands
            .iter()
            .map(|(file, command)| format!(r#"{{"directory": ".", "file": "{file}", "command": "{command}"}}"#))
            .collect();
        self.write("compile_commands.json", &format!("[{}]", entries.join(",\n")));
    }

    pub fn request(&self) -> Request {
        Request { jobs: 2, ..Request::new(vec![self.0.path().to_path_buf()]) }
    }

    pub fn load(&self) -> Loaded {
        load(&self.request(), &Quiet).unwrap()
    }
}

pub fn function_names(loaded: &Loaded) -> Vec<String> {
    loaded.program.functions.ids().map(|id| loaded.program.function(id).name.clone()).collect()
}

pub fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        if entry.path().is_dir() { found.extend(walk(&entry.path())) } else { found.push(entry.path()) }
    }
    found
}
