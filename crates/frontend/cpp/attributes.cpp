// Facts about functions: LLVM's attributes, and what the source's types say.
#include "module.h"
#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace caulk {

/// How many machine parameters a source type takes up; `large` guesses for the structs that allow two answers.
static unsigned machineCount(const DIType *type, bool large) {
  const DIType *bare = stripSugar(type);
  // `double _Complex` goes into two registers.
  auto *basic = dyn_cast_or_null<DIBasicType>(bare);
  if (basic && basic->getEncoding() == dwarf::DW_ATE_complex_float)
    return basic->getSizeInBits() == 128 ? 2 : 1;
  auto *composite = dyn_cast_or_null<DICompositeType>(bare);
  bool record = composite && (composite->getTag() == dwarf::DW_TAG_structure_type ||
                              composite->getTag() == dwarf::DW_TAG_union_type);
  if (!record)
    return 1;
  uint64_t bytes = composite->getSizeInBits() / 8;
  if (bytes == 0)
    return 0;
  // Between 9 and 16 bytes a struct goes into one or two registers, or into memory.
  return bytes > 8 && bytes <= 16 && large ? 2 : 1;
}

SmallVector<const DIType *, 8> sourceTypes(const Function &function) {
  SmallVector<const DIType *, 8> types;
  const DISubprogram *subprogram = function.getSubprogram();
  if (!subprogram || !subprogram->getType())
    return types;
  DITypeRefArray all = subprogram->getType()->getTypeArray();
  for (unsigned i = 1; i < all.size(); i++)
    types.push_back(all[i]);
  // A null type ends the list: an ellipsis, or a function without a prototype.
  if (!types.empty() && !types.back()) {
    types.pop_back();
    if (!function.isVarArg())
      types.resize(function.arg_size() - (function.hasStructRetAttr() ? 1 : 0), nullptr);
  }
  return types;
}

SmallVector<int, 8> sourceParameters(const Function &function, ArrayRef<const DIType *> types) {
  SmallVector<int, 8> map(function.arg_size(), -1);
  unsigned first = function.hasStructRetAttr() ? 1 : 0;
  unsigned sources = types.size();
  for (bool large : {false, true}) {
    SmallVector<unsigned, 8> counts;
    unsigned total = first;
    for (const DIType *type : types) {
      counts.push_back(machineCount(type, large));
      total += counts.back();
    }
    if (total != function.arg_size())
      continue;
    unsigned at = first;
    for (unsigned i = 0; i < sources; i++)
      for (unsigned n = 0; n < counts[i]; n++)
        map[at++] = int(i);
    return map;
  }
  // Uncertain: what comes before the first struct is still in its place.
  for (unsigned i = 0, at = first; i < sources && at < function.arg_size(); i++, at++) {
    if (machineCount(types[i], true) != 1)
      break;
    map[at] = int(i);
  }
  return map;
}

void writeAttributes(Bytes &out, const Function &function, ArrayRef<const DIType *> types, ArrayRef<bool> declared) {
  uint8_t flags = 0;
  flags |= function.doesNotReturn() ? 1 : 0;
  flags |= function.onlyReadsMemory() ? 2 : 0;
  flags |= function.doesNotAccessMemory() ? 4 : 0;
  flags |= function.returnDoesNotAlias() ? 8 : 0;
  flags |= function.hasFnAttribute(Attribute::ReturnsTwice) ? 16 : 0;
  out.byte(flags);

  SmallVector<int, 8> source = sourceParameters(function, types);
  unsigned first = function.hasStructRetAttr() ? 1 : 0;
  out.number(function.arg_size());
  for (unsigned i = 0; i < function.arg_size(); i++) {
    bool toConst = source[i] >= 0 && isPointerToConst(types[unsigned(source[i])]);
    toConst |= i >= first && i - first < declared.size() && declared[i - first];
    toConst &= function.getArg(i)->getType()->isPointerTy();
    uint8_t param = 0;
    param |= function.hasParamAttribute(i, Attribute::NoCapture) ? 1 : 0;
    param |= function.hasParamAttribute(i, Attribute::ReadOnly) || function.hasParamAttribute(i, Attribute::ReadNone)
                 ? 2
                 : 0;
    param |= function.hasParamAttribute(i, Attribute::ByVal) ? 4 : 0;
    param |= function.hasParamAttribute(i, Attribute::StructRet) ? 8 : 0;
    param |= toConst ? 16 : 0;
    param |= function.hasParamAttribute(i, Attribute::NonNull) ? 32 : 0;
    out.byte(param);
  }
}

} // namespace caulk
