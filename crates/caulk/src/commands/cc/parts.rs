//! What went into a program, as the linker tells it: units that carry their bitcode, and everything else.
//!
//! Of the rest only one thing matters: a name that it defines is not the library's. An object of another compiler that
//! brings its own `strchr` may keep what it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use caulk_instrument::{Carried, Member, carried, defined, read_archive};

/// A unit, and the object it stands for.
pub(super) struct Input {
    /// An object, or an archive and the member's name.
    pub(super) path: PathBuf,
    pub(super) member: Option<String>,
    pub(super) unit: Carried,
}

#[derive(Default)]
pub(super) struct Parts {
    pub(super) inputs: Vec<Input>,
    /// Names that parts without bitcode define.
    pub(super) foreign: BTreeSet<String>,
}

/// The C library and what compilers add: there the models hold. A sanitizer's `malloc` is still `malloc`.
const SYSTEM: &[&str] = &[
    "libc.",
    "libc_nonshared.",
    "libm.",
    "libm-",
    "libmvec",
    "libpthread.",
    "libdl.",
    "librt.",
    "libutil.",
    "libresolv.",
    "ld-linux",
    "libgcc",
    "libclang_rt.",
    "libasan",
    "libtsan",
    "libubsan",
    "liblsan",
    "crt",
    "Scrt1.",
    "gcrt1.",
];

/// A shared library with all of these is another allocator, under the same contract.
const ALLOCATOR: &[&str] = &["malloc", "calloc", "realloc", "free"];
const ALLOCATORS_MORE: &[&str] =
    &["reallocarray", "aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc", "malloc_usable_size"];

impl Parts {
    /// From the linker's `--trace`: one file on each line.
    pub(super) fn gather(trace: &str) -> Parts {
        let mut parts = Parts::default();
        let mut archives: BTreeMap<PathBuf, Option<Vec<Member>>> = BTreeMap::new();
        for line in trace.lines() {
            match member_of(line) {
                Some((archive, member)) => {
                    let path = PathBuf::from(archive);
                    if is_system(&path) {
                        continue;
                    }
                    let members = archives
                        .entry(path.clone())
                        .or_insert_with(|| read_archive(&std::fs::read(&path).unwrap_or_default()));
                    let named: Vec<&Member> = members.iter().flatten().filter(|found| found.name == member).collect();
                    // Two members of one name cannot be told apart here: they stay as they are.
                    match named[..] {
                        [found] => parts.add(&path, Some(member), &found.data),
                        _ => named.iter().for_each(|found| parts.foreign.extend(defined(&found.data))),
                    }
                }
                None if line.ends_with(".a") => {}
                None => {
                    let path = Path::new(line);
                    if !is_system(path) {
                        parts.add(path, None, &std::fs::read(path).unwrap_or_default());
                    }
                }
            }
        }
        parts
    }

    fn add(&mut self, path: &Path, member: Option<&str>, bytes: &[u8]) {
        // An object made of several cannot be exchanged in part.
        if let [unit] = &carried(bytes)[..] {
            self.inputs.push(Input { path: path.to_owned(), member: member.map(str::to_owned), unit: unit.clone() });
            return;
        }
        let mut names: BTreeSet<String> = defined(bytes).into_iter().collect();
        if is_shared(path) && ALLOCATOR.iter().all(|name| names.contains(*name)) {
            names.retain(|name| !ALLOCATOR.contains(&name.as_str()) && !ALLOCATORS_MORE.contains(&name.as_str()));
        }
        self.foreign.append(&mut names);
    }
}

/// `(lib.a)b.o` as GNU's linkers write it, `lib.a(b.o)` as LLVM's does.
fn member_of(line: &str) -> Option<(&str, &str)> {
    let gnu = line.strip_prefix('(').and_then(|line| line.rsplit_once(')'));
    gnu.or_else(|| line.strip_suffix(')')?.rsplit_once('('))
}

/// By its name, and where only the system's own files lie: a project may have a `libc.a`, too.
fn is_system(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.is_absolute() && SYSTEM.iter().any(|known| name.starts_with(known))
}

fn is_shared(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(".so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_kinds_of_linkers_are_understood() {
        assert_eq!(member_of("(lib/x.a)b.o"), Some(("lib/x.a", "b.o")));
        assert_eq!(member_of("lib/x.a(b.o)"), Some(("lib/x.a", "b.o")));
        assert_eq!(member_of("b.o"), None);
    }

    #[test]
    fn only_the_systems_own_libraries_are_as_the_models_say() {
        assert!(is_system(Path::new("/lib/x86_64-linux-gnu/libc.so.6")));
        assert!(is_system(Path::new("/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.asan-x86_64.a")));
        assert!(!is_system(Path::new("build/libc.a")));
        assert!(!is_system(Path::new("/usr/lib/libssl.so.3")));
    }
}
