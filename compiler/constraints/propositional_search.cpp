#include "compiler/constraints/propositional_search.h"

#include <algorithm>
#include <utility>

namespace capstan {

std::uint32_t PropositionalSearch::new_variable() {
  const auto variable = static_cast<std::uint32_t>(variables_.size());
  variables_.emplace_back();
  values_.resize(values_.size() + 2, 0);
  watches_.resize(watches_.size() + 2);
  return variable;
}

void PropositionalSearch::assign(Literal literal, std::uint32_t reason) {
  values_[literal] = 1;
  values_[negation(literal)] = -1;
  Variable& variable = variables_[literal >> 1];
  variable.phase = (literal & 1u) != 0 ? -1 : 1;
  variable.level = level();
  variable.reason = reason;
  trail_.push_back(literal);
}

void PropositionalSearch::append(WatchList& list, std::uint32_t clause, std::size_t slot) {
  clauses_[clause].next[slot] = kNone;
  if (list.head == kNone) {
    list.head = clause;
  } else {
    Clause& last = clauses_[list.tail];
    const Literal watched = literals_[clauses_[clause].first + slot];
    last.next[literals_[last.first] == watched ? 0 : 1] = clause;
  }
  list.tail = clause;
}

std::uint32_t PropositionalSearch::attach(std::span<const Literal> literals) {
  const auto index = static_cast<std::uint32_t>(clauses_.size());
  clauses_.push_back({static_cast<std::uint32_t>(literals_.size()),
                      static_cast<std::uint32_t>(literals.size()),
                      {kNone, kNone}});
  literals_.insert(literals_.end(), literals.begin(), literals.end());
  append(watches_[literals[0]], index, 0);
  append(watches_[literals[1]], index, 1);
  return index;
}

void PropositionalSearch::add_clause(std::span<const Literal> clause) {
  undo_to(0);
  kept_.assign(clause.begin(), clause.end());
  std::sort(kept_.begin(), kept_.end());
  kept_.erase(std::unique(kept_.begin(), kept_.end()), kept_.end());
  std::size_t open = 0;
  Literal before = kNone;
  for (const Literal literal : kept_) {
    if (before != kNone && literal == negation(before)) return;  // always holds
    if (value_of(literal) > 0) return;
    before = literal;
    if (value_of(literal) == 0) kept_[open++] = literal;
  }
  kept_.resize(open);
  if (kept_.empty()) {
    contradiction_ = true;
  } else if (kept_.size() == 1) {
    assign(kept_[0], kNone);
  } else {
    attach(kept_);
  }
}

std::uint32_t PropositionalSearch::propagate() {
  while (next_ < trail_.size()) {
    const Literal falsified = negation(trail_[next_++]);
    WatchList& watching = watches_[falsified];
    std::uint32_t* link = &watching.head;  // what leads to the clause at hand
    std::uint32_t last = kNone;            // the clause before it that stays in the list
    for (std::uint32_t index = watching.head; index != kNone;) {
      Clause& clause = clauses_[index];
      Literal* const literals = literals_.data() + clause.first;
      if (literals[0] == falsified) {
        std::swap(literals[0], literals[1]);
        std::swap(clause.next[0], clause.next[1]);
      }
      const std::uint32_t next = clause.next[1];
      const int other = value_of(literals[0]);
      if (other <= 0) {
        std::size_t free = 2;
        while (free < clause.size && value_of(literals[free]) < 0) ++free;
        if (free < clause.size) {
          *link = next;
          std::swap(literals[1], literals[free]);
          append(watches_[literals[1]], index, 1);
          index = next;
          continue;
        }
        if (other < 0) {
          next_ = trail_.size();
          return index;  // the end of the list is where it was
        }
        assign(literals[0], index);
      }
      link = &clause.next[1];
      last = index;
      index = next;
    }
    watching.tail = last;
  }
  return kNone;
}

void PropositionalSearch::undo_to(std::uint32_t wanted) {
  if (level() <= wanted) return;
  const std::size_t start = level_starts_[wanted];
  for (std::size_t at = trail_.size(); at > start;) {
    const Literal literal = trail_[--at];
    const std::uint32_t variable = literal >> 1;
    values_[literal] = 0;
    values_[negation(literal)] = 0;
    variables_[variable].reason = kNone;
    if (!variables_[variable].bumped)
      untouched_ = std::min(untouched_, variable);
    else if (variables_[variable].heap_place < 0)
      heap_insert(variable);
  }
  trail_.resize(start);
  level_starts_.resize(wanted);
  next_ = trail_.size();
}

/// First unique implication point; gives the level to go back to. The asserted literal stands first.
std::uint32_t PropositionalSearch::analyse(std::uint32_t conflict, std::vector<Literal>& learnt) {
  learnt.assign(1, 0);
  seen_.clear();
  std::size_t open = 0;
  std::size_t at = trail_.size();
  std::uint32_t clause = conflict;
  Literal resolved = 0;
  bool first = true;
  do {
    for (const Literal literal : literals_of(clause)) {
      if (!first && literal == resolved) continue;
      Variable& variable = variables_[literal >> 1];
      if (variable.seen || variable.level == 0) continue;
      variable.seen = true;
      seen_.push_back(literal >> 1);
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
  for (const std::uint32_t variable : seen_) variables_[variable].seen = false;
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
  seen_.assign(1, assumption >> 1);
  variables_[assumption >> 1].seen = true;
  for (std::size_t at = trail_.size(); at > level_starts_[0];) {
    const std::uint32_t variable = trail_[--at] >> 1;
    if (!variables_[variable].seen) continue;
    if (variables_[variable].reason == kNone) {
      if (trail_[at] != assumption) failed_.push_back(trail_[at]);
      continue;
    }
    for (const Literal literal : literals_of(variables_[variable].reason)) {
      Variable& other = variables_[literal >> 1];
      if (other.seen || other.level == 0) continue;
      other.seen = true;
      seen_.push_back(literal >> 1);
    }
  }
  for (const std::uint32_t variable : seen_) variables_[variable].seen = false;
}

PropositionalSearch::Result PropositionalSearch::solve(std::span<const Literal> assumptions,
                                                       std::uint64_t most_conflicts) {
  failed_.clear();
  undo_to(0);
  if (contradiction_) return Result::unsat;
  std::uint64_t conflicts = 0;
  std::uint64_t until_restart = 100;
  for (;;) {
    const std::uint32_t conflict = propagate();
    if (conflict != kNone) {
      if (level() == 0) {
        contradiction_ = true;
        return Result::unsat;
      }
      if (++conflicts > most_conflicts) {
        undo_to(0);
        return Result::limit;
      }
      undo_to(analyse(conflict, learnt_));
      assign(learnt_[0], learnt_.size() == 1 ? kNone : attach(learnt_));
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
      if (value_of(assumption) == 0) assign(assumption, kNone);
      continue;
    }
    const std::uint32_t next = next_to_decide();
    if (next == kNone) {
      model_ = values_;
      undo_to(0);
      return Result::sat;
    }
    level_starts_.push_back(trail_.size());
    assign(2 * next + (variables_[next].phase > 0 ? 0u : 1u), kNone);
  }
}

void PropositionalSearch::bump(std::uint32_t variable) {
  variables_[variable].bumped = true;  // it has a value now, and joins the heap when it loses it
  variables_[variable].activity += step_;
  if (variables_[variable].activity > 1e100) {
    for (Variable& one : variables_) one.activity *= 1e-100;
    step_ *= 1e-100;
  }
  if (variables_[variable].heap_place >= 0)
    heap_up(static_cast<std::size_t>(variables_[variable].heap_place));
}

/// The most active open variable; kNone when all have values.
std::uint32_t PropositionalSearch::next_to_decide() {
  while (!heap_.empty()) {
    const std::uint32_t candidate = heap_take();
    if (values_[2 * candidate] == 0) return candidate;
  }
  for (; untouched_ < variables_.size(); ++untouched_) {
    if (values_[2 * untouched_] == 0 && !variables_[untouched_].bumped) return untouched_;
  }
  return kNone;
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
