#include "debug_info.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace caulk {

// Kinds of source types on the wire; see src/bitcode/decode.rs.
enum TypeTag : uint8_t {
  TypeBase,
  TypeEnum,
  TypePointer,
  TypeTypedef,
  TypeConst,
  TypeQualified,
  TypeArray,
  TypeStruct,
  TypeUnion,
  TypeFunction,
  TypeOther,
};

DebugInfo::DebugInfo() { position(0, 0, 0, 0); }

std::string DebugInfo::pathOf(const DIFile *file) {
  SmallString<256> path;
  if (!sys::path::is_absolute(file->getFilename()))
    path = file->getDirectory();
  sys::path::append(path, file->getFilename());
  sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return std::string(path);
}

uint32_t DebugInfo::file(const DIFile *file) {
  if (!file)
    return 0;
  uint32_t &id = fileIds[file];
  if (id)
    return id;
  std::string path = pathOf(file);
  auto [entry, isNew] = pathIds.try_emplace(path, fileCount + 1);
  if (isNew) {
    files.text(path);
    fileCount++;
  }
  return id = entry->second;
}

uint32_t DebugInfo::scope(const DIScope *scope) {
  while (scope && isa<DILexicalBlockFile>(scope))
    scope = scope->getScope();
  if (!scope || !(isa<DISubprogram>(scope) || isa<DILexicalBlock>(scope)))
    return 0;
  auto found = scopeIds.find(scope);
  if (found != scopeIds.end())
    return found->second;
  uint32_t parent = 0, line = 0, column = 0;
  if (auto *block = dyn_cast<DILexicalBlock>(scope)) {
    parent = this->scope(block->getScope());
    line = block->getLine();
    column = block->getColumn();
  } else {
    line = cast<DISubprogram>(scope)->getLine();
  }
  scopes.number(parent);
  scopes.number(file(scope->getFile()));
  scopes.number(line);
  scopes.number(column);
  return scopeIds[scope] = ++scopeCount;
}

uint32_t DebugInfo::position(uint32_t file, uint32_t line, uint32_t column, uint32_t scope) {
  std::pair<uint64_t, uint64_t> key{uint64_t(file) << 32 | line, uint64_t(column) << 32 | scope};
  auto [entry, isNew] = positionIds.try_emplace(key, locationCount);
  if (isNew) {
    locations.number(file);
    locations.number(line);
    locations.number(column);
    locations.number(scope);
    locationCount++;
  }
  return entry->second;
}

uint32_t DebugInfo::location(const DILocation *location) {
  if (!location)
    return 0;
  auto [entry, isNew] = locationIds.try_emplace(location, 0);
  if (!isNew)
    return entry->second;
  uint32_t line = location->getLine();
  // Line 0 is how clang marks code of its own making.
  uint32_t in = line ? file(location->getFile()) : 0;
  uint32_t id = position(in, line, line ? location->getColumn() : 0, scope(location->getScope()));
  return locationIds[location] = id;
}

uint32_t DebugInfo::location(const DIFile *in, uint32_t line, const DIScope *within) {
  if (!in || !line)
    return 0;
  return position(file(in), line, 0, scope(within));
}

uint32_t DebugInfo::type(const DIType *type) {
  if (!type)
    return 0;
  auto [entry, isNew] = typeIds.try_emplace(type, typeOrder.size() + 1);
  if (isNew)
    typeOrder.push_back(type);
  return entry->second;
}

void DebugInfo::writeFilesLocationsScopes(Bytes &out) {
  out.number(fileCount);
  out.append(files);
  out.number(locationCount);
  out.append(locations);
  out.number(scopeCount);
  out.append(scopes);
}

void DebugInfo::writeTypes(Bytes &out) {
  Bytes body;
  for (size_t i = 0; i < typeOrder.size(); i++)
    writeType(body, typeOrder[i]);
  out.number(typeOrder.size());
  out.append(body);
}

static TypeTag tagOf(const DIType *type) {
  switch (type->getTag()) {
  case dwarf::DW_TAG_base_type:
    return TypeBase;
  case dwarf::DW_TAG_enumeration_type:
    return TypeEnum;
  case dwarf::DW_TAG_pointer_type:
    return TypePointer;
  case dwarf::DW_TAG_typedef:
    return TypeTypedef;
  case dwarf::DW_TAG_const_type:
    return TypeConst;
  case dwarf::DW_TAG_volatile_type:
  case dwarf::DW_TAG_restrict_type:
  case dwarf::DW_TAG_atomic_type:
    return TypeQualified;
  case dwarf::DW_TAG_array_type:
    return TypeArray;
  case dwarf::DW_TAG_structure_type:
    return TypeStruct;
  case dwarf::DW_TAG_union_type:
    return TypeUnion;
  case dwarf::DW_TAG_subroutine_type:
    return TypeFunction;
  default:
    return TypeOther;
  }
}

/// The next type below a typedef or qualifier, if it is one.
static const DIType *belowSugar(const DIType *type) {
  TypeTag tag = tagOf(type);
  if (tag != TypeTypedef && tag != TypeConst && tag != TypeQualified)
    return nullptr;
  auto *derived = dyn_cast<DIDerivedType>(type);
  return derived ? derived->getBaseType() : nullptr;
}

const DIType *stripSugar(const DIType *type) {
  while (type) {
    const DIType *below = belowSugar(type);
    if (!below)
      return type;
    type = below;
  }
  return nullptr;
}

bool isPointerToConst(const DIType *type) {
  auto *pointer = dyn_cast_or_null<DIDerivedType>(stripSugar(type));
  if (!pointer || tagOf(pointer) != TypePointer)
    return false;
  for (const DIType *to = pointer->getBaseType(); to; to = belowSugar(to))
    if (tagOf(to) == TypeConst)
      return true;
  return false;
}

static uint64_t byteOffset(const DIDerivedType *member) {
  if (member->isBitField())
    if (auto *storage = dyn_cast_or_null<ConstantInt>(member->getStorageOffsetInBits()))
      return storage->getZExtValue() / 8;
  return member->getOffsetInBits() / 8;
}

void DebugInfo::writeType(Bytes &out, const DIType *type) {
  TypeTag tag = tagOf(type);
  const DIType *sized = stripSugar(type);
  out.text(type->getName());
  out.number(sized ? sized->getSizeInBits() / 8 : 0);
  out.byte(tag);
  switch (tag) {
  case TypePointer:
  case TypeTypedef:
  case TypeConst:
  case TypeQualified: {
    auto *derived = dyn_cast<DIDerivedType>(type);
    out.number(derived ? this->type(derived->getBaseType()) : 0);
    break;
  }
  case TypeArray: {
    auto *array = dyn_cast<DICompositeType>(type);
    out.number(array ? this->type(array->getBaseType()) : 0);
    break;
  }
  case TypeStruct:
  case TypeUnion: {
    Bytes fields;
    uint64_t count = 0;
    if (auto *record = dyn_cast<DICompositeType>(type))
      for (const DINode *element : record->getElements())
        if (auto *member = dyn_cast_or_null<DIDerivedType>(element))
          if (member->getTag() == dwarf::DW_TAG_member) {
            fields.text(member->getName());
            fields.number(byteOffset(member));
            fields.number(this->type(member->getBaseType()));
            count++;
          }
    out.number(count);
    out.append(fields);
    break;
  }
  default:
    break;
  }
}

} // namespace caulk
