// Owners in code: a variable for each guarded block of an activation, that says whether it is still ours to reclaim.
//
//     p = malloc(n)                    owner = p
//     list->last = p                   owner = null, before
//     free(p)                          if (owner == p) owner = null, before
//     flock(fd, LOCK_EX)               if (it returned 0) owner = null, behind
//     append(list, p)                  append.caulk(list, p, &owner)
//     <the last use>                   if (owner) { __caulk_reclaim(owner, site); owner = null }
//     list->last = append(p, s)        if (owner && !result) ..., behind the call: what is null leads to nothing
//     return p                         *out = owner, in a variant whose caller asked for it
#include "plan.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace caulk {

template <typename T> T *Emitter::mapped(T *value) const {
  if (variant.key.original())
    return value;
  auto found = variant.map.find(value);
  return found == variant.map.end() ? nullptr : cast_or_null<T>(static_cast<Value *>(found->second));
}

void Emitter::run() {
  makeOwners();
  // The ways first: what is inserted later changes which block ends where.
  for (Cell &cell : variant.cells)
    for (Reclaim &point : cell.points)
      if (point.from)
        onEdge(mapped(point.from), mapped(point.to));
  for (Cell &cell : variant.cells)
    for (Reclaim &point : cell.points)
      if (point.after)
        after(mapped(point.after));
  for (size_t i = 0; i < variant.cells.size(); i++) {
    Cell &cell = variant.cells[i];
    for (CallBase *call : cell.flow.moves)
      after(mapped(call));
    for (const Take &take : cell.flow.takes)
      if (take.kind == TakeKind::IfZero)
        after(mapped(take.at));
    if (cell.root)
      after(mapped(cell.root->call));
  }
  // What happens behind one instruction comes before what happens before the next.
  for (size_t i = 0; i < variant.cells.size(); i++) {
    Cell &cell = variant.cells[i];
    for (const Take &take : cell.flow.takes)
      if (take.kind == TakeKind::IfZero)
        forget(i, take);
    for (CallBase *call : cell.flow.moves)
      if (!cell.root || cell.root->call != call)
        move(i, mapped(call));
  }
  for (size_t i = 0; i < variant.cells.size(); i++)
    if (variant.cells[i].root)
      remember(i);
  // What comes next may be to give null away.
  for (size_t i = 0; i < variant.cells.size(); i++)
    for (Reclaim &point : variant.cells[i].points)
      if (point.ifNull)
        reclaim(i, after(mapped(point.after)), mapped(point.after));
  for (size_t i = 0; i < variant.cells.size(); i++) {
    Cell &cell = variant.cells[i];
    for (const Take &take : cell.flow.takes)
      if (take.kind != TakeKind::IfZero)
        forget(i, take);
    if (cell.result >= 0)
      for (ReturnInst *result : cell.flow.returns) {
        IRBuilder<> build(mapped(result));
        Value *owner = build.CreateLoad(build.getPtrTy(), owners[i]);
        build.CreateStore(owner, variant.made->getArg(cell.result));
      }
  }
  std::vector<std::pair<size_t, Instruction *>> reclaims;
  for (size_t i = 0; i < variant.cells.size(); i++)
    for (Reclaim &point : variant.cells[i].points) {
      Instruction *before = point.after ? after(mapped(point.after)) : onEdge(mapped(point.from), mapped(point.to));
      if (before && !point.ifNull)
        reclaims.push_back({i, before});
    }
  for (auto [cell, before] : reclaims)
    reclaim(cell, before, nullptr);
  for (auto &[call, handover] : variant.calls)
    handOver(mapped(call), handover);
  // It may release now.
  variant.made->removeFnAttr(Attribute::Memory);
  variant.made->removeFnAttr(Attribute::NoFree);
  variant.made->removeFnAttr(Attribute::NoSync);
  // The owner is another way to what is returned.
  if (variant.key.results)
    variant.made->removeRetAttr(Attribute::NoAlias);
}

void Emitter::makeOwners() {
  IRBuilder<> build(&*variant.made->getEntryBlock().getFirstInsertionPt());
  Value *none = ConstantPointerNull::get(build.getPtrTy());
  for (Cell &cell : variant.cells) {
    if (cell.root) {
      AllocaInst *owner = build.CreateAlloca(build.getPtrTy(), nullptr, "caulk.owner");
      build.CreateStore(none, owner);
      owners.push_back(owner);
    } else {
      owners.push_back(variant.made->getArg(cell.parameter));
    }
    if (cell.result >= 0)
      build.CreateStore(none, variant.made->getArg(cell.result));
  }
}

/// What stood behind an instruction before anything was inserted there.
Instruction *Emitter::after(Instruction *instruction) {
  auto [at, inserted] = behind.insert({instruction, nullptr});
  if (inserted)
    at->second = isa<PHINode>(instruction) ? &*instruction->getParent()->getFirstInsertionPt() : instruction->getNextNode();
  return at->second;
}

/// The first instruction of a block that only this way passes, or null where there can be none.
Instruction *Emitter::onEdge(BasicBlock *from, BasicBlock *to) {
  auto [at, inserted] = edges.insert({{from, to}, nullptr});
  if (!inserted)
    return at->second;
  Instruction *end = from->getTerminator();
  if (isa<IndirectBrInst, CallBrInst>(end) || to->isEHPad())
    return nullptr;
  BasicBlock *between = BasicBlock::Create(from->getContext(), "caulk.edge", from->getParent(), to);
  BranchInst *jump = BranchInst::Create(to, between);
  jump->setDebugLoc(end->getDebugLoc());
  for (unsigned i = 0; i < end->getNumSuccessors(); i++)
    if (end->getSuccessor(i) == to)
      end->setSuccessor(i, between);
  for (PHINode &phi : to->phis()) {
    bool first = true;
    for (unsigned i = 0; i < phi.getNumIncomingValues();) {
      if (phi.getIncomingBlock(i) != from) {
        i++;
      } else if (first) {
        phi.setIncomingBlock(i++, between);
        first = false;
      } else {
        phi.removeIncomingValue(i, false);
      }
    }
  }
  return at->second = jump;
}

void Emitter::forget(size_t cell, const Take &take) {
  if (take.kind == TakeKind::IfZero) {
    Instruction *call = mapped(take.at);
    IRBuilder<> build(after(call));
    Value *owner = build.CreateLoad(build.getPtrTy(), owners[cell]);
    Value *none = ConstantPointerNull::get(build.getPtrTy());
    build.CreateStore(build.CreateSelect(build.CreateIsNull(call), none, owner), owners[cell]);
    return;
  }
  IRBuilder<> build(mapped(take.at));
  Value *none = ConstantPointerNull::get(build.getPtrTy());
  if (take.kind == TakeKind::Release) {
    Value *released = isa<Constant>(take.operand) ? take.operand : mapped(take.operand);
    if (released->getType()->isPointerTy()) {
      Value *owner = build.CreateLoad(build.getPtrTy(), owners[cell]);
      build.CreateStore(build.CreateSelect(build.CreateICmpEQ(owner, released), none, owner), owners[cell]);
      return;
    }
  }
  build.CreateStore(none, owners[cell]);
}

/// realloc: the owner goes to the new block; where there is none, the old one is still there.
void Emitter::move(size_t cell, CallBase *call) {
  IRBuilder<> build(after(call));
  build.SetCurrentDebugLocation(call->getDebugLoc());
  Value *none = ConstantPointerNull::get(build.getPtrTy());
  Value *owner = build.CreateLoad(build.getPtrTy(), owners[cell]);
  Value *empty = build.getFalse();
  for (unsigned i = 1; i < call->arg_size(); i++)
    if (call->getArgOperand(i)->getType()->isIntegerTy())
      empty = build.CreateOr(empty, build.CreateIsNull(call->getArgOperand(i)));
  Value *failed = build.CreateSelect(empty, none, owner);
  // Where the result has an owner of its own, this one has done its work.
  bool other = any_of(variant.cells, [&](const Cell &c) { return c.root && mapped(c.root->call) == call; });
  Value *moved = build.CreateSelect(build.CreateIsNull(call), failed, other ? none : static_cast<Value *>(call));
  Value *same = build.CreateICmpEQ(owner, call->getArgOperand(0));
  if (!other) // from nothing: not our block
    same = build.CreateAnd(same, build.CreateIsNotNull(owner));
  build.CreateStore(build.CreateSelect(same, moved, owner), owners[cell]);
}

/// The owner right behind the call that made the block.
void Emitter::remember(size_t at) {
  const Root &root = *variant.cells[at].root;
  if (root.out >= 0)
    return;
  auto *call = mapped(root.call);
  IRBuilder<> build(after(call));
  build.SetCurrentDebugLocation(call->getDebugLoc());
  Value *none = ConstantPointerNull::get(build.getPtrTy());
  if (analysis.families[root.family].integer) {
    Value *number = build.CreateSExt(call, build.getInt64Ty());
    Value *handle = build.CreateIntToPtr(build.CreateAdd(number, build.getInt64(1)), build.getPtrTy());
    Value *valid = build.CreateICmpSGE(number, build.getInt64(0));
    build.CreateStore(build.CreateSelect(valid, handle, none), owners[at]);
    return;
  }
  if (root.outArgument >= 0) {
    Value *made = build.CreateLoad(build.getPtrTy(), call->getArgOperand(root.outArgument));
    Value *valid = build.getTrue();
    Type *type = call->getType();
    if (root.model->moves) {
      // What lay there and was not ours is not ours now.
      IRBuilder<> earlier(call);
      Value *before = earlier.CreateLoad(build.getPtrTy(), call->getArgOperand(root.outArgument));
      Value *owner = earlier.CreateLoad(build.getPtrTy(), owners[at]);
      Value *ours = earlier.CreateOr(earlier.CreateIsNull(before), earlier.CreateICmpEQ(before, owner));
      build.CreateStore(build.CreateSelect(ours, made, none), owners[at]);
      return;
    }
    if (type->isIntegerTy()) {
      Value *minusOne = ConstantInt::getSigned(type, -1);
      switch (root.model->success) {
      case Success::Zero: valid = build.CreateIsNull(call); break;
      case Success::NotMinusOne: valid = build.CreateICmpNE(call, minusOne); break;
      case Success::NotNegative: valid = build.CreateICmpSGT(call, minusOne); break;
      case Success::NotNull: valid = build.CreateIsNotNull(call); break;
      case Success::Always: break;
      }
    } else if (type->isPointerTy() && root.model->success == Success::NotNull) {
      valid = build.CreateIsNotNull(call);
    }
    build.CreateStore(build.CreateSelect(valid, made, none), owners[at]);
    return;
  }
  Value *made = call;
  if (root.model->maps)
    made = build.CreateSelect(build.CreateICmpEQ(build.CreatePtrToInt(call, build.getInt64Ty()), build.getInt64(-1)), none, call);
  if (root.model->moves) {
    // What was to be moved is still there if that failed, and ours if it was.
    Value *owner = build.CreateLoad(build.getPtrTy(), owners[at]);
    Value *empty = build.getFalse();
    for (unsigned i = 1; i < call->arg_size(); i++)
      if (call->getArgOperand(i)->getType()->isIntegerTy())
        empty = build.CreateOr(empty, build.CreateIsNull(call->getArgOperand(i)));
    Value *kept = build.CreateAnd(build.CreateICmpEQ(owner, call->getArgOperand(0)), build.CreateNot(empty));
    made = build.CreateSelect(build.CreateIsNull(call), build.CreateSelect(kept, owner, none), call);
  }
  build.CreateStore(made, owners[at]);
}

void Emitter::reclaim(size_t cell, Instruction *before, Value *ifNull) {
  IRBuilder<> build(before);
  Value *owner = build.CreateLoad(build.getPtrTy(), owners[cell]);
  Value *lost = build.CreateIsNotNull(owner);
  if (ifNull)
    lost = build.CreateAnd(lost, build.CreateIsNull(ifNull));
  MDNode *rare = MDBuilder(before->getContext()).createBranchWeights(1, 2000);
  Instruction *then = SplitBlockAndInsertIfThen(lost, before, false, rare);
  build.SetInsertPoint(then);
  if (DISubprogram *subprogram = variant.made->getSubprogram())
    build.SetCurrentDebugLocation(
        before->getDebugLoc() ? before->getDebugLoc()
                              : DebugLoc(DILocation::get(before->getContext(), 0, 0, subprogram)));
  Type *pointer = build.getPtrTy();
  FunctionCallee runtime = variant.made->getParent()->getOrInsertFunction(
      "__caulk_reclaim", FunctionType::get(build.getVoidTy(), {pointer, pointer}, false));
  build.CreateCall(runtime, {owner, site(variant.cells[cell].site)});
  Value *none = ConstantPointerNull::get(build.getPtrTy());
  build.CreateStore(none, owners[cell]);
  if (int twin = variant.cells[cell].twin; twin >= 0) {
    Value *other = build.CreateLoad(build.getPtrTy(), owners[twin]);
    build.CreateStore(build.CreateSelect(build.CreateICmpEQ(other, owner), none, other), owners[twin]);
  }
}

GlobalVariable *Emitter::site(int id) {
  GlobalVariable *original = sites[id];
  Module *module = variant.made->getParent();
  if (original->getParent() == module)
    return original;
  if (auto *known = module->getNamedGlobal(original->getName()))
    return known;
  auto *declared = new GlobalVariable(*module, original->getValueType(), false, GlobalValue::ExternalLinkage, nullptr,
                                      original->getName());
  declared->setVisibility(GlobalValue::HiddenVisibility);
  return declared;
}

void Emitter::handOver(CallBase *call, const Handover &handover) {
  VariantKey key;
  key.function = analysis.callee(*call);
  // What is added comes before further arguments.
  auto fixed = call->arg_begin() + key.function->arg_size();
  std::vector<Value *> arguments(call->arg_begin(), fixed);
  for (auto &[argument, reach, cell] : handover.lends) {
    key.lends.push_back({argument, reach});
    arguments.push_back(owners[cell]);
  }
  IRBuilder<> build(call);
  std::vector<std::tuple<Value *, Value *, bool>> back; // what comes back, an owner, and whether that went in
  if (!handover.results.empty()) {
    key.results = true;
    size_t count = analysis.returned(*key.function).size();
    for (size_t i = 0; i < count; i++) {
      std::vector<size_t> cells;
      for (auto &[out, cell] : handover.results)
        if (out == int(i))
          cells.push_back(cell);
      // `s = append(s, t)` in a loop: as long as nothing comes back, the owner is what went in.
      auto lent = [&](size_t cell) {
        return any_of(handover.lends, [&](auto &lend) { return std::get<2>(lend) == cell; });
      };
      Value *into = cells.size() == 1 && !lent(cells[0]) ? owners[cells[0]] : nullptr;
      if (!into) {
        IRBuilder<> entry(&*variant.made->getEntryBlock().getFirstInsertionPt());
        into = entry.CreateAlloca(build.getPtrTy(), nullptr, "caulk.back");
        for (size_t cell : cells)
          back.push_back({into, owners[cell], lent(cell)});
      }
      arguments.push_back(into);
    }
  }
  AttributeList attributes = call->getAttributes();
  SmallVector<AttributeSet> ofArguments;
  for (unsigned i = 0; i < call->arg_size(); i++) {
    if (i == key.function->arg_size())
      ofArguments.resize(arguments.size());
    ofArguments.push_back(attributes.getParamAttrs(i));
  }
  arguments.insert(arguments.end(), fixed, call->arg_end());
  Function *callee = callees(key);
  Module *module = variant.made->getParent();
  FunctionCallee target = callee;
  if (callee->getParent() != module) {
    target = module->getOrInsertFunction(callee->getName(), callee->getFunctionType());
    auto *declared = cast<Function>(target.getCallee());
    declared->setVisibility(GlobalValue::HiddenVisibility);
    declared->setCallingConv(callee->getCallingConv());
  }
  CallInst *made = build.CreateCall(target, arguments);
  made->setCallingConv(call->getCallingConv());
  made->copyMetadata(*call);
  made->setDebugLoc(call->getDebugLoc());
  attributes = AttributeList::get(call->getContext(), attributes.getFnAttrs(), attributes.getRetAttrs(), ofArguments);
  made->setAttributes(attributes.removeFnAttribute(call->getContext(), Attribute::Memory)
                          .removeFnAttribute(call->getContext(), Attribute::NoFree)
                          .removeRetAttribute(call->getContext(), Attribute::NoAlias));
  made->takeName(call);
  for (auto [from, owner, lent] : back) {
    Value *fresh = build.CreateLoad(build.getPtrTy(), from);
    Value *old = lent ? build.CreateLoad(build.getPtrTy(), owner) : fresh;
    build.CreateStore(build.CreateSelect(build.CreateIsNotNull(fresh), fresh, old), owner);
  }
  call->replaceAllUsesWith(made);
  call->eraseFromParent();
}

} // namespace caulk
