// A config file with its fixes applied, in memory: each step applies one verified fix and reads and judges
// the files again; a step stays only if it clears its finding and adds none. Nothing is written here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/selection.h"
#include "compiler/driver/workspace.h"

namespace capstan {

struct FixFileOptions {
  bool unsafe = false;  ///< also fixes that change numerics or what was asked for
  bool model = false;   ///< also the ways that change what defines the model
  std::size_t choose =
      0;  ///< number of the way to take: of the first finding listed after what is taken unasked; 0: none
  std::uint32_t timeout_ms = 2000;  ///< per question to the solver
  Selection selection;              ///< findings that count
  std::vector<KnownCode> known;
  std::string date;  ///< today, for suppressions that expire
};

struct FixStep {
  std::string code, name, message, title;
  Applicability applicability = Applicability::safe;
  CostClass cost = CostClass::free;
};

struct FixedFile {
  std::vector<FixStep> steps;    ///< in the order in which they were made
  std::vector<Diagnostic> left;  ///< findings afterwards, with their ways out
  /// Files that change: path -> text before, text after. May name files that the checked one extends.
  std::map<std::string, std::pair<std::string, std::string>> texts;
  std::string text;  ///< of the checked file, afterwards
  std::string stack;
  ConfigFormat format = ConfigFormat::toml;
  bool readable = true;  ///< false: the file has no text or no readable one; `left` says why
};

/// Throws UsageError when `options.choose` names a way that is not there or that no file can take.
FixedFile fix_file(Workspace& workspace, const std::string& path, const FixFileOptions& options);
/// The same for a text under a name.
FixedFile fix_text(Workspace& workspace, const std::string& name, const std::string& text,
                   const FixFileOptions& options);

}  // namespace capstan
