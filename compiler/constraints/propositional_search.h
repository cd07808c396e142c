// A small complete search for clauses over Boolean variables (conflict-driven, with learning): the questions
// of one config are small, and starting Z3 for one costs more than answering a hundred of them here. Literals
// are 2 * variable, plus 1 for its negation. Deterministic: no clock, no random choice; the only limit is a
// number of conflicts. tests/unit/constraints holds its answers equal to Z3's.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan {

class PropositionalSearch {
 public:
  using Literal = std::uint32_t;
  enum class Result { sat, unsat, limit };

  static Literal negation(Literal literal) { return literal ^ 1u; }

  std::uint32_t new_variable();
  /// Holds from now on. An empty clause makes every question unsat.
  void add_clause(std::vector<Literal> clause);
  /// Whether the clauses hold together with the assumptions; gives up after so many conflicts.
  Result solve(const std::vector<Literal>& assumptions, std::uint64_t most_conflicts);
  /// After sat: the value of a variable.
  bool value(std::uint32_t variable) const { return model_[variable]; }
  /// After unsat: assumptions that cannot hold together with the clauses (not minimal; empty: none needed).
  const std::vector<Literal>& failed() const { return failed_; }

 private:
  static constexpr std::uint32_t kNoReason = 0xffffffffu;
  struct Clause {
    std::vector<Literal> literals;  // the first two are watched
  };
  struct Variable {
    std::int8_t value = 0;  // 1 true, -1 false, 0 open
    std::int8_t phase = -1;
    bool seen = false;
    std::uint32_t level = 0;
    std::uint32_t reason = kNoReason;
    double activity = 0;
    std::int32_t heap_place = -1;
  };

  int value_of(Literal literal) const {
    const std::int8_t value = variables_[literal >> 1].value;
    return (literal & 1u) != 0 ? -value : value;
  }
  std::uint32_t level() const { return static_cast<std::uint32_t>(level_starts_.size()); }
  void assign(Literal literal, std::uint32_t reason);
  std::uint32_t propagate();
  void undo_to(std::uint32_t level);
  void attach(std::uint32_t clause);
  std::uint32_t analyse(std::uint32_t conflict, std::vector<Literal>& learnt);
  void explain_failure(Literal assumption);
  void bump(std::uint32_t variable);
  void heap_insert(std::uint32_t variable);
  void heap_up(std::size_t place);
  void heap_down(std::size_t place);
  std::uint32_t heap_take();
  bool heap_before(std::uint32_t a, std::uint32_t b) const {
    return variables_[a].activity != variables_[b].activity ? variables_[a].activity > variables_[b].activity
                                                            : a < b;
  }

  std::vector<Variable> variables_;
  std::vector<Clause> clauses_;
  std::vector<std::vector<std::uint32_t>> watches_;  // by literal: clauses to look at when it becomes false
  std::vector<Literal> trail_;
  std::vector<std::size_t> level_starts_;
  std::size_t next_ = 0;  // first literal of the trail that was not propagated
  std::vector<std::uint32_t> heap_;
  std::vector<bool> model_;
  std::vector<Literal> failed_;
  double step_ = 1;
  bool contradiction_ = false;
};

}  // namespace capstan
