#include "compiler/constraints/smt.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compiler/constraints/propositional_search.h"
#include "compiler/constraints/smt_z3.h"

namespace capstan {
namespace {

// The search meets about this many conflicts in a millisecond on questions of its size.
constexpr std::uint64_t kConflictsPerMillisecond = 10;
constexpr int kMostCores = 5000;

}  // namespace

const char* answer_name(Answer answer) {
  switch (answer) {
    case Answer::sat:
      return "sat";
    case Answer::unsat:
      return "unsat";
    case Answer::undecided:
      return "undecided";
  }
  return "?";
}

/// Terms as clauses: a term gets a variable when a question first needs it, with clauses that define it.
struct Smt::Search {
  using Literal = PropositionalSearch::Literal;
  static constexpr std::uint32_t kAbsent = 0xffffffffu;

  PropositionalSearch engine;
  std::vector<Literal> literals;      // by term id; kAbsent: not translated
  std::vector<Literal> scopes;        // by push level above the first: switches its clauses on
  std::vector<std::size_t> added{0};  // by push level: how many of its required terms are clauses already
  std::vector<std::uint32_t> stack;   // of one translation; kept for its memory, as are the next three
  std::vector<Literal> clause, definition, question;
  std::vector<Literal> failed;

  Literal translate(Term term, const TermTable& terms) {
    if (literals.size() < terms.size()) literals.resize(terms.size(), kAbsent);
    if (literals[term.id] != kAbsent) return literals[term.id];
    stack.assign(1, term.id);
    while (!stack.empty()) {
      const std::uint32_t id = stack.back();
      if (literals[id] != kAbsent) {
        stack.pop_back();
        continue;
      }
      const std::span<const Term> children = terms.children(Term{id});
      const std::size_t before = stack.size();
      for (const Term child : children) {
        if (literals[child.id] == kAbsent) stack.push_back(child.id);
      }
      if (stack.size() > before) continue;
      stack.pop_back();
      const TermTable::Kind kind = terms.kind(Term{id});
      if (kind == TermTable::Kind::negation) {
        literals[id] = PropositionalSearch::negation(literals[children[0].id]);
        continue;
      }
      const Literal own = 2 * engine.new_variable();
      literals[id] = own;
      if (kind == TermTable::Kind::constant) engine.add_clause({id == kTrue.id ? own : own ^ 1u});
      if (kind != TermTable::Kind::conjunction) continue;
      definition.assign(1, own);
      for (const Term child : children) {
        engine.add_clause({own ^ 1u, literals[child.id]});
        definition.push_back(literals[child.id] ^ 1u);
      }
      engine.add_clause(definition);
    }
    return literals[term.id];
  }

  void require(Term term, std::size_t level, const TermTable& terms) {
    if (terms.kind(term) == TermTable::Kind::conjunction) {
      for (const Term child : terms.children(term)) require(child, level, terms);
      return;
    }
    clause.clear();
    if (level > 0) clause.push_back(scopes[level - 1] ^ 1u);
    // A disjunction is a negated conjunction: its own clause, without a variable for the whole.
    if (terms.kind(term) == TermTable::Kind::negation &&
        terms.kind(terms.children(term)[0]) == TermTable::Kind::conjunction) {
      for (const Term child : terms.children(terms.children(term)[0]))
        clause.push_back(translate(child, terms) ^ 1u);
    } else {
      clause.push_back(translate(term, terms));
    }
    engine.add_clause(clause);
  }

  /// Brings the clauses up to what is required now.
  void follow(const std::vector<std::vector<Term>>& required, const TermTable& terms) {
    for (std::size_t level = 0; level < required.size(); ++level) {
      if (level > scopes.size()) {
        scopes.push_back(2 * engine.new_variable());
        added.push_back(0);
      }
      for (std::size_t& i = added[level]; i < required[level].size(); ++i)
        require(required[level][i], level, terms);
    }
  }

  void drop(std::size_t level) {
    if (level > scopes.size()) return;  // it never reached the clauses
    engine.add_clause({scopes.back() ^ 1u});
    scopes.pop_back();
    added.pop_back();
  }
};

Smt::Smt(SmtOptions options) : search_(std::make_unique<Search>()), options_(std::move(options)) {}

Smt::~Smt() = default;

Term Smt::variable(std::function<std::string()> name) {
  const Term made = terms_.variable();
  variables_.emplace_back(made, std::move(name));
  return made;
}

Term Smt::variable(std::string name) {
  return variable([name = std::move(name)] { return name; });
}

const std::vector<std::string>& Smt::names() {
  names_.resize(terms_.size());
  for (; named_ < variables_.size(); ++named_) {
    const auto& [term, make] = variables_[named_];
    // The solver knows variables by name alone: equal names would be one variable.
    std::string name = make();
    if (!used_names_.insert(name).second) name += " #" + std::to_string(term.id);
    names_[term.id] = std::move(name);
  }
  return names_;
}

Term Smt::negate(Term a) {
  if (a == kFalse) return kTrue;
  if (a == kTrue) return kFalse;
  if (terms_.kind(a) == TermTable::Kind::negation) return terms_.children(a)[0];
  return terms_.negation(a);
}

Term Smt::conjunction_of_flat() {
  std::sort(flat_.begin(), flat_.end());
  flat_.erase(std::unique(flat_.begin(), flat_.end()), flat_.end());
  for (const Term term : flat_) {
    if (terms_.kind(term) == TermTable::Kind::negation &&
        std::binary_search(flat_.begin(), flat_.end(), terms_.children(term)[0]))
      return kFalse;
  }
  if (flat_.empty()) return kTrue;
  if (flat_.size() == 1) return flat_[0];
  return terms_.conjunction(flat_);
}

Term Smt::all(std::span<const Term> terms) {
  flat_.clear();
  for (const Term term : terms) {
    if (term == kFalse) return kFalse;
    if (term == kTrue) continue;
    const std::span<const Term> children = terms_.children(term);
    if (terms_.kind(term) == TermTable::Kind::conjunction && children.size() <= 8)
      flat_.insert(flat_.end(), children.begin(), children.end());
    else
      flat_.push_back(term);
  }
  return conjunction_of_flat();
}

Term Smt::any(std::span<const Term> terms) {
  std::vector<Term> negated;
  negated.reserve(terms.size());
  for (const Term term : terms) {
    if (term == kTrue) return kTrue;
    if (term != kFalse) negated.push_back(term);
  }
  if (negated.empty()) return kFalse;
  if (negated.size() == 1) return negated[0];
  for (Term& term : negated) term = negate(term);
  return negate(all(negated));
}

Term Smt::both(Term a, Term b) {
  if (a == kFalse || b == kFalse) return kFalse;
  if (a == kTrue || a == b) return b;
  if (b == kTrue) return a;
  return all(std::array{a, b});
}
Term Smt::either(Term a, Term b) {
  if (a == kTrue || b == kTrue) return kTrue;
  if (a == kFalse || a == b) return b;
  if (b == kFalse) return a;
  return negate(all(std::array{negate(a), negate(b)}));
}
Term Smt::same(Term a, Term b) {
  return choose(a, b, negate(b));
}

Term Smt::choose(Term condition, Term then, Term otherwise) {
  if (condition == kTrue || then == otherwise) return then;
  if (condition == kFalse) return otherwise;
  return either(both(condition, then), both(negate(condition), otherwise));
}

void Smt::require(Term term) {
  if (term != kTrue) required_.back().push_back(term);
}

void Smt::require_exactly_one(const std::vector<Term>& terms) {
  require(any(terms));
  if (terms.size() <= 6) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      for (std::size_t j = i + 1; j < terms.size(); ++j) require(negate(both(terms[i], terms[j])));
    }
    return;
  }
  // Ladder: `seen` holds from the first chosen one on; linear in the number of terms.
  Term seen = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    require(negate(both(seen, terms[i])));
    if (i + 1 == terms.size()) break;
    const Term next = variable([id = terms_.size()] { return "ladder!" + std::to_string(id); });
    require(implies(seen, next));
    require(implies(terms[i], next));
    seen = next;
  }
}

void Smt::push() {
  required_.emplace_back();
}

void Smt::pop() {
  search_->drop(required_.size() - 1);
  required_.pop_back();
}

Smt::Z3& Smt::z3() {
  if (!z3_) {
    if (!options_.context) options_.context = make_solver_context();
    z3_ = std::make_unique<Z3>(options_);
  }
  return *z3_;
}

Answer Smt::check(const std::vector<Term>& assumptions) {
  ++questions_;
  if (options_.transcript) *options_.transcript += smt2(assumptions) + "(reset)\n";
  has_model_ = false;
  last_core_.clear();
  for (const Term term : assumptions) {
    if (term != kFalse) continue;
    last_core_ = {term};
    return Answer::unsat;
  }
  if (!options_.z3_only) {
    if (const auto answer = search(assumptions)) return *answer;
  }
  const Answer answer = z3().check(terms_, names(), required_, assumptions, model_, last_core_);
  has_model_ = answer == Answer::sat;
  model_is_of_search_ = false;
  return answer;
}

std::optional<Answer> Smt::search(const std::vector<Term>& assumptions) {
  has_model_ = false;
  last_core_.clear();
  search_->follow(required_, terms_);
  std::vector<PropositionalSearch::Literal>& question = search_->question;
  question = search_->scopes;
  for (const Term term : assumptions) question.push_back(search_->translate(term, terms_));
  switch (search_->engine.solve(question, kConflictsPerMillisecond * options_.timeout_ms)) {
    case PropositionalSearch::Result::sat:
      model_.assign(terms_.size(), 0);
      has_model_ = true;
      model_is_of_search_ = true;
      return Answer::sat;
    case PropositionalSearch::Result::unsat: {
      std::vector<PropositionalSearch::Literal>& failed = search_->failed;
      failed = search_->engine.failed();
      std::sort(failed.begin(), failed.end());
      const std::size_t scopes = search_->scopes.size();
      for (std::size_t i = 0; i < assumptions.size(); ++i) {
        const auto place = std::lower_bound(failed.begin(), failed.end(), question[scopes + i]);
        if (place == failed.end() || *place != question[scopes + i]) continue;
        if (std::find(last_core_.begin(), last_core_.end(), assumptions[i]) == last_core_.end())
          last_core_.push_back(assumptions[i]);
      }
      return Answer::unsat;
    }
    case PropositionalSearch::Result::limit:
      break;
  }
  return std::nullopt;
}

bool Smt::value(Term term) const {
  if (term == kTrue) return true;
  if (term == kFalse || !has_model_) return false;
  if (model_.size() < terms_.size()) model_.resize(terms_.size(), 0);
  if (model_[term.id] != 0) return model_[term.id] > 0;
  if (model_is_of_search_ && term.id < search_->literals.size() &&
      search_->literals[term.id] != Search::kAbsent) {
    model_[term.id] = search_->engine.holds(search_->literals[term.id]) ? 1 : -1;
    return model_[term.id] > 0;
  }
  std::vector<std::uint32_t> stack{term.id};
  while (!stack.empty()) {
    const std::uint32_t id = stack.back();
    if (model_[id] != 0) {
      stack.pop_back();
      continue;
    }
    if (model_is_of_search_ && id < search_->literals.size() && search_->literals[id] != Search::kAbsent) {
      model_[id] = search_->engine.holds(search_->literals[id]) ? 1 : -1;
      continue;
    }
    const std::span<const Term> children = terms_.children(Term{id});
    const auto open =
        std::find_if(children.begin(), children.end(), [this](Term child) { return model_[child.id] == 0; });
    if (open != children.end()) {
      stack.push_back(open->id);
      continue;
    }
    bool holds = false;
    switch (terms_.kind(Term{id})) {
      case TermTable::Kind::constant:
        holds = id == kTrue.id;
        break;
      case TermTable::Kind::variable:  // no question mentioned it
        break;
      case TermTable::Kind::negation:
        holds = model_[children[0].id] < 0;
        break;
      case TermTable::Kind::conjunction:
        holds = std::all_of(children.begin(), children.end(),
                            [this](Term child) { return model_[child.id] > 0; });
        break;
    }
    model_[id] = holds ? 1 : -1;
  }
  return model_[term.id] > 0;
}

std::vector<Term> Smt::core() const {
  return last_core_;
}

Answer Smt::minimal_core(const std::vector<Term>& assumptions, std::vector<Term>& core) {
  core.clear();
  const Answer first = check(assumptions);
  if (first != Answer::unsat) return first;
  std::vector<Term> rest = last_core_;
  Answer answer = Answer::unsat;
  // Deletion from the back: what cannot be left out stays; each unsat answer may drop several at once.
  std::vector<Term> needed;
  while (!rest.empty()) {
    const Term candidate = rest.back();
    rest.pop_back();
    std::vector<Term> question = rest;
    question.insert(question.end(), needed.begin(), needed.end());
    const Answer without = check(question);
    if (without == Answer::unsat) {
      std::vector<Term> kept;
      for (const Term term : rest) {
        const std::vector<Term>& last = last_core_;
        if (std::find(last.begin(), last.end(), term) != last.end()) kept.push_back(term);
      }
      rest = std::move(kept);
    } else {
      if (without == Answer::undecided) answer = Answer::undecided;
      needed.push_back(candidate);
    }
  }
  for (const Term term : assumptions) {
    if (std::find(needed.begin(), needed.end(), term) != needed.end() &&
        std::find(core.begin(), core.end(), term) == core.end()) {
      core.push_back(term);
    }
  }
  last_core_ = core;
  return answer;
}

namespace {

/// What it costs to break each term; few enough for one sorted array.
struct Weights {
  std::vector<std::pair<Term, std::uint64_t>> entries;

  auto find(Term term) {
    return std::lower_bound(entries.begin(), entries.end(), term,
                            [](const auto& entry, Term wanted) { return entry.first < wanted; });
  }
  bool contains(Term term) {
    const auto at = find(term);
    return at != entries.end() && at->first == term;
  }
  /// Of a term that is there.
  std::uint64_t of(Term term) { return find(term)->second; }
  void add(Term term, std::uint64_t weight) {
    const auto at = find(term);
    if (at != entries.end() && at->first == term)
      at->second += weight;
    else
      entries.insert(at, {term, weight});
  }
  void subtract(Term term, std::uint64_t weight) {
    const auto at = find(term);
    if ((at->second -= weight) == 0) entries.erase(at);
  }
};

}  // namespace

// Core-guided (MaxRes): all soft terms of at least some weight are assumed; a core of them costs its least
// weight, and is replaced by terms that say "all but one". Heavy terms first, so that cores are about what
// matters.
std::optional<Answer> Smt::minimize_by_search(const std::vector<SoftTerm>& soft,
                                              const std::vector<Term>& assumptions) {
  const auto possible = search(assumptions);
  if (!possible || *possible == Answer::unsat) return possible;
  Weights weights;
  for (const SoftTerm& entry : soft) {
    if (entry.term != kTrue && entry.term != kFalse) weights.add(entry.term, entry.weight);
  }
  std::uint64_t least = 0;
  for (const auto& [term, weight] : weights.entries) least = std::max(least, weight);
  std::vector<Term> question, core;
  for (int round = 0; round < kMostCores; ++round) {
    question = assumptions;
    std::uint64_t below = 0;
    for (const auto& [term, weight] : weights.entries) {
      if (weight >= least)
        question.push_back(term);
      else
        below = std::max(below, weight);
    }
    const auto answer = search(question);
    if (!answer) return std::nullopt;
    if (*answer == Answer::sat) {
      if (below == 0) return Answer::sat;
      least = below;
      continue;
    }
    core.clear();
    for (const Term term : last_core_) {
      if (weights.contains(term) &&
          std::find(assumptions.begin(), assumptions.end(), term) == assumptions.end())
        core.push_back(term);
    }
    for (std::size_t i = core.size(); i-- > 0 && core.size() > 1;) {
      question = assumptions;
      for (std::size_t j = 0; j < core.size(); ++j) {
        if (j != i) question.push_back(core[j]);
      }
      if (search(question) == Answer::unsat) core.erase(core.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (core.empty()) return std::nullopt;  // a term that is assumed and soft at once
    std::uint64_t cost = weights.of(core[0]);
    for (const Term term : core) cost = std::min(cost, weights.of(term));
    for (const Term term : core) weights.subtract(term, cost);
    Term rest = core.back();
    for (std::size_t i = core.size() - 1; i-- > 0;) {
      const Term relaxed = either(core[i], rest);
      if (relaxed != kTrue) weights.add(relaxed, cost);
      rest = both(core[i], rest);
    }
  }
  return std::nullopt;
}

Answer Smt::minimize(const std::vector<SoftTerm>& soft, const std::vector<Term>& assumptions,
                     std::uint64_t& cost) {
  ++questions_;
  cost = 0;
  has_model_ = false;
  std::optional<Answer> answer;
  if (!options_.z3_only && !options_.transcript) answer = minimize_by_search(soft, assumptions);
  if (!answer) {
    answer = z3().minimize(terms_, names(), required_, soft, assumptions, model_);
    has_model_ = *answer == Answer::sat;
    model_is_of_search_ = false;
  }
  if (*answer != Answer::sat) return *answer;
  for (const SoftTerm& entry : soft) {
    if (!value(entry.term)) cost += entry.weight;
  }
  return *answer;
}

std::string Smt::smt2(const std::vector<Term>& assumptions) {
  return z3().smt2(terms_, names(), required_, assumptions);
}

}  // namespace capstan
