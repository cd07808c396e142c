// Environment files, shell words, batch scripts and allocator settings: no crash on any bytes, places in the
// text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "grammar/arguments/megatron_arguments.h"
#include "grammar/environment/allocator_conf.h"
#include "grammar/environment/env_file.h"
#include "grammar/environment/sbatch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace capstan;
  SourceMap sources;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const SourceId id = sources.add("fuzz.env", text, SourceKind::file);
  std::vector<SyntaxProblem> problems;
  for (const EnvironmentVariable& variable : parse_env_file(id, sources, problems)) {
    if (variable.value_span.end > size || variable.name.empty()) std::abort();
  }
  parse_sbatch(id, sources, problems);
  if (const auto list = parse_megatron_arguments(id, sources, problems)) {
    for (const Argument& argument : list->arguments) {
      if (argument.flag_span.begin > argument.flag_span.end || argument.flag_span.end > size) std::abort();
      for (const ArgumentValue& value : argument.values) {
        if (value.span.begin > value.span.end || value.span.end > size) std::abort();
      }
    }
  }
  parse_allocator_conf(text, Span{id, 0, static_cast<std::uint32_t>(size)}, problems);
  for (const SyntaxProblem& problem : problems) {
    if (problem.message.empty() || problem.where.begin > problem.where.end || problem.where.end > size)
      std::abort();
  }
  return 0;
}
