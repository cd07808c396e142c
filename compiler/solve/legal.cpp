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

namespace {

/// Follows a word through the rules: which facts may hold it, and whether some rule does more with it than
/// compare it with words of its own.
class WordUse {
 public:
  WordUse(const RuleIndex& index, FactId key) : holds_{key} {
    for (std::uint32_t position = 0; position < index.size(); ++position) {
      const RuleItem& item = index.item(position);
      if (item.has_when) looks_into_ = looks_into_ || looks_into(item.when);
      if (item.kind == RuleItem::Kind::check) looks_into_ = looks_into_ || looks_into(item.require);
      if (item.kind == RuleItem::Kind::define) take(item.defined, item.value);
      for (const ResolvedAction& action : item.assignments) take(action.key, action.value);
    }
  }
  bool looks_into() const { return looks_into_; }

 private:
  void take(FactId fact, const TypedExpr& value) {
    looks_into_ = looks_into_ || looks_into(value);
    if (is_word(value)) holds_.insert(fact);
  }
  /// The expression's value may be the word, or hold it.
  bool is_word(const TypedExpr& expr) const {
    switch (expr.op) {
      case ExprOp::name:
        return holds_.contains(expr.fact);
      case ExprOp::conditional:
        return is_word(expr.children[1]) || is_word(expr.children[2]);
      case ExprOp::coalesce:
      case ExprOp::set:
      case ExprOp::union_:
      case ExprOp::minus:
      case ExprOp::intersect:
      case ExprOp::call:
        return std::any_of(expr.children.begin(), expr.children.end(),
                           [this](const TypedExpr& child) { return is_word(child); });
      default:
        return false;
    }
  }
  static bool names_a_fact(const TypedExpr& expr) {
    return expr.op == ExprOp::name || std::any_of(expr.children.begin(), expr.children.end(), names_a_fact);
  }
  bool looks_into(const TypedExpr& expr) const {
    const auto some_child = [&](const auto& does) {
      return std::any_of(expr.children.begin(), expr.children.end(), does);
    };
    const bool holds_word = some_child([this](const TypedExpr& child) { return is_word(child); });
    switch (expr.op) {
      case ExprOp::call:
        if (holds_word) return true;
        break;
      case ExprOp::equal:
      case ExprOp::not_equal:
      case ExprOp::in:
      case ExprOp::not_in:
        // With what another fact says, it may agree by chance.
        if (holds_word &&
            some_child([this](const TypedExpr& child) { return !is_word(child) && names_a_fact(child); }))
          return true;
        break;
      case ExprOp::subset:
      case ExprOp::overlaps:
        if (holds_word) return true;
        break;
      default:
        break;
    }
    return some_child([this](const TypedExpr& child) { return looks_into(child); });
  }

  std::set<FactId> holds_;
  bool looks_into_ = false;
};

/// The checks that exclude every word that the domain lacks. Rules that only compare the key with words treat
/// all others alike, so one stands for all of them; nothing where a rule looks into the word.
std::vector<std::uint32_t> against_other_words(const Subject& subject, FactId key, const Domain& domain,
                                               Question& question) {
  const KeyView view = subject.key(key);
  if (view.spec == nullptr) return {};
  const TypeSet& type = view.spec->type;
  if (!type.string || type.any || type.boolean || type.integer || type.floating || type.list || type.table ||
      type.dtype || type.callable || type.version || type.pattern)
    return {};
  const auto listed = [&domain](const Value& value) {
    return std::any_of(domain.choices.begin(), domain.choices.end(),
                       [&value](const Choice& choice) { return choice.value == value; });
  };
  for (const Value& literal : subject.book.candidates.literals(key)) {
    if (literal.kind() == Value::Kind::string && !listed(literal)) return {};
  }
  if (WordUse(subject.index(), key).looks_into()) return {};
  const Value other("a word that no rule names");
  if (listed(other)) return {};
  std::vector<std::uint32_t> positions;
  for (const Conflict& conflict : question.ask({key, true, other}).against)
    positions.push_back(conflict.position);
  return positions;
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
  if (!result.listed_all && !result.always) {
    result.against_others = against_other_words(subject, key, *domain, question);
    result.listed_all = !result.against_others.empty();
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
