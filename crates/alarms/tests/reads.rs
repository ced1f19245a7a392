//! The logs beside this file were written by the tools about `logs/src/notes.c` and made shorter; Infer's report and gcc's
//! SARIF were written by hand after their documentation.

use std::path::Path;

use caulk_alarms::{Alarm, Alarms, Kind, Role, read};

/// A kind, and what the tracks are expected to be: role and lines.
type Expected<'a> = (Kind, &'a [(Role, &'a [u32])]);
type Shape = (Kind, Vec<(Role, Vec<u32>)>);

fn load(name: &str) -> Alarms {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    read(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Kind, then the lines of each track.
fn shape(alarm: &Alarm) -> Shape {
    let tracks = alarm.tracks.iter();
    let lines = |frames: &[caulk_alarms::Frame]| -> Vec<u32> {
        frames.iter().filter(|frame| frame.file.ends_with("notes.c")).map(|frame| frame.line).collect()
    };
    (alarm.kind, tracks.map(|track| (track.role, lines(&track.frames))).collect())
}

#[track_caller]
fn expect(name: &str, alarms: &[Expected<'_>], observed: bool) {
    let read = load(name);
    let found: Vec<_> = read.alarms.iter().map(shape).collect();
    let wanted: Vec<Shape> = alarms
        .iter()
        .map(|(kind, tracks)| (*kind, tracks.iter().map(|(role, lines)| (*role, lines.to_vec())).collect()))
        .collect();
    assert_eq!(found, wanted, "{name}");
    assert!(read.alarms.iter().all(|alarm| alarm.observed == observed), "{name}");
}

const ALLOCATION: Role = Role::Allocation;
const RELEASE: Role = Role::Release;
const ERROR: Role = Role::Error;

#[test]
fn sanitizers() {
    expect("asan-leak.txt", &[(Kind::Leak, &[(ALLOCATION, &[7, 14, 59])])], true);
    expect("lsan.txt", &[(Kind::Leak, &[(ALLOCATION, &[7, 14, 59])])], true);
    let double: &[(Role, &[u32])] = &[(ERROR, &[30, 61]), (RELEASE, &[29, 61]), (ALLOCATION, &[24, 61])];
    expect("asan-double-free.txt", &[(Kind::DoubleFree, double)], true);
    let late: &[(Role, &[u32])] = &[(ERROR, &[41, 63]), (RELEASE, &[40, 63]), (ALLOCATION, &[35, 63])];
    expect("asan-use-after-free.txt", &[(Kind::UseAfterFree, late)], true);
}

#[test]
fn valgrind() {
    for format in ["txt", "xml"] {
        expect(&format!("valgrind-leak.{format}"), &[(Kind::Leak, &[(ALLOCATION, &[7, 14, 59])])], true);
        let double: &[(Role, &[u32])] = &[(ERROR, &[30, 61]), (RELEASE, &[29, 61]), (ALLOCATION, &[24, 61])];
        expect(&format!("valgrind-double-free.{format}"), &[(Kind::DoubleFree, double)], true);
        let late: &[(Role, &[u32])] = &[(ERROR, &[41, 63]), (RELEASE, &[40, 63]), (ALLOCATION, &[35, 63])];
        expect(&format!("valgrind-use-after-free.{format}"), &[(Kind::UseAfterFree, late)], true);
    }
}

#[test]
fn static_tools() {
    let kinds = |name: &str| load(name).alarms.iter().map(shape).collect::<Vec<_>>();
    for name in ["gcc.json", "gcc.sarif", "clang.plist", "clang.sarif"] {
        let found = kinds(name);
        let (kind, tracks) = &found[0];
        assert_eq!(*kind, Kind::Leak, "{name}");
        assert_eq!(tracks[0], (ERROR, vec![17]), "{name}");
        let (role, lines) = &tracks[1];
        assert_eq!((*role, &lines[..2]), (ALLOCATION, &[7, 14][..]), "{name}: the wrapper, then its caller");
        let (kind, tracks) = &found[1];
        assert_eq!(*kind, Kind::DoubleFree, "{name}");
        assert_eq!(tracks[0], (ERROR, vec![30]), "{name}");
        assert!(tracks.iter().any(|(role, lines)| *role == RELEASE && lines[0] == 29), "{name}: {tracks:?}");
    }
    assert_eq!(load("gcc.sarif").passed_over, 1, "a null dereference is none of our business");
}

#[test]
fn infer() {
    let read = load("infer.json");
    assert_eq!(read.passed_over, 1);
    let found: Vec<_> = read.alarms.iter().map(shape).collect();
    assert_eq!(found[0].0, Kind::Leak);
    assert!(found[0].1.contains(&(ALLOCATION, vec![7, 14])), "{:?}", found[0]);
    assert_eq!(found[1], (Kind::UseAfterFree, vec![(ERROR, vec![41]), (RELEASE, vec![40])]));
    assert_eq!(read.alarms[3].place(ERROR).map(|frame| frame.file.as_str()), Some("src/removed.c"));
}

#[test]
fn several_units_and_other_lines() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs/gcc.json");
    let one = std::fs::read_to_string(path).expect("the log");
    let twice = format!("make: Entering directory\n{one}\n[]\n{one}\nmake: Leaving directory\n");
    assert_eq!(read(&twice).expect("both").alarms.len(), 2 * load("gcc.json").alarms.len());
}

#[test]
fn what_cannot_be_read_is_said() {
    let said = |text: &str| read(text).expect_err(text).to_string();
    assert_eq!(said(" \n"), "the file is empty");
    assert!(said("{\"runs\": [").starts_with("not valid JSON"));
    assert!(said("{\"runs\": 3}").contains("`runs`"));
    assert!(said("{\"a\": 1}").contains("none of SARIF"));
    assert!(said("<?xml version=\"1.0\"?><a>").starts_with("not valid XML"));
    assert!(said("<?xml version=\"1.0\"?><a/>").contains("neither a plist"));
    assert!(said("<plist><dict></dict></plist>").contains("`files`"));
    assert!(said("hello\n").contains("no report of"));
}

/// Any part of any log is read or refused, without a panic.
#[test]
fn parts_of_logs_do_no_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs");
    for entry in std::fs::read_dir(folder).expect("the logs").flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        for at in (0..text.len()).step_by(97).filter(|at| text.is_char_boundary(*at)) {
            let _ = read(&text[..at]);
            let _ = read(&text[at..]);
        }
    }
}

#[test]
fn what_a_guarded_program_lost_is_an_alarm_and_what_it_did_not_is_none() {
    let text = r#"{"tool": "caulk-runtime", "version": 1, "released": true, "sites": [
  {"file": "/p/a.c", "line": 7, "column": 3, "function": "f", "family": "memory", "blocks": 2, "bytes": 64},
  {"file": "/p/a.c", "line": 9, "column": 3, "function": "f", "family": "memory", "blocks": 0, "bytes": 0},
  {"file": "/p/b.c", "line": 5, "column": 1, "function": "g", "family": "file", "blocks": 1, "bytes": 0}
]}"#;
    let found = read(text).expect("a report");
    let places: Vec<_> =
        found.alarms.iter().map(|a| (a.kind, a.place(ALLOCATION).map(|f| f.line), a.observed)).collect();
    assert_eq!(places, [(Kind::Leak, Some(7), true), (Kind::ResourceLeak, Some(5), true)]);
    assert_eq!(found.alarms[0].message, "lost 2 times, 64 bytes in all");
}
