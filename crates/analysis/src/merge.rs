//! When two states meet: are they the same as far as memory errors are concerned,
//! and what is left when they are made one.
//!
//! States whose *property* is equal (which objects exist in which state, who
//! points to them, which flags have which constants) are merged; states that
//! differ stay apart, with the branch conditions that tell them apart. That is
//! what keeps `if (y) p = malloc(..); … if (y) free(p);` precise without
//! following every path.

use caulk_ir::{BinOp, BlockId, ValueId};
use caulk_models::FamilyId;

use crate::facts::{Facts, Range};
use crate::object::{ObjId, ObjState, Object, Status};
use crate::place::Off;
use crate::shared::{Draft, Shared};
use crate::state::{Cell, State};
use crate::term::{Term, TermId, Terms};
use crate::trace;

/// Sites from here on are blocks (joins), below are instructions.
pub const BLOCK_SITE: u32 = 0x4000_0000;

pub fn block_site(block: BlockId) -> u32 {
    BLOCK_SITE + block.0
}

/// The pseudo value that stands for the result while exits are merged.
pub const RESULT: ValueId = ValueId(u32::MAX);

/// How closely two states must agree to become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grain {
    /// Everything that an effect can be told by: for outcomes.
    Effect,
    /// Objects, references and constants.
    Fine,
    /// Objects and references only.
    Coarse,
    /// Blocks that are lost: where everything is one, no one would be told of them.
    Lost,
    /// Blocks, what was released, and what is returned: for outcomes.
    Owned,
    /// What is returned only: for outcomes.
    Result,
    /// Everything in one.
    One,
}

/// The caller's object behind a value that came from outside, if it is one.
pub fn input_object(terms: &Terms, term: TermId) -> Option<ObjId> {
    match *terms.get(term) {
        Term::Param(_) | Term::Content { epoch: 0, .. } => terms.known_deref(term),
        Term::Addr { obj, .. } if matches!(terms.object(obj), Object::Deref(_)) => Some(obj),
        _ => None,
    }
}

/// How many pointers must be followed from a parameter or global to reach the object.
pub fn deref_depth(terms: &Terms, obj: ObjId) -> u32 {
    let mut depth = 0;
    let mut at = obj;
    while let Object::Deref(term) = terms.object(at) {
        depth += 1;
        match terms.get(*term) {
            Term::Content { obj, .. } | Term::Addr { obj, .. } if depth < 16 => at = *obj,
            _ => break,
        }
    }
    depth
}

/// Makes one state of two that meet at `block`.
pub fn join(terms: &mut Terms, memory: FamilyId, old: &State, new: &State, block: BlockId, loop_head: bool) -> State {
    let site = block_site(block);
    let hull = !loop_head;
    let facts = old.facts.join(terms, &new.facts, hull);
    let (blurred, kept, untold, ragged) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Joiner { terms, site, hull, old, new, facts, blurred, kept, ragged, untold, memory }.run()
}

struct Joiner<'a> {
    terms: &'a mut Terms,
    site: u32,
    /// Keep the union of the two ranges for a merged value.
    hull: bool,
    old: &'a State,
    new: &'a State,
    /// What is known in both.
    facts: Facts,
    /// Blocks that are called escaped because a merged value no longer says which one it is.
    blurred: Vec<ObjId>,
    /// Inputs that were stored on one of the ways.
    kept: Vec<ObjId>,
    /// Blocks of which one way has written a part that the other has not.
    ragged: Vec<ObjId>,
    /// Blocks that a merged value may lead to and no longer tells of.
    untold: Vec<ObjId>,
    memory: FamilyId,
}

impl Joiner<'_> {
    fn run(mut self) -> State {
        let (old, new) = (self.old, self.new);
        let env = self.values();
        // At a loop head, an element that only one way knows lies at some place from here on: each round
        // would bring another index.
        let mut somewhere: Vec<(ObjId, TermId)> = Vec::new();
        let cells = self.cells(&mut somewhere);
        somewhere.retain(|(_, term)| self.terms.is_held_by_name(*term));
        let epochs = self.epochs();
        let objs = self.objects();
        let mut joined = State {
            env,
            cells,
            weak: union(&old.weak, &new.weak, &somewhere),
            objs,
            moved: union(&old.moved, &new.moved, &[]),
            rewired: union(&old.rewired, &new.rewired, &[]),
            epochs,
            facts: self.facts,
            version: if old.version == new.version { old.version } else { self.site },
            outside: if old.outside == new.outside { old.outside } else { self.site },
            aliased: if old.aliased == new.aliased { old.aliased } else { self.site },
            starved: old.starved && new.starved,
            stir: old.stir.max(new.stir),
            stirred: if old.stirred == new.stirred { old.stirred } else { self.site },
            drains: old.drains || new.drains,
            swept: union(&old.swept, &new.swept, &[]),
            trace: trace::merge(&old.trace, &new.trace),
        };
        for obj in self.ragged {
            if joined.obj(obj).is_some_and(|state| state.raw && !state.ragged)
                && let Some(state) = joined.obj_mut(obj)
            {
                state.ragged = true;
            }
        }
        for obj in self.blurred {
            if joined.obj(obj).is_some_and(|state| !state.escaped)
                && let Some(state) = joined.obj_mut(obj)
            {
                (state.escaped, state.merged) = (true, true);
            }
        }
        for obj in self.untold {
            joined.give_away(obj);
        }
        for obj in self.kept {
            joined.give_away_input(obj, self.memory);
        }
        joined
    }

    fn values(&mut self) -> Shared<(ValueId, TermId)> {
        let (old, new) = (self.old, self.new);
        let mut env = Draft::of(&old.env);
        let mut at = 0;
        for &(value, mine) in &old.env {
            at += new.env[at..].iter().take_while(|entry| entry.0 < value).count();
            if let Some(&(_, theirs)) = new.env.get(at).filter(|entry| entry.0 == value) {
                let term = if mine == theirs {
                    mine
                } else {
                    let name = self.terms.sym(self.site, value.0);
                    self.value(mine, theirs, name)
                };
                env.push((value, term));
            }
        }
        env.finish()
    }

    fn cells(&mut self, somewhere: &mut Vec<(ObjId, TermId)>) -> Shared<((ObjId, Off), Cell)> {
        let (old, new) = (self.old, self.new);
        let hull = self.hull;
        if old.cells.is_same(&new.cells) {
            return old.cells.clone();
        }
        let passing = |off: Off| !hull && matches!(off, Off::Elem(..));
        let (mut nowhere_here, mut nowhere_there) = (Nowhere::new(old), Nowhere::new(new));
        let (mut unwritten_here, mut unwritten_there) = (Unwritten::new(old), Unwritten::new(new));
        let mut cells = Draft::of(&old.cells);
        let (mut at, mut in_both) = (0, 0);
        for entry @ &(place @ (obj, off), mine) in &old.cells {
            at += new.cells[at..].iter().take_while(|entry| entry.0 < place).count();
            let known = new.cells.get(at).filter(|entry| entry.0 == place);
            in_both += usize::from(known.is_some());
            if known.is_none() && passing(off) {
                somewhere.push((obj, mine.term));
            } else if known.is_some_and(|known| known.1 == mine) || nowhere_there.holds(self.terms, obj) {
                cells.push_copy(entry);
            } else {
                let theirs = match known {
                    Some(_) => new.load(self.terms, obj, off, mine.size),
                    None => unwritten_there.load(self.terms, obj, off, mine.size),
                };
                cells.push((place, self.cell(place, mine.size, mine.term, theirs)));
            }
        }
        let mut cells = cells.finish();
        if in_both == new.cells.len() {
            return cells;
        }
        let mut added: Vec<((ObjId, Off), Cell)> = Vec::new();
        let mut at = 0;
        for &(place @ (obj, off), theirs) in &new.cells {
            at += old.cells[at..].iter().take_while(|entry| entry.0 < place).count();
            if old.cells.get(at).is_some_and(|entry| entry.0 == place) {
                continue;
            }
            if passing(off) {
                somewhere.push((obj, theirs.term));
            } else if nowhere_here.holds(self.terms, obj) {
                added.push((place, theirs));
            } else {
                let mine = unwritten_here.load(self.terms, obj, off, theirs.size);
                added.push((place, self.cell(place, theirs.size, mine, theirs.term)));
            }
        }
        if !added.is_empty() {
            cells.append(&mut added);
            cells.sort_unstable_by_key(|entry| entry.0);
        }
        cells
    }

    /// What became unknown at different times, or on one of the ways, is unknown since they met.
    fn epochs(&self) -> Shared<(ObjId, u32)> {
        let (old, new) = (self.old, self.new);
        if old.epochs.is_same(&new.epochs) {
            return old.epochs.clone();
        }
        let mut all = Draft::of(&old.epochs);
        let mut theirs = new.epochs.iter().peekable();
        for entry @ &(id, mine) in &old.epochs {
            while let Some(&(only, _)) = theirs.next_if(|entry| entry.0 < id) {
                all.push((only, self.site));
            }
            match theirs.next_if(|entry| entry.0 == id) {
                Some(&(_, theirs)) if theirs == mine => all.push_copy(entry),
                _ => all.push((id, self.site)),
            }
        }
        for &(only, _) in theirs {
            all.push((only, self.site));
        }
        all.finish()
    }

    fn objects(&mut self) -> Shared<(ObjId, ObjState)> {
        let (old, new) = (self.old, self.new);
        if old.objs.is_same(&new.objs) {
            return old.objs.clone();
        }
        let mut all = Draft::of(&old.objs);
        let mut theirs = new.objs.iter().peekable();
        for entry @ &(id, mine) in &old.objs {
            while let Some(&(only, theirs)) = theirs.next_if(|entry| entry.0 < id) {
                all.push((only, self.one_sided(only, theirs)));
            }
            match theirs.next_if(|entry| entry.0 == id) {
                Some((_, theirs)) if *theirs == mine => all.push_copy(entry),
                Some(&(_, theirs)) => all.push((id, mine.join(theirs))),
                None => all.push((id, self.one_sided(id, mine))),
            }
        }
        for &(only, theirs) in theirs {
            all.push((only, self.one_sided(only, theirs)));
        }
        all.finish()
    }

    /// An object that only one of the two paths knows.
    fn one_sided(&mut self, id: ObjId, state: ObjState) -> ObjState {
        match self.terms.object(id) {
            Object::Heap { .. } => {
                self.blurred.push(id);
                ObjState { status: state.status.join(Status::FAILED), ..state }
            }
            _ => state.join(ObjState { escaped: state.escaped, ..ObjState::input(state.family) }),
        }
    }

    fn cell(&mut self, (obj, off): (ObjId, Off), size: u64, mine: TermId, theirs: TermId) -> Cell {
        let name = self.terms.content(obj, off, self.site);
        if mine != theirs && !matches!(self.terms.object(obj), Object::Stack(_)) {
            // On one of the ways an input was stored here; the merged value no longer says so.
            for term in [mine, theirs] {
                let initial =
                    matches!(self.terms.get(term), Term::Content { obj: of, off: at, .. } if *of == obj && *at == off);
                // The content as it was may be there still, or not.
                if initial
                    && matches!(self.terms.get(term), Term::Content { epoch: 0, .. })
                    && matches!(self.terms.object(obj), Object::Heap { .. })
                {
                    self.ragged.push(obj);
                }
                let may_stay = initial && size == 8 && !self.terms.is_private(term);
                let given = match self.terms.get(term) {
                    Term::Param(_) => true,
                    Term::Content { epoch: 0, .. } => size == 8,
                    _ => false,
                };
                if may_stay || (!initial && given) {
                    let object = self.terms.intern_object(Object::Deref(term));
                    self.kept.push(object);
                } else if !initial && let Some(object) = input_object(self.terms, term) {
                    self.kept.push(object);
                }
            }
        }
        Cell { term: self.value(mine, theirs, name), size }
    }

    fn value(&mut self, mine: TermId, theirs: TermId, name: TermId) -> TermId {
        if mine == theirs {
            return mine;
        }
        if !self.terms.holds_block(mine) && !self.terms.holds_block(theirs) {
            if let Some(word) = self.word(mine, theirs, name) {
                return word;
            }
            let a = self.old.facts.range(self.terms, mine);
            if a.is_full() {
                return name;
            }
            let b = self.new.facts.range(self.terms, theirs);
            if self.hull && !b.is_full() {
                self.facts.narrow(name, &Range::hull(&a, &b));
            } else if !self.hull && a.excludes(0) && b.excludes(0) {
                // A bound would move with every round; that it is not null does not.
                self.facts.narrow(name, &Range::except(0));
            }
            return name;
        }
        let held: Vec<ObjId> = self.terms.mentions(mine).iter().chain(self.terms.mentions(theirs)).copied().collect();
        if self.hull
            && let Some(block) = self.or_null(mine, theirs)
        {
            self.blurred.push(block);
            return self.terms.addr(block, 0);
        }
        // Once more round a loop: what came to nothing stays nothing, and a value that is among those it may be
        // is nothing new. Otherwise the rounds would never end.
        if !self.hull {
            if let Some(block) = inside(self.terms, mine).filter(|block| inside(self.terms, theirs) == Some(*block)) {
                // A pointer that walks through a block is somewhere in it, in every round.
                let base = self.terms.addr(block, 0);
                return self.terms.elem(base, name, 0);
            }
            if mine == name {
                self.untold.extend(held);
                return name;
            }
            if is_one_of(self.terms, mine, theirs) {
                self.blurred.extend(held);
                return mine;
            }
        }
        // The merged value still keeps its objects alive; it no longer says which one it is. Where it
        // was merged before, nobody follows its objects any further.
        if self.terms.depth(mine).max(self.terms.depth(theirs)) > 4 {
            self.untold.extend(held);
            return name;
        }
        self.blurred.extend(held);
        self.terms.ite(name, mine, theirs)
    }
}

impl Joiner<'_> {
    /// The block whose address one way has, where the other has null and does not know the block: as if it could not be
    /// allocated there.
    fn or_null(&self, mine: TermId, theirs: TermId) -> Option<ObjId> {
        let (held, other) = match (self.terms.as_int(mine), self.terms.as_int(theirs)) {
            (Some(0), None) => (theirs, self.old),
            (None, Some(0)) => (mine, self.new),
            _ => return None,
        };
        match *self.terms.get(held) {
            Term::Addr { obj, off: 0 } if matches!(self.terms.object(obj), Object::Heap { older: false, .. }) => {
                other.obj(obj).is_none_or(|known| known.status == Status::FAILED).then_some(obj)
            }
            _ => None,
        }
    }
}

/// What lies in any of the lists, sorted.
fn union<T: Ord + Copy + 'static>(a: &Shared<T>, b: &Shared<T>, more: &[T]) -> Shared<T> {
    let is_all = |list: &Shared<T>| list.is_sorted_by(|x, y| x < y);
    if more.is_empty() && (a.is_same(b) || b.is_empty()) && is_all(a) {
        return a.clone();
    }
    let mut all: Vec<T> = a.iter().chain(b).chain(more).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// Are all values that `some` may be among those that `all` may be? No, if they are too many to tell.
fn is_one_of(terms: &Terms, all: TermId, some: TermId) -> bool {
    match (values(terms, all), values(terms, some)) {
        (Some(all), Some(some)) => some.iter().all(|value| all.contains(value)),
        _ => false,
    }
}

/// The block into which the pointer points, whatever it was merged of.
fn inside(terms: &Terms, id: TermId) -> Option<ObjId> {
    let block = |id: TermId| match *terms.get(id) {
        Term::Addr { obj, .. } if matches!(terms.object(obj), Object::Heap { .. }) => Some(obj),
        _ => None,
    };
    let mut found = None;
    for part in values(terms, id)? {
        let base = if let Term::Elem { base, .. } = *terms.get(part) { base } else { part };
        let within = block(base)?;
        if found.is_some_and(|found| found != within) {
            return None;
        }
        found = Some(within);
    }
    found
}

/// What a merged value may be, as far as it was merged of a few.
pub(crate) fn values(terms: &Terms, id: TermId) -> Option<Vec<TermId>> {
    const FEW: usize = 16;
    let mut seen = vec![id];
    let mut at = 0;
    while at < seen.len() {
        if let Term::Ite(_, a, b) = *terms.get(seen[at]) {
            for part in [a, b] {
                if !seen.contains(&part) {
                    seen.push(part);
                }
            }
            if seen.len() > FEW {
                return None;
            }
        }
        at += 1;
    }
    seen.retain(|&part| !matches!(terms.get(part), Term::Ite(..)));
    Some(seen)
}

impl Joiner<'_> {
    /// A word of bit fields keeps the fields in which both sides agree.
    fn word(&mut self, mine: TermId, theirs: TermId, name: TermId) -> Option<TermId> {
        let is_word = |id: TermId| matches!(self.terms.get(id), Term::Bin(BinOp::Or | BinOp::And, ..) | Term::Int(_));
        if !is_word(mine)
            || !is_word(theirs)
            || (self.terms.as_int(mine).is_some() && self.terms.as_int(theirs).is_some())
        {
            return None;
        }
        let (a, b) = (self.terms.known_bits(mine, 6), self.terms.known_bits(theirs, 6));
        let (zeros, ones) = (a.zeros & b.zeros, a.ones & b.ones);
        if ones == 0 && zeros == 0 {
            return None;
        }
        let (rest, ones) = (self.terms.int(!(zeros | ones) as i64), self.terms.int(ones as i64));
        let open = self.terms.bin(BinOp::And, name, rest);
        Some(self.terms.bin(BinOp::Or, open, ones))
    }
}

/// Asks `is_nowhere` once for all cells of an object: they come one after another.
struct Nowhere<'a> {
    state: &'a State,
    last: Option<(ObjId, bool)>,
}

impl<'a> Nowhere<'a> {
    fn new(state: &'a State) -> Self {
        Self { state, last: None }
    }

    fn holds(&mut self, terms: &Terms, obj: ObjId) -> bool {
        match self.last {
            Some((of, known)) if of == obj => known,
            _ => self.last.insert((obj, is_nowhere(terms, self.state, obj))).1,
        }
    }
}

/// Reads places that a state does not list. They come object by object: what is known of one is looked up once.
struct Unwritten<'a> {
    state: &'a State,
    /// The object, since when its contents are unknown, and whether they were zero then.
    last: Option<(ObjId, u32, bool)>,
}

impl<'a> Unwritten<'a> {
    fn new(state: &'a State) -> Self {
        Self { state, last: None }
    }

    fn load(&mut self, terms: &mut Terms, obj: ObjId, off: Off, size: u64) -> TermId {
        let state = self.state;
        let (_, epoch, zeroed) = match self.last {
            Some(last) if last.0 == obj => last,
            _ => *self.last.insert((obj, state.epoch(obj), state.obj(obj).is_some_and(|known| known.zeroed))),
        };
        if epoch == 0 && zeroed { state.load(terms, obj, off, size) } else { terms.content(obj, off, epoch) }
    }
}

/// The pointer to the object is null on this path: whatever the other says of it holds here, too.
fn is_nowhere(terms: &Terms, state: &State, obj: ObjId) -> bool {
    match *terms.object(obj) {
        Object::Deref(base) if matches!(terms.get(base), Term::Param(_)) => {
            let range = state.facts.range(terms, base);
            (range.lo, range.hi) == (0, 0)
        }
        _ => false,
    }
}

/// Equal in everything but the way that led here.
pub fn same(a: &State, b: &State) -> bool {
    a.env == b.env
        && a.cells == b.cells
        && a.weak == b.weak
        && a.moved == b.moved
        && a.objs == b.objs
        && a.epochs == b.epochs
        && a.version == b.version
        && a.outside == b.outside
        && a.aliased == b.aliased
        && a.stir == b.stir
        && a.stirred == b.stirred
        && a.drains == b.drains
        && a.swept == b.swept
        && a.facts == b.facts
}
