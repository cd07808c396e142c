// A small complete search for clauses over Boolean variables (conflict-driven, with learning): the questions
// of one config are small, and starting Z3 for one costs more than answering a hundred of them here. Literals
// are 2 * variable, plus 1 for its negation. Deterministic: no clock, no random choice; the only limit is a
// number of conflicts. tests/unit/constraints holds its answers equal to Z3's.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace capstan {

class PropositionalSearch {
 public:
  using Literal = std::uint32_t;
  enum class Result { sat, unsat, limit };

  static Literal negation(Literal literal) { return literal ^ 1u; }

  std::uint32_t new_variable();
  /// Holds from now on. An empty clause makes every question unsat.
  void add_clause(std::span<const Literal> clause);
  void add_clause(std::initializer_list<Literal> clause) {
    add_clause(std::span<const Literal>(clause.begin(), clause.size()));
  }
  /// Whether the clauses hold together with the assumptions; gives up after so many conflicts.
  Result solve(std::span<const Literal> assumptions, std::uint64_t most_conflicts);
  /// After sat: whether the literal holds; of a variable that is younger than the answer, false.
  bool holds(Literal literal) const { return literal < model_.size() && model_[literal] > 0; }
  /// After unsat: assumptions that cannot hold together with the clauses (not minimal; empty: none needed).
  const std::vector<Literal>& failed() const { return failed_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  /// Its literals lie in literals_; the first two are watched. Each of the two is a link of the list of
  /// clauses that watch the literal.
  struct Clause {
    std::uint32_t first = 0, size = 0;
    std::array<std::uint32_t, 2> next{kNone, kNone};
  };
  struct WatchList {
    std::uint32_t head = kNone, tail = kNone;
  };
  struct Variable {
    std::uint32_t level = 0;
    std::uint32_t reason = kNone;
    std::int8_t phase = -1;
    bool seen = false;
    bool bumped = false;  // it took part in a conflict, so it has activity
    std::int32_t heap_place = -1;
    double activity = 0;
  };

  int value_of(Literal literal) const { return values_[literal]; }
  std::uint32_t level() const { return static_cast<std::uint32_t>(level_starts_.size()); }
  std::span<const Literal> literals_of(std::uint32_t clause) const {
    return {literals_.data() + clauses_[clause].first, clauses_[clause].size};
  }
  void assign(Literal literal, std::uint32_t reason);
  std::uint32_t propagate();
  void undo_to(std::uint32_t level);
  std::uint32_t attach(std::span<const Literal> literals);
  void append(WatchList& list, std::uint32_t clause, std::size_t slot);
  std::uint32_t analyse(std::uint32_t conflict, std::vector<Literal>& learnt);
  void explain_failure(Literal assumption);
  void bump(std::uint32_t variable);
  std::uint32_t next_to_decide();
  void heap_insert(std::uint32_t variable);
  void heap_up(std::size_t place);
  void heap_down(std::size_t place);
  std::uint32_t heap_take();
  bool heap_before(std::uint32_t a, std::uint32_t b) const {
    return variables_[a].activity != variables_[b].activity ? variables_[a].activity > variables_[b].activity
                                                            : a < b;
  }

  std::vector<Variable> variables_;
  std::vector<std::int8_t> values_;  // by literal: 1 true, -1 false, 0 open
  std::vector<Clause> clauses_;
  std::vector<Literal> literals_;   // of all clauses
  std::vector<WatchList> watches_;  // by literal: clauses to look at when it becomes false, in order
  std::vector<Literal> trail_;
  std::vector<std::size_t> level_starts_;
  std::size_t next_ = 0;  // first literal of the trail that was not propagated
  // The next decision: the most active of the variables that took part in conflicts; then the others by
  // number.
  std::vector<std::uint32_t> heap_;  // bumped variables; all that are open are in it
  std::uint32_t untouched_ = 0;      // every variable below that was never bumped has a value
  std::vector<std::int8_t> model_;   // by literal
  std::vector<Literal> failed_;
  std::vector<Literal> kept_, learnt_;  // of one call; kept for their memory
  std::vector<std::uint32_t> seen_;     // likewise
  double step_ = 1;
  bool contradiction_ = false;
};

}  // namespace capstan
