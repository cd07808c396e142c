// Judges variants of one config: with a few facts changed, only what depends on them is evaluated again.
// Gives exactly what decided_violations() gives for the changed facts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/facts/facts.h"
#include "compiler/ruleset/rule.h"
#include "compiler/ruleset/rule_walk.h"

namespace capstan {

/// A state for one fact. An unset fact has its default as value.
struct Assignment {
  FactId fact = 0;
  bool set = true;
  Value value;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

/// Gives the fact the state.
void assign(Fact& fact, const Assignment& assignment);

/// Who reads and who writes which fact, for one set of active rules; made once for all configs of a stack.
class RuleDependences {
 public:
  static constexpr std::uint32_t kNoSlot = 0xffffffffu;
  /// A fact that an item reads, and the slot that holds its value at that point of the walk.
  struct Read {
    FactId fact = 0;
    std::uint32_t slot = kNoSlot;  ///< kNoSlot: no item before wrote the fact
  };

  explicit RuleDependences(const ActiveRules& rules);
  /// Positions of the items that read or write the fact; ascending.
  std::span<const std::uint32_t> visits(FactId fact) const { return part(visits_, visit_starts_, fact); }
  /// What the item at the position reads; a rewrite reads what it writes, too.
  std::span<const Read> reads(std::uint32_t position) const { return part(reads_, read_starts_, position); }
  /// Each write of an item in order has a slot; this is the first of the item.
  std::uint32_t first_slot(std::uint32_t position) const { return first_slots_[position]; }
  std::size_t slots() const { return slots_; }

 private:
  template <typename T>
  static std::span<const T> part(const std::vector<T>& all, const std::vector<std::uint32_t>& starts,
                                 std::uint32_t which) {
    return {all.data() + starts[which], all.data() + starts[which + 1]};
  }

  std::vector<std::uint32_t> visits_, visit_starts_;  // by fact
  std::vector<Read> reads_;
  std::vector<std::uint32_t> read_starts_, first_slots_;  // by position
  std::size_t slots_ = 0;
};

/// Not thread-safe.
class Reevaluator {
 public:
  /// All must outlive it; the facts must stay as they are.
  Reevaluator(const ActiveRules& rules, const RuleDependences& dependences, const Facts& facts);
  Reevaluator(const Reevaluator&) = delete;
  Reevaluator& operator=(const Reevaluator&) = delete;

  /// The items violated with the changes (later ones of a fact win), in framework order.
  std::vector<std::uint32_t> violations(const std::vector<Assignment>& changes);

 private:
  bool is_affected(std::uint32_t position) const;
  /// The facts that the item reads, as they are at this point of the walk.
  void bring_up_to_date(std::uint32_t position);
  /// What the item wrote, beside what it writes in the config itself.
  void compare_written(std::uint32_t position);
  void visit_readers(FactId fact, std::uint32_t after);
  void reset();

  const ActiveRules& rules_;
  const RuleDependences& dependences_;
  const Facts& facts_;
  Facts now_;  ///< of the variant; a fact holds what the slot of holds_ says
  RuleWalk walk_;
  std::vector<Fact> written_;            ///< by slot: in the config itself
  std::vector<std::uint32_t> violated_;  ///< positions, ascending: in the config itself
  std::vector<std::uint8_t> differs_;    ///< by fact: it is not as in the config itself at this point
  std::vector<std::uint32_t> holds_;     ///< by fact: whose write now_ holds; kNoSlot: no item's
  std::vector<std::uint64_t> to_visit_;  ///< bits by position: the item may be affected
  std::vector<FactId> touched_;          ///< facts that are to be reset
};

}  // namespace capstan
