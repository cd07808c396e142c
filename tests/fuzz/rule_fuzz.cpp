// Any bytes as a rule file and as an expression: parsed, printed, encoded, resolved and evaluated without a
// crash; what parses prints to a text that parses to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/facts/derive.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/resolve.h"
#include "grammar/rule/rule_binary.h"
#include "grammar/rule/rule_parser.h"
#include "grammar/rule/rule_printer.h"

using namespace capstan;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void try_expression(const std::string& text) {
  SourceMap sources;
  SyntaxProblem problem;
  const auto expr = parse_rule_expression(sources.add("text", text, SourceKind::file), sources, problem);
  if (!expr) return;
  const std::string printed = print(*expr);
  const auto again =
      parse_rule_expression(sources.add("printed", printed, SourceKind::file), sources, problem);
  require(again && print(*again) == printed);
}

void try_file(const std::string& text) {
  SourceMap sources;
  std::vector<RuleProblem> problems;
  const auto file = parse_rule_file(sources.add("text.rule", text, SourceKind::file), sources, problems);
  if (!file) {
    require(!problems.empty());
    return;
  }
  const std::string printed = print(*file);
  const auto again =
      parse_rule_file(sources.add("printed.rule", printed, SourceKind::file), sources, problems);
  require(again && print(*again) == printed);
  const auto decoded = decode_binary(encode_binary(*file));
  require(decoded && print(*decoded) == printed);

  Sink sink;
  const RuleSet rules = resolve({{"text.rule", *file, false}}, builtin_phases(), builtin_schema(), sink);
  static const Stack stack = *builtin_schema().find_stack("bridge-0.4");
  static const SchemaView view(builtin_schema(), stack);
  static const Config config;
  evaluate(select(rules, stack), derive_facts(config, view, rules.names));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_expression(text);
  try_file(text);
  decode_binary(text);
  return 0;
}
