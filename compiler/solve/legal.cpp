#include "compiler/solve/legal.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ruleset/message.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

/// The subject with changes, for explaining a config that nobody wrote.
Subject changed_subject(const Subject& subject, const std::vector<Assignment>& changes) {
  return {subject.config, subject.book, with_changes(subject.facts, changes)};
}

/// What the changed config violates and what reads the key, whether or not it is violated now.
std::vector<std::uint32_t> checks_against(const Subject& subject, const std::vector<Assignment>& changes,
                                          FactId key) {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t position : violated_checks(subject, changes)) {
    if (subject.index().item(position).finding == FindingKind::advice) continue;
    const auto& inputs = subject.index().inputs(position);
    if (!std::binary_search(inputs.begin(), inputs.end(), key)) continue;
    out.push_back(position);
  }
  return out;
}

}  // namespace

std::string message_of(const Subject& subject, std::uint32_t position,
                       const std::vector<Assignment>& changes) {
  const Facts facts = with_changes(subject.facts, changes);
  const std::uint32_t item = subject.book.rules.items[position];
  for (const Violation& violation : evaluate(subject.book.rules, facts).violations) {
    if (violation.item == item)
      return interpolate(subject.index().item(position).message, violation, facts, nullptr);
  }
  return subject.index().item(position).message;
}

LegalValues find_legal_values(const Subject& subject, FactId key, SmtOptions options) {
  LegalValues result;
  const auto domain = repair_domain(subject, key);
  if (!domain) return result;
  const KeyView view = subject.key(key);
  result.listed_all = view.spec != nullptr &&
                      (view.spec->type.boolean || (view.spec->type.string && !view.spec->values.empty() &&
                                                   !view.spec->values_are_open)) &&
                      !view.spec->type.integer && !view.spec->type.floating && !view.spec->type.list;
  const Fact& now = subject.facts.values[key];
  const auto add = [&](Assignment assignment, std::string what, bool current) {
    for (const LegalValue& known : result.values) {
      if (known.assignment == assignment) return;
    }
    LegalValue value{std::move(assignment), std::move(what), current, {}, {}};
    const std::vector<Assignment> changes{value.assignment};
    const std::vector<std::uint32_t> against = checks_against(subject, changes, key);
    if (!against.empty()) {
      const Subject changed = changed_subject(subject, changes);
      Explainer explainer(changed, against, options);
      for (const std::uint32_t position : against) {
        value.against.push_back(explainer.explain(position));
        value.reasons.push_back(message_of(subject, position, changes));
      }
    }
    result.values.push_back(std::move(value));
  };
  for (const Choice& choice : domain->choices) {
    if (choice.unknown) continue;
    const bool current =
        now.state == Fact::State::known && choice.set == now.set && choice.value == now.value;
    add({key, choice.set, choice.value},
        choice.set ? fmt::format("`{}`", to_text(choice.value))
                   : fmt::format("unset (`{}`)", to_text(choice.value)),
        current);
  }
  // Numbers in their order, after the current state and the default.
  std::stable_sort(result.values.begin(), result.values.end(), [](const LegalValue& a, const LegalValue& b) {
    const auto rank = [](const LegalValue& one) {
      const bool number = one.assignment.value.is_number() && one.assignment.set && !one.current;
      return std::pair(number ? 1 : 0, number ? one.assignment.value.number() : 0.0);
    };
    return rank(a) < rank(b);
  });
  if (domain->any_subset) {
    const Value::List list = now.value.kind() == Value::Kind::list ? now.value.list() : Value::List{};
    add({key, true, Value(Value::List{})}, "`[]`", false);
    for (const std::string& token : domain->tokens) {
      Value::List changed = list;
      const auto present = std::find(changed.begin(), changed.end(), Value(token));
      const bool has = present != changed.end();
      if (has)
        changed.erase(std::remove(changed.begin(), changed.end(), Value(token)), changed.end());
      else
        changed.emplace_back(token);
      add({key, true, Value(std::move(changed))}, fmt::format("{} `{}`", has ? "without" : "with", token),
          false);
    }
  }
  return result;
}

WhyNot explain_why_not(const Subject& subject, const Assignment& wanted, SmtOptions options) {
  WhyNot answer;
  const std::vector<Assignment> changes{wanted};
  const std::vector<std::uint32_t> against = checks_against(subject, changes, wanted.fact);
  const std::vector<std::uint32_t> after = violated_checks(subject, changes);
  for (const std::uint32_t position : violated_checks(subject)) {
    if (!std::binary_search(after.begin(), after.end(), position)) answer.cured.push_back(position);
  }
  if (against.empty()) return answer;
  const Subject changed = changed_subject(subject, changes);
  Explainer explainer(changed, against, options);
  for (const std::uint32_t position : against) {
    answer.against.push_back(explainer.explain(position));
    answer.reasons.push_back(message_of(subject, position, changes));
  }
  RepairRequest request;
  request.targets = against;
  request.fixed = changes;
  request.limit = 3;
  request.allow_new_advice = true;
  request.smt = options;
  answer.ways = find_repairs(subject, request);
  return answer;
}

}  // namespace capstan
