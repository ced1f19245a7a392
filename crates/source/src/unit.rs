//! A parsed translation unit: which functions it defines, and their sources on request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use caulk_base::IdVec;

use crate::clang::{Diagnostic, FileKey, ParseRequest, TranslationUnit, kind};
use crate::error::SourceError;
use crate::extract::{FunctionInput, extract};
use crate::lex::Span;
use crate::syntax::{FunctionSource, MacroId, MacroUse, TopLevel, UnitNames};
use crate::text::FileText;

/// One definition in a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    pub name: String,
    pub file: PathBuf,
    pub first_line: u32,
    pub last_line: u32,
}

/// A unit as libclang sees it. Not `Send`: each thread parses its own.
pub struct SourceUnit {
    // Raw expansions per file, in text order.
    macros: BTreeMap<FileKey, Vec<(String, Span)>>,
    functions: Vec<(FunctionInfo, FileKey, usize)>,
    names: Arc<UnitNames>,
    files: Mutex<BTreeMap<FileKey, Arc<FileText>>>,
    main_file: PathBuf,
    unit: TranslationUnit,
}

impl SourceUnit {
    pub fn parse(request: &ParseRequest) -> Result<Self, SourceError> {
        let unit = TranslationUnit::parse(request)?;
        let mut macros: BTreeMap<FileKey, Vec<(String, Span)>> = BTreeMap::new();
        let mut functions = Vec::new();
        let mut names = UnitNames::default();
        for (order, cursor) in unit.root().children().into_iter().enumerate() {
            match cursor.kind() {
                kind::MACRO_DEFINITION => {
                    names.macros.insert(cursor.name());
                }
                kind::MACRO_EXPANSION => {
                    if let Some((start, end)) = cursor.extent() {
                        let span = Span::new(start.offset, end.offset);
                        macros.entry(start.file).or_default().push((cursor.name(), span));
                    }
                }
                kind::FUNCTION | kind::VARIABLE | kind::TYPEDEF => {
                    let is_function = cursor.kind() == kind::FUNCTION;
                    names.top_level.entry(cursor.name()).or_insert_with(|| TopLevel {
                        is_function,
                        type_name: cursor.type_name(),
                        order,
                    });
                    if is_function
                        && cursor.is_definition()
                        && let Some((start, end)) = cursor.extent()
                    {
                        let (name, file) = (cursor.name(), unit.path(start.file));
                        let info = FunctionInfo { name, file, first_line: start.line, last_line: end.line };
                        functions.push((info, start.file, order));
                    }
                }
                kind::ENUM => {
                    for constant in cursor.children() {
                        let type_name = constant.type_name();
                        names.top_level.entry(constant.name()).or_insert(TopLevel {
                            is_function: false,
                            type_name,
                            order,
                        });
                    }
                }
                _ => {}
            }
        }
        for expansions in macros.values_mut() {
            expansions.sort_by_key(|(_, span)| (span.start, std::cmp::Reverse(span.end)));
        }
        let main_file = request.directory.join(&request.file);
        Ok(Self { macros, functions, names: Arc::new(names), files: Mutex::default(), main_file, unit })
    }

    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.unit.diagnostics()
    }

    pub fn functions(&self) -> impl Iterator<Item = &FunctionInfo> {
        self.functions.iter().map(|(info, ..)| info)
    }

    /// The definition of this name; a unit has at most one.
    pub fn function(&self, name: &str) -> Option<FunctionSource> {
        self.functions.iter().find(|(info, ..)| info.name == name).and_then(|found| self.extract(found))
    }

    /// The definition that this line of this file lies in.
    pub fn function_at(&self, file: &Path, line: u32) -> Option<FunctionSource> {
        self.functions
            .iter()
            .filter(|(info, ..)| (info.first_line..=info.last_line).contains(&line))
            .find(|(info, ..)| same_file(&info.file, file))
            .and_then(|found| self.extract(found))
    }

    fn extract(&self, (info, key, order): &(FunctionInfo, FileKey, usize)) -> Option<FunctionSource> {
        let cursor = self.unit.root().children().into_iter().nth(*order)?;
        let file = self.file(*key, &info.file)?;
        let (start, end) = cursor.extent()?;
        let span = Span::new(start.offset, end.offset);
        extract(FunctionInput {
            cursor,
            macros: self.macros_in(*key, &file, span),
            inactive: self.unit.skipped(*key).into_iter().map(|(start, end)| Span::new(start, end)).collect(),
            in_main_file: same_file(&info.file, &self.main_file),
            names: Arc::clone(&self.names),
            file,
            start,
            order: *order,
        })
    }

    fn file(&self, key: FileKey, path: &Path) -> Option<Arc<FileText>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&key) {
            return Some(Arc::clone(file));
        }
        let file = Arc::new(FileText::new(path.to_path_buf(), self.unit.contents(key)?));
        files.insert(key, Arc::clone(&file));
        Some(file)
    }

    fn macros_in(&self, key: FileKey, file: &FileText, function: Span) -> IdVec<MacroId, MacroUse> {
        let mut result = IdVec::new();
        let mut covered_to = 0;
        for (name, span) in self.macros.get(&key).into_iter().flatten() {
            if !function.overlaps(*span) {
                continue;
            }
            // Expansions in a macro's body are recorded at the place of the outer invocation.
            let repeats = result.as_slice().last().is_some_and(|last: &MacroUse| last.span.start == span.start);
            if repeats && span.end <= covered_to {
                continue;
            }
            let outermost = span.start >= covered_to;
            covered_to = covered_to.max(span.end);
            result.push(MacroUse { name: name.clone(), span: *span, args: arguments(file, *span), outermost });
        }
        result
    }
}

/// The arguments of an invocation, cut at the commas of its own parentheses.
fn arguments(file: &FileText, span: Span) -> Vec<Span> {
    let mut args = Vec::new();
    let mut depth = 0;
    let mut start = None;
    let mut end = span.start;
    for token in file.tokens_in(span).iter().skip(1) {
        let opens = token.is(b'(') || token.is(b'[') || token.is(b'{');
        let closes = token.is(b')') || token.is(b']') || token.is(b'}');
        depth -= usize::from(closes && depth > 0);
        if depth == 0 && closes || depth == 1 && token.is(b',') {
            args.push(Span::new(
                start.unwrap_or(token.span.start),
                if start.is_some() { end } else { token.span.start },
            ));
            start = None;
        } else if depth > 0 {
            start = start.or(Some(token.span.start));
        }
        depth += usize::from(opens);
        end = token.span.end;
    }
    if args.len() == 1 && args[0].is_empty() {
        args.clear();
    }
    args
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
