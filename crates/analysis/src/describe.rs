//! Access paths in words: `*arg0`, `arg0->buf` as `arg0[8]`, `glob3[0]`.

use crate::object::{ObjId, Object};
use crate::term::{Off, Term, TermId, Terms};

pub fn object(terms: &Terms, obj: ObjId) -> String {
    match terms.object(obj) {
        Object::Stack(inst) => format!("local {inst}"),
        Object::Global(global) => format!("{global}"),
        Object::External(id) => format!("{id}"),
        Object::Code(id) => format!("{id}"),
        Object::Deref(base) => format!("*{}", term(terms, *base)),
        Object::Heap { site, sub, older } => {
            format!("{}block {site}.{sub}", if *older { "older " } else { "" })
        }
    }
}

pub fn off(terms: &Terms, off: Off) -> String {
    match off {
        Off::At(at) => format!("{at}"),
        Off::Elem(index, bytes) => format!("{}+{bytes}", term(terms, index)),
        Off::Some => "?".into(),
    }
}

pub fn term(terms: &Terms, id: TermId) -> String {
    term_within(terms, id, 6)
}

fn term_within(terms: &Terms, id: TermId, depth: u32) -> String {
    if depth == 0 {
        return "…".into();
    }
    let go = |id: TermId| term_within(terms, id, depth - 1);
    match terms.get(id) {
        Term::Int(value) => value.to_string(),
        Term::Param(index) => format!("arg{index}"),
        Term::Content { obj, off: at, epoch } => {
            let base = match terms.object(*obj) {
                Object::Deref(base) => go(*base),
                _ => object(terms, *obj),
            };
            let when = if *epoch == 0 { String::new() } else { "'".into() };
            format!("{base}[{}]{when}", off(terms, *at))
        }
        Term::Addr { obj, off: 0 } => format!("&{}", object(terms, *obj)),
        Term::Addr { obj, off } => match terms.object(*obj) {
            Object::Deref(base) => format!("{}+{off}", go(*base)),
            _ => format!("&{}+{off}", object(terms, *obj)),
        },
        Term::Elem { base, index, bytes } => format!("{}+{}+{bytes}", go(*base), go(*index)),
        Term::Func(id) => id.to_string(),
        Term::Sym { site, slot } => format!("some{site}.{slot}"),
        Term::Pure { args, .. } => {
            format!("pure({})", args.iter().map(|&arg| go(arg)).collect::<Vec<_>>().join(", "))
        }
        Term::Bin(op, a, b) => format!("({} {op:?} {})", go(*a), go(*b)),
        Term::Cmp(op, a, b) => format!("({} {op:?} {})", go(*a), go(*b)),
        Term::Cast(op, bits, a) => format!("{op:?}{bits}({})", go(*a)),
        Term::Ite(c, a, b) => format!("({} ? {} : {})", go(*c), go(*a), go(*b)),
    }
}
