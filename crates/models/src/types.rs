//! The vocabulary of models.

use caulk_base::{FxHashMap, IdVec, define_id};

define_id!(
    /// A family of resources: memory, files, descriptors, …
    FamilyId,
    "family"
);

/// Resources that are allocated and released by functions of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilySpec {
    /// `memory`, `file`, `descriptor`, `dir`, …
    pub name: String,
    /// Plain memory: reported as `memory-leak`; everything else as `resource-leak`.
    pub is_memory: bool,
    /// What people call one of them: "memory", "file stream", "descriptor".
    pub noun: String,
    /// The usual release function, for patches and messages: `free`, `fclose`.
    pub release: String,
    /// A descriptor-like handle: an integer, valid when ≥ 0. Otherwise a pointer, valid when not null.
    pub is_integer: bool,
    /// Using the handle after release is an error only if it reaches one of the family's functions,
    /// not for every dereference (true for integers).
    pub opaque: bool,
}

/// Where a model reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Return,
    /// An argument itself, from 0.
    Arg(u32),
    /// What an argument points to: `*argN`, an out-parameter.
    Deref(u32),
    /// A field, by byte offset, of what an argument points to.
    Field(u32, i64),
}

/// When an effect takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Condition {
    #[default]
    Always,
    /// Only if the function succeeds, as `ReturnModel` defines it.
    OnSuccess,
    OnFailure,
}

/// One thing a function does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A new resource appears at `place` when the function succeeds.
    Allocates { family: FamilyId, place: Place },
    /// The resource at `place` is released. Null is always allowed unless `null_ok` is false.
    Releases { family: FamilyId, place: Place, when: Condition, null_ok: bool },
    /// `realloc`: releases `arg` and returns a new block on success; on failure `arg` is untouched.
    /// `frees_on_failure`: `reallocf`.
    Reallocates { family: FamilyId, arg: u32, frees_on_failure: bool },
    /// The function keeps or takes over `place`: the caller is no longer its owner.
    Takes { place: Place, when: Condition },
    /// `arg` is stored into what `into` points to, and lives as long as that.
    Stores { arg: u32, into: u32, when: Condition },
    /// Writes unknown data through the argument (`fread`, `scanf`): its contents are no longer known.
    Writes { arg: u32 },
    /// Calls the function pointer in `function` with `data` as one of its arguments, during the call.
    Calls { function: u32, data: Option<u32> },
    /// Keeps function pointer and data for later (`atexit`, `pthread_create`, `signal`).
    Registers { function: u32, data: Option<u32> },
}

/// What the function returns.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReturnModel {
    /// Value on failure, where there is one: `Some(0)` for null, `Some(-1)`. Success is any other value.
    pub fails: Option<i64>,
    /// Failure is every non-zero value (`pthread_*`, `getaddrinfo`), success is 0.
    pub fails_nonzero: bool,
    /// Failure is every negative value.
    pub fails_negative: bool,
    /// Returns this argument itself (`strcpy`, `memcpy`), possibly null on failure.
    pub argument: Option<u32>,
    /// Returns a pointer into what this argument points to, or null (`strchr`, `strstr`).
    pub interior: Option<u32>,
    /// Returns memory owned by the library or the system (`getenv`, `localtime`): never to be released.
    pub borrowed: bool,
    /// Never returns null (`xmalloc`-like, `strerror`).
    pub nonnull: bool,
    /// The result depends on the arguments and the memory they reach alone, and is the same each time.
    pub pure: bool,
    /// Does not come back (`exit`, `abort`, `longjmp`).
    pub never: bool,
    /// Comes back twice (`setjmp`, `vfork`).
    pub twice: bool,
}

/// Where a model was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `libc`, `posix`, … or the path of the user's file.
    pub file: String,
    pub line: u32,
}

/// All that is known of one library function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionModel {
    pub name: String,
    pub effects: Vec<Effect>,
    pub returns: ReturnModel,
    pub origin: Origin,
}

/// All models of a run.
#[derive(Clone, Debug, Default)]
pub struct Models {
    pub families: IdVec<FamilyId, FamilySpec>,
    pub(crate) functions: FxHashMap<String, FunctionModel>,
}

impl Models {
    pub fn get(&self, name: &str) -> Option<&FunctionModel> {
        self.functions.get(name)
    }

    pub fn family(&self, name: &str) -> Option<FamilyId> {
        self.families.iter_ids().find(|(_, spec)| spec.name == name).map(|(id, _)| id)
    }

    /// All models, sorted by name.
    pub fn sorted(&self) -> Vec<&FunctionModel> {
        let mut all: Vec<_> = self.functions.values().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}
