//! What one run leaves for the next, and what an edit makes it look at again.

use std::path::Path;
use std::sync::Arc;

use caulk_analysis::{Analysis, Basis, Limits, Shelf, analyse, analyse_again, analyse_with, glance, show};
use caulk_base::{Gap, Store};
use caulk_models::Models;

use crate::support::program;

const MAKE: &str = "fn @make(v0: i64) -> ptr @10:1 {\nbb0:\n  v1 = call ptr @malloc(v0) @11:3\n  return v1 @12:3\n}\n";
const DROP: &str = "fn @drop(v0: ptr) @20:1 {\nbb0:\n  call void @free(v0) @21:3\n  return @22:3\n}\n";
const USER: &str = "fn @user(v0: ptr) -> i32 @30:1 {\n  var0 \"p\"\nbb0:\n  v1 = call ptr @make(i64 8) @31:3\n  bind var0, v1\n  \
    call void *v0(v1) @32:3\n  return i32 0 @33:3\n}\n";
/// `user` keeps what it makes, and hands out a function.
const OTHER: &str = "fn @other() -> i32 @40:1 {\n  var0 \"q\"\nbb0:\n  v0 = call ptr @make(i64 4) @41:3\n  bind var0, v0\n  \
    call void @drop(v0) @42:3\n  v1 = call i32 @user(@drop) @43:3\n  return v1 @44:3\n}\n";
const TABLE: &str = "fn @through(v0: ptr) @50:1 {\nbb0:\n  v1 = load ptr @table @51:3\n  call void *v1(v0) @52:3\n  \
    return @53:3\n}\n\
    fn @leaks() @60:1 {\n  var0 \"r\"\nbb0:\n  v0 = call ptr @make(i64 2) @61:3\n  bind var0, v0\n  return @62:3\n}\n\
    fn @again(v0: ptr, v1: i32) @70:1 {\nbb0:\n  v2 = cmp eq v1, i32 0 @70:5\n  branch v2, bb2, bb1 @70:5\nbb1:\n  \
    call void @again(null, i32 0) @71:3\n  jump bb2 @71:9\nbb2:\n  call void @through(v0) @72:3\n  return @73:3\n}\n";
const GLOBAL: &str = "global @table size 8 const init { 0: @drop }\n";

fn text() -> String {
    [GLOBAL, MAKE, DROP, USER, OTHER, TABLE].concat()
}

/// Everything an analysis says, in words.
fn said(analysis: &Analysis<'_>) -> String {
    let program = analysis.knowledge.program;
    let each = program.functions.ids().map(|id| {
        let summary = show::summary(&analysis.knowledge, id);
        let incidents = analysis.incidents.iter().filter(|one| one.function == id);
        let suspicions = analysis.suspicions.iter().filter(|one| one.function == id);
        format!(
            "{summary}{}{:?}{:?}{:?}{:?}\n",
            show::points_to(analysis, id),
            incidents.collect::<Vec<_>>(),
            suspicions.collect::<Vec<_>>(),
            analysis.sites(id),
            analysis.releases(id)
        )
    });
    each.collect()
}

struct Run {
    analysed: usize,
    gaps: Vec<Gap>,
}

/// Analyses a text with what lies in the folder; the result must be the one without.
fn run_with(folder: &Path, text: &str, limits: Limits, models: &Models) -> Run {
    let program = program(text);
    let store = Store::open(folder, 1 << 30).unwrap();
    let analysis = analyse_with(&program, models, limits, &store);
    assert_eq!(said(&analysis), said(&analyse(&program, models, limits)));
    let analysed = analysis.analysed;
    drop(analysis);
    Run { analysed, gaps: store.close() }
}

fn run(folder: &Path, text: &str) -> usize {
    let run = run_with(folder, text, Limits::default(), &Models::builtin());
    assert_eq!(run.gaps, []);
    run.analysed
}

/// What is analysed after an edit, from a fresh cache of the unedited text.
fn after(edit: impl Fn(&str) -> String) -> usize {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &text()), 7);
    let edited = edit(&text());
    assert_ne!(edited, text());
    let analysed = run(folder.path(), &edited);
    assert_eq!(run(folder.path(), &edited), 0, "what was made after the edit is kept");
    analysed
}

#[test]
fn nothing_changed_nothing_analysed() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &text()), 7);
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| run(folder.path(), &text())), 0);
    }
}

#[test]
fn what_is_left_does_not_depend_on_threads() {
    let packs = [1, 2, 8].map(|threads| {
        let folder = tempfile::tempdir().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(folder.path(), &text()));
        packs(folder.path()).into_iter().map(|pack| std::fs::read(pack).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(packs[0].len(), 1);
    assert!(packs[0] == packs[1] && packs[0] == packs[2]);
}

#[test]
fn an_edit_that_no_caller_can_see_stops_at_its_function() {
    // `drop` does something more, of no consequence.
    let edit = |text: &str| text.replace("@free(v0) @21:3", "@free(v0) @21:3\n  v1 = cmp eq v0, null");
    assert_eq!(after(edit), 1);
}

#[test]
fn an_edit_that_callers_can_see_reaches_them() {
    // `make` allocates nothing: `user`, `other` and `leaks` call it; `other` calls `user`.
    let edit = |text: &str| text.replace("return v1 @12:3", "return null @12:3");
    assert_eq!(after(edit), 4);
}

#[test]
fn moved_code_is_not_analysed_again_and_new_code_only_itself() {
    let moved = |text: &str| text.replace("@7", "@97").replace("@6", "@96").replace("@5", "@95");
    assert_eq!(after(moved), 0);
    let more = "fn @more(v0: ptr, v1: ptr, v2: ptr) -> ptr {\nbb0:\n  v3 = load ptr @before @3:3\n  return v3\n}\n";
    // All ids are other ones now.
    let before = |text: &str| format!("global @before size 8 init {{ 0: @more }}\n{more}{text}");
    assert_eq!(after(before), 1);
}

#[test]
fn what_a_table_holds_is_asked_for() {
    // `through` finds another function in the table, `again` sees through `through`; nobody calls that.
    let edit = |text: &str| text.replace("init { 0: @drop }", "init { 0: @leaks }");
    assert_eq!(after(edit), 2);
    let edit = |text: &str| text.replace("size 8 const init", "size 8 init");
    assert_eq!(after(edit), 1, "nobody writes to it here, but a library's users may: whoever calls through it");
    let written = "fn @writes(v0: ptr) {\nbb0:\n  store v0 to @table @81:3\n  return\n}\n";
    let edit = |text: &str| text.replace("size 8 const init", "size 8 init") + written;
    assert!(after(edit) >= 2, "the new function, and whoever relied on the table");
}

#[test]
fn other_limits_and_other_models_are_another_analysis() {
    let folder = tempfile::tempdir().unwrap();
    let models = Models::builtin();
    let all = |limits: Limits, models: &Models| run_with(folder.path(), &text(), limits, models).analysed;
    assert_eq!(all(Limits::default(), &models), 7);
    let narrow = Limits { outcomes: 2, ..Limits::default() };
    assert_eq!(all(narrow, &models), 7);
    let mut more = Models::builtin();
    more.extend_from_toml("[models.functions]\nmake = { allocates = \"memory\", fails = \"null\" }\n", "caulk.toml")
        .unwrap();
    assert_eq!(all(Limits::default(), &more), 7);
    // Every word of a model counts.
    for word in ["keeps = \"nothing\"", "protection = 1", "course = \"waits\""] {
        let mut other = Models::builtin();
        other.extend_from_toml(&format!("[models.functions]\nmake = {{ {word} }}\n"), "caulk.toml").unwrap();
        assert_eq!(all(Limits::default(), &other), 7, "{word}");
    }
    assert_eq!(all(Limits::default(), &models), 0, "each has a place of its own");
}

#[test]
fn damage_is_made_good_with_a_word_about_it() {
    for change in [
        (|bytes: &mut Vec<u8>| bytes.clear()) as fn(&mut Vec<u8>),
        |bytes| bytes.truncate(40),
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
        },
    ] {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), &text());
        for pack in packs(folder.path()) {
            let mut bytes = std::fs::read(&pack).unwrap();
            change(&mut bytes);
            std::fs::write(pack, bytes).unwrap();
        }
        let again = run_with(folder.path(), &text(), Limits::default(), &Models::builtin());
        assert_eq!(again.analysed, 7);
        assert!(matches!(&again.gaps[..], [gap] if gap.reason.contains("damaged")), "{:?}", again.gaps);
        assert_eq!(run(folder.path(), &text()), 0);
    }
}

fn packs(folder: &Path) -> Vec<std::path::PathBuf> {
    let inside = |folder: std::path::PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    inside(folder.join("summaries")).flat_map(inside).collect()
}

/// One program after another, with one shelf; each result must be the one without. How many functions were analysed.
fn one_after_another(texts: &[String]) -> Vec<usize> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 1 << 30).unwrap();
    let (shelf, models) = (Shelf::default(), Models::builtin());
    let each = texts.iter().map(|text| {
        let program = Arc::new(program(text));
        let analysis = analyse_again(&program, &models, Limits::default(), &store, &shelf);
        assert_eq!(said(&analysis), said(&analyse(&program, &models, Limits::default())));
        analysis.analysed
    });
    each.collect()
}

/// `leaks` with a release.
fn repaired() -> String {
    text().replace("bind var0, v0\n  return @62:3", "bind var0, v0\n  call void @free(v0) @62:1\n  return @63:3")
}

#[test]
fn what_was_learned_of_one_program_serves_the_next() {
    assert_ne!(repaired(), text());
    assert_eq!(one_after_another(&[text(), repaired(), text(), repaired()]), [7, 1, 0, 0]);
}

#[test]
fn callers_are_remembered_with_what_they_were_told() {
    let other = text().replace("v1 = call ptr @malloc(v0) @11:3", "v1 = call ptr @calloc(v0, i64 1) @11:3");
    assert_ne!(other, text());
    let analysed = one_after_another(&[text(), other.clone(), text(), other]);
    assert_eq!((analysed[0], analysed[2], analysed[3]), (7, 0, 0));
    assert!(analysed[1] >= 1);
}

#[test]
fn a_program_with_other_numbers_takes_over_what_it_can() {
    let first = "fn @another() @1:1 {\nbb0:\n  call void @abort() @2:3\n  return @3:3\n}\n";
    assert_eq!(one_after_another(&[text(), format!("{first}{}", text()), text()]), [7, 1, 0]);
}

#[test]
fn a_glance_shows_what_one_function_comes_to() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 1 << 30).unwrap();
    let (shelf, models, limits) = (Shelf::default(), Models::builtin(), Limits::default());
    let before = Arc::new(program(&text()));
    let analysis = analyse_again(&before, &models, limits, &store, &shelf);
    let basis = Basis::of(&analysis, &shelf).unwrap();
    let after = Arc::new(program(&repaired()));
    let (id, seen) = glance(&basis, &after, &models, limits, &store, &shelf).unwrap();
    let whole = analyse(&after, &models, limits);
    assert_eq!(after.function(id).name, "leaks");
    assert_eq!(seen.releases(id), whole.releases(id));
    assert_eq!(seen.releases(id).len(), 1);
    assert_eq!((seen.incidents.len(), analysis.learned[id].incidents.len()), (0, 1));
    assert!(glance(&basis, &before, &models, limits, &store, &shelf).is_none());
    // What a pointer may call is not known at a glance.
    let through = text().replace("call void *v0(v1) @32:3", "call void *v0(v1) @32:3\n  call void *v0(v1) @32:9");
    assert!(glance(&basis, &Arc::new(program(&through)), &models, limits, &store, &shelf).is_none());
}
