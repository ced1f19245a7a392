//! What people call things: variables, access paths, callees, places.

use caulk_analysis::{Knowledge, Subject};
use caulk_findings::Place;
use caulk_ir::{
    Callee, FuncId, Function, InstId, Op, Target, Ty, TypeId, TypeKind, Unit, UnitId, ValueId, ValueKind, VarId,
    Variable,
};
use caulk_models::FamilyId;

pub struct Names<'a> {
    knowledge: &'a Knowledge<'a>,
    unit_id: UnitId,
    unit: &'a Unit,
    pub function: &'a Function,
}

/// What a call is given to fill: one of these, or an array of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    Pointer,
    Number,
    Struct,
}

impl<'a> Names<'a> {
    pub fn new(knowledge: &'a Knowledge<'a>, id: FuncId) -> Self {
        let unit_id = knowledge.program.unit_of(id);
        Self { knowledge, unit_id, unit: &knowledge.program.units[unit_id], function: knowledge.program.function(id) }
    }

    pub fn place(&self, inst: InstId) -> Place {
        let mut loc = self.unit.locs[self.function.insts[inst].loc];
        // What the compiler made has no place of its own: an assignment is where its value is made.
        if loc.line == 0
            && let Op::Bind { value, .. } = self.function.insts[inst].op
            && let ValueKind::Inst(made) = self.function.values[value].kind
        {
            loc = self.unit.locs[self.function.insts[made].loc];
        }
        let own = self.unit.locs[self.function.loc];
        let (file, line, column, in_macro) = match loc.file {
            Some(file) if loc.line > 0 => (file, loc.line, loc.column, loc.in_macro),
            _ => match own.file {
                Some(file) => (file, own.line, own.column, false),
                None => return Place { function: self.function.name.clone(), ..Place::default() },
            },
        };
        Place { file: self.unit.files[file].clone(), line, column, function: self.function.name.clone(), in_macro }
    }

    /// Is this the jump of a `return` statement?
    pub fn is_return(&self, inst: InstId) -> bool {
        let loc = self.unit.locs[self.function.insts[inst].loc];
        matches!(self.function.insts[inst].op, Op::Jump { .. }) && (loc.at_return || loc.in_macro)
    }

    /// The name of the function a call calls.
    pub fn callee(&self, inst: InstId) -> Option<String> {
        let Op::Call(call) = &self.function.insts[inst].op else { return None };
        match &call.callee {
            Callee::Symbol(symbol) => Some(self.unit.symbols[*symbol].name.clone()),
            Callee::Value(value) => match self.knowledge.program.target(self.unit_id, self.address(*value)?) {
                Target::Functions(all) => all.first().map(|&id| self.knowledge.program.function(id).name.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    fn address(&self, value: ValueId) -> Option<caulk_ir::SymbolId> {
        match self.function.values[value].kind {
            ValueKind::Address(symbol, _) => Some(symbol),
            _ => None,
        }
    }

    /// How people call the object an incident is about, quoted where it is code.
    pub fn subject(&self, subject: &Subject, family: FamilyId) -> String {
        match subject {
            Subject::Allocated { site, .. } => match self.holder(*site, family) {
                Some(name) => format!("`{name}`"),
                None => match self.callee(*site) {
                    Some(callee) => format!("the result of `{callee}`"),
                    None => "the result of this call".into(),
                },
            },
            Subject::Input(path) => self.input(path),
        }
    }

    /// `*arg0[8]` with the parameter's name.
    fn input(&self, path: &str) -> String {
        let mut text = path.to_string();
        for var in self.function.vars.iter() {
            if let Some(index) = var.param {
                text = replace_word(&text, &format!("arg{index}"), &var.name);
            }
        }
        match text.strip_prefix('*') {
            Some(pointer) if pointer.chars().all(|c| c.is_alphanumeric() || c == '_') => format!("`{pointer}`"),
            _ => format!("`{text}`"),
        }
    }

    /// The variable or field that takes what a call makes: its result, or something that it fills through a pointer.
    pub fn holder(&self, site: InstId, family: FamilyId) -> Option<String> {
        let wanted = if self.knowledge.models.families[family].is_integer { Ty::Int(32) } else { Ty::Ptr };
        let result = self.function.insts[site].result;
        let fits = result.filter(|&result| self.function.values[result].ty == wanted);
        // `status = make(&p)`: what is made lies in a variable of its kind, or in a part of one; the last one by custom.
        let given = |kind: Given| self.given(site).find(|(known, _)| *known == kind).map(|(_, name)| name);
        let own = given(if wanted == Ty::Ptr { Given::Pointer } else { Given::Number });
        match fits {
            Some(result) => self.holder_of(result).or(own).or_else(|| given(Given::Struct)),
            None => own
                .or_else(|| given(Given::Struct))
                .or_else(|| result.filter(|_| wanted != Ty::Ptr).and_then(|result| self.holder_of(result))),
        }
    }

    /// The variables and fields whose addresses a call is given, from the last argument on.
    fn given(&self, site: InstId) -> impl Iterator<Item = (Given, String)> {
        let args = match &self.function.insts[site].op {
            Op::Call(call) => call.args.as_slice(),
            _ => &[],
        };
        args.iter().rev().filter_map(|&arg| {
            match self.function.values[arg].kind {
                ValueKind::Inst(inst) => match self.function.insts[inst].op {
                    Op::Alloca { var: Some(var), .. } => Some((self.kind_of(var), self.var(var))),
                    Op::Offset { member: Some(_), .. } => Some((Given::Pointer, self.lvalue(arg, 4))),
                    _ => None,
                },
                // An out-parameter that is handed on.
                ValueKind::Param(param) => {
                    let is_out = |var: &Variable| var.param == Some(param) && self.unit.is_pointer_to_pointer(var.ty);
                    self.function.vars.iter().any(is_out).then(|| (Given::Pointer, self.lvalue(arg, 4)))
                }
                _ => None,
            }
        })
    }

    fn kind_of(&self, var: VarId) -> Given {
        let mut ty = self.function.vars[var].ty;
        loop {
            match ty.and_then(|ty| self.unit.kind(ty)) {
                Some(TypeKind::Pointer(_)) => return Given::Pointer,
                Some(TypeKind::Struct(_) | TypeKind::Union(_)) => return Given::Struct,
                Some(TypeKind::Array(element)) => ty = *element,
                _ => return Given::Number,
            }
        }
    }

    fn holder_of(&self, value: ValueId) -> Option<String> {
        for inst in self.function.insts.iter() {
            if let Op::Bind { var, value: bound } = inst.op
                && bound == value
            {
                return Some(self.var(var));
            }
        }
        for inst in self.function.insts.iter() {
            match &inst.op {
                Op::Store { ptr, value: stored } if *stored == value => return Some(self.lvalue(*ptr, 4)),
                Op::Phi { incoming } if incoming.iter().any(|entry| entry.1 == value) => {
                    let result = inst.result?;
                    return self.function.insts.iter().find_map(|inst| match inst.op {
                        Op::Bind { var, value: bound } if bound == result => Some(self.var(var)),
                        _ => None,
                    });
                }
                _ => {}
            }
        }
        None
    }

    fn var(&self, var: VarId) -> String {
        self.function.vars[var].name.clone()
    }

    /// What the programmer wrote for the cell behind a pointer.
    pub fn lvalue(&self, ptr: ValueId, depth: u32) -> String {
        if depth == 0 {
            return "…".into();
        }
        match self.function.values[ptr].kind {
            ValueKind::Inst(inst) => match &self.function.insts[inst].op {
                Op::Alloca { var: Some(var), .. } => self.var(*var),
                Op::Offset { base, bytes, indices, .. } => {
                    let (text, ty, direct) = self.base(*base, depth - 1);
                    let field = ty.and_then(|ty| self.unit.field_at(ty, *bytes));
                    match field {
                        Some((field, _)) => format!("{text}{}{field}", if direct { "." } else { "->" }),
                        None if !indices.is_empty() => format!("{text}[…]"),
                        None => format!("*{text}"),
                    }
                }
                _ => {
                    let (text, ty, direct) = self.base(ptr, depth - 1);
                    match ty.and_then(|ty| self.unit.field_at(ty, 0)) {
                        Some((field, _)) => format!("{text}{}{field}", if direct { "." } else { "->" }),
                        None => format!("*{text}"),
                    }
                }
            },
            ValueKind::Param(_) => {
                let (text, ty, _) = self.base(ptr, depth - 1);
                match ty.and_then(|ty| self.unit.field_at(ty, 0)) {
                    Some((field, _)) => format!("{text}->{field}"),
                    None => format!("*{text}"),
                }
            }
            ValueKind::Address(symbol, _) => self.unit.symbols[symbol].name.clone(),
            _ => "…".into(),
        }
    }

    /// The text of a pointer expression, the struct it points to, and whether it is the struct itself.
    fn base(&self, value: ValueId, depth: u32) -> (String, Option<TypeId>, bool) {
        if let ValueKind::Inst(inst) = self.function.values[value].kind
            && let Op::Alloca { var: Some(var), .. } = self.function.insts[inst].op
        {
            return (self.var(var), self.function.vars[var].ty, true);
        }
        if let Some(var) = self.bound(value) {
            let ty = self.function.vars[var].ty.and_then(|ty| self.unit.pointee(ty));
            return (self.var(var), ty, false);
        }
        if let ValueKind::Address(symbol, _) = self.function.values[value].kind {
            return (self.unit.symbols[symbol].name.clone(), None, true);
        }
        if let ValueKind::Inst(inst) = self.function.values[value].kind
            && let Op::Load { ptr } = self.function.insts[inst].op
        {
            return (self.lvalue(ptr, depth), None, false);
        }
        ("…".into(), None, false)
    }

    fn bound(&self, value: ValueId) -> Option<VarId> {
        // A constant that was assigned to a variable is not that variable.
        if !matches!(self.function.values[value].kind, ValueKind::Inst(_) | ValueKind::Param(_)) {
            return None;
        }
        self.function.insts.iter().find_map(|inst| match inst.op {
            Op::Bind { var, value: bound } if bound == value => Some(var),
            _ => None,
        })
    }

    /// The members of the union that the cell behind a pointer is, as far as the types are known.
    pub fn union_members(&self, ptr: ValueId) -> Vec<&str> {
        let (base, bytes) = match self.function.values[ptr].kind {
            ValueKind::Inst(inst) => match self.function.insts[inst].op {
                Op::Offset { base, bytes, .. } => (base, bytes),
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let Some(ty) = self.base(base, 4).1 else { return Vec::new() };
        let union = |ty: TypeId| match self.unit.kind(ty) {
            Some(TypeKind::Union(fields)) => Some(fields),
            _ => None,
        };
        let fields = self.unit.members_at(ty, bytes).into_iter().find_map(|field| union(field.ty?));
        fields.into_iter().flatten().map(|field| field.name.as_str()).collect()
    }

    /// The word that stands in the source where an instruction comes from.
    pub fn word(&self, inst: InstId) -> Option<String> {
        let loc = self.unit.locs[self.function.insts[inst].loc];
        let text = std::fs::read(&self.unit.files[loc.file?]).ok()?;
        let line = text.split(|&byte| byte == b'\n').nth((loc.line as usize).checked_sub(1)?)?;
        let rest = line.get((loc.column as usize).checked_sub(1)?..)?;
        let word = rest.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').next()?;
        Some(String::from_utf8_lossy(word).into_owned())
    }

    /// A condition as text, as far as names are known.
    pub fn condition(&self, value: ValueId) -> String {
        self.expression(value, 4)
    }

    fn expression(&self, value: ValueId, depth: u32) -> String {
        if depth == 0 {
            return "…".into();
        }
        if let Some(var) = self.bound(value) {
            return self.var(var);
        }
        match self.function.values[value].kind {
            ValueKind::Int(number) => number.to_string(),
            ValueKind::Null | ValueKind::Zero => "NULL".into(),
            ValueKind::Address(symbol, _) => self.unit.symbols[symbol].name.clone(),
            ValueKind::Param(index) => self
                .function
                .vars
                .iter()
                .find(|var| var.param == Some(index))
                .map_or_else(|| format!("argument {}", index + 1), |var| var.name.clone()),
            ValueKind::Inst(inst) => match &self.function.insts[inst].op {
                Op::Cmp { op, a, b } => {
                    format!("{} {} {}", self.expression(*a, depth - 1), op.sign(), self.expression(*b, depth - 1))
                }
                Op::Load { ptr } => self.lvalue(*ptr, depth - 1),
                Op::Cast { a, .. } => self.expression(*a, depth - 1),
                Op::Call(_) => self.callee(inst).map_or_else(|| "…".into(), |callee| format!("{callee}(…)")),
                Op::Bin { op, a, b } => {
                    format!("{} {} {}", self.expression(*a, depth - 1), op.sign(), self.expression(*b, depth - 1))
                }
                _ => "…".into(),
            },
            _ => "…".into(),
        }
    }
}

fn replace_word(text: &str, word: &str, with: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let after = rest[at + word.len()..].chars().next();
        out.push_str(&rest[..at]);
        out.push_str(if after.is_some_and(|c| c.is_ascii_digit()) { word } else { with });
        rest = &rest[at + word.len()..];
    }
    out.push_str(rest);
    out
}
