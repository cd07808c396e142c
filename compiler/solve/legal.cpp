#include "compiler/solve/legal.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ruleset/message.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/fill.h"

namespace capstan {
namespace {

/// One key and what is open beside it.
class Question {
 public:
  Question(const Subject& subject, FactId key, const std::vector<FactId>& open, const SmtOptions& options)
      : subject_(subject), key_(key), options_(options) {
    for (const FactId fact : open) {
      if (fact != key) open_.push_back(fact);
    }
    about_ = open_;
    about_.push_back(key);
  }

  const std::vector<FactId>& open() const { return open_; }
  const std::vector<FactId>& about() const { return about_; }

  Opposition ask(const Assignment& wanted) {
    Opposition opposition;
    const std::vector<Assignment> changes{wanted};
    // The facts as they would be, for explaining a config that nobody wrote; open keys open.
    const Facts changed = with_changes(subject_.facts, changes);
    const Subject whole(subject_.config, subject_.book, changed);
    const Subject judged(subject_.config, subject_.book, with_open(changed, open_));
    std::vector<std::uint32_t> against;
    for (const std::uint32_t position : violated_checks(judged)) {
      const RuleItem& item = subject_.index().item(position);
      // What reads an open key is a matter of the filling, which may leave that key unset.
      if (item.finding == FindingKind::advice || !reads_any(subject_.index(), position, {key_}) ||
          reads_any(subject_.index(), position, open_))
        continue;
      (forbids(item) ? against : opposition.warnings).push_back(position);
    }
    if (!against.empty()) {
      opposition.answer = Answer::unsat;
      Explainer explainer(judged, against, options_);
      for (const std::uint32_t position : against) {
        opposition.against.push_back(explainer.explain(position));
        opposition.reasons.push_back(message_of(judged, position, {}));
      }
      return opposition;
    }
    if (open_.empty()) return opposition;
    const std::vector<OpenKey> keys = open_keys(whole, open_);
    opposition.answer = fill(judged, keys, about_, rules_, options_).answer;
    if (opposition.answer == Answer::unsat) {
      ConflictSet conflicts = find_conflicts(judged, keys, &about_, 1, options_);
      if (!conflicts.conflicts.empty()) opposition.conflict = std::move(conflicts.conflicts[0]);
    }
    return opposition;
  }

  /// What leaves no value for the open keys whatever the key becomes.
  std::optional<MinimalConflict> always() {
    if (open_.empty()) return std::nullopt;
    const Subject judged(subject_.config, subject_.book, with_open(subject_.facts, about_));
    const std::vector<OpenKey> keys = open_keys(subject_, about_);
    if (fill(judged, keys, about_, rules_, options_).answer != Answer::unsat) return std::nullopt;
    ConflictSet conflicts = find_conflicts(judged, keys, &about_, 1, options_);
    return conflicts.conflicts.empty() ? MinimalConflict{} : std::move(conflicts.conflicts[0]);
  }

  /// Every value that the open keys have is tried.
  bool tries_all() const {
    const std::vector<OpenKey> keys = open_keys(subject_, open_);
    return keys.size() == open_.size() && std::all_of(keys.begin(), keys.end(), [this](const OpenKey& one) {
             return lists_every_value(subject_, one.fact, one.domain);
           });
  }

 private:
  const Subject& subject_;
  FactId key_;
  std::vector<FactId> open_, about_;
  std::set<std::uint32_t> rules_;
  SmtOptions options_;
};

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

LegalValues find_legal_values(const Subject& subject, FactId key, const std::vector<FactId>& open,
                              const SmtOptions& options) {
  LegalValues result;
  Question question(subject, key, open, options);
  result.filled_all = question.tries_all();
  result.always = question.always();
  const Subject judged(subject.config, subject.book, with_open(subject.facts, question.open()));
  for (const std::uint32_t position : violated_checks(judged)) {
    if (forbids(subject.index().item(position)) && !reads_any(subject.index(), position, question.about()))
      result.elsewhere.push_back(position);
  }
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
    LegalValue value{std::move(assignment), std::move(what), current, {}};
    if (result.always)
      value.opposition.answer = Answer::unsat;
    else
      value.opposition = question.ask(value.assignment);
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

WhyNot explain_why_not(const Subject& subject, const Assignment& wanted, const std::vector<FactId>& open,
                       const SmtOptions& options) {
  WhyNot answer;
  Question question(subject, wanted.fact, open, options);
  answer.opposition = question.ask(wanted);
  const Subject judged(subject.config, subject.book, with_open(subject.facts, question.open()));
  const std::vector<std::uint32_t> after = violated_checks(judged, {wanted});
  for (const std::uint32_t position : violated_checks(judged)) {
    if (!std::binary_search(after.begin(), after.end(), position)) answer.cured.push_back(position);
  }
  if (answer.opposition.answer != Answer::unsat) return answer;
  RepairRequest request;
  // All that is against the wanted state; what leaves no value for the open keys joins in the search.
  for (const std::uint32_t position : after) {
    if (forbids(subject.index().item(position)) && reads_any(subject.index(), position, question.about()))
      request.targets.push_back(position);
  }
  request.fixed = {wanted};
  const Subject whole(subject.config, subject.book, with_changes(subject.facts, {wanted}));
  request.open = open_keys(whole, question.open());
  request.limit = 3;
  request.allow_new_advice = true;
  request.smt = options;
  answer.ways = find_repairs(judged, request);
  return answer;
}

}  // namespace capstan
