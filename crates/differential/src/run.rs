//! Compiles a program with AddressSanitizer and runs it over all its inputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

const RUNNER: &str = include_str!("../data/runner.c");
const WRAPPED: [&str; 5] = ["malloc", "calloc", "realloc", "strdup", "free"];

/// The compiled runner, shared by all programs.
pub struct Runner {
    clang: String,
    folder: PathBuf,
}

/// One run: an input and a set of failing allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `ok`, `leak`, `double-free`, `use-after-free`, ….
    pub verdict: String,
    pub output: String,
}

/// What a program does, by input and mask of failing allocations.
pub type Behaviour = BTreeMap<(u32, u64), Outcome>;

impl Runner {
    pub fn new(clang: &str, folder: &Path) -> Result<Self> {
        let source = folder.join("runner.c");
        std::fs::write(&source, RUNNER).with_context(|| format!("writing {}", source.display()))?;
        let runner = Self { clang: clang.into(), folder: folder.into() };
        runner.compile(&source, &folder.join("runner.o"), &[])?;
        Ok(runner)
    }

    fn compile(&self, source: &Path, object: &Path, flags: &[&str]) -> Result<()> {
        self.compile_with(Command::new(&self.clang), source, object, flags)
    }

    fn compile_with(&self, mut compiler: Command, source: &Path, object: &Path, flags: &[&str]) -> Result<()> {
        let output = compiler
            .args(["-fsanitize=address", "-O0", "-w", "-c"])
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(object)
            .output()
            .with_context(|| format!("running {}", self.clang))?;
        if !output.status.success() {
            bail!("{} does not compile:\n{}", source.display(), String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// Compiles and links; an error if the program does not compile.
    pub fn build(&self, source: &Path) -> Result<PathBuf> {
        self.build_with(&|| Command::new(&self.clang), source, &[])
    }

    /// The same by `caulk cc`, with every allocation site guarded.
    pub fn guarded(&self, caulk: &Path, source: &Path, level: &'static str) -> Result<PathBuf> {
        let compiler = || {
            let mut command = Command::new(caulk);
            command.args(["cc", "--compiler", &self.clang, "--guard-everything"]);
            command
        };
        self.build_with(&compiler, source, &optimised(level))
    }

    /// What to compare a guarded program with.
    pub fn unguarded(&self, source: &Path, level: &'static str) -> Result<PathBuf> {
        self.build_with(&|| Command::new(&self.clang), source, &optimised(level))
    }

    fn build_with(&self, compiler: &dyn Fn() -> Command, source: &Path, flags: &[&str]) -> Result<PathBuf> {
        let object = source.with_extension("o");
        let flags = [&["-Dmain=program_main", "-DEXERCISE"], flags].concat();
        self.compile_with(compiler(), source, &object, &flags)?;
        let binary = source.with_extension("bin");
        let wraps = WRAPPED.map(|name| format!("-Wl,--wrap={name}"));
        let output = compiler()
            .arg("-fsanitize=address")
            .args(wraps)
            .args([&object, &self.folder.join("runner.o")])
            .arg("-o")
            .arg(&binary)
            .output()
            .context("linking")?;
        if !output.status.success() {
            bail!("{} does not link:\n{}", source.display(), String::from_utf8_lossy(&output.stderr));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("caulk: warning") {
            bail!("{} is not guarded:\n{said}", source.display());
        }
        let _ = std::fs::remove_file(&object);
        Ok(binary)
    }

    /// Runs a built program; `deep` tries all subsets of failing allocations.
    pub fn run(&self, binary: &Path, bits: usize, deep: bool) -> Result<Behaviour> {
        let mut command = Command::new(binary);
        command.arg(bits.to_string()).arg(binary.with_extension("out"));
        if deep {
            command.arg("deep");
        }
        let output = command.output().context("running a program")?;
        if !output.status.success() {
            bail!("the runner failed with {}", output.status);
        }
        let _ = std::fs::remove_file(binary.with_extension("out"));
        let text = String::from_utf8(output.stdout).context("the runner's output")?;
        let mut behaviour = Behaviour::new();
        for line in text.lines() {
            let mut fields = line.split(' ');
            let mut field = || fields.next().context("the runner's output is cut short");
            let (input, mask) = (field()?.parse()?, field()?.parse()?);
            let _allocations = field()?;
            let (verdict, output) = (field()?.to_string(), field()?.to_string());
            behaviour.insert((input, mask), Outcome { verdict, output });
        }
        Ok(behaviour)
    }
}

/// Clang must not leave allocations out: runs are told apart by which of them fail.
fn optimised(level: &'static str) -> [&'static str; 2] {
    [level, "-fno-builtin"]
}

/// Whether some run has an error.
pub fn has_errors(behaviour: &Behaviour) -> bool {
    behaviour.values().any(|outcome| outcome.verdict != "ok")
}

/// The kinds of errors in a behaviour, sorted.
pub fn error_kinds(behaviour: &Behaviour) -> Vec<String> {
    let mut kinds: Vec<String> =
        behaviour.values().map(|outcome| outcome.verdict.clone()).filter(|verdict| verdict != "ok").collect();
    kinds.sort();
    kinds.dedup();
    kinds
}
