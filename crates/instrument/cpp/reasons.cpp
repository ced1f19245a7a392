// Why a site is not guarded, in the words of the program.
#include "guard.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"

namespace caulk {

static std::string quoted(const Function &function) { return "`" + function.getName().str() + "`"; }

/// Who has what a function makes, or where it comes from that cannot be followed.
std::string Analysis::whyKept(Function &function, std::set<Function *> &seen) {
  std::string other;
  if (!seen.insert(&function).second)
    return other;
  for (Instruction &instruction : instructions(function)) {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call || call->isInlineAsm())
      continue;
    auto roots = rootsOf(*call);
    for (const Root &root : roots) {
      Flow flow = flowOf(root);
      if (!flow.refused && !flow.takes.empty() && !returnsOwned(flow, root))
        return "what " + quoted(function) + " makes " + flow.takes.front().why + " at " + placeOf(*flow.takes.front().at);
    }
    Function *target = callee(*call), *named = call->getCalledFunction();
    if (named && !target && unguarded.count(named->getName()))
      return whyNone(*call).second;
    if (target && roots.empty()) {
      std::string deeper = whyKept(*target, seen);
      if (!deeper.empty())
        return deeper;
    } else if (call->isIndirectCall() && call->getType()->isPointerTy() && other.empty()) {
      other = "it comes out of a call through a function pointer at " + placeOf(*call);
    }
  }
  return other;
}

bool returnsOwned(const Flow &flow, const Root &root) {
  SmallPtrSet<const Instruction *, 8> takes;
  for (const Take &take : flow.takes)
    if (take.kind == TakeKind::Always)
      takes.insert(take.at);
  std::vector<const Instruction *> work{root.call->getNextNode()};
  SmallPtrSet<const BasicBlock *, 16> seen;
  while (!work.empty()) {
    const Instruction *at = work.back();
    work.pop_back();
    while (at && !takes.contains(at) && !at->isTerminator())
      at = at->getNextNode();
    if (!at || takes.contains(at))
      continue;
    if (auto *result = dyn_cast<ReturnInst>(at); result && flow.returns.contains(result))
      return true;
    for (const BasicBlock *next : successors(at->getParent()))
      if (seen.insert(next).second)
        work.push_back(&next->front());
  }
  return false;
}

std::pair<unsigned, std::string> Analysis::whyNone(CallBase &call) {
  if (call.getFunction()->callsFunctionThatReturnsTwice())
    return {4, quoted(*call.getFunction()) + " calls `setjmp`"};
  const Function *named = call.getCalledFunction();
  if (!named)
    return {call.isInlineAsm() ? 0 : 2, "it comes out of a call through a function pointer"};
  if (Function *target = callee(call)) {
    std::set<Function *> seen;
    std::string kept = whyKept(*target, seen);
    return {3, kept.empty() ? "nothing that " + quoted(*named) + " makes can be followed out of it" : kept};
  }
  if (const Model *known = model(call); named->isIntrinsic() || (known && known->family < 0))
    return {0, ""};
  if (auto why = unguarded.find(named->getName()); why != unguarded.end())
    return {3, "what " + quoted(*named) + " makes " + why->second};
  if (model(call))
    return {3, "what " + quoted(*named) + " makes here is not released in one way only"};
  return {1, "what " + quoted(*named) + " makes is not known"};
}

std::string whyNever(const Flow &flow, const Root &root, const std::vector<Reclaim> &points) {
  if (flow.refused)
    return flow.why.empty() ? "others can reach the variable that it is put into" : flow.why;
  SmallPtrSet<const Instruction *, 8> takes, ends;
  bool again = false; // what was made in an earlier round is lost where the root returns null
  for (const Take &take : flow.takes)
    if (take.kind == TakeKind::Always)
      takes.insert(take.at);
  std::set<std::pair<const BasicBlock *, const BasicBlock *>> edges;
  for (const Reclaim &point : points) {
    if (point.ifNull && point.after == root.call)
      again = true;
    else if (point.after)
      ends.insert(point.after);
    else
      edges.insert({point.from, point.to});
  }
  // A release that is the last use is no leak; whether it is always that block, only the run knows.
  SmallPtrSet<const Instruction *, 8> releases;
  for (const Take &take : flow.takes)
    if (take.kind == TakeKind::Release)
      releases.insert(take.at);
  std::string first;
  std::vector<const Instruction *> work{root.call};
  SmallPtrSet<const Instruction *, 32> seen{root.call};
  while (!work.empty()) {
    const Instruction *at = work.back();
    work.pop_back();
    if (at != root.call && takes.contains(at)) {
      for (const Take &take : flow.takes)
        if (take.at == at && first.empty())
          first = "it " + take.why + " at " + placeOf(*at);
      continue;
    }
    if (ends.contains(at) && !releases.contains(at))
      return "";
    if (auto *result = dyn_cast<ReturnInst>(at); result && flow.returns.contains(result) && first.empty())
      first = "it is returned at " + placeOf(*at);
    std::vector<const Instruction *> nexts;
    if (const Instruction *next = at->getNextNode())
      nexts.push_back(next);
    else
      for (const BasicBlock *block : successors(at->getParent())) {
        if (edges.count({at->getParent(), block}))
          return "";
        nexts.push_back(&block->front());
      }
    for (const Instruction *next : nexts) {
      if (again && next == root.call)
        return "";
      if (seen.insert(next).second)
        work.push_back(next);
    }
  }
  return first.empty() ? "it is released on every way" : first;
}

} // namespace caulk
