//! The user's `caulk.toml`: what it can say, and what is said when it is wrong.

use caulk_models::{Document, Models, nearest};

#[track_caller]
fn error(text: &str, expected: &str) {
    let mut models = Models::builtin();
    let error = models.extend_from_toml(text, "caulk.toml").expect_err("should be refused");
    assert_eq!(error.to_string(), expected);
}

fn extended(text: &str) -> Models {
    let mut models = Models::builtin();
    models.extend_from_toml(text, "caulk.toml").unwrap_or_else(|errors| panic!("{errors}"));
    models
}

#[test]
fn user_models_add_and_override() {
    let models = extended(
        "[rules]\nmemory-leak = \"off\"\n\n[models.families]\npool = { noun = \"pool\", release = \"pool_drop\" }\n\n\
         [models.functions]\npool_make = { allocates = \"pool\", returns = \"nonnull\" }\n\
         pool_drop = { releases = \"pool\" }\nmy_open = { like = \"fopen\" }\nmy_open2 = { like = \"my_open\" }\n\
         free = {}\n",
    );
    let describe = |name: &str| models.get(name).map(|model| models.describe(model));
    assert_eq!(describe("pool_make").as_deref(), Some("pool_make: allocates pool; never null"));
    assert_eq!(describe("my_open2").as_deref(), Some("my_open2: allocates file stream; 0 or null on failure"));
    assert_eq!(describe("free").as_deref(), Some("free: only looks at its arguments"));
    assert_eq!(describe("malloc").as_deref(), Some("malloc: allocates memory; 0 or null on failure"));
    let origin = models.get("pool_drop").map(|model| (model.origin.file.to_string(), model.origin.line));
    assert_eq!(origin, Some(("caulk.toml".to_owned(), 9)));
    let sorted = models.sorted();
    assert!(sorted.is_sorted_by(|a, b| a.name < b.name));
    assert!(sorted.iter().any(|model| model.name == "pool_make"));
}

#[test]
fn a_file_without_models_changes_nothing() {
    assert_eq!(extended("[paths]\nexclude = [\"third_party\"]\n").sorted().len(), Models::builtin().sorted().len());
}

#[test]
fn errors_name_file_line_and_key_and_what_was_meant() {
    error(
        "[models.functions]\nmy_alloc = { alocates = \"memory\" }\n",
        "caulk.toml:2: models.functions.my_alloc.alocates: unknown key; did you mean `allocates`?",
    );
    error(
        "[models.functions]\nmy_alloc = { allocates = \"memori\" }\n",
        "caulk.toml:2: models.functions.my_alloc.allocates: unknown family `memori`; did you mean `memory`?",
    );
    error(
        "[models.functions]\nmy_alloc = { allocates = \"memory\", fails = \"nul\" }\n",
        "caulk.toml:2: models.functions.my_alloc.fails: unknown value `nul`; did you mean `null`?",
    );
    error(
        "[models.functions]\nmy_dup = { like = \"strdub\" }\n",
        "caulk.toml:2: models.functions.my_dup.like: unknown function `strdub`; did you mean `strdup`?",
    );
    error(
        "[models.functions]\nf = { takes = \"0 on sucess\" }\n",
        "caulk.toml:2: models.functions.f.takes: expected `success` or `failure`, found `sucess`; did you mean `success`?",
    );
    error(
        "[models.functions]\nf = { stores = \"1 in 0\" }\n",
        "caulk.toml:2: models.functions.f.stores: expected `into`, found `in`",
    );
    error(
        "[models.functions]\nf = { returns = \"nevr\" }\n",
        "caulk.toml:2: models.functions.f.returns: unknown value `nevr`; did you mean `never`?",
    );
    error(
        "[models.functions]\nf = { course = \"wait\" }\n",
        "caulk.toml:2: models.functions.f.course: unknown value `wait`; did you mean `waits`?",
    );
    error(
        "[models.functions]\nf = { takes = -1 }\n",
        "caulk.toml:2: models.functions.f.takes: expected a place: `0`, `*0`, `0+8` (argument, from 0) or `return`, \
         found `-1`",
    );
    error(
        "[models.families]\npool = { release = \"x\", handle = \"integr\" }\n",
        "caulk.toml:2: models.families.pool.handle: unknown handle `integr`; did you mean `integer`?",
    );
    error(
        "[models.families]\npool = { noun = \"pool\" }\n",
        "caulk.toml:2: models.families.pool.release: a family needs `release`, the function that releases it",
    );
    error("[models.function]\nf = {}\n", "caulk.toml:1: models.function: unknown key; did you mean `functions`?");
    error("models = 3\n", "caulk.toml:1: models: must be a table, not an integer");
    error("[models.functions]\nf = \"puts\"\n", "caulk.toml:2: models.functions.f: must be a table: `{ … }`");
    error("[models.functions]\nf = { pure = 1 }\n", "caulk.toml:2: models.functions.f.pure: must be true or false");
    error(
        "[models.functions]\nf = { like = \"puts\", pure = true }\n",
        "caulk.toml:2: models.functions.f.like: `like` must be the only key",
    );
}

#[test]
fn text_that_is_not_toml_is_an_error_with_its_line() {
    let errors = Models::builtin().extend_from_toml("[models\n", "caulk.toml").expect_err("is not TOML");
    assert_eq!(errors.0.len(), 1);
    assert_eq!((errors.0[0].line, errors.0[0].key.as_str()), (1, ""));
    let twice = "[models.functions]\nf = {}\nf = {}\n";
    let errors = Models::builtin().extend_from_toml(twice, "caulk.toml").expect_err("is there twice");
    assert_eq!(errors.to_string(), "caulk.toml:3: duplicate key");
}

#[test]
fn all_errors_come_in_the_order_of_lines_and_nothing_is_added() {
    let mut models = Models::builtin();
    let text = "[models.functions]\nzebra = { tkaes = 0 }\ngood = {}\nant = { wirtes = 1 }\n";
    let errors = models.extend_from_toml(text, "caulk.toml").expect_err("is wrong twice");
    assert_eq!(
        errors.to_string(),
        "caulk.toml:2: models.functions.zebra.tkaes: unknown key; did you mean `takes`?\n\
         caulk.toml:4: models.functions.ant.wirtes: unknown key; did you mean `writes`?",
    );
    assert!(models.get("good").is_none());
}

#[test]
fn a_circle_of_likes_is_refused() {
    error(
        "[models.functions]\none = { like = \"two\" }\ntwo = { like = \"one\" }\n",
        "caulk.toml:2: models.functions.one.like: unknown function `two`\n\
         caulk.toml:3: models.functions.two.like: unknown function `one`",
    );
}

#[test]
fn sections_serve_other_tables() {
    let text = "[rules]\nmemory-leak = \"warn\"\nduble-free = \"off\"\n[paths]\nexclude = [\"a\", \"b\"]\ndepth = 4\n";
    let document = Document::parse(text, "caulk.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let rules = document.root().section("rules").ok().flatten().expect("has rules");
    assert_eq!(rules.keys(), ["memory-leak", "duble-free"]);
    assert_eq!(rules.string("memory-leak"), Ok(Some("warn")));
    assert_eq!(rules.string("absent"), Ok(None));
    let errors = rules.expect_keys(&["memory-leak", "double-free"]).expect_err("has an unknown key");
    assert_eq!(errors.to_string(), "caulk.toml:3: rules.duble-free: unknown key; did you mean `double-free`?");
    let unknown = rules.unknown("memory-leak", "level", "warn", &["warning", "off", "error"]);
    assert_eq!(unknown.to_string(), "caulk.toml:2: rules.memory-leak: unknown level `warn`");
    let paths = document.root().section("paths").ok().flatten().expect("has paths");
    assert_eq!(paths.strings("exclude"), Ok(Some(vec!["a", "b"])));
    assert_eq!(paths.integer("depth"), Ok(Some(4)));
    let error = paths.boolean("depth").expect_err("is a number");
    assert_eq!(error.to_string(), "caulk.toml:6: paths.depth: must be true or false, not an integer");
}

#[test]
fn nearest_words_are_near() {
    let words = ["allocates", "releases", "takes"];
    assert_eq!(nearest("relaeses", words.into_iter()), Some("releases"));
    assert_eq!(nearest("take", words.into_iter()), Some("takes"));
    assert_eq!(nearest("frobnicate", words.into_iter()), None);
    assert_eq!(nearest("", words.into_iter()), None);
}

/// Damaged files are refused or read, never a panic: every prefix of a real one, and every byte of it changed.
#[test]
fn damaged_files_do_no_harm() {
    let text = "[models.families]\np = { release = \"r\", handle = \"inline\" }\n[models.functions]\n\
                f = { allocates = [\"p at 0+8 if 1 is not null\"], writes = \"2..\", fails = -1 }\né = { like = \"f\" }\n";
    let mut refused = 0;
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        let mut models = Models::default();
        refused += usize::from(models.extend_from_toml(&text[..end], "caulk.toml").is_err());
    }
    for at in 0..text.len() {
        for byte in [b'"', b'{', b'\n', b'*', b'9', b' ', 0] {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = byte;
            if let Ok(text) = String::from_utf8(bytes) {
                let mut models = Models::default();
                refused += usize::from(models.extend_from_toml(&text, "caulk.toml").is_err());
            }
        }
    }
    assert!(refused > 100);
}
