//! Link units and names are made by hand: `x` defines a function, `x?` is a declaration, `x~` is weak, `x!` common
//! (a variable), `x@` is `static`, `x+` only available, `x=y` an alias.

use super::*;
use caulk_ir::{Function, FunctionAttrs, Global, Linkage, LocId, Symbol, SymbolKind, Ty};

fn unit(source: &str, names: &str) -> Arc<Unit> {
    let mut unit = Unit { source: source.to_owned(), ..Unit::default() };
    for word in names.split_whitespace() {
        let (name, mark) = match word.find(|c: char| !c.is_alphanumeric() && c != '_') {
            Some(at) => word.split_at(at),
            None => (word, ""),
        };
        let symbol = unit.symbols.next_id();
        let (linkage, kind) = match mark {
            "?" => (Linkage::External, SymbolKind::DeclaredFunction(FunctionAttrs::default())),
            "!" => {
                let global = Global {
                    symbol,
                    size: 4,
                    is_const: false,
                    thread_local: false,
                    init: Vec::new(),
                    init_complete: true,
                    is_literal: false,
                    loc: LocId(0),
                    ty: None,
                };
                (Linkage::Common, SymbolKind::Global(unit.globals.push(global)))
            }
            _ if mark.starts_with('=') => {
                let to = unit.symbols.iter_ids().find(|(_, other)| other.name == mark[1..]).map(|(id, _)| id);
                (Linkage::External, SymbolKind::Alias(to.unwrap_or(symbol)))
            }
            _ => {
                let linkage = match mark {
                    "~" => Linkage::Weak,
                    "@" => Linkage::Internal,
                    "+" => Linkage::AvailableExternally,
                    _ => Linkage::External,
                };
                (linkage, SymbolKind::Function(unit.functions.push(function(symbol, name))))
            }
        };
        unit.symbols.push(Symbol { name: name.to_owned(), linkage, kind });
    }
    Arc::new(unit)
}

fn function(symbol: SymbolId, name: &str) -> Function {
    Function {
        symbol,
        name: name.to_owned(),
        attrs: FunctionAttrs::default(),
        variadic: false,
        ret: Ty::Void,
        ret_type: None,
        param_count: 0,
        values: IdVec::new(),
        insts: IdVec::new(),
        blocks: IdVec::new(),
        vars: IdVec::new(),
        scope: None,
        loc: LocId(0),
    }
}

fn record(output: &str, kind: LinkKind, inputs: &[&str]) -> LinkRecord {
    LinkRecord { output: output.into(), kind, inputs: inputs.iter().map(ToString::to_string).collect() }
}

/// Units named by their object; `records` in link order.
fn linked(units: &[(&str, &str)], records: &[LinkRecord]) -> Program {
    let objects: Vec<Vec<_>> = units.iter().map(|(object, _)| vec![object.replace(".c", ".o").into()]).collect();
    let units = units.iter().map(|(source, names)| unit(source, names)).collect();
    link(units, link_units(records, &objects))
}

/// Where a name means what, as seen from a source: the sources of the definitions, or `extern`.
fn meaning(program: &Program, from: &str, name: &str) -> String {
    let (unit, _) = program.units.iter_ids().find(|(_, unit)| unit.source == from).unwrap();
    let (symbol, _) = program.units[unit].symbols.iter_ids().find(|(_, symbol)| symbol.name == name).unwrap();
    let sources: Vec<&str> = match program.target(unit, symbol) {
        Target::Extern(id) => return format!("extern {}", program.externs[*id]),
        Target::Functions(ids) => ids.iter().map(|id| program.units[program.unit_of(*id)].source.as_str()).collect(),
        Target::Globals(ids) => ids.iter().map(|id| program.units[program.globals[*id].0].source.as_str()).collect(),
    };
    sources.join(" ")
}

#[test]
fn each_program_has_its_own_usage() {
    let program = linked(
        &[("/p/a.c", "main usage die?"), ("/p/b.c", "main usage die?"), ("/p/common.c", "die usage? log@ free?")],
        &[
            record("/p/a", LinkKind::Program, &["/p/a.o", "/p/common.o"]),
            record("/p/b", LinkKind::Program, &["/p/b.o", "/p/common.o"]),
        ],
    );
    assert_eq!(meaning(&program, "/p/a.c", "usage"), "/p/a.c");
    assert_eq!(meaning(&program, "/p/a.c", "die"), "/p/common.c");
    assert_eq!(meaning(&program, "/p/common.c", "usage"), "/p/a.c /p/b.c");
    assert_eq!(meaning(&program, "/p/common.c", "free"), "extern free");
    assert_eq!(meaning(&program, "/p/common.c", "log"), "/p/common.c");
}

#[test]
fn a_name_of_another_program_is_a_librarys_here() {
    let program = linked(
        &[("/p/a.c", "main error?"), ("/p/b.c", "main err?"), ("/p/error.c", "error")],
        &[record("/p/a", LinkKind::Program, &["/p/a.o"]), record("/p/b", LinkKind::Program, &["/p/b.o", "/p/error.o"])],
    );
    assert_eq!(meaning(&program, "/p/a.c", "error"), "extern error");
    assert_eq!(program.externs.as_slice(), ["err", "error"]);
}

#[test]
fn archives_and_shared_libraries_are_seen_through() {
    let program = linked(
        &[
            ("/p/a.c", "main pack? show?"),
            ("/p/pack.c", "pack alloc?"),
            ("/p/alloc.c", "alloc"),
            ("/p/show.c", "show alloc?"),
            ("/q/alloc.c", "alloc"),
        ],
        &[
            record("/p/liballoc.a", LinkKind::Archive, &["/p/alloc.o"]),
            record("/p/libpack.a", LinkKind::Archive, &["/p/pack.o"]),
            record("/p/libshow.so.1", LinkKind::Shared, &["/p/show.o", "/q/alloc.o"]),
            record("/p/a", LinkKind::Program, &["/p/a.o", "/p/libpack.a", "/p/liballoc.a", "-lshow"]),
        ],
    );
    assert_eq!(meaning(&program, "/p/pack.c", "alloc"), "/p/alloc.c");
    assert_eq!(meaning(&program, "/p/a.c", "show"), "/p/show.c");
    // The library has its own; in the program the archive's comes first.
    assert_eq!(meaning(&program, "/p/show.c", "alloc"), "/p/alloc.c /q/alloc.c");
    let names: Vec<_> = program.link_units.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["/p/libshow.so.1", "/p/a"]);
}

#[test]
fn strong_wins_over_common_over_weak_and_inline_bodies_give_way() {
    let program = linked(
        &[
            ("/p/a.c", "main hook~ shared! fast+ lone~ only+"),
            ("/p/b.c", "hook shared! fast"),
            ("/p/c.c", "hook? shared! lone? only?"),
        ],
        &[record("/p/x", LinkKind::Program, &["/p/a.o", "/p/b.o", "/p/c.o"])],
    );
    assert_eq!(meaning(&program, "/p/a.c", "hook"), "/p/b.c");
    assert_eq!(meaning(&program, "/p/c.c", "hook"), "/p/b.c");
    for source in ["/p/a.c", "/p/b.c", "/p/c.c"] {
        assert_eq!(meaning(&program, source, "shared"), "/p/a.c");
    }
    assert_eq!(meaning(&program, "/p/a.c", "fast"), "/p/b.c");
    assert_eq!(meaning(&program, "/p/c.c", "lone"), "/p/a.c");
    assert_eq!(meaning(&program, "/p/a.c", "only"), "/p/a.c");
    assert_eq!(meaning(&program, "/p/c.c", "only"), "extern only");
}

#[test]
fn an_alias_means_what_it_stands_for() {
    let program = linked(&[("/p/a.c", "real@ name=real loop=loop"), ("/p/b.c", "name? loop?")], &[]);
    assert_eq!(meaning(&program, "/p/b.c", "name"), "/p/a.c");
    assert_eq!(meaning(&program, "/p/a.c", "name"), "/p/a.c");
    assert_eq!(meaning(&program, "/p/b.c", "loop"), "extern loop");
}

#[test]
fn without_link_commands_the_nearest_is_meant() {
    let program = linked(
        &[
            ("/p/x/a.c", "main usage help? lib?"),
            ("/p/x/help.c", "help usage?"),
            ("/p/y/b.c", "main usage help? lib? only_a?"),
            ("/p/y/help.c", "help"),
            ("/p/lib/lib.c", "lib"),
            ("/p/z/c.c", "main only_a"),
        ],
        &[],
    );
    assert_eq!(meaning(&program, "/p/x/a.c", "help"), "/p/x/help.c");
    assert_eq!(meaning(&program, "/p/y/b.c", "help"), "/p/y/help.c");
    assert_eq!(meaning(&program, "/p/x/a.c", "lib"), "/p/lib/lib.c");
    assert_eq!(meaning(&program, "/p/x/help.c", "usage"), "/p/x/a.c");
    assert_eq!(meaning(&program, "/p/y/b.c", "only_a"), "extern only_a");
}

#[test]
fn a_plugin_finds_its_host() {
    let program = linked(
        &[("/p/host.c", "main api"), ("/p/plugin.c", "init api?")],
        &[
            record("/p/host", LinkKind::Program, &["/p/host.o"]),
            record("/p/plugin.so", LinkKind::Shared, &["/p/plugin.o"]),
        ],
    );
    assert_eq!(meaning(&program, "/p/plugin.c", "api"), "/p/host.c");
}

#[test]
fn linking_again_changes_only_what_was_replaced() {
    let records = [record("/p/x", LinkKind::Program, &["/p/a.o", "/p/b.o"])];
    let program = linked(&[("/p/a.c", "main f? g?"), ("/p/b.c", "f")], &records);
    assert_eq!(meaning(&program, "/p/a.c", "g"), "extern g");
    let again = relink(&program, &[(UnitId(1), unit("/p/b.c", "extra@ f g"))], &[]);
    assert_eq!(meaning(&again, "/p/a.c", "g"), "/p/b.c");
    assert_eq!(meaning(&again, "/p/a.c", "f"), "/p/b.c");
    assert_eq!(again.functions_named("f"), [FuncId(2)]);
    assert_eq!(program.functions_named("f"), [FuncId(1)]);
}
