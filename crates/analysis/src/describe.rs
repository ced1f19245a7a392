//! Access paths in words: `*arg0`, `arg0->buf` as `arg0[8]`, `table[0]`. No ids of the program are in them, so that they
//! read the same in every run.

use caulk_ir::Program;

use crate::object::{ObjId, Object};
use crate::place::Off;
use crate::term::{Term, TermId, Terms};

pub fn object(program: &Program, terms: &Terms, obj: ObjId) -> String {
    match terms.object(obj) {
        Object::Stack(inst) => format!("local {inst}"),
        Object::Global(id) => {
            let (unit, _) = program.globals[*id];
            program.units[unit].symbols[program.global(*id).symbol].name.clone()
        }
        Object::External(id) => program.externs[*id].clone(),
        Object::Code(id) => program.function(*id).name.clone(),
        Object::Deref(base) => format!("*{}", term(program, terms, *base)),
        Object::Heap { site, sub, older } => {
            format!("{}block {site}.{sub}", if *older { "older " } else { "" })
        }
    }
}

pub fn off(program: &Program, terms: &Terms, off: Off) -> String {
    match off {
        Off::At(at) => format!("{at}"),
        Off::Elem(index, bytes) => format!("{}+{bytes}", term(program, terms, index)),
        Off::Some => "?".into(),
    }
}

pub fn term(program: &Program, terms: &Terms, id: TermId) -> String {
    term_within(program, terms, id, 6)
}

fn term_within(program: &Program, terms: &Terms, id: TermId, depth: u32) -> String {
    if depth == 0 {
        return "…".into();
    }
    let go = |id: TermId| term_within(program, terms, id, depth - 1);
    match terms.get(id) {
        Term::Int(value) => value.to_string(),
        Term::Param(index) => format!("arg{index}"),
        Term::Content { obj, off: at, epoch } => {
            let base = match terms.object(*obj) {
                Object::Deref(base) => go(*base),
                _ => object(program, terms, *obj),
            };
            let when = if *epoch == 0 { String::new() } else { "'".into() };
            format!("{base}[{}]{when}", off(program, terms, *at))
        }
        Term::Addr { obj, off: 0 } => format!("&{}", object(program, terms, *obj)),
        Term::Addr { obj, off } => match terms.object(*obj) {
            Object::Deref(base) => format!("{}+{off}", go(*base)),
            _ => format!("&{}+{off}", object(program, terms, *obj)),
        },
        Term::Elem { base, index, bytes } => format!("{}+{}+{bytes}", go(*base), go(*index)),
        Term::Func(id) => program.function(*id).name.clone(),
        Term::Sym { site, slot } => format!("some{site}.{slot}"),
        Term::Pure(call) => {
            format!("pure({})", call.args.iter().map(|&arg| go(arg)).collect::<Vec<_>>().join(", "))
        }
        Term::Bin(op, a, b) => format!("({} {op:?} {})", go(*a), go(*b)),
        Term::Cmp(op, a, b) => format!("({} {op:?} {})", go(*a), go(*b)),
        Term::Cast(op, bits, a) => format!("{op:?}{bits}({})", go(*a)),
        Term::Ite(c, a, b) => format!("({} ? {} : {})", go(*c), go(*a), go(*b)),
    }
}
