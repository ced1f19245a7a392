//! What people call things: variables, access paths, callees, places.

use caulk_analysis::{Knowledge, ObjId, Object, Off, Subject, Term, TermId};
use caulk_base::Id;
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

/// A type, and the unit that knows it.
type Typed<'a> = (&'a Unit, TypeId);

/// A pointer expression: its text, the type of what it points to, and how far behind the text it points.
struct Base<'a> {
    text: String,
    ty: Option<Typed<'a>>,
    /// The text is the variable itself and no pointer to it.
    direct: bool,
    bytes: i64,
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
            Subject::Allocated { site, sub } => match self.holder(*site, *sub, family) {
                Some(name) => format!("`{name}`"),
                None => match self.callee(*site) {
                    Some(callee) => format!("the result of `{callee}`"),
                    None => "the result of this call".into(),
                },
            },
            Subject::Input(path) => self.input(path),
        }
    }

    /// `*arg0[8]` as it is written: `list->head`.
    fn input(&self, path: &str) -> String {
        if let Some(text) = path.strip_prefix('*').and_then(|path| self.access(path)) {
            return format!("`{text}`");
        }
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

    /// `arg0[8][0]` in the words of the source, as far as the types are known.
    fn access(&self, path: &str) -> Option<String> {
        let (base, rest) = path.split_once('[')?;
        let parameter = base.strip_prefix("arg").and_then(|index| index.parse().ok());
        let var = parameter.and_then(|index: u32| self.function.vars.iter().find(|var| var.param == Some(index)));
        let (mut text, mut ty, mut direct) = match var {
            Some(var) => (var.name.clone(), Some((self.unit, self.unit.pointee(var.ty?)?)), false),
            None => {
                let symbol = self.unit.symbols.iter().position(|symbol| symbol.name == base)?;
                let global = self.global(caulk_ir::SymbolId(symbol as u32));
                (self.plain(base).to_string(), global, true)
            }
        };
        for offset in rest.strip_suffix(']')?.split("][") {
            let (unit, of) = ty?;
            let field = unit.field_at(of, offset.parse().ok()?);
            let inner = match field {
                Some((field, inner)) => {
                    text = format!("{text}{}{field}", if direct { "." } else { "->" });
                    inner
                }
                None if offset != "0" => return None,
                None => {
                    text = format!("{}{text}", if direct { "" } else { "*" });
                    Some(of)
                }
            };
            (ty, direct) = (inner.and_then(|inner| Some((unit, unit.pointee(inner)?))), false);
        }
        Some(text)
    }

    /// A variable of a function has the function's name before its own.
    fn plain<'t>(&self, name: &'t str) -> &'t str {
        name.strip_prefix(self.function.name.as_str()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name)
    }

    /// The type of a global variable, and the unit that knows it.
    fn global(&self, symbol: caulk_ir::SymbolId) -> Option<Typed<'a>> {
        let program = self.knowledge.program;
        let Target::Globals(all) = program.target(self.unit_id, symbol) else { return None };
        let &global = all.first()?;
        let (unit, _) = program.globals[global];
        Some((&program.units[unit], program.global(global).ty?))
    }

    /// The variable or field that takes what a call makes: its result, or something that it fills through a pointer.
    pub fn holder(&self, site: InstId, sub: u32, family: FamilyId) -> Option<String> {
        self.filled(site, sub).or_else(|| self.taken(site, family))
    }

    /// What a function of the program puts block `sub` into through one of its arguments, where it returns something else.
    fn filled(&self, site: InstId, sub: u32) -> Option<String> {
        let Op::Call(call) = &self.function.insts[site].op else { return None };
        let Callee::Symbol(symbol) = call.callee else { return None };
        let Target::Functions(all) = self.knowledge.program.target(self.unit_id, symbol) else { return None };
        let summary = self.knowledge.summary(*all.first()?)?;
        let is_made = |term: TermId| matches!(summary.terms.get(term.index()), Some(Term::Addr { obj: ObjId(obj), off: 0 }) if *obj == sub);
        if summary.outcomes.iter().filter_map(|outcome| outcome.result).any(is_made) {
            return None;
        }
        let mut writes =
            summary.outcomes.iter().flat_map(|outcome| &outcome.writes).filter(|write| is_made(write.term));
        let (param, bytes) = writes.find_map(|write| match (summary.objects.get(write.obj.index())?, write.off) {
            (Object::Deref(base), Off::At(bytes)) => match summary.terms.get(base.index())? {
                Term::Param(param) => Some((*param, bytes)),
                _ => None,
            },
            _ => None,
        })?;
        let Base { text, ty, direct, bytes: at } = self.base(*call.args.get(param as usize)?, 4);
        let bytes = bytes + at;
        match ty.and_then(|(unit, ty)| unit.field_at(ty, bytes)) {
            Some((field, _)) => Some(format!("{text}{}{field}", if direct { "." } else { "->" })),
            None if bytes == 0 && text != "…" => Some(if direct { text } else { format!("*{text}") }),
            None => None,
        }
    }

    /// The same, as the call itself tells.
    pub fn taken(&self, site: InstId, family: FamilyId) -> Option<String> {
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
                    // `int ends[2]; pipe(ends);`
                    Op::Offset { base, bytes: 0, ref indices, .. } if indices.is_empty() => {
                        self.alloca(base).map(|var| (self.kind_of(var), self.var(var)))
                    }
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

    fn alloca(&self, value: ValueId) -> Option<VarId> {
        let ValueKind::Inst(inst) = self.function.values[value].kind else { return None };
        match self.function.insts[inst].op {
            Op::Alloca { var, .. } => var,
            _ => None,
        }
    }

    /// What the programmer wrote for the cell behind a pointer.
    pub fn lvalue(&self, ptr: ValueId, depth: u32) -> String {
        self.cell(ptr, depth).0
    }

    /// The same, and the type of the cell.
    fn cell(&self, ptr: ValueId, depth: u32) -> (String, Option<Typed<'a>>) {
        if depth == 0 {
            return ("…".into(), None);
        }
        if let Some(var) = self.alloca(ptr) {
            return (self.var(var), self.function.vars[var].ty.map(|ty| (self.unit, ty)));
        }
        let (base, bytes, index) = match self.function.values[ptr].kind {
            ValueKind::Inst(inst) => match &self.function.insts[inst].op {
                Op::Offset { base, bytes, indices, .. } => (*base, *bytes, !indices.is_empty()),
                _ => (ptr, 0, false),
            },
            ValueKind::Param(_) | ValueKind::Address(..) => (ptr, 0, false),
            _ => return ("…".into(), None),
        };
        let Base { text, ty, direct, bytes: at } = self.base(base, depth - 1);
        let bytes = bytes + at;
        let is_record =
            |(unit, ty): &Typed<'a>| matches!(unit.kind(*ty), Some(TypeKind::Struct(_) | TypeKind::Union(_)));
        // The elements of an array that is a variable have the type that its elements have.
        let (of, text, direct) = match ty {
            Some(ty) if index && direct && !is_record(&ty) => {
                (ty.0.pointee(ty.1).map(|inner| (ty.0, inner)), format!("{text}[…]"), true)
            }
            Some(ty) if index && !direct && is_record(&ty) && bytes > 0 => (Some(ty), format!("{text}[…]"), true),
            ty => (ty, text, direct),
        };
        let element = text.ends_with("[…]");
        match of.and_then(|(unit, ty)| Some((unit, unit.field_at(ty, bytes)?))) {
            Some((unit, (field, ty))) => {
                (format!("{text}{}{field}", if direct { "." } else { "->" }), ty.map(|ty| (unit, ty)))
            }
            None if element || (direct && !index) => (text, of),
            None if index => (format!("{text}[…]"), of.filter(|_| !direct)),
            None => (format!("*{text}"), of.filter(|_| bytes == 0)),
        }
    }

    /// A pointer expression.
    fn base(&self, value: ValueId, depth: u32) -> Base<'a> {
        let typed = |ty: Option<TypeId>| ty.map(|ty| (self.unit, ty));
        if let Some(var) = self.alloca(value) {
            return Base { text: self.var(var), ty: typed(self.function.vars[var].ty), direct: true, bytes: 0 };
        }
        if let Some(var) = self.bound(value) {
            let ty = self.function.vars[var].ty.and_then(|ty| self.unit.pointee(ty));
            return Base { text: self.var(var), ty: typed(ty), direct: false, bytes: 0 };
        }
        if let ValueKind::Address(symbol, bytes) = self.function.values[value].kind {
            let text = self.plain(&self.unit.symbols[symbol].name).to_string();
            return Base { text, ty: self.global(symbol), direct: true, bytes };
        }
        if let ValueKind::Inst(inst) = self.function.values[value].kind
            && let Op::Load { ptr } = self.function.insts[inst].op
        {
            let (text, ty) = self.cell(ptr, depth);
            let ty = ty.and_then(|(unit, ty)| Some((unit, unit.pointee(ty)?)));
            return Base { text, ty, direct: false, bytes: 0 };
        }
        Base { text: "…".into(), ty: None, direct: false, bytes: 0 }
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
        let Some((unit, ty)) = self.base(base, 4).ty else { return Vec::new() };
        let union = |ty: TypeId| match unit.kind(ty) {
            Some(TypeKind::Union(fields)) => Some(fields),
            _ => None,
        };
        let fields = unit.members_at(ty, bytes).into_iter().find_map(|field| union(field.ty?));
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

    /// Is the condition decided by numbers that are written down, or that the compiler has worked out?
    pub fn is_constant(&self, value: ValueId) -> bool {
        let number = |value: ValueId| matches!(self.function.values[value].kind, ValueKind::Int(_));
        let ValueKind::Inst(inst) = self.function.values[value].kind else { return number(value) };
        matches!(self.function.insts[inst].op, Op::Cmp { a, b, .. } if number(a) && number(b))
    }

    /// A condition as text, as far as names are known.
    pub fn condition(&self, value: ValueId) -> String {
        self.expression(value, 4)
    }

    /// A number that is compared with a character, as it is written.
    fn character(&self, number: ValueId, with: ValueId) -> Option<String> {
        let ValueKind::Int(code) = self.function.values[number].kind else { return None };
        let mut with = with;
        while let ValueKind::Inst(inst) = self.function.values[with].kind
            && let Op::Cast { a, .. } = self.function.insts[inst].op
        {
            with = a;
        }
        let code = u8::try_from(code).ok().filter(|_| self.function.values[with].ty == Ty::Int(8))?;
        match code {
            b'\n' => Some("'\\n'".into()),
            b'\t' => Some("'\\t'".into()),
            b'\r' => Some("'\\r'".into()),
            b'\'' | b'\\' => Some(format!("'\\{}'", char::from(code))),
            b' '..=b'~' => Some(format!("'{}'", char::from(code))),
            _ => None,
        }
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
                    let (left, right) = match (self.character(*a, *b), self.character(*b, *a)) {
                        (Some(left), _) => (left, self.expression(*b, depth - 1)),
                        (None, Some(right)) => (self.expression(*a, depth - 1), right),
                        (None, None) => (self.expression(*a, depth - 1), self.expression(*b, depth - 1)),
                    };
                    format!("{left} {} {right}", op.sign())
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
