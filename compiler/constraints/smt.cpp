#include "compiler/constraints/smt.h"

#include <algorithm>
#include <map>

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

  Literal translate(Term term, const std::vector<TermNode>& nodes) {
    if (literals.size() < nodes.size()) literals.resize(nodes.size(), kAbsent);
    std::vector<std::uint32_t> stack{term.id};
    while (!stack.empty()) {
      const std::uint32_t id = stack.back();
      if (literals[id] != kAbsent) {
        stack.pop_back();
        continue;
      }
      const TermNode& node = nodes[id];
      bool ready = true;
      for (const Term child : node.children) {
        if (literals[child.id] == kAbsent) {
          stack.push_back(child.id);
          ready = false;
        }
      }
      if (!ready) continue;
      stack.pop_back();
      if (node.kind == TermNode::Kind::negation) {
        literals[id] = PropositionalSearch::negation(literals[node.children[0].id]);
        continue;
      }
      const Literal own = 2 * engine.new_variable();
      literals[id] = own;
      if (node.kind == TermNode::Kind::constant) engine.add_clause({id == kTrue.id ? own : own ^ 1u});
      if (node.kind != TermNode::Kind::conjunction) continue;
      std::vector<Literal> backward{own};
      for (const Term child : node.children) {
        engine.add_clause({own ^ 1u, literals[child.id]});
        backward.push_back(literals[child.id] ^ 1u);
      }
      engine.add_clause(std::move(backward));
    }
    return literals[term.id];
  }

  void require(Term term, std::size_t level, const std::vector<TermNode>& nodes) {
    std::vector<Literal> clause;
    if (level > 0) clause.push_back(scopes[level - 1] ^ 1u);
    const TermNode& node = nodes[term.id];
    if (node.kind == TermNode::Kind::conjunction) {
      for (const Term child : node.children) require(child, level, nodes);
      return;
    }
    // A disjunction is a negated conjunction: its own clause, without a variable for the whole.
    if (node.kind == TermNode::Kind::negation &&
        nodes[node.children[0].id].kind == TermNode::Kind::conjunction) {
      for (const Term child : nodes[node.children[0].id].children)
        clause.push_back(translate(child, nodes) ^ 1u);
    } else {
      clause.push_back(translate(term, nodes));
    }
    engine.add_clause(std::move(clause));
  }

  /// Brings the clauses up to what is required now.
  void follow(const std::vector<std::vector<Term>>& required, const std::vector<TermNode>& nodes) {
    for (std::size_t level = 0; level < required.size(); ++level) {
      if (level > scopes.size()) {
        scopes.push_back(2 * engine.new_variable());
        added.push_back(0);
      }
      for (std::size_t& i = added[level]; i < required[level].size(); ++i)
        require(required[level][i], level, nodes);
    }
  }

  void drop(std::size_t level) {
    if (level > scopes.size()) return;  // it never reached the clauses
    engine.add_clause({scopes.back() ^ 1u});
    scopes.pop_back();
    added.pop_back();
  }
};

Smt::Smt(SmtOptions options) : search_(std::make_unique<Search>()), options_(std::move(options)) {
  nodes_.push_back({TermNode::Kind::constant, {}});
  nodes_.push_back({TermNode::Kind::constant, {}});
  names_.resize(2);
}

Smt::~Smt() = default;

Term Smt::intern(TermNode node) {
  std::uint64_t hash = static_cast<std::uint64_t>(node.kind) + 0x9e3779b97f4a7c15ull;
  for (const Term child : node.children) hash = (hash ^ child.id) * 0x100000001b3ull + (hash >> 29);
  const auto [first, last] = index_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    const TermNode& known = nodes_[entry->second];
    if (known.kind == node.kind && known.children == node.children) return Term{entry->second};
  }
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(std::move(node));
  names_.emplace_back();
  index_.emplace(hash, id);
  return Term{id};
}

Term Smt::variable(std::string name) {
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  // The solver knows variables by name alone: equal names would be one variable.
  if (!used_names_.insert(name).second) name += " #" + std::to_string(id);
  nodes_.push_back({TermNode::Kind::variable, {}});
  names_.push_back(std::move(name));
  return Term{id};
}

Term Smt::negate(Term a) {
  if (a == kFalse) return kTrue;
  if (a == kTrue) return kFalse;
  if (nodes_[a.id].kind == TermNode::Kind::negation) return nodes_[a.id].children[0];
  if (negations_.size() < nodes_.size()) negations_.resize(nodes_.size(), 0);
  if (negations_[a.id] == 0) {
    negations_[a.id] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({TermNode::Kind::negation, {a}});
    names_.emplace_back();
  }
  return Term{negations_[a.id]};
}

Term Smt::all(std::vector<Term> terms) {
  if (std::find(terms.begin(), terms.end(), kFalse) != terms.end()) return kFalse;
  std::vector<Term> flat;
  for (const Term term : terms) {
    if (term == kTrue) continue;
    if (nodes_[term.id].kind == TermNode::Kind::conjunction && nodes_[term.id].children.size() <= 8) {
      flat.insert(flat.end(), nodes_[term.id].children.begin(), nodes_[term.id].children.end());
    } else {
      flat.push_back(term);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const Term term : flat) {
    if (nodes_[term.id].kind == TermNode::Kind::negation &&
        std::binary_search(flat.begin(), flat.end(), nodes_[term.id].children[0])) {
      return kFalse;
    }
  }
  if (flat.empty()) return kTrue;
  if (flat.size() == 1) return flat[0];
  return intern({TermNode::Kind::conjunction, std::move(flat)});
}

Term Smt::any(std::vector<Term> terms) {
  if (std::find(terms.begin(), terms.end(), kTrue) != terms.end()) return kTrue;
  terms.erase(std::remove(terms.begin(), terms.end(), kFalse), terms.end());
  if (terms.empty()) return kFalse;
  if (terms.size() == 1) return terms[0];
  for (Term& term : terms) term = negate(term);
  return negate(all(std::move(terms)));
}

Term Smt::both(Term a, Term b) {
  if (a == kFalse || b == kFalse) return kFalse;
  if (a == kTrue || a == b) return b;
  if (b == kTrue) return a;
  return all({a, b});
}
Term Smt::either(Term a, Term b) {
  if (a == kTrue || b == kTrue) return kTrue;
  if (a == kFalse || a == b) return b;
  if (b == kFalse) return a;
  return any({a, b});
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
    const Term next = variable("ladder!" + std::to_string(nodes_.size()));
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
  const Answer answer = z3().check(nodes_, names_, required_, assumptions, model_, last_core_);
  has_model_ = answer == Answer::sat;
  return answer;
}

std::optional<Answer> Smt::search(const std::vector<Term>& assumptions) {
  has_model_ = false;
  last_core_.clear();
  search_->follow(required_, nodes_);
  std::vector<PropositionalSearch::Literal> literals = search_->scopes;
  for (const Term term : assumptions) literals.push_back(search_->translate(term, nodes_));
  switch (search_->engine.solve(literals, kConflictsPerMillisecond * options_.timeout_ms)) {
    case PropositionalSearch::Result::sat:
      model_.assign(nodes_.size(), 0);
      for (std::size_t id = 0; id < search_->literals.size(); ++id) {
        const PropositionalSearch::Literal literal = search_->literals[id];
        if (literal == Search::kAbsent) continue;
        model_[id] = search_->engine.value(literal >> 1) != ((literal & 1u) != 0) ? 1 : -1;
      }
      has_model_ = true;
      return Answer::sat;
    case PropositionalSearch::Result::unsat: {
      std::vector<PropositionalSearch::Literal> failed = search_->engine.failed();
      std::sort(failed.begin(), failed.end());
      std::unordered_set<std::uint32_t> taken;
      for (const Term term : assumptions) {
        if (std::binary_search(failed.begin(), failed.end(), search_->literals[term.id]) &&
            taken.insert(term.id).second)
          last_core_.push_back(term);
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
  if (model_.size() < nodes_.size()) model_.resize(nodes_.size(), 0);
  std::vector<std::uint32_t> stack{term.id};
  while (!stack.empty()) {
    const std::uint32_t id = stack.back();
    const TermNode& node = nodes_[id];
    bool ready = model_[id] == 0;
    for (std::size_t i = 0; ready && i < node.children.size(); ++i) {
      if (model_[node.children[i].id] != 0) continue;
      stack.push_back(node.children[i].id);
      ready = false;
    }
    if (model_[id] == 0 && !ready) continue;
    stack.pop_back();
    if (model_[id] != 0) continue;
    bool holds = false;
    if (node.kind == TermNode::Kind::constant) holds = id == kTrue.id;
    if (node.kind == TermNode::Kind::negation) holds = model_[node.children[0].id] < 0;
    if (node.kind == TermNode::Kind::conjunction)
      holds = std::all_of(node.children.begin(), node.children.end(),
                          [this](Term child) { return model_[child.id] > 0; });
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

// Core-guided (MaxRes): all soft terms of at least some weight are assumed; a core of them costs its least
// weight, and is replaced by terms that say "all but one". Heavy terms first, so that cores are about what
// matters.
std::optional<Answer> Smt::minimize_by_search(const std::vector<SoftTerm>& soft,
                                              const std::vector<Term>& assumptions) {
  const auto possible = search(assumptions);
  if (!possible || *possible == Answer::unsat) return possible;
  std::map<Term, std::uint64_t> weights;
  for (const SoftTerm& entry : soft) {
    if (entry.term != kTrue && entry.term != kFalse) weights[entry.term] += entry.weight;
  }
  std::uint64_t least = 0;
  for (const auto& [term, weight] : weights) least = std::max(least, weight);
  for (int round = 0; round < kMostCores; ++round) {
    std::vector<Term> question = assumptions;
    std::uint64_t below = 0;
    for (const auto& [term, weight] : weights) {
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
    std::vector<Term> core;
    for (const Term term : last_core_) {
      if (weights.contains(term) &&
          std::find(assumptions.begin(), assumptions.end(), term) == assumptions.end())
        core.push_back(term);
    }
    for (std::size_t i = core.size(); i-- > 0 && core.size() > 1;) {
      std::vector<Term> smaller = assumptions;
      for (std::size_t j = 0; j < core.size(); ++j) {
        if (j != i) smaller.push_back(core[j]);
      }
      if (search(smaller) == Answer::unsat) core.erase(core.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (core.empty()) return std::nullopt;  // a term that is assumed and soft at once
    std::uint64_t cost = weights.at(core[0]);
    for (const Term term : core) cost = std::min(cost, weights.at(term));
    for (const Term term : core) {
      if ((weights[term] -= cost) == 0) weights.erase(term);
    }
    Term rest = core.back();
    for (std::size_t i = core.size() - 1; i-- > 0;) {
      const Term relaxed = either(core[i], rest);
      if (relaxed != kTrue) weights[relaxed] += cost;
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
    answer = z3().minimize(nodes_, names_, required_, soft, assumptions, model_);
    has_model_ = *answer == Answer::sat;
  }
  if (*answer != Answer::sat) return *answer;
  for (const SoftTerm& entry : soft) {
    if (!value(entry.term)) cost += entry.weight;
  }
  return *answer;
}

std::string Smt::smt2(const std::vector<Term>& assumptions) {
  return z3().smt2(nodes_, names_, required_, assumptions);
}

}  // namespace capstan
