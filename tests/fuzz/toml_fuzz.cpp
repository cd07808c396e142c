// TOML reader and comment scan: no crash on any bytes; every place lies in the text, children inside an
// inline parent.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "grammar/toml/toml_comments.h"
#include "grammar/toml/toml_document.h"

namespace {

using namespace capstan;

void check(Span span, std::size_t size) {
  if (span.exists() && (span.begin > span.end || span.end > size)) std::abort();
}

void visit(const SyntaxNode& node, std::size_t size) {
  check(node.span, size);
  for (const SyntaxNode& item : node.items) visit(item, size);
  for (const SyntaxEntry& entry : node.entries) {
    if (entry.key_span.begin >= entry.key_span.end) std::abort();
    check(entry.key_span, size);
    visit(entry.value, size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SourceMap sources;
  const SourceId id =
      sources.add("fuzz.toml", std::string(reinterpret_cast<const char*>(data), size), SourceKind::file);
  SyntaxProblem problem;
  if (const auto tree = parse_toml(id, sources, problem)) {
    visit(*tree, size);
  } else {
    if (problem.message.empty() || !problem.where.exists()) std::abort();
    check(problem.where, size);
  }
  for (const Comment& comment : find_toml_comments(id, sources)) {
    check(comment.span, size);
    if (data[comment.span.begin] != '#') std::abort();
  }
  return 0;
}
