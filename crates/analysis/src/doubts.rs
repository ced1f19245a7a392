//! What speaks against a release: the doubts that a repair asks for.

use caulk_ir::{BinOp, Callee, CmpOp, FuncId, InstId, Op, Target, Ty, ValueId, ValueKind};
use caulk_models::{Effect, FamilyId};
use smallvec::SmallVec;

use crate::call::WEIGH;
use crate::engine::Engine;
use crate::incident::Doubt;
use crate::later::{self, Word};
use crate::object::{ObjId, Object, Status};
use crate::place::{NUMBER, Off};
use crate::state::{Cell, State};
use crate::term::{Term, TermId};

/// Functions behind a release that are looked into.
const MAX_RELEASERS: usize = 32;

impl Engine<'_> {
    /// A pointer to a block that may have been released is put where others find it: they will take it for a live one, so
    /// the release was too early.
    pub(crate) fn doubt_kept(&mut self, state: &State, ptr: TermId, value: TermId) {
        if self.terms.mentions(value).is_empty() {
            return;
        }
        if let Some((owner, _)) = self.terms.pointee(ptr)
            && matches!(self.terms.object(owner), Object::Stack(_))
        {
            return;
        }
        for obj in self.terms.mentions(value).to_vec() {
            if let Some(known) = state.obj(obj)
                && known.status.may(Status::FREED)
                && let Some(at) = known.freed_at
            {
                self.releases.entry(at).or_default().insert(Doubt::StillReferenced);
            }
        }
    }

    /// What speaks against releasing this pointer here.
    pub(crate) fn weigh_release(&mut self, state: &State, ptr: TermId, at: InstId) {
        let mut doubts: Vec<Doubt> = Vec::new();
        if self.terms.as_int(ptr) != Some(0) {
            match self.terms.pointee(ptr) {
                Some((obj, off)) if off == Off::At(0) || self.is_handed_out(ptr, (obj, off), at) => {
                    match (self.terms.object(obj), state.obj(obj)) {
                        (Object::Heap { older: false, .. }, Some(known)) => {
                            if off != Off::At(0) {
                                doubts.push(Doubt::Shifted);
                            }
                            if known.is_given_away() {
                                doubts.push(Doubt::Escaped);
                            }
                            if known.chosen && !self.is_chosen_release(at) {
                                doubts.push(Doubt::Chosen);
                            }
                            if known.lent {
                                doubts.push(Doubt::Lent);
                            }
                            if self.is_bereft(state, obj, known.family, at) {
                                doubts.push(Doubt::Bereft);
                            }
                            let nothing = self.may_be_asked_for_nothing(state, obj, at);
                            if known.status.may(Status::FREED) || known.drained || known.doubted || nothing {
                                doubts.push(Doubt::MayBeReleased);
                            }
                            if known.unsettled {
                                doubts.push(Doubt::Unsettled);
                            }
                            if self.is_raw_behind_address(state, obj, ptr, at) {
                                doubts.push(Doubt::Unset);
                            }
                            if self.is_grown_for_callers(state, obj) {
                                doubts.push(Doubt::NotOurs);
                            }
                            let family = known.family;
                            let places = self.read_from(state, at);
                            if known.retained > 0
                                || self.is_held_outside(state, obj, &|place| !places.contains(&place))
                                || self.is_looked_into(state, obj, family, at)
                                || self.is_number_handed_on(state, obj, family, at)
                                || self.is_kept_beside(state, obj, at)
                                || self.is_somewhere_beside(state, obj, at)
                                || self.is_compared_later(state, obj, at)
                                || self.is_other_end_kept(state, obj, family)
                                || self.is_under_a_handle(state, obj, family)
                            {
                                doubts.push(Doubt::StillReferenced);
                            } else if self.is_referenced_outside(state, obj) {
                                doubts.push(Doubt::Held);
                            }
                        }
                        (Object::Deref(_), _) if self.is_own_part(state, ptr, at) => {
                            doubts.push(if self.is_unset(state, ptr) { Doubt::Unset } else { Doubt::Part });
                        }
                        (Object::Deref(_), _) => doubts.push(Doubt::NotOurs),
                        _ => doubts.push(Doubt::Blurred),
                    }
                }
                _ if self.is_own_part(state, ptr, at) => {
                    doubts.push(if self.is_unset(state, ptr) { Doubt::Unset } else { Doubt::Part });
                }
                _ => doubts.push(Doubt::Blurred),
            }
        }
        self.releases.entry(at).or_default().extend(doubts);
        self.note_parts(state, ptr, at);
    }

    /// Which parts of a block were written that is given to a releasing function.
    fn note_parts(&mut self, state: &State, ptr: TermId, at: InstId) {
        let (Some((obj, Off::At(0))), Op::Call(call)) = (self.terms.pointee(ptr), &self.function.insts[at].op) else {
            return;
        };
        let given = call.args.iter().position(|arg| state.value(*arg) == Some(ptr));
        let (Some(argument), Some(known)) = (given, state.obj(obj)) else { return };
        if !known.raw || known.zeroed || state.epoch(obj) != 0 || state.weak_of(obj).next().is_some() {
            return;
        }
        let is_sure = |cell: &Cell| {
            let merged = matches!(self.terms.get(cell.term), Term::Content { obj: of, .. } if *of == obj);
            !(merged && known.ragged)
        };
        let parts = state.cells_of(obj).filter(|(_, cell)| is_sure(cell)).filter_map(|((_, off), cell)| match off {
            Off::At(offset) => Some((*offset, cell.size)),
            _ => None,
        });
        let parts: Vec<(i64, u64)> = parts.collect();
        match self.written.entry(at) {
            std::collections::btree_map::Entry::Vacant(entry) => _ = entry.insert((argument as u32, parts)),
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().1.retain(|part| parts.contains(part));
            }
        }
    }

    /// Is it what lay in a block before anybody wrote there?
    fn is_unset(&self, state: &State, ptr: TermId) -> bool {
        match *self.terms.get(ptr) {
            Term::Content { obj, off: Off::At(_), epoch: 0 } => {
                state.obj(obj).is_some_and(|known| known.raw && !known.zeroed)
                    && state.epoch(obj) == 0
                    && state.weak_of(obj).next().is_none()
            }
            _ => false,
        }
    }

    /// `setvbuf(f, buf, …); free(buf);`: who closes the stream now writes into what is gone. A stream into memory writes
    /// there, too. (A destructor that releases what its maker made has an order of its own.)
    fn is_bereft(&self, state: &State, obj: ObjId, family: FamilyId, at: InstId) -> bool {
        let spec = &self.models.families[family];
        if spec.is_memory || spec.is_integer {
            return false;
        }
        let gone = |block: ObjId| {
            matches!(self.terms.object(block), Object::Heap { .. })
                && state.obj(block).is_some_and(|known| known.status.may(Status::FREED))
        };
        let held = state.cells_of(obj).map(|(_, cell)| cell.term).chain(state.weak_of(obj));
        let beside = |block: ObjId| match (self.terms.object(obj), self.terms.object(block)) {
            (Object::Heap { site, sub, .. }, Object::Heap { site: same, sub: other, .. }) => {
                site == same && sub != other
            }
            _ => false,
        };
        held.into_iter().any(|term| self.terms.mentions(term).iter().any(|block| gone(*block)))
            || state.objs.iter().any(|(block, known)| beside(*block) && gone(*block) && known.freed_at != Some(at))
    }

    /// Who is given nothing but numbers has nothing to fill a block with: `malloc(size)`.
    pub(crate) fn is_given_numbers_only(&self, at: InstId) -> bool {
        let Op::Call(call) = &self.function.insts[at].op else { return false };
        let number = |arg: &ValueId| matches!(self.function.values[*arg].ty, Ty::Int(_));
        !call.args.is_empty() && call.args.iter().all(number)
    }

    pub(crate) fn note_handed_out(&mut self, result: TermId, by: InstId) {
        let Some((obj, off)) = self.terms.pointee(result) else { return };
        let made = matches!(self.terms.object(obj), Object::Heap { site, older: false, .. } if *site == by);
        if made && !matches!(off, Off::At(0) | Off::Some) {
            self.handed_out.entry(obj).or_default().insert(result);
        }
    }

    /// Whether a pointer into the middle of a block is the one that its maker returned, and is given to a function of the
    /// program: `text_free(text)`, where `text` lies behind a header of several sizes.
    fn is_handed_out(&self, ptr: TermId, (obj, off): (ObjId, Off), at: InstId) -> bool {
        let Some(known) = self.handed_out.get(&obj).filter(|known| known.contains(&ptr)) else { return false };
        // Nobody but the maker knows an offset without a number; another number might be meant.
        let is_it = matches!(off, Off::Elem(..)) || known.len() == 1;
        is_it && !self.is_library_release(at)
    }

    /// Whether the library itself is given what is released; not so where a release is only weighed.
    fn is_library_release(&self, at: InstId) -> bool {
        let Op::Call(call) = &self.function.insts[at].op else { return true };
        let Callee::Symbol(symbol) = call.callee else { return true };
        match self.program.target(self.unit, symbol) {
            Target::Extern(external) => self.program.externs[*external] != WEIGH,
            Target::Functions(_) => false,
            Target::Globals(_) => true,
        }
    }

    /// Whether a call releases through pointers, itself or at any depth, and in no other way: `my_free(p)`, which is
    /// `hooks.free(p)`.
    fn is_chosen_release(&self, at: InstId) -> bool {
        let mut chosen = false;
        let mut open = vec![(self.unit, &self.function.insts[at])];
        let mut seen: Vec<FuncId> = Vec::new();
        while let Some((unit, inst)) = open.pop() {
            let Op::Call(call) = &inst.op else { continue };
            let Callee::Symbol(symbol) = call.callee else {
                chosen |= matches!(call.callee, Callee::Value(_));
                continue;
            };
            match self.program.target(unit, symbol) {
                Target::Functions(all) => {
                    for &one in all.iter().filter(|one| !seen.contains(one)).collect::<Vec<_>>() {
                        seen.push(one);
                        let unit = self.program.unit_of(one);
                        open.extend(self.program.function(one).insts.iter().map(|inst| (unit, inst)));
                    }
                }
                Target::Extern(external) => {
                    let model = self.knowledge.model(*external);
                    let releases =
                        |effect: &Effect| matches!(effect, Effect::Releases { .. } | Effect::Reallocates { .. });
                    if model.is_some_and(|model| model.effects.iter().any(releases)) {
                        return false;
                    }
                }
                _ => {}
            }
            if seen.len() > MAX_RELEASERS {
                return false;
            }
        }
        chosen
    }

    /// A block was to become larger, and was not.
    pub(crate) fn note_asked(&mut self, old: TermId, at: InstId, arg: u32, args: &[TermId]) {
        let (Some((obj, _)), Op::Call(call)) = (self.terms.pointee(old), &self.function.insts[at].op) else { return };
        for (&value, &size) in call.args.iter().zip(args).skip(arg as usize + 1) {
            if matches!(self.function.values[value].ty, Ty::Int(_)) {
                self.asked.entry(obj).or_default().insert((at, size));
            }
        }
    }

    /// Who asks for no bytes gets null, and the old block is gone all the same.
    fn may_be_asked_for_nothing(&self, state: &State, obj: ObjId, at: InstId) -> bool {
        let before = |asked: &(InstId, TermId)| asked.0 != at && self.may_be_none(state, asked.1);
        self.asked.get(&obj).is_some_and(|sizes| sizes.iter().any(before))
    }

    /// May the number be 0? That it runs over is another error.
    fn may_be_none(&self, state: &State, size: TermId) -> bool {
        if state.facts.range(&self.terms, size).excludes(0) {
            return false;
        }
        match *self.terms.get(size) {
            Term::Bin(BinOp::Mul, a, b) => self.may_be_none(state, a) || self.may_be_none(state, b),
            Term::Bin(BinOp::Shl, a, _) | Term::Cast(_, _, a) => self.may_be_none(state, a),
            Term::Bin(BinOp::Add, a, b) => !(self.is_positive(a) || self.is_positive(b)),
            _ => true,
        }
    }

    fn is_positive(&self, term: TermId) -> bool {
        self.terms.as_int(term).is_some_and(|value| value > 0)
    }

    /// What the library put into a resource goes with it: does anybody still need a pointer that was read there
    /// (`return found->ai_addr;`)?
    fn is_looked_into(&self, state: &State, obj: ObjId, family: FamilyId, at: InstId) -> bool {
        let spec = &self.models.families[family];
        if spec.is_memory || spec.is_integer {
            return false;
        }
        // One that lives in a variable has put its pointers there (`found.gl_pathv`).
        let place = Self::inline_place(family);
        let lives_in = state.cells.iter().filter(|((_, off), cell)| {
            spec.is_inline && *off == place && self.terms.mentions(cell.term).contains(&obj)
        });
        let homes: SmallVec<[ObjId; 2]> = lives_in.map(|((home, _), _)| *home).chain([obj]).collect();
        let inside = |term: TermId| {
            self.terms
                .contains(term, &mut |part, _| matches!(part, Term::Content { obj: of, .. } if homes.contains(of)))
        };
        let needed = |value: ValueId| {
            self.function.values.get(value).is_some_and(|known| known.ty == Ty::Ptr)
                && self.cfg.is_live_after(self.block, value, at)
        };
        let outside = |holder: ObjId| match *self.terms.object(holder) {
            Object::Stack(_) => false,
            Object::Deref(base) => !inside(base),
            _ => !homes.contains(&holder),
        };
        // The number of a stream stands for it.
        let number = |term: TermId| {
            self.terms
                .contains(term, &mut |part, _| matches!(part, Term::Content { obj: of, off: NUMBER, .. } if *of == obj))
        };
        let held =
            |holder: ObjId, cell: &Cell| outside(holder) && (cell.size == 8 && inside(cell.term) || number(cell.term));
        let may_lead = |term: TermId| inside(term) && state.facts.range(&self.terms, term).constant() != Some(0);
        let goes_on = |value: ValueId, term: TermId| number(term) && self.cfg.is_live_after(self.block, value, at);
        state.env.iter().any(|(value, term)| needed(*value) && may_lead(*term) || goes_on(*value, *term))
            || state.cells.iter().any(|((holder, _), cell)| held(*holder, cell))
    }

    /// Is a function given the address of the variable (`list_free(&list)`), and parts of the block may never have been
    /// written? Which of them it looks at is not known then.
    fn is_raw_behind_address(&self, state: &State, obj: ObjId, ptr: TermId, at: InstId) -> bool {
        let Op::Call(call) = &self.function.insts[at].op else { return false };
        let given = call.args.iter().any(|arg| state.value(*arg) == Some(ptr));
        let is_address = |arg: &ValueId| {
            let addressed = state.value(*arg).map(|term| self.terms.get(term));
            matches!(addressed, Some(Term::Addr { obj, .. }) if matches!(self.terms.object(*obj), Object::Stack(_)))
        };
        !given && call.args.iter().any(is_address) && state.obj(obj).is_some_and(|known| known.raw && !known.zeroed)
    }

    /// Is it a caller's block that was made larger? He has his own pointer to it still, which is as good as before where
    /// the block has not moved: `if (!(grown = add(list, s))) free_list(list);`.
    fn is_grown_for_callers(&self, state: &State, obj: ObjId) -> bool {
        let is_given = |from: ObjId| match *self.terms.object(from) {
            Object::Deref(base) => matches!(self.terms.get(base), Term::Param(_)),
            _ => false,
        };
        // What was only copied is there still.
        let is_gone = |from: ObjId| state.obj(from).is_some_and(|known| known.status.may(Status::FREED));
        state.moved.iter().any(|(from, to)| *to == obj && is_given(*from) && is_gone(*from))
    }

    /// Is a descriptor returned or stored later? That is no use of it, so no path tells that it comes too late.
    fn is_number_handed_on(&self, state: &State, obj: ObjId, family: FamilyId, at: InstId) -> bool {
        if !self.models.families[family].is_integer {
            return false;
        }
        let is_it = |term: TermId| self.terms.mentions(term).contains(&obj);
        let hands_on = |value: ValueId| later::is_handed_on(self.function, &self.cfg, value, at);
        let is_live =
            |value: ValueId| self.function.values.get(value).is_some() && self.cfg.is_live_after(self.block, value, at);
        let in_variable = |((holder, off), cell): &((ObjId, Off), Cell)| {
            let (Object::Stack(variable), Off::At(offset)) = (self.terms.object(*holder), off) else { return false };
            let word = Word { variable: *variable, offset: *offset };
            is_it(cell.term)
                && later::is_read(self.function, &self.cfg, word, at)
                && later::read_from(self.function, &self.cfg, word, at).any(hands_on)
        };
        state.env.iter().any(|(value, term)| is_it(*term) && is_live(*value) && hands_on(*value))
            || state.cells.iter().any(in_variable)
    }

    /// Does a variable of this function lead to the object that is looked at later, beside the one whose content
    /// is released (`push(&list, item); free(item); show(&list);`)?
    fn is_kept_beside(&self, state: &State, obj: ObjId, at: InstId) -> bool {
        let Op::Call(call) = &self.function.insts[at].op else { return false };
        state.cells.iter().any(|((holder, off), cell)| {
            let (Object::Stack(variable), Off::At(offset)) = (self.terms.object(*holder), off) else { return false };
            let word = Word { variable: *variable, offset: *offset };
            self.terms.mentions(cell.term).contains(&obj)
                && !call.args.iter().any(|arg| later::is_from(self.function, *arg, word))
                && later::is_read(self.function, &self.cfg, word, at)
        })
    }

    /// Does a variable of this function that is needed later lead to the object, at no place that could be named
    /// (`getpwnam_r(name, &entry, block, …); free(block); return entry.pw_dir;`)?
    fn is_somewhere_beside(&self, state: &State, obj: ObjId, at: InstId) -> bool {
        let leads = |term: TermId| self.terms.mentions(term).contains(&obj);
        let is_variable = |holder: ObjId| matches!(self.terms.object(holder), Object::Stack(_));
        let holds = |holder: ObjId| is_variable(holder) && state.weak_of(holder).any(leads);
        if !state.weak.iter().any(|(holder, term)| is_variable(*holder) && leads(*term)) {
            return false;
        }
        let comes_from = |term: TermId| {
            self.terms.contains(
                term,
                &mut |part, _| matches!(part, Term::Addr { obj: of, .. } | Term::Content { obj: of, .. } if holds(*of)),
            )
        };
        let is_pointer = |value: ValueId| self.function.values.get(value).is_some_and(|known| known.ty == Ty::Ptr);
        let needed = |value: ValueId| is_pointer(value) && self.cfg.is_live_after(self.block, value, at);
        state.env.iter().any(|(value, term)| needed(*value) && comes_from(*term))
            || state.cells.iter().any(|((holder, off), cell)| match (self.terms.object(*holder), off) {
                (Object::Stack(variable), Off::At(offset)) if cell.size == 8 && comes_from(cell.term) => {
                    later::is_read(self.function, &self.cfg, Word { variable: *variable, offset: *offset }, at)
                }
                _ => false,
            })
    }

    /// Is the address compared with another one that is made later? Once it is free, the next block may lie there:
    /// `free(p); prev = p;` and in the next round `p = malloc(n); if (p == prev)`.
    fn is_compared_later(&self, state: &State, obj: ObjId, at: InstId) -> bool {
        let function = self.function;
        let leads = |term: TermId| self.terms.mentions(term).contains(&obj);
        let mut known: Vec<ValueId> = state
            .env
            .iter()
            .filter(|(value, term)| {
                function.values.get(*value).is_some() && leads(*term) && self.cfg.is_live_after(self.block, *value, at)
            })
            .map(|entry| entry.0)
            .collect();
        let mut next = 0;
        while let Some(&value) = known.get(next) {
            next += 1;
            for (id, inst) in function.insts.iter_ids() {
                match &inst.op {
                    Op::Cmp { op: CmpOp::Eq | CmpOp::Ne, a, b } if *a == value || *b == value => {
                        let is_behind = |inst: InstId| later::is_behind(function, &self.cfg, inst, at);
                        let is_number = |value: ValueId| {
                            !matches!(function.values[value].kind, ValueKind::Inst(_) | ValueKind::Param(_))
                        };
                        if !is_number(*a)
                            && !is_number(*b)
                            && is_behind(id)
                            && [*a, *b].into_iter().filter_map(|one| later::made_by(function, one)).any(is_behind)
                        {
                            return true;
                        }
                    }
                    Op::Cast { a, .. } if *a == value => {
                        known.extend(inst.result.filter(|result| !known.contains(result)));
                    }
                    Op::Phi { incoming } if incoming.iter().any(|(_, from)| *from == value) => {
                        known.extend(inst.result.filter(|result| !known.contains(result)));
                    }
                    Op::Select { a, b, .. } if *a == value || *b == value => {
                        known.extend(inst.result.filter(|result| !known.contains(result)));
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// One end of a pipe, of which somebody else has the other: he would notice.
    fn is_other_end_kept(&self, state: &State, obj: ObjId, family: FamilyId) -> bool {
        let Object::Heap { site, .. } = *self.terms.object(obj) else { return false };
        self.models.families[family].is_integer
            && state.objs.iter().any(|(other, known)| {
                let is_other = matches!(self.terms.object(*other), Object::Heap { site: made, .. } if *made == site);
                *other != obj
                    && is_other
                    && known.status.may(Status::LIVE)
                    && (known.escaped || self.is_referenced_outside(state, *other))
            })
    }

    /// Memory that came together with a handle which is still there: `open_memstream` writes into it.
    fn is_under_a_handle(&self, state: &State, obj: ObjId, family: FamilyId) -> bool {
        let Object::Heap { site, sub, .. } = *self.terms.object(obj) else { return false };
        let is_direct = self.sites.get(&(site, sub)).is_some_and(|fact| fact.direct);
        let is_handle = |family: FamilyId| {
            let spec = &self.models.families[family];
            !spec.is_memory && !spec.is_integer
        };
        self.models.families[family].is_memory
            && is_direct
            && state.objs.iter().any(|(other, known)| {
                matches!(self.terms.object(*other), Object::Heap { site: made, .. } if *made == site)
                    && is_handle(known.family)
                    && known.status.may(Status::LIVE)
            })
    }

    /// The places from which a call's arguments were read.
    fn read_from(&mut self, state: &State, at: InstId) -> Vec<(ObjId, Off)> {
        let function = self.function;
        let Op::Call(call) = &function.insts[at].op else { return Vec::new() };
        let mut places = Vec::new();
        for &arg in &call.args {
            let mut value = arg;
            while let ValueKind::Inst(inst) = function.values[value].kind {
                match function.insts[inst].op {
                    Op::Cast { a, .. } => value = a,
                    Op::Load { ptr } => {
                        let ptr = self.operand(state, ptr);
                        places.extend(self.terms.pointee(ptr));
                        break;
                    }
                    _ => break,
                }
            }
        }
        places
    }

    /// Does memory that outlives this function, or a block that is still in use, point to the object?
    pub(crate) fn is_referenced_outside(&self, state: &State, obj: ObjId) -> bool {
        self.is_held_outside(state, obj, &|_| true)
    }

    /// The same of some places.
    fn is_held_outside(&self, state: &State, obj: ObjId, which: &dyn Fn((ObjId, Off)) -> bool) -> bool {
        let outlives = |holder: ObjId| match self.terms.object(holder) {
            Object::Stack(_) => false,
            Object::Heap { .. } => {
                holder != obj && state.obj(holder).is_some_and(|known| known.status.may(Status::LIVE))
            }
            _ => true,
        };
        let points = |(place, cell): &((ObjId, Off), Cell)| {
            self.terms.mentions(cell.term).contains(&obj) && outlives(place.0) && which(*place)
        };
        state.cells.iter().any(points)
            || state.weak.iter().any(|(holder, term)| self.terms.mentions(*term).contains(&obj) && outlives(*holder))
    }
}
