//! The table of libclang functions and how the library is found.

#![expect(non_snake_case, reason = "the functions carry libclang's own names")]

use std::ffi::OsString;
use std::os::raw::{c_char, c_int, c_uint};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clang_sys::{
    CXClientData, CXCursor, CXCursorVisitor, CXDiagnostic, CXErrorCode, CXFile, CXIndex, CXSourceLocation,
    CXSourceRange, CXSourceRangeList, CXString, CXTranslationUnit, CXType, CXUnsavedFile,
};

use crate::error::SourceError;

macro_rules! functions {
    ($(fn $name:ident($($arg:ty),*) $(-> $ret:ty)?;)+) => {
        /// Resolved entry points of one loaded libclang.
        pub(crate) struct Libclang {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)+
            /// Where it was loaded from, for error messages.
            pub(crate) path: PathBuf,
            // Last field: dropped after the function pointers that point into it.
            _library: libloading::Library,
        }

        impl Libclang {
            fn open(path: &Path) -> Result<Self, String> {
                // SAFETY: libclang's initialisers have no preconditions; the path names a libclang.
                let library = unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?;
                $(
                    // SAFETY: the signature is the one libclang 19 documents for this symbol; the pointer is
                    // kept beside the library that it points into.
                    let $name = *unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>(concat!(stringify!($name), "\0").as_bytes())
                    }.map_err(|_| concat!("it has no `", stringify!($name), "`: too old").to_string())?;
                )+
                Ok(Self { $($name,)+ path: path.to_path_buf(), _library: library })
            }
        }
    };
}

functions! {
    fn clang_createIndex(c_int, c_int) -> CXIndex;
    fn clang_disposeIndex(CXIndex);
    fn clang_parseTranslationUnit2(CXIndex, *const c_char, *const *const c_char, c_int, *mut CXUnsavedFile, c_uint, c_uint, *mut CXTranslationUnit) -> CXErrorCode;
    fn clang_disposeTranslationUnit(CXTranslationUnit);
    fn clang_getTranslationUnitCursor(CXTranslationUnit) -> CXCursor;
    fn clang_visitChildren(CXCursor, CXCursorVisitor, CXClientData) -> c_uint;
    fn clang_getCursorKind(CXCursor) -> c_int;
    fn clang_getCursorSpelling(CXCursor) -> CXString;
    fn clang_getCursorExtent(CXCursor) -> CXSourceRange;
    fn clang_getCursorReferenced(CXCursor) -> CXCursor;
    fn clang_getCursorType(CXCursor) -> CXType;
    fn clang_getCursorResultType(CXCursor) -> CXType;
    fn clang_getCursorBinaryOperatorKind(CXCursor) -> c_int;
    fn clang_getCursorUnaryOperatorKind(CXCursor) -> c_int;
    fn clang_Cursor_getVarDeclInitializer(CXCursor) -> CXCursor;
    fn clang_Cursor_getNumArguments(CXCursor) -> c_int;
    fn clang_Cursor_getArgument(CXCursor, c_uint) -> CXCursor;
    fn clang_Cursor_getStorageClass(CXCursor) -> c_int;
    fn clang_Cursor_isFunctionInlined(CXCursor) -> c_uint;
    fn clang_Cursor_isNull(CXCursor) -> c_int;
    fn clang_isCursorDefinition(CXCursor) -> c_uint;
    fn clang_equalCursors(CXCursor, CXCursor) -> c_uint;
    fn clang_getCanonicalCursor(CXCursor) -> CXCursor;
    fn clang_getTypeSpelling(CXType) -> CXString;
    fn clang_getUnqualifiedType(CXType) -> CXType;
    fn clang_getCanonicalType(CXType) -> CXType;
    fn clang_getRangeStart(CXSourceRange) -> CXSourceLocation;
    fn clang_getRangeEnd(CXSourceRange) -> CXSourceLocation;
    fn clang_getFileLocation(CXSourceLocation, *mut CXFile, *mut c_uint, *mut c_uint, *mut c_uint);
    fn clang_getFileName(CXFile) -> CXString;
    fn clang_getFileContents(CXTranslationUnit, CXFile, *mut usize) -> *const c_char;
    fn clang_getSkippedRanges(CXTranslationUnit, CXFile) -> *mut CXSourceRangeList;
    fn clang_disposeSourceRangeList(*mut CXSourceRangeList);
    fn clang_getCString(CXString) -> *const c_char;
    fn clang_disposeString(CXString);
    fn clang_getNumDiagnostics(CXTranslationUnit) -> c_uint;
    fn clang_getDiagnostic(CXTranslationUnit, c_uint) -> CXDiagnostic;
    fn clang_getDiagnosticSeverity(CXDiagnostic) -> c_int;
    fn clang_getDiagnosticSpelling(CXDiagnostic) -> CXString;
    fn clang_getDiagnosticLocation(CXDiagnostic) -> CXSourceLocation;
    fn clang_getDiagnosticOption(CXDiagnostic, *mut CXString) -> CXString;
    fn clang_disposeDiagnostic(CXDiagnostic);
}

/// Overrides where libclang is looked for: a file, or a folder that holds it.
const OVERRIDE: &str = "CAULK_LIBCLANG";

/// Names tried through the dynamic loader, and folders of the usual packages.
const SONAMES: [&str; 3] = ["libclang-19.so.1", "libclang-19.so.19", "libclang-19.so"];
const FOLDERS: [&str; 4] =
    ["/usr/lib/llvm-19/lib", "/usr/lib64/llvm19/lib", "/usr/local/lib", "/opt/homebrew/opt/llvm@19/lib"];

/// The process-wide libclang; loaded by the first caller, on whatever thread.
pub(crate) fn libclang() -> Result<&'static Libclang, SourceError> {
    static LIBRARY: OnceLock<Result<Libclang, SourceError>> = OnceLock::new();
    LIBRARY.get_or_init(|| load(std::env::var_os(OVERRIDE))).as_ref().map_err(Clone::clone)
}

fn load(chosen: Option<OsString>) -> Result<Libclang, SourceError> {
    let candidates: Vec<PathBuf> = match &chosen {
        Some(path) if Path::new(path).is_dir() => SONAMES.iter().map(|name| Path::new(path).join(name)).collect(),
        Some(path) => vec![PathBuf::from(path)],
        // A bare name goes through ldconfig's cache and LD_LIBRARY_PATH.
        None => FOLDERS
            .iter()
            .flat_map(|folder| SONAMES.iter().map(move |name| Path::new(folder).join(name)))
            .filter(|path| path.exists())
            .chain(SONAMES.iter().map(PathBuf::from))
            .collect(),
    };
    let mut tried = Vec::new();
    for path in candidates {
        match Libclang::open(&path) {
            Ok(library) => return Ok(library),
            Err(reason) => tried.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(SourceError::NoLibclang { tried })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_together_with_the_package_to_install() {
        let Err(error) = load(Some("/nowhere/libclang-19.so.1".into())) else { panic!("loaded from nowhere") };
        let text = error.to_string();
        assert!(text.contains("/nowhere/libclang-19.so.1"), "{text}");
        assert!(text.contains("libclang1-19"), "{text}");
        assert!(text.contains("CAULK_LIBCLANG"), "{text}");
    }
}
