//! From link commands to the units that each program or library is made of.
//!
//! A program's units are those of its objects, then of the archives and shared libraries it is linked with, and of
//! what those are linked with in turn. An archive that goes into something else is not a link unit of its own.

use std::path::{Path, PathBuf};

use caulk_base::{FxHashMap, FxHashSet, Id};
use caulk_ir::{LinkUnit, UnitId};

use super::{LinkKind, LinkRecord};

/// The link units of a build. `objects` holds, for each unit, the object files it stands for.
pub fn link_units(records: &[LinkRecord], objects: &[Vec<PathBuf>]) -> Vec<LinkUnit> {
    let build = Build::new(records, objects);
    let inputs: Vec<Vec<Input>> = records.iter().map(|record| build.inputs(record)).collect();
    let mut used = FxHashSet::default();
    for (at, list) in inputs.iter().enumerate() {
        used.extend(list.iter().filter_map(|input| match input {
            Input::Made(made) if *made != at => Some(*made),
            _ => None,
        }));
    }
    let mut result = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let part = matches!(record.kind, LinkKind::Archive | LinkKind::Object) && used.contains(&at);
        let units = if part { Vec::new() } else { collect(at, &inputs) };
        if !units.is_empty() {
            result.push(LinkUnit { name: record.output.display().to_string(), units });
        }
    }
    result
}

#[derive(Clone, Copy)]
enum Input {
    Unit(UnitId),
    /// What another link command makes.
    Made(usize),
}

struct Build<'a> {
    units: FxHashMap<&'a Path, Vec<UnitId>>,
    made: FxHashMap<&'a Path, usize>,
    /// By the name of the file alone, where only one has it: for what was copied or installed before it was used.
    made_by_name: FxHashMap<String, Option<usize>>,
}

impl<'a> Build<'a> {
    fn new(records: &'a [LinkRecord], objects: &'a [Vec<PathBuf>]) -> Self {
        let mut build =
            Build { units: FxHashMap::default(), made: FxHashMap::default(), made_by_name: FxHashMap::default() };
        for (at, objects) in objects.iter().enumerate() {
            for object in objects {
                build.units.entry(object).or_default().push(UnitId::new(at));
            }
        }
        for (at, record) in records.iter().enumerate() {
            build.made.insert(&record.output, at);
            if let Some(name) = record.output.file_name() {
                let name = unversioned(&name.to_string_lossy()).to_owned();
                build.made_by_name.entry(name).and_modify(|known| *known = None).or_insert(Some(at));
            }
        }
        build
    }

    fn inputs(&self, record: &LinkRecord) -> Vec<Input> {
        let mut list = Vec::with_capacity(record.inputs.len());
        for input in &record.inputs {
            if let Some(name) = input.strip_prefix("-l") {
                let names = [format!("lib{name}.so"), format!("lib{name}.a")];
                let made = names.iter().find_map(|name| self.made_by_name.get(name).copied().flatten());
                list.extend(made.map(Input::Made));
            } else if let Some(units) = self.units.get(Path::new(input)) {
                list.extend(units.iter().map(|&unit| Input::Unit(unit)));
            } else if let Some(&made) = self.made.get(Path::new(input)) {
                list.push(Input::Made(made));
            } else if let Some(name) = extracted_from(input).or_else(|| Path::new(input).file_name()?.to_str()) {
                let made = self.made_by_name.get(unversioned(name)).copied().flatten();
                list.extend(made.map(Input::Made));
            }
        }
        list
    }
}

/// libtool takes an archive apart to put its members into another: `libx.a` of `.libs/liby.lax/libx.a/a.o`.
fn extracted_from(input: &str) -> Option<&str> {
    input.split_once(".lax/")?.1.split('/').next()
}

/// `libx.so` of `libx.so.1.2`: the file that is linked against is often a link to the one that was made.
fn unversioned(name: &str) -> &str {
    match name.find(".so.") {
        Some(at) => &name[..at + 3],
        None => name,
    }
}

/// The units in link order: own objects first, then those of what is linked in, nearest first.
fn collect(root: usize, inputs: &[Vec<Input>]) -> Vec<UnitId> {
    let mut units = Vec::new();
    let mut seen_units = FxHashSet::default();
    let mut seen = FxHashSet::default();
    let mut queue = std::collections::VecDeque::from([root]);
    seen.insert(root);
    while let Some(at) = queue.pop_front() {
        for input in &inputs[at] {
            match *input {
                Input::Unit(unit) if seen_units.insert(unit) => units.push(unit),
                Input::Made(made) if seen.insert(made) => queue.push_back(made),
                Input::Unit(_) | Input::Made(_) => {}
            }
        }
    }
    units
}
