// The door to the rest of caulk: a plan and modules in, changed modules and a report out.
#include "guard.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

struct Plan {
  std::vector<caulk::Site> sites;
  bool everything = false;
  std::set<unsigned> strip; // modules whose debug information was only for us
};

unsigned number(StringRef text) {
  unsigned value = 0;
  text.getAsInteger(10, value);
  return value;
}

std::pair<unsigned, unsigned> pairOf(StringRef text) {
  auto [first, second] = text.split('>');
  return {number(first), number(second)};
}

void readModel(ArrayRef<StringRef> words, caulk::Analysis &analysis) {
  caulk::Model &model = analysis.models[words[1]];
  for (StringRef word : words.drop_front(2)) {
    auto [key, value] = word.split('=');
    if (key == "take") model.takes.insert(number(value));
    else if (key == "release") model.releases.insert(number(value));
    else if (key == "hold") model.holds.insert(number(value));
    else if (key == "store") model.stores.push_back(pairOf(value));
    else if (key == "copy") model.copies.push_back(pairOf(value));
    else if (key == "callback") model.callbacks.push_back(pairOf(value));
    else if (key == "family") model.family = int(number(value));
    else if (key == "out") model.outArgument = int(number(value));
    else if (key == "ifnull") model.onlyIfNull = int(number(value));
    else if (key == "returns") model.returnsArgument = int(number(value));
    else if (key == "deep") model.deep = true;
    else if (key == "moves") model.moves = true;
    else if (key == "maps") model.maps = true;
    else if (key == "success")
      model.success = value == "always"    ? caulk::Success::Always
                      : value == "zero"    ? caulk::Success::Zero
                      : value == "not-1"   ? caulk::Success::NotMinusOne
                      : value == "not-neg" ? caulk::Success::NotNegative
                                           : caulk::Success::NotNull;
  }
}

/// Lines of words with tabs in between; `src/plan.rs` writes them.
Plan readPlan(StringRef text, caulk::Analysis &analysis) {
  Plan plan;
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    SmallVector<StringRef> words;
    line.split(words, '\t');
    if (words[0] == "family" && words.size() == 4)
      analysis.families.push_back({words[1].str(), words[2].str(), words[3] == "integer"});
    else if (words[0] == "model" && words.size() >= 2)
      readModel(words, analysis);
    else if (words[0] == "site" && words.size() == 5)
      plan.sites.push_back({number(words[1]), words[2].str(), "", number(words[3]), number(words[4])});
    else if (words[0] == "name" && words.size() == 2)
      analysis.name = words[1].str();
    else if (words[0] == "defined" && words.size() == 2)
      analysis.defined.insert(words[1]);
    else if (words[0] == "unguarded" && words.size() == 3)
      analysis.unguarded[words[1]] = words[2].str();
    else if (words[0] == "everything")
      plan.everything = true;
    else if (words[0] == "strip" && words.size() == 2)
      plan.strip.insert(number(words[1]));
  }
  return plan;
}

} // namespace

extern "C" {

struct CaulkBytes {
  const char *data;
  size_t length;
};

using CaulkEmit = void (*)(void *context, int kind, unsigned index, const char *data, size_t length);

/// Kinds: 0 a changed module, 1 the report, 2 why it could not be done.
void caulk_guard(CaulkBytes plan, const CaulkBytes *modules, size_t count, void *context, CaulkEmit emit) {
  std::string problem, report;
  CrashRecoveryContext::Enable();
  CrashRecoveryContext recovery;
  auto work = [&] {
    LLVMContext llvm;
    caulk::Analysis analysis;
    Plan wanted = readPlan(StringRef(plan.data, plan.length), analysis);
    for (size_t i = 0; i < count; i++) {
      StringRef bytes(modules[i].data, modules[i].length);
      auto module = parseBitcodeFile(MemoryBufferRef(bytes, "unit"), llvm);
      if (!module) {
        problem = "unit " + std::to_string(i) + ": " + toString(module.takeError());
        return;
      }
      analysis.modules.push_back(std::move(*module));
    }
    analysis.prepare();
    std::set<unsigned> changed = caulk::instrument(analysis, wanted.sites, wanted.everything, report);
    for (unsigned i : changed) {
      Module &module = *analysis.modules[i];
      raw_string_ostream words(problem);
      if (verifyModule(module, &words))
        return;
      if (wanted.strip.count(i))
        StripDebugInfo(module);
      std::string bytes;
      raw_string_ostream out(bytes);
      WriteBitcodeToFile(module, out);
      out.flush();
      emit(context, 0, i, bytes.data(), bytes.size());
    }
  };
  if (!recovery.RunSafely(work))
    problem = "LLVM crashed";
  if (!problem.empty())
    emit(context, 2, 0, problem.data(), problem.size());
  emit(context, 1, 0, report.data(), report.size());
}
}
