//! Calls that a function makes instead of all the rest.
//!
//! ```text
//! if (op == LIST)
//!     return list(path);        // one command of the program
//! …
//! while (fgets(line, …))        // what it does otherwise
//! ```

use caulk_analysis::successors;
use caulk_base::Id;
use caulk_ir::{BlockId, Function, Op};

use super::around::{Kind, Site};
use super::dying::Dying;

/// Is there a decision that leads to the call on one side only, with work on the other?
pub fn is_alternative(dying: &mut Dying<'_>, site: Site) -> bool {
    let function = dying.around.program.function(site.caller);
    let Some(here) = function.blocks.ids().find(|block| {
        let range = function.blocks[*block];
        range.first <= site.inst && site.inst < range.end
    }) else {
        return false;
    };
    let leading = leading_to(function, here);
    let working: Vec<bool> = function.blocks.ids().map(|block| is_at_work(dying, site, block)).collect();
    function.blocks.ids().filter(|block| leading[block.index()] && *block != here).any(|block| {
        let others = successors(&function.terminator(block).1.op).into_iter().filter(|to| !leading[to.index()]);
        others.into_iter().any(|to| reaches(function, to, &working))
    })
}

fn is_at_work(dying: &mut Dying<'_>, site: Site, block: BlockId) -> bool {
    let function = dying.around.program.function(site.caller);
    let calls = function.block_insts(block).filter(|(_, inst)| matches!(inst.op, Op::Call(_)));
    calls.into_iter().any(|(inst, _)| matches!(dying.kind(site.caller, inst), Kind::Works | Kind::GoesOn))
}

/// Blocks from which a block can be come to.
fn leading_to(function: &Function, here: BlockId) -> Vec<bool> {
    let mut before: Vec<Vec<BlockId>> = vec![Vec::new(); function.blocks.len()];
    for block in function.blocks.ids() {
        for to in successors(&function.terminator(block).1.op) {
            before[to.index()].push(block);
        }
    }
    let mut leading = vec![false; function.blocks.len()];
    let mut open = vec![here];
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut leading[block.index()], true) {
            open.extend(&before[block.index()]);
        }
    }
    leading
}

fn reaches(function: &Function, from: BlockId, wanted: &[bool]) -> bool {
    let mut seen = vec![false; function.blocks.len()];
    let mut open = vec![from];
    while let Some(block) = open.pop() {
        if wanted[block.index()] {
            return true;
        }
        if !std::mem::replace(&mut seen[block.index()], true) {
            open.extend(successors(&function.terminator(block).1.op));
        }
    }
    false
}
