// The values of one key that the rest of a config allows, with the reason for each excluded one; and what
// stands against one wanted value, with the cheapest change that would allow it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/solve/conflict.h"
#include "compiler/solve/repair.h"
#include "compiler/solve/subject.h"

namespace capstan {

/// One value (for module lists: the list with one element more or less) and the checks that exclude it.
struct LegalValue {
  Assignment assignment;
  std::string what;  ///< "`true`", "unset (`none`)", "with `attn`", "without `attn`"
  bool current = false;
  std::vector<Conflict> against;     ///< empty: legal; participants name the other keys
  std::vector<std::string> reasons;  ///< one message per entry of `against`
};

struct LegalValues {
  std::vector<LegalValue> values;  ///< in the order of the schema
  bool listed_all = true;          ///< false: the key has more values than were tried
};

LegalValues find_legal_values(const Subject& subject, FactId key, SmtOptions options);

struct WhyNot {
  std::vector<Conflict> against;  ///< checks about the key that the changed config violates
  std::vector<std::string> reasons;
  std::vector<std::uint32_t> cured;  ///< checks violated now that the change clears
  Repairs ways;                      ///< further changes that allow it, cheapest first
};

WhyNot explain_why_not(const Subject& subject, const Assignment& wanted, SmtOptions options);

/// The rule's message with the values that the changed config has.
std::string message_of(const Subject& subject, std::uint32_t position,
                       const std::vector<Assignment>& changes);

}  // namespace capstan
