//! Small C programs through clang and [`caulk_frontend::lower`].

use std::process::Command;

fn compile(source: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.c");
    std::fs::write(&path, source).expect("writes");
    let output = Command::new("clang-19")
        .args(["-c", "-emit-llvm", "-O0", "-g", "-Xclang", "-disable-O0-optnone", "-w", "-o", "-"])
        .arg(&path)
        .output()
        .expect("runs clang-19");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_function_is_lowered() {
    let unit = caulk_frontend::lower(&compile("int f(int *p) { if (!p) return -1; return *p; }")).expect("lowers");
    assert_eq!(unit.functions.len(), 1);
}
