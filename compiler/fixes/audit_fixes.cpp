#include "compiler/fixes/audit_fixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/constraints/encode.h"
#include "compiler/fixes/suggest.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/repair.h"

namespace capstan {
namespace {

constexpr int kMostAuditRounds = 40;

bool is_choice(const Choice& choice, bool set, const Value& value) {
  return !choice.unknown && choice.set == set && choice.value == value;
}

/// Looks for a config on which one fix of one check works: the check is encoded twice, before and after the
/// fix, over the same keys.
class FixTrial {
 public:
  FixTrial(const Subject& empty, const RuleProbes& probes, std::uint32_t position, const ResolvedFix& fix,
           const SmtOptions& options)
      : empty_(empty), probes_(probes), position_(position), fix_(fix), options_(options) {}

  bool release_has_its_keys() const {
    return std::all_of(fix_.actions.begin(), fix_.actions.end(), [this](const ResolvedAction& action) {
      const KeyView view = empty_.key(action.key);
      return view.info == nullptr || view.spec != nullptr;
    });
  }

  bool works_somewhere() {
    for (Facts& variant : version_variants(empty_, probes_, position_)) {
      const Subject subject(empty_.config, empty_.book, std::move(variant));
      if (works_on_variant(subject)) return true;
    }
    return false;
  }

  bool works_on(const Facts& facts) const {
    const Subject subject(empty_.config, empty_.book, facts);
    return fix_can_work(subject, position_, fix_, options_);
  }

 private:
  bool works_on_variant(const Subject& subject) {
    std::set<std::uint32_t> held;
    for (int round = 0; round < kMostAuditRounds; ++round) {
      const std::size_t known = held.size();
      const std::optional<bool> answer = try_once(subject, held);
      if (answer) return *answer;
      if (held.size() == known) return false;
    }
    return false;
  }

  /// True or false: decided. Nothing: `held` has grown.
  std::optional<bool> try_once(const Subject& subject, std::set<std::uint32_t>& held) {
    const RuleIndex& index = subject.index();
    Smt smt(options_);
    Encoding before(smt, index, subject.facts);
    Encoding after(smt, index, subject.facts);
    std::set<FactId> inputs(index.inputs(position_).begin(), index.inputs(position_).end());
    for (const std::uint32_t other : held)
      inputs.insert(index.inputs(other).begin(), index.inputs(other).end());
    for (const ResolvedAction& action : fix_.actions) inputs.insert(action.key);
    std::vector<SoftTerm> soft;
    for (const FactId fact : inputs) {
      std::optional<Domain> domain = witness_domain(subject, probes_, fact);
      if (!domain) continue;
      before.open(fact, *domain);
      if (before.stays(fact) != kTrue) soft.push_back({before.stays(fact), 1});
      extend(subject, fact, *domain);
      after.open(fact, *domain);
    }
    for (const FactId fact : before.open_keys()) tie(smt, before, after, fact);
    smt.require(before.violated(position_));
    smt.require(smt.negate(smt.either(after.violated(position_), after.undecided(position_))));
    for (const std::uint32_t other : held)
      smt.require(smt.either(smt.negate(after.violated(other)), before.violated(other)));
    for (int refused = 0; refused < kMostAuditRounds; ++refused) {
      std::uint64_t cost = 0;
      if (smt.minimize(soft, {}, cost) != Answer::sat) return false;
      std::vector<Assignment> settings;
      std::vector<Term> here;
      for (const FactId fact : before.open_keys()) {
        if (smt.value(before.stays(fact))) continue;
        const Choice choice = before.decode(fact);
        if (!choice.unknown) settings.push_back({fact, choice.set, choice.value});
        here.push_back(smt.negate(before.stays(fact)));
      }
      const Subject changed(subject.config, subject.book, with_changes(subject.facts, settings));
      const std::size_t known = held.size();
      if (confirmed(changed, held)) return true;
      if (held.size() > known) return std::nullopt;
      // The encoding of the fix is coarser than the fix: never this set of changed keys again.
      smt.require(smt.negate(smt.all(std::move(here))));
    }
    return false;
  }

  bool confirmed(const Subject& subject, std::set<std::uint32_t>& held) const {
    const std::vector<std::uint32_t> first = violated_checks(subject.book, subject.facts);
    if (std::find(first.begin(), first.end(), position_) == first.end()) return false;
    const auto assignments = fix_assignments(subject, fix_);
    if (!assignments || assignments->empty()) return false;
    bool good = true;
    for (const std::uint32_t other : violated_checks(subject, *assignments)) {
      if (other == position_) good = false;
      if (std::find(first.begin(), first.end(), other) != first.end()) continue;
      good = false;
      held.insert(other);
    }
    return good;
  }

  /// The values that the fix gives a key join the key's values.
  void extend(const Subject& subject, FactId fact, Domain& domain) const {
    const auto add = [&domain](bool set, const Value& value) {
      if (std::none_of(domain.choices.begin(), domain.choices.end(),
                       [&](const Choice& known) { return is_choice(known, set, value); }))
        domain.choices.push_back({set, false, value});
    };
    for (const ResolvedAction& action : fix_.actions) {
      if (action.key != fact) continue;
      if (action.kind == FixAction::Kind::unset || action.value.literal.is_none())
        add(false, default_choice(subject, fact).value);
      if (action.kind == FixAction::Kind::set && action.value.children.empty() &&
          (action.value.op == ExprOp::literal || action.value.op == ExprOp::set))
        add(true, action.value.literal);
    }
  }

  /// What holds for a key after the fix, given what holds before.
  void tie(Smt& smt, Encoding& before, Encoding& after, FactId fact) const {
    const auto found = std::find_if(fix_.actions.begin(), fix_.actions.end(),
                                    [fact](const ResolvedAction& one) { return one.key == fact; });
    const ResolvedAction* action = found == fix_.actions.end() ? nullptr : &*found;
    const std::size_t shared = before.domain(fact).choices.size();
    const std::vector<Choice>& choices = after.domain(fact).choices;
    const auto require_choice = [&](bool set, const Value& value) {
      std::vector<Term> ways;
      for (std::size_t i = 0; i < choices.size(); ++i) {
        if (is_choice(choices[i], set, value)) ways.push_back(after.chosen(fact, i));
      }
      smt.require(smt.any(std::move(ways)));
    };
    if (action == nullptr) {
      for (std::size_t i = 0; i < shared; ++i)
        smt.require(smt.same(before.chosen(fact, i), after.chosen(fact, i)));
      if (!before.domain(fact).any_subset) return;
      smt.require(smt.same(before.is_subset(fact), after.is_subset(fact)));
      for (std::size_t token = 0; token < before.domain(fact).tokens.size(); ++token)
        smt.require(smt.same(before.member(fact, token), after.member(fact, token)));
      return;
    }
    const bool constant = action->value.children.empty() &&
                          (action->value.op == ExprOp::literal || action->value.op == ExprOp::set);
    switch (action->kind) {
      case FixAction::Kind::unset:
        require_choice(false, default_choice(empty_, fact).value);
        return;
      case FixAction::Kind::set:
        if (constant && action->value.literal.is_none())
          require_choice(false, default_choice(empty_, fact).value);
        else if (constant)
          require_choice(true, action->value.literal);
        else
          tie_value(smt, before, after, *action);
        return;
      case FixAction::Kind::add:
      case FixAction::Kind::remove:
        tie_elements(smt, before, after, fact);
        return;
    }
  }

  void tie_value(Smt& smt, Encoding& before, Encoding& after, const ResolvedAction& action) const {
    const Symbolic value = before.evaluate(action.value, static_cast<std::uint32_t>(empty_.index().size()));
    const std::vector<Choice>& choices = after.domain(action.key).choices;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const Term equal = choices[i].set ? before.equals(value, Scalar::of(choices[i].value)) : kFalse;
      smt.require(smt.implies(after.chosen(action.key, i), equal));
    }
  }

  /// Only lists of the known words are followed.
  void tie_elements(Smt& smt, Encoding& before, Encoding& after, FactId fact) const {
    const Domain& domain = before.domain(fact);
    if (!domain.any_subset) return;
    smt.require(after.is_subset(fact));
    for (std::size_t token = 0; token < domain.tokens.size(); ++token) {
      const ResolvedAction* concerned = nullptr;
      for (const ResolvedAction& action : fix_.actions) {
        if (action.key == fact && names(action, Value(domain.tokens[token]))) concerned = &action;
      }
      const Term member = after.member(fact, token);
      if (concerned != nullptr)
        smt.require(concerned->kind == FixAction::Kind::add ? member : smt.negate(member));
      else
        smt.require(smt.implies(before.is_subset(fact), smt.same(member, before.member(fact, token))));
    }
    const bool removes = std::any_of(
        fix_.actions.begin(), fix_.actions.end(),
        [&](const ResolvedAction& one) { return one.key == fact && one.kind == FixAction::Kind::remove; });
    if (removes) smt.require(before.is_subset(fact));
  }

  static bool names(const ResolvedAction& action, const Value& word) {
    const Value& named = action.value.literal;
    return named == word || (named.kind() == Value::Kind::list &&
                             std::find(named.list().begin(), named.list().end(), word) != named.list().end());
  }

  const Subject& empty_;
  const RuleProbes& probes_;
  std::uint32_t position_;
  const ResolvedFix& fix_;
  SmtOptions options_;
};

}  // namespace

std::vector<AuditFinding> audit_fixes(const Subject& empty, const RuleProbes& probes, const RuleAudit& audit,
                                      const SmtOptions& options) {
  std::vector<AuditFinding> findings;
  for (const auto& [position, example] : audit.examples) {
    const RuleItem& item = empty.index().item(position);
    if (item.kind != RuleItem::Kind::check) continue;
    for (const ResolvedFix& fix : item.fixes) {
      FixTrial trial(empty, probes, position, fix, options);
      if (!trial.release_has_its_keys() || trial.works_on(example.facts) || trial.works_somewhere()) continue;
      findings.push_back(
          {AuditFinding::Kind::unsound_fix,
           position,
           fmt::format("fix `{}` clears the finding on no config tried, first {}", fix.title,
                       example.settings.empty() ? "an empty config" : describe(empty, example.settings)),
           {}});
    }
  }
  return findings;
}

}  // namespace capstan
