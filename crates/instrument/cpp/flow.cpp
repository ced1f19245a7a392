// Where a block goes within one function: every value that may be its address or lead to it, and every point at which
// somebody else may get hold of it.
//
//     p = malloc(n)        values: p                       owner = p
//     q = p + 4            values: p, q
//     append(list, q)      lend: append may store it       the callee forgets the owner where it does
//     list->last = q       take                            owner = nothing, just before
//     s.name = p           values: p, q, s (a holder)      s is this function's: nobody else sees it
//
// Invariant: as long as nothing was taken, every pointer to the block is one of these values or lies in memory that
// only these values lead to. So when none of them is live, nobody can use the block any more.
#include "layout.h"

#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

namespace caulk {

std::string placeOf(const Instruction &instruction) {
  const DebugLoc &location = instruction.getDebugLoc();
  if (!location)
    return instruction.getFunction()->getName().str();
  auto *scope = cast<DIScope>(location.getScope());
  return (scope->getFilename() + ":" + Twine(location.getLine())).str();
}

bool reachesWithout(const Instruction &from, const Instruction &to, const Value *memory) {
  SmallPtrSet<BasicBlock *, 1> anew;
  if (auto *made = dyn_cast_or_null<CallBase>(memory); made && made->getParent() != from.getParent())
    anew.insert(const_cast<BasicBlock *>(made->getParent()));
  return isPotentiallyReachable(&from, &to, &anew);
}

/// The flags of what is read from a holder.
static unsigned flagsFor(Nested nested) {
  return IsBlock | (nested != Nested::None ? IsHolder : 0u) | (nested == Nested::Anywhere ? IsBytes : 0u);
}

/// What happens to one argument of one call.
struct ArgumentEffect {
  enum { Borrow, Take, Hold, Release, Lend, Move, StoreInto, CopyInto } kind = Borrow;
  unsigned into = 0;
  bool returned = false;
  Depth depth = Depth::None;
  Nested nested = Nested::None;
  std::string why;
};

class FlowBuilder {
public:
  FlowBuilder(Analysis &analysis, Function &function, bool narrow = false)
      : analysis(analysis), function(function), narrow(narrow), layout(function.getParent()->getDataLayout()) {}

  Flow build(ArrayRef<std::pair<Value *, unsigned>> seeds, Depth deep, Nested nested, const Root *from,
             Argument *lent = nullptr) {
    root = from;
    leased = lent;
    for (;;) {
      flow = Flow();
      flow.deep = deep;
      holderStores.clear();
      layout.clear();
      flow.nested = nested;
      for (auto [value, flags] : seeds) {
        add(value, flags);
        if (root && root->outArgument >= 0 && value != root->call)
          layout.put(value, root->out < 0 ? std::optional<int64_t>(0) : placeOfRoot(value));
      }
      spread();
      classify();
      if (leased && flow.values.count(leased))
        leave();
      if (!refuseExposed())
        return std::move(flow);
      if (flow.refused)
        return std::move(flow);
    }
  }

private:
  Analysis &analysis;
  Function &function;
  bool narrow;
  const Root *root = nullptr;
  Argument *leased = nullptr;
  Flow flow;
  Layout layout;
  SmallPtrSet<Instruction *, 4> refused;
  SmallPtrSet<Instruction *, 8> holderStores;
  bool changed = false;

  void add(Value *value, unsigned flags) {
    if (isa<Constant>(value))
      return;
    auto [at, inserted] = flow.values.insert({value, flags});
    if (inserted || (at->second | flags) != at->second) {
      at->second |= flags;
      changed = true;
    }
  }

  void spread() {
    do {
      changed = false;
      Depth before = flow.deep;
      for (size_t i = 0; i < flow.values.size(); i++) {
        auto [value, flags] = *(flow.values.begin() + i);
        for (Use &use : value->uses())
          follow(*value, flags, use);
      }
      changed |= before != flow.deep;
    } while (changed);
  }

  void deepen(Depth depth) { flow.deep = std::max(flow.deep, depth); }

  enum class Read { Nothing, Address, Piece };

  /// What is read of the block's address by a value with these flags.
  Read reads(const Instruction &load, unsigned flags) const {
    if (flow.deep == Depth::None || !(flags & IsHolder))
      return Read::Nothing;
    Type *type = load.getType();
    uint64_t size = function.getParent()->getDataLayout().getTypeStoreSize(type);
    std::optional<bool> known = layout.overlaps(*load.getOperand(0), size);
    if (known && !*known)
      return Read::Nothing;
    bool whole = known || (flags & IsBytes);
    if (type->isIntegerTy() && type->getIntegerBitWidth() >= 64)
      return whole || flow.deep == Depth::Numbers || becomesPointer(load, 0) ? Read::Address : Read::Nothing;
    if (type->isIntegerTy() || type->isFPOrFPVectorTy() || type->isIntOrIntVectorTy())
      return whole && !onlyCompared(load, 0) ? Read::Piece : Read::Nothing;
    return Read::Address;
  }

  /// What the callee must know of an argument with these flags.
  Reach reachOf(unsigned flags) const {
    return flags & IsHolder ? Reach{flow.deep, (flags & IsBytes) != 0, flow.nested, !(flags & IsBlock)} : Reach{};
  }

  unsigned flagsOfRead() const { return flagsFor(flow.nested); }

  void nest(Nested nested) {
    if (nested > flow.nested) {
      flow.nested = nested;
      changed = true;
    }
  }

  /// Memory that only this function knows of: a local variable, or a block it has just made.
  Value *holder(Value *address) const {
    Value *object = getUnderlyingObject(address, 0);
    if (auto *slot = dyn_cast<AllocaInst>(object))
      return slot;
    if (root && object == root->call && root->outArgument < 0 && root->out < 0)
      return object;
    if (leased && object == leased)
      return object;
    if (narrow ? analysis.freshRaw(*object) : analysis.fresh(*object))
      return object;
    return nullptr;
  }

  void storeInto(Value &value, unsigned flags, Value *address, Instruction &at) {
    if (refused.contains(&at))
      return;
    // A descriptor, or a part of an address, that is stored is not found again by what is read.
    if (value.getType()->isIntegerTy() && value.getType()->getIntegerBitWidth() < 64)
      return;
    Value *object = holder(address);
    if (!object)
      return;
    deepen(value.getType()->isIntegerTy() ? Depth::Numbers : Depth::Pointers);
    if (!is_contained(flow.fills, std::pair(&at, object)))
      flow.fills.push_back({&at, object});
    if (holderStores.insert(&at).second) {
      int64_t offset = 0;
      Value *base = GetPointerBaseWithConstantOffset(address, offset, function.getParent()->getDataLayout());
      bool known = base == object && isa<StoreInst>(at) && value.getType()->isPointerTy();
      layout.put(object, known ? std::optional(offset) : std::nullopt);
      changed = true;
    }
    if (flags & IsHolder)
      nest(Nested::Anywhere);
    add(object, IsHolder | IsBytes);
  }

  void follow(Value &value, unsigned flags, Use &use) {
    auto *user = dyn_cast<Instruction>(use.getUser());
    if (!user)
      return;
    if (auto *part = dyn_cast<GetElementPtrInst>(user)) {
      add(user, use.getOperandNo() == 0 ? layout.flagsOf(*part, flags, flow.deep) : flags);
    } else if (isa<PHINode, CastInst, FreezeInst, InsertValueInst, ExtractValueInst, InsertElementInst,
                   ExtractElementInst, ShuffleVectorInst, UnaryOperator>(user)) {
      add(user, flags);
    } else if (auto *select = dyn_cast<SelectInst>(user)) {
      if (use.getOperandNo() != 0)
        add(select, flags);
    } else if (auto *operation = dyn_cast<BinaryOperator>(user)) {
      if (!isLength(*operation, flow, analysis))
        add(operation, flags);
    } else if (isa<LoadInst, AtomicRMWInst, AtomicCmpXchgInst>(user)) {
      if (use.getOperandNo() == 0 && reads(*user, flags) == Read::Address)
        add(user, flagsOfRead());
    } else if (auto *store = dyn_cast<StoreInst>(user)) {
      if (use.getOperandNo() == 0)
        storeInto(value, flags, store->getPointerOperand(), *store);
    } else if (auto *call = dyn_cast<CallBase>(user)) {
      if (!call->isArgOperand(&use))
        return;
      ArgumentEffect effect = effectOf(*call, call->getArgOperandNo(&use), flags);
      if (effect.returned) {
        // What one of our functions returns is known; a library function's result is as its argument was.
        unsigned same = analysis.callee(*call) ? 0 : flags;
        add(call, same | IsBlock | (effect.depth != Depth::None ? unsigned(IsHolder | IsBytes) : 0u));
      }
      deepen(effect.depth);
      nest(effect.nested);
      if (effect.kind == ArgumentEffect::Move)
        add(call, flags | IsBlock);
      // What is copied from a holder is what it held.
      if (effect.kind == ArgumentEffect::StoreInto || effect.kind == ArgumentEffect::CopyInto)
        storeInto(value, effect.kind == ArgumentEffect::StoreInto ? flags : unsigned(IsBlock),
                  call->getArgOperand(effect.into), *call);
    }
  }

  ArgumentEffect effectOf(CallBase &call, unsigned argument, unsigned flags) {
    ArgumentEffect effect;
    auto take = [&](std::string why) {
      effect.kind = ArgumentEffect::Take;
      effect.returned = call.getType()->isPointerTy();
      effect.why = std::move(why);
      return effect;
    };
    if (call.isInlineAsm())
      return take("goes into inline assembly");
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call))
      return ofIntrinsic(*intrinsic, argument, take);
    if (Function *callee = analysis.callee(call)) {
      if (argument >= callee->arg_size()) {
        std::string printed = analysis.printedAs(call, argument);
        if (!printed.empty())
          return take(printed);
        if (!(flags & IsBytes) && analysis.variadicOnlyPrinted(*callee))
          return effect;
        return take(("is one of the further arguments of `" + callee->getName() + "`").str());
      }
      Summary summary = analysis.ask(*callee, argument, reachOf(flags));
      effect.returned = summary.mayReturn;
      effect.depth = summary.mayReturn ? summary.returns : Depth::None;
      effect.nested = summary.mayReturn ? summary.nested : Nested::None;
      if (!summary.mayTake)
        return effect;
      if (summary.mustTake || !analysis.canClone(*callee) || call.isMustTailCall()) {
        auto result = take(("goes to `" + callee->getName() + "`, which keeps or releases it").str());
        result.returned = summary.mayReturn;
        return result;
      }
      effect.kind = ArgumentEffect::Lend;
      return effect;
    }
    const Model *model = analysis.model(call);
    if (!model) {
      if (Function *named = call.getCalledFunction())
        return take(("goes to `" + named->getName() + "`, of which nothing is known").str());
      return take("goes through a function pointer");
    }
    return ofModel(call, *model, argument, flags, take);
  }

  template <typename TakeFn> ArgumentEffect ofIntrinsic(IntrinsicInst &call, unsigned argument, TakeFn take) {
    ArgumentEffect effect;
    if (isa<MemTransferInst>(call)) {
      if (argument == 1 && flow.deep != Depth::None) {
        effect.kind = ArgumentEffect::CopyInto;
        effect.into = 0;
      }
      return effect;
    }
    if (isa<MemSetInst, DbgInfoIntrinsic, LifetimeIntrinsic, AssumeInst>(call))
      return effect;
    switch (call.getIntrinsicID()) {
    case Intrinsic::expect:
    case Intrinsic::expect_with_probability:
    case Intrinsic::ptrmask:
    case Intrinsic::launder_invariant_group:
    case Intrinsic::strip_invariant_group:
    case Intrinsic::ptr_annotation:
    case Intrinsic::ssa_copy:
    case Intrinsic::abs:
    case Intrinsic::smin:
    case Intrinsic::smax:
    case Intrinsic::umin:
    case Intrinsic::umax:
    case Intrinsic::fshl:
    case Intrinsic::fshr:
    case Intrinsic::bswap:
    case Intrinsic::bitreverse:
      effect.returned = true;
      return effect;
    case Intrinsic::objectsize:
    case Intrinsic::is_constant:
    case Intrinsic::prefetch:
    case Intrinsic::vastart:
    case Intrinsic::vaend:
    case Intrinsic::invariant_start:
    case Intrinsic::var_annotation:
      return effect;
    case Intrinsic::vacopy:
      return take("is copied with a list of arguments");
    default:
      return take("goes into a builtin");
    }
  }

  template <typename TakeFn>
  ArgumentEffect ofModel(CallBase &call, const Model &model, unsigned argument, unsigned flags, TakeFn take) {
    StringRef name = call.getCalledFunction()->getName();
    ArgumentEffect effect;
    // `getcwd(space, size)` returns the space it is given.
    bool fresh = model.family >= 0 && model.outArgument < 0 && model.onlyIfNull != int(argument);
    effect.returned = call.getType()->isPointerTy() ? !fresh || model.deep : model.returnsArgument == int(argument);
    if (model.moves && model.outArgument == int(argument) && !isRoot(call, argument))
      return take(("is made larger by `" + name + "`").str());
    if (model.moves && model.outArgument < 0 && argument == 0) {
      effect.kind = ArgumentEffect::Move;
      effect.returned = true;
      return effect;
    }
    if (std::string printed = analysis.printedAs(call, argument); !printed.empty())
      return take(printed);
    if (model.takes.count(argument))
      return take(("is kept by `" + name + "`").str());
    if (model.holds.count(argument) && call.getType()->isIntegerTy()) {
      effect.kind = ArgumentEffect::Hold;
      return effect;
    }
    if (model.releases.count(argument)) {
      effect.kind = ArgumentEffect::Release;
      effect.returned = false;
      effect.why = ("is released by `" + name + "`").str();
      return effect;
    }
    for (auto [from, into] : model.stores)
      if (from == argument) {
        // `strtol(text, NULL, 10)` keeps nothing.
        if (into < call.arg_size() && isa<ConstantPointerNull>(call.getArgOperand(into)))
          return effect;
        if (into >= call.arg_size() || !holder(call.getArgOperand(into)))
          return take(("is stored by `" + name + "`").str());
        effect.kind = ArgumentEffect::StoreInto;
        effect.into = into;
        return effect;
      }
    if (flow.deep != Depth::None)
      for (auto [from, into] : model.copies)
        if (from == argument) {
          if (into >= call.arg_size())
            return take(("is copied by `" + name + "`").str());
          effect.kind = ArgumentEffect::CopyInto;
          effect.into = into;
          return effect;
        }
    // What a library writes, sends or copies may be the bytes of an address.
    if ((flags & IsBytes) && !isRoot(call, argument) && name != "malloc_usable_size")
      return take(("lies in memory that goes to `" + name + "`").str());
    for (auto [which, data] : model.callbacks)
      if (data == argument || which == argument) {
        auto *called = which < call.arg_size() ? dyn_cast<Function>(call.getArgOperand(which)) : nullptr;
        if (which == argument && data != argument)
          continue;
        if (!called || called->isDeclaration() || called->isInterposable() || called->isVarArg())
          return take(("is given to a function that `" + name + "` calls").str());
        for (unsigned i = 0; i < called->arg_size(); i++)
          if (analysis.ask(*called, i, reachOf(flags)).mayTake)
            return take(("is kept by `" + called->getName() + "`").str());
      }
    return effect;
  }

  bool isRoot(const CallBase &call, unsigned argument) const {
    return root && root->out < 0 && &call == root->call && int(argument) == root->outArgument;
  }

  /// Where a function of ours puts it into memory of this function's.
  std::optional<int64_t> placeOfRoot(const Value *memory) const {
    int64_t offset = 0;
    const Value *address = root->call->getArgOperand(unsigned(root->outArgument));
    const Value *base = GetPointerBaseWithConstantOffset(address, offset, function.getParent()->getDataLayout());
    return root->at && base == memory ? std::optional(offset + *root->at) : std::nullopt;
  }

  /// With what the caller lent, the block goes to the caller on every way.
  void leave() {
    flow.leased = leased;
    flow.leasedAt = layout.placeIn(leased);
    for (BasicBlock &block : function)
      if (auto *result = dyn_cast<ReturnInst>(block.getTerminator()))
        flow.returns.insert(result);
  }

  void classify() {
    for (auto &[value, flags] : flow.values)
      for (Use &use : value->uses())
        if (auto *user = dyn_cast<Instruction>(use.getUser()))
          classify(*value, flags, use, *user);
    if (isDescriptor())
      for (Instruction &instruction : instructions(function))
        if (auto *call = dyn_cast<CallBase>(&instruction); call && analysis.closesByNumber(*call))
          take(*call, "may be closed by its number");
  }

  bool isDescriptor() const {
    if (root)
      return analysis.families[root->family].integer;
    Type *type = flow.values.begin()->first->getType();
    return type->isIntegerTy() && type->getIntegerBitWidth() < 64;
  }

  void take(Instruction &at, std::string why) { flow.takes.push_back({&at, TakeKind::Always, nullptr, std::move(why)}); }

  void classify(Value &value, unsigned flags, Use &use, Instruction &user) {
    if (auto *store = dyn_cast<StoreInst>(&user)) {
      if (use.getOperandNo() == 0 && !holderStores.contains(store))
        take(*store, "is stored into memory that others can reach");
    } else if (isa<LoadInst>(user)) {
      if (reads(user, flags) == Read::Piece)
        take(user, "is read in pieces");
    } else if (isa<GetElementPtrInst>(user)) {
      // Who goes through a table finds the number again.
      if (use.getOperandNo() != 0)
        take(user, "is used as an index");
    } else if (auto *result = dyn_cast<ReturnInst>(&user)) {
      flow.returns.insert(result);
    } else if (isa<AtomicRMWInst, AtomicCmpXchgInst>(user)) {
      // The value to compare with is only looked at.
      unsigned written = isa<AtomicRMWInst>(user) ? 1 : 2;
      if (use.getOperandNo() == written)
        take(user, "is stored into memory that others can reach");
    } else if (auto *call = dyn_cast<CallBase>(&user)) {
      if (call->isCallee(&use))
        return;
      if (!call->isArgOperand(&use))
        return take(*call, "goes into a call in a way that is not understood");
      classifyArgument(value, flags, *call, call->getArgOperandNo(&use));
    } else if (!isa<PHINode, CastInst, FreezeInst, GetElementPtrInst, InsertValueInst, ExtractValueInst,
                    InsertElementInst, ExtractElementInst, ShuffleVectorInst, UnaryOperator, SelectInst, BinaryOperator,
                    LoadInst, CmpInst, BranchInst, SwitchInst>(user)) {
      take(user, "is used in a way that is not understood");
    }
  }

  void classifyArgument(Value &value, unsigned flags, CallBase &call, unsigned argument) {
    if (isRoot(call, argument))
      return;
    ArgumentEffect effect = effectOf(call, argument, flags);
    switch (effect.kind) {
    case ArgumentEffect::Borrow:
      return;
    case ArgumentEffect::Take:
      return take(call, effect.why);
    case ArgumentEffect::Hold:
      flow.takes.push_back({&call, TakeKind::IfZero, nullptr, "is of use by being there"});
      return;
    case ArgumentEffect::Release:
      // `freeaddrinfo` may also get a part of the list.
      if (call.getCalledFunction()->getName() == "freeaddrinfo")
        return take(call, effect.why);
      // Who releases a holder loses what it held, and that is ours still.
      if (!(flags & IsBlock) && !isa<AllocaInst>(value))
        return;
      flow.takes.push_back({&call, TakeKind::Release, call.getArgOperand(argument), effect.why});
      return;
    case ArgumentEffect::Lend:
      flow.lends.push_back({&call, argument, reachOf(flags)});
      return;
    case ArgumentEffect::Move:
      // A holder that is moved is as good as copied to a place we do not follow.
      if (flags & IsHolder)
        return take(call, "lies in memory that is moved");
      flow.moves.push_back(&call);
      return;
    case ArgumentEffect::StoreInto:
    case ArgumentEffect::CopyInto:
      if (!holderStores.contains(&call))
        take(call, "is stored into memory that others can reach");
      return;
    }
  }

  /// A holder that others got hold of before the block was put there keeps no secrets: such a store is a take.
  bool refuseExposed() {
    bool again = false;
    Instruction *exposed = nullptr;
    auto exposes = [&](Instruction *store, const Value *memory) {
      auto reaches = [&](Instruction *taken, Value *operand) {
        auto flags = flow.values.lookup(operand);
        bool same = getUnderlyingObject(operand, 0) == memory;
        if (!(flags & IsHolder) || (taken != store && !reachesWithout(*taken, *store, same ? memory : nullptr)))
          return false;
        exposed = taken;
        return true;
      };
      for (auto &take : flow.takes)
        for (Value *operand : take.at->operands())
          if (reaches(take.at, operand))
            return true;
      for (auto &lend : flow.lends)
        if (reaches(lend.call, lend.call->getArgOperand(lend.argument)))
          return true;
      return false;
    };
    for (auto [store, memory] : flow.fills)
      if (exposes(store, memory))
        again |= refused.insert(store).second;
    if (root && root->outArgument >= 0 &&
        exposes(root->call, getUnderlyingObject(root->call->getArgOperand(unsigned(root->outArgument)), 0))) {
      flow.refused = true;
      flow.why = "it is put into memory that others may have got hold of at " + placeOf(*exposed);
      return true;
    }
    return again;
  }
};

/// Again, until all that was asked of other functions on the way is known.
Flow Analysis::solved(function_ref<Flow()> build) {
  for (;;) {
    solve();
    Flow flow = build();
    if (pending.empty())
      return flow;
  }
}

bool Analysis::isWide(const Flow &flow, const Root &root) const {
  return any_of(flow.fills, [&](auto &fill) {
    return isa<CallBase>(fill.second) && fill.second != root.call && !freshRaw(*fill.second);
  });
}

Flow Analysis::flowOf(const Root &root, int leased, bool narrow) {
  Function &function = *root.call->getFunction();
  Argument *lent = leased >= 0 ? function.getArg(unsigned(leased)) : nullptr;
  auto builder = [&] { return FlowBuilder(*this, function, narrow); };
  if (root.outArgument >= 0 && root.out >= 0) {
    std::vector<std::pair<Value *, unsigned>> seeds;
    if (Value *memory = privateMemory(root.call->getArgOperand(unsigned(root.outArgument))))
      seeds.push_back({memory, IsHolder | IsBytes});
    if (root.byResult)
      seeds.push_back({root.call, IsBlock | IsHolder | IsBytes});
    return solved([&] { return builder().build(seeds, std::max(root.deep, Depth::Pointers), root.nested, &root, lent); });
  }
  if (root.outArgument >= 0) {
    auto *slot = dyn_cast<AllocaInst>(root.call->getArgOperand(root.outArgument));
    if (!slot) {
      Flow flow;
      flow.refused = true;
      return flow;
    }
    return solved([&] { return builder().build({{slot, IsHolder | IsBytes}}, Depth::Pointers, root.nested, &root, lent); });
  }
  // A library's block holds its own addresses in order.
  unsigned held = IsHolder | IsBytes | (root.within ? 0u : IsBlock);
  unsigned flags = root.model ? flagsFor(root.nested) : root.holder ? held : unsigned(IsBlock);
  return solved([&] { return builder().build({{root.call, flags}}, root.deep, root.nested, &root, lent); });
}

Flow Analysis::flowOfArgument(Function &function, unsigned argument, Reach reach) {
  unsigned flags =
      (reach.within ? 0u : IsBlock) | (reach.deep != Depth::None ? IsHolder : 0u) | (reach.bytes ? IsBytes : 0u);
  Value *seed = function.getArg(argument);
  auto build = [&] { return FlowBuilder(*this, function).build({{seed, flags}}, reach.deep, reach.nested, nullptr); };
  return solving ? build() : solved(build);
}

} // namespace caulk
