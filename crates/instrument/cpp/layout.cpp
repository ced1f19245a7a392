#include "layout.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Operator.h"

namespace caulk {

namespace {

constexpr int64_t addressSize = 8;

bool isUnion(Type *type) {
  auto *known = dyn_cast<StructType>(type);
  return known && known->hasName() && known->getName().starts_with("union.");
}

/// Numbers as a C program declares them in a struct: no address is put there.
bool isNumbers(Type *type, Depth deep) {
  if (auto *array = dyn_cast<ArrayType>(type))
    return isNumbers(array->getElementType(), deep);
  if (!type->isIntegerTy() && !type->isFloatingPointTy())
    return false;
  return deep != Depth::Numbers || type->getPrimitiveSizeInBits() < 64;
}

bool holdsPointers(Type *type) {
  if (auto *array = dyn_cast<ArrayType>(type))
    return holdsPointers(array->getElementType());
  auto *known = dyn_cast<StructType>(type);
  return type->isPointerTy() || (known && any_of(known->elements(), holdsPointers));
}

/// A member of a struct, or a part of one.
bool isMember(const GetElementPtrInst &part) {
  if (part.getNumIndices() < 2 || !isa<StructType>(part.getSourceElementType()))
    return false;
  for (auto step = gep_type_begin(part), end = gep_type_end(part); step != end; ++step)
    if (isUnion(step.getIndexedType()) || (step.isStruct() && isUnion(step.getStructType())))
      return false;
  return true;
}

} // namespace

std::optional<bool> Layout::overlaps(const Value &address, uint64_t size) const {
  int64_t offset = 0;
  const Value *base = GetPointerBaseWithConstantOffset(&address, offset, sizes);
  auto found = addresses.find(base);
  if (found == addresses.end())
    return std::nullopt;
  return any_of(found->second, [&](std::optional<int64_t> at) {
    return !at || (*at < offset + int64_t(size) && offset < *at + addressSize);
  });
}

unsigned Layout::flagsOf(const GetElementPtrInst &part, unsigned flags, Depth deep) const {
  if (!(flags & IsHolder))
    return flags;
  // Back from a member to the whole.
  APInt offset(sizes.getIndexTypeSizeInBits(part.getType()), 0);
  bool constant = part.accumulateConstantOffset(sizes, offset);
  if (constant && offset.isNegative())
    return flags | IsBytes;
  Type *type = part.getResultElementType();
  if (!isMember(part) || !type->isSized())
    return flags;
  if (auto known = overlaps(part, sizes.getTypeAllocSize(type)))
    return *known ? flags | IsBytes : flags & ~unsigned(IsBytes);
  // In a struct without any pointer the address can only be a number.
  return isNumbers(type, deep) && holdsPointers(part.getSourceElementType()) ? flags & ~unsigned(IsBytes) : flags;
}

bool onlyCompared(const Value &number, unsigned depth) {
  return depth < 5 && all_of(number.users(), [&](const User *user) {
           return isa<CmpInst, BranchInst, SwitchInst>(user) ||
                  (isa<CastInst, BinaryOperator, FreezeInst>(user) && onlyCompared(*user, depth + 1));
         });
}

bool becomesPointer(const Value &number, unsigned depth) {
  return depth > 6 || any_of(number.users(), [&](const User *user) {
           return isa<IntToPtrInst>(user) || (isa<PHINode, SelectInst, BinaryOperator, CastInst, FreezeInst>(user) &&
                                              becomesPointer(*user, depth + 1));
         });
}

} // namespace caulk
