//! Functions that end the process, whatever happens in them: `die`, `fatal`, `usage`.
//!
//! Not every function that does not come back is one of them: a server's loop never does, and what ends in `longjmp` goes
//! on elsewhere.

use caulk_base::FxHashMap;
use caulk_ir::{FuncId, InstId};

use super::around::{Around, Kind};
use super::region::{Start, region};

/// Functions that end the process by calling others that do, so many deep.
const DEEP: u32 = 24;

pub struct Dying<'a> {
    pub around: &'a Around<'a>,
    depth: u32,
    /// `None` where it does not, and while that is worked out; `true`: perhaps only the thread.
    known: FxHashMap<FuncId, Option<bool>>,
}

impl<'a> Dying<'a> {
    pub fn new(around: &'a Around<'a>) -> Self {
        Self { around, depth: 0, known: FxHashMap::default() }
    }

    /// What a call is to someone who leaves.
    pub fn kind(&mut self, caller: FuncId, inst: InstId) -> Kind {
        let functions = self.around.targets(caller, inst).0;
        let never = &self.around.analysis.knowledge.never;
        if !functions.is_empty() && functions.iter().all(|id| never[*id]) {
            let all: Option<Vec<bool>> = functions.iter().map(|id| self.dies(*id)).collect();
            return all.map_or(Kind::GoesOn, |all| Kind::Ends { thread: all.contains(&true) });
        }
        self.around.kind(caller, inst)
    }

    /// Does the function end the process on all ways, and go to no great lengths before? `true`: or the thread.
    fn dies(&mut self, id: FuncId) -> Option<bool> {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        self.known.insert(id, None);
        let start = Start { function: id, behind: None, result: None };
        self.depth += 1;
        let follows = if self.depth > DEEP { None } else { region(self, &start).ok() };
        self.depth -= 1;
        let dies = follows.filter(|region| region.ends && region.returns.is_empty()).map(|region| region.thread);
        self.known.insert(id, dies);
        dies
    }
}
