//! From text to an analysed program.

use std::sync::Arc;

use caulk_analysis::{Analysis, IncidentKind, Limits, Object, Outcome, Summary, Term, TermId, analyse};
use caulk_base::{Id, IdVec};
use caulk_ir::{ExternId, FuncId, Program, SymbolId, SymbolKind, Target, Unit, UnitId, parse_unit, verify};
use caulk_models::Models;

/// One unit, linked with itself: what it only declares is a library's.
pub fn program(text: &str) -> Program {
    let unit = parse_unit(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&unit), [], "{text}");
    let mut program = Program::new(vec![Arc::new(unit)]);
    let unit = Arc::clone(&program.units[UnitId(0)]);
    let mut targets: IdVec<SymbolId, Target> = IdVec::new();
    for symbol in unit.symbols.ids() {
        let target = resolve(&mut program, &unit, symbol);
        targets.push(target);
    }
    program.targets.push(targets);
    program
}

fn resolve(program: &mut Program, unit: &Unit, symbol: SymbolId) -> Target {
    match &unit.symbols[symbol].kind {
        SymbolKind::Function(local) => Target::Functions(vec![program.function_id(UnitId(0), *local)]),
        SymbolKind::Global(local) => Target::Globals(vec![program.global_id(UnitId(0), *local)]),
        SymbolKind::Alias(other) => resolve(program, unit, *other),
        SymbolKind::DeclaredFunction(_) | SymbolKind::DeclaredGlobal => {
            program.externs.push(unit.symbols[symbol].name.clone());
            Target::Extern(ExternId::new(program.externs.len() - 1))
        }
    }
}

pub fn function(program: &Program, name: &str) -> FuncId {
    match program.functions_named(name)[..] {
        [one] => one,
        _ => panic!("there is not one `{name}`"),
    }
}

/// Analyses a text and hands the result on.
pub fn with<R>(text: &str, look: impl FnOnce(&Analysis<'_>) -> R) -> R {
    let program = program(text);
    let models = Models::builtin();
    look(&analyse(&program, &models, Limits::default()))
}

/// What goes wrong in one function.
pub fn errors(analysis: &Analysis<'_>, name: &str) -> Vec<IncidentKind> {
    let id = function(analysis.knowledge.program, name);
    analysis.incidents.iter().filter(|one| one.function == id).map(|one| one.kind.clone()).collect()
}

/// The summary of one function, with its outcomes by the constant they return.
pub struct Seen(pub Arc<Summary>);

pub fn summary(analysis: &Analysis<'_>, name: &str) -> Seen {
    let id = function(analysis.knowledge.program, name);
    Seen(analysis.knowledge.summary(id).expect("every function is analysed"))
}

impl Seen {
    pub fn term(&self, id: TermId) -> &Term {
        &self.0.terms[id.index()]
    }

    /// The one outcome that returns this number.
    pub fn returning(&self, number: i64) -> &Outcome {
        let is = |outcome: &&Outcome| outcome.result.is_some_and(|result| *self.term(result) == Term::Int(number));
        let found: Vec<&Outcome> = self.0.outcomes.iter().filter(is).collect();
        assert_eq!(found.len(), 1, "{number} is returned by {} outcomes of {:#?}", found.len(), self.0);
        found[0]
    }

    /// Is it the address of a block that this function allocated?
    pub fn is_new(&self, id: TermId) -> bool {
        matches!(self.term(id), Term::Addr { obj, off: 0 } if matches!(self.0.objects[obj.index()], Object::Heap { .. }))
    }

    /// Is it what this parameter points to?
    pub fn is_behind(&self, object: &Object, param: u32) -> bool {
        matches!(object, Object::Deref(base) if *self.term(*base) == Term::Param(param))
    }
}
