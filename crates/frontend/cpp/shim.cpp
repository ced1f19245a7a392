// The one door between Rust and LLVM.
#include "module.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace llvm;

namespace {

/// Keeps the first error that LLVM reports, where its default would end the process.
class FirstError final : public DiagnosticHandler {
public:
  explicit FirstError(std::string &text) : text(text) {}

  bool handleDiagnostics(const DiagnosticInfo &info) override {
    if (info.getSeverity() == DS_Error && text.empty()) {
      raw_string_ostream stream(text);
      DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

private:
  std::string &text;
};

void prepareOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The reader's own upgrade step would verify the module and end the process if it is broken.
    auto &options = cl::getRegisteredOptions();
    auto found = options.find("disable-auto-upgrade-debug-info");
    if (found != options.end())
      static_cast<cl::opt<bool> *>(found->second)->setValue(true);
    CrashRecoveryContext::Enable();
  });
}

/// Lowers the bitcode into `out`; returns what went wrong, or nothing.
std::string lower(StringRef bitcode, caulk::Bytes &out) {
  LLVMContext context;
  context.setDiscardValueNames(true);
  std::string problem;
  context.setDiagnosticHandler(std::make_unique<FirstError>(problem));
  Expected<std::unique_ptr<Module>> module = parseBitcodeFile(MemoryBufferRef(bitcode, "unit"), context);
  if (!module)
    return toString(module.takeError());
  if (!problem.empty())
    return problem;
  raw_string_ostream stream(problem);
  if (verifyModule(**module, &stream))
    return problem;
  caulk::ModuleLowering(**module).write(out);
  return problem;
}

template <typename T> T *copyOut(const T *data, size_t count) {
  T *copy = static_cast<T *>(std::malloc(count * sizeof(T) + 1));
  if (copy)
    std::memcpy(copy, data, count * sizeof(T));
  return copy;
}

} // namespace

/// Returns 0 and a buffer, or 1 and a zero-terminated message. Both are released by `caulk_release`.
extern "C" int caulk_lower(const uint8_t *data, size_t length, uint8_t **out, size_t *out_length, char **error) {
  prepareOnce();
  caulk::Bytes bytes;
  std::string problem;
  StringRef bitcode(reinterpret_cast<const char *>(data), length);
  CrashRecoveryContext recovery;
  if (!recovery.RunSafely([&] { problem = lower(bitcode, bytes); }))
    problem = "LLVM's bitcode reader crashed";
  if (!problem.empty()) {
    *error = copyOut(problem.c_str(), problem.size() + 1);
    return 1;
  }
  *out = copyOut(bytes.begin(), bytes.size());
  *out_length = *out ? bytes.size() : 0;
  return 0;
}

extern "C" void caulk_release(void *memory) { std::free(memory); }
