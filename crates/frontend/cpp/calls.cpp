#include "function.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace caulk {

void FunctionLowering::call(const CallBase &call, uint32_t at) {
  if (call.getIntrinsicID() == Intrinsic::not_intrinsic || !intrinsic(call, at))
    plainCall(call, at);
}

/// The intrinsics that have an instruction of their own here.
bool FunctionLowering::intrinsic(const CallBase &call, uint32_t at) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::memcpy:
  case Intrinsic::memcpy_inline:
  case Intrinsic::memmove:
    begin(OpCopy, at, nullptr);
    operand(call.getArgOperand(0));
    operand(call.getArgOperand(1));
    operand(call.getArgOperand(2));
    return true;
  case Intrinsic::memset:
  case Intrinsic::memset_inline:
    begin(OpFill, at, nullptr);
    operand(call.getArgOperand(0));
    operand(call.getArgOperand(1));
    operand(call.getArgOperand(2));
    return true;
  case Intrinsic::annotation:
  case Intrinsic::arithmetic_fence:
  case Intrinsic::expect:
  case Intrinsic::expect_with_probability:
  case Intrinsic::launder_invariant_group:
  case Intrinsic::ptr_annotation:
  case Intrinsic::ssa_copy:
  case Intrinsic::strip_invariant_group:
  case Intrinsic::threadlocal_address:
    same(call.getArgOperand(0), call, at);
    return true;
  case Intrinsic::ptrmask:
    // Somewhere in the same object.
    begin(OpOffset, at, &call);
    operand(call.getArgOperand(0));
    insts.signedNumber(0);
    insts.number(1);
    insts.number(undef(Type::getInt64Ty(function.getContext())));
    insts.signedNumber(1);
    insts.number(0);
    return true;
  default:
    return false;
  }
}

/// Whether assembly may change memory: it says so, or it has an output there.
static bool clobbersMemory(const InlineAsm &assembly) {
  StringRef constraints = assembly.getConstraintString();
  return constraints.contains("~{memory}") || constraints.contains('*');
}

void FunctionLowering::plainCall(const CallBase &call, uint32_t at) {
  const llvm::Value *target = call.getCalledOperand()->stripPointerCasts();
  begin(OpCall, at, &call);
  auto *global = dyn_cast<GlobalValue>(target);
  if (auto *assembly = dyn_cast<InlineAsm>(target)) {
    insts.byte(CalleeAsm);
    insts.byte(clobbersMemory(*assembly));
  } else if (call.getIntrinsicID() != Intrinsic::not_intrinsic) {
    insts.byte(CalleeIntrinsic);
    insts.text(Intrinsic::getBaseName(call.getIntrinsicID()));
  } else if (std::optional<uint32_t> symbol = global ? module.symbol(global) : std::nullopt) {
    insts.byte(CalleeSymbol);
    insts.number(*symbol);
  } else {
    insts.byte(CalleeValue);
    operand(call.getCalledOperand());
  }
  SmallVector<uint32_t, 8> arguments;
  for (const llvm::Value *argument : call.args())
    if (!isa<MetadataAsValue>(argument))
      arguments.push_back(value(argument));
  insts.number(arguments.size());
  for (uint32_t argument : arguments)
    insts.number(argument);
  insts.byte(call.doesNotReturn());
}

} // namespace caulk
