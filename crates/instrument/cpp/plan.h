// Which functions get which variants, and what happens in each.
#pragma once

#include "guard.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace caulk {

/// One block as one variant of a function sees it: who owns it stands in a variable, the owner.
struct Cell {
  Flow flow;
  std::optional<Root> root; // otherwise the owner is the caller's, and its address comes as a parameter
  int site = -1;            // where to reclaim it; -1: not here
  int parameter = -1;       // the further parameter that the owner comes through
  int result = -1;          // the further parameter that takes the owner to the caller
  std::vector<Reclaim> points;
  int twin = -1; // another view of the same block
};

/// One call that must reach a variant of its callee.
struct Handover {
  std::vector<std::tuple<unsigned, Reach, size_t>> lends; // argument, what it leads to, cell
  std::vector<std::pair<int, size_t>> results;            // which of the callee's blocks, cell
};

struct VariantKey {
  Function *function = nullptr;
  std::vector<std::pair<unsigned, Reach>> lends;
  bool results = false;
  bool operator<(const VariantKey &o) const {
    return std::tie(function, lends, results) < std::tie(o.function, o.lends, o.results);
  }
  bool original() const { return lends.empty() && !results; }
};

struct Variant {
  VariantKey key;
  std::vector<Cell> cells;
  MapVector<CallBase *, Handover> calls;
  Function *made = nullptr;
  ValueToValueMapTy map;
  size_t number = 0;
};

/// Writes one variant's owners into its code, which is a copy of the original's or the original itself.
class Emitter {
public:
  Emitter(Analysis &analysis, const std::vector<GlobalVariable *> &sites, Variant &variant,
          function_ref<Function *(const VariantKey &)> callees)
      : analysis(analysis), sites(sites), variant(variant), callees(callees) {}
  void run();

private:
  Analysis &analysis;
  const std::vector<GlobalVariable *> &sites;
  Variant &variant;
  function_ref<Function *(const VariantKey &)> callees;
  std::vector<Value *> owners;
  std::map<std::pair<BasicBlock *, BasicBlock *>, Instruction *> edges;
  DenseMap<Instruction *, Instruction *> behind;

  template <typename T> T *mapped(T *value) const;
  void makeOwners();
  Instruction *after(Instruction *instruction);
  Instruction *onEdge(BasicBlock *from, BasicBlock *to);
  void forget(size_t cell, const Take &take);
  void move(size_t cell, CallBase *call);
  void remember(size_t cell);
  void reclaim(size_t cell, Instruction *before, Value *ifNull);
  void handOver(CallBase *call, const Handover &handover);
  GlobalVariable *site(int id);
};

} // namespace caulk
