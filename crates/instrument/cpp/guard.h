// What the parts of the instrumentation share. The whole is explained in `src/lib.rs`.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace caulk {

using namespace llvm;

/// Resources that are released by one function of one argument, or of that and the length.
struct Family {
  std::string name, release;
  bool integer = false;
};

/// How the result of an allocating function says that it succeeded.
enum class Success { Always, Zero, NotMinusOne, NotNegative, NotNull };

/// What a library function does. Every argument that is not mentioned is only borrowed.
struct Model {
  std::set<unsigned> takes, releases, holds; // `holds`: where it returns 0, the argument is of use by being there
  std::vector<std::pair<unsigned, unsigned>> stores, copies; // from argument, into the memory of argument
  std::vector<std::pair<unsigned, unsigned>> callbacks;      // function argument, data argument
  int family = -1;                                           // allocates
  int outArgument = -1;                                      // into *argument; otherwise the result
  int onlyIfNull = -1;                                       // allocates only if this argument is null
  int returnsArgument = -1;
  Success success = Success::NotNull;
  bool deep = false; // what it allocates may hold pointers into itself
  bool moves = false; // realloc; with an out-argument, what lies there (getline)
  bool maps = false;  // mmap: released together with its length
};

/// The block itself; memory that may hold its address; and of such memory a part that may be a part of the address.
enum : unsigned { IsBlock = 1, IsHolder = 2, IsBytes = 4 };

/// Whether memory that is reached from these values may hold the block's address: not at all, as pointers, as numbers.
enum class Depth : unsigned { None, Pointers, Numbers };

/// Whether what is read from memory that may hold the address may be such memory: not at all; within a block that a library
/// made, which keeps its own addresses in order; anywhere.
enum class Nested : unsigned { None, Library, Anywhere };

/// What a function that gets an address must know of it.
struct Reach {
  Depth deep = Depth::None;
  bool bytes = false;  // what lies right there may be a part of the block's address
  Nested nested = Nested::None;
  bool within = false; // it leads to the block, and is not the block itself
  bool operator<(const Reach &o) const {
    return std::tie(deep, bytes, nested, within) < std::tie(o.deep, o.bytes, o.nested, o.within);
  }
  bool operator==(const Reach &o) const { return !(*this < o) && !(o < *this); }
};

enum class TakeKind { Always, Release, IfZero };

/// A point before which the owner must be forgotten; or behind it, if the call returns 0.
struct Take {
  Instruction *at = nullptr;
  TakeKind kind = TakeKind::Always;
  Value *operand = nullptr; // what is released
  std::string why;
};

/// A call that gets the block and may take it or not: its callee is told who the owner is.
struct Lend {
  CallBase *call = nullptr;
  unsigned argument = 0;
  Reach reach;
};

/// Where one block goes within one function.
struct Flow {
  MapVector<Value *, unsigned> values;
  Depth deep = Depth::None;
  Nested nested = Nested::None;
  bool refused = false;      // the root itself is stored where others can see it
  std::string why;           // if they got hold of that at some point
  Argument *leased = nullptr; // memory of the caller's that nobody else knows, if the block is put there
  std::optional<int64_t> leasedAt; // where in it, if that is one place
  std::vector<Take> takes;
  std::vector<Lend> lends;
  std::vector<CallBase *> moves; // realloc
  std::vector<std::pair<Instruction *, Value *>> fills; // what puts it into memory of this function's, and which
  SmallPtrSet<ReturnInst *, 4> returns;
  bool mayTake() const { return !takes.empty() || !lends.empty() || !moves.empty(); }
  /// Whether what is returned may lead to the address by way of memory.
  bool returnsHolder() const {
    return any_of(returns, [&](ReturnInst *result) { return (values.lookup(result->getReturnValue()) & IsHolder) != 0; });
  }
};

/// What a caller must know of a function that gets a block as an argument.
struct Summary {
  bool mayTake = false, mayReturn = false, mustTake = true;
  Depth returns = Depth::None; // what the result may lead to it through
  Nested nested = Nested::None;
  bool operator==(const Summary &o) const {
    return mayTake == o.mayTake && mayReturn == o.mayReturn && mustTake == o.mustTake && returns == o.returns &&
           nested == o.nested;
  }
};

/// One block that comes out of a call: by the result or through an argument; `out` counts those of a callee of ours.
struct Root {
  CallBase *call = nullptr;
  int family = -1;
  int outArgument = -1;
  int out = -1;
  int leaves = -1;      // in what a function makes: the argument whose memory it is put into
  std::optional<int64_t> at; // where in that memory, if that is one place
  bool byResult = true; // whether the result of the call may lead to it
  Depth deep = Depth::None;
  bool holder = false;
  bool within = false; // a holder that is never the block itself
  Nested nested = Nested::None;
  const Model *model = nullptr;
};

struct Site {
  unsigned id = 0;
  std::string file, function;
  unsigned line = 0, column = 0;
};

/// Where blocks go, over all modules. Nothing is changed here.
class Analysis {
public:
  std::vector<std::unique_ptr<Module>> modules;
  StringMap<Model> models;
  std::vector<Family> families;
  std::string name;        // of a shared library
  StringSet<> defined;     // by the program: no model holds for them
  StringMap<std::string> unguarded; // library functions that make what is not guarded, and why

  void prepare();
  /// The definition that a call reaches, or null.
  Function *callee(const CallBase &call) const;
  const Model *model(const CallBase &call) const;
  /// Whether a variant of it with more parameters can be made.
  bool canClone(const Function &function);
  /// All blocks that a call brings forth.
  std::vector<Root> rootsOf(CallBase &call);
  /// The blocks that a function makes and may return, at most a few.
  const std::vector<Root> &returned(Function &function);
  /// `leased`: an argument of the function whose memory only the caller knows.
  /// `narrow`: what functions of the program make is as good as known to others.
  Flow flowOf(const Root &root, int leased = -1, bool narrow = false);
  /// Whether the flow would be another one if it was `narrow`.
  bool isWide(const Flow &flow, const Root &root) const;
  Flow flowOfArgument(Function &function, unsigned argument, Reach reach);
  Summary summary(Function &function, unsigned argument, Reach reach);
  /// Why what is printed so may be read again, or empty: a number, or an address by `%p`.
  std::string printedAs(const CallBase &call, unsigned argument) const;
  /// Why no block can be followed from a call, and how much that says: 0 nothing.
  std::pair<unsigned, std::string> whyNone(CallBase &call);
  /// Whether it may close descriptors that it was not given.
  bool closesByNumber(const CallBase &call);
  /// As the function was before anything was inserted.
  const DominatorTree &dominators(Function &function);
  /// Calls of this function through members of structs become calls by name where the run finds them to be (`calls.cpp`).
  void resolve(Function &function);
  /// Which functions return memory that nobody else knows: to be asked for when the code is as it will be.
  void findFresh();
  /// Modules that must be written because another refers to what is in them.
  std::vector<std::pair<Module *, Module *>> references;

private:
  using Key = std::tuple<Function *, unsigned, Reach>;
  using Member = std::pair<std::string, uint64_t>; // the struct's name, and where in it
  struct Entry {
    Summary value;
    std::set<Key> readers;
  };
  StringMap<Function *> definitions;
  StringMap<GlobalVariable *> variables;
  std::map<Key, Entry> summaries;
  std::deque<Key> pending;
  std::vector<Key> reading;
  bool solving = false;
  std::map<Function *, std::vector<Root>> returnedBlocks;
  std::set<Function *> returnedPending;
  DenseMap<const Function *, bool> clonable;
  DenseMap<Function *, std::unique_ptr<DominatorTree>> trees;
  SmallPtrSet<const Function *, 16> freshFunctions; // what they return nobody else knows
  std::optional<std::map<Member, std::vector<Function *>>> members; // functions that are put into members of structs
  std::optional<SmallPtrSet<const Function *, 8>> closing; // who may close descriptors that they were not given

  friend class FlowBuilder;
  Summary ask(Function &function, unsigned argument, Reach reach);
  bool mustTake(Function &function, Argument &seed, const Flow &flow);
  void solve();
  Flow solved(function_ref<Flow()> build);
  bool variadicOnlyPrinted(Function &function);
  bool onlyPrinted(Value &list, unsigned depth);
  bool freshRaw(const Value &value) const;
  bool fresh(const Value &value) const;
  bool returnsFresh(Function &function);
  std::string whyKept(Function &function, std::set<Function *> &seen);
  Value *privateMemory(Value *address) const;
  void promote();
  Function *initially(const CallBase &call) const;
  void findMembers();
  void putMembers(const Constant &value, const DataLayout &sizes);
  void put(const Member &member, Function &function);
  Function *nameable(Function &target, Module &from);
  bool closesCounted(const CallBase &call) const;
};

/// `end - begin` is a length, no address, where both are counted from one value: otherwise it leads from one to the other.
bool isLength(const BinaryOperator &operation, const Flow &flow, Analysis &analysis);

/// A place where a dead block is reclaimed: after an instruction, or on the way from one block to the next.
struct Reclaim {
  Instruction *after = nullptr;
  BasicBlock *from = nullptr, *to = nullptr;
  bool ifNull = false; // only if what the instruction returns is null
};
/// `numbers`: what is followed are descriptors, of which none is like null.
std::vector<Reclaim> reclaimPoints(const Flow &flow, const Root &root, bool numbers);

/// Why nothing can be reclaimed, or empty: a way from the root to a point on which nothing takes the block.
std::string whyNever(const Flow &flow, const Root &root, const std::vector<Reclaim> &points);

/// Whether one may run after the other, without the memory (if it is a block) being made anew in between.
bool reachesWithout(const Instruction &from, const Instruction &to, const Value *memory);

/// Whether a function may return the block without having given it away before.
bool returnsOwned(const Flow &flow, const Root &root);

std::string placeOf(const Instruction &instruction);

/// Puts the chosen sites into effect; returns the indices of the modules that were changed, and a report.
std::set<unsigned> instrument(Analysis &analysis, const std::vector<Site> &sites, bool everything, std::string &report);

} // namespace caulk
