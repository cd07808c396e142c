#include "compiler/constraints/propositional_search.h"

#include <algorithm>
#include <utility>

namespace capstan {

std::uint32_t PropositionalSearch::new_variable() {
  const auto variable = static_cast<std::uint32_t>(variables_.size());
  variables_.emplace_back();
  watches_.emplace_back();
  watches_.emplace_back();
  heap_insert(variable);
  return variable;
}

void PropositionalSearch::assign(Literal literal, std::uint32_t reason) {
  Variable& variable = variables_[literal >> 1];
  variable.value = (literal & 1u) != 0 ? -1 : 1;
  variable.phase = variable.value;
  variable.level = level();
  variable.reason = reason;
  trail_.push_back(literal);
}

void PropositionalSearch::attach(std::uint32_t clause) {
  const std::vector<Literal>& literals = clauses_[clause].literals;
  watches_[literals[0]].push_back(clause);
  watches_[literals[1]].push_back(clause);
}

void PropositionalSearch::add_clause(std::vector<Literal> clause) {
  undo_to(0);
  std::sort(clause.begin(), clause.end());
  clause.erase(std::unique(clause.begin(), clause.end()), clause.end());
  std::vector<Literal> kept;
  for (std::size_t i = 0; i < clause.size(); ++i) {
    if (i > 0 && clause[i] == negation(clause[i - 1])) return;  // always holds
    if (value_of(clause[i]) > 0) return;
    if (value_of(clause[i]) == 0) kept.push_back(clause[i]);
  }
  if (kept.empty()) {
    contradiction_ = true;
    return;
  }
  if (kept.size() == 1) {
    assign(kept[0], kNoReason);
    return;
  }
  clauses_.push_back({std::move(kept)});
  attach(static_cast<std::uint32_t>(clauses_.size() - 1));
}

std::uint32_t PropositionalSearch::propagate() {
  while (next_ < trail_.size()) {
    const Literal falsified = negation(trail_[next_++]);
    std::vector<std::uint32_t>& watching = watches_[falsified];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < watching.size(); ++i) {
      const std::uint32_t index = watching[i];
      std::vector<Literal>& literals = clauses_[index].literals;
      if (literals[0] == falsified) std::swap(literals[0], literals[1]);
      if (value_of(literals[0]) > 0) {
        watching[kept++] = index;
        continue;
      }
      bool moved = false;
      for (std::size_t j = 2; j < literals.size(); ++j) {
        if (value_of(literals[j]) < 0) continue;
        std::swap(literals[1], literals[j]);
        watches_[literals[1]].push_back(index);
        moved = true;
        break;
      }
      if (moved) continue;
      watching[kept++] = index;
      if (value_of(literals[0]) < 0) {
        for (++i; i < watching.size(); ++i) watching[kept++] = watching[i];
        watching.resize(kept);
        next_ = trail_.size();
        return index;
      }
      assign(literals[0], index);
    }
    watching.resize(kept);
  }
  return kNoReason;
}

void PropositionalSearch::undo_to(std::uint32_t wanted) {
  if (level() <= wanted) return;
  const std::size_t start = level_starts_[wanted];
  while (trail_.size() > start) {
    const std::uint32_t variable = trail_.back() >> 1;
    variables_[variable].value = 0;
    variables_[variable].reason = kNoReason;
    if (variables_[variable].heap_place < 0) heap_insert(variable);
    trail_.pop_back();
  }
  level_starts_.resize(wanted);
  next_ = trail_.size();
}

/// First unique implication point; gives the level to go back to. The asserted literal stands first.
std::uint32_t PropositionalSearch::analyse(std::uint32_t conflict, std::vector<Literal>& learnt) {
  learnt.assign(1, 0);
  std::vector<std::uint32_t> seen;
  std::size_t open = 0;
  std::size_t at = trail_.size();
  std::uint32_t clause = conflict;
  Literal resolved = 0;
  bool first = true;
  do {
    for (const Literal literal : clauses_[clause].literals) {
      if (!first && literal == resolved) continue;
      Variable& variable = variables_[literal >> 1];
      if (variable.seen || variable.level == 0) continue;
      variable.seen = true;
      seen.push_back(literal >> 1);
      bump(literal >> 1);
      if (variable.level == level())
        ++open;
      else
        learnt.push_back(literal);
    }
    first = false;
    do --at;
    while (!variables_[trail_[at] >> 1].seen);
    resolved = trail_[at];
    clause = variables_[resolved >> 1].reason;
    --open;
  } while (open > 0);
  learnt[0] = negation(resolved);
  for (const std::uint32_t variable : seen) variables_[variable].seen = false;
  std::uint32_t back = 0;
  for (std::size_t i = 1; i < learnt.size(); ++i) {
    const std::uint32_t of_literal = variables_[learnt[i] >> 1].level;
    if (of_literal <= back) continue;
    back = of_literal;
    std::swap(learnt[1], learnt[i]);
  }
  step_ *= 1.0 / 0.95;
  return back;
}

/// The assumptions that force the negation of this one.
void PropositionalSearch::explain_failure(Literal assumption) {
  failed_.assign(1, assumption);
  if (level() == 0) return;
  std::vector<std::uint32_t> seen{assumption >> 1};
  variables_[assumption >> 1].seen = true;
  for (std::size_t at = trail_.size(); at > level_starts_[0];) {
    const std::uint32_t variable = trail_[--at] >> 1;
    if (!variables_[variable].seen) continue;
    if (variables_[variable].reason == kNoReason) {
      if (trail_[at] != assumption) failed_.push_back(trail_[at]);
      continue;
    }
    for (const Literal literal : clauses_[variables_[variable].reason].literals) {
      Variable& other = variables_[literal >> 1];
      if (other.seen || other.level == 0) continue;
      other.seen = true;
      seen.push_back(literal >> 1);
    }
  }
  for (const std::uint32_t variable : seen) variables_[variable].seen = false;
}

PropositionalSearch::Result PropositionalSearch::solve(const std::vector<Literal>& assumptions,
                                                       std::uint64_t most_conflicts) {
  failed_.clear();
  undo_to(0);
  if (contradiction_) return Result::unsat;
  std::uint64_t conflicts = 0;
  std::uint64_t until_restart = 100;
  for (;;) {
    const std::uint32_t conflict = propagate();
    if (conflict != kNoReason) {
      if (level() == 0) {
        contradiction_ = true;
        return Result::unsat;
      }
      if (++conflicts > most_conflicts) {
        undo_to(0);
        return Result::limit;
      }
      std::vector<Literal> learnt;
      const std::uint32_t back = analyse(conflict, learnt);
      undo_to(back);
      if (learnt.size() == 1) {
        assign(learnt[0], kNoReason);
      } else {
        const Literal asserted = learnt[0];
        clauses_.push_back({std::move(learnt)});
        const auto index = static_cast<std::uint32_t>(clauses_.size() - 1);
        attach(index);
        assign(asserted, index);
      }
      if (conflicts == until_restart) {
        until_restart += until_restart / 2;
        undo_to(0);
      }
      continue;
    }
    if (level() < assumptions.size()) {
      const Literal assumption = assumptions[level()];
      if (value_of(assumption) < 0) {
        explain_failure(assumption);
        undo_to(0);
        return Result::unsat;
      }
      // An assumption that holds already still gets its level, so that levels and assumptions stay in step.
      level_starts_.push_back(trail_.size());
      if (value_of(assumption) == 0) assign(assumption, kNoReason);
      continue;
    }
    std::uint32_t next = kNoReason;
    while (!heap_.empty() && next == kNoReason) {
      const std::uint32_t candidate = heap_take();
      if (variables_[candidate].value == 0) next = candidate;
    }
    if (next == kNoReason) {
      model_.resize(variables_.size());
      for (std::size_t i = 0; i < variables_.size(); ++i) model_[i] = variables_[i].value > 0;
      undo_to(0);
      return Result::sat;
    }
    level_starts_.push_back(trail_.size());
    assign(2 * next + (variables_[next].phase > 0 ? 0u : 1u), kNoReason);
  }
}

void PropositionalSearch::bump(std::uint32_t variable) {
  variables_[variable].activity += step_;
  if (variables_[variable].activity > 1e100) {
    for (Variable& one : variables_) one.activity *= 1e-100;
    step_ *= 1e-100;
  }
  if (variables_[variable].heap_place >= 0)
    heap_up(static_cast<std::size_t>(variables_[variable].heap_place));
}

void PropositionalSearch::heap_insert(std::uint32_t variable) {
  heap_.push_back(variable);
  variables_[variable].heap_place = static_cast<std::int32_t>(heap_.size() - 1);
  heap_up(heap_.size() - 1);
}

void PropositionalSearch::heap_up(std::size_t place) {
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!heap_before(heap_[place], heap_[parent])) return;
    std::swap(heap_[place], heap_[parent]);
    variables_[heap_[place]].heap_place = static_cast<std::int32_t>(place);
    variables_[heap_[parent]].heap_place = static_cast<std::int32_t>(parent);
    place = parent;
  }
}

void PropositionalSearch::heap_down(std::size_t place) {
  for (;;) {
    std::size_t best = place;
    for (std::size_t child = 2 * place + 1; child <= 2 * place + 2 && child < heap_.size(); ++child) {
      if (heap_before(heap_[child], heap_[best])) best = child;
    }
    if (best == place) return;
    std::swap(heap_[place], heap_[best]);
    variables_[heap_[place]].heap_place = static_cast<std::int32_t>(place);
    variables_[heap_[best]].heap_place = static_cast<std::int32_t>(best);
    place = best;
  }
}

std::uint32_t PropositionalSearch::heap_take() {
  const std::uint32_t variable = heap_[0];
  variables_[variable].heap_place = -1;
  heap_[0] = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) {
    variables_[heap_[0]].heap_place = 0;
    heap_down(0);
  }
  return variable;
}

}  // namespace capstan
