//! Terms and objects of a summary in the words of the source.
//!
//! ```text
//! content(*arg0, 8)        list->head       (a parameter's name, a field's name from debug information)
//! content(*arg0, elem)     list[…]
//! addr heap0               block 1
//! ```
//!
//! # Known imprecision
//! - Without debug information a cell is written by its offset: `*(list + 8)`.
//! - A block's fields have names only where it becomes the result, or the content of a cell, of a known type.

use caulk_base::{FxHashMap, Id};
use caulk_ir::{FuncId, Function, InstId, Program, TypeId, Unit, UnitId};

use crate::object::{ObjId, Object};
use crate::place::Off;
use crate::summary::Summary;
use crate::term::{Term, TermId};

/// Deeper parts are written as `…`.
const DEPTH: u32 = 6;

type Typed = (String, Option<TypeId>);

pub(crate) struct Words<'a> {
    pub program: &'a Program,
    pub unit_id: UnitId,
    pub unit: &'a Unit,
    pub function: &'a Function,
    pub summary: &'a Summary,
    /// What the blocks hold, where their pointer has a type.
    blocks: FxHashMap<ObjId, TypeId>,
}

impl<'a> Words<'a> {
    pub fn new(program: &'a Program, id: FuncId, summary: &'a Summary) -> Self {
        let unit_id = program.unit_of(id);
        let function = program.function(id);
        let mut words =
            Self { program, unit_id, unit: &program.units[unit_id], function, summary, blocks: FxHashMap::default() };
        // A block in a field of a block has its type from it: twice is deep enough for what people write.
        for _ in 0..2 {
            for outcome in &summary.outcomes {
                if let Some(result) = outcome.result {
                    words.learn(result, function.ret_type);
                }
                for write in &outcome.writes {
                    let (_, ty) = words.cell(write.obj, write.off);
                    words.learn(write.term, ty);
                }
            }
        }
        words
    }

    fn learn(&mut self, term: TermId, ty: Option<TypeId>) {
        if let Term::Addr { obj, off: 0 } = self.summary.terms[term.index()]
            && matches!(self.summary.objects[obj.index()], Object::Heap { .. })
            && let Some(inner) = ty.and_then(|ty| self.unit.pointee(ty))
        {
            self.blocks.entry(obj).or_insert(inner);
        }
    }

    /// `file.c:12` of an instruction.
    pub fn place(&self, inst: InstId) -> String {
        let loc = self.unit.locs[self.function.insts[inst].loc];
        match loc.file {
            Some(file) if loc.line > 0 => format!("{}:{}", base_name(&self.unit.files[file]), loc.line),
            _ => "?".to_owned(),
        }
    }

    pub fn term(&self, id: TermId) -> String {
        self.typed(id, DEPTH).0
    }

    /// The cell as the source writes it, and its type.
    pub fn cell(&self, obj: ObjId, off: Off) -> Typed {
        self.cell_within(obj, off, DEPTH)
    }

    pub fn param(&self, index: u32) -> String {
        let var = self.function.vars.iter().find(|var| var.param == Some(index));
        var.map_or_else(|| format!("argument {}", index + 1), |var| var.name.clone())
    }

    /// What people call the object itself: the pointer to it, for what a pointer points to.
    pub fn object(&self, obj: ObjId) -> String {
        match self.summary.objects.get(obj.index()) {
            Some(Object::Deref(base)) => self.term(*base),
            Some(Object::Heap { older: false, .. }) => format!("block {}", self.block_number(obj)),
            Some(Object::Heap { older: true, .. }) => format!("the older blocks {}", self.block_number(obj)),
            Some(Object::Stack(inst)) => self.local(*inst),
            Some(Object::Global(global)) => {
                let (unit, _) = self.program.globals[*global];
                self.program.units[unit].symbols[self.program.global(*global).symbol].name.clone()
            }
            Some(Object::External(id)) => self.program.externs[*id].clone(),
            Some(Object::Code(id)) => self.program.function(*id).name.clone(),
            None => "…".to_owned(),
        }
    }

    /// Blocks are numbered from 1 in the order of the summary.
    fn block_number(&self, obj: ObjId) -> usize {
        self.summary.objects[..=obj.index()].iter().filter(|object| matches!(object, Object::Heap { .. })).count()
    }

    fn local(&self, inst: InstId) -> String {
        match self.function.insts[inst].op {
            caulk_ir::Op::Alloca { var: Some(var), .. } => self.function.vars[var].name.clone(),
            _ => "a local variable".to_owned(),
        }
    }

    fn cell_within(&self, obj: ObjId, off: Off, depth: u32) -> Typed {
        let (text, ty, arrow) = match self.summary.objects.get(obj.index()) {
            Some(Object::Deref(base)) => {
                let (text, ty) = self.typed(*base, depth.saturating_sub(1));
                (text, ty.and_then(|ty| self.unit.pointee(ty)), "->")
            }
            Some(Object::Heap { .. }) => (self.object(obj), self.blocks.get(&obj).copied(), "."),
            Some(Object::Global(global)) => {
                let own = self.program.globals[*global].0 == self.unit_id;
                (self.object(obj), self.program.global(*global).ty.filter(|_| own), ".")
            }
            _ => (self.object(obj), None, "."),
        };
        match off {
            Off::At(at) => match ty.and_then(|ty| self.unit.field_at(ty, at)) {
                Some((field, ty)) => (format!("{text}{arrow}{field}"), ty),
                None if arrow == "." && at == 0 => (text, ty),
                None if at == 0 => (format!("*{text}"), ty),
                None => (format!("*({text} + {at})"), None),
            },
            Off::Elem(index, at) => {
                let index = self.typed(index, depth.saturating_sub(1)).0;
                let rest = if at == 0 { String::new() } else { format!(" + {at}") };
                (format!("{text}[{index} bytes{rest}]"), ty)
            }
            Off::Some => (format!("{text}[…]"), ty),
        }
    }

    fn typed(&self, id: TermId, depth: u32) -> Typed {
        if depth == 0 {
            return ("…".to_owned(), None);
        }
        let go = |id: TermId| self.typed(id, depth - 1).0;
        let Some(term) = self.summary.terms.get(id.index()) else { return ("…".to_owned(), None) };
        let text = match term {
            Term::Int(value) => value.to_string(),
            Term::Param(index) => {
                let var = self.function.vars.iter().find(|var| var.param == Some(*index));
                return (self.param(*index), var.and_then(|var| var.ty));
            }
            Term::Content { obj, off, epoch } => {
                let (text, ty) = self.cell_within(*obj, *off, depth - 1);
                return (if *epoch == 0 { text } else { format!("{text} (later)") }, ty);
            }
            Term::Addr { obj, off } => {
                let (cell, is_block) = match self.summary.objects.get(obj.index()) {
                    Some(Object::Heap { .. } | Object::Code(_)) if *off == 0 => (self.object(*obj), true),
                    _ => (self.cell_within(*obj, Off::At(*off), depth - 1).0, false),
                };
                if is_block { cell } else { format!("&{cell}") }
            }
            Term::Elem { base, index, bytes } => {
                let rest = if *bytes == 0 { String::new() } else { format!(" + {bytes}") };
                format!("{} + {} bytes{rest}", go(*base), go(*index))
            }
            Term::Func(id) => self.program.function(*id).name.clone(),
            Term::Sym { .. } => "some value".to_owned(),
            Term::Pure(call) => {
                format!("a function of ({})", call.args.iter().map(|&arg| go(arg)).collect::<Vec<_>>().join(", "))
            }
            Term::Bin(op, a, b) => format!("({} {} {})", go(*a), op.sign(), go(*b)),
            Term::Cmp(op, a, b) => format!("{} {} {}", go(*a), op.sign(), go(*b)),
            Term::Cast(_, bits, a) => format!("({bits} bits of {})", go(*a)),
            Term::Ite(c, a, b) => format!("({} ? {} : {})", go(*c), go(*a), go(*b)),
        };
        (text, None)
    }
}

pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
