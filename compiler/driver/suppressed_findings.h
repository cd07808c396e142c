// Suppression comments of every file that took part in a config, applied to its findings.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/selection.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/driver/workspace.h"

namespace capstan {

/// Today's date as comments write it, "2026-11-29".
std::string today();

/// Removes from `findings` what comments suppress, and gives their number. With `about_comments`, malformed,
/// expired (on `today`, "YYYY-MM-DD") and unused comments of the checked file are reported there; those of a
/// file that others extend serve them too, and are not judged.
std::size_t suppress_findings(std::vector<Diagnostic>& findings, SourceId file,
                              const PreparedConfig& prepared, const SourceMap& sources,
                              const std::vector<KnownCode>& known, const std::string& today = {},
                              Sink* about_comments = nullptr);

}  // namespace capstan
