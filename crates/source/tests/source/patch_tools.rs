//! The diffs, given to the real `git apply` and `patch -p1`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use caulk_source::{Snippet, unified_diff};

use super::{function_in, stmt};

fn run(folder: &Path, program: &str, arguments: &[&str], input: &[u8]) {
    use std::io::Write;
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CEILING_DIRECTORIES", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().expect("a pipe").write_all(input).expect("the tool reads its input");
    let output = child.wait_with_output().expect("the tool ends");
    assert!(
        output.status.success(),
        "{program}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Both tools must turn the old contents into exactly the new ones.
fn check(name: &str, old: &[u8], new: &[u8]) {
    let diff = unified_diff(name, old, new);
    for (program, arguments) in [("git", &["apply"][..]), ("patch", &["-p1", "--binary"][..])] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(&file, old).expect("written");
        run(folder.path(), program, arguments, &diff);
        assert_eq!(fs::read(&file).expect("read"), new, "{program}\n{}", String::from_utf8_lossy(&diff));
    }
}

fn patched(text: &[u8], target: &str) -> Vec<u8> {
    let function = function_in(text);
    let edits = function.insert_before(stmt(&function, target), &Snippet::line("free(p);")).expect("not refused");
    edits.apply(&function.file.path, &function.file.bytes).expect("no overlap")
}

#[test]
fn real_tools_apply_our_diffs() {
    let unix = b"int f(char *p)\n{\n\tif (g(p))\n\t\treturn 1;\n\treturn 0;\n}\n";
    check("src/a.c", unix, &patched(unix, "return 1;"));
    let dos = b"int f(char *p)\r\n{\r\n\tif (g(p))\r\n\t\treturn 1;\r\n\treturn 0;\r\n}\r\n";
    check("a.c", dos, &patched(dos, "return 1;"));
    let open = b"int f(char *p) { if (g(p)) return 1; return 0; }";
    check("a.c", open, &patched(open, "return 1;"));
    let latin = b"int f(char *p)\n{\n\tg(\"\xe4\xff\");\n\treturn 0;\n}\n// \xe9";
    check("a.c", latin, &patched(latin, "return 0;"));
    check("with blank.c", unix, &patched(unix, "return 0;"));
}

#[test]
fn several_hunks_at_both_ends() {
    let mut old = String::new();
    for n in 0..60 {
        old.push_str(&format!("line {n}\n"));
    }
    let new = old.replace("line 0\n", "first\nline 0\n").replace("line 30\n", "").replace("line 59\n", "line 59\nlast");
    check("a.c", old.as_bytes(), new.as_bytes());
}
