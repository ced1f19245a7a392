//! `caulk dump`: what caulk makes of a program, for people who want to know why it says what it says.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Result, bail};
use caulk_ir::{Callee, FuncId, Op, Program, Target};
use caulk_models::nearest;

use crate::args::{DumpArgs, DumpKind};
use crate::driver;
use crate::exit::Outcome;
use crate::output;
use crate::progress::Bar;

pub(super) fn run(args: &DumpArgs) -> Result<Outcome> {
    let bar = Bar::new();
    let project = driver::load(std::slice::from_ref(&args.path), &args.load, &bar)?;
    drop(bar);
    let program = &project.loaded.program;
    let wanted = args.function.as_deref().map(|name| functions_named(program, name)).transpose()?;
    let text = match args.what {
        DumpKind::Ir => ir(program, wanted.as_deref()),
        DumpKind::Callgraph => callgraph(program, wanted.as_deref()),
        DumpKind::Roles => {
            let analysis = driver::analyse(&project, args.load.jobs)?;
            let all: Vec<FuncId> = program.functions.ids().collect();
            caulk_analysis::roles::list(&analysis.knowledge, wanted.as_deref().unwrap_or(&all))
        }
        DumpKind::Summary | DumpKind::Pointsto => {
            let analysis = driver::analyse(&project, args.load.jobs)?;
            let all: Vec<FuncId> = program.functions.ids().collect();
            let one = |&id: &FuncId| match args.what {
                DumpKind::Summary => caulk_analysis::show::summary(&analysis.knowledge, id),
                _ => caulk_analysis::show::points_to(&analysis, id),
            };
            wanted.as_deref().unwrap_or(&all).iter().map(one).collect::<Vec<_>>().join("\n")
        }
    };
    output::print(&text)?;
    Ok(Outcome::Clean)
}

fn functions_named(program: &Program, name: &str) -> Result<Vec<FuncId>> {
    let found = program.functions_named(name);
    if found.is_empty() {
        let names: BTreeSet<&str> = program.functions.ids().map(|id| program.function(id).name.as_str()).collect();
        match nearest(name, names.into_iter()) {
            Some(other) => bail!("no function `{name}` has a body here; did you mean `{other}`?"),
            None => bail!("no function `{name}` has a body here"),
        }
    }
    Ok(found)
}

fn ir(program: &Program, wanted: Option<&[FuncId]>) -> String {
    let one = |&id: &FuncId| caulk_ir::print_function(&program.units[program.unit_of(id)], program.function(id));
    match wanted {
        Some(functions) => functions.iter().map(one).collect::<Vec<_>>().join("\n"),
        None => program.units.iter().map(|unit| caulk_ir::print_unit(unit)).collect::<Vec<_>>().join("\n"),
    }
}

/// One function a block, what it calls below it, in the order of the code, each once:
///
///     load  main.c
///       fopen            external
///       note_parse       store.c
///       (pointer)        through a function pointer
fn callgraph(program: &Program, wanted: Option<&[FuncId]>) -> String {
    let all: Vec<FuncId> = program.functions.ids().collect();
    let mut text = String::new();
    for &id in wanted.unwrap_or(&all) {
        let _ = writeln!(text, "{}  {}", program.function(id).name, file_of(program, id));
        let mut seen = BTreeSet::new();
        for line in calls(program, id) {
            if seen.insert(line.clone()) {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    text
}

fn calls(program: &Program, id: FuncId) -> Vec<String> {
    let unit = program.unit_of(id);
    let mut lines = Vec::new();
    for inst in program.function(id).insts.iter() {
        let Op::Call(call) = &inst.op else { continue };
        match &call.callee {
            Callee::Symbol(symbol) => match program.target(unit, *symbol) {
                Target::Functions(callees) => lines.extend(
                    callees.iter().map(|&callee| line(&program.function(callee).name, file_of(program, callee))),
                ),
                Target::Extern(name) => lines.push(line(&program.externs[*name], "external")),
                Target::Globals(_) => lines.push(line(&program.units[unit].symbols[*symbol].name, "a variable")),
            },
            Callee::Value(_) => lines.push(line("(pointer)", "through a function pointer")),
            Callee::Asm(_) => lines.push(line("(asm)", "inline assembly")),
            // The compiler's own, no function of anyone's.
            Callee::Intrinsic(_) => {}
        }
    }
    lines
}

fn line(name: &str, place: &str) -> String {
    format!("{name:<24} {place}")
}

/// The file's name without its folders.
fn file_of(program: &Program, id: FuncId) -> &str {
    let source = &program.units[program.unit_of(id)].source;
    source.rsplit('/').next().unwrap_or(source)
}
