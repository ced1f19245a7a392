//! All units of a project, and which definition each name means in each of them.

use std::sync::Arc;

use caulk_base::{FxHashMap, Gap, Id, IdVec, define_id};

use crate::unit::{Function, Global, GlobalRef, LocalFuncId, SymbolId, Unit};

define_id!(
    /// A translation unit of the program.
    UnitId,
    "unit"
);
define_id!(
    /// A function with a body, anywhere in the program.
    FuncId,
    "fn"
);
define_id!(
    /// A global variable with a definition, anywhere in the program.
    GlobalId,
    "glob"
);
define_id!(
    /// A name without a definition in the program: a library's.
    ExternId,
    "ext"
);
define_id!(
    /// What one link command makes: a program, a shared library or an archive.
    LinkUnitId,
    "link"
);

/// One program or library of the build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkUnit {
    pub name: String,
    pub units: Vec<UnitId>,
}

/// What a symbol means. Several definitions remain where the unit is linked into
/// several programs that define the name differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Functions(Vec<FuncId>),
    Globals(Vec<GlobalId>),
    Extern(ExternId),
}

/// The whole program, immutable after loading.
#[derive(Default)]
pub struct Program {
    pub units: IdVec<UnitId, Arc<Unit>>,
    pub link_units: IdVec<LinkUnitId, LinkUnit>,
    pub functions: IdVec<FuncId, (UnitId, LocalFuncId)>,
    pub globals: IdVec<GlobalId, (UnitId, GlobalRef)>,
    pub externs: IdVec<ExternId, String>,
    /// For each unit, the meaning of each of its symbols.
    pub targets: IdVec<UnitId, IdVec<SymbolId, Target>>,
    pub gaps: Vec<Gap>,
    first_function: IdVec<UnitId, u32>,
    first_global: IdVec<UnitId, u32>,
}

impl Program {
    /// Takes the units in order and numbers their functions and globals; `targets` is filled by the linker.
    pub fn new(units: Vec<Arc<Unit>>) -> Self {
        let mut program = Program { units: IdVec::from(units), ..Program::default() };
        for (unit_id, unit) in program.units.iter_ids() {
            program.first_function.push(program.functions.len() as u32);
            program.first_global.push(program.globals.len() as u32);
            for function in unit.functions.ids() {
                program.functions.push((unit_id, function));
            }
            for global in unit.globals.ids() {
                program.globals.push((unit_id, global));
            }
        }
        program
    }

    pub fn function(&self, id: FuncId) -> &Function {
        let (unit, local) = self.functions[id];
        &self.units[unit].functions[local]
    }

    /// Has it no `main`? Then others call its functions, and write its variables.
    pub fn is_library(&self) -> bool {
        !self.functions.ids().any(|id| self.function(id).name == "main")
    }

    pub fn unit_of(&self, id: FuncId) -> UnitId {
        self.functions[id].0
    }

    pub fn global(&self, id: GlobalId) -> &Global {
        let (unit, local) = self.globals[id];
        &self.units[unit].globals[local]
    }

    pub fn function_id(&self, unit: UnitId, local: LocalFuncId) -> FuncId {
        FuncId(self.first_function[unit] + local.0)
    }

    pub fn global_id(&self, unit: UnitId, local: GlobalRef) -> GlobalId {
        GlobalId(self.first_global[unit] + local.0)
    }

    pub fn target(&self, unit: UnitId, symbol: SymbolId) -> &Target {
        &self.targets[unit][symbol]
    }

    /// Functions by name, in id order: for `dump` and for tests.
    pub fn functions_named(&self, name: &str) -> Vec<FuncId> {
        self.functions.ids().filter(|&id| self.function(id).name == name).collect()
    }

    /// The external names, for looking models up once.
    pub fn extern_index(&self) -> FxHashMap<&str, ExternId> {
        self.externs.iter().enumerate().map(|(i, name)| (name.as_str(), ExternId::new(i))).collect()
    }
}
