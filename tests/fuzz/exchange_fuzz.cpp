// YAML and Python readers: no crash, no endless expansion on any bytes; places in the text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "grammar/arguments/python_assignments.h"
#include "grammar/yaml/yaml_comments.h"
#include "grammar/yaml/yaml_document.h"

namespace {

void visit(const capstan::SyntaxNode& node, std::size_t size) {
  if (node.span.exists() && (node.span.begin > node.span.end || node.span.end > size)) std::abort();
  for (const auto& item : node.items) visit(item, size);
  for (const auto& entry : node.entries) visit(entry.value, size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace capstan;
  SourceMap sources;
  const SourceId id =
      sources.add("fuzz", std::string(reinterpret_cast<const char*>(data), size), SourceKind::file);
  SyntaxProblem problem;
  std::vector<SyntaxProblem> duplicates;
  if (const auto tree = parse_yaml(id, sources, problem, &duplicates)) {
    visit(*tree, size);
    for (const Comment& comment : find_yaml_comments(id, sources, *tree)) {
      if (comment.span.begin >= comment.span.end || comment.span.end > size ||
          data[comment.span.begin] != '#')
        std::abort();
    }
  } else if (problem.message.empty() || problem.where.end > size)
    std::abort();
  problem = {};
  if (const auto recipe = parse_python_recipe(id, sources, "", problem)) {
    for (const PythonAssignment& assignment : recipe->assignments) {
      // Only what may set any key has no path, and then no value is known.
      const bool may_be_any = assignment.path.empty();
      if (may_be_any && assignment.value.kind != SyntaxNode::Kind::unsupported) std::abort();
      if (assignment.key_span.begin > assignment.key_span.end || assignment.key_span.end > size) std::abort();
      visit(assignment.value, size);
    }
  } else if (problem.message.empty() || problem.where.end > size) {
    std::abort();
  }
  return 0;
}
