//! What the analysis of one function asks of the rest of the program.
//!
//! Every question is noted, so that a later run knows what the result depends on: if all questions get the same
//! answers again, so does the function.
//!
//!     void f(struct list *l) {
//!         clear(l);                summary of `clear`
//!         table[0](l);             is `table` constant? its contents; the summary of what lies there
//!     }
//!
//! # Invariants
//! - Beside its own body, with the names in it resolved, and the models, a function's analysis looks at nothing of the
//!   program but through here.

use std::cell::RefCell;
use std::sync::Arc;

use caulk_base::FxHashSet;
use caulk_ir::{ExternId, FuncId, Global, GlobalId, InstId};
use caulk_models::FunctionModel;

use crate::flow;
use crate::slots::Targets;
use crate::summary::Summary;
use crate::whole::{Constancy, Knowledge};

/// Something that only the rest of the program can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    Summary(FuncId),
    /// Does the global keep its initial contents?
    Constant(GlobalId),
    Initial(GlobalId),
    /// Is it a variable for a function, and written by its name only?
    Hook(GlobalId),
    /// Does the function never come back, as far as control flow tells?
    Never(FuncId),
    /// Is the function summarised before the one that asks?
    Earlier(FuncId),
    /// May the function keep one of its variable arguments?
    Variadic(FuncId),
    /// Which of its parameters may the function keep or release, by where their values go?
    Flow(FuncId),
    /// Is the global nothing but an argument that the function passes?
    Passing(GlobalId),
    /// Does the function find in the global what it was initialised with?
    First(GlobalId),
    /// Is the global neither read nor written while the function runs?
    Apart(FuncId, GlobalId),
    /// Is what the load reads null for sure?
    Null(InstId),
    /// What the call through a pointer may mean.
    Indirect(InstId),
}

/// The program as one function sees it.
pub struct Asked<'a> {
    knowledge: &'a Knowledge<'a>,
    by: FuncId,
    questions: RefCell<FxHashSet<Question>>,
}

impl<'a> Asked<'a> {
    pub fn new(knowledge: &'a Knowledge<'a>, by: FuncId) -> Self {
        Self { knowledge, by, questions: RefCell::default() }
    }

    fn note(&self, question: Question) {
        self.questions.borrow_mut().insert(question);
    }

    /// Everything that was asked, sorted.
    pub fn into_questions(self) -> Vec<Question> {
        let mut all: Vec<Question> = self.questions.into_inner().into_iter().collect();
        all.sort_unstable();
        all
    }

    /// `None` while the function's recursion is being worked out.
    pub fn summary(&self, id: FuncId) -> Option<Arc<Summary>> {
        self.note(Question::Summary(id));
        let summary = self.knowledge.summary(id);
        debug_assert!(summary.is_some() || !self.knowledge.is_earlier(id, self.by), "asked too early");
        summary
    }

    pub fn is_constant(&self, id: GlobalId) -> bool {
        self.note(Question::Constant(id));
        self.knowledge.is_constant(id)
    }

    pub fn constancy(&self, id: GlobalId) -> Constancy {
        self.note(Question::Constant(id));
        self.knowledge.constancy(id)
    }

    pub fn is_hook(&self, id: GlobalId) -> bool {
        self.note(Question::Hook(id));
        self.knowledge.is_hook(id)
    }

    /// The definition of a global, for its initial contents.
    pub fn initial(&self, id: GlobalId) -> &'a Global {
        self.note(Question::Initial(id));
        self.knowledge.program.global(id)
    }

    pub fn never_returns(&self, id: FuncId) -> bool {
        self.note(Question::Never(id));
        self.knowledge.never[id]
    }

    pub fn is_earlier(&self, id: FuncId) -> bool {
        self.note(Question::Earlier(id));
        self.knowledge.is_earlier(id, self.by)
    }

    pub fn keeps_variadic(&self, id: FuncId) -> bool {
        self.note(Question::Variadic(id));
        self.knowledge.keeps_variadic(id)
    }

    /// May the function keep or release what it is given here?
    pub fn keeps_argument(&self, id: FuncId, at: usize) -> bool {
        self.note(Question::Flow(id));
        let named = self.knowledge.program.function(id).param_count as usize;
        if at < named { self.knowledge.kept_parameters(id) & flow::bit(at) != 0 } else { self.keeps_variadic(id) }
    }

    pub fn only_passes(&self, id: GlobalId) -> bool {
        self.note(Question::Passing(id));
        self.knowledge.only_passes(id, self.by)
    }

    pub fn comes_first(&self, id: GlobalId) -> bool {
        self.note(Question::First(id));
        self.knowledge.comes_first(id, self.by)
    }

    pub fn leaves_alone(&self, callee: FuncId, id: GlobalId) -> bool {
        self.note(Question::Apart(callee, id));
        self.knowledge.leaves_alone(callee, id)
    }

    pub fn reads_null(&self, inst: InstId) -> bool {
        self.note(Question::Null(inst));
        self.knowledge.graph.nulls.contains(&(self.by, inst))
    }

    pub fn indirect(&self, inst: InstId) -> Option<&'a Targets> {
        self.note(Question::Indirect(inst));
        self.knowledge.indirect(self.by, inst)
    }

    /// Models are the same for the whole run: no question.
    pub fn model(&self, id: ExternId) -> Option<&'a FunctionModel> {
        self.knowledge.model(id)
    }

    pub fn user_model(&self, name: &str) -> Option<&'a FunctionModel> {
        self.knowledge.user_model(name)
    }
}
