#include "function.h"
#include "llvm/IR/DebugProgramInstruction.h"

using namespace llvm;

namespace caulk {

bool isDropped(const Instruction &inst) {
  if (isa<FenceInst>(inst))
    return true;
  auto *intrinsic = dyn_cast<IntrinsicInst>(&inst);
  if (!intrinsic)
    return false;
  switch (intrinsic->getIntrinsicID()) {
  case Intrinsic::dbg_assign:
  case Intrinsic::dbg_declare:
  case Intrinsic::dbg_label:
  case Intrinsic::dbg_value:
  case Intrinsic::assume:
  case Intrinsic::donothing:
  case Intrinsic::experimental_noalias_scope_decl:
  case Intrinsic::invariant_end:
  case Intrinsic::invariant_start:
  case Intrinsic::lifetime_end:
  case Intrinsic::lifetime_start:
  case Intrinsic::prefetch:
  case Intrinsic::pseudoprobe:
  case Intrinsic::sideeffect:
  case Intrinsic::stackrestore:
  case Intrinsic::stacksave:
  case Intrinsic::var_annotation:
    return true;
  default:
    return false;
  }
}

void FunctionLowering::bindings(const Instruction &inst) {
  for (DbgVariableRecord &record : filterDbgVars(inst.getDbgRecordRange())) {
    if (record.isDbgDeclare() || record.getExpression()->isFragment())
      continue;
    // Anything but the plain value is not the variable's value: then it is unknown from here on.
    bool plain = record.getExpression()->getNumElements() == 0 && !record.hasArgList();
    const llvm::Value *bound = plain ? record.getVariableLocationOp(0) : nullptr;
    if (!bound)
      bound = PoisonValue::get(Type::getInt64Ty(function.getContext()));
    uint32_t id = value(bound), to = variable(record.getVariable());
    // Those that mem2reg makes stand nowhere, and often only repeat the assignment's.
    const DILocation *place = record.getDebugLoc().get();
    uint32_t at = place && place->getLine() ? debug.location(place) : 0;
    auto [known, isNew] = boundHere.try_emplace(to, id);
    if (!isNew && known->second == id && !at)
      continue;
    known->second = id;
    begin(OpBind, at, nullptr);
    insts.number(to);
    insts.number(id);
  }
}

void FunctionLowering::instruction(const Instruction &inst) {
  uint32_t at = debug.location(inst.getDebugLoc().get());
  if (auto *call = dyn_cast<CallBase>(&inst))
    this->call(*call, at);
  if (inst.isTerminator())
    return terminator(inst, at);
  switch (inst.getOpcode()) {
  case Instruction::Call:
    return;
  case Instruction::Alloca:
    return slot(llvm::cast<AllocaInst>(inst), at);
  case Instruction::Load:
    begin(OpLoad, at, &inst);
    return operand(inst.getOperand(0));
  case Instruction::Store:
    begin(OpStore, at, nullptr);
    operand(llvm::cast<StoreInst>(inst).getPointerOperand());
    return operand(llvm::cast<StoreInst>(inst).getValueOperand());
  case Instruction::GetElementPtr:
    return offset(llvm::cast<GetElementPtrInst>(inst), at);
  case Instruction::ICmp:
  case Instruction::FCmp:
    return compare(llvm::cast<CmpInst>(inst), at);
  case Instruction::FNeg:
    return same(inst.getOperand(0), inst, at, CastFloat);
  case Instruction::Freeze:
    return same(inst.getOperand(0), inst, at);
  case Instruction::Select:
    if (inst.getOperand(0)->getType()->isVectorTy())
      return opaque(inst, at, "select");
    begin(OpSelect, at, &inst);
    operand(inst.getOperand(0));
    operand(inst.getOperand(1));
    return operand(inst.getOperand(2));
  case Instruction::PHI:
    return phi(llvm::cast<PHINode>(inst), at);
  case Instruction::ExtractValue:
  case Instruction::InsertValue:
  case Instruction::ExtractElement:
  case Instruction::InsertElement:
    return part(inst, at);
  case Instruction::ShuffleVector:
    return opaque(inst, at, "shufflevector");
  case Instruction::AtomicCmpXchg:
    begin(OpAtomic, at, &inst);
    operand(llvm::cast<AtomicCmpXchgInst>(inst).getPointerOperand());
    return operand(llvm::cast<AtomicCmpXchgInst>(inst).getNewValOperand());
  case Instruction::AtomicRMW:
    begin(OpAtomic, at, &inst);
    operand(llvm::cast<AtomicRMWInst>(inst).getPointerOperand());
    return operand(llvm::cast<AtomicRMWInst>(inst).getValOperand());
  case Instruction::VAArg:
    begin(OpVaArg, at, &inst);
    return operand(inst.getOperand(0));
  default:
    if (auto *op = dyn_cast<BinaryOperator>(&inst))
      return binary(*op, at);
    if (auto *cast = dyn_cast<CastInst>(&inst))
      return this->cast(*cast, at);
    module.gap(function.getName(), inst.getOpcodeName());
    opaque(inst, at, inst.getOpcodeName());
  }
}

void FunctionLowering::slot(const AllocaInst &alloca, uint32_t at) {
  uint64_t size = module.layout().getTypeAllocSize(alloca.getAllocatedType()).getKnownMinValue();
  uint32_t count = 0;
  if (auto *number = dyn_cast<ConstantInt>(alloca.getArraySize()))
    size *= number->getLimitedValue();
  else
    count = value(alloca.getArraySize()) + 1;
  begin(OpAlloca, at, &alloca);
  insts.number(size);
  insts.number(count);
  auto found = slotVariables.find(&alloca);
  insts.number(found == slotVariables.end() ? 0 : found->second + 1);
}

void FunctionLowering::offset(const GetElementPtrInst &gep, uint32_t at) {
  MapVector<llvm::Value *, APInt> scaled;
  unsigned bits = module.layout().getIndexTypeSizeInBits(gep.getType());
  APInt bytes(bits, 0);
  if (gep.getType()->isVectorTy() || !gep.collectOffset(module.layout(), bits, scaled, bytes))
    return opaque(gep, at, "getelementptr");
  begin(OpOffset, at, &gep);
  operand(gep.getPointerOperand());
  insts.signedNumber(bytes.getSExtValue());
  insts.number(scaled.size());
  for (auto &[index, scale] : scaled) {
    operand(index);
    insts.signedNumber(scale.getSExtValue());
  }
  insts.number(module.member(gep));
}

/// Positions in `ir::CmpOp`.
static uint8_t comparison(CmpInst::Predicate predicate) {
  switch (predicate) {
  case CmpInst::ICMP_EQ:
    return 0;
  case CmpInst::ICMP_NE:
    return 1;
  case CmpInst::ICMP_ULT:
    return 2;
  case CmpInst::ICMP_ULE:
    return 3;
  case CmpInst::ICMP_UGT:
    return 4;
  case CmpInst::ICMP_UGE:
    return 5;
  case CmpInst::ICMP_SLT:
    return 6;
  case CmpInst::ICMP_SLE:
    return 7;
  case CmpInst::ICMP_SGT:
    return 8;
  case CmpInst::ICMP_SGE:
    return 9;
  default:
    return 10;
  }
}

void FunctionLowering::compare(const CmpInst &cmp, uint32_t at) {
  if (cmp.getType()->isVectorTy())
    return opaque(cmp, at, cmp.getOpcodeName());
  begin(OpCmp, at, &cmp);
  insts.byte(comparison(cmp.getPredicate()));
  operand(cmp.getOperand(0));
  operand(cmp.getOperand(1));
}

/// Positions in `ir::BinOp`.
static uint8_t arithmetic(Instruction::BinaryOps opcode) {
  switch (opcode) {
  case Instruction::Add:
    return 0;
  case Instruction::Sub:
    return 1;
  case Instruction::Mul:
    return 2;
  case Instruction::UDiv:
    return 3;
  case Instruction::SDiv:
    return 4;
  case Instruction::URem:
    return 5;
  case Instruction::SRem:
    return 6;
  case Instruction::And:
    return 7;
  case Instruction::Or:
    return 8;
  case Instruction::Xor:
    return 9;
  case Instruction::Shl:
    return 10;
  case Instruction::LShr:
    return 11;
  case Instruction::AShr:
    return 12;
  default:
    return 13;
  }
}

void FunctionLowering::binary(const BinaryOperator &op, uint32_t at) {
  if (op.getType()->isVectorTy())
    return opaque(op, at, op.getOpcodeName());
  begin(OpBin, at, &op);
  insts.byte(arithmetic(op.getOpcode()));
  operand(op.getOperand(0));
  operand(op.getOperand(1));
}

void FunctionLowering::cast(const CastInst &cast, uint32_t at) {
  CastTag tag;
  switch (cast.getOpcode()) {
  case Instruction::Trunc:
    tag = CastTrunc;
    break;
  case Instruction::ZExt:
    tag = CastZExt;
    break;
  case Instruction::SExt:
    tag = CastSExt;
    break;
  case Instruction::PtrToInt:
    tag = CastPtrToInt;
    break;
  case Instruction::IntToPtr:
    tag = CastIntToPtr;
    break;
  case Instruction::BitCast:
  case Instruction::AddrSpaceCast:
    tag = CastSame;
    break;
  default:
    tag = CastFloat;
    break;
  }
  if (cast.getType()->isVectorTy() && tag != CastSame)
    return opaque(cast, at, cast.getOpcodeName());
  same(cast.getOperand(0), cast, at, tag);
}

void FunctionLowering::same(const llvm::Value *from, const Instruction &inst, uint32_t at, CastTag tag) {
  begin(OpCast, at, &inst);
  insts.byte(tag);
  operand(from);
}

void FunctionLowering::phi(const PHINode &phi, uint32_t at) {
  SmallVector<std::pair<uint32_t, uint32_t>, 4> incoming;
  SmallDenseSet<const BasicBlock *, 8> seen;
  // A switch may have several edges to one block: one entry stands for all.
  for (unsigned i = 0; i < phi.getNumIncomingValues(); i++) {
    const BasicBlock *from = phi.getIncomingBlock(i);
    if (isReachable(from) && seen.insert(from).second)
      incoming.push_back({block(from), value(phi.getIncomingValue(i))});
  }
  // LLVM's order depends on how the module came about.
  llvm::sort(incoming);
  begin(OpPhi, at, &phi);
  insts.number(incoming.size());
  for (auto [from, value] : incoming) {
    insts.number(from);
    insts.number(value);
  }
}

/// `extractvalue` and its like, by byte offset.
void FunctionLowering::part(const Instruction &inst, uint32_t at) {
  const llvm::Value *whole = inst.getOperand(0), *inserted = nullptr;
  uint64_t bytes = 0;
  Type *index = Type::getInt32Ty(inst.getContext());
  SmallVector<llvm::Value *, 4> path{ConstantInt::get(index, 0)};
  const llvm::Value *element = nullptr;
  if (auto *extract = dyn_cast<ExtractValueInst>(&inst)) {
    for (unsigned i : extract->indices())
      path.push_back(ConstantInt::get(index, i));
  } else if (auto *insert = dyn_cast<InsertValueInst>(&inst)) {
    inserted = insert->getInsertedValueOperand();
    for (unsigned i : insert->indices())
      path.push_back(ConstantInt::get(index, i));
  } else if (auto *extract = dyn_cast<ExtractElementInst>(&inst)) {
    element = extract->getIndexOperand();
  } else {
    inserted = inst.getOperand(1);
    element = inst.getOperand(2);
  }
  if (element) {
    auto *number = dyn_cast<ConstantInt>(element);
    Type *type = llvm::cast<VectorType>(whole->getType())->getElementType();
    // Elements of less than a byte have no offset of their own.
    if (!number || module.layout().getTypeSizeInBits(type) % 8)
      return opaque(inst, at, inst.getOpcodeName());
    bytes = number->getLimitedValue() * (module.layout().getTypeSizeInBits(type) / 8);
  } else {
    bytes = uint64_t(module.layout().getIndexedOffsetInType(whole->getType(), path));
  }
  begin(inserted ? OpInsert : OpExtract, at, &inst);
  operand(whole);
  if (inserted)
    operand(inserted);
  insts.number(bytes);
}

void FunctionLowering::opaque(const Instruction &inst, uint32_t at, StringRef what) {
  begin(OpOpaque, at, &inst);
  insts.text(what);
  SmallVector<const llvm::Value *, 4> operands;
  for (const llvm::Value *operand : inst.operand_values())
    if (!isa<BasicBlock>(operand) && !isa<MetadataAsValue>(operand))
      operands.push_back(operand);
  insts.number(operands.size());
  for (const llvm::Value *value : operands)
    operand(value);
  insts.byte(inst.mayWriteToMemory());
}

void FunctionLowering::jump(const BasicBlock *to, uint32_t at) {
  begin(OpJump, at, nullptr);
  insts.number(block(to));
}

void FunctionLowering::anyOf(ArrayRef<const BasicBlock *> targets, const llvm::Value *address, uint32_t at) {
  uint32_t through = address ? value(address) : undef(PointerType::getUnqual(function.getContext()));
  SmallVector<uint32_t, 8> ids;
  for (const BasicBlock *target : targets)
    if (!is_contained(ids, block(target)))
      ids.push_back(block(target));
  begin(OpIndirectJump, at, nullptr);
  insts.number(through);
  insts.number(ids.size());
  for (uint32_t id : ids)
    insts.number(id);
}

void FunctionLowering::terminator(const Instruction &inst, uint32_t at) {
  switch (inst.getOpcode()) {
  case Instruction::Ret: {
    const llvm::Value *result = llvm::cast<ReturnInst>(inst).getReturnValue();
    uint32_t id = result ? value(result) + 1 : 0;
    begin(OpReturn, at, nullptr);
    return insts.number(id);
  }
  case Instruction::Br: {
    auto &branch = llvm::cast<BranchInst>(inst);
    if (branch.isUnconditional())
      return jump(branch.getSuccessor(0), at);
    begin(OpBranch, at, nullptr);
    operand(branch.getCondition());
    insts.number(block(branch.getSuccessor(0)));
    return insts.number(block(branch.getSuccessor(1)));
  }
  case Instruction::Switch: {
    auto &choice = llvm::cast<SwitchInst>(inst);
    for (auto &option : choice.cases())
      if (!option.getCaseValue()->getValue().trySExtValue()) {
        SmallVector<const BasicBlock *, 8> targets(successors(inst.getParent()));
        return anyOf(targets, nullptr, at);
      }
    begin(OpSwitch, at, nullptr);
    operand(choice.getCondition());
    insts.number(choice.getNumCases());
    for (auto &option : choice.cases()) {
      insts.signedNumber(option.getCaseValue()->getSExtValue());
      insts.number(block(option.getCaseSuccessor()));
    }
    return insts.number(block(choice.getDefaultDest()));
  }
  case Instruction::IndirectBr: {
    SmallVector<const BasicBlock *, 8> targets(successors(inst.getParent()));
    return anyOf(targets, inst.getOperand(0), at);
  }
  case Instruction::CallBr: {
    // `asm goto`: the call itself is written already.
    SmallVector<const BasicBlock *, 4> targets(successors(inst.getParent()));
    return anyOf(targets, nullptr, at);
  }
  case Instruction::Invoke:
    return jump(llvm::cast<InvokeInst>(inst).getNormalDest(), at);
  case Instruction::Unreachable:
    return begin(OpUnreachable, at, nullptr);
  default:
    // Unwinding, which C code is never the first to start.
    module.gap(function.getName(), inst.getOpcodeName());
    begin(OpUnreachable, at, nullptr);
  }
}

} // namespace caulk
