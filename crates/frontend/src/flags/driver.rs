//! Knows compilers, archivers and linkers by their names.

use std::path::Path;

/// What a program of a build does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// A C compiler driver.
    C,
    /// A C++ compiler driver.
    Cpp,
    /// Runs the compiler named after it: `ccache`, `distcc`.
    Wrapper,
    Archiver,
    Linker,
}

/// A tool, and what its name says beyond that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    pub tool: Tool,
    /// `aarch64-linux-gnu` of `aarch64-linux-gnu-gcc`.
    pub target: Option<String>,
    /// `c99` of `c99`.
    pub standard: Option<&'static str>,
}

impl Driver {
    fn new(tool: Tool) -> Self {
        Self { tool, target: None, standard: None }
    }

    /// What clang must be told to read headers and sizes as this compiler does.
    pub(super) fn target_flags(&self, compiler: &str) -> Vec<String> {
        let Some(target) = &self.target else { return Vec::new() };
        let mut flags = vec![format!("--target={target}")];
        // A toolchain unpacked somewhere of its own brings its headers with it.
        let root = Path::new(compiler).parent().and_then(Path::parent).filter(|root| root.is_absolute());
        if let Some(root) = root.filter(|root| *root != Path::new("/usr") && *root != Path::new("/")) {
            let home = root.join(target);
            if let Some(place) =
                ["sysroot", "libc", ""].iter().map(|sub| home.join(sub)).find(|place| has_headers(place))
            {
                flags.push(format!("--gcc-toolchain={}", root.display()));
                flags.push(format!("--sysroot={}", place.display()));
                flags.extend(["-idirafter".to_owned(), place.join("include").display().to_string()]);
            }
        }
        flags
    }
}

fn has_headers(place: &Path) -> bool {
    place.join("usr/include").is_dir() || place.join("include").is_dir()
}

/// First parts of target triples: what stands before the first dash must be one of these, perhaps with more.
#[rustfmt::skip]
const ARCHITECTURES: &[&str] = &[
    "aarch64", "alpha", "arc", "arm", "avr", "bpf", "hppa", "i386", "i486", "i586", "i686", "ia64", "loongarch", "m68k",
    "microblaze", "mips", "msp430", "nios2", "or1k", "powerpc", "ppc", "riscv", "s390", "sh4", "sparc", "wasm", "x86_64",
    "xtensa",
];

/// The tool of that name or path, if it is one we know.
pub fn tool(program: &str) -> Option<Driver> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let name = without_version(name);
    if let Some(driver) = plain_tool(name) {
        return Some(driver);
    }
    // `arm-none-eabi-gcc`, `x86_64-linux-gnu-gcc-ar`: a tool's own name may have a dash too.
    if !ARCHITECTURES.iter().any(|architecture| name.starts_with(architecture)) {
        return None;
    }
    let (at, driver) = name.match_indices('-').find_map(|(at, _)| Some((at, plain_tool(&name[at + 1..])?)))?;
    Some(Driver { target: Some(name[..at].to_owned()), ..driver })
}

fn plain_tool(name: &str) -> Option<Driver> {
    let tool = match name {
        "cc" | "gcc" | "clang" | "musl-gcc" | "musl-clang" | "diet-gcc" | "icx" | "icc" | "tcc" => Tool::C,
        "c89" | "c89-gcc" => return Some(Driver { standard: Some("c89"), ..Driver::new(Tool::C) }),
        "c99" | "c99-gcc" => return Some(Driver { standard: Some("c99"), ..Driver::new(Tool::C) }),
        "c11" | "c11-gcc" => return Some(Driver { standard: Some("c11"), ..Driver::new(Tool::C) }),
        "g++" | "c++" | "clang++" | "gxx" => Tool::Cpp,
        "ccache" | "sccache" | "distcc" | "icecc" | "buildcache" | "colorgcc" | "pump" => Tool::Wrapper,
        "ar" | "gcc-ar" | "llvm-ar" => Tool::Archiver,
        "ld" | "ld.bfd" | "ld.gold" | "ld.lld" | "ld.mold" | "gold" | "lld" | "mold" => Tool::Linker,
        _ => return None,
    };
    Some(Driver::new(tool))
}

/// `gcc-12` is `gcc`, `clang-19.1` is `clang`.
fn without_version(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((front, version)) if !version.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '.') => {
            front
        }
        _ => name,
    }
}

/// Where the compiler's own name stands: behind `ccache`, `distcc`, or `libtool --mode=compile`.
pub fn compiler_index(words: &[String]) -> Option<usize> {
    let is_compiler = |word: &String| matches!(tool(word).map(|d| d.tool), Some(Tool::C | Tool::Cpp));
    let first = tool(words.first()?);
    match first.map(|driver| driver.tool) {
        Some(Tool::C | Tool::Cpp) => Some(0),
        // A wrapper's own settings come first (`ccache base_dir=/p gcc`).
        Some(Tool::Wrapper) => words.iter().position(is_compiler),
        Some(Tool::Archiver | Tool::Linker) => None,
        None => words.iter().take(8).position(is_compiler),
    }
}

/// The driver, the word that names it, and its arguments. A compiler of unknown name is taken for a C compiler.
pub(super) fn split(words: &[String]) -> (Driver, &str, &[String]) {
    let index = compiler_index(words).unwrap_or_else(|| {
        let wrapped = words.first().and_then(|word| tool(word)).is_some_and(|driver| driver.tool == Tool::Wrapper);
        usize::from(wrapped && words.len() > 1)
    });
    let Some(name) = words.get(index) else { return (Driver::new(Tool::C), "", &[]) };
    let driver = tool(name).unwrap_or(Driver::new(Tool::C));
    (driver, name, &words[index + 1..])
}
