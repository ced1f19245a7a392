//! What repair needs from outside: the text of functions, and programs built from patched text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use caulk_analysis::Doubt;
use caulk_source::FunctionSource;

use crate::survey::{Spot, Survey};

/// A program after a patch.
#[derive(Debug)]
pub struct Rebuilt {
    pub survey: Survey,
    /// Warnings of the units that were compiled again, before and after, without their positions.
    pub warnings_before: Vec<String>,
    pub warnings_after: Vec<String>,
}

/// Calls that release, and what speaks against each.
pub type Doubts = BTreeMap<Spot, BTreeSet<Doubt>>;

/// Compiles and analyses. The command line provides it, because only it knows the compiler.
pub trait Workshop {
    /// The function at a line of a file, in the text as patched so far.
    fn function_at(&self, file: &str, line: u32, patched: &[(PathBuf, Vec<u8>)]) -> Result<FunctionSource, String>;

    /// The definition of a function of the program.
    fn function_named(&self, name: &str, patched: &[(PathBuf, Vec<u8>)]) -> Option<FunctionSource>;

    /// The same of a function with code that depends on the configuration.
    fn varying_function(&self, name: &str, patched: &[(PathBuf, Vec<u8>)]) -> Option<FunctionSource> {
        self.function_named(name, patched)
    }

    /// The file that the compiler reads and that is made from this one: a patch takes effect once it is made again.
    fn made_from(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// From now on these functions, and no others, are worth more work: more of their paths are told apart.
    fn look_closer(&self, _functions: &BTreeSet<String>) {}

    /// What a look at nothing but the changed function tells of the program with these files replaced, beside the one
    /// with those of `before`: warnings, and of that function the findings and releases. It may only be used to refuse;
    /// nothing, if it cannot be told like that.
    fn look(&self, _before: &[(PathBuf, Vec<u8>)], _patched: &[(PathBuf, Vec<u8>)]) -> Result<Option<Rebuilt>, String> {
        Ok(None)
    }

    /// The releases of the changed function, for one who takes nothing for granted, and what speaks against each. It may
    /// only be used to refuse; nothing, if it cannot be told like that.
    fn look_warily(
        &self,
        _before: &[(PathBuf, Vec<u8>)],
        _patched: &[(PathBuf, Vec<u8>)],
    ) -> Result<Option<Doubts>, String> {
        Ok(None)
    }

    /// The program with these files replaced, or why there is none.
    fn rebuild(&self, patched: &[(PathBuf, Vec<u8>)]) -> Result<Rebuilt, String>;
}
