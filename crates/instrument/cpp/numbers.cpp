// Addresses and descriptors as numbers: what is printed can be read again, and a descriptor can be closed by who counts
// through all of them.
#include "guard.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"

namespace caulk {

/// The texts that a format may be; false where others may come. `_("...")` hands on what it gets.
static bool formats(const Value *value, SmallVectorImpl<StringRef> &found, unsigned depth) {
  StringRef text;
  if (getConstantStringInfo(value, text)) {
    found.push_back(text);
    return true;
  }
  if (depth > 4)
    return false;
  auto all = [&](auto &&operands) {
    return all_of(operands, [&](const Use &use) { return formats(use.get(), found, depth + 1); });
  };
  if (auto *phi = dyn_cast<PHINode>(value))
    return all(phi->incoming_values());
  if (auto *select = dyn_cast<SelectInst>(value))
    return formats(select->getTrueValue(), found, depth + 1) && formats(select->getFalseValue(), found, depth + 1);
  auto *call = dyn_cast<CallBase>(value);
  Function *named = call ? call->getCalledFunction() : nullptr;
  if (!named || !named->getName().ends_with("gettext"))
    return false;
  return any_of(call->args(), [&](const Use &use) { return formats(use.get(), found, depth + 1); });
}

std::string Analysis::printedAs(const CallBase &call, unsigned argument) const {
  const Function *named = call.getCalledFunction();
  if (!named || argument < named->getFunctionType()->getNumParams())
    return "";
  if (!call.getArgOperand(argument)->getType()->isPointerTy())
    return "is printed as a number";
  SmallVector<StringRef> texts;
  bool known = false;
  for (unsigned i = 0; i < named->getFunctionType()->getNumParams(); i++)
    known |= call.getArgOperand(i)->getType()->isPointerTy() && formats(call.getArgOperand(i), texts, 0);
  if (!known)
    return "is printed, and nothing is known of how";
  auto address = [](StringRef text) {
    for (size_t at = text.find('%'); at != StringRef::npos; at = text.find('%', at)) {
      at = text.find_first_not_of("0123456789.*-+ #'$hljztLq", at + 1);
      if (at == StringRef::npos)
        return false;
      if (text[at] == 'p')
        return true;
      at++;
    }
    return false;
  };
  return any_of(texts, address) ? "is printed as an address" : "";
}

/// A number that was not got from `open`: counted, read from a text, or written down.
static bool isCounted(const Value *number) {
  while (auto *cast = dyn_cast<CastInst>(number))
    number = cast->getOperand(0);
  if (auto *constant = dyn_cast<ConstantInt>(number))
    return constant->getValue().sgt(2);
  if (auto *phi = dyn_cast<PHINode>(number))
    return any_of(phi->incoming_values(), [&](const Use &use) {
      auto *next = dyn_cast<BinaryOperator>(use.get());
      return next && is_contained(next->operands(), phi);
    });
  auto *call = dyn_cast<CallBase>(number);
  Function *named = call ? call->getCalledFunction() : nullptr;
  return named && (named->getName().contains("strto") || named->getName().starts_with("ato"));
}

bool Analysis::closesCounted(const CallBase &call) const {
  Function *named = call.getCalledFunction();
  if (!named)
    return false;
  StringRef name = named->getName();
  if (name == "closefrom" || name == "close_range")
    return true;
  return call.arg_size() == 1 && isCounted(call.getArgOperand(0)) &&
         any_of(families, [&](const Family &family) { return family.integer && family.release == name; });
}

bool Analysis::closesByNumber(const CallBase &call) {
  if (!closing) {
    closing.emplace();
    for (bool more = true; more;) {
      size_t before = closing->size();
      for (auto &module : modules)
        for (Function &function : *module)
          if (!closing->contains(&function) && any_of(instructions(function), [&](Instruction &instruction) {
                auto *inner = dyn_cast<CallBase>(&instruction);
                return inner && (closesCounted(*inner) || closing->contains(callee(*inner)));
              }))
            closing->insert(&function);
      more = closing->size() != before;
    }
  }
  return closesCounted(call) || closing->contains(callee(call));
}

/// The one value that an address is counted from; false where there may be several, or that of an earlier round.
static bool baseOf(const Value *value, const Flow &flow, const Analysis &analysis, SmallPtrSetImpl<const Value *> &bases,
                   SmallPtrSetImpl<const Value *> &seen) {
  value = getUnderlyingObject(value, 0);
  if (!seen.insert(value).second)
    return true;
  auto go = [&](const Value *next) { return baseOf(next, flow, analysis, bases, seen); };
  if (auto *phi = dyn_cast<PHINode>(value))
    return all_of(phi->incoming_values(), [&](const Use &use) { return isa<Constant>(use.get()) || go(use.get()); });
  if (auto *select = dyn_cast<SelectInst>(value))
    return go(select->getTrueValue()) && go(select->getFalseValue());
  auto *call = dyn_cast<CallBase>(value);
  const Model *model = call ? analysis.model(*call) : nullptr;
  // `strchr(text, '/')` lies in the text.
  if (model && model->family < 0)
    return all_of(call->args(), [&](const Use &use) {
      return !flow.values.count(const_cast<Value *>(use.get())) || go(use.get());
    });
  bases.insert(value);
  return bases.size() == 1;
}

const DominatorTree &Analysis::dominators(Function &function) {
  auto &known = trees[&function];
  if (!known)
    known = std::make_unique<DominatorTree>(function);
  return *known;
}

bool isLength(const BinaryOperator &operation, const Flow &flow, Analysis &analysis) {
  if (operation.getOpcode() != Instruction::Sub)
    return false;
  SmallPtrSet<const Value *, 4> bases, seen;
  for (const Value *operand : operation.operands()) {
    auto *number = dyn_cast<PtrToIntInst>(operand);
    if (!number || !flow.values.count(const_cast<Value *>(number->getOperand(0))) ||
        !baseOf(number->getOperand(0), flow, analysis, bases, seen))
      return false;
  }
  if (bases.size() != 1)
    return false;
  // What was chosen before the base was made anew is from the base of an earlier round.
  auto *base = dyn_cast<Instruction>(*bases.begin());
  if (!base)
    return isa<Argument>(*bases.begin());
  return all_of(seen, [&](const Value *value) {
    auto *phi = dyn_cast<PHINode>(value);
    return !phi || analysis.dominators(*const_cast<Function *>(operation.getFunction())).dominates(base, phi->getParent());
  });
}

} // namespace caulk
