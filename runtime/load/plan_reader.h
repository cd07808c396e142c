// plan.json -> Plan. The text is untrusted: every number is bounded, every id exists, every shape's size
// fits, every buffer lies within the arena, no two persistent buffers share bytes, every op has the operands
// and attributes that docs/plan-format.md asks for. So whatever gets past here can be issued without a
// further check. Gives the plan, or one diagnostic (RN001-RN008) that names the field. Allocates nothing
// beyond the parsed text.
#pragma once

#include <string>
#include <string_view>

#include "compiler/plan/plan.h"
#include "runtime/device/outcome.h"

namespace capstan::runtime {

struct LoadedPlan {
  plan::Plan plan;
  std::string digest;  ///< the file's own, checked: 64 hex digits
  std::string text;    ///< the file's bytes, for the run directory; load_plan() fills it
};

/// Largest plan file that is read.
inline constexpr std::uint64_t kMaxPlanBytes = 256ull << 20;

Outcome<LoadedPlan> read_plan(std::string_view text);
/// Reads the file first; RN001 when that fails. "-" is standard input.
Outcome<LoadedPlan> load_plan(const std::string& path);

}  // namespace capstan::runtime
