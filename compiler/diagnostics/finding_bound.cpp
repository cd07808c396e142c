#include "compiler/diagnostics/finding_bound.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "compiler/diagnostics/codes.h"
#include "compiler/diagnostics/sink.h"

namespace capstan {
namespace {

struct Group {
  std::size_t kept = 0, dropped = 0;
  Severity severity = Severity::hint;  ///< the worst of the dropped ones
  std::string name;
  Span first;  ///< of the dropped ones
};

Span place_of(const Diagnostic& diagnostic) {
  for (const Label& label : diagnostic.labels) {
    if (label.primary) return label.span;
  }
  return {};
}

}  // namespace

void bound_findings(std::vector<Diagnostic>& diagnostics, std::size_t most) {
  if (diagnostics.size() <= most) return;
  sort_for_output(diagnostics);  // the first ones are those that stand first in the file
  std::map<std::pair<SourceId, std::string>, Group> groups;
  std::vector<Diagnostic> kept;
  for (Diagnostic& diagnostic : diagnostics) {
    const Span place = place_of(diagnostic);
    Group& group = groups[{place.source, diagnostic.code}];
    if (group.kept < most) {
      ++group.kept;
      kept.push_back(std::move(diagnostic));
      continue;
    }
    if (group.dropped++ == 0) {
      group.name = diagnostic.name;
      group.first = place;
    }
    group.severity = std::max(group.severity, diagnostic.severity);
  }
  const CodeInfo& info = *find_code("TL003");
  for (const auto& [key, group] : groups) {
    if (group.dropped == 0) continue;
    Diagnostic closing;
    closing.code = info.code;
    closing.name = info.name;
    closing.severity = group.severity;
    closing.message =
        fmt::format("{} more finding{} of {} ({}) from here on {} not shown", group.dropped,
                    group.dropped == 1 ? "" : "s", key.second, group.name, group.dropped == 1 ? "is" : "are");
    closing.arguments.emplace_back("code", Value(key.second));
    closing.arguments.emplace_back("count", Value(static_cast<std::int64_t>(group.dropped)));
    if (group.first.exists()) closing.labels.push_back({group.first, {}, true});
    closing.notes.push_back(
        {Note::Kind::help, fmt::format("the first {} of a code in a file are shown", most), {}});
    closing.fingerprint = fingerprint(closing);
    kept.push_back(std::move(closing));
  }
  diagnostics = std::move(kept);
  sort_for_output(diagnostics);
}

}  // namespace capstan
