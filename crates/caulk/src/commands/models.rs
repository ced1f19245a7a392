//! `caulk models`: what is known of library functions, and what is not but matters for this program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use caulk_ir::{Callee, Op, Program, SymbolKind, Target, Ty};
use caulk_models::{Models, nearest};

use crate::args::ModelsArgs;
use crate::config::Config;
use crate::driver;
use crate::exit::Outcome;
use crate::output;
use crate::progress::Bar;

pub(super) fn run(args: &ModelsArgs) -> Result<Outcome> {
    let text = if args.paths.is_empty() && !args.missing {
        let config = Config::load(args.load.config.as_deref(), Path::new("."))?;
        listing(&config.models, &args.functions)?
    } else {
        let bar = Bar::new();
        let here = [PathBuf::from(".")];
        let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
        let project = driver::load(paths, &args.load, &bar)?;
        drop(bar);
        let (program, models) = (&project.loaded.program, &project.config.models);
        if args.missing {
            let analysis = driver::analyse(&project, args.load.jobs)?;
            missing(program, models, &caulk_analysis::unmodelled(&analysis.knowledge))
        } else {
            let used: BTreeSet<&String> = program.externs.iter().filter(|name| models.get(name).is_some()).collect();
            listing(models, &used.into_iter().cloned().collect::<Vec<_>>())?
        }
    };
    output::print(&text)?;
    Ok(Outcome::Clean)
}

/// One line a function, by name; only those of `wanted` if any are.
fn listing(models: &Models, wanted: &[String]) -> Result<String> {
    let mut text = String::new();
    let all = models.sorted();
    for name in wanted {
        if models.get(name).is_none() {
            match nearest(name, all.iter().map(|model| model.name.as_str())) {
                Some(other) => bail!("no model of `{name}`; did you mean `{other}`?"),
                None => bail!("no model of `{name}`; `caulk models` lists all"),
            }
        }
    }
    for model in all.iter().filter(|model| wanted.is_empty() || wanted.contains(&model.name)) {
        writeln!(text, "{}  ({})", models.describe(model), model.origin.file)?;
    }
    Ok(text)
}

/// What is assumed of one function without a model.
#[derive(Default)]
struct Unknown {
    /// Calls in functions that give it an object they follow.
    given: u64,
    calls: usize,
    /// Pointer arguments that it may keep, for all we know.
    keeps: BTreeSet<usize>,
    returns_pointer: bool,
}

/// External functions without a model that are given pointers or give one: those that objects flow into most often
/// first (`given`, from the analysis), then most calls.
fn missing(program: &Program, models: &Models, given: &[(String, u64)]) -> String {
    let mut unknown: BTreeMap<&str, Unknown> = BTreeMap::new();
    for id in program.functions.ids() {
        let unit_id = program.unit_of(id);
        let (unit, function) = (&program.units[unit_id], program.function(id));
        for inst in function.insts.iter() {
            let Op::Call(call) = &inst.op else { continue };
            let Callee::Symbol(symbol) = call.callee else { continue };
            let Target::Extern(name) = program.target(unit_id, symbol) else { continue };
            let name = program.externs[*name].as_str();
            if models.get(name).is_some() {
                continue;
            }
            let entry = unknown.entry(name).or_default();
            entry.calls += 1;
            entry.returns_pointer |= inst.result.is_some_and(|result| function.values[result].ty == Ty::Ptr);
            for (index, argument) in call.args.iter().enumerate() {
                let harmless = match &unit.symbols[symbol].kind {
                    SymbolKind::DeclaredFunction(attrs) => {
                        attrs.params.get(index).is_some_and(|param| param.nocapture || param.pointer_to_const)
                    }
                    _ => false,
                };
                if function.values[*argument].ty == Ty::Ptr && !harmless {
                    entry.keeps.insert(index);
                }
            }
        }
    }
    for (name, calls) in given {
        if let Some(entry) = unknown.get_mut(name.as_str()) {
            entry.given = *calls;
        }
    }
    let mut rows: Vec<(&str, Unknown)> =
        unknown.into_iter().filter(|(_, unknown)| !unknown.keeps.is_empty() || unknown.returns_pointer).collect();
    rows.sort_by(|(name, one), (other_name, other)| {
        (other.given, other.calls, name).cmp(&(one.given, one.calls, other_name))
    });
    let mut text = String::new();
    for (name, unknown) in rows {
        let _ = writeln!(text, "{:>6} calls  {name}: {}", unknown.calls, assumed(&unknown));
    }
    text
}

fn assumed(unknown: &Unknown) -> String {
    let mut parts = Vec::new();
    if !unknown.keeps.is_empty() {
        let arguments: Vec<String> = unknown.keeps.iter().map(ToString::to_string).collect();
        let noun = if arguments.len() == 1 { "argument" } else { "arguments" };
        parts.push(format!("assumed to keep {noun} {}", arguments.join(", ")));
    }
    if unknown.returns_pointer {
        parts.push("its result is not followed".to_owned());
    }
    parts.join("; ")
}
