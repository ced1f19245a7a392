#include "prototypes.h"
#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/Frontend/FrontendPluginRegistry.h"

using namespace clang;

namespace caulk {

static Prototypes collected;

const Prototypes &prototypes() { return collected; }

namespace {

/// The type under which a parameter is passed: glibc declares `bind` and its like with a union of pointers.
QualType passedType(const ParmVarDecl &parameter) {
  QualType type = parameter.getType().getCanonicalType();
  if (const RecordType *record = type->getAsUnionType())
    if (record->getDecl()->hasAttr<TransparentUnionAttr>() && !record->getDecl()->field_empty())
      return record->getDecl()->field_begin()->getType().getCanonicalType();
  return type;
}

void collect(const FunctionDecl &function) {
  if (!function.isReferenced() || !function.getIdentifier() || !function.hasPrototype())
    return;
  llvm::StringRef name = function.getName();
  if (const auto *label = function.getAttr<AsmLabelAttr>())
    name = label->getLabel();
  DeclaredParameters &known = collected[name];
  known.clear();
  for (const ParmVarDecl *parameter : function.parameters()) {
    QualType type = passedType(*parameter);
    if (type->isRecordType() || type->isAnyComplexType())
      return; // how many machine values it takes is the target's business; what follows it stays unknown
    known.push_back(type->isPointerType() && type->getPointeeType().isConstQualified());
  }
}

void collectAll(const DeclContext &context) {
  for (const Decl *declaration : context.decls()) {
    if (const auto *function = dyn_cast<FunctionDecl>(declaration)) {
      if (!function->isThisDeclarationADefinition())
        collect(*function);
      else
        collectAll(*function); // `extern int f(const char *);` inside a body
    }
  }
}

class Reader final : public ASTConsumer {
public:
  void HandleTranslationUnit(ASTContext &context) override { collectAll(*context.getTranslationUnitDecl()); }
};

class Action final : public PluginASTAction {
protected:
  std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &, llvm::StringRef) override {
    return std::make_unique<Reader>();
  }
  bool ParseArgs(const CompilerInstance &, const std::vector<std::string> &) override { return true; }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

FrontendPluginRegistry::Add<Action> registered("caulk", "what prototypes say");

} // namespace
} // namespace caulk
