#include "compiler/solve/conflict.h"

#include <algorithm>
#include <set>

#include "compiler/ruleset/rule_values.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

constexpr int kMostRulesInAChain = 12;
constexpr std::size_t kMostElements = 32;
constexpr std::size_t kMostTriedOfAKey = 8;

/// The user states it, if not always in a key: arguments of a front-end have none.
bool is_said(const Subject& subject, FactId fact) {
  return is_changeable(subject, fact) || subject.name(fact).starts_with("arguments.");
}

bool can_vary(const Subject& subject, FactId fact) {
  if (subject.is_broken(fact)) return false;
  if (is_said(subject, fact)) return true;
  const std::string& name = subject.name(fact);
  return name.starts_with("target.") || name.starts_with("cluster.");
}

/// Blamed and set first, what nobody can change last; the core keeps elements at the front in preference.
std::vector<FactId> by_blame(const Subject& subject, const RuleItem& item, std::vector<FactId> facts) {
  const auto rank = [&](FactId fact) {
    const auto blamed = std::find(item.blame.begin(), item.blame.end(), fact);
    const bool set = subject.facts.values[fact].set;
    const bool changeable = is_said(subject, fact);
    return std::tuple(!changeable, !set, blamed == item.blame.end(), blamed - item.blame.begin(), fact);
  };
  std::sort(facts.begin(), facts.end(), [&](FactId a, FactId b) { return rank(a) < rank(b); });
  return facts;
}

}  // namespace

Explainer::Explainer(const Subject& subject, const std::vector<std::uint32_t>& positions,
                     const SmtOptions& options)
    : subject_(subject), smt_(options), encoding_(smt_, subject.index(), subject.facts) {
  std::set<FactId> inputs;
  for (const std::uint32_t position : positions) {
    inputs.insert(subject.index().inputs(position).begin(), subject.index().inputs(position).end());
  }
  for (const FactId fact : inputs) {
    if (can_vary(subject, fact)) encoding_.open(fact, explain_domain(subject, fact));
  }
}

Explainer::~Explainer() = default;

Conflict Explainer::explain(std::uint32_t position) {
  const RuleItem& item = subject_.index().item(position);
  Conflict conflict;
  conflict.position = position;
  const Term fine = smt_.negate(encoding_.violated(position));
  std::vector<FactId> facts;
  for (const FactId fact : subject_.index().inputs(position)) {
    if (encoding_.stays(fact) != kTrue) facts.push_back(fact);
  }
  facts = by_blame(subject_, item, std::move(facts));
  std::vector<Term> stays;
  for (const FactId fact : facts) stays.push_back(encoding_.stays(fact));
  smt_.push();
  smt_.require(fine);
  std::vector<Term> core;
  conflict.minimal = smt_.minimal_core(stays, core);
  if (conflict.minimal != Answer::sat) {
    for (std::size_t i = 0; i < facts.size(); ++i) {
      if (std::find(core.begin(), core.end(), stays[i]) != core.end())
        conflict.participants.push_back({facts[i], {}});
    }
  } else {
    for (const FactId fact : facts) conflict.participants.push_back({fact, {}});
  }
  // Narrow each list to the elements that matter: the same question with the list as a set of tokens.
  for (Participant& participant : conflict.participants) {
    if (!encoding_.is_open(participant.fact)) continue;
    const Domain& domain = encoding_.domain(participant.fact);
    const Value& value = subject_.facts.values[participant.fact].value;
    if (conflict.minimal != Answer::unsat || !domain.any_subset || value.kind() != Value::Kind::list ||
        value.list().size() < 2)
      continue;
    std::vector<Term> question;
    for (std::size_t token = 0; token < domain.tokens.size(); ++token) {
      const bool present = has_element(value.list(), Value(domain.tokens[token]));
      const Term member = encoding_.member(participant.fact, token);
      question.push_back(present ? member : smt_.negate(member));
    }
    const std::vector<Term> members = question;
    question.insert(question.begin(), encoding_.is_subset(participant.fact));
    for (const Participant& other : conflict.participants) {
      if (other.fact != participant.fact) question.insert(question.begin(), encoding_.stays(other.fact));
    }
    std::vector<Term> narrow;
    if (smt_.minimal_core(question, narrow) != Answer::unsat) continue;
    for (std::size_t i = 0; i < value.list().size(); ++i) {
      for (std::size_t token = 0; token < domain.tokens.size(); ++token) {
        if (!same_value(value.list()[i], Value(domain.tokens[token]))) continue;
        if (std::find(narrow.begin(), narrow.end(), members[token]) != narrow.end())
          participant.elements.push_back(i);
      }
    }
  }
  smt_.pop();
  return conflict;
}

std::string Explainer::smt2(std::uint32_t position) {
  smt_.push();
  smt_.require(smt_.negate(encoding_.violated(position)));
  std::vector<Term> stays;
  for (const FactId fact : subject_.index().inputs(position)) {
    if (encoding_.stays(fact) != kTrue) stays.push_back(encoding_.stays(fact));
  }
  std::string text = smt_.smt2(stays);
  smt_.pop();
  return text;
}

std::vector<std::size_t> elements_at_fault(const Subject& subject, std::uint32_t position, FactId fact) {
  const Fact& now = subject.facts.values[fact];
  const Value& value = now.value;
  if (now.state != Fact::State::known || value.kind() != Value::Kind::list ||
      value.list().size() > kMostElements)
    return {};
  const auto holds_without = [&](const std::vector<std::size_t>& left_out) {
    Value::List rest;
    for (std::size_t i = 0; i < value.list().size(); ++i) {
      if (!std::binary_search(left_out.begin(), left_out.end(), i)) rest.push_back(value.list()[i]);
    }
    const auto violated = violated_checks(subject, {{fact, now.set, Value(std::move(rest))}});
    return !std::binary_search(violated.begin(), violated.end(), position);
  };
  std::vector<std::size_t> alone;
  for (std::size_t i = 0; i < value.list().size(); ++i) {
    if (holds_without({i})) alone.push_back(i);
  }
  const std::vector<std::size_t> unknown = unknown_words(subject, fact);
  const bool whole = alone.size() == value.list().size() && alone.size() > 1;
  if (!alone.empty()) return !whole || alone == unknown ? alone : std::vector<std::size_t>{};
  return !unknown.empty() && holds_without(unknown) ? unknown : std::vector<std::size_t>{};
}

namespace {

/// Whether one of the first few ways to set the free keys meets the rule and adds no violation. Where one
/// does, no rules stand against it together, and no solver need be asked; that none does says nothing.
bool has_simple_way_out(const Subject& subject, std::uint32_t position, const std::vector<FactId>& free,
                        const std::vector<std::uint32_t>& before) {
  const auto does = [&](const std::vector<Assignment>& changes) {
    const std::vector<std::uint32_t> violated = violated_checks(subject, changes);
    return std::none_of(violated.begin(), violated.end(), [&](std::uint32_t one) {
      return one == position || (!std::binary_search(before.begin(), before.end(), one) &&
                                 subject.index().item(one).finding != FindingKind::advice);
    });
  };
  // Each key alone, then all of them together; the first choice is the value that does not do.
  std::vector<std::vector<Assignment>> ways;
  for (const FactId fact : free) {
    ways.emplace_back();
    const std::optional<Domain> domain = repair_domain(subject, fact);
    if (!domain) continue;
    for (std::size_t i = 1; i < domain->choices.size() && ways.back().size() < kMostTriedOfAKey; ++i) {
      const Choice& choice = domain->choices[i];
      if (choice.unknown) continue;
      ways.back().push_back({fact, choice.set, choice.value});
      if (does({ways.back().back()})) return true;
    }
  }
  if (free.size() < 2) return false;
  for (std::size_t i = 0; i < kMostTriedOfAKey; ++i) {
    std::vector<Assignment> together;
    bool any = false;
    for (const auto& way : ways) {
      if (way.empty()) continue;
      any = any || i < way.size();
      together.push_back(way[std::min(i, way.size() - 1)]);
    }
    if (!any) break;
    if (does(together)) return true;
  }
  return false;
}

}  // namespace

std::optional<Interaction> find_interaction(const Subject& subject, const Conflict& conflict,
                                            const SmtOptions& options) {
  std::vector<FactId> free;
  for (const Participant& participant : conflict.participants) {
    if (is_changeable(subject, participant.fact) && !subject.facts.values[participant.fact].set &&
        effect_of(subject, participant.fact) != KeyEffect::model) {
      free.push_back(participant.fact);
    }
  }
  if (free.empty()) {
    for (const Participant& participant : conflict.participants) {
      if (is_changeable(subject, participant.fact) &&
          effect_of(subject, participant.fact) != KeyEffect::model) {
        free.push_back(participant.fact);
        break;
      }
    }
  }
  if (free.empty()) return std::nullopt;
  const auto is_free = [&](FactId fact) { return std::find(free.begin(), free.end(), fact) != free.end(); };
  const std::vector<std::uint32_t> before = violated_checks(subject);
  if (has_simple_way_out(subject, conflict.position, free, before)) return std::nullopt;
  std::set<std::uint32_t> rules{conflict.position};
  while (rules.size() <= kMostRulesInAChain) {
    Smt smt(options);
    Encoding encoding(smt, subject.index(), subject.facts);
    std::set<FactId> inputs;
    for (const std::uint32_t rule : rules)
      inputs.insert(subject.index().inputs(rule).begin(), subject.index().inputs(rule).end());
    std::vector<std::pair<Term, FactId>> keys;
    for (const FactId fact : inputs) {
      if (is_free(fact)) {
        if (auto domain = repair_domain(subject, fact)) encoding.open(fact, std::move(*domain));
      } else if (can_vary(subject, fact)) {
        encoding.open(fact, explain_domain(subject, fact));
        if (encoding.stays(fact) != kTrue) keys.emplace_back(encoding.stays(fact), fact);
      }
    }
    std::vector<std::pair<Term, std::uint32_t>> active;
    std::vector<Term> assumptions;
    for (const std::uint32_t rule : rules) {
      const Term name = smt.variable(subject.index().item(rule).code + " " + std::to_string(rule));
      smt.require(smt.implies(name, smt.negate(encoding.violated(rule))));
      active.emplace_back(name, rule);
      assumptions.push_back(name);
    }
    for (const auto& [term, fact] : keys) assumptions.push_back(term);
    const Answer answer = smt.check(assumptions);
    if (answer == Answer::undecided) return std::nullopt;
    if (answer == Answer::sat) {
      std::vector<Assignment> changes;
      for (const FactId fact : free) {
        if (!encoding.is_open(fact)) continue;
        const Choice choice = encoding.decode(fact);
        if (!choice.unknown) changes.push_back({fact, choice.set, choice.value});
      }
      bool grown = false;
      for (const std::uint32_t position : violated_checks(subject, changes)) {
        if (std::binary_search(before.begin(), before.end(), position)) continue;
        if (subject.index().item(position).finding == FindingKind::advice) continue;
        grown |= rules.insert(position).second;
      }
      if (!grown) return std::nullopt;  // these keys alone offer a way out
      continue;
    }
    std::vector<Term> core;
    if (smt.minimal_core(assumptions, core) != Answer::unsat) return std::nullopt;
    const auto in_core = [&](Term term) { return std::find(core.begin(), core.end(), term) != core.end(); };
    Interaction interaction;
    interaction.free = free;
    interaction.whole = std::all_of(free.begin(), free.end(), [&](FactId fact) {
      return !encoding.is_open(fact) || lists_every_value(subject, fact, encoding.domain(fact));
    });
    for (const auto& [term, fact] : keys) {
      if (in_core(term)) interaction.keys.push_back(fact);
    }
    for (const auto& [term, rule] : active) {
      if (!in_core(term)) continue;
      ChainLink link;
      link.position = rule;
      const std::vector<FactId>& reads = subject.index().inputs(rule);
      const auto reads_fact = [&](FactId fact) {
        return std::binary_search(reads.begin(), reads.end(), fact);
      };
      std::copy_if(interaction.keys.begin(), interaction.keys.end(), std::back_inserter(link.because),
                   reads_fact);
      std::vector<FactId> about;
      std::copy_if(free.begin(), free.end(), std::back_inserter(about), reads_fact);
      if (!about.empty()) link.about = about[0];
      if (about.size() == 1) {
        const Domain& domain = encoding.domain(about[0]);
        link.listed = !domain.any_subset;
        for (const Choice& choice : domain.choices) {
          if (choice.unknown) continue;
          const auto violated = violated_checks(subject, {{about[0], choice.set, choice.value}});
          if (!std::binary_search(violated.begin(), violated.end(), rule)) link.allowed.push_back(choice);
        }
      }
      interaction.links.push_back(std::move(link));
    }
    if (interaction.links.size() < 2) return std::nullopt;
    return interaction;
  }
  return std::nullopt;
}

}  // namespace capstan
