#include "compiler/constraints/encode.h"

#include <algorithm>
#include <utility>

namespace capstan {
namespace {

Scalar scalar_of(const Fact& fact) {
  if (fact.state == Fact::State::unknown) return Scalar::unknown();
  if (fact.is_version) return Scalar::of_version(fact.version);
  Scalar scalar = Scalar::of(fact.value);
  scalar.as_set = fact.is_set;
  return scalar;
}

Scalar scalar_of(const Choice& choice) {
  return choice.unknown ? Scalar::unknown() : Scalar::of(choice.value);
}

std::string label_of(const std::string& key, const Choice& choice) {
  if (choice.unknown) return key + " open";
  return key + (choice.set ? " = " : " unset: ") + to_text(choice.value);
}

}  // namespace

Encoding::Encoding(Smt& smt, const RuleIndex& index, const Facts& facts)
    : smt_(smt), index_(index), facts_(facts) {}

std::string Encoding::Variable::choice_name(std::size_t choice) const {
  return label_of(*name, domain.choices[choice]);
}

void Encoding::open(FactId key, Domain domain) {
  if (is_open(key)) return;
  Variable& variable = variables_[key];
  variable = {&facts_.names->name(key), std::move(domain), {}, kFalse, {}};
  const std::size_t count = variable.domain.choices.size();
  if (count == 1 && !variable.domain.any_subset) {
    variable.choices = {kTrue};
    return;
  }
  variable.choices.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    variable.choices.push_back(smt_.variable([&variable, i] { return variable.choice_name(i); }));
  std::vector<Term> all = variable.choices;
  if (variable.domain.any_subset) {
    variable.subset = smt_.variable([&variable] { return *variable.name + " is a list"; });
    all.push_back(variable.subset);
    for (std::size_t i = 0; i < variable.domain.tokens.size(); ++i) {
      variable.members.push_back(
          smt_.variable([&variable, i] { return *variable.name + " has " + variable.domain.tokens[i]; }));
    }
  }
  smt_.require_exactly_one(all);
}

std::vector<FactId> Encoding::open_keys() const {
  std::vector<FactId> keys;
  for (const auto& [key, variable] : variables_) keys.push_back(key);
  return keys;
}

Term Encoding::stays(FactId key) const {
  const auto found = variables_.find(key);
  return found == variables_.end() ? kTrue : found->second.choices.at(0);
}

Term Encoding::chosen(FactId key, std::size_t choice) const {
  return variables_.at(key).choices.at(choice);
}
Term Encoding::is_subset(FactId key) const {
  return variables_.at(key).subset;
}
Term Encoding::member(FactId key, std::size_t token) const {
  return variables_.at(key).members.at(token);
}

Symbolic Encoding::initial(FactId fact) {
  Symbolic value;
  const auto found = variables_.find(fact);
  if (found == variables_.end()) {
    value.cases.push_back(
        {kTrue, fact < facts_.values.size() ? scalar_of(facts_.values[fact]) : Scalar::unknown()});
    return value;
  }
  const Variable& variable = found->second;
  // The current state may be a version or unknown, which a Choice cannot say: the fact itself does.
  add_case(value, variable.choices[0],
           variable.domain.choices[0].unknown ? Scalar::unknown()
           : facts_.values[fact].is_version   ? scalar_of(facts_.values[fact])
                                              : scalar_of(variable.domain.choices[0]));
  for (std::size_t i = 1; i < variable.choices.size(); ++i) {
    add_case(value, variable.choices[i], scalar_of(variable.domain.choices[i]));
  }
  value.set_guard = variable.subset;
  for (std::size_t i = 0; i < variable.members.size(); ++i) {
    value.members.emplace_back(Value(variable.domain.tokens[i]), variable.members[i]);
  }
  return value;
}

Term Encoding::set_term(FactId fact) {
  const auto found = variables_.find(fact);
  if (found == variables_.end()) return smt_.constant(fact < facts_.values.size() && facts_.values[fact].set);
  const Variable& variable = found->second;
  std::vector<Term> ways{variable.subset};
  for (std::size_t i = 0; i < variable.choices.size(); ++i) {
    if (variable.domain.choices[i].set) ways.push_back(variable.choices[i]);
  }
  return smt_.any(std::move(ways));
}

const Symbolic& Encoding::fact_before(FactId fact, std::uint32_t position) {
  const std::optional<std::uint32_t> writer = index_.last_writer(fact, position);
  const std::uint64_t key = (static_cast<std::uint64_t>(fact) << 32) | (writer ? *writer + 1 : 0);
  if (const auto found = versions_.find(key); found != versions_.end()) return found->second;
  Symbolic value;
  if (!writer) {
    value = initial(fact);
  } else {
    const RuleItem& item = index_.item(*writer);
    if (item.kind == RuleItem::Kind::define) {
      value = evaluate(item.value, *writer);
    } else {
      const Condition when = item.has_when ? condition(item.when, *writer) : Condition{kTrue, kFalse};
      value = fact_before(fact, *writer);
      for (const ResolvedAction& action : item.assignments) {
        if (action.key != fact || when.no == kTrue) continue;
        Symbolic unknown;
        unknown.cases.push_back({kTrue, Scalar::unknown()});
        value = merge(when.yes, evaluate(action.value, *writer), merge(when.no, value, unknown));
      }
    }
  }
  return versions_.emplace(key, std::move(value)).first->second;
}

Condition Encoding::judge(std::uint32_t position) {
  if (const auto found = verdicts_.find(position); found != verdicts_.end()) return found->second;
  const RuleItem& item = index_.item(position);
  const Condition when = item.has_when ? condition(item.when, position) : Condition{kTrue, kFalse};
  const Condition require = when.no == kTrue ? Condition{kTrue, kFalse} : condition(item.require, position);
  const Condition verdict{smt_.either(when.no, require.yes), smt_.both(when.yes, require.no)};
  verdicts_.emplace(position, verdict);
  return verdict;
}

Term Encoding::violated(std::uint32_t position) {
  return judge(position).no;
}

Term Encoding::undecided(std::uint32_t position) {
  const Condition verdict = judge(position);
  return smt_.negate(smt_.either(verdict.yes, verdict.no));
}

Choice Encoding::decode(FactId key) const {
  const Variable& variable = variables_.at(key);
  for (std::size_t i = 0; i < variable.choices.size(); ++i) {
    if (smt_.value(variable.choices[i])) return variable.domain.choices[i];
  }
  Value::List list;
  for (std::size_t i = 0; i < variable.members.size(); ++i) {
    if (smt_.value(variable.members[i])) list.emplace_back(variable.domain.tokens[i]);
  }
  return {true, false, Value(std::move(list))};
}

Scalar Encoding::decode(const Symbolic& value) const {
  for (const Symbolic::Case& entry : value.cases) {
    if (smt_.value(entry.guard)) return entry.scalar;
  }
  Scalar set = Scalar::of(Value(Value::List{}));
  set.as_set = true;
  for (const auto& [element, term] : value.members) {
    if (smt_.value(term)) set.value.list().push_back(element);
  }
  return set;
}

}  // namespace capstan
