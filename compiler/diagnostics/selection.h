// Which findings are reported, and how severe: `--select`, `--ignore`, `--severity` and the fail level. A
// selector is `all`, a code
// ("CG004"), the beginning of codes ("CG", "CG0"), a rule's name, a family's name ("cuda-graph") or a kind
// ("advice"). The most specific matching selector decides; ignoring wins a tie. Errors of
// reading (is_reading_problem) are always reported.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace capstan {

/// What a selector may name.
struct KnownCode {
  std::string code;    ///< "CG004"
  std::string name;    ///< "graph-moe-and-router"
  std::string family;  ///< "cuda-graph"; may be empty
  FindingKind kind = FindingKind::problem;
};

struct Selection {
  std::vector<std::string> select{};  ///< empty: all
  std::vector<std::string> ignore{};
  std::vector<std::pair<std::string, Severity>>
      severities{};                       ///< selector -> severity; the most specific, then the last wins
  Severity fail_level = Severity::error;  ///< exit code 1 from this severity on
};

/// "hint", "warning", "error"; false for other words.
bool parse_severity(std::string_view word, Severity& severity);
/// "CG=error"; false if there is no `=` or no severity behind it.
bool parse_severity_override(std::string_view text, std::pair<std::string, Severity>& override);

/// Codes of codes.def; a caller adds those of its rules.
std::vector<KnownCode> builtin_known_codes();
/// Selectors that match no known code: a usage error. In the order given.
std::vector<std::string> unknown_selectors(const Selection& selection, const std::vector<KnownCode>& known);

/// Whether errors of the code (SY, TY, TG, RU, EX) say that a text, a rule, the target, a key or a value was
/// not read: no selection drops or lowers them.
bool is_reading_problem(std::string_view code);

/// Keeps what is selected, with severities changed; the order stays. Gives the number of findings dropped.
std::size_t apply_selection(std::vector<Diagnostic>& diagnostics, const Selection& selection,
                            const std::vector<KnownCode>& known);
/// True if any finding is at or above the fail level.
bool fails(const std::vector<Diagnostic>& diagnostics, Severity fail_level);

}  // namespace capstan
