// The lowering of one function body.
//
// Values are numbered first: parameters, then the results of instructions in
// block order, then constants as they are met. Instructions that mean nothing
// here (markers, assumptions) get no number; see `isDropped`.
#pragma once

#include "module.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

namespace caulk {

// Instructions on the wire; see src/bitcode/decode.rs.
enum OpTag : uint8_t {
  OpAlloca,
  OpLoad,
  OpStore,
  OpOffset,
  OpCmp,
  OpBin,
  OpCast,
  OpSelect,
  OpPhi,
  OpCall,
  OpCopy,
  OpFill,
  OpExtract,
  OpInsert,
  OpAtomic,
  OpVaArg,
  OpOpaque,
  OpBind,
  OpReturn,
  OpJump,
  OpBranch,
  OpSwitch,
  OpIndirectJump,
  OpUnreachable,
};

enum CastTag : uint8_t { CastTrunc, CastZExt, CastSExt, CastPtrToInt, CastIntToPtr, CastSame, CastFloat };
enum CalleeTag : uint8_t { CalleeSymbol, CalleeValue, CalleeIntrinsic, CalleeAsm };

class FunctionLowering {
public:
  FunctionLowering(llvm::Function &function, ModuleLowering &module);
  void write(Bytes &out);

private:
  enum class Kind : uint8_t { Param, Inst, Int, Null, Address, Block, Undef, Zero };
  struct Value {
    llvm::Type *type;
    Kind kind;
    uint32_t id = 0;
    int64_t number = 0;
  };

  void findBlocks();
  void findSlots();
  void numberValues();
  void writeBlock(const llvm::BasicBlock &block);
  void writeValues(Bytes &out) const;

  uint32_t value(const llvm::Value *value);
  uint32_t undef(llvm::Type *type);
  Value describe(const llvm::Constant *constant) const;
  uint32_t variable(const llvm::DILocalVariable *variable);
  uint32_t block(const llvm::BasicBlock *block) const { return blockIds.lookup(block); }
  bool isReachable(const llvm::BasicBlock *block) const { return blockIds.count(block) != 0; }

  /// Starts an instruction. `from` may be null for one without a result.
  void begin(OpTag op, uint32_t location, const llvm::Value *result);
  void operand(const llvm::Value *value) { insts.number(this->value(value)); }

  // instructions.cpp
  void instruction(const llvm::Instruction &inst);
  void bindings(const llvm::Instruction &inst);
  void slot(const llvm::AllocaInst &alloca, uint32_t at);
  void offset(const llvm::GetElementPtrInst &gep, uint32_t at);
  void compare(const llvm::CmpInst &cmp, uint32_t at);
  void binary(const llvm::BinaryOperator &op, uint32_t at);
  void cast(const llvm::CastInst &cast, uint32_t at);
  void same(const llvm::Value *from, const llvm::Instruction &inst, uint32_t at, CastTag tag = CastSame);
  void phi(const llvm::PHINode &phi, uint32_t at);
  void part(const llvm::Instruction &inst, uint32_t at);
  void opaque(const llvm::Instruction &inst, uint32_t at, llvm::StringRef what);
  void terminator(const llvm::Instruction &inst, uint32_t at);
  void jump(const llvm::BasicBlock *to, uint32_t at);
  void anyOf(llvm::ArrayRef<const llvm::BasicBlock *> targets, const llvm::Value *address, uint32_t at);

  // calls.cpp
  void call(const llvm::CallBase &call, uint32_t at);
  void plainCall(const llvm::CallBase &call, uint32_t at);
  bool intrinsic(const llvm::CallBase &call, uint32_t at);

  llvm::Function &function;
  ModuleLowering &module;
  DebugInfo &debug;
  llvm::SmallVector<const llvm::BasicBlock *, 32> blocks;
  llvm::DenseMap<const llvm::BasicBlock *, uint32_t> blockIds;
  llvm::DenseMap<const llvm::Value *, uint32_t> valueIds;
  llvm::DenseMap<MachineTy, uint32_t> undefIds;
  llvm::DenseMap<std::pair<MachineTy, std::pair<uint64_t, uint64_t>>, uint32_t> constantIds;
  std::vector<Value> values;
  llvm::DenseMap<const llvm::DILocalVariable *, uint32_t> variableIds;
  std::vector<const llvm::DILocalVariable *> variables;
  llvm::DenseMap<const llvm::AllocaInst *, uint32_t> slotVariables;
  /// The value that each variable has at this point of the block, as far as the block itself said.
  llvm::SmallDenseMap<uint32_t, uint32_t> boundHere;
  llvm::SmallVector<const llvm::DIType *, 8> parameterTypes;
  llvm::SmallVector<int, 8> sourceOf;
  Bytes insts, lengths;
  uint32_t instCount = 0;
};

/// Whether an instruction leaves no trace: a marker, or a value that only markers use.
bool isDropped(const llvm::Instruction &inst);

/// The blocks control may go to; C has no unwinding.
void forEachSuccessor(const llvm::Instruction &terminator, llvm::function_ref<void(const llvm::BasicBlock *)> visit);

} // namespace caulk
