// Where the last use of a block lies: the points from which on none of its values is live.
//
//     p = malloc(n)
//     if (c) { free(p); } else { use(p); }      points: after `free(p)`, after `use(p)`
//     q = c ? p : ""; puts(q)                   on the way to the phi that picks "", and after `puts(q)`
//     list->text = append(p, s)                 after `append`, if it returned null: then p is in nobody's hands
//
// Local variables that hold the address are live until they are read for the last time before they are overwritten.
#include "guard.h"

#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IntrinsicInst.h"

namespace caulk {

namespace {

class Liveness {
public:
  Liveness(const Flow &flow, const Root &root, bool numbers) : flow(flow), root(root), numbers(numbers) {}

  std::vector<Reclaim> points() {
    // The caller can reach it to the end.
    if (flow.leased)
      return {};
    reach();
    for (auto &[value, flags] : flow.values)
      if (isa<AllocaInst>(value))
        ofVariable(*value);
      else
        ofValue(*value);
    std::vector<Reclaim> found;
    for (BasicBlock *block : order)
      inside(*block, found);
    return found;
  }

private:
  const Flow &flow;
  const Root &root;
  bool numbers;
  std::vector<BasicBlock *> order; // blocks that the root reaches, in a fixed order
  SmallPtrSet<BasicBlock *, 32> reached;
  DenseMap<BasicBlock *, SmallPtrSet<Value *, 8>> liveIn;

  void reach() {
    std::vector<BasicBlock *> work{root.call->getParent()};
    reached.insert(root.call->getParent());
    while (!work.empty()) {
      BasicBlock *block = work.back();
      work.pop_back();
      for (BasicBlock *next : successors(block))
        if (reached.insert(next).second)
          work.push_back(next);
    }
    for (BasicBlock &block : *root.call->getFunction())
      if (reached.contains(&block))
        order.push_back(&block);
  }

  /// An argument that is only written by the root, or a plain assignment: what was there before is gone.
  bool overwrites(const Instruction &instruction, const Value &variable) const {
    auto &slot = cast<AllocaInst>(variable);
    if (slot.isArrayAllocation())
      return false;
    if (auto *store = dyn_cast<StoreInst>(&instruction))
      return store->getPointerOperand() == &variable && slot.getAllocatedType() == store->getValueOperand()->getType();
    // `getline` looks at what is there.
    return &instruction == root.call && root.outArgument >= 0 && root.out < 0 && !(root.model && root.model->moves) &&
           slot.getAllocatedType()->isPointerTy() && root.call->getArgOperand(root.outArgument) == &variable;
  }

  bool uses(const Instruction &instruction, const Value &value) const {
    if (isa<DbgInfoIntrinsic, LifetimeIntrinsic>(instruction))
      return false;
    if (isa<AllocaInst>(value)) {
      // Writing into it looks at nothing.
      if (auto *store = dyn_cast<StoreInst>(&instruction))
        return store->getValueOperand() == &value;
      if (overwrites(instruction, value))
        return false;
    }
    return is_contained(instruction.operands(), &value);
  }

  void ofValue(Value &value) {
    std::vector<BasicBlock *> work;
    BasicBlock *home = isa<Instruction>(value) ? cast<Instruction>(value).getParent() : nullptr;
    auto liveAtEnd = [&](BasicBlock *block) {
      if (block != home && liveIn[block].insert(&value).second)
        work.push_back(block);
    };
    for (Use &use : value.uses()) {
      auto *user = dyn_cast<Instruction>(use.getUser());
      if (!user)
        continue;
      if (auto *phi = dyn_cast<PHINode>(user)) {
        liveAtEnd(phi->getIncomingBlock(use));
      } else if (user->getParent() != home && liveIn[user->getParent()].insert(&value).second) {
        work.push_back(user->getParent());
      }
    }
    while (!work.empty()) {
      BasicBlock *block = work.back();
      work.pop_back();
      for (BasicBlock *before : predecessors(block))
        liveAtEnd(before);
    }
  }

  void ofVariable(Value &variable) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (BasicBlock &block : *root.call->getFunction()) {
        bool live = any_of(successors(&block), [&](BasicBlock *next) { return onEdge(variable, block, *next); });
        for (Instruction &instruction : reverse(block)) {
          if (overwrites(instruction, variable))
            live = false;
          if (!isa<PHINode>(instruction) && uses(instruction, variable))
            live = true;
        }
        if (live && liveIn[&block].insert(&variable).second)
          changed = true;
      }
    }
  }

  /// Memory that will hold the address, and a part of it: nothing lies there yet.
  bool isEmpty(Value *value, Instruction &at) const {
    Value *memory = getUnderlyingObject(value, 0);
    if (root.outArgument >= 0 || memory == root.call || (flow.values.lookup(memory) & (IsBlock | IsHolder)) != IsHolder)
      return false;
    return none_of(flow.fills, [&](auto &fill) {
      return fill.second == memory && reachesWithout(*fill.first, at, memory);
    });
  }

  /// A call whose result is all that may lead to the block: if it is null, nothing does.
  bool isLast(Instruction &instruction, const SmallPtrSetImpl<Value *> &live) const {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (numbers || !call || !call->getType()->isPointerTy() || !live.contains(call) || call->isMustTailCall())
      return false;
    // The block that was just made is not null; one of an earlier round may have gone in.
    if (call == root.call && none_of(call->args(), [&](Use &use) { return flow.values.count(use.get()); }))
      return false;
    return all_of(live, [&](Value *value) { return value == call || isEmpty(value, instruction); });
  }

  bool onEdge(Value &value, BasicBlock &from, BasicBlock &to) {
    if (liveIn[&to].contains(&value))
      return true;
    return any_of(to.phis(), [&](PHINode &phi) { return phi.getIncomingValueForBlock(&from) == &value; });
  }

  void inside(BasicBlock &block, std::vector<Reclaim> &found) {
    SmallPtrSet<Value *, 8> live;
    for (BasicBlock *next : successors(&block))
      for (auto &[value, flags] : flow.values)
        if (onEdge(*value, block, *next))
          live.insert(value);
    Instruction *end = block.getTerminator();
    bool used = any_of(flow.values, [&](auto &entry) { return uses(*end, *entry.first); });
    if (!live.empty() || used) {
      SmallPtrSet<BasicBlock *, 4> seen;
      for (BasicBlock *next : successors(&block))
        if (seen.insert(next).second && none_of(flow.values, [&](auto &v) { return onEdge(*v.first, block, *next); }))
          found.push_back({nullptr, &block, next});
    }
    for (auto &[value, flags] : flow.values)
      if (uses(*end, *value))
        live.insert(value);
    for (Instruction &instruction : reverse(block)) {
      if (&instruction == end)
        continue;
      bool dead = live.empty();
      bool involved = &instruction == root.call;
      for (auto &[value, flags] : flow.values) {
        if (isa<PHINode>(instruction) ? value == &instruction : uses(instruction, *value) || value == &instruction)
          involved = true;
      }
      if (dead && involved) {
        // All phis of a block happen at once.
        if (isa<PHINode>(instruction)) {
          if (none_of(found, [&](Reclaim &r) { return r.after && isa<PHINode>(r.after) && r.after->getParent() == &block; }))
            found.push_back({&instruction, nullptr, nullptr});
        } else {
          found.push_back({&instruction, nullptr, nullptr});
        }
      }
      if (isLast(instruction, live))
        found.push_back({&instruction, nullptr, nullptr, true});
      for (auto &[value, flags] : flow.values) {
        if (value == &instruction || (isa<AllocaInst>(value) && overwrites(instruction, *value)))
          live.erase(value);
      }
      for (auto &[value, flags] : flow.values)
        if (!isa<PHINode>(instruction) && uses(instruction, *value))
          live.insert(value);
    }
  }
};

} // namespace

std::vector<Reclaim> reclaimPoints(const Flow &flow, const Root &root, bool numbers) {
  return Liveness(flow, root, numbers).points();
}

} // namespace caulk
