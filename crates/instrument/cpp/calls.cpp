// Calls through pointers that become calls by name: with a question to the run, so that nothing else is called than before.
//
//     allocator.make(n)        allocator.make == malloc ? malloc(n) : allocator.make(n)
//     kind->look(text)         kind->look == look_plain ? look_plain(text) : kind->look(text)
//
// Only where the run finds it to be the function that was expected, a block is followed into it and out of it.
#include "guard.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/CallPromotionUtils.h"

namespace caulk {

/// Where more functions than this may be called, each would cost a comparison.
constexpr size_t maxTargets = 4;

/// What a call through a variable of the program's calls as long as nobody sets the variable.
Function *Analysis::initially(const CallBase &call) const {
  auto *load = call.isIndirectCall() ? dyn_cast<LoadInst>(call.getCalledOperand()) : nullptr;
  if (!load)
    return nullptr;
  const DataLayout &sizes = call.getModule()->getDataLayout();
  int64_t offset = 0;
  auto *named = dyn_cast<GlobalVariable>(GetPointerBaseWithConstantOffset(load->getPointerOperand(), offset, sizes));
  GlobalVariable *variable = named && !named->hasInitializer() ? variables.lookup(named->getName()) : named;
  if (!variable || !variable->hasInitializer() || offset < 0)
    return nullptr;
  APInt at(sizes.getIndexTypeSizeInBits(variable->getType()), uint64_t(offset));
  return dyn_cast_or_null<Function>(ConstantFoldLoadFromConst(variable->getInitializer(), load->getType(), at, sizes));
}

/// `allocator.make(n)` becomes `allocator.make == malloc ? malloc(n) : allocator.make(n)`: who sets another allocator gets
/// it, and with the one that is there at first, blocks are followed.
void Analysis::promote() {
  for (auto &module : modules) {
    std::vector<std::pair<CallBase *, Function *>> found;
    for (Function &function : *module)
      for (Instruction &instruction : instructions(function))
        if (auto *call = dyn_cast<CallInst>(&instruction); call && !call->isMustTailCall())
          if (Function *first = initially(*call); first && first->isDeclaration() && !defined.contains(first->getName()))
            if (auto known = models.find(first->getName());
                known != models.end() && (known->second.family >= 0 || !known->second.releases.empty()))
              found.push_back({call, first});
    for (auto [call, first] : found) {
      FunctionCallee here = module->getOrInsertFunction(first->getName(), first->getFunctionType());
      auto *target = dyn_cast<Function>(here.getCallee());
      if (target && isLegalToPromote(*call, target))
        promoteCallWithIfThenElse(*call, target, nullptr);
    }
  }
}

/// `struct.kind` for what a second module of one context calls `struct.kind.7`.
static std::string nameOf(const StructType &type) {
  StringRef name = type.hasName() ? type.getName() : "";
  StringRef bare = name.rtrim("0123456789");
  return (bare.size() < name.size() && bare.consume_back(".") ? bare : name).str();
}

/// The member of a named struct that an address is that of: the struct's name, and where in it.
static std::optional<std::pair<std::string, uint64_t>> memberAt(const Value &address, const DataLayout &sizes) {
  if (auto *variable = dyn_cast<GlobalVariable>(&address)) {
    auto *type = dyn_cast<StructType>(variable->getValueType());
    return type && type->hasName() ? std::optional(std::pair(nameOf(*type), uint64_t(0))) : std::nullopt;
  }
  auto *part = dyn_cast<GEPOperator>(&address);
  if (!part)
    return std::nullopt;
  std::optional<std::pair<std::string, uint64_t>> found;
  for (auto step = gep_type_begin(part), end = gep_type_end(part); step != end; ++step) {
    found.reset();
    StructType *type = step.getStructTypeOrNull();
    if (type && type->hasName() && type->isSized()) {
      auto *index = cast<ConstantInt>(step.getOperand());
      found = {nameOf(*type), sizes.getStructLayout(type)->getElementOffset(unsigned(index->getZExtValue()))};
    }
  }
  return found;
}

void Analysis::putMembers(const Constant &value, const DataLayout &sizes) {
  auto *type = dyn_cast<StructType>(value.getType());
  if (!type && !isa<ConstantArray>(value))
    return;
  for (unsigned i = 0; i < value.getNumOperands(); i++) {
    auto *part = cast<Constant>(value.getOperand(i));
    auto *function = dyn_cast<Function>(part->stripPointerCasts());
    if (!function)
      putMembers(*part, sizes);
    else if (type && type->hasName())
      put({nameOf(*type), sizes.getStructLayout(type)->getElementOffset(i)}, *function);
  }
}

void Analysis::put(const Member &member, Function &function) {
  Function *target = &function;
  if (function.isDeclaration())
    target = definitions.lookup(function.getName());
  // One of the library's, with a model.
  if (!target && !defined.contains(function.getName()) && models.count(function.getName()))
    target = &function;
  auto &known = (*members)[member];
  auto same = [&](Function *other) { return other == target || (other->isDeclaration() && target && other->getName() == target->getName()); };
  // One that nobody knows anything of is called by its pointer.
  if (target && !target->isInterposable() && none_of(known, same))
    known.push_back(target);
}

void Analysis::findMembers() {
  members.emplace();
  for (auto &module : modules) {
    const DataLayout &sizes = module->getDataLayout();
    for (GlobalVariable &variable : module->globals())
      if (variable.hasInitializer())
        putMembers(*variable.getInitializer(), sizes);
    for (Function &function : *module)
      for (Instruction &instruction : instructions(function))
        if (auto *store = dyn_cast<StoreInst>(&instruction))
          if (auto *stored = dyn_cast<Function>(store->getValueOperand()->stripPointerCasts()))
            if (auto member = memberAt(*store->getPointerOperand(), sizes))
              put(*member, *stored);
  }
}

/// The function by a name that the module can use: a static function of another one gets a second, hidden name.
Function *Analysis::nameable(Function &target, Module &from) {
  if (target.getParent() == &from)
    return &target;
  std::string name = target.getName().str();
  if (target.hasLocalLinkage()) {
    auto at = find_if(modules, [&](auto &module) { return module.get() == target.getParent(); });
    name += ".caulk.at." + std::to_string(at - modules.begin());
    if (!target.getParent()->getNamedAlias(name)) {
      auto *alias = GlobalAlias::create(target.getFunctionType(), target.getAddressSpace(), GlobalValue::ExternalLinkage,
                                        name, &target);
      alias->setVisibility(GlobalValue::HiddenVisibility);
      alias->setDSOLocal(true);
      definitions[name] = &target;
    }
    references.push_back({&from, target.getParent()});
  }
  auto *named = dyn_cast<Function>(from.getOrInsertFunction(name, target.getFunctionType()).getCallee());
  if (!named || named->getFunctionType() != target.getFunctionType())
    return nullptr;
  named->setCallingConv(target.getCallingConv());
  if (target.hasLocalLinkage())
    named->setVisibility(GlobalValue::HiddenVisibility);
  return named;
}

void Analysis::resolve(Function &function) {
  if (!members)
    findMembers();
  Module &module = *function.getParent();
  std::vector<std::pair<CallBase *, const std::vector<Function *> *>> found;
  for (Instruction &instruction : instructions(function)) {
    auto *call = dyn_cast<CallInst>(&instruction);
    auto *load = call && call->isIndirectCall() && !call->isMustTailCall() ? dyn_cast<LoadInst>(call->getCalledOperand())
                                                                           : nullptr;
    auto member = load ? memberAt(*load->getPointerOperand(), module.getDataLayout()) : std::nullopt;
    auto known = member ? members->find(*member) : members->end();
    if (known != members->end() && known->second.size() <= maxTargets)
      found.push_back({call, &known->second});
  }
  for (auto [call, targets] : found)
    for (Function *target : *targets)
      if (target->getFunctionType() == call->getFunctionType() && target->getCallingConv() == call->getCallingConv())
        if (Function *named = nameable(*target, module); named && isLegalToPromote(*call, named))
          promoteCallWithIfThenElse(*call, named, nullptr);
}

} // namespace caulk
