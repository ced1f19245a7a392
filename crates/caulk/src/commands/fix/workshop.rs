//! Builds patched programs for repair: clang for the units that read a patched file, then the analysis.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caulk_analysis::{Analysis, Basis, Limits, RIGHT, Shelf, WEIGH};
use caulk_base::{ContentHash, FxHashMap, Hasher, Store};
use caulk_checkers::{Memo, Options};
use caulk_ir::{FuncId, Function, Program, Unit, UnitId};
use caulk_repair::{Doubts, Notes, Rebuilt, Survey, Workshop};
use caulk_source::{FileText, FunctionSource, ParseRequest, SourceUnit, Span};

use super::generated::Generated;
use crate::driver::Project;

type Compiled = (Arc<Unit>, Vec<String>);

/// Programs after which a unit that none of them had is forgotten: most candidates are refused, and their units are of
/// no use to anybody, but those of the patches so far are part of every program.
const KEPT: usize = 12;
/// Programs that others are compared with.
const BASES: usize = 6;

pub(super) struct Shop<'a> {
    project: &'a Project,
    program: &'a Program,
    store: &'a Store,
    options: Options,
    pool: &'a rayon::ThreadPool,
    /// Units by what their patched files contain, and the last program that had them.
    compiled: RefCell<FxHashMap<(UnitId, ContentHash), (Compiled, usize)>>,
    /// The warnings of units as they were.
    warned: RefCell<FxHashMap<UnitId, Vec<String>>>,
    programs: Cell<usize>,
    parsed: RefCell<Option<(UnitId, ContentHash, SourceUnit)>>,
    known: RefCell<Known>,
}

/// What was worked out for the programs so far, and holds for the next one where it is the same.
#[derive(Default)]
pub(super) struct Known {
    pub(super) shelf: Shelf,
    pub(super) memo: Memo,
    pub(super) notes: Notes,
    /// The last programs by what their patched files contain, the latest at the end.
    pub(super) bases: Vec<(ContentHash, Basis)>,
}

impl Known {
    /// Notes the program that was analysed last.
    pub(super) fn remember(&mut self, analysis: &Analysis<'_>, patched: &[(PathBuf, Vec<u8>)]) {
        let key = contents(patched.iter());
        self.bases.retain(|(known, _)| *known != key);
        self.bases.extend(Basis::of(analysis, &self.shelf).map(|basis| (key, basis)));
        if self.bases.len() > BASES {
            self.bases.remove(0);
        }
    }
}

/// The program that patches are made for, with the name that weighing calls: the others are numbered like it.
pub(super) fn base_program(program: &Program) -> Arc<Program> {
    Arc::new(caulk_frontend::relink(program, &[], &[WEIGH, RIGHT]))
}

impl<'a> Shop<'a> {
    pub(super) fn new(
        project: &'a Project,
        program: &'a Program,
        store: &'a Store,
        options: Options,
        pool: &'a rayon::ThreadPool,
        known: Known,
    ) -> Self {
        Self {
            project,
            program,
            store,
            options,
            pool,
            compiled: RefCell::default(),
            warned: RefCell::default(),
            programs: Cell::new(0),
            parsed: RefCell::default(),
            known: RefCell::new(known),
        }
    }

    /// The unit whose own file this is, or the first that reads it.
    fn unit_of(&self, file: &str) -> Option<UnitId> {
        let units = &self.program.units;
        units
            .iter_ids()
            .find(|(_, unit)| unit.source == file)
            .or_else(|| units.iter_ids().find(|(_, unit)| reads(unit, Path::new(file))))
            .map(|(id, _)| id)
    }

    /// Whether there are lines for some configurations only between a function's name and that of the next one.
    fn may_vary(&self, id: FuncId, patched: &[(PathBuf, Vec<u8>)]) -> bool {
        let unit = &self.program.units[self.program.unit_of(id)];
        let place = |function: &Function| (unit.locs[function.loc].file, unit.locs[function.loc].line);
        let (file, line) = place(self.program.function(id));
        let Some(path) = file.map(|file| PathBuf::from(&unit.files[file])) else { return false };
        let bytes = patched.iter().find(|entry| entry.0 == path).map(|entry| entry.1.clone());
        let Some(bytes) = bytes.or_else(|| std::fs::read(&path).ok()) else { return false };
        let text = FileText::new(path, bytes);
        let behind = unit.functions.iter().map(place).filter(|other| other.0 == file && other.1 > line);
        let end = behind.map(|other| other.1).min().and_then(|next| text.offset_of(next, 1));
        let within = Span::new(text.offset_of(line, 1).unwrap_or(0), end.unwrap_or(text.bytes.len()));
        !text.regions.branches_beside(within, usize::MAX).is_empty()
    }

    fn compile(&self, id: UnitId, patched: &[(PathBuf, Vec<u8>)]) -> Result<Compiled, String> {
        let unit = &self.program.units[id];
        let relevant: Vec<&(PathBuf, Vec<u8>)> = patched.iter().filter(|(path, _)| reads(unit, path)).collect();
        let key = (id, contents(relevant.iter().copied()));
        if let Some((known, used)) = self.compiled.borrow_mut().get_mut(&key) {
            *used = self.programs.get();
            return Ok(known.clone());
        }
        let command = &self.project.loaded.commands[id];
        let mut replaced: Vec<(PathBuf, String)> = Vec::new();
        for (path, bytes) in relevant {
            replaced.push(match Generated::from(command, path) {
                Some(generated) => (generated.made.clone(), text(&generated.again(bytes)?)),
                None => (path.clone(), text(bytes)),
            });
        }
        let made = caulk_frontend::compile_patched(command, &replaced, true)
            .map_err(|error| format!("the patched file does not compile: {error}"))?;
        let warnings = made.warnings.iter().map(|line| without_place(line)).collect();
        let made = (Arc::new(made.unit), warnings);
        self.compiled.borrow_mut().insert(key, (made.clone(), self.programs.get()));
        Ok(made)
    }

    fn warnings_before(&self, id: UnitId) -> Result<Vec<String>, String> {
        if let Some(known) = self.warned.borrow().get(&id) {
            return Ok(known.clone());
        }
        let warnings = self.compile(id, &[])?.1;
        self.warned.borrow_mut().insert(id, warnings.clone());
        Ok(warnings)
    }

    fn with_source<T>(
        &self,
        id: UnitId,
        patched: &[(PathBuf, Vec<u8>)],
        then: impl FnOnce(&SourceUnit) -> T,
    ) -> Result<T, String> {
        let key = contents(patched.iter());
        let mut parsed = self.parsed.borrow_mut();
        let known = parsed.as_ref().is_some_and(|(unit, hash, _)| *unit == id && *hash == key);
        if !known {
            let command = &self.project.loaded.commands[id];
            let request = ParseRequest {
                file: command.file.clone(),
                directory: command.directory.clone(),
                flags: caulk_frontend::source_flags(command),
                unsaved: patched.to_vec(),
            };
            let unit = SourceUnit::parse(&request).map_err(|error| error.to_string())?;
            *parsed = Some((id, key, unit));
        }
        match parsed.as_ref() {
            Some((_, _, unit)) => Ok(then(unit)),
            None => Err("the file cannot be parsed".into()),
        }
    }
}

/// A program, and the warnings of the units that were compiled again, before and after.
type Linked = (Arc<Program>, Vec<String>, Vec<String>);

impl Shop<'_> {
    /// The program with some files replaced.
    fn link(&self, patched: &[(PathBuf, Vec<u8>)]) -> Result<Linked, String> {
        let program = self.program;
        let now = self.programs.get() + 1;
        self.programs.set(now);
        self.compiled.borrow_mut().retain(|_, (_, used)| *used + KEPT >= now);
        let mut replaced: Vec<(UnitId, Arc<Unit>)> = Vec::new();
        let mut warnings_before = Vec::new();
        let mut warnings_after = Vec::new();
        for (id, unit) in program.units.iter_ids() {
            if patched.iter().any(|(path, _)| reads(unit, path)) {
                let (made, warnings) = self.compile(id, patched)?;
                // Where there is none, none is new.
                if !warnings.is_empty() {
                    warnings_after.extend(warnings);
                    warnings_before.extend(self.warnings_before(id)?);
                }
                replaced.push((id, made));
            }
        }
        let names: Vec<&str> = program.externs.iter().map(String::as_str).collect();
        let program = Arc::new(caulk_frontend::relink(program, &replaced, &names));
        Ok((program, warnings_before, warnings_after))
    }

    /// What can be made of the changed function alone of a program that differs in one from an earlier one.
    fn glance<T: Send>(
        &self,
        before: &[(PathBuf, Vec<u8>)],
        program: &Arc<Program>,
        limits: Limits,
        made: impl FnOnce(FuncId, &Analysis<'_>, &mut Known) -> T + Send,
    ) -> Option<T> {
        let (models, store) = (&self.project.config.models, self.store);
        let known = &mut *self.known.borrow_mut();
        let key = contents(before.iter());
        let at = known.bases.iter().position(|(known, _)| *known == key)?;
        // The program that candidates are compared with is needed longest.
        known.bases[at..].rotate_left(1);
        self.pool.install(|| {
            let basis = &known.bases.last()?.1;
            let (id, analysis) = caulk_analysis::glance(basis, program, models, limits, store, &known.shelf)?;
            Some(made(id, &analysis, known))
        })
    }

    /// A function that stands in a made file as it was written in another one, in the words of that one.
    fn written(
        &self,
        id: UnitId,
        file: &Path,
        line: u32,
        patched: &[(PathBuf, Vec<u8>)],
        generated: &Generated,
    ) -> Result<Option<FunctionSource>, String> {
        let now = match patched.iter().find(|(path, _)| path == file) {
            Some((_, bytes)) => bytes.clone(),
            None => std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?,
        };
        let view = generated.view(line, &now)?;
        let command = &self.project.loaded.commands[id];
        let before = generated.made.with_extension("before.c");
        let mut flags = caulk_frontend::source_flags(command);
        flags.extend(["-x".into(), "c".into(), "-include".into(), before.display().to_string()]);
        let mut unsaved = patched.to_vec();
        unsaved.retain(|(path, _)| path != file);
        unsaved.extend([(file.to_path_buf(), view.text), (before, view.before)]);
        let request = ParseRequest { file: file.to_path_buf(), directory: command.directory.clone(), flags, unsaved };
        let unit = SourceUnit::parse(&request).map_err(|error| error.to_string())?;
        // Where the part ends within the function, the parser puts an end to it.
        let whole = |found: &FunctionSource| found.text(found.span).ends_with('}');
        Ok(unit.function_at(file, line).filter(whole))
    }
}

impl Workshop for Shop<'_> {
    fn function_at(&self, file: &str, line: u32, patched: &[(PathBuf, Vec<u8>)]) -> Result<FunctionSource, String> {
        let id = self.unit_of(file).ok_or("no unit of the program reads the file")?;
        let path = Path::new(file);
        let found = match Generated::from(&self.project.loaded.commands[id], path) {
            Some(generated) => self.written(id, path, line, patched, &generated)?,
            None => self.with_source(id, patched, |unit| unit.function_at(path, line))?,
        };
        found.ok_or_else(|| match path.exists() {
            true => "the function's text was not found".into(),
            false => format!("`{file}`, in which it was written, was not found"),
        })
    }

    fn made_from(&self, file: &Path) -> Option<PathBuf> {
        let id = self.unit_of(&file.display().to_string())?;
        Generated::from(&self.project.loaded.commands[id], file).map(|generated| generated.made)
    }

    fn function_named(&self, name: &str, patched: &[(PathBuf, Vec<u8>)]) -> Option<FunctionSource> {
        let program = self.program;
        let [id] = program.functions_named(name)[..] else { return None };
        self.with_source(program.unit_of(id), patched, |unit| unit.function(name)).ok()?
    }

    fn varying_function(&self, name: &str, patched: &[(PathBuf, Vec<u8>)]) -> Option<FunctionSource> {
        let [id] = self.program.functions_named(name)[..] else { return None };
        self.may_vary(id, patched).then(|| self.function_named(name, patched)).flatten()
    }

    fn look_closer(&self, functions: &BTreeSet<String>) {
        let is_one = |id: &FuncId| functions.contains(&self.program.function(*id).name);
        self.known.borrow().shelf.look_closer(self.program.functions.ids().filter(is_one));
    }

    fn look(&self, before: &[(PathBuf, Vec<u8>)], patched: &[(PathBuf, Vec<u8>)]) -> Result<Option<Rebuilt>, String> {
        let (program, warnings_before, warnings_after) = self.link(patched)?;
        let options = self.options;
        let survey = self.glance(before, &program, options.limits, |id, analysis, known| {
            let findings = caulk_checkers::list_beside(analysis, &options, &mut known.memo);
            Survey::of_one(analysis, id, findings, &mut known.notes)
        });
        Ok(survey.map(|survey| Rebuilt { survey, warnings_before, warnings_after }))
    }

    fn look_warily(
        &self,
        before: &[(PathBuf, Vec<u8>)],
        patched: &[(PathBuf, Vec<u8>)],
    ) -> Result<Option<Doubts>, String> {
        let (program, _, _) = self.link(patched)?;
        let limits = Limits { wary: true, ..self.options.limits };
        Ok(self.glance(before, &program, limits, |id, analysis, _| Survey::wary(analysis, id)))
    }

    fn rebuild(&self, patched: &[(PathBuf, Vec<u8>)]) -> Result<Rebuilt, String> {
        let (program, warnings_before, warnings_after) = self.link(patched)?;
        let (models, options, store) = (&self.project.config.models, self.options, self.store);
        let known = &mut *self.known.borrow_mut();
        let survey = self.pool.install(|| {
            let analysis = caulk_analysis::analyse_again(&program, models, options.limits, store, &known.shelf);
            known.remember(&analysis, patched);
            let findings = caulk_checkers::list_with(&analysis, &options, &mut known.memo);
            Survey::of(&analysis, &program, findings, &mut known.notes)
        });
        Ok(Rebuilt { survey, warnings_before, warnings_after })
    }
}

fn reads(unit: &Unit, file: &Path) -> bool {
    Path::new(&unit.source) == file || unit.files.iter().any(|name| Path::new(name) == file)
}

fn contents<'a>(files: impl Iterator<Item = &'a (PathBuf, Vec<u8>)>) -> ContentHash {
    let mut hasher = Hasher::new();
    for (path, bytes) in files {
        hasher.field(path.as_os_str().as_encoded_bytes()).field(bytes);
    }
    hasher.finish()
}

/// The file as text of the same length: bytes of another encoding stand in comments and literals.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect(),
    }
}

/// `file:3:4: warning: text` without the place, which moves.
fn without_place(line: &str) -> String {
    line.split_once(" warning: ").map_or(line, |parts| parts.1).to_owned()
}
