//! Small C programs through clang and [`caulk_frontend::lower`], one for each construct of the language.

use std::path::Path;
use std::process::Command;

use caulk_frontend::{PLUGIN_OUTPUT, install_plugin, lower, plugin_arguments};
use caulk_ir::{Function, SymbolKind, Unit, parse_unit, print_function, print_unit, verify};

mod constructs;
mod damage;
mod debug_info;
mod symbols;

/// Runs clang in the folder of `t.c` and gives its standard output.
fn clang(folder: &Path, arguments: &[std::ffi::OsString], flags: &[&str]) -> Vec<u8> {
    let output = Command::new("clang-19")
        .args(["-c", "-O0", "-g", "-Xclang", "-disable-O0-optnone", "-w", "-o", "-", "t.c"])
        .args(arguments)
        .args(flags)
        .current_dir(folder)
        .env(PLUGIN_OUTPUT, "-")
        .output()
        .expect("clang-19 is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn bitcode(source: &str, flags: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("t.c"), source).expect("writes the source");
    clang(folder.path(), &["-emit-llvm".into()], flags)
}

/// The unit of a source, by both ways, which must agree but for what only the plugin knows; sound, and readable back
/// from its text.
fn unit_with(source: &str, flags: &[&str]) -> Unit {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("t.c"), source).expect("writes the source");
    let unit = lower(&clang(folder.path(), &["-emit-llvm".into()], flags)).expect("lowers bitcode");
    let plugin = install_plugin(folder.path()).expect("installs the plugin");
    let direct = lower(&clang(folder.path(), &plugin_arguments(&plugin), flags)).expect("reads the plugin's buffer");
    assert_eq!(print_unit(&without_prototypes(&direct)), print_unit(&unit), "plugin and bitcode differ");
    assert_eq!(verify(&direct), [], "{}", print_unit(&direct));
    let text = print_unit(&direct);
    assert_eq!(parse_unit(&text).expect("reads its own text"), direct, "{text}");
    direct
}

/// The unit without what prototypes of functions without a body say, which bitcode does not hold.
fn without_prototypes(unit: &Unit) -> Unit {
    let mut unit = unit.clone();
    for symbol in unit.symbols.iter_mut() {
        if let SymbolKind::DeclaredFunction(attrs) = &mut symbol.kind {
            attrs.params.iter_mut().for_each(|param| param.pointer_to_const = false);
        }
    }
    unit
}

/// The unit as clang makes it when it is going to optimise; the plugin comes before the passes.
fn unit_before_optimisation(source: &str) -> Unit {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("t.c"), source).expect("writes the source");
    let plugin = install_plugin(folder.path()).expect("installs the plugin");
    let flags = ["-O1", "-Xclang", "-disable-lifetime-markers"];
    let unit = lower(&clang(folder.path(), &plugin_arguments(&plugin), &flags)).expect("reads the plugin's buffer");
    assert_eq!(verify(&unit), [], "{}", print_unit(&unit));
    unit
}

fn unit(source: &str) -> Unit {
    unit_with(source, &[])
}

fn function<'a>(unit: &'a Unit, name: &str) -> &'a Function {
    unit.functions.iter().find(|function| function.name == name).expect("the function")
}

/// The function's instructions, without positions and bindings, one to a line.
fn body(unit: &Unit, name: &str) -> String {
    let text = print_function(unit, function(unit, name));
    let mut lines = Vec::new();
    for line in text.lines().skip(1).filter(|line| !line.starts_with("  var") && !line.starts_with("  bind")) {
        // A position is the last word, and holds two colons.
        let position = line.rfind(" @").filter(|&at| line[at..].matches(':').count() == 2);
        lines.push(line[..position.unwrap_or(line.len())].trim());
    }
    lines.pop();
    lines.join("\n")
}

/// The bodies of all functions, for constructs whose exact shape does not matter.
fn bodies(source: &str) -> String {
    let unit = unit(source);
    unit.functions.iter().map(|function| body(&unit, &function.name) + "\n").collect()
}

/// The text holds these lines, in this order, perhaps with others between them.
fn assert_lines(text: &str, wanted: &[&str]) {
    let mut lines = text.lines();
    for line in wanted {
        assert!(lines.any(|other| other == *line), "`{line}` is missing, or out of order, in\n{text}");
    }
}
