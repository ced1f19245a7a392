// From chosen sites to variants: the functions that own blocks, and those that must tell an owner what became of one.
#include "plan.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/Path.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace caulk {

namespace {

class Planner {
public:
  Planner(Analysis &analysis, std::string &report) : analysis(analysis), report(report) {}

  std::set<unsigned> run(const std::vector<Site> &sites, bool everything) {
    for (auto &module : analysis.modules)
      for (Function &function : *module)
        if (everything || any_of(instructions(function), [&](Instruction &i) { return isa<CallBase>(i) && siteOf(i, sites); }))
          analysis.resolve(function);
    analysis.findFresh();
    for (size_t m = 0; m < analysis.modules.size(); m++) {
      moduleIndex[analysis.modules[m].get()] = unsigned(m);
      for (Function &function : *analysis.modules[m])
        choose(function, sites, everything);
    }
    for (auto &[call, id] : chosen)
      variant({call->getFunction(), {}, false});
    while (!work.empty()) {
      Variant *next = work.front();
      work.pop_front();
      plan(*next);
    }
    describe(sites, everything);
    return write();
  }

private:
  Analysis &analysis;
  std::string &report;
  DenseMap<Module *, unsigned> moduleIndex;
  MapVector<CallBase *, int> chosen; // and its number
  std::vector<int> wanted;           // by number: the site that was asked for, or -1
  std::map<VariantKey, std::unique_ptr<Variant>> variants;
  std::vector<Variant *> inOrder;
  std::deque<Variant *> work;
  std::map<int, std::string> never;
  std::map<int, std::pair<unsigned, std::string>> none; // and how much the reason says
  std::map<int, size_t> points;

  static std::string fullPath(const DILocation &location) {
    SmallString<128> path(location.getFilename());
    if (!sys::path::is_absolute(path)) {
      SmallString<128> whole(location.getDirectory());
      sys::path::append(whole, path);
      path = whole;
    }
    sys::path::remove_dots(path, true);
    return std::string(path);
  }

  /// `b/x.c` names `/a/b/x.c`, too.
  static bool samePath(StringRef full, StringRef named) {
    SmallString<128> path(named);
    sys::path::remove_dots(path, true);
    return full.ends_with(path) && (full.size() == path.size() || path.front() == '/' ||
                                    full[full.size() - path.size() - 1] == '/');
  }

  void choose(Function &function, const std::vector<Site> &sites, bool everything) {
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallBase>(&instruction);
      if (!call || isa<DbgInfoIntrinsic>(call))
        continue;
      if (everything) {
        if (!analysis.rootsOf(*call).empty())
          add(call, -1);
        continue;
      }
      const Site *site = siteOf(*call, sites);
      if (!site)
        continue;
      if (!analysis.rootsOf(*call).empty())
        add(call, int(site->id));
      else
        none[int(site->id)] = std::max(none[int(site->id)], analysis.whyNone(*call), [](auto &a, auto &b) { return a.first < b.first; });
    }
  }

  static const Site *siteOf(const Instruction &call, const std::vector<Site> &sites) {
    const DebugLoc &location = call.getDebugLoc();
    if (!location)
      return nullptr;
    for (const Site &site : sites)
      if (site.line == location.getLine() && (!site.column || site.column == location.getCol()) &&
          samePath(fullPath(*location), site.file))
        return &site;
    return nullptr;
  }

  void add(CallBase *call, int site) {
    chosen.insert({call, int(wanted.size())});
    wanted.push_back(site);
  }

  Variant *variant(const VariantKey &key) {
    auto &slot = variants[key];
    if (!slot) {
      slot = std::make_unique<Variant>();
      slot->key = key;
      slot->number = inOrder.size();
      inOrder.push_back(slot.get());
      work.push_back(slot.get());
    }
    return slot.get();
  }

  void plan(Variant &variant) {
    Function &function = *variant.key.function;
    unsigned parameter = function.arg_size();
    for (auto [argument, reach] : variant.key.lends) {
      Cell cell;
      cell.flow = analysis.flowOfArgument(function, argument, reach);
      cell.parameter = int(parameter++);
      variant.cells.push_back(std::move(cell));
    }
    std::vector<Root> results;
    if (variant.key.results)
      results = analysis.returned(function);
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallBase>(&instruction);
      if (!call)
        continue;
      auto site = chosen.find(call);
      for (Root &root : analysis.rootsOf(*call)) {
        Cell cell;
        for (size_t i = 0; i < results.size(); i++)
          if (results[i].call == call && results[i].out == root.out && results[i].outArgument == root.outArgument)
            cell.result = int(parameter + i);
        if (site != chosen.end())
          cell.site = site->second;
        if (cell.result < 0 && cell.site < 0)
          continue;
        int leased = cell.result < 0 ? -1 : results[cell.result - int(parameter)].leaves;
        cell.flow = analysis.flowOf(root, leased);
        // Seen as given away when it is put into what a function of the program made, it may be lost earlier.
        Cell narrow;
        if (leased < 0 && analysis.isWide(cell.flow, root))
          narrow.site = cell.site;
        findPoints(cell, root);
        if (narrow.site >= 0) {
          narrow.flow = analysis.flowOf(root, -1, true);
          findPoints(narrow, root);
        }
        bool wide = !cell.flow.refused && (cell.site >= 0 || cell.result >= 0);
        for (auto [each, needed] : {std::pair(&cell, wide), std::pair(&narrow, narrow.site >= 0)}) {
          if (!needed)
            continue;
          if (each == &narrow && wide) {
            each->twin = int(variant.cells.size()) - 1;
            variant.cells.back().twin = int(variant.cells.size());
          }
          each->root = root;
          variant.cells.push_back(std::move(*each));
        }
      }
    }
    for (size_t i = 0; i < variant.cells.size(); i++) {
      Cell &cell = variant.cells[i];
      for (const Lend &lend : cell.flow.lends)
        variant.calls[lend.call].lends.push_back({lend.argument, lend.reach, i});
      if (cell.root && cell.root->out >= 0)
        variant.calls[cell.root->call].results.push_back({cell.root->out, i});
    }
    for (auto &[call, handover] : variant.calls)
      this->variant(keyOf(*call, handover));
  }

  /// Where the block is reclaimed, if it is to be; a site where it never is, is none.
  void findPoints(Cell &cell, const Root &root) {
    if (cell.site < 0)
      return;
    bool numbers = analysis.families[root.family].integer;
    auto found = cell.flow.refused ? std::vector<Reclaim>() : reclaimPoints(cell.flow, root, numbers);
    std::string reason = whyNever(cell.flow, root, found);
    if (reason.empty()) {
      cell.points = std::move(found);
      points[cell.site] += cell.points.size();
    } else {
      never.insert({cell.site, reason});
      cell.site = -1;
    }
  }

  VariantKey keyOf(CallBase &call, const Handover &handover) {
    VariantKey key;
    key.function = analysis.callee(call);
    for (auto &[argument, reach, cell] : handover.lends)
      key.lends.push_back({argument, reach});
    key.results = !handover.results.empty();
    return key;
  }

  void describe(const std::vector<Site> &sites, bool everything) {
    std::map<int, std::vector<int>> bySite;
    for (auto &[call, number] : chosen)
      bySite[wanted[number]].push_back(number);
    auto line = [&](int site, const std::string &text) { report += std::to_string(site) + "\t" + text + "\n"; };
    if (everything) {
      line(-1, "guarded " + std::to_string(points.size()) + " of " + std::to_string(chosen.size()) + " sites, " +
                   std::to_string(inOrder.size()) + " variants");
      return;
    }
    for (const Site &site : sites) {
      auto found = bySite.find(int(site.id));
      if (found == bySite.end()) {
        const std::string &why = none[int(site.id)].second;
        line(int(site.id), "no\t" + (why.empty() ? "nothing is allocated there that can be followed" : why));
        continue;
      }
      size_t count = 0;
      std::string reason;
      for (int number : found->second) {
        count += points.count(number) ? points[number] : 0;
        if (reason.empty() && never.count(number))
          reason = never[number];
      }
      line(int(site.id), count ? "yes\t" + std::to_string(count) : "no\t" + reason);
    }
  }

  // -- Making it so --

  std::vector<GlobalVariable *> siteVariables;

  std::set<unsigned> write() {
    std::set<unsigned> changed;
    siteVariables.resize(wanted.size());
    for (auto &[call, number] : chosen)
      if (points.count(number))
        siteVariables[number] = makeSite(*call, number);
    for (Variant *each : inOrder)
      if (!each->cells.empty() || !each->key.original()) {
        makeFunction(*each);
        changed.insert(moduleIndex[each->key.function->getParent()]);
      }
    // Originals change last: they are what variants are copied from.
    auto find = [&](const VariantKey &key) { return variants.at(key)->made; };
    for (bool originals : {false, true})
      for (Variant *each : inOrder)
        if (each->made && each->key.original() == originals)
          Emitter(analysis, siteVariables, *each, find).run();
    for (auto [from, to] : analysis.references)
      if (changed.count(moduleIndex[from]))
        changed.insert(moduleIndex[to]);
    return changed;
  }

  void makeFunction(Variant &variant) {
    Function &original = *variant.key.function;
    if (variant.key.original()) {
      variant.made = &original;
      return;
    }
    size_t results = variant.key.results ? analysis.returned(original).size() : 0;
    std::vector<Type *> parameters(original.getFunctionType()->params());
    Type *pointer = PointerType::getUnqual(original.getContext());
    parameters.insert(parameters.end(), variant.key.lends.size() + results, pointer);
    auto *type = FunctionType::get(original.getReturnType(), parameters, original.isVarArg());
    Module &module = *original.getParent();
    Twine name = original.getName() + ".caulk." + Twine(moduleIndex[&module]) + "." + Twine(variant.number);
    Function *made = Function::Create(type, GlobalValue::ExternalLinkage, original.getAddressSpace(), name, &module);
    made->setVisibility(GlobalValue::HiddenVisibility);
    for (unsigned i = 0; i < original.arg_size(); i++) {
      variant.map[original.getArg(i)] = made->getArg(i);
      made->getArg(i)->setName(original.getArg(i)->getName());
    }
    SmallVector<ReturnInst *, 4> returns;
    CloneFunctionInto(made, &original, variant.map, CloneFunctionChangeType::LocalChangesOnly, returns);
    made->setLinkage(GlobalValue::ExternalLinkage);
    made->setVisibility(GlobalValue::HiddenVisibility);
    made->setDSOLocal(true);
    made->setComdat(nullptr);
    made->setSection(original.getSection());
    variant.made = made;
  }

  /// A function of one argument that also knows the length of what the call maps.
  static Function *unmapping(CallBase &call, FunctionType *type) {
    Module &module = *call.getModule();
    Value *length = call.getArgOperand(1);
    auto *made = Function::Create(type, GlobalValue::PrivateLinkage, "caulk.unmap", &module);
    IRBuilder<> build(BasicBlock::Create(module.getContext(), "", made));
    FunctionCallee unmap = module.getOrInsertFunction(
        "munmap", FunctionType::get(build.getInt32Ty(), {build.getPtrTy(), length->getType()}, false));
    build.CreateCall(unmap, {made->getArg(0), length});
    build.CreateRetVoid();
    return made;
  }

  /// What the runtime counts with, and says in its report.
  GlobalVariable *makeSite(CallBase &call, int number) {
    Module &module = *call.getModule();
    LLVMContext &context = module.getContext();
    IRBuilder<> build(context);
    Type *pointer = build.getPtrTy(), *word = build.getInt64Ty(), *half = build.getInt32Ty();
    auto text = [&](StringRef value) -> Constant * {
      Constant *data = ConstantDataArray::getString(context, value);
      auto *global = new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data, "caulk.text");
      global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
      return global;
    };
    unsigned line = 0, column = 0;
    std::string file = module.getSourceFileName();
    if (const DebugLoc &location = call.getDebugLoc()) {
      line = location.getLine();
      column = location.getCol();
      file = fullPath(*location);
    }
    int family = analysis.rootsOf(call).front().family;
    const Family &kind = analysis.families[family];
    auto *releasing = FunctionType::get(build.getVoidTy(), {kind.integer ? half : pointer}, false);
    const Model *model = analysis.model(call);
    Value *release = model && model->maps ? unmapping(call, releasing)
                                          : module.getOrInsertFunction(kind.release, releasing).getCallee();
    auto *type = StructType::get(context, {word, word, pointer, pointer, pointer, pointer, pointer, half, half, half, half});
    std::vector<Constant *> fields = {
        build.getInt64(0),
        build.getInt64(0),
        cast<Constant>(release),
        text(file),
        text(call.getFunction()->getName()),
        text(kind.name),
        text(analysis.name),
        build.getInt32(line),
        build.getInt32(column),
        build.getInt32(kind.integer),
        build.getInt32(0),
    };
    auto *site = new GlobalVariable(module, type, false, GlobalValue::ExternalLinkage,
                                    ConstantStruct::get(type, fields),
                                    "caulk.site." + Twine(moduleIndex[&module]) + "." + Twine(number));
    site->setVisibility(GlobalValue::HiddenVisibility);
    site->setSection("caulk_sites");
    site->setAlignment(Align(8));
    return site;
  }
};

} // namespace

std::set<unsigned> instrument(Analysis &analysis, const std::vector<Site> &sites, bool everything, std::string &report) {
  return Planner(analysis, report).run(sites, everything);
}

} // namespace caulk
