// The values of one key that the rest of a config allows, with the reason for each excluded one; and what
// stands against one wanted value, with the cheapest change that would allow it. Where keys are open, a value
// is legal when they can still be filled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/solve/conflict.h"
#include "compiler/solve/core.h"
#include "compiler/solve/repair.h"
#include "compiler/solve/subject.h"

namespace capstan {

/// What stands against one state of a key. Rules are those that forbid() and read the key or an open one.
struct Opposition {
  Answer answer = Answer::sat;  ///< sat: nothing; unsat: something does; undecided: a limit was met
  /// Rules about the key and no open one; participants name the other keys.
  std::vector<Conflict> against;
  std::vector<std::string> reasons;  ///< one message per entry of `against`
  /// Where there are none: settings, the state among them, that leave no value for the open keys. Absent
  /// where the limit was met.
  std::optional<MinimalConflict> conflict;
  std::vector<std::uint32_t> warnings;  ///< checks about the key that forbid nothing, but warn
};

/// One value; for module lists: the list with one element more or less.
struct LegalValue {
  Assignment assignment;
  std::string what;  ///< "`true`", "unset (`none`)", "with `attn`", "without `attn`"
  bool current = false;
  Opposition opposition;
};

struct LegalValues {
  std::vector<LegalValue> values;  ///< in the order of the schema
  bool listed_all = true;          ///< false: the key has more values than were tried
  /// Where the type allows any word: checks that exclude each one that is not listed; then all is listed.
  std::vector<std::uint32_t> against_others;
  bool filled_all = true;  ///< false: an open key has more values than were tried
  /// The open keys cannot be filled whatever value the key has: nothing is legal.
  std::optional<MinimalConflict> always;
  /// Checks that forbid the config whatever this key and the open ones become; they do not count here.
  std::vector<std::uint32_t> elsewhere;
};

/// `open` keys may take any value of their domain; `key` itself may be among them.
LegalValues find_legal_values(const Subject& subject, FactId key, const std::vector<FactId>& open,
                              const SmtOptions& options);

struct WhyNot {
  Opposition opposition;
  std::vector<std::uint32_t> cured;  ///< checks violated now that the change clears
  Repairs ways;  ///< further changes that allow it (and let the open keys be filled), cheapest first
};

WhyNot explain_why_not(const Subject& subject, const Assignment& wanted, const std::vector<FactId>& open,
                       const SmtOptions& options);

/// The rule's message with the values that the changed config has.
std::string message_of(const Subject& subject, std::uint32_t position,
                       const std::vector<Assignment>& changes);

}  // namespace capstan
