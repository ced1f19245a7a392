// The lowering as a plugin of clang itself.
//
// Writing bitcode and reading it again costs a third of clang's own time; with
// the plugin, clang hands over the module that it has in memory anyway. It is
// compiled against the same LLVM 19 whose library clang 19 runs with, and does
// nothing if that is not so: then no buffer is written, and the caller takes
// the way through bitcode.
#include "prototypes.h"
#include "llvm-c/Core.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace {

/// Writes everything, or leaves a file that the reader refuses.
void save(const caulk::Bytes &bytes, const char *path) {
  bool standardOutput = std::strcmp(path, "-") == 0;
  FILE *file = standardOutput ? stdout : std::fopen(path, "wb");
  if (!file)
    return;
  std::fwrite(bytes.begin(), 1, bytes.size(), file);
  if (standardOutput)
    std::fflush(file);
  else
    std::fclose(file);
}

struct LoweringPass : PassInfoMixin<LoweringPass> {
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    if (const char *path = std::getenv("CAULK_LOWERED")) {
      caulk::Bytes bytes;
      caulk::ModuleLowering(module, &caulk::prototypes()).write(bytes);
      save(bytes, path);
    }
    return PreservedAnalyses::none();
  }

  static bool isRequired() { return true; }
};

bool isSameLlvm() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return major == LLVM_VERSION_MAJOR && minor == LLVM_VERSION_MINOR;
}

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "caulk", LLVM_VERSION_STRING, [](PassBuilder &builder) {
            if (!isSameLlvm())
              return;
            // Nobody looks at what the passes after this one would make.
            if (PassInstrumentationCallbacks *callbacks = builder.getPassInstrumentationCallbacks())
              callbacks->registerShouldRunOptionalPassCallback([](StringRef, Any) { return false; });
            // The start of the pipeline: before any instrumentation that the unit's own flags ask for.
            builder.registerPipelineStartEPCallback(
                [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(LoweringPass()); });
          }};
}
