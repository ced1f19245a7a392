//! The vocabulary of models.

use std::sync::Arc;

use caulk_base::{FxHashMap, IdVec, define_id};

use crate::builtin::Libraries;

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
    /// The resource lives inside a struct of the caller's (`regex_t`, `z_stream`): its identity is that
    /// struct's address, and a model names the argument that points to it: `Place::Arg`.
    pub is_inline: bool,
    /// Blocks of this family may also be released by that one's functions, and the other way round:
    /// `g_free` is `free`. Ask [`Models::compatible`].
    pub same_as: Option<FamilyId>,
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
    /// Only if this argument is null: `realpath(path, NULL)` allocates.
    ArgNull(u32),
    ArgNotNull(u32),
    /// Unless the caller has put something there, at so many bytes of what the argument points to: a pool that the memory
    /// is taken from, and goes with (`z_stream.opaque`).
    Unless(u32, i64),
}

/// One thing a function does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A new resource appears at `place` when the function succeeds and `when` holds besides; with `OnFailure`,
    /// when it fails (a `GError`). An out-parameter that is null receives nothing.
    /// `zeroed`: its contents are zero (`calloc`), otherwise unknown. For an inline family the resource is
    /// what `place` points to.
    Allocates { family: FamilyId, place: Place, when: Condition, zeroed: bool },
    /// The resource at `place` is released. Null is always allowed unless `null_ok` is false.
    Releases { family: FamilyId, place: Place, when: Condition, null_ok: bool },
    /// `realloc`: releases `arg` and returns a new block on success; on failure `arg` is untouched.
    /// `frees_on_failure`: `reallocf`.
    Reallocates { family: FamilyId, arg: u32, frees_on_failure: bool },
    /// `getline`: the block at `place`, or null, is exchanged there for a block of the same family,
    /// whether the function succeeds or not; it is still the caller's.
    Replaces { family: FamilyId, place: Place },
    /// One more reference is held on the resource at `place` (`g_object_ref`): it takes one more release.
    Retains { family: FamilyId, place: Place },
    /// The function keeps or takes over `place`: the caller is no longer its owner.
    Takes { place: Place, when: Condition },
    /// `arg` becomes reachable from what `into` points to (an argument, or the result), and lives as long as that.
    Stores { arg: u32, into: Place, when: Condition },
    /// `place` now points somewhere into what `into` points to, or is null: an alias, no owner (`strtol`, `strsep`).
    Points { place: Place, into: Place },
    /// `place` is null afterwards (`g_clear_error`): it is set so after all other effects.
    Clears { place: Place },
    /// Bytes, and with them pointers, are copied from what `from` points to into what `to` points to (`memcpy`).
    Copies { from: u32, to: u32 },
    /// Writes unknown data through the argument (`fread`, `scanf`): the numbers in there are no longer known.
    /// Pointers that were in there may be there still: nothing is lost by this. `nonzero`: a number that is not 0.
    Writes { arg: u32, nonzero: bool },
    /// As many bytes as the argument `size` says become 0 (`explicit_bzero`).
    Zeroes { arg: u32, size: u32 },
    /// The bytes that `arg` points to, as many as the argument `size` says, go to somebody who may find pointers among
    /// them (`write`). `depth`: they lie behind so many pointers (`writev`: 1).
    Sends { arg: u32, size: Option<u32>, depth: u8 },
    /// As `Writes`, for every argument from this one on (`sscanf`).
    WritesRest { from: u32 },
    /// Calls the function pointer in `function` with `data` as one of its arguments, during the call.
    Calls { function: u32, data: Option<u32> },
    /// Releases whatever there is of a family, by other names than their holders have (`closefrom`). `place`: only what
    /// has this number, which is somebody's where it was come by as a descriptor, and anybody's where it was worked out
    /// (`dup2(null, i)`); the result where there is no such condition.
    Sweeps { family: FamilyId, place: Place },
    /// Keeps function pointer and data for later (`atexit`, `pthread_create`, `signal`).
    Registers { function: u32, data: Option<u32> },
}

impl Effect {
    /// Does it say something of this argument, or of what that leads to?
    pub fn is_about(&self, argument: u32) -> bool {
        let at = |place: &Place| match place {
            Place::Return => false,
            Place::Arg(arg) | Place::Deref(arg) | Place::Field(arg, _) => *arg == argument,
        };
        match self {
            Effect::Allocates { place, .. }
            | Effect::Releases { place, .. }
            | Effect::Replaces { place, .. }
            | Effect::Retains { place, .. }
            | Effect::Takes { place, .. }
            | Effect::Clears { place } => at(place),
            Effect::Reallocates { arg, .. }
            | Effect::Writes { arg, .. }
            | Effect::Zeroes { arg, .. }
            | Effect::Sends { arg, .. } => *arg == argument,
            Effect::Stores { arg, into, .. } => *arg == argument || at(into),
            Effect::Points { place, into } => at(place) || at(into),
            Effect::Copies { from, to } => *from == argument || *to == argument,
            Effect::WritesRest { from } => argument >= *from,
            Effect::Calls { function, data } | Effect::Registers { function, data } => {
                *function == argument || *data == Some(argument)
            }
            Effect::Sweeps { place, .. } => at(place),
        }
    }
}

/// What the function returns. A pointer of which nothing is said may be anything, also something to release.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReturnModel {
    /// Value on failure, where there is one: `Some(0)` for null, `Some(-1)`. Success is any other value.
    pub fails: Option<i64>,
    /// Failure is every non-zero value (`pthread_*`, `getaddrinfo`), success is 0.
    pub fails_nonzero: bool,
    /// Failure is every negative value.
    pub fails_negative: bool,
    /// Failure is 0 and every negative value, success is 1 (OpenSSL).
    pub fails_nonpositive: bool,
    /// Returns this argument itself (`strcpy`, `memcpy`), possibly null on failure.
    pub argument: Option<u32>,
    /// Returns a pointer into what this argument points to, or null (`strchr`, `strstr`).
    pub interior: Option<u32>,
    /// Returns a pointer into what this argument's target points to, or null (`strsep`).
    pub interior_deref: Option<u32>,
    /// Returns memory owned by the library or the system (`getenv`, `localtime`): never to be released.
    pub borrowed: bool,
    /// Never returns null (`xmalloc`-like, `strerror`).
    pub nonnull: bool,
    /// Success is 0, whatever failure is (`pipe`).
    pub zero: bool,
    /// Never returns a negative number (`snprintf`).
    pub nonnegative: bool,
    /// Returns a pointer to the number of the last error (`__errno_location`), which is never negative.
    pub error_number: bool,
    /// The result depends on the arguments and the memory they reach alone, and is the same each time.
    pub pure: bool,
    /// Each call takes the next of what there is (`read`, `getc`, `rand`): no two calls tell the same.
    pub draws: bool,
    /// Does not come back (`exit`, `abort`, `longjmp`).
    pub never: bool,
    /// Does not come back if this argument is not zero (`error(1, …)`).
    pub never_if_nonzero: Option<u32>,
    /// Returns the number of this argument, a stream: 0, 1 or 2 for the standard ones (`fileno`).
    pub number_of: Option<u32>,
    /// Comes back twice (`setjmp`, `vfork`).
    pub twice: bool,
    /// Succeeds where this argument is a literal: whoever wrote it down knows that it is a good one (`inet_pton`).
    pub sure: Option<u32>,
}

/// What a call means for the course of the process, to someone who asks whether it is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Waits for somebody, asks, or starts something (`fgets`, `accept`, `fork`): the process goes on.
    Waits,
    /// Takes something in (`read`, `opendir`), as even those may do who are leaving.
    Reads,
    /// Does not come back, and the process goes on elsewhere (`longjmp`).
    Jumps,
    /// As `Waits`: another thread runs from now on.
    BeginsThread,
    EndsThread,
    /// Another program may take the place of this one, and gets what is open (`execv`).
    Replaced,
}

/// Where a model was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `libc`, `posix`, … or the path of the user's file.
    pub file: Arc<str>,
    pub line: u32,
}

impl Origin {
    /// From the user's own file, not built in.
    pub fn is_user(&self) -> bool {
        self.file.ends_with(".toml")
    }
}

/// All that is known of one library function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionModel {
    pub name: String,
    pub effects: Vec<Effect>,
    /// Arguments that must not be null: the program crashes otherwise.
    pub needs: Vec<u32>,
    /// What lies in memory that it is given is of no use to it once it has returned (`qsort`).
    pub keeps_nothing: bool,
    /// The argument that says by which accesses the memory may be used: a write without `PROT_WRITE` ends the program.
    pub protection: Option<u32>,
    pub course: Option<Course>,
    pub returns: ReturnModel,
    pub origin: Origin,
}

/// All models of a run.
#[derive(Clone, Debug, Default)]
pub struct Models {
    pub families: IdVec<FamilyId, FamilySpec>,
    /// The user's, which come before those of the libraries.
    pub(crate) functions: FxHashMap<String, FunctionModel>,
    pub(crate) libraries: Option<&'static Libraries>,
}

impl Models {
    /// The model of a function. It holds only where the program has no body for it.
    pub fn get(&self, name: &str) -> Option<&FunctionModel> {
        self.functions.get(name).or_else(|| self.libraries?.get(name))
    }

    pub fn family(&self, name: &str) -> Option<FamilyId> {
        self.families.iter_ids().find(|(_, spec)| spec.name == name).map(|(id, _)| id)
    }

    /// Whether what one family allocates may be released by the other's functions.
    pub fn compatible(&self, one: FamilyId, other: FamilyId) -> bool {
        let root = |id| self.families.get(id).and_then(|spec| spec.same_as).unwrap_or(id);
        root(one) == root(other)
    }

    /// The names of all functions, in no order; a name may come twice.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let libraries = self.libraries.into_iter().flat_map(Libraries::names).map(|name| -> &str { name });
        self.functions.keys().map(String::as_str).chain(libraries)
    }

    /// Are those of the libraries among them?
    pub fn has_libraries(&self) -> bool {
        self.libraries.is_some()
    }

    /// Those that do not come with caulk, sorted by name.
    pub fn added(&self) -> Vec<&FunctionModel> {
        let mut all: Vec<_> = self.functions.values().collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// All models, sorted by name.
    pub fn sorted(&self) -> Vec<&FunctionModel> {
        let mut names: Vec<_> = self.names().collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.get(name)).collect()
    }
}
