// Files, positions, scopes and source types of one module, numbered in the
// order in which the lowering first meets them.
//
// "Optional" ids are written as id + 1, with 0 for none.
#pragma once

#include "bytes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include <vector>

namespace caulk {

class DebugInfo {
public:
  DebugInfo();

  /// Optional id of a file.
  uint32_t file(const llvm::DIFile *file);
  /// Optional id of a lexical scope; the blocks that only change the file are skipped.
  uint32_t scope(const llvm::DIScope *scope);
  /// Position of an instruction; 0 is nowhere.
  uint32_t location(const llvm::DILocation *location);
  /// Position of a declaration; 0 is nowhere.
  uint32_t location(const llvm::DIFile *file, uint32_t line, const llvm::DIScope *scope);
  /// Optional id of a type. Its description is written by `writeTypes`.
  uint32_t type(const llvm::DIType *type);

  void writeFilesLocationsScopes(Bytes &out);
  /// Describes every type asked for, and what these mention, until nothing new turns up.
  void writeTypes(Bytes &out);

  static std::string pathOf(const llvm::DIFile *file);

private:
  uint32_t position(uint32_t file, uint32_t line, uint32_t column, uint32_t scope);
  void writeType(Bytes &out, const llvm::DIType *type);

  llvm::DenseMap<const llvm::DIFile *, uint32_t> fileIds;
  llvm::StringMap<uint32_t> pathIds;
  llvm::DenseMap<const llvm::DILocation *, uint32_t> locationIds;
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, uint32_t> positionIds;
  llvm::DenseMap<const llvm::DIScope *, uint32_t> scopeIds;
  llvm::DenseMap<const llvm::DIType *, uint32_t> typeIds;
  std::vector<const llvm::DIType *> typeOrder;
  uint32_t fileCount = 0, locationCount = 0, scopeCount = 0;
  Bytes files, locations, scopes;
};

/// The type behind typedefs and qualifiers.
const llvm::DIType *stripSugar(const llvm::DIType *type);
/// `const T *`, through typedefs of the pointer and of `T`.
bool isPointerToConst(const llvm::DIType *type);

} // namespace caulk
