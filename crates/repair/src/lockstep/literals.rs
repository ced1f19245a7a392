//! Which name of one unit is which of the other.
//!
//! The compiler numbers literals through the unit: where one goes, or comes earlier, all that follow are others. They are
//! known by their line and size, as far as both units have as many of them; what is left, by size and order.

use caulk_base::{FxHashMap, Id};
use caulk_ir::{SymbolId, SymbolKind, Unit};

use super::side::Text;
use super::terms::Which;

/// The file and line of a literal, if both texts have it, and its size.
type Key = (Option<(String, u32)>, u64);

/// For each symbol of both units its number among all names.
pub fn symbols(old: &Unit, new: &Unit, text: &Text<'_>) -> (Vec<u32>, Vec<u32>) {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut named = [old, new].map(|unit| {
        let mut all = Vec::new();
        for symbol in unit.symbols.iter() {
            let next = numbers.len() as u32;
            all.push(*numbers.entry(symbol.name.as_str()).or_insert(next));
        }
        all
    });
    let found = pairs(literals(old, Which::Old, text), literals(new, Which::New, text));
    for (next, (one, other)) in (numbers.len() as u32..).zip(found) {
        one.into_iter().for_each(|id| named[0][id.index()] = next);
        other.into_iter().for_each(|id| named[1][id.index()] = next);
    }
    let [old, new] = named;
    (old, new)
}

fn literals(unit: &Unit, which: Which, text: &Text<'_>) -> Vec<(SymbolId, Key)> {
    let mut found = Vec::new();
    for (id, symbol) in unit.symbols.iter_ids().filter(|(_, symbol)| symbol.name.starts_with('.')) {
        let SymbolKind::Global(global) = symbol.kind else { continue };
        let global = &unit.globals[global];
        let loc = unit.locs[global.loc];
        let file = loc.file.map_or("", |file| unit.files[file].as_str());
        let line = if loc.line > 0 { text(which, file, loc.line, loc.column) } else { None };
        found.push((id, (line.map(|place| (file.to_owned(), place.0)), global.size)));
    }
    found
}

/// Those that are the same, and those that only one unit has.
fn pairs(old: Vec<(SymbolId, Key)>, new: Vec<(SymbolId, Key)>) -> Vec<(Option<SymbolId>, Option<SymbolId>)> {
    let mut by_key: FxHashMap<&Key, (Vec<SymbolId>, Vec<SymbolId>)> = FxHashMap::default();
    for (id, key) in &old {
        by_key.entry(key).or_default().0.push(*id);
    }
    for (id, key) in &new {
        by_key.entry(key).or_default().1.push(*id);
    }
    let known = |key: &Key| key.0.is_some() && by_key.get(key).is_some_and(|(one, other)| one.len() == other.len());
    let mut pairs = Vec::new();
    for (id, key) in old.iter().filter(|(_, key)| known(key)) {
        let (one, other) = &by_key[key];
        let at = one.iter().position(|other| other == id);
        pairs.push((Some(*id), at.and_then(|at| other.get(at)).copied()));
    }
    let left = |all: &[(SymbolId, Key)]| -> Vec<(SymbolId, u64)> {
        all.iter().filter(|(_, key)| !known(key)).map(|(id, key)| (*id, key.1)).collect()
    };
    let (old, new) = (left(&old), left(&new));
    if old.iter().map(|entry| entry.1).eq(new.iter().map(|entry| entry.1)) {
        pairs.extend(old.iter().zip(&new).map(|(one, other)| (Some(one.0), Some(other.0))));
    } else {
        pairs.extend(old.iter().map(|one| (Some(one.0), None)));
        pairs.extend(new.iter().map(|other| (None, Some(other.0))));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(line: u32, size: u64) -> Key {
        ((line > 0).then(|| ("t.c".to_owned(), line)), size)
    }

    #[test]
    fn literals_keep_their_lines() {
        let one = |number: u32, line: u32, size: u64| (SymbolId(number), key(line, size));
        let old = vec![one(0, 3, 5), one(1, 3, 5), one(2, 4, 6)];
        // One more comes first.
        let new = vec![one(0, 0, 9), one(1, 3, 5), one(2, 3, 5), one(3, 4, 6)];
        let id = |number: u32| Some(SymbolId(number));
        assert_eq!(pairs(old, new), [(id(0), id(1)), (id(1), id(2)), (id(2), id(3)), (None, id(0))]);
        // What has no line is known by its size.
        let (old, new) = (vec![one(0, 0, 5), one(1, 0, 6)], vec![one(4, 0, 5), one(7, 0, 6)]);
        assert_eq!(pairs(old, new), [(id(0), id(4)), (id(1), id(7))]);
    }
}
