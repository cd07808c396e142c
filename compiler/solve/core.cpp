#include "compiler/solve/core.h"

#include <algorithm>
#include <set>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

constexpr std::size_t kMostSeeds = 400;

bool contains(const std::vector<Term>& terms, Term term) {
  return std::find(terms.begin(), terms.end(), term) != terms.end();
}

}  // namespace

ConflictSet find_conflicts(const Subject& subject, const std::vector<FactId>& open, std::size_t limit,
                           const SmtOptions& options) {
  return find_conflicts(subject, open_keys(subject, open), nullptr, limit, options);
}

ConflictSet find_conflicts(const Subject& subject, const std::vector<OpenKey>& open,
                           const std::vector<FactId>* about, std::size_t limit, const SmtOptions& options) {
  ConflictSet result;
  // Rules that can take part: violated now, or dependent on an open key.
  std::set<std::uint32_t> rules;
  const auto counts = [&](std::uint32_t position) {
    return forbids(subject.index().item(position)) &&
           (about == nullptr || reads_any(subject.index(), position, *about));
  };
  const auto silent = [&](std::uint32_t position) {
    const auto& inputs = subject.index().inputs(position);
    return std::any_of(inputs.begin(), inputs.end(), [&](FactId fact) { return subject.is_broken(fact); });
  };
  for (const std::uint32_t position : violated_checks(subject)) {
    if (counts(position) && !silent(position)) rules.insert(position);
  }
  for (const OpenKey& key : open) {
    for (const std::uint32_t position : subject.index().checks_reading(key.fact)) {
      if (counts(position) && !silent(position)) rules.insert(position);
    }
  }
  if (rules.empty()) return result;

  Smt smt(options);
  Encoding encoding(smt, subject.index(), subject.facts);
  std::set<FactId> inputs;
  for (const std::uint32_t rule : rules)
    inputs.insert(subject.index().inputs(rule).begin(), subject.index().inputs(rule).end());
  std::vector<std::pair<FactId, Term>> elements;
  for (const FactId fact : inputs) {
    const auto key =
        std::find_if(open.begin(), open.end(), [fact](const OpenKey& one) { return one.fact == fact; });
    if (key != open.end()) {
      encoding.open(fact, key->domain);
      continue;
    }
    const std::string& name = subject.name(fact);
    if (!is_changeable(subject, fact) && !name.starts_with("target.") && !name.starts_with("cluster."))
      continue;
    encoding.open(fact, explain_domain(subject, fact));
    if (encoding.stays(fact) != kTrue) elements.emplace_back(fact, encoding.stays(fact));
  }
  // Settings first: a core keeps what stands in front, so defaults are blamed only where needed.
  std::stable_sort(elements.begin(), elements.end(), [&](const auto& a, const auto& b) {
    return subject.facts.values[a.first].set > subject.facts.values[b.first].set;
  });
  std::vector<std::pair<std::uint32_t, Term>> named;
  std::vector<Term> all_rules;
  for (const std::uint32_t rule : rules) {
    const Term name = smt.variable(subject.index().item(rule).code + " " + std::to_string(rule));
    smt.require(smt.implies(name, smt.negate(encoding.violated(rule))));
    named.emplace_back(rule, name);
    all_rules.push_back(name);
  }

  // The map solver knows which subsets of the elements were explored.
  Smt map(options);
  std::vector<Term> slots;
  for (const auto& [fact, term] : elements) slots.push_back(map.variable(subject.name(fact)));
  for (std::size_t round = 0; round < kMostSeeds; ++round) {
    std::vector<SoftTerm> prefer;
    for (const Term slot : slots) prefer.push_back({slot, 1});
    std::uint64_t cost = 0;
    const Answer next = map.minimize(prefer, {}, cost);
    if (next == Answer::unsat) {
      result.answer = result.conflicts.empty() ? Answer::sat : Answer::unsat;
      return result;
    }
    if (next == Answer::undecided) break;
    std::vector<Term> seed;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (map.value(slots[i])) seed.push_back(elements[i].second);
    }
    std::vector<Term> question = seed;
    question.insert(question.end(), all_rules.begin(), all_rules.end());
    const Answer answer = smt.check(question);
    if (answer == Answer::undecided) break;
    if (answer == Answer::sat) {
      // The seed is of greatest size, so it is a maximal satisfiable set already.
      std::vector<Term> outside;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!contains(seed, elements[i].second)) outside.push_back(slots[i]);
      }
      map.require(map.any(std::move(outside)));
      continue;
    }
    std::vector<Term> core;
    smt.push();
    for (const Term rule : all_rules) smt.require(rule);
    const Answer minimal = smt.minimal_core(seed, core);
    smt.pop();
    if (minimal == Answer::undecided) break;
    MinimalConflict conflict;
    std::vector<Term> blocked;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (!contains(core, elements[i].second)) continue;
      conflict.keys.push_back(elements[i].first);
      blocked.push_back(slots[i]);
    }
    std::vector<Term> needed;
    smt.push();
    for (const Term term : core) smt.require(term);
    if (smt.minimal_core(all_rules, needed) == Answer::unsat) {
      for (const auto& [rule, term] : named) {
        if (contains(needed, term)) conflict.rules.push_back(rule);
      }
    }
    smt.pop();
    result.conflicts.push_back(std::move(conflict));
    result.answer = Answer::unsat;
    if (blocked.empty()) return result;  // the rules alone cannot all hold
    map.require(map.negate(map.all(std::move(blocked))));
    if (result.conflicts.size() >= limit) {
      result.complete = false;
      return result;
    }
  }
  result.complete = false;
  if (result.conflicts.empty()) result.answer = Answer::undecided;
  return result;
}

}  // namespace capstan
