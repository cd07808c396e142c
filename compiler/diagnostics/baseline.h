// A baseline lists known findings, so that only new ones are reported. JSON: fingerprints with counts per
// file, sorted, no line numbers, so that it merges and diffs well. Findings about unreadable texts never go
// into a baseline.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/sink.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct Baseline {
  struct Entry {
    std::string code;
    std::size_t count = 0;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries;  ///< by file name and fingerprint
};

/// The text in `source` as a baseline; reports SU006 and gives nothing when it is none.
std::optional<Baseline> read_baseline(SourceId source, const SourceMap& sources, Sink& sink);
std::string print_baseline(const Baseline& baseline);
Baseline make_baseline(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources);

/// Removes known findings, for each file and fingerprint as many as the baseline counts. Gives their number.
std::size_t apply_baseline(std::vector<Diagnostic>& diagnostics, const Baseline& baseline,
                           const SourceMap& sources);

}  // namespace capstan
