#include "function.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace caulk {

/// Binds variables where they are assigned, with the assignment's own place: those that mem2reg makes
/// stand nowhere.
static void bindAssignments(Function &function) {
  DenseMap<const AllocaInst *, DbgVariableRecord *> homes;
  for (BasicBlock &block : function)
    for (Instruction &inst : block)
      for (DbgVariableRecord &record : filterDbgVars(inst.getDbgRecordRange()))
        if (record.isDbgDeclare() && record.getExpression()->getNumElements() == 0)
          if (auto *slot = dyn_cast_or_null<AllocaInst>(record.getVariableLocationOp(0)))
            if (isAllocaPromotable(slot))
              homes.try_emplace(slot, &record);
  for (BasicBlock &block : function)
    for (Instruction &inst : block)
      if (auto *store = dyn_cast<StoreInst>(&inst); store && store->getDebugLoc())
        if (auto *slot = dyn_cast<AllocaInst>(store->getPointerOperand()))
          if (auto home = homes.find(slot); home != homes.end()) {
            auto *bound = DbgVariableRecord::createDbgVariableRecord(
                store->getValueOperand(), home->second->getVariable(), home->second->getExpression(),
                store->getDebugLoc().get());
            block.insertDbgRecordBefore(bound, store->getIterator());
          }
}

/// mem2reg: the allocas of scalars whose address is never taken become SSA values.
static void promote(Function &function) {
  bindAssignments(function);
  DominatorTree tree(function);
  SmallVector<AllocaInst *, 32> slots;
  while (true) {
    slots.clear();
    for (Instruction &inst : function.getEntryBlock())
      if (auto *alloca = dyn_cast<AllocaInst>(&inst); alloca && isAllocaPromotable(alloca))
        slots.push_back(alloca);
    if (slots.empty())
      return;
    PromoteMemToReg(slots, tree);
  }
}

void writeFunction(Bytes &out, Function &function, ModuleLowering &module) {
  promote(function);
  FunctionLowering(function, module).write(out);
}

FunctionLowering::FunctionLowering(Function &function, ModuleLowering &module)
    : function(function), module(module), debug(module.debug),
      parameterTypes(sourceTypes(function)), sourceOf(sourceParameters(function, parameterTypes)) {}

void FunctionLowering::write(Bytes &out) {
  findBlocks();
  findSlots();
  numberValues();
  for (const BasicBlock *block : blocks)
    writeBlock(*block);

  const DISubprogram *subprogram = function.getSubprogram();
  const DIType *resultType = nullptr;
  if (subprogram && subprogram->getType())
    if (DITypeRefArray types = subprogram->getType()->getTypeArray(); types.size())
      resultType = types[0];
  out.number(*module.symbol(&function));
  // Without a prototype only the variables know the types.
  for (const DILocalVariable *variable : variables)
    if (unsigned n = variable->getArg(); n && n <= parameterTypes.size() && !parameterTypes[n - 1])
      parameterTypes[n - 1] = variable->getType();
  writeAttributes(out, function, parameterTypes);
  out.byte(function.isVarArg());
  module.writeTy(out, function.getReturnType());
  out.number(debug.type(resultType));
  out.number(function.arg_size());
  out.number(subprogram ? debug.scope(subprogram) : 0);
  out.number(subprogram ? debug.location(subprogram->getFile(), subprogram->getLine(), subprogram) : 0);

  out.number(values.size());
  out.number(blocks.size());
  out.number(variables.size());
  out.number(instCount);
  writeValues(out);
  for (const DILocalVariable *variable : variables) {
    uint32_t param = 0;
    if (variable->getArg())
      for (uint32_t i = 0; i < sourceOf.size() && !param; i++)
        if (sourceOf[i] == int(variable->getArg()) - 1)
          param = i + 1;
    out.text(variable->getName());
    out.number(debug.type(variable->getType()));
    out.number(param);
    out.number(debug.scope(variable->getScope()));
    out.number(debug.location(variable->getFile(), variable->getLine(), variable->getScope()));
  }
  out.append(lengths);
  out.append(insts);
}

void forEachSuccessor(const Instruction &terminator, function_ref<void(const BasicBlock *)> visit) {
  if (auto *invoke = dyn_cast<InvokeInst>(&terminator)) {
    visit(invoke->getNormalDest());
    return;
  }
  for (unsigned i = 0; i < terminator.getNumSuccessors(); i++)
    visit(terminator.getSuccessor(i));
}

void FunctionLowering::findBlocks() {
  SmallVector<const BasicBlock *, 32> work{&function.getEntryBlock()};
  DenseSet<const BasicBlock *> reached;
  reached.insert(work.front());
  while (!work.empty()) {
    const BasicBlock *block = work.pop_back_val();
    forEachSuccessor(*block->getTerminator(), [&](const BasicBlock *next) {
      if (reached.insert(next).second)
        work.push_back(next);
    });
  }
  // Layout order, which is source order, not the order of the search.
  for (const BasicBlock &block : function)
    if (reached.contains(&block)) {
      blockIds[&block] = blocks.size();
      blocks.push_back(&block);
    }
}

/// Which stack slot is which variable's home.
void FunctionLowering::findSlots() {
  for (const BasicBlock *block : blocks)
    for (const Instruction &inst : *block)
      for (DbgVariableRecord &record : filterDbgVars(inst.getDbgRecordRange()))
        if (record.isDbgDeclare() && record.getExpression()->getNumElements() == 0)
          if (auto *alloca = dyn_cast_or_null<AllocaInst>(record.getVariableLocationOp(0)))
            slotVariables.try_emplace(alloca, variable(record.getVariable()));
}

void FunctionLowering::numberValues() {
  for (const Argument &argument : function.args()) {
    valueIds[&argument] = values.size();
    values.push_back({argument.getType(), Kind::Param, argument.getArgNo()});
  }
  for (const BasicBlock *block : blocks)
    for (const Instruction &inst : *block)
      if (!inst.getType()->isVoidTy() && !isDropped(inst)) {
        valueIds[&inst] = values.size();
        values.push_back({inst.getType(), Kind::Undef});
      }
}

void FunctionLowering::writeBlock(const BasicBlock &block) {
  uint32_t first = instCount;
  boundHere.clear();
  for (const Instruction &inst : block) {
    bindings(inst);
    if (!isDropped(inst))
      instruction(inst);
  }
  lengths.number(instCount - first);
}

uint32_t FunctionLowering::undef(Type *type) {
  auto [entry, isNew] = undefIds.try_emplace(module.ty(type), values.size());
  if (isNew)
    values.push_back({type, Kind::Undef});
  return entry->second;
}

uint32_t FunctionLowering::value(const llvm::Value *value) {
  auto found = valueIds.find(value);
  if (found != valueIds.end())
    return found->second;
  // A dropped instruction's result, or one of an unreachable block's.
  auto *constant = dyn_cast<Constant>(value);
  if (!constant)
    return undef(value->getType());
  Value described = describe(constant);
  if (described.kind == Kind::Undef)
    return undef(value->getType());
  // LLVM writes one address in several ways, and has several types of one size; here it is one value.
  std::pair<uint64_t, uint64_t> what{uint64_t(described.kind) << 32 | described.id, uint64_t(described.number)};
  auto [entry, isNew] = constantIds.try_emplace({module.ty(described.type), what}, values.size());
  if (isNew)
    values.push_back(described);
  return valueIds[value] = entry->second;
}

FunctionLowering::Value FunctionLowering::describe(const Constant *constant) const {
  Type *type = constant->getType();
  if (type->isAggregateType() || type->isVectorTy())
    return {type, constant->isNullValue() ? Kind::Zero : Kind::Undef};
  if (auto *label = dyn_cast<BlockAddress>(constant))
    if (label->getFunction() == &function && isReachable(label->getBasicBlock()))
      return {type, Kind::Block, block(label->getBasicBlock())};
  if (!type->isIntegerTy() && !type->isPointerTy())
    return {type, Kind::Undef};
  std::optional<ConstantAddress> address = module.address(constant);
  if (!address)
    return {type, Kind::Undef};
  if (address->base)
    return {type, Kind::Address, *module.symbol(address->base), address->offset};
  if (type->isPointerTy() && address->offset == 0)
    return {type, Kind::Null};
  return {type, Kind::Int, 0, address->offset};
}

void FunctionLowering::writeValues(Bytes &out) const {
  for (const Value &value : values) {
    module.writeTy(out, value.type);
    out.byte(uint8_t(value.kind));
    switch (value.kind) {
    case Kind::Param:
    case Kind::Inst:
    case Kind::Block:
      out.number(value.id);
      break;
    case Kind::Int:
      out.signedNumber(value.number);
      break;
    case Kind::Address:
      out.number(value.id);
      out.signedNumber(value.number);
      break;
    case Kind::Null:
    case Kind::Undef:
    case Kind::Zero:
      break;
    }
  }
}

uint32_t FunctionLowering::variable(const DILocalVariable *variable) {
  auto [entry, isNew] = variableIds.try_emplace(variable, variables.size());
  if (isNew)
    variables.push_back(variable);
  return entry->second;
}

void FunctionLowering::begin(OpTag op, uint32_t location, const llvm::Value *result) {
  insts.byte(op);
  insts.number(location);
  if (result && !result->getType()->isVoidTy()) {
    uint32_t id = value(result);
    values[id].kind = Kind::Inst;
    values[id].id = instCount;
    insts.number(id + 1);
  } else {
    insts.number(0);
  }
  instCount++;
}

} // namespace caulk
