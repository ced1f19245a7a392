// What functions do with blocks they get, and which blocks they make: over all modules of a program.
#include "guard.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace caulk {

/// More blocks than this of one function are not handed to its callers.
constexpr size_t maxReturned = 3;

void Analysis::prepare() {
  for (auto &module : modules) {
    for (GlobalAlias &alias : module->aliases())
      defined.insert(alias.getName());
    for (GlobalVariable &variable : module->globals())
      if (variable.hasInitializer() && !variable.hasLocalLinkage())
        variables.try_emplace(variable.getName(), &variable);
  }
  for (auto &module : modules)
    for (Function &function : *module) {
      if (function.isDeclaration())
        continue;
      DominatorTree tree(function);
      for (;;) {
        std::vector<AllocaInst *> slots;
        for (Instruction &instruction : function.getEntryBlock())
          if (auto *slot = dyn_cast<AllocaInst>(&instruction); slot && isAllocaPromotable(slot))
            slots.push_back(slot);
        if (slots.empty())
          break;
        PromoteMemToReg(slots, tree);
      }
      // An inline copy of the library's own is no definition.
      if (function.hasLocalLinkage() || function.hasAvailableExternallyLinkage())
        continue;
      defined.insert(function.getName());
      if (function.isInterposable())
        continue;
      auto &known = definitions[function.getName()];
      if (!known)
        known = &function;
    }
  promote();
}

Function *Analysis::callee(const CallBase &call) const {
  Function *named = call.getCalledFunction();
  if (!named)
    return nullptr;
  if (model(call))
    return nullptr;
  if (!named->isDeclaration())
    return named->isInterposable() ? nullptr : named;
  Function *found = definitions.lookup(named->getName());
  return found && found->getFunctionType() == named->getFunctionType() ? found : nullptr;
}

const Model *Analysis::model(const CallBase &call) const {
  Function *named = call.getCalledFunction();
  // Whatever the program calls `malloc` is not the library's.
  if (!named || !(named->isDeclaration() || named->hasAvailableExternallyLinkage()) || defined.contains(named->getName()))
    return nullptr;
  auto found = models.find(named->getName());
  return found == models.end() ? nullptr : &found->second;
}

bool Analysis::canClone(const Function &function) {
  auto [at, inserted] = clonable.try_emplace(&function, false);
  if (!inserted)
    return at->second;
  if (function.hasFnAttribute(Attribute::Naked) || function.hasPersonalityFn() ||
      function.hasFnAttribute(Attribute::PresplitCoroutine))
    return false;
  // A table of labels leads into the original only.
  return at->second = none_of(function, [](const BasicBlock &block) { return block.hasAddressTaken(); });
}

/// A local variable, or a block that was just made: nobody else knows it until it is given away.
Value *Analysis::privateMemory(Value *address) const {
  Value *object = getUnderlyingObject(address, 0);
  return isa<AllocaInst>(object) || fresh(*object) ? object : nullptr;
}

/// Private memory of a size that is written down, at no place in particular: of no use to anybody without its address.
static bool isOwnMapping(const CallBase &call) {
  constexpr uint64_t isPrivate = 0x2, isAnonymous = 0x20, harmless = 0x4000 | 0x8000; // NORESERVE, POPULATE
  if (call.arg_size() != 6 || !isa<ConstantPointerNull>(call.getArgOperand(0)) || !isa<ConstantInt>(call.getArgOperand(1)))
    return false;
  auto *flags = dyn_cast<ConstantInt>(call.getArgOperand(3));
  return flags && (flags->getZExtValue() & ~harmless) == (isPrivate | isAnonymous);
}

std::vector<Root> Analysis::rootsOf(CallBase &call) {
  std::vector<Root> roots;
  if (call.getFunction()->callsFunctionThatReturnsTwice() || call.isMustTailCall() || call.isTerminator())
    return roots;
  Root root;
  root.call = &call;
  if (Function *target = callee(call)) {
    auto &made = returned(*target);
    for (size_t i = 0; i < made.size(); i++) {
      root.family = made[i].family;
      root.out = int(i);
      root.deep = made[i].deep;
      root.holder = made[i].holder;
      root.within = made[i].within;
      root.nested = made[i].nested;
      root.outArgument = made[i].leaves;
      root.at = made[i].at;
      root.byResult = made[i].byResult;
      if (root.outArgument < 0 || privateMemory(call.getArgOperand(unsigned(root.outArgument))))
        roots.push_back(root);
    }
    return roots;
  }
  const Model *known = model(call);
  if (!known || known->family < 0)
    return roots;
  if (known->onlyIfNull >= 0 && (unsigned(known->onlyIfNull) >= call.arg_size() ||
                                 !isa<ConstantPointerNull>(call.getArgOperand(known->onlyIfNull))))
    return roots;
  if (known->maps && !isOwnMapping(call))
    return roots;
  root.family = known->family;
  root.outArgument = known->outArgument;
  root.deep = known->deep ? Depth::Numbers : Depth::None;
  root.nested = known->deep ? Nested::Library : Nested::None;
  root.model = known;
  bool integer = families[root.family].integer;
  if (root.outArgument < 0 && (integer ? !call.getType()->isIntegerTy() : !call.getType()->isPointerTy()))
    return roots;
  if (root.outArgument >= 0 && (integer || unsigned(root.outArgument) >= call.arg_size()))
    return roots;
  roots.push_back(root);
  return roots;
}

const std::vector<Root> &Analysis::returned(Function &function) {
  static const std::vector<Root> none;
  if (auto known = returnedBlocks.find(&function); known != returnedBlocks.end())
    return known->second;
  // Recursion: what is not known yet is not guarded.
  if (!canClone(function) || !returnedPending.insert(&function).second)
    return none;
  std::vector<Root> made;
  for (Instruction &instruction : instructions(function)) {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call)
      continue;
    for (Root &root : rootsOf(*call)) {
      // Callers do not know its length.
      if (root.model && root.model->maps)
        continue;
      Flow flow = flowOf(root);
      root.leaves = -1;
      if (!flow.refused && flow.returns.empty())
        for (const Take &take : flow.takes)
          if (auto *store = dyn_cast<StoreInst>(take.at); store && root.leaves < 0)
            if (auto *into = dyn_cast<Argument>(getUnderlyingObject(store->getPointerOperand(), 0)))
              root.leaves = int(into->getArgNo());
      if (root.leaves >= 0)
        flow = flowOf(root, root.leaves);
      if (flow.refused || !returnsOwned(flow, root))
        continue;
      root.at = flow.leasedAt;
      root.byResult = any_of(flow.returns, [&](ReturnInst *result) { return flow.values.count(result->getReturnValue()); });
      root.holder = flow.returnsHolder();
      root.within = root.holder && none_of(flow.returns, [&](ReturnInst *result) {
        return (flow.values.lookup(result->getReturnValue()) & IsBlock) != 0;
      });
      root.deep = root.holder || flow.leased ? flow.deep : Depth::None;
      root.nested = root.holder || flow.leased ? flow.nested : Nested::None;
      made.push_back(root);
    }
  }
  // The block itself before what it holds.
  stable_sort(made, [](const Root &a, const Root &b) { return a.holder < b.holder; });
  if (made.size() > maxReturned)
    made.resize(maxReturned);
  returnedPending.erase(&function);
  return returnedBlocks[&function] = std::move(made);
}

Summary Analysis::ask(Function &function, unsigned argument, Reach reach) {
  Key key{&function, argument, reach};
  auto [at, inserted] = summaries.try_emplace(key);
  if (inserted)
    pending.push_back(key);
  if (!reading.empty())
    at->second.readers.insert(reading.back());
  return at->second.value;
}

Summary Analysis::summary(Function &function, unsigned argument, Reach reach) {
  ask(function, argument, reach);
  solve();
  return ask(function, argument, reach);
}

void Analysis::solve() {
  if (solving)
    return;
  solving = true;
  while (!pending.empty()) {
    Key key = pending.front();
    pending.pop_front();
    auto [function, argument, reach] = key;
    reading.push_back(key);
    Flow flow = flowOfArgument(*function, argument, reach);
    Summary found;
    found.mayTake = flow.mayTake();
    found.mayReturn = !flow.returns.empty();
    found.mustTake = mustTake(*function, *function->getArg(argument), flow);
    found.returns = flow.returnsHolder() ? flow.deep : Depth::None;
    found.nested = flow.returnsHolder() ? flow.nested : Nested::None;
    reading.pop_back();
    Entry &entry = summaries[key];
    Summary before = entry.value;
    // Only ever towards the worse, so that it ends.
    entry.value.mayTake |= found.mayTake;
    entry.value.mayReturn |= found.mayReturn;
    entry.value.mustTake &= found.mustTake;
    entry.value.returns = std::max(entry.value.returns, found.returns);
    entry.value.nested = std::max(entry.value.nested, found.nested);
    if (entry.value == before)
      continue;
    for (const Key &reader : entry.readers)
      if (find(pending, reader) == pending.end())
        pending.push_back(reader);
  }
  solving = false;
}

/// Whether every way to a return takes the block, where there is one.
bool Analysis::mustTake(Function &function, Argument &seed, const Flow &flow) {
  SmallPtrSet<Instruction *, 8> taking;
  for (const Take &take : flow.takes)
    if (take.kind == TakeKind::Always ||
        (take.kind == TakeKind::Release && getUnderlyingObject(take.operand, 0) == &seed))
      taking.insert(take.at);
  if (taking.empty())
    return false;
  // Blocks that are reached with the block still there.
  std::vector<BasicBlock *> work{&function.getEntryBlock()};
  SmallPtrSet<BasicBlock *, 16> seen{&function.getEntryBlock()};
  while (!work.empty()) {
    BasicBlock *block = work.back();
    work.pop_back();
    bool taken = false;
    for (Instruction &instruction : *block)
      taken |= taking.contains(&instruction);
    if (taken)
      continue;
    Instruction *end = block->getTerminator();
    if (isa<ReturnInst>(end))
      return false;
    BasicBlock *null = nullptr;
    if (auto *branch = dyn_cast<BranchInst>(end); branch && branch->isConditional())
      if (auto *test = dyn_cast<ICmpInst>(branch->getCondition());
          test && test->isEquality() && test->getOperand(0) == &seed && isa<ConstantPointerNull>(test->getOperand(1)))
        null = branch->getSuccessor(test->getPredicate() == ICmpInst::ICMP_EQ ? 0 : 1);
    for (BasicBlock *next : successors(block))
      if (next != null && seen.insert(next).second)
        work.push_back(next);
  }
  return true;
}

/// Further arguments that only ever go to `vprintf` and its like are looked at, not kept.
bool Analysis::variadicOnlyPrinted(Function &function) {
  for (Instruction &instruction : instructions(function))
    if (auto *start = dyn_cast<VAStartInst>(&instruction))
      if (!onlyPrinted(*getUnderlyingObject(start->getArgList(), 0), 0))
        return false;
  return true;
}

bool Analysis::onlyPrinted(Value &list, unsigned depth) {
  static const std::set<StringRef> printing = {
      "vprintf",      "vfprintf",      "vsprintf",      "vsnprintf",       "vdprintf",       "vsyslog",
      "vasprintf",    "__vprintf_chk", "__vfprintf_chk", "__vsprintf_chk", "__vsnprintf_chk", "__vdprintf_chk",
      "__vasprintf_chk", "__vsyslog_chk", "vwarn",       "vwarnx",         "verr",           "verrx"};
  if (depth > 8 || !isa<AllocaInst, Argument, GetElementPtrInst, CastInst>(list))
    return false;
  for (User *user : list.users()) {
    if (isa<GetElementPtrInst, CastInst>(user)) {
      if (!onlyPrinted(*user, depth + 1))
        return false;
      continue;
    }
    auto *call = dyn_cast<CallBase>(user);
    if (!call)
      return false;
    if (isa<VAStartInst, VAEndInst, DbgInfoIntrinsic, LifetimeIntrinsic>(call))
      continue;
    if (auto *copy = dyn_cast<VACopyInst>(call)) {
      Value *other = getUnderlyingObject(copy->getDest(), 0);
      if (other != &list && !onlyPrinted(*other, depth + 1))
        return false;
      continue;
    }
    if (Function *target = callee(*call)) {
      for (unsigned i = 0; i < call->arg_size(); i++)
        if (call->getArgOperand(i) == &list && (i >= target->arg_size() || !onlyPrinted(*target->getArg(i), depth + 1)))
          return false;
      continue;
    }
    if (!model(*call) || !printing.count(call->getCalledFunction()->getName()))
      return false;
  }
  return true;
}

} // namespace caulk
