// Overrides and sweeps: no crash on any bytes; a refusal always has a message and a place in the text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "grammar/override/override_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace capstan;
  SourceMap sources;
  const SourceId id = sources.add("--set", std::string(reinterpret_cast<const char*>(data), size),
                                  SourceKind::override_argument);
  for (const OverrideMode mode : {OverrideMode::single, OverrideMode::sweep}) {
    SyntaxProblem problem;
    const auto override = parse_override(id, sources, mode, problem);
    const Span place = override ? override->value.span : problem.where;
    if (place.begin > place.end || place.end > size) std::abort();
    if (!override && problem.message.empty()) std::abort();
    if (override && (override->path.empty() || (mode == OverrideMode::single && !override->choices.empty())))
      std::abort();
  }
  return 0;
}
