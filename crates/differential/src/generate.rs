//! A random program from a seed.

use crate::body::{Body, Callee, Contract, Kind, State, Var};
use crate::library;
use crate::mutate::{Mutation, mutate};
use crate::rng::Rng;
use crate::tree::{Function, Stmt, Style, render};

/// A program with its inputs. Whether it has errors is what running it says; see [`crate::run`].
#[derive(Clone, Debug)]
pub struct Program {
    pub seed: u64,
    pub source: String,
    /// `main`'s argument is a number below `1 << bits`.
    pub bits: usize,
    /// What was broken, and in which function; nothing in a program that is meant to be clean.
    pub mutations: Vec<(Mutation, String)>,
}

/// Programs left as they are, in percent. Some mutations are harmless, so that more programs turn out clean.
const UNTOUCHED: usize = 24;

pub fn generate(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let bits = [2, 3, 3, 3, 4, 4, 5][rng.below(7)];
    let names = rng.percent(55);
    let mut functions = library::functions(&mut rng, names, bits);
    let mut callees: Vec<Callee> = Vec::new();
    for number in 0..2 + rng.below(5) {
        let contracts = [
            Contract::Work,
            Contract::Work,
            Contract::Borrow,
            Contract::Consume,
            Contract::Create,
            Contract::Out,
            Contract::Store,
        ];
        let contract = rng.pick(&contracts).copied().unwrap_or(Contract::Work);
        let name = format!("f{number}");
        functions.push(function(&mut rng, (bits, names), &callees, &name, contract));
        callees.push(Callee { name, contract });
    }
    functions.push(driver(&callees, names, &mut rng));
    let count = if rng.percent(UNTOUCHED) { 0 } else { 1 + rng.below(3) };
    let mutations = mutate(&mut functions, count, &mut rng);
    functions.push(library::exercise(names));
    functions.push(Function {
        head: "#endif\n\nint main(int argc, char **argv)".into(),
        body: vec![
            Stmt::plain("input = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;"),
            Stmt::plain("printf(\"total %d\\n\", run());"),
            Stmt::plain("#ifdef EXERCISE"),
            Stmt::plain("exercise();"),
            Stmt::plain("#endif"),
            Stmt::plain("return 0;"),
        ],
    });
    let style = Style {
        unit: ["    ", "\t", "  "][rng.below(3)],
        allman: rng.percent(25),
        short_bodies: rng.below(3) as u8,
        crlf: rng.percent(4),
    };
    // Containers and switches have bits of their own behind the others.
    let source = render(library::TYPES, &functions, style);
    let bits = if source.contains("switch (") { bits + 3 } else { bits + 1 };
    Program { seed, source, bits, mutations }
}

fn function(
    rng: &mut Rng,
    (bits, names): (usize, bool),
    callees: &[Callee],
    name: &str,
    contract: Contract,
) -> Function {
    let (result, parameters) = match contract {
        Contract::Work => ("int ", "int n"),
        Contract::Borrow | Contract::Consume => ("int ", "struct node *p"),
        Contract::Create => ("struct node *", "int n"),
        Contract::Out => ("int ", "struct node **out"),
        Contract::Store => ("int ", "struct box *b, struct node *p"),
    };
    let goto_style = rng.percent(35);
    let macros = rng.percent(25);
    let mut body = Body {
        bits,
        names,
        callees,
        contract,
        vars: Vec::new(),
        has_list: rng.percent(35),
        has_box: rng.percent(30),
        goto_style,
        jumped: false,
        macros,
        calls_left: 2,
        rng,
    };
    let mut out = declarations(&mut body);
    let length = 3 + body.rng.below(6);
    let stmts = body.block(length, 2);
    out.extend(stmts);
    finish(&mut body, &mut out);
    Function { head: format!("static {result}{name}({parameters})"), body: out }
}

fn declarations(body: &mut Body<'_>) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut var = |name: &str, kind, state, alias_only| {
        body.vars.push(Var { name: name.into(), kind, state, alias_only, guard: None });
    };
    match body.contract {
        Contract::Borrow | Contract::Store => var("p", Kind::Node, State::Borrowed, false),
        Contract::Consume => var("p", Kind::Node, State::Owned, false),
        Contract::Work | Contract::Create | Contract::Out => {}
    }
    let owners = ["a", "c", "d"];
    let count = 1 + body.rng.below(3);
    let mut declare = |body: &mut Body<'_>, name: &str, kind, alias_only| {
        let spelled = if kind == Kind::Node { "struct node *" } else { "char *" };
        out.push(Stmt::plain(format!("{spelled}{name} = NULL;")));
        body.vars.push(Var { name: name.into(), kind, state: State::Null, alias_only, guard: None });
    };
    for name in owners.iter().take(count) {
        declare(body, name, Kind::Node, false);
    }
    declare(body, "q", Kind::Node, true);
    if body.rng.percent(50) {
        declare(body, "s", Kind::Text, false);
        declare(body, "t", Kind::Text, true);
    }
    if body.has_list {
        out.push(Stmt::plain("struct list list = { NULL, 0 };"));
    }
    if body.has_box {
        out.push(Stmt::plain("struct box box = { NULL, 0 };"));
    }
    let total = if matches!(body.contract, Contract::Work | Contract::Create) { "n" } else { "1" };
    out.push(Stmt::plain(format!("int total = {total};")));
    out.push(Stmt::plain("int rc = 0;"));
    if body.goto_style && body.contract == Contract::Create {
        out.push(Stmt::plain("struct node *result = NULL;"));
    }
    out
}

/// The success path's end, and the common exit of functions that have one.
fn finish(body: &mut Body<'_>, out: &mut Vec<Stmt>) {
    out.push(Stmt::plain("printf(\"%d %d\\n\", total, rc);"));
    let given = |v: &Var| v.state == State::Owned && v.kind == Kind::Node && !v.alias_only && v.guard.is_none();
    let mut handed = None;
    if matches!(body.contract, Contract::Create | Contract::Out) {
        let owned = body.vars.iter().position(given);
        handed = Some(owned.unwrap_or_else(|| {
            out.push(Stmt::plain("struct node *last = node_new(total);"));
            let name = "last".into();
            body.vars.push(Var { name, kind: Kind::Node, state: State::Owned, alias_only: false, guard: None });
            body.vars.len() - 1
        }));
    }
    let name = handed.map(|var| body.vars[var].name.clone()).unwrap_or_default();
    if !body.goto_style {
        let mut releases = body.releases(handed);
        match body.contract {
            Contract::Create => {
                out.append(&mut releases);
                out.push(Stmt::plain(format!("return {name};")));
            }
            Contract::Out => {
                out.append(&mut releases);
                out.push(Stmt::plain(format!("*out = {name};")));
                out.push(Stmt::plain("return 0;"));
            }
            Contract::Store => {
                out.append(&mut releases);
                out.push(Stmt::plain("return box_put(b, p);"));
            }
            Contract::Work | Contract::Borrow | Contract::Consume => {
                let shown = body.vars.iter().find(|v| given(v)).map(|v| v.name.clone());
                match shown {
                    Some(shown) if body.rng.percent(50) => out.push(Stmt::ReturnCall {
                        result: "rc".into(),
                        call: format!("node_show({shown})"),
                        free: releases,
                        direct: false,
                    }),
                    _ => {
                        out.append(&mut releases);
                        out.push(Stmt::plain("return total;"));
                    }
                }
            }
        }
        return;
    }
    match body.contract {
        Contract::Create => {
            out.push(Stmt::plain(format!("result = {name};")));
            clear_handed(&name, out);
        }
        Contract::Out => {
            out.push(Stmt::plain(format!("*out = {name};")));
            clear_handed(&name, out);
        }
        Contract::Store => out.push(Stmt::plain("rc = box_put(b, p);")),
        Contract::Work | Contract::Borrow | Contract::Consume => out.push(Stmt::plain("rc = total;")),
    }
    if body.jumped {
        out.push(Stmt::Label("out".into()));
    }
    // Every way here left each owner with NULL or with what it owns.
    for var in &mut body.vars {
        if !var.alias_only && var.state != State::Borrowed && var.name != "last" {
            var.state = State::Owned;
        } else if var.name == "last" {
            var.state = State::Null;
        }
    }
    out.extend(body.releases(None));
    out.push(Stmt::plain(if body.contract == Contract::Create { "return result;" } else { "return rc;" }));
}

/// The common exit must not release what was handed over; a variable of the last lines is not its business.
fn clear_handed(name: &str, out: &mut Vec<Stmt>) {
    if name != "last" {
        out.push(Stmt::Clear { var: name.into() });
    }
}

/// Calls every function once, each as its contract wants it.
fn driver(callees: &[Callee], names: bool, rng: &mut Rng) -> Function {
    let mut out = vec![Stmt::plain("int total = 0;")];
    let release = library::node_release(names);
    for callee in callees {
        let name = &callee.name;
        let node = format!("node{name}");
        let free = Stmt::Free { text: format!("{release}({node});"), var: node.clone() };
        let fresh =
            Stmt::plain(format!("struct node *{node} = {};", library::node_construct(names, rng.below(50), name)));
        match callee.contract {
            Contract::Work => out.push(Stmt::plain(format!("total += {name}({});", rng.below(9)))),
            Contract::Borrow => {
                let text = format!("total += {name}({node});");
                out.extend([fresh, Stmt::Use { text, var: node }, free]);
            }
            Contract::Consume => {
                out.extend([fresh, Stmt::Free { text: format!("total += {name}({node});"), var: node }]);
            }
            Contract::Create => {
                out.push(Stmt::plain(format!("struct node *{node} = {name}({});", rng.below(9))));
                out.extend([Stmt::Use { text: format!("total += node_show({node});"), var: node }, free]);
            }
            Contract::Out => {
                out.push(Stmt::plain(format!("struct node *{node} = NULL;")));
                out.push(Stmt::If {
                    cond: format!("{name}(&{node}) == 0"),
                    then: vec![Stmt::Use { text: format!("total += node_show({node});"), var: node.clone() }],
                    otherwise: Vec::new(),
                });
                out.push(free);
            }
            Contract::Store => {
                out.push(Stmt::plain(format!("struct box box{name} = {{ NULL, 0 }};")));
                out.push(fresh);
                out.push(Stmt::Insert {
                    call: format!("{name}(&box{name}, $)"),
                    value: node.clone(),
                    free: format!("{release}({node});"),
                    checked: true,
                });
                let held = format!("box{name}.item");
                out.push(Stmt::Use { text: format!("total += node_show({held});"), var: held.clone() });
                out.push(Stmt::Free { text: format!("{release}({held});"), var: held });
            }
        }
    }
    out.push(Stmt::plain("return total;"));
    Function { head: "static int run(void)".into(), body: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_a_program_for_good() {
        for seed in 0..50 {
            assert_eq!(generate(seed).source, generate(seed).source);
        }
        assert_ne!(generate(1).source, generate(2).source);
    }
}
