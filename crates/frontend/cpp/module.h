// One module on its way into the flat buffer: its symbols, globals and
// attributes, and what the lowering of each function body needs of them.
#pragma once

#include "debug_info.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace caulk {

/// Where a constant points: a symbol plus an offset, or an absolute number.
struct ConstantAddress {
  const llvm::GlobalValue *base = nullptr;
  int64_t offset = 0;
};

/// Machine types on the wire; see src/bitcode/decode.rs.
enum TyTag : uint32_t { TyVoid, TyInt, TyPtr, TyFloat, TyAggregate };
/// A tag (as a number, to be a key) with bits or bytes.
using MachineTy = std::pair<uint32_t, uint64_t>;

/// For each parameter of a prototype, from the first on as far as machine and source agree: is it a pointer to const?
using DeclaredParameters = llvm::SmallVector<bool, 4>;
/// By the name that the linker sees.
using Prototypes = llvm::StringMap<DeclaredParameters>;

class ModuleLowering {
public:
  /// `prototypes` tell of functions that debug information does not describe.
  explicit ModuleLowering(llvm::Module &module, const Prototypes *prototypes = nullptr);

  /// Promotes, walks and writes the whole module.
  void write(Bytes &out);

  // For function bodies.
  const llvm::DataLayout &layout() const { return dataLayout; }
  /// The symbol of a function, variable or alias; `nullopt` for what the compiler keeps to itself.
  std::optional<uint32_t> symbol(const llvm::GlobalValue *value) const;
  /// Sees through casts and constant offsets; `nullopt` if it is anything else.
  std::optional<ConstantAddress> address(const llvm::Constant *constant) const;
  MachineTy ty(llvm::Type *type) const;
  void writeTy(Bytes &out, llvm::Type *type) const;
  void gap(llvm::StringRef function, llvm::StringRef what);
  /// The number of the pointer member of a named struct that the instruction leads to, plus 1; 0 if it is none.
  uint64_t member(const llvm::GetElementPtrInst &gep);

  DebugInfo debug;

private:
  void numberSymbols();
  void writeSymbols(Bytes &out);
  void writeGlobals(Bytes &out);
  void writeInitializer(Bytes &out, const llvm::GlobalVariable &variable);
  void writeFunctions(Bytes &out);
  void inferLibraryAttributes();

  llvm::Module &module;
  const Prototypes *prototypes;
  const llvm::DataLayout &dataLayout;
  llvm::DenseMap<const llvm::GlobalValue *, uint32_t> symbolIds;
  std::vector<const llvm::GlobalValue *> symbols;
  /// Pointer members by struct and offset.
  llvm::MapVector<std::pair<llvm::StructType *, uint64_t>, uint64_t> members;
  Bytes gaps;
  uint64_t gapCount = 0;
};

/// The types of the source's parameters; null where debug information does not tell.
llvm::SmallVector<const llvm::DIType *, 8> sourceTypes(const llvm::Function &function);

/// For each parameter of the machine function, the position of the source parameter it belongs to,
/// or -1 where the calling convention hides it.
llvm::SmallVector<int, 8> sourceParameters(const llvm::Function &function,
                                           llvm::ArrayRef<const llvm::DIType *> types);

/// What is known of a function and its parameters, from attributes and debug information.
void writeAttributes(Bytes &out, const llvm::Function &function, llvm::ArrayRef<const llvm::DIType *> types,
                     llvm::ArrayRef<bool> declared = {});

/// Promotes, lowers and appends one function body.
void writeFunction(Bytes &out, llvm::Function &function, ModuleLowering &module);

} // namespace caulk
