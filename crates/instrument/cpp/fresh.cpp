// Functions that return memory which nobody but their caller knows: what is stored there is the caller's still.
//
//     struct node *node_new(void) { ... malloc ... }     node = node_new(); node->text = p;     as with malloc itself
//     struct node *node_last(void) { return last; }      not: somebody else has it
//     return last = node_new();                          not: somebody else gets it
//
// It begins with none and adds one when, with those that are known so far, all that it returns is null or a new block
// that it gave to nobody. So each is proved by others that were.
#include "guard.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"

namespace caulk {

bool Analysis::freshRaw(const Value &value) const {
  auto *call = dyn_cast<CallBase>(&value);
  const Model *known = call ? model(*call) : nullptr;
  return known && known->family >= 0 && known->outArgument < 0 && known->onlyIfNull < 0 && !known->deep &&
         !known->moves && call->getType()->isPointerTy();
}

bool Analysis::fresh(const Value &value) const {
  if (freshRaw(value))
    return true;
  auto *call = dyn_cast<CallBase>(&value);
  return call && freshFunctions.contains(callee(*call));
}

bool Analysis::returnsFresh(Function &function) {
  SmallPtrSet<Value *, 8> seen;
  std::vector<Value *> work;
  for (BasicBlock &block : function)
    if (auto *result = dyn_cast<ReturnInst>(block.getTerminator()))
      work.push_back(result->getReturnValue());
  std::vector<CallBase *> calls;
  while (!work.empty()) {
    Value *value = getUnderlyingObject(work.back(), 0);
    work.pop_back();
    if (!seen.insert(value).second || isa<ConstantPointerNull>(value))
      continue;
    if (auto *phi = dyn_cast<PHINode>(value)) {
      work.insert(work.end(), phi->op_begin(), phi->op_end());
    } else if (auto *select = dyn_cast<SelectInst>(value)) {
      work.push_back(select->getTrueValue());
      work.push_back(select->getFalseValue());
    } else if (auto *call = dyn_cast<CallBase>(value); call && fresh(*call)) {
      calls.push_back(call);
    } else {
      return false;
    }
  }
  auto alone = [&](CallBase *call) {
    for (const Root &root : rootsOf(*call)) {
      if (root.holder || root.outArgument >= 0)
        continue;
      Flow flow = flowOf(root);
      auto released = [](const Take &take) { return take.kind == TakeKind::Release; };
      return !flow.refused && flow.deep == Depth::None && flow.lends.empty() && flow.moves.empty() &&
             all_of(flow.takes, released);
    }
    return false;
  };
  return !calls.empty() && all_of(calls, alone);
}

void Analysis::findFresh() {
  std::vector<Function *> open;
  for (auto &module : modules)
    for (Function &function : *module)
      if (!function.isDeclaration() && function.getReturnType()->isPointerTy())
        open.push_back(&function);
  for (bool more = true; more;) {
    size_t before = open.size();
    erase_if(open, [&](Function *function) { return returnsFresh(*function) && freshFunctions.insert(function).second; });
    more = open.size() != before;
  }
  // What was found on the way knew less.
  summaries.clear();
  returnedBlocks.clear();
}

} // namespace caulk
