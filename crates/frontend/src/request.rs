//! What the user asks to be loaded, and the commands that follow from it.

use std::path::{Path, PathBuf};

use caulk_base::FxHashMap;

use crate::buildfiles;
use crate::cache::{CacheChoice, DEFAULT_LIMIT};
use crate::database::{self, CompileCommand};
use crate::error::FrontendError;
use crate::flags::{self, ClangFlags, Language};
use crate::link::LinkRecord;
use crate::paths::{absolute, current_dir};

/// What to load, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Folders, compile databases or `.c` files.
    pub paths: Vec<PathBuf>,
    /// For plain `.c` files: what stands after `--`.
    pub flags: Vec<String>,
    /// Threads; 0 means all cores.
    pub jobs: usize,
    pub cache: CacheChoice,
    /// In bytes.
    pub cache_limit: u64,
}

impl Request {
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Request { paths, flags: Vec::new(), jobs: 0, cache: CacheChoice::Project, cache_limit: DEFAULT_LIMIT }
    }
}

/// Units that are not C.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    pub cpp: Vec<PathBuf>,
    pub assembler: Vec<PathBuf>,
    pub other: Vec<PathBuf>,
}

impl PassedOver {
    pub fn count(&self) -> usize {
        self.cpp.len() + self.assembler.len() + self.other.len()
    }
}

/// One unit to be made, and every object that it stands for.
pub(crate) struct Planned {
    pub command: CompileCommand,
    pub flags: ClangFlags,
    pub objects: Vec<PathBuf>,
}

/// Everything there is to do.
pub(crate) struct Plan {
    pub units: Vec<Planned>,
    pub links: Vec<LinkRecord>,
    pub passed_over: PassedOver,
    /// Where the project's own `.caulk/` belongs.
    pub root: PathBuf,
}

/// Finds the commands for every path of the request.
pub(crate) fn plan(request: &Request) -> Result<Plan, FrontendError> {
    let here = current_dir();
    let mut commands = Vec::new();
    let mut links = Vec::new();
    let mut root = None;
    let mut databases: FxHashMap<PathBuf, Option<Vec<CompileCommand>>> = FxHashMap::default();
    for path in &request.paths {
        let path = absolute(&here, path);
        let data = std::fs::metadata(&path).map_err(FrontendError::read(&path))?;
        let language = flags::language_by_name(&path);
        if data.is_dir() || path.extension().is_some_and(|ending| ending == "json") {
            let file = if data.is_dir() {
                database::find(&path).ok_or_else(|| FrontendError::NoDatabase { folder: path.clone() })?
            } else {
                path
            };
            let found = database::read(&file)?;
            let captured = LinkRecord::read_beside(&file)?;
            links.extend(if captured.is_empty() { buildfiles::links(&found) } else { captured });
            commands.extend(found);
            root.get_or_insert_with(|| root_of_database(&file));
        } else if language == Language::Other {
            return Err(FrontendError::UnknownInput { path });
        } else {
            root.get_or_insert_with(|| root_of_file(&path));
            let known = if request.flags.is_empty() { in_database(&path, &mut databases) } else { Vec::new() };
            if known.is_empty() {
                commands.push(database::plain(&path, &request.flags));
            }
            commands.extend(known);
        }
    }
    let commands = database::without_duplicates(commands);
    let (units, passed_over) = plan_units(commands);
    Ok(Plan { units, links, passed_over, root: root.unwrap_or(here) })
}

/// What the database above says about a file that was named alone.
fn in_database(file: &Path, databases: &mut FxHashMap<PathBuf, Option<Vec<CompileCommand>>>) -> Vec<CompileCommand> {
    let Some(database) = file.parent().and_then(database::find) else { return Vec::new() };
    let commands = databases.entry(database).or_insert_with_key(|path| database::read(path).ok());
    commands.iter().flatten().filter(|command| command.file == file).cloned().collect()
}

fn root_of_database(database: &Path) -> PathBuf {
    let folder = database.parent().unwrap_or(Path::new("/"));
    match folder.parent() {
        Some(above) if folder.file_name().is_some_and(|name| name == "build") => above.to_path_buf(),
        _ => folder.to_path_buf(),
    }
}

/// A `.caulk/` is no mark: some run in a folder above has left it, and what lies below need not belong together.
fn root_of_file(file: &Path) -> PathBuf {
    let marks = ["caulk.toml", ".git"];
    let marked = file.ancestors().skip(1).find(|folder| marks.iter().any(|mark| folder.join(mark).exists()));
    marked.or(file.parent()).unwrap_or(Path::new("/")).to_path_buf()
}

/// Sorts out what is not C, and makes one unit of commands that differ in nothing that matters to us.
fn plan_units(commands: Vec<CompileCommand>) -> (Vec<Planned>, PassedOver) {
    let mut units: Vec<Planned> = Vec::new();
    let mut passed_over = PassedOver::default();
    let mut known: FxHashMap<(PathBuf, PathBuf, Vec<String>), usize> = FxHashMap::default();
    for command in commands {
        let flags = flags::convert(&command);
        let list = match flags.language {
            Language::C | Language::PreprocessedC => None,
            Language::Cpp => Some(&mut passed_over.cpp),
            Language::Assembler => Some(&mut passed_over.assembler),
            Language::Other => Some(&mut passed_over.other),
        };
        if let Some(list) = list {
            list.push(command.file);
            continue;
        }
        let key = (command.directory.clone(), command.file.clone(), without_pic(&flags.flags));
        let object = command.output.clone();
        let at = *known.entry(key).or_insert(units.len());
        if at == units.len() {
            units.push(Planned { command, flags, objects: Vec::new() });
        }
        units[at].objects.extend(object);
    }
    (units, passed_over)
}

/// libtool compiles everything twice, with and without `-fPIC -DPIC`: the same program to us.
fn without_pic(flags: &[String]) -> Vec<String> {
    let mut rest = Vec::with_capacity(flags.len());
    let mut flags = flags.iter().peekable();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "-fPIC" | "-fpic" | "-fPIE" | "-fpie" | "-fno-pic" | "-fno-PIC" | "-fno-pie" | "-fno-PIE" => {}
            "-D" if flags.peek().is_some_and(|value| *value == "PIC") => _ = flags.next(),
            _ => rest.push(flag.clone()),
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &str, file: &str) -> CompileCommand {
        let arguments = crate::words::split_shell(words);
        let (directory, file) = (PathBuf::from("/p"), PathBuf::from("/p").join(file));
        let output = flags::object_of(&arguments, &directory, &file);
        CompileCommand { directory, file, arguments, output }
    }

    #[test]
    fn other_languages_are_counted_and_twins_are_one_unit() {
        let (units, passed) = plan_units(vec![
            command("gcc -c a.c -O2 -fPIC -DPIC -o .libs/a.o", "a.c"),
            command("gcc -c a.c -O2 -o a.o", "a.c"),
            command("gcc -c a.c -DOTHER -o b.o", "a.c"),
            command("g++ -c x.cc", "x.cc"),
            command("gcc -c y.S", "y.S"),
        ]);
        let objects: Vec<Vec<String>> =
            units.iter().map(|unit| unit.objects.iter().map(|object| object.display().to_string()).collect()).collect();
        assert_eq!(objects, [vec!["/p/.libs/a.o", "/p/a.o"], vec!["/p/b.o"]]);
        assert_eq!((passed.cpp.len(), passed.assembler.len(), passed.count()), (1, 1, 2));
    }

    #[test]
    fn a_request_for_what_is_not_there_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: PathBuf| plan(&Request::new(vec![path])).err().map(|error| error.to_string()).unwrap();
        assert!(message(folder.path().join("none.c")).starts_with("cannot read "));
        std::fs::write(folder.path().join("x.txt"), "").unwrap();
        assert!(message(folder.path().join("x.txt")).contains("neither a folder"));
        assert!(message(folder.path().to_path_buf()).contains("caulk capture -- make"));
    }

    #[test]
    fn what_another_run_left_above_makes_no_project() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("program");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(above.path().join(".caulk")).unwrap();
        assert_eq!(root_of_file(&folder.join("a.c")), folder);
        std::fs::write(above.path().join("caulk.toml"), "").unwrap();
        assert_eq!(root_of_file(&folder.join("a.c")), above.path());
    }
}
