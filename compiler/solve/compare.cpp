#include "compiler/solve/compare.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/legal.h"

namespace capstan {
namespace {

constexpr int kMostWitnessRounds = 40;

bool speaks(const RuleItem& item) {
  return item.kind == RuleItem::Kind::check && item.finding == FindingKind::rejects;
}

std::set<std::uint32_t> rejections(const RuleBook& book, const Facts& facts) {
  std::set<std::uint32_t> out;
  for (const std::uint32_t position : violated_checks(book, facts)) {
    if (speaks(book.index.item(position))) out.insert(position);
  }
  return out;
}

/// Looks for configs that one side accepts and a rule of the other refuses.
class Hunt {
 public:
  Hunt(const RuleBook& accepts, const RuleBook& refuses, const SmtOptions& options)
      : options_(options), accepting_(empty_, accepts), refusing_(empty_, refuses) {}

  enum class Outcome { none, found, undecided };

  Outcome find(std::uint32_t rule, Witness& witness) {
    std::set<std::uint32_t> held;  // rules of the accepting side in the question
    std::vector<std::vector<Assignment>> refused;
    for (int round = 0; round < kMostWitnessRounds; ++round) {
      Smt smt(options_);
      Encoding accepting(smt, accepting_.index(), accepting_.facts);
      Encoding refusing(smt, refusing_.index(), refusing_.facts);
      std::set<FactId> inputs(refusing_.index().inputs(rule).begin(), refusing_.index().inputs(rule).end());
      for (const std::uint32_t position : held) {
        inputs.insert(accepting_.index().inputs(position).begin(), accepting_.index().inputs(position).end());
      }
      std::vector<SoftTerm> soft;
      for (const FactId fact : inputs) open(smt, accepting, refusing, fact, soft);
      smt.require(refusing.violated(rule));
      for (const std::uint32_t position : held) {
        smt.require(smt.negate(accepting.violated(position)));
      }
      for (const std::vector<Assignment>& one : refused) {
        std::vector<Term> all;
        for (const Assignment& setting : one) {
          all.push_back(refusing.equals(refusing.fact_before(setting.fact, 0), Scalar::of(setting.value)));
        }
        smt.require(smt.negate(smt.all(std::move(all))));
      }
      std::uint64_t cost = 0;
      const Answer answer = smt.minimize(soft, {}, cost);
      if (answer == Answer::undecided) return Outcome::undecided;
      if (answer == Answer::unsat)
        return refusing.too_wide() || accepting.too_wide() ? Outcome::undecided : Outcome::none;
      witness.settings.clear();
      for (const FactId fact : refusing.open_keys()) {
        if (smt.value(refusing.stays(fact))) continue;
        const Choice choice = refusing.decode(fact);
        if (!choice.unknown) witness.settings.push_back({fact, true, choice.value});
      }
      const std::set<std::uint32_t> against =
          rejections(accepting_.book, with_changes(accepting_.facts, witness.settings));
      if (against.empty()) {
        if (rejections(refusing_.book, with_changes(refusing_.facts, witness.settings)).contains(rule))
          return Outcome::found;
        refused.push_back(witness.settings);
        continue;
      }
      bool grown = false;
      for (const std::uint32_t position : against) grown |= held.insert(position).second;
      if (!grown) return Outcome::undecided;
    }
    return Outcome::undecided;
  }

  std::string message(std::uint32_t rule, const Witness& witness) const {
    return message_of(refusing_, rule, witness.settings);
  }

 private:
  /// The same choices on both sides; unset means each side's own default. Keys of one side alone stay unset.
  void open(Smt& smt, Encoding& accepting, Encoding& refusing, FactId fact,
            std::vector<SoftTerm>& soft) const {
    if (refusing.is_open(fact) || !is_changeable(accepting_, fact) || !is_changeable(refusing_, fact)) return;
    const auto left = repair_domain(accepting_, fact);
    const auto right = repair_domain(refusing_, fact);
    if (!left || !right) return;
    Domain a;
    Domain b;
    a.choices.push_back(left->choices[0]);
    b.choices.push_back(right->choices[0]);
    const auto add = [&](const Choice& choice) {
      if (!choice.set || choice.unknown) return;
      for (const Choice& known : a.choices) {
        if (known.set && known.value == choice.value) return;
      }
      // Only values that both releases know.
      const auto knows = [&](const std::optional<Domain>& domain) {
        return std::any_of(domain->choices.begin(), domain->choices.end(),
                           [&](const Choice& one) { return one.set && one.value == choice.value; });
      };
      if (!knows(left) || !knows(right)) return;
      a.choices.push_back(choice);
      b.choices.push_back(choice);
    };
    for (const Choice& choice : left->choices) add(choice);
    for (const Choice& choice : right->choices) add(choice);
    if (left->any_subset && right->any_subset) {
      for (const std::string& token : left->tokens) {
        if (std::find(right->tokens.begin(), right->tokens.end(), token) != right->tokens.end())
          a.tokens.push_back(token);
      }
      b.tokens = a.tokens;
      a.any_subset = b.any_subset = true;
    }
    if (a.choices.size() == 1 && !a.any_subset) return;
    const std::size_t choices = a.choices.size();
    accepting.open(fact, a);
    refusing.open(fact, b);
    for (std::size_t i = 0; i < choices; ++i)
      smt.require(smt.same(accepting.chosen(fact, i), refusing.chosen(fact, i)));
    soft.push_back({refusing.stays(fact), 100});
    for (std::size_t i = 1; i < choices; ++i) {
      soft.push_back(
          {smt.negate(refusing.chosen(fact, i)), static_cast<std::uint32_t>(std::min<std::size_t>(i, 60))});
    }
    for (std::size_t token = 0; token < a.tokens.size(); ++token) {
      smt.require(smt.same(accepting.member(fact, token), refusing.member(fact, token)));
      soft.push_back({smt.negate(refusing.member(fact, token)), 2});
    }
  }

  Config empty_;
  SmtOptions options_;
  Subject accepting_, refusing_;
};

/// The rule and all it depends on are the same on both sides, defaults included: nothing can differ because
/// of it.
bool same_on_both(const RuleBook& refuses, const RuleBook& accepts, std::uint32_t rule) {
  const auto other = accepts.index.position_of(refuses.rules.items[rule]);
  if (!other) return false;
  const auto& inputs = refuses.index.inputs(rule);
  if (inputs != accepts.index.inputs(*other)) return false;
  Config empty;
  const Subject a(empty, refuses);
  const Subject b(empty, accepts);
  for (const FactId fact : inputs) {
    const Fact& left = a.facts.values[fact];
    const Fact& right = b.facts.values[fact];
    if (left.state != right.state || left.value != right.value || left.is_version != right.is_version ||
        left.version != right.version)
      return false;
  }
  // The writers between the inputs and the rule must be the same items.
  const auto writers = [&](const RuleBook& book, std::uint32_t position) {
    std::vector<std::uint32_t> items;
    std::vector<std::pair<FactId, std::uint32_t>> pending;
    std::set<std::uint32_t> seen;
    for (const FactId fact : book.index.item(position).reads) pending.emplace_back(fact, position);
    while (!pending.empty()) {
      const auto [fact, before] = pending.back();
      pending.pop_back();
      const auto writer = book.index.last_writer(fact, before);
      if (!writer) continue;
      pending.emplace_back(fact, *writer);
      if (!seen.insert(*writer).second) continue;
      items.push_back(book.rules.items[*writer]);
      for (const FactId read : book.index.item(*writer).reads) pending.emplace_back(read, *writer);
    }
    std::sort(items.begin(), items.end());
    return items;
  };
  return writers(refuses, rule) == writers(accepts, *other);
}

void hunt_all(const RuleBook& accepts, const RuleBook& refuses, const SmtOptions& options,
              std::vector<RuleDifference>& found, std::vector<std::uint32_t>& undecided) {
  Hunt hunt(accepts, refuses, options);
  for (const std::uint32_t rule : refuses.index.checks()) {
    if (!speaks(refuses.index.item(rule)) || same_on_both(refuses, accepts, rule)) continue;
    Witness witness;
    switch (hunt.find(rule, witness)) {
      case Hunt::Outcome::found: {
        std::string message = hunt.message(rule, witness);
        found.push_back({rule, std::move(witness), std::move(message)});
        break;
      }
      case Hunt::Outcome::undecided:
        undecided.push_back(rule);
        break;
      case Hunt::Outcome::none:
        break;
    }
  }
}

}  // namespace

StackDifference compare_stacks(const RuleBook& before, const RuleBook& after, const SmtOptions& options) {
  StackDifference comparison;
  hunt_all(before, after, options, comparison.newly_forbidden, comparison.undecided);
  hunt_all(after, before, options, comparison.newly_allowed, comparison.undecided);
  for (const KeyInfo& key : before.schema.schema().keys()) {
    const bool had = before.schema.find(key.path).spec != nullptr;
    const bool has = after.schema.find(key.path).spec != nullptr;
    if (had && !has) comparison.keys_gone.push_back(key.path);
    if (!had && has) comparison.keys_new.push_back(key.path);
  }
  return comparison;
}

}  // namespace capstan
