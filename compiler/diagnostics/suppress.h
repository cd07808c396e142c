// Suppression comments: `# capstan: allow CODE[, CODE] -- reason [until YYYY-MM-DD]` behind a value or alone
// above it, and
// `# capstan: allow-file CODE -- reason` for the whole file. A suppression without reason, of an unknown
// code, that has expired or that suppresses nothing is a finding itself. Files that cannot be read cannot be
// suppressed.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/selection.h"
#include "compiler/diagnostics/sink.h"
#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct Suppression {
  struct Target {
    std::string code;  ///< code or name as written
    Span span;
    bool known = true;
    bool used = false;
  };
  std::vector<Target> targets;
  std::string reason;
  Span comment;
  std::uint32_t line = 0;  ///< the line whose findings it covers; 0 for the whole file
  std::string until;       ///< "2026-12-31" or empty
};

/// Reads the suppressions among `comments` (of one file, in order). Reports malformed ones and those without
/// reason, of unknown codes, or expired on `today` ("YYYY-MM-DD"; empty: no date is checked); of these only
/// unknown codes' companions stay in effect.
std::vector<Suppression> read_suppressions(const std::vector<Comment>& comments, const SourceMap& sources,
                                           const std::vector<KnownCode>& known, const std::string& today,
                                           Sink& sink);

/// Removes the findings with a primary label on a covered line (or anywhere in a covered file) and marks what
/// was used. Gives their number. Call once with the suppressions of all files.
std::size_t apply_suppressions(std::vector<Diagnostic>& diagnostics, std::vector<Suppression>& suppressions,
                               const SourceMap& sources);

/// Reports each target that suppressed nothing, with a fix that removes the comment when all of its targets
/// are unused.
void report_unused(const std::vector<Suppression>& suppressions, const SourceMap& sources, Sink& sink);

}  // namespace capstan
