#include "module.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/BuildLibCalls.h"

using namespace llvm;

namespace caulk {

// Tells the buffer from bitcode; the last byte changes with every change of the format.
static constexpr char Magic[] = {'C', 'A', 'U', 'L', 'K', 'I', 'R', 2};

/// Longer tables of plain numbers say nothing about memory.
static constexpr uint64_t LongestNumberTable = 16;

enum SymbolTag : uint8_t { SymbolFunction, SymbolGlobal, SymbolAlias, SymbolDeclaredFunction, SymbolDeclaredGlobal };
enum LinkageTag : uint8_t { LinkInternal, LinkExternal, LinkWeak, LinkCommon, LinkAvailableExternally };
enum InitTag : uint8_t { InitInt, InitAddress };

ModuleLowering::ModuleLowering(Module &module, const Prototypes *prototypes)
    : module(module), prototypes(prototypes), dataLayout(module.getDataLayout()) {}

/// As the source says it: without `struct.`, and without the number that tells namesakes apart.
static StringRef recordName(const StructType &record) {
  StringRef name = record.getName();
  name.consume_front("struct.") || name.consume_front("union.");
  auto [stem, number] = name.rsplit('.');
  return !number.empty() && all_of(number, [](char c) { return isDigit(c); }) ? stem : name;
}

uint64_t ModuleLowering::member(const GetElementPtrInst &gep) {
  StructType *record = nullptr;
  uint64_t offset = 0;
  for (auto step = gep_type_begin(gep), end = gep_type_end(gep); step != end; ++step) {
    StructType *entered = step.getStructTypeOrNull();
    auto *index = dyn_cast<ConstantInt>(step.getOperand());
    if (entered && index) {
      record = entered;
      offset = dataLayout.getStructLayout(entered)->getElementOffset(index->getZExtValue());
    }
  }
  if (!record || !record->hasName() || !gep.getResultElementType()->isPointerTy())
    return 0;
  return members.try_emplace({record, offset}, members.size() + 1).first->second;
}

void ModuleLowering::write(Bytes &out) {
  // Variables as records beside the instructions, not as calls between them.
  module.setIsNewDbgInfoFormat(true);
  inferLibraryAttributes();
  numberSymbols();

  std::string source = module.getSourceFileName();
  if (auto *units = module.getNamedMetadata("llvm.dbg.cu"); units && units->getNumOperands())
    if (auto *unit = dyn_cast<DICompileUnit>(units->getOperand(0)); unit && unit->getFile())
      source = DebugInfo::pathOf(unit->getFile());

  Bytes symbolBytes, globals, functions, types;
  writeSymbols(symbolBytes);
  writeGlobals(globals);
  writeFunctions(functions);
  debug.writeTypes(types);

  for (char byte : Magic)
    out.byte(uint8_t(byte));
  out.text(source);
  debug.writeFilesLocationsScopes(out);
  out.append(types);
  out.number(members.size());
  for (auto &[member, id] : members) {
    out.text(recordName(*member.first));
    out.number(dataLayout.getTypeAllocSize(member.first));
    out.number(member.second);
  }
  out.append(symbolBytes);
  out.append(globals);
  out.append(functions);
  out.number(gapCount);
  out.append(gaps);
}

void ModuleLowering::gap(StringRef function, StringRef what) {
  gaps.text(function);
  gaps.text(what);
  gapCount++;
}

/// LLVM knows what the C library's functions do with their arguments.
void ModuleLowering::inferLibraryAttributes() {
  TargetLibraryInfoImpl impl(Triple(module.getTargetTriple()));
  for (Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic()) {
      TargetLibraryInfo library(impl, &function);
      inferNonMandatoryLibFuncAttrs(function, library);
    }
}

/// Lists that only keep things alive: to us they would look like uses.
static bool isBookkeeping(const GlobalVariable &variable) {
  return variable.getName() == "llvm.used" || variable.getName() == "llvm.compiler.used" ||
         variable.getSection() == "llvm.metadata";
}

void ModuleLowering::numberSymbols() {
  auto add = [this](const GlobalValue &value) {
    symbolIds[&value] = symbols.size();
    symbols.push_back(&value);
  };
  for (const Function &function : module)
    if (!function.isIntrinsic())
      add(function);
  for (const GlobalVariable &variable : module.globals())
    if (!isBookkeeping(variable))
      add(variable);
  for (const GlobalAlias &alias : module.aliases())
    add(alias);
  for (const GlobalIFunc &ifunc : module.ifuncs())
    add(ifunc);
}

std::optional<uint32_t> ModuleLowering::symbol(const GlobalValue *value) const {
  auto found = symbolIds.find(value);
  if (found == symbolIds.end())
    return std::nullopt;
  return found->second;
}

static LinkageTag linkageOf(const GlobalValue &value) {
  switch (value.getLinkage()) {
  case GlobalValue::ExternalLinkage:
    return LinkExternal;
  case GlobalValue::AvailableExternallyLinkage:
    return LinkAvailableExternally;
  case GlobalValue::LinkOnceAnyLinkage:
  case GlobalValue::LinkOnceODRLinkage:
  case GlobalValue::WeakAnyLinkage:
  case GlobalValue::WeakODRLinkage:
  case GlobalValue::ExternalWeakLinkage:
    return LinkWeak;
  case GlobalValue::CommonLinkage:
    return LinkCommon;
  case GlobalValue::AppendingLinkage:
  case GlobalValue::InternalLinkage:
  case GlobalValue::PrivateLinkage:
    return LinkInternal;
  }
  return LinkExternal;
}

void ModuleLowering::writeSymbols(Bytes &out) {
  uint32_t functions = 0, globals = 0;
  out.number(symbols.size());
  for (const GlobalValue *value : symbols) {
    // `\01` in front of a name is LLVM's "exactly so"; asm labels have it.
    StringRef name = value->getName();
    name.consume_front("\1");
    out.text(name);
    out.byte(linkageOf(*value));
    if (auto *function = dyn_cast<Function>(value)) {
      if (function->isDeclaration()) {
        out.byte(SymbolDeclaredFunction);
        DeclaredParameters declared;
        if (prototypes && !function->getSubprogram())
          declared = prototypes->lookup(name);
        writeAttributes(out, *function, sourceTypes(*function), declared);
      } else {
        out.byte(SymbolFunction);
        out.number(functions++);
      }
    } else if (auto *variable = dyn_cast<GlobalVariable>(value)) {
      out.byte(variable->isDeclaration() ? SymbolDeclaredGlobal : SymbolGlobal);
      if (!variable->isDeclaration())
        out.number(globals++);
    } else {
      auto *alias = dyn_cast<GlobalAlias>(value);
      const GlobalObject *object = alias ? alias->getAliaseeObject() : nullptr;
      std::optional<uint32_t> target = object ? symbol(object) : std::nullopt;
      if (target) {
        out.byte(SymbolAlias);
        out.number(*target);
      } else {
        // An ifunc: what its resolver picks is decided when the program starts.
        out.byte(SymbolDeclaredFunction);
        out.byte(0);
        out.number(0);
      }
    }
  }
}

std::optional<ConstantAddress> ModuleLowering::address(const Constant *constant) const {
  ConstantAddress result;
  while (true) {
    if (auto *global = dyn_cast<GlobalValue>(constant)) {
      if (!symbolIds.count(global))
        return std::nullopt;
      result.base = global;
      return result;
    }
    if (isa<ConstantPointerNull>(constant))
      return result;
    if (auto *number = dyn_cast<ConstantInt>(constant)) {
      std::optional<int64_t> value = number->getValue().trySExtValue();
      if (!value)
        return std::nullopt;
      result.offset = int64_t(uint64_t(result.offset) + uint64_t(*value));
      return result;
    }
    if (auto *equivalent = dyn_cast<DSOLocalEquivalent>(constant)) {
      constant = equivalent->getGlobalValue();
      continue;
    }
    if (auto *unchecked = dyn_cast<NoCFIValue>(constant)) {
      constant = unchecked->getGlobalValue();
      continue;
    }
    auto *expression = dyn_cast<ConstantExpr>(constant);
    if (!expression || expression->getType()->isVectorTy())
      return std::nullopt;
    switch (expression->getOpcode()) {
    case Instruction::GetElementPtr: {
      APInt offset(dataLayout.getIndexTypeSizeInBits(expression->getType()), 0);
      if (!cast<GEPOperator>(expression)->accumulateConstantOffset(dataLayout, offset))
        return std::nullopt;
      result.offset = int64_t(uint64_t(result.offset) + uint64_t(offset.getSExtValue()));
      break;
    }
    case Instruction::Add: {
      auto *number = dyn_cast<ConstantInt>(expression->getOperand(1));
      std::optional<int64_t> value = number ? number->getValue().trySExtValue() : std::nullopt;
      if (!value)
        return std::nullopt;
      result.offset = int64_t(uint64_t(result.offset) + uint64_t(*value));
      break;
    }
    case Instruction::PtrToInt:
      if (dataLayout.getTypeSizeInBits(expression->getType()) < 64)
        return std::nullopt;
      break;
    case Instruction::IntToPtr:
    case Instruction::BitCast:
    case Instruction::AddrSpaceCast:
      break;
    default:
      return std::nullopt;
    }
    constant = expression->getOperand(0);
  }
}

MachineTy ModuleLowering::ty(Type *type) const {
  switch (type->getTypeID()) {
  case Type::IntegerTyID:
    return {TyInt, type->getIntegerBitWidth()};
  case Type::PointerTyID:
    return {TyPtr, 0};
  case Type::HalfTyID:
  case Type::BFloatTyID:
  case Type::FloatTyID:
  case Type::DoubleTyID:
  case Type::X86_FP80TyID:
  case Type::FP128TyID:
  case Type::PPC_FP128TyID:
    return {TyFloat, 0};
  default:
    if (!type->isSized())
      return {TyVoid, 0};
    return {TyAggregate, dataLayout.getTypeAllocSize(type).getKnownMinValue()};
  }
}

void ModuleLowering::writeTy(Bytes &out, Type *type) const {
  MachineTy machine = ty(type);
  out.byte(uint8_t(machine.first));
  if (machine.first == TyInt || machine.first == TyAggregate)
    out.number(machine.second);
}

namespace {
/// Collects the pointers and numbers of one initialiser.
struct InitializerWalk {
  const ModuleLowering &module;
  Bytes body;
  uint64_t count = 0;
  bool complete = true;

  void number(uint64_t offset, int64_t value, uint64_t size) {
    body.number(offset);
    body.byte(InitInt);
    body.signedNumber(value);
    body.byte(uint8_t(size));
    count++;
  }

  void scalar(uint64_t offset, const Constant *constant) {
    std::optional<ConstantAddress> address = module.address(constant);
    uint64_t size = module.layout().getTypeStoreSize(constant->getType());
    if (!address || size > 16) {
      complete = false;
    } else if (!address->base) {
      number(offset, address->offset, size);
    } else {
      body.number(offset);
      body.byte(InitAddress);
      body.number(*module.symbol(address->base));
      body.signedNumber(address->offset);
      count++;
    }
  }

  void walk(uint64_t offset, const Constant *constant) {
    if (constant->isNullValue() || isa<UndefValue>(constant))
      return;
    Type *type = constant->getType();
    if (auto *data = dyn_cast<ConstantDataSequential>(constant)) {
      Type *element = data->getElementType();
      bool keep = element->isIntegerTy() && !element->isIntegerTy(8) && data->getNumElements() <= LongestNumberTable;
      complete &= keep;
      uint64_t size = data->getElementByteSize();
      for (unsigned i = 0; keep && i < data->getNumElements(); i++)
        if (int64_t value = data->getElementAsAPInt(i).getSExtValue())
          number(offset + i * size, value, size);
    } else if (auto *record = dyn_cast<ConstantStruct>(constant)) {
      const StructLayout *fields = module.layout().getStructLayout(record->getType());
      for (unsigned i = 0; i < record->getNumOperands(); i++)
        walk(offset + fields->getElementOffset(i), record->getOperand(i));
    } else if (auto *array = dyn_cast<ConstantArray>(constant)) {
      uint64_t size = module.layout().getTypeAllocSize(array->getType()->getElementType());
      for (unsigned i = 0; i < array->getNumOperands(); i++)
        walk(offset + i * size, array->getOperand(i));
    } else if (type->isIntegerTy() || type->isPointerTy()) {
      scalar(offset, constant);
    } else {
      complete = false;
    }
  }
};
} // namespace

void ModuleLowering::writeInitializer(Bytes &out, const GlobalVariable &variable) {
  InitializerWalk init{*this, {}};
  if (variable.hasInitializer())
    init.walk(0, variable.getInitializer());
  out.byte(init.complete);
  out.number(init.count);
  out.append(init.body);
}

void ModuleLowering::writeGlobals(Bytes &out) {
  Bytes body;
  uint64_t count = 0;
  for (uint32_t id = 0; id < symbols.size(); id++) {
    auto *variable = dyn_cast<GlobalVariable>(symbols[id]);
    if (!variable || variable->isDeclaration())
      continue;
    uint8_t flags = 0;
    flags |= variable->isConstant() ? 1 : 0;
    flags |= variable->isThreadLocal() ? 2 : 0;
    flags |= variable->hasPrivateLinkage() && variable->hasAtLeastLocalUnnamedAddr() ? 4 : 0;
    uint32_t location = 0, type = 0;
    SmallVector<DIGlobalVariableExpression *, 1> infos;
    variable->getDebugInfo(infos);
    if (!infos.empty()) {
      const DIGlobalVariable *info = infos[0]->getVariable();
      location = debug.location(info->getFile(), info->getLine(), info->getScope());
      type = debug.type(info->getType());
    }
    body.number(id);
    body.number(dataLayout.getTypeAllocSize(variable->getValueType()));
    body.byte(flags);
    body.number(location);
    body.number(type);
    writeInitializer(body, *variable);
    count++;
  }
  out.number(count);
  out.append(body);
}

void ModuleLowering::writeFunctions(Bytes &out) {
  Bytes body;
  uint64_t count = 0;
  for (Function &function : module) {
    if (function.isDeclaration() || function.isIntrinsic())
      continue;
    writeFunction(body, function, *this);
    count++;
  }
  out.number(count);
  out.append(body);
}

} // namespace caulk
