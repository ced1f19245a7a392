//! Reads families and functions from TOML.
//!
//! One line is one function; a key is one kind of effect, its value one phrase (see `phrase.rs`) or an array of
//! them. The same form serves the built-in files and, under `[models]`, the user's `caulk.toml`:
//!
//! ```text
//! [families]
//! file = { noun = "file stream", release = "fclose", handle = "opaque" }
//!
//! [functions]
//! fopen    = { allocates = "file", fails = "null" }             # the result is a new one
//! asprintf = { allocates = "memory at *0", fails = -1 }         # an out-parameter
//! fclose   = { releases = "file, not null" }                    # argument 0, which must not be null
//! realloc  = { reallocates = "memory", fails = "null" }
//! fdopen   = { allocates = "file", takes = "0 on success", fails = "null" }
//! setvbuf  = { stores = "1 into 0" }
//! strlen   = { needs = 0, pure = true }
//! puts     = {}                                                  # only looks at what it is given
//! __strdup = { like = "strdup" }
//! ```
//!
//! | key | phrases |
//! | --- | --- |
//! | `allocates` | FAMILY [`at` PLACE] [WHEN]; the place is `return` unless said |
//! | `zeroed` | true: what it allocates is filled with zeros |
//! | `releases` | FAMILY [`at` PLACE] [WHEN] [`, not null`]; the place is argument 0 unless said |
//! | `reallocates` | FAMILY [`at` PLACE] [`, frees on failure`]; with `*N`, the block there is exchanged |
//! | `retains` | FAMILY [`at` PLACE]: one more reference is counted |
//! | `takes` | PLACE [WHEN]: keeps or takes over |
//! | `stores` | N `into` PLACE [WHEN] |
//! | `points` | PLACE `into` PLACE: an alias into the same block |
//! | `clears` | PLACE: null afterwards |
//! | `copies` | N `into` N: bytes and the pointers among them |
//! | `writes` | N, or `N..` for all from there: unknown data comes in; N`, not 0`: a number |
//! | `zeroes` | N `for` N: this many bytes become 0 |
//! | `sends` | N [`for` N]: bytes go to somebody, and with them pointers; `*N`: those that the pointers there lead to |
//! | `sweeps` | FAMILY [`at` N]: releases what there is of it, whoever has it (`closefrom`); `at`: if that number was worked out |
//! | `calls`, `registers` | N [`with` N]: a callback, during the call or later, and its data |
//! | `keeps` | `nothing`: what lies in memory that it is given is of no use to it once it has returned |
//! | `needs` | N: this argument must not be null, or the program crashes |
//! | `protection` | N: this argument has the bit `PROT_WRITE` or not; who writes without it crashes |
//! | `sure` | N: where this argument is a string literal, it does not fail |
//! | `returns` | `N`, `into N`, `into *N`, `borrowed`, `nonnull`, `nonnegative`, `errno` (the last error's number lies there), `zero` (on success), `never`, `never if N` (is not 0), `twice`, `number N` (of a stream); several are alternatives |
//! | `fails` | `null`, `negative`, `nonpositive`, `nonzero`, or a number: the result that means failure |
//! | `pure` | true: same arguments and memory, same result |
//! | `draws` | true: each call takes the next of what there is (`read`, `getc`, `rand`), so that no two are the same |
//! | `course` | what becomes of the process: it `waits`, `reads`, `jumps`, `begins a thread`, `ends the thread`, or `is replaced` (`execv`) |
//! | `like` | the name of another function; stands alone |
//!
//! # Invariants
//! - A file with an error changes nothing: it is read whole or not at all.
//! - Argument numbers are below 128; families and `like` names exist.

use std::sync::Arc;

use caulk_base::{FxHashMap, IdVec};
use toml::Spanned;
use toml::de::DeValue;

use crate::document::{ConfigError, ConfigErrors, Document, Section, integer, join, nearest};
use crate::phrase::{Unexpected, Words};
use crate::types::{Course, Effect, FamilyId, FamilySpec, FunctionModel, Models, Origin, Place, ReturnModel};

const FAMILY_KEYS: &[&str] = &["noun", "release", "handle", "memory", "same-as"];
const HANDLES: &[&str] = &["pointer", "opaque", "integer", "inline"];
const FUNCTION_KEYS: &[&str] = &[
    "allocates",
    "zeroed",
    "releases",
    "reallocates",
    "retains",
    "takes",
    "stores",
    "points",
    "clears",
    "copies",
    "writes",
    "zeroes",
    "sends",
    "sweeps",
    "calls",
    "registers",
    "keeps",
    "needs",
    "protection",
    "sure",
    "returns",
    "fails",
    "pure",
    "draws",
    "course",
    "like",
];
const COURSES: &[(&str, Course)] = &[
    ("waits", Course::Waits),
    ("reads", Course::Reads),
    ("jumps", Course::Jumps),
    ("begins a thread", Course::BeginsThread),
    ("ends the thread", Course::EndsThread),
    ("is replaced", Course::Replaced),
];
const FAILS: &[&str] = &["null", "negative", "nonpositive", "nonzero"];
const RETURNS: &[&str] = &["borrowed", "nonnull", "nonnegative", "errno", "zero", "never", "twice", "number", "into"];

/// Adds the `families` and `functions` of one section to the models.
pub(crate) fn read(models: &mut Models, document: &Document<'_>, section: &Section<'_>) -> Result<(), ConfigErrors> {
    let mut errors = Vec::new();
    if let Err(ConfigErrors(unknown)) = section.expect_keys(&["families", "functions"]) {
        errors.extend(unknown);
    }
    let mut families = models.families.clone();
    match section.section("families") {
        Ok(Some(section)) => errors.extend(read_families(&mut families, &section)),
        Ok(None) => {}
        Err(error) => errors.push(error),
    }
    let mut functions = Vec::new();
    match section.section("functions") {
        Ok(Some(section)) => {
            let (read, wrong) = read_functions(&families, models, document, &section);
            functions = read;
            errors.extend(wrong);
        }
        Ok(None) => {}
        Err(error) => errors.push(error),
    }
    if errors.is_empty() {
        models.families = families;
        models.functions.extend(functions.into_iter().map(|model| (model.name.clone(), model)));
        return Ok(());
    }
    errors.sort();
    Err(ConfigErrors(errors))
}

type Families = IdVec<FamilyId, FamilySpec>;

/// Adds the families of a table; errors come back.
pub(crate) fn read_families(families: &mut Families, section: &Section<'_>) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    for name in section.keys() {
        match section.section(name) {
            Ok(Some(table)) => {
                if let Err(ConfigErrors(wrong)) = read_family(families, name, &table) {
                    errors.extend(wrong);
                }
            }
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    errors
}

fn read_family(families: &mut Families, name: &str, table: &Section<'_>) -> Result<(), ConfigErrors> {
    table.expect_keys(FAMILY_KEYS)?;
    let handle = table.string("handle")?.unwrap_or("pointer");
    if !HANDLES.contains(&handle) {
        return Err(table.unknown("handle", "handle", handle, HANDLES).into());
    }
    let same_as = match table.string("same-as")? {
        Some(other) => Some(family_id(families, other).ok_or_else(|| {
            let known: Vec<_> = families.iter().map(|family| family.name.as_str()).collect();
            table.unknown("same-as", "family", other, &known)
        })?),
        None => None,
    };
    let Some(release) = table.string("release")? else {
        return Err(table.error("release", "a family needs `release`, the function that releases it").into());
    };
    let spec = FamilySpec {
        name: name.to_owned(),
        is_memory: table.boolean("memory")?.unwrap_or(false),
        noun: table.string("noun")?.unwrap_or(name).to_owned(),
        release: release.to_owned(),
        is_integer: handle == "integer",
        opaque: matches!(handle, "integer" | "opaque" | "inline"),
        is_inline: handle == "inline",
        same_as,
    };
    match family_id(families, name) {
        Some(id) => families[id] = spec,
        None => {
            families.push(spec);
        }
    }
    Ok(())
}

fn family_id(families: &Families, name: &str) -> Option<FamilyId> {
    families.iter_ids().find(|(_, spec)| spec.name == name).map(|(id, _)| id)
}

/// The functions of a table, in the order of their names, and the errors. `models` is what `like` may name besides.
pub(crate) fn read_functions(
    families: &Families,
    models: &Models,
    document: &Document<'_>,
    section: &Section<'_>,
) -> (Vec<FunctionModel>, Vec<ConfigError>) {
    let mut reader = Reader {
        families,
        models,
        document,
        file: Arc::from(document.file()),
        functions: Vec::new(),
        likes: Vec::new(),
        errors: Vec::new(),
    };
    reader.functions(section);
    reader.resolve_likes();
    (reader.functions, reader.errors)
}

struct Reader<'r> {
    families: &'r Families,
    models: &'r Models,
    document: &'r Document<'r>,
    file: Arc<str>,
    functions: Vec<FunctionModel>,
    likes: Vec<Like>,
    errors: Vec<ConfigError>,
}

/// `like` waits until all functions of the file are known.
struct Like {
    name: String,
    of: String,
    error: ConfigError,
}

impl Reader<'_> {
    fn functions(&mut self, section: &Section<'_>) {
        for (key, value) in section.table() {
            let name = key.get_ref().as_ref();
            let DeValue::Table(table) = value.get_ref() else {
                self.errors.push(section.error(name, "must be a table: `{ … }`"));
                continue;
            };
            let mut model = FunctionModel {
                name: name.to_owned(),
                effects: Vec::new(),
                needs: Vec::new(),
                keeps_nothing: false,
                protection: None,
                course: None,
                returns: ReturnModel::default(),
                origin: Origin { file: Arc::clone(&self.file), line: self.document.line(&key.span()) },
            };
            let mut zeroed = false;
            let mut failed = false;
            // In the order of the line, so that effects are listed as they were written.
            let mut keys: Vec<_> = table.iter().collect();
            keys.sort_unstable_by_key(|(key, _)| key.span().start);
            for (key, value) in keys {
                let at = At { path: (section.path(), name), key };
                if let Err(error) = self.key(&mut model, &mut zeroed, &at, value, table.len()) {
                    self.errors.push(error);
                    failed = true;
                }
            }
            if zeroed {
                for effect in &mut model.effects {
                    if let Effect::Allocates { zeroed, .. } = effect {
                        *zeroed = true;
                    }
                }
            }
            if !failed {
                self.functions.push(model);
            }
        }
    }

    fn key(
        &mut self,
        model: &mut FunctionModel,
        zeroed: &mut bool,
        at: &At<'_>,
        value: &Spanned<DeValue<'_>>,
        keys: usize,
    ) -> Result<(), ConfigError> {
        match at.key.get_ref().as_ref() {
            "zeroed" => *zeroed = self.flag(at, value)?,
            "pure" => model.returns.pure = self.flag(at, value)?,
            "draws" => model.returns.draws = self.flag(at, value)?,
            "fails" => self.fails(&mut model.returns, at, value)?,
            "course" => model.course = Some(self.course(at, value)?),
            "like" if keys > 1 => return Err(self.error(at, value, "`like` must be the only key")),
            "like" => {
                let DeValue::String(of) = value.get_ref() else {
                    return Err(self.error(at, value, "must be the name of a function"));
                };
                let error = self.error(at, value, &format!("unknown function `{of}`"));
                self.likes.push(Like { name: model.name.clone(), of: of.to_string(), error });
            }
            key if !FUNCTION_KEYS.contains(&key) => {
                let mut error = self.document.error(&at.key.span(), at.path(), "unknown key");
                error.suggestion = nearest(key, FUNCTION_KEYS.iter().copied()).map(str::to_owned);
                return Err(error);
            }
            key => self.phrases(at, value, &mut |reader, phrase| reader.phrase(model, key, phrase))?,
        }
        Ok(())
    }

    /// Reads one phrase, a number standing for itself, or an array of either.
    fn phrases(
        &self,
        at: &At<'_>,
        value: &Spanned<DeValue<'_>>,
        read: &mut dyn FnMut(&Self, &str) -> Result<(), Wrong>,
    ) -> Result<(), ConfigError> {
        let result = match value.get_ref() {
            DeValue::String(phrase) => read(self, phrase),
            DeValue::Integer(number) => read(self, number.as_str()),
            DeValue::Array(items) => {
                for item in items {
                    if item.get_ref().is_array() {
                        return Err(self.error(at, item, "must be a phrase, not an array"));
                    }
                    self.phrases(at, item, read)?;
                }
                Ok(())
            }
            _ => return Err(self.error(at, value, "must be a string, a number or an array of them")),
        };
        result.map_err(|wrong| {
            let mut error = self.error(at, value, &wrong.message);
            error.suggestion = wrong.suggestion;
            error
        })
    }

    fn phrase(&self, model: &mut FunctionModel, key: &str, phrase: &str) -> Result<(), Wrong> {
        let (phrase, remark) = match phrase.split_once(',') {
            Some((phrase, remark)) => (phrase, remark.trim()),
            None => (phrase, ""),
        };
        let allowed: &[&str] = match key {
            "releases" => &["not null"],
            "reallocates" => &["frees on failure"],
            "writes" => &["not 0"],
            _ => &[],
        };
        if !remark.is_empty() && !allowed.contains(&remark) {
            let suggestion = nearest(remark, allowed.iter().copied()).map(str::to_owned);
            return Err(Wrong { message: format!("unknown remark `, {remark}`"), suggestion });
        }
        let words = &mut Words::new(phrase);
        let effect = match key {
            "allocates" => {
                let (family, place) = self.resource(words, Place::Return)?;
                Effect::Allocates { family, place, when: words.condition()?, zeroed: false }
            }
            "releases" => {
                let (family, place) = self.resource(words, Place::Arg(0))?;
                Effect::Releases { family, place, when: words.condition()?, null_ok: remark.is_empty() }
            }
            "reallocates" => match self.resource(words, Place::Arg(0))? {
                (family, Place::Arg(arg)) => Effect::Reallocates { family, arg, frees_on_failure: !remark.is_empty() },
                (family, place) => Effect::Replaces { family, place },
            },
            "retains" => {
                let (family, place) = self.resource(words, Place::Arg(0))?;
                Effect::Retains { family, place }
            }
            "takes" => Effect::Takes { place: words.place()?, when: words.condition()? },
            "stores" => {
                let arg = words.argument()?;
                words.into()?;
                Effect::Stores { arg, into: words.place()?, when: words.condition()? }
            }
            "points" => {
                let place = words.place()?;
                words.into()?;
                Effect::Points { place, into: words.place()? }
            }
            "clears" => Effect::Clears { place: words.place()? },
            "copies" => {
                let from = words.argument()?;
                words.into()?;
                Effect::Copies { from, to: words.argument()? }
            }
            "writes" => match phrase.trim().strip_suffix("..") {
                Some(first) => {
                    *words = Words::new(first);
                    Effect::WritesRest { from: words.argument()? }
                }
                None => Effect::Writes { arg: words.argument()?, nonzero: !remark.is_empty() },
            },
            "zeroes" => {
                let arg = words.argument()?;
                words.expect("for", &["for"])?;
                Effect::Zeroes { arg, size: words.argument()? }
            }
            "sends" => {
                let rest = phrase.trim_start_matches([' ', '*']);
                let depth = phrase.trim_start().len() - rest.len();
                *words = Words::new(rest);
                let arg = words.argument()?;
                let size = if words.accept("for") { Some(words.argument()?) } else { None };
                Effect::Sends { arg, size, depth: depth.min(4) as u8 }
            }
            "sweeps" => {
                let (family, place) = self.resource(words, Place::Return)?;
                Effect::Sweeps { family, place }
            }
            "calls" | "registers" => {
                let function = words.argument()?;
                let data = if words.accept("with") { Some(words.argument()?) } else { None };
                if key == "calls" { Effect::Calls { function, data } } else { Effect::Registers { function, data } }
            }
            "keeps" => {
                words.expect("nothing", &["nothing"])?;
                model.keeps_nothing = true;
                return Ok(words.end(&[])?);
            }
            "needs" => {
                model.needs.push(words.argument()?);
                return Ok(words.end(&[])?);
            }
            "protection" => {
                model.protection = Some(words.argument()?);
                return Ok(words.end(&[])?);
            }
            "sure" => {
                model.returns.sure = Some(words.argument()?);
                return Ok(words.end(&[])?);
            }
            _ => {
                returns(&mut model.returns, words)?;
                return Ok(words.end(&[])?);
            }
        };
        words.end(&["at", "on", "if", "unless", "into", "with"])?;
        model.effects.push(effect);
        Ok(())
    }

    /// FAMILY [`at` PLACE]
    fn resource(&self, words: &mut Words<'_>, usual: Place) -> Result<(FamilyId, Place), Wrong> {
        let name = words.next().unwrap_or("");
        let Some(family) = family_id(self.families, name) else {
            let known = self.families.iter().map(|family| family.name.as_str());
            let suggestion = nearest(name, known).map(str::to_owned);
            return Err(Wrong { message: format!("unknown family `{name}`"), suggestion });
        };
        Ok((family, if words.accept("at") { words.place()? } else { usual }))
    }

    fn fails(&self, returns: &mut ReturnModel, at: &At<'_>, value: &Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
        match value.get_ref() {
            DeValue::String(word) => match word.as_ref() {
                "null" => returns.fails = Some(0),
                "negative" => returns.fails_negative = true,
                "nonpositive" => returns.fails_nonpositive = true,
                "nonzero" => returns.fails_nonzero = true,
                word => {
                    let mut error = self.error(at, value, &format!("unknown value `{word}`"));
                    error.suggestion = nearest(word, FAILS.iter().copied()).map(str::to_owned);
                    return Err(error);
                }
            },
            number => match integer(number) {
                Some(number) => returns.fails = Some(number),
                None => {
                    return Err(self.error(
                        at,
                        value,
                        "must be `null`, `negative`, `nonpositive`, `nonzero` or a number",
                    ));
                }
            },
        }
        Ok(())
    }

    fn course(&self, at: &At<'_>, value: &Spanned<DeValue<'_>>) -> Result<Course, ConfigError> {
        let DeValue::String(word) = value.get_ref() else {
            return Err(self.error(at, value, "must be a word, such as `waits`"));
        };
        let known = COURSES.iter().find(|(name, _)| name == word);
        known.map(|(_, course)| *course).ok_or_else(|| {
            let mut error = self.error(at, value, &format!("unknown value `{word}`"));
            error.suggestion = nearest(word, COURSES.iter().map(|(name, _)| *name)).map(str::to_owned);
            error
        })
    }

    fn flag(&self, at: &At<'_>, value: &Spanned<DeValue<'_>>) -> Result<bool, ConfigError> {
        value.get_ref().as_bool().ok_or_else(|| self.error(at, value, "must be true or false"))
    }

    fn error(&self, at: &At<'_>, value: &Spanned<DeValue<'_>>, message: &str) -> ConfigError {
        self.document.error(&value.span(), at.path(), message)
    }

    /// Copies the models that `like` names; a chain of them is followed, a circle is an unknown function.
    fn resolve_likes(&mut self) {
        let likes = std::mem::take(&mut self.likes);
        let chains: FxHashMap<&str, &str> = likes.iter().map(|like| (like.name.as_str(), like.of.as_str())).collect();
        for like in &likes {
            let mut of = like.of.as_str();
            // More steps than there are likes means a circle.
            for _ in 0..likes.len() {
                of = chains.get(of).copied().unwrap_or(of);
            }
            let own = self.functions.iter().find(|model| model.name == of);
            let found = if chains.contains_key(of) { None } else { own.or_else(|| self.models.get(of)) };
            if let Some(found) = found.cloned() {
                if let Some(model) = self.functions.iter_mut().find(|model| model.name == like.name) {
                    let (name, origin) = (std::mem::take(&mut model.name), model.origin.clone());
                    *model = FunctionModel { name, origin, ..found };
                }
                continue;
            }
            let own = self.functions.iter().map(|model| model.name.as_str());
            let known = own.filter(|name| !chains.contains_key(*name)).chain(self.models.names());
            let mut error = like.error.clone();
            error.suggestion = nearest(of, known).map(str::to_owned);
            self.errors.push(error);
        }
    }
}

/// The key being read, and where.
struct At<'r> {
    /// The table of functions, and the function.
    path: (&'r str, &'r str),
    key: &'r Spanned<std::borrow::Cow<'r, str>>,
}

impl At<'_> {
    fn path(&self) -> String {
        join(&join(self.path.0, self.path.1), self.key.get_ref())
    }
}

/// What is wrong with a phrase; the place is added outside.
struct Wrong {
    message: String,
    suggestion: Option<String>,
}

impl From<Unexpected> for Wrong {
    fn from(unexpected: Unexpected) -> Self {
        let suggestion = unexpected.found.and_then(|word| nearest(&word, unexpected.known.iter().copied()));
        Self { message: unexpected.message, suggestion: suggestion.map(str::to_owned) }
    }
}

fn returns(returns: &mut ReturnModel, words: &mut Words<'_>) -> Result<(), Wrong> {
    if words.accept("borrowed") {
        returns.borrowed = true;
    } else if words.accept("nonnull") {
        returns.nonnull = true;
    } else if words.accept("zero") {
        returns.zero = true;
    } else if words.accept("nonnegative") {
        returns.nonnegative = true;
    } else if words.accept("errno") {
        returns.error_number = true;
    } else if words.accept("never") {
        match words.accept("if") {
            true => returns.never_if_nonzero = Some(words.argument()?),
            false => returns.never = true,
        }
    } else if words.accept("number") {
        returns.number_of = Some(words.argument()?);
    } else if words.accept("twice") {
        returns.twice = true;
    } else if words.accept("into") {
        match words.place()? {
            Place::Arg(argument) => returns.interior = Some(argument),
            Place::Deref(argument) => returns.interior_deref = Some(argument),
            _ => return Err(Wrong { message: "expected `into N` or `into *N`".to_owned(), suggestion: None }),
        }
    } else {
        let word = words.next().unwrap_or("");
        let Some(Place::Arg(argument)) = Words::new(word).place().ok() else {
            let suggestion = nearest(word, RETURNS.iter().copied()).map(str::to_owned);
            return Err(Wrong { message: format!("unknown value `{word}`"), suggestion });
        };
        if returns.argument.replace(argument).is_some() {
            return Err(Wrong { message: "names two arguments".to_owned(), suggestion: None });
        }
    }
    Ok(())
}
