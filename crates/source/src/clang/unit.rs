//! One parsed translation unit and its cursors.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_uint, c_ulong};
use std::path::{Component, Path, PathBuf};
use std::ptr;

use clang_sys::{
    CXChildVisitResult, CXClientData, CXCursor, CXFile, CXSourceLocation, CXString, CXType, CXUnsavedFile,
};

use super::api::{Libclang, libclang};
use crate::error::SourceError;

/// libclang's cursor kinds that we tell apart; expressions count from 100, statements from 200.
pub(crate) mod kind {
    use std::os::raw::c_int;

    pub use clang_sys::{
        CXCursor_BinaryOperator as BINARY, CXCursor_BreakStmt as BREAK, CXCursor_CStyleCastExpr as CAST,
        CXCursor_CallExpr as CALL, CXCursor_CaseStmt as CASE, CXCursor_CompoundAssignOperator as COMPOUND_ASSIGN,
        CXCursor_CompoundStmt as COMPOUND, CXCursor_ConditionalOperator as CONDITIONAL,
        CXCursor_ContinueStmt as CONTINUE, CXCursor_DeclRefExpr as DECL_REF, CXCursor_DeclStmt as DECL_STMT,
        CXCursor_DefaultStmt as DEFAULT, CXCursor_DoStmt as DO, CXCursor_EnumConstantDecl as ENUM_CONSTANT,
        CXCursor_EnumDecl as ENUM, CXCursor_ForStmt as FOR, CXCursor_FunctionDecl as FUNCTION,
        CXCursor_GotoStmt as GOTO, CXCursor_IfStmt as IF, CXCursor_IndirectGotoStmt as INDIRECT_GOTO,
        CXCursor_LabelStmt as LABEL, CXCursor_MacroDefinition as MACRO_DEFINITION,
        CXCursor_MacroExpansion as MACRO_EXPANSION, CXCursor_NullStmt as NULL, CXCursor_ReturnStmt as RETURN,
        CXCursor_StmtExpr as STMT_EXPR, CXCursor_SwitchStmt as SWITCH, CXCursor_TypedefDecl as TYPEDEF,
        CXCursor_UnaryOperator as UNARY, CXCursor_VarDecl as VARIABLE, CXCursor_WhileStmt as WHILE,
    };

    pub fn is_expression(kind: c_int) -> bool {
        (100..200).contains(&kind)
    }

    pub fn is_statement(kind: c_int) -> bool {
        (200..350).contains(&kind)
    }
}

/// What to parse: one translation unit, as the build compiles it.
#[derive(Clone, Debug, Default)]
pub struct ParseRequest {
    pub file: PathBuf,
    /// Where the compiler ran: relative paths in flags and includes count from here.
    pub directory: PathBuf,
    /// The compiler's flags, without the compiler and the input file.
    pub flags: Vec<String>,
    /// Contents that stand in for files on disk.
    pub unsaved: Vec<(PathBuf, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Note,
    Warning,
    Error,
}

/// One message of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub file: Option<PathBuf>,
    pub line: u32,
    pub column: u32,
    pub message: String,
    /// The flag that controls it: `-Wunused-variable`; empty if none.
    pub option: String,
}

/// A position in a file; in a macro argument, where the argument is written, otherwise in a macro,
/// where the macro is invoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub file: FileKey,
    pub offset: usize,
    pub line: u32,
    pub column: u32,
}

/// Identity of a file within its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileKey(usize);

pub(crate) struct TranslationUnit {
    api: &'static Libclang,
    index: clang_sys::CXIndex,
    raw: clang_sys::CXTranslationUnit,
    directory: PathBuf,
}

impl Drop for TranslationUnit {
    fn drop(&mut self) {
        // SAFETY: both were created by `parse`, are disposed of once, and cursors cannot outlive `self`.
        unsafe {
            (self.api.clang_disposeTranslationUnit)(self.raw);
            (self.api.clang_disposeIndex)(self.index);
        }
    }
}

impl TranslationUnit {
    pub fn parse(request: &ParseRequest) -> Result<Self, SourceError> {
        let api = libclang()?;
        let fail = |reason: String| SourceError::Parse { file: request.file.clone(), reason };
        let c_string = |text: &[u8]| CString::new(text).map_err(|_| fail("a path or flag contains a NUL byte".into()));
        let file = c_string(path_bytes(&request.directory.join(&request.file)))?;
        let mut flags = vec![c_string(b"-working-directory")?, c_string(path_bytes(&request.directory))?];
        for flag in &request.flags {
            flags.push(c_string(flag.as_bytes())?);
        }
        let pointers: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();
        let names =
            request.unsaved.iter().map(|(path, _)| c_string(path_bytes(path))).collect::<Result<Vec<_>, _>>()?;
        let mut unsaved: Vec<CXUnsavedFile> = request
            .unsaved
            .iter()
            .zip(&names)
            .map(|((_, contents), name)| CXUnsavedFile {
                Filename: name.as_ptr(),
                Contents: contents.as_ptr().cast(),
                Length: contents.len() as c_ulong,
            })
            .collect();
        let options = clang_sys::CXTranslationUnit_DetailedPreprocessingRecord | clang_sys::CXTranslationUnit_KeepGoing;
        // SAFETY: no preconditions; diagnostics are not printed.
        let index = unsafe { (api.clang_createIndex)(0, 0) };
        let mut raw = ptr::null_mut();
        // SAFETY: all pointers (file, flags, unsaved contents with their lengths) outlive the call.
        let code = unsafe {
            (api.clang_parseTranslationUnit2)(
                index,
                file.as_ptr(),
                pointers.as_ptr(),
                pointers.len() as c_int,
                unsaved.as_mut_ptr(),
                unsaved.len() as c_uint,
                options as c_uint,
                &mut raw,
            )
        };
        if code != 0 || raw.is_null() {
            // SAFETY: created above, not used again.
            unsafe { (api.clang_disposeIndex)(index) };
            return Err(fail(format!("error {code} from {}", api.path.display())));
        }
        Ok(Self { api, index, raw, directory: request.directory.clone() })
    }

    pub fn root(&self) -> Cursor<'_> {
        // SAFETY: `raw` is a live translation unit.
        Cursor { unit: self, raw: unsafe { (self.api.clang_getTranslationUnitCursor)(self.raw) } }
    }

    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        // SAFETY: `raw` is live; each diagnostic is disposed of once, after its last use.
        unsafe {
            let count = (self.api.clang_getNumDiagnostics)(self.raw);
            (0..count)
                .map(|number| {
                    let raw = (self.api.clang_getDiagnostic)(self.raw, number);
                    let location = self.location((self.api.clang_getDiagnosticLocation)(raw));
                    let diagnostic = Diagnostic {
                        severity: match (self.api.clang_getDiagnosticSeverity)(raw) {
                            0 | 1 => Severity::Note,
                            2 => Severity::Warning,
                            _ => Severity::Error,
                        },
                        file: location.map(|l| self.path(l.file)),
                        line: location.map_or(0, |l| l.line),
                        column: location.map_or(0, |l| l.column),
                        message: self.text((self.api.clang_getDiagnosticSpelling)(raw)),
                        option: self.text((self.api.clang_getDiagnosticOption)(raw, ptr::null_mut())),
                    };
                    (self.api.clang_disposeDiagnostic)(raw);
                    diagnostic
                })
                .collect()
        }
    }

    /// The absolute path of a file of this unit, without `.` and `..`.
    pub fn path(&self, file: FileKey) -> PathBuf {
        // SAFETY: the key came from a location of this unit.
        let name = self.text(unsafe { (self.api.clang_getFileName)(file.0 as CXFile) });
        normalise(&self.directory.join(name))
    }

    /// The bytes that were parsed: from memory where the request gave them, else from disk.
    pub fn contents(&self, file: FileKey) -> Option<Vec<u8>> {
        let mut length = 0usize;
        // SAFETY: the key came from a location of this unit; `length` outlives the call.
        let start = unsafe { (self.api.clang_getFileContents)(self.raw, file.0 as CXFile, &mut length) };
        if start.is_null() {
            return None;
        }
        // SAFETY: libclang returns a buffer of `length` bytes that lives as long as the unit; it is copied at once.
        Some(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }.to_vec())
    }

    /// Byte ranges that the preprocessor passed over in this file.
    pub fn skipped(&self, file: FileKey) -> Vec<(usize, usize)> {
        // SAFETY: the list and its `count` ranges are valid until disposed of, which happens once.
        unsafe {
            let list = (self.api.clang_getSkippedRanges)(self.raw, file.0 as CXFile);
            if list.is_null() {
                return Vec::new();
            }
            let ranges = if (*list).ranges.is_null() {
                &[]
            } else {
                std::slice::from_raw_parts((*list).ranges, (*list).count as usize)
            };
            let result = ranges
                .iter()
                .filter_map(|range| {
                    let start = self.location((self.api.clang_getRangeStart)(*range))?;
                    let end = self.location((self.api.clang_getRangeEnd)(*range))?;
                    Some((start.offset, end.offset))
                })
                .collect();
            (self.api.clang_disposeSourceRangeList)(list);
            result
        }
    }

    fn location(&self, raw: CXSourceLocation) -> Option<Location> {
        let (mut file, mut line, mut column, mut offset) = (ptr::null_mut(), 0, 0, 0);
        // SAFETY: the out-pointers outlive the call; `raw` belongs to this unit.
        unsafe { (self.api.clang_getFileLocation)(raw, &mut file, &mut line, &mut column, &mut offset) };
        (!file.is_null()).then_some(Location { file: FileKey(file as usize), offset: offset as usize, line, column })
    }

    /// Takes ownership of a libclang string. Bytes that are not UTF-8 are replaced: names and types only.
    fn text(&self, raw: CXString) -> String {
        // SAFETY: `raw` was handed to us by libclang and is disposed of once, after copying.
        unsafe {
            let start = (self.api.clang_getCString)(raw);
            let text =
                if start.is_null() { String::new() } else { CStr::from_ptr(start).to_string_lossy().into_owned() };
            (self.api.clang_disposeString)(raw);
            text
        }
    }

    fn type_text(&self, raw: CXType) -> String {
        // SAFETY: `raw` belongs to this unit.
        self.text(unsafe { (self.api.clang_getTypeSpelling)(raw) })
    }
}

/// A node of the syntax tree, alive as long as its unit.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'u> {
    unit: &'u TranslationUnit,
    raw: CXCursor,
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: both cursors belong to live units.
        unsafe { (self.unit.api.clang_equalCursors)(self.raw, other.raw) != 0 }
    }
}

extern "C" fn collect(cursor: CXCursor, _parent: CXCursor, data: CXClientData) -> CXChildVisitResult {
    // SAFETY: `data` is the vector that `children` passes in; it is not aliased during the visit.
    unsafe { (*data.cast::<Vec<CXCursor>>()).push(cursor) };
    clang_sys::CXChildVisit_Continue
}

impl<'u> Cursor<'u> {
    fn wrap(self, raw: CXCursor) -> Option<Self> {
        // SAFETY: asking any cursor value whether it is null is allowed.
        let null = unsafe { (self.unit.api.clang_Cursor_isNull)(raw) } != 0;
        (!null).then_some(Self { unit: self.unit, raw })
    }

    pub fn children(self) -> Vec<Cursor<'u>> {
        let mut raw: Vec<CXCursor> = Vec::new();
        // SAFETY: the visitor only pushes into `raw`, which outlives the call, and cannot unwind.
        unsafe { (self.unit.api.clang_visitChildren)(self.raw, collect, ptr::from_mut(&mut raw).cast()) };
        raw.into_iter().map(|raw| Cursor { unit: self.unit, raw }).collect()
    }

    pub fn kind(self) -> c_int {
        // SAFETY: the cursor belongs to a live unit; likewise for every call below.
        unsafe { (self.unit.api.clang_getCursorKind)(self.raw) }
    }

    pub fn name(self) -> String {
        // SAFETY: as in `kind`.
        self.unit.text(unsafe { (self.unit.api.clang_getCursorSpelling)(self.raw) })
    }

    /// Where the cursor starts and ends, both in the same file; `None` for what has no source.
    pub fn extent(self) -> Option<(Location, Location)> {
        let api = self.unit.api;
        // SAFETY: as in `kind`.
        let (start, end) = unsafe {
            let range = (api.clang_getCursorExtent)(self.raw);
            ((api.clang_getRangeStart)(range), (api.clang_getRangeEnd)(range))
        };
        let (start, end) = (self.unit.location(start)?, self.unit.location(end)?);
        (start.file == end.file).then_some((start, end))
    }

    pub fn referenced(self) -> Option<Cursor<'u>> {
        // SAFETY: as in `kind`.
        self.wrap(unsafe { (self.unit.api.clang_getCursorReferenced)(self.raw) })
    }

    pub fn canonical(self) -> Cursor<'u> {
        // SAFETY: as in `kind`.
        Cursor { unit: self.unit, raw: unsafe { (self.unit.api.clang_getCanonicalCursor)(self.raw) } }
    }

    pub fn initialiser(self) -> Option<Cursor<'u>> {
        // SAFETY: as in `kind`.
        self.wrap(unsafe { (self.unit.api.clang_Cursor_getVarDeclInitializer)(self.raw) })
    }

    pub fn arguments(self) -> Vec<Cursor<'u>> {
        // SAFETY: as in `kind`; every number below the count is a valid argument.
        let count = unsafe { (self.unit.api.clang_Cursor_getNumArguments)(self.raw) };
        (0..count.max(0))
            // SAFETY: as above.
            .filter_map(|n| self.wrap(unsafe { (self.unit.api.clang_Cursor_getArgument)(self.raw, n as c_uint) }))
            .collect()
    }

    pub fn is_definition(self) -> bool {
        // SAFETY: as in `kind`.
        unsafe { (self.unit.api.clang_isCursorDefinition)(self.raw) != 0 }
    }

    pub fn is_inline(self) -> bool {
        // SAFETY: as in `kind`.
        unsafe { (self.unit.api.clang_Cursor_isFunctionInlined)(self.raw) != 0 }
    }

    pub fn is_static(self) -> bool {
        // SAFETY: as in `kind`.
        unsafe { (self.unit.api.clang_Cursor_getStorageClass)(self.raw) == clang_sys::CX_SC_Static }
    }

    /// Simple assignment, as opposed to other binary operators.
    pub fn is_assignment(self) -> bool {
        self.binary_operator() == clang_sys::CXBinaryOperator_Assign
    }

    /// `&&`, `||`, `,`: operators that order or skip their operands.
    pub fn is_sequencing(self) -> bool {
        let operator = self.binary_operator();
        [clang_sys::CXBinaryOperator_LAnd, clang_sys::CXBinaryOperator_LOr, clang_sys::CXBinaryOperator_Comma]
            .contains(&operator)
    }

    fn binary_operator(self) -> c_int {
        // SAFETY: as in `kind`.
        unsafe { (self.unit.api.clang_getCursorBinaryOperatorKind)(self.raw) }
    }

    pub fn is_increment(self) -> bool {
        // SAFETY: as in `kind`.
        let operator = unsafe { (self.unit.api.clang_getCursorUnaryOperatorKind)(self.raw) };
        (clang_sys::CXUnaryOperator_PostInc..=clang_sys::CXUnaryOperator_PreDec).contains(&operator)
    }

    /// The type as the programmer spelled it.
    pub fn type_name(self) -> String {
        // SAFETY: as in `kind`.
        self.unit.type_text(unsafe { (self.unit.api.clang_getCursorType)(self.raw) })
    }

    /// The type of a value of this expression: without top-level `const` and `volatile`.
    pub fn value_type(self) -> String {
        // SAFETY: as in `kind`.
        self.unit.type_text(unsafe {
            (self.unit.api.clang_getUnqualifiedType)((self.unit.api.clang_getCursorType)(self.raw))
        })
    }

    pub fn result_type(self) -> String {
        // SAFETY: as in `kind`.
        self.unit.type_text(unsafe {
            (self.unit.api.clang_getUnqualifiedType)((self.unit.api.clang_getCursorResultType)(self.raw))
        })
    }

    /// The array type's or pointer type's shape, seen through typedefs.
    pub fn canonical_type(self) -> String {
        // SAFETY: as in `kind`.
        self.unit
            .type_text(unsafe { (self.unit.api.clang_getCanonicalType)((self.unit.api.clang_getCursorType)(self.raw)) })
    }
}

fn path_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

fn normalise(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut clean, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
        clean
    })
}
