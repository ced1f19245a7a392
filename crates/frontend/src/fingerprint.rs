//! What a cached unit depends on in caulk itself: the shape of the IR, and how bitcode becomes it.
//!
//! The sources that decide it are part of the key, so that a changed caulk never reads what an older one wrote, and
//! nobody has to remember to count a version up.

use caulk_base::{ContentHash, Hasher};

const SOURCES: &[(&str, &[u8])] = &[
    ("base/src/store.rs", include_bytes!("../../base/src/store.rs")),
    ("ir/src/types.rs", include_bytes!("../../ir/src/types.rs")),
    ("ir/src/unit.rs", include_bytes!("../../ir/src/unit.rs")),
    ("frontend/cpp/attributes.cpp", include_bytes!("../cpp/attributes.cpp")),
    ("frontend/cpp/bytes.h", include_bytes!("../cpp/bytes.h")),
    ("frontend/cpp/calls.cpp", include_bytes!("../cpp/calls.cpp")),
    ("frontend/cpp/debug_info.cpp", include_bytes!("../cpp/debug_info.cpp")),
    ("frontend/cpp/debug_info.h", include_bytes!("../cpp/debug_info.h")),
    ("frontend/cpp/function.cpp", include_bytes!("../cpp/function.cpp")),
    ("frontend/cpp/function.h", include_bytes!("../cpp/function.h")),
    ("frontend/cpp/instructions.cpp", include_bytes!("../cpp/instructions.cpp")),
    ("frontend/cpp/module.cpp", include_bytes!("../cpp/module.cpp")),
    ("frontend/cpp/module.h", include_bytes!("../cpp/module.h")),
    ("frontend/cpp/plugin/plugin.cpp", include_bytes!("../cpp/plugin/plugin.cpp")),
    ("frontend/cpp/plugin/prototypes.cpp", include_bytes!("../cpp/plugin/prototypes.cpp")),
    ("frontend/cpp/plugin/prototypes.h", include_bytes!("../cpp/plugin/prototypes.h")),
    ("frontend/cpp/shim.cpp", include_bytes!("../cpp/shim.cpp")),
    ("frontend/src/bitcode.rs", include_bytes!("bitcode.rs")),
    ("frontend/src/bitcode/decode.rs", include_bytes!("bitcode/decode.rs")),
    ("frontend/src/bitcode/decode/op.rs", include_bytes!("bitcode/decode/op.rs")),
    ("frontend/src/bitcode/plugin.rs", include_bytes!("bitcode/plugin.rs")),
    ("frontend/src/bitcode/reader.rs", include_bytes!("bitcode/reader.rs")),
    ("frontend/src/cache.rs", include_bytes!("cache.rs")),
    ("frontend/src/clang/mod.rs", include_bytes!("clang/mod.rs")),
    ("frontend/src/clang/repair.rs", include_bytes!("clang/repair.rs")),
    ("frontend/src/load.rs", include_bytes!("load.rs")),
    ("frontend/src/macros.rs", include_bytes!("macros.rs")),
];

/// Changes with every source that decides what lies in a cache.
pub fn fingerprint() -> ContentHash {
    let mut hasher = Hasher::new();
    for (name, text) in SOURCES {
        hasher.field(name).field(text);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }

    #[test]
    fn every_source_of_the_lowering_counts() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = vec![crates.join("frontend/src/bitcode.rs")];
        walk(&crates.join("frontend/cpp"), &mut files);
        walk(&crates.join("frontend/src/bitcode"), &mut files);
        for file in files {
            let name = file.strip_prefix(crates).unwrap().to_str().unwrap();
            assert!(SOURCES.iter().any(|(known, _)| *known == name), "{name} is missing in SOURCES");
        }
    }
}
