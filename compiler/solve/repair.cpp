#include "compiler/solve/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

// A proposal that breaks further rules makes the question grow; configs need a handful of rounds.
constexpr int kMostRepairRounds = 60;
constexpr std::uint32_t kScale = 32;  // room for the rank of a choice below the weight of a key
constexpr std::ptrdiff_t kMostAlike = 2;
constexpr int kMostNeedless = 12;
constexpr std::int64_t kMostTimes = 4;  // larger or smaller, of a size that stays sensible
constexpr std::uint32_t kUnevenRank = 12;
constexpr std::uint32_t kAnotherRunWeight = 100;  // above all changes that leave the job what it is
constexpr std::uint32_t kListRank = 8;  // a list put together anew comes after what authors of fixes write

bool counts(const RuleItem& item, bool allow_new_advice) {
  return !(allow_new_advice && item.finding == FindingKind::advice);
}

class Search {
 public:
  /// With `any_value`, values that nobody would write are tried as well.
  Search(const Subject& subject, const RepairRequest& request, bool any_value)
      : subject_(subject),
        request_(request),
        any_value_(any_value),
        base_(with_changes(subject.facts, request.fixed)) {
    for (const OpenKey& key : request.open) open_.push_back(key.fact);
    std::sort(open_.begin(), open_.end());
    for (const std::uint32_t position : violated_checks(subject)) {
      if (!reads_any(subject.index(), position, open_)) before_.insert(position);
    }
    rules_.insert(request.targets.begin(), request.targets.end());
    if (!request.allow_new_advice) return;
    for (const std::uint32_t position : violated_with({})) {
      if (!forbids(subject.index().item(position))) before_.insert(position);
    }
  }

  /// Values were left out of the question.
  bool left_out_values() const { return left_out_values_; }

  Repairs run() {
    Repairs repairs;
    if (!request_.fixed.empty() && open_.empty() && accept({})) {
      repairs.found.push_back(make({}));
      return repairs;
    }
    bool exhausted = false;
    for (int round = 0; !exhausted && repairs.found.size() < request_.limit; ++round) {
      if (round == kMostRepairRounds || !extend(repairs, exhausted)) {
        repairs.complete = false;
        break;
      }
    }
    std::stable_sort(repairs.found.begin(), repairs.found.end(), [](const Repair& a, const Repair& b) {
      return std::tuple(a.applicability, a.another_run, a.cost, a.weight) <
             std::tuple(b.applicability, b.another_run, b.cost, b.weight);
    });
    return repairs;
  }

 private:
  std::vector<std::uint32_t> violated_with(const std::vector<Assignment>& changes) const {
    std::vector<Assignment> all = request_.fixed;
    all.insert(all.end(), changes.begin(), changes.end());
    return violated_checks(subject_, all);
  }

  bool is_fixed(FactId fact) const {
    return std::any_of(request_.fixed.begin(), request_.fixed.end(),
                       [fact](const Assignment& change) { return change.fact == fact; });
  }

  bool is_open(FactId fact) const { return std::binary_search(open_.begin(), open_.end(), fact); }

  bool may_change(FactId fact) const {
    if (is_fixed(fact) || is_open(fact) || subject_.is_broken(fact) || !is_changeable(subject_, fact))
      return false;
    if (std::find(request_.frozen.begin(), request_.frozen.end(), fact) != request_.frozen.end())
      return false;
    return request_.touch_model || effect_of(subject_, fact) != KeyEffect::model;
  }

  /// Whether the changes clear the targets and add nothing; what they add joins the rules of the question.
  bool accept(const std::vector<Assignment>& changes) {
    bool good = true;
    for (const std::uint32_t position : violated_with(changes)) {
      const bool target =
          std::find(request_.targets.begin(), request_.targets.end(), position) != request_.targets.end();
      const bool added =
          !before_.contains(position) && counts(subject_.index().item(position), request_.allow_new_advice);
      if (!target && !added) continue;
      good = false;
      rules_.insert(position);
    }
    return good;
  }

  /// Without one of the changes the rest does as well: no repair of its own, only another one with something
  /// beside.
  bool has_needless_change(const std::vector<Assignment>& changes,
                           const std::vector<Assignment>& filling) const {
    for (std::size_t left_out = 0; left_out < changes.size() && changes.size() > 1; ++left_out) {
      std::vector<Assignment> rest = changes;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
      rest.insert(rest.end(), filling.begin(), filling.end());
      bool good = true;
      for (const std::uint32_t position : violated_with(rest)) {
        const bool target =
            std::find(request_.targets.begin(), request_.targets.end(), position) != request_.targets.end();
        const bool added =
            !before_.contains(position) && counts(subject_.index().item(position), request_.allow_new_advice);
        good = good && !target && !added;
      }
      if (good) return true;
    }
    return false;
  }

  Repair make(std::vector<Assignment> changes) const {
    Repair repair;
    repair.changes = std::move(changes);
    for (const Assignment& fixed : request_.fixed) repair.changes.push_back(fixed);
    std::sort(repair.changes.begin(), repair.changes.end(), [this](const Assignment& a, const Assignment& b) {
      return subject_.name(a.fact) < subject_.name(b.fact);
    });
    for (const Assignment& change : repair.changes) {
      const CostClass cost = cost_class_of(effect_of(subject_, change.fact));
      repair.cost = std::max(repair.cost, cost);
      repair.weight += change_weight(subject_, change.fact, request_.touch_model);
      repair.another_run = repair.another_run || makes_another_run(subject_, change);
      if (!is_safe_change(subject_, change.fact)) repair.applicability = Applicability::unsafe;
    }
    return repair;
  }

  /// One encoding over the present rules; takes solutions from it until one breaks a further rule. False:
  /// undecided.
  bool extend(Repairs& repairs, bool& exhausted) {
    Smt smt(request_.smt);
    Encoding encoding(smt, subject_.index(), base_);
    std::set<FactId> inputs;
    for (const std::uint32_t rule : rules_)
      inputs.insert(subject_.index().inputs(rule).begin(), subject_.index().inputs(rule).end());
    std::vector<SoftTerm> soft;
    for (const OpenKey& key : request_.open) encoding.open(key.fact, key.domain);
    for (const FactId fact : inputs) {
      if (!may_change(fact)) continue;
      auto domain = repair_domain(subject_, fact);
      if (!domain) continue;
      if (!any_value_) leave_out_odd_values(fact, *domain);
      encoding.open(fact, std::move(*domain));
      weigh(smt, encoding, fact, soft);
    }
    for (const std::uint32_t rule : rules_) {
      smt.require(smt.negate(encoding.violated(rule)));
      // A target must be met for certain; of other rules it is enough that they are not violated.
      if (std::find(request_.targets.begin(), request_.targets.end(), rule) != request_.targets.end()) {
        smt.require(smt.negate(encoding.undecided(rule)));
      }
    }
    std::vector<Repair> blocked;
    for (const Repair& known : repairs.found) {
      blocked.push_back(known);
      block(smt, encoding, known.changes);
      block_repeated(smt, encoding, blocked);
    }
    int needless = 0;
    while (repairs.found.size() < request_.limit) {
      std::uint64_t cost = 0;
      const Answer answer = smt.minimize(soft, {}, cost);
      if (answer == Answer::undecided) return false;
      if (answer == Answer::unsat) {
        exhausted = true;
        return !encoding.too_wide();
      }
      std::vector<Assignment> changes, filling;
      for (const FactId fact : encoding.open_keys()) {
        const bool open = is_open(fact);
        if (!open && smt.value(encoding.stays(fact))) continue;
        const Choice choice = encoding.decode(fact);
        if (!choice.unknown) (open ? filling : changes).push_back({fact, choice.set, choice.value});
      }
      std::vector<Assignment> together = changes;
      together.insert(together.end(), filling.begin(), filling.end());
      const std::size_t known = rules_.size();
      if (accept(together)) {
        if (has_needless_change(changes, filling)) {
          block(smt, encoding, changes);
          if (++needless > kMostNeedless) {
            exhausted = true;
            return true;
          }
          continue;
        }
        repairs.found.push_back(make(changes));
        block(smt, encoding, repairs.found.back().changes);
        block_repeated(smt, encoding, repairs.found);
      } else if (rules_.size() > known) {
        return true;
      } else {
        // The evaluator refuses what the encoding allows without naming a new rule: never propose it again.
        block(smt, encoding, together);
      }
    }
    return true;
  }

  /// A key that rules compare or calculate with this one is set to the value.
  bool is_stated_beside(FactId fact, const Value& value) const {
    const std::vector<FactId>& mates = subject_.book.candidates.mates(fact);
    return subject_.facts.values[fact].set && std::any_of(mates.begin(), mates.end(), [&](FactId mate) {
             const Fact& other = subject_.facts.values[mate];
             return mate != fact && other.set && other.value == value;
           });
  }

  /// A number of ranks that stands in no proportion to the present one is nobody's layout.
  bool is_odd_number_of_ranks(FactId fact, std::int64_t number) const {
    const Value& now = subject_.facts.values[fact].value;
    if (!subject_.name(fact).ends_with("_parallel_size") || now.kind() != Value::Kind::integer ||
        now.integer() < 1 || number <= now.integer())
      return false;
    return number % now.integer() != 0 && !std::has_single_bit(static_cast<std::uint64_t>(number));
  }

  /// Sizes keep what powers of two they have, up to four: 8 layers become 12 before they become 9.
  std::uint32_t unevenness(FactId fact, const Value& value) const {
    const Value& now = subject_.facts.values[fact].value;
    if (effect_of(subject_, fact) != KeyEffect::model || value.kind() != Value::Kind::integer ||
        now.kind() != Value::Kind::integer || value.integer() < 1 || now.integer() < 1)
      return 0;
    const int kept = std::countr_zero(static_cast<std::uint64_t>(value.integer()));
    return kept < std::min(2, std::countr_zero(static_cast<std::uint64_t>(now.integer()))) ? kUnevenRank : 0;
  }

  /// A size of the model is changed to a near one, or dropped where a default or a derivation takes its
  /// place; a count that is off unless it is set is not lowered to 1.
  void leave_out_odd_values(FactId fact, Domain& domain) {
    const KeyView view = subject_.key(fact);
    if (view.spec == nullptr || !view.spec->type.integer) return;
    const Choice standard = default_choice(subject_, fact);
    const Value& now = subject_.facts.values[fact].value;
    const bool is_size = effect_of(subject_, fact) == KeyEffect::model;
    const std::int64_t size = now.kind() == Value::Kind::integer ? now.integer() : 0;
    const std::vector<Value>& advised = subject_.book.candidates.advised(fact);
    const auto odd = [&](const Choice& choice) {
      if (choice.unknown || choice.value.kind() != Value::Kind::integer) return false;
      const std::int64_t number = choice.value.integer();
      if (std::find(advised.begin(), advised.end(), choice.value) != advised.end()) return false;
      if (is_odd_number_of_ranks(fact, number)) return true;
      if (standard.value.is_none() && number <= 1 && (size >= 2 || is_size)) return true;
      if (!is_size) return false;
      if (number < 1) return size >= 1;  // 0 layers are no model
      if (size < 1) return standard.value.is_none() && !is_stated_beside(fact, choice.value);
      return number < size / kMostTimes || number / kMostTimes > size;
    };
    const auto kept = std::remove_if(domain.choices.begin() + 1, domain.choices.end(), odd);
    left_out_values_ = left_out_values_ || kept != domain.choices.end();
    domain.choices.erase(kept, domain.choices.end());
  }

  void weigh(Smt& smt, const Encoding& encoding, FactId fact, std::vector<SoftTerm>& soft) const {
    const Domain& domain = encoding.domain(fact);
    const std::uint32_t weight = change_weight(subject_, fact, request_.touch_model) * kScale;
    const auto more = [&](bool set, const Value& value) {
      return makes_another_run(subject_, {fact, set, value}) ? kAnotherRunWeight * kScale : 0;
    };
    for (std::size_t i = 1; i < domain.choices.size(); ++i) {
      const Choice& choice = domain.choices[i];
      soft.push_back(
          {smt.negate(encoding.chosen(fact, i)),
           weight + more(choice.set, choice.value) +
               std::min(static_cast<std::uint32_t>(i) + unevenness(fact, choice.value), kScale - 1)});
    }
    if (!domain.any_subset) return;
    soft.push_back(
        {smt.negate(encoding.is_subset(fact)), weight + more(true, Value(Value::List{})) + kListRank});
    const Value& now = subject_.facts.values[fact].value;
    for (std::size_t token = 0; token < domain.tokens.size(); ++token) {
      const Term member = encoding.member(fact, token);
      const bool present =
          now.kind() == Value::Kind::list && has_element(now.list(), Value(domain.tokens[token]));
      // Taking an element away is a smaller step than putting another in.
      soft.push_back(
          {smt.implies(encoding.is_subset(fact), present ? member : smt.negate(member)), present ? 4u : 6u});
    }
  }

  /// No later repair contains all of these changes.
  void block(Smt& smt, const Encoding& encoding, const std::vector<Assignment>& changes) const {
    std::vector<Term> all;
    for (const Assignment& change : changes) {
      if (!encoding.is_open(change.fact)) {
        if (is_fixed(change.fact)) continue;
        return;  // the key is not part of this question: its repair cannot be proposed as a superset here
      }
      all.push_back(is_state(smt, encoding, change));
    }
    smt.require(smt.negate(smt.all(std::move(all))));
  }

  /// Other values of the same keys are the same idea again: two of a kind are enough.
  void block_repeated(Smt& smt, const Encoding& encoding, const std::vector<Repair>& found) const {
    const auto same_keys = [](const Repair& a, const Repair& b) {
      return std::equal(a.changes.begin(), a.changes.end(), b.changes.begin(), b.changes.end(),
                        [](const Assignment& x, const Assignment& y) { return x.fact == y.fact; });
    };
    const Repair& last = found.back();
    const auto alike =
        std::count_if(found.begin(), found.end(), [&](const Repair& one) { return same_keys(one, last); });
    const std::size_t further = last.changes.size() - request_.fixed.size();
    if (alike < (further == 1 ? kMostAlike : 1)) return;
    std::vector<Term> changed;
    for (const Assignment& change : last.changes) {
      if (encoding.is_open(change.fact)) changed.push_back(smt.negate(encoding.stays(change.fact)));
    }
    smt.require(smt.negate(smt.all(std::move(changed))));
  }

  static Term is_state(Smt& smt, const Encoding& encoding, const Assignment& change) {
    const Domain& domain = encoding.domain(change.fact);
    std::vector<Term> ways;  // a list may be a choice of its own and a set of tokens
    for (std::size_t i = 0; i < domain.choices.size(); ++i) {
      const Choice& choice = domain.choices[i];
      // Unset, and set to the default, are one way out.
      if (choice.value == change.value && !choice.unknown) ways.push_back(encoding.chosen(change.fact, i));
    }
    if (domain.any_subset && change.set && change.value.kind() == Value::Kind::list) {
      std::vector<Term> parts{encoding.is_subset(change.fact)};
      for (std::size_t token = 0; token < domain.tokens.size(); ++token) {
        const Term member = encoding.member(change.fact, token);
        parts.push_back(has_element(change.value.list(), Value(domain.tokens[token])) ? member
                                                                                      : smt.negate(member));
      }
      ways.push_back(smt.all(std::move(parts)));
    }
    return smt.any(std::move(ways));
  }

  const Subject& subject_;
  const RepairRequest& request_;
  bool any_value_;
  bool left_out_values_ = false;
  Facts base_;
  std::set<std::uint32_t> before_;
  std::set<std::uint32_t> rules_;
  std::vector<FactId> open_;  // sorted
};

}  // namespace

CostClass cost_class_of(KeyEffect effect) {
  switch (effect) {
    case KeyEffect::free:
    case KeyEffect::run:
      return CostClass::free;
    case KeyEffect::memory:
      return CostClass::memory;
    case KeyEffect::speed:
      return CostClass::speed;
    case KeyEffect::model:
    case KeyEffect::numerics:
      return CostClass::numerics;
  }
  return CostClass::numerics;
}

bool changes_the_run(const Subject& subject, FactId fact) {
  return effect_of(subject, fact) == KeyEffect::run;
}

bool is_safe_change(const Subject& subject, FactId fact) {
  const CostClass cost = cost_class_of(effect_of(subject, fact));
  // Over how many GPUs a job is spread is the user's choice even where a config is silent.
  const bool asked = (subject.facts.values[fact].set && cost != CostClass::free) ||
                     subject.name(fact).ends_with("_parallel_size");
  return cost != CostClass::numerics && !asked && !changes_the_run(subject, fact);
}

bool makes_another_run(const Subject& subject, const Assignment& change) {
  if (!changes_the_run(subject, change.fact) || subject.key(change.fact).info == nullptr) return false;
  const Fact& now = subject.facts.values[change.fact];
  const auto counts = [](const Value& value) { return value.is_none() || value.is_number(); };
  if (counts(now.value) && counts(change.value)) return false;
  // A switch that goes back to where it stands by itself was asked for in vain.
  const bool is_switch = now.value.kind() == Value::Kind::boolean;
  return !is_switch || !now.set || (change.set && change.value != default_choice(subject, change.fact).value);
}

std::uint32_t change_weight(const Subject& subject, FactId fact, bool touch_model) {
  std::uint32_t weight = 0;
  switch (effect_of(subject, fact)) {
    case KeyEffect::free:
      weight = 2;
      break;
    case KeyEffect::run:
      weight = 3;
      break;
    case KeyEffect::memory:
      weight = 12;
      break;
    case KeyEffect::speed:
      weight = 16;
      break;
    case KeyEffect::numerics:
      weight = 60;
      break;
    case KeyEffect::model:
      // A stated size is adjusted before the model gets a part that it does not have.
      if (touch_model) return subject.facts.values[fact].set ? 400 : 900;
      weight = 4000;
      break;
  }
  return subject.facts.values[fact].set ? weight * 3 : weight;
}

std::string describe(const Subject& subject, const std::vector<Assignment>& changes) {
  std::string out;
  for (const Assignment& change : changes) {
    if (!out.empty()) out += ", ";
    out += change.set ? fmt::format("set `{}` to `{}`", subject.name(change.fact), to_text(change.value))
                      : fmt::format("unset `{}`", subject.name(change.fact));
  }
  return out;
}

Repairs find_repairs(const Subject& subject, const RepairRequest& request) {
  Search search(subject, request, false);
  Repairs repairs = search.run();
  if (repairs.found.empty() && search.left_out_values()) return Search(subject, request, true).run();
  return repairs;
}

}  // namespace capstan
