#include "compiler/solve/counterexample.h"

#include <optional>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

constexpr int kMostRounds = 30;

class Violator {
 public:
  Violator(const Subject& empty, const RuleProbes& probes, std::uint32_t position, const SmtOptions& options)
      : empty_(empty), probes_(probes), position_(position), options_(options) {}

  Counterexample run() {
    Counterexample best;
    for (Facts& variant : version_variants(empty_, probes_, position_)) {
      subject_.emplace(empty_.config, empty_.book, std::move(variant));
      Counterexample found = run_on_variant();
      if (found.answer == Answer::sat && (best.answer != Answer::sat || (found.alone && !best.alone)))
        best = std::move(found);
      if (best.answer == Answer::sat && best.alone) return best;
    }
    // That no value tried does it is no proof.
    if (best.answer != Answer::sat) best.answer = cannot_exist() ? Answer::unsat : Answer::undecided;
    return best;
  }

 private:
  const RuleItem& item() const { return empty_.index().item(position_); }

  /// The item fires, as the encoding has it.
  Term fires(Encoding& encoding) const {
    if (item().kind == RuleItem::Kind::check) return encoding.violated(position_);
    return item().has_when ? encoding.condition(item().when, position_).yes : kTrue;
  }

  Counterexample run_on_variant() {
    Counterexample any;
    std::set<std::uint32_t> held;
    for (int round = 0; round < kMostRounds; ++round) {
      Counterexample next = solve(held);
      if (next.answer != Answer::sat) {
        if (any.answer == Answer::sat) any.limited = next.answer == Answer::undecided;
        return any.answer == Answer::sat ? any : next;
      }
      any = std::move(next);
      any.alone = true;
      bool grown = false;
      for (const std::uint32_t other : firing_items(subject_->book, any.facts)) {
        const RuleItem& fired = subject_->index().item(other);
        if (other == position_ || fired.kind != RuleItem::Kind::check || fired.finding == FindingKind::advice)
          continue;
        any.alone = false;
        grown |= held.insert(other).second;
      }
      if (any.alone || !grown) return any;
    }
    any.limited = true;
    return any;
  }

  std::set<FactId> inputs_of(const std::set<std::uint32_t>& held) const {
    const RuleIndex& index = subject_->index();
    std::set<FactId> inputs(index.inputs(position_).begin(), index.inputs(position_).end());
    for (const std::uint32_t other : held)
      inputs.insert(index.inputs(other).begin(), index.inputs(other).end());
    return inputs;
  }

  Counterexample solve(const std::set<std::uint32_t>& held) {
    Counterexample out;
    Smt smt(options_);
    Encoding encoding(smt, subject_->index(), subject_->facts);
    std::vector<SoftTerm> soft;
    for (const FactId fact : inputs_of(held)) {
      std::optional<Domain> domain = witness_domain(*subject_, probes_, fact);
      if (!domain) continue;
      encoding.open(fact, std::move(*domain));
      if (encoding.stays(fact) != kTrue) soft.push_back({encoding.stays(fact), 1});
    }
    smt.require(fires(encoding));
    for (const std::uint32_t other : held) smt.require(smt.negate(encoding.violated(other)));
    // The evaluator may refuse what the encoding proposes (a rewrite that changes nothing): look further.
    for (int refused = 0; refused < kMostRounds; ++refused) {
      std::uint64_t cost = 0;
      out.answer = smt.minimize(soft, {}, cost);
      if (out.answer != Answer::sat) {
        if (refused > 0 || encoding.too_wide()) out.answer = Answer::undecided;
        return out;
      }
      out.settings.clear();
      std::vector<Term> here;
      for (const FactId fact : encoding.open_keys()) {
        if (smt.value(encoding.stays(fact))) continue;
        const Choice choice = encoding.decode(fact);
        if (!choice.unknown) out.settings.push_back({fact, choice.set, choice.value});
        here.push_back(state_of(smt, encoding, fact));
      }
      out.facts = with_changes(subject_->facts, out.settings);
      const bool unseen =
          item().kind == RuleItem::Kind::rewrite && item().silent;  // reported of set keys at most
      if (unseen || firing_items(subject_->book, out.facts).contains(position_)) return out;
      smt.require(smt.negate(smt.all(std::move(here))));
    }
    out.answer = Answer::undecided;
    return out;
  }

  /// The state that the last model gives to a key.
  static Term state_of(Smt& smt, const Encoding& encoding, FactId fact) {
    const Domain& domain = encoding.domain(fact);
    for (std::size_t i = 0; i < domain.choices.size(); ++i) {
      if (smt.value(encoding.chosen(fact, i))) return encoding.chosen(fact, i);
    }
    std::vector<Term> parts{encoding.is_subset(fact)};
    for (std::size_t token = 0; token < domain.tokens.size(); ++token) {
      const Term member = encoding.member(fact, token);
      parts.push_back(smt.value(member) ? member : smt.negate(member));
    }
    return smt.all(std::move(parts));
  }

  /// No value of any key, however odd, and no version makes the item fire.
  bool cannot_exist() {
    Facts facts = empty_.facts;
    for (const FactId fact : empty_.index().inputs(position_)) {
      if (!probes_.versions.contains(fact) || is_fixed_by_the_stack(empty_.name(fact))) continue;
      facts.values[fact].state = Fact::State::unknown;
      facts.values[fact].is_version = false;
    }
    Smt smt(options_);
    Encoding encoding(smt, empty_.index(), facts);
    for (const FactId fact : empty_.index().inputs(position_)) {
      const std::string& name = empty_.name(fact);
      if (is_fixed_by_the_stack(name) || probes_.versions.contains(fact)) continue;
      const KeyView view = empty_.key(fact);
      const bool key = view.info != nullptr;
      if (key && view.spec == nullptr) continue;  // the release has no such key: it is none
      if (!key && !name.starts_with("target.") && !name.starts_with("cluster.") && !name.starts_with("env."))
        continue;
      encoding.open(fact, explain_domain(empty_, fact));
    }
    if (item().kind == RuleItem::Kind::check) {
      smt.require(smt.either(encoding.violated(position_), encoding.undecided(position_)));
    } else if (item().has_when) {
      smt.require(smt.negate(encoding.condition(item().when, position_).no));
    }
    return smt.check() == Answer::unsat && !encoding.too_wide();
  }

  const Subject& empty_;
  const RuleProbes& probes_;
  std::uint32_t position_;
  SmtOptions options_;
  std::optional<Subject> subject_;
};

/// Rejects and breaks that are violated, but for those of `known`.
bool add_violated(const RuleBook& book, const Facts& facts, std::set<std::uint32_t>& known, bool& clean) {
  bool grown = false;
  clean = true;
  for (const std::uint32_t position : violated_checks(book, facts)) {
    if (book.index.item(position).finding == FindingKind::advice) continue;
    clean = false;
    grown |= known.insert(position).second;
  }
  return grown;
}

}  // namespace

Accepted find_accepted(const Subject& empty, const RuleProbes& probes, const Assignment& fixed,
                       const SmtOptions& options) {
  Accepted out;
  const Facts base = with_changes(empty.facts, {fixed});
  const Subject subject(empty.config, empty.book, base);
  bool clean = false;
  add_violated(empty.book, base, out.rules, clean);
  if (clean) {
    out.answer = Answer::sat;
    return out;
  }
  for (int round = 0; round < kMostRounds; ++round) {
    Smt smt(options);
    Encoding encoding(smt, empty.index(), subject.facts);
    std::set<FactId> inputs;
    for (const std::uint32_t rule : out.rules)
      inputs.insert(empty.index().inputs(rule).begin(), empty.index().inputs(rule).end());
    std::vector<SoftTerm> soft;
    for (const FactId fact : inputs) {
      if (fact == fixed.fact) continue;
      std::optional<Domain> domain = witness_domain(subject, probes, fact);
      if (!domain) continue;
      encoding.open(fact, std::move(*domain));
      if (encoding.stays(fact) != kTrue) soft.push_back({encoding.stays(fact), 1});
    }
    for (const std::uint32_t rule : out.rules) smt.require(smt.negate(encoding.violated(rule)));
    std::uint64_t cost = 0;
    out.answer = smt.minimize(soft, {}, cost);
    if (out.answer != Answer::sat) {
      if (encoding.too_wide()) out.answer = Answer::undecided;
      return out;
    }
    std::vector<Assignment> settings;
    for (const FactId fact : encoding.open_keys()) {
      if (smt.value(encoding.stays(fact))) continue;
      const Choice choice = encoding.decode(fact);
      if (!choice.unknown) settings.push_back({fact, choice.set, choice.value});
    }
    if (!add_violated(empty.book, with_changes(base, settings), out.rules, clean)) {
      out.answer = clean ? Answer::sat : Answer::undecided;
      return out;
    }
  }
  out.answer = Answer::undecided;
  return out;
}

std::set<std::uint32_t> firing_items(const RuleBook& book, const Facts& facts) {
  std::set<std::uint32_t> positions;
  for (const Violation& violation : evaluate(book.rules, facts).violations) {
    if (violation.undecided) continue;
    if (const auto position = book.index.position_of(violation.item)) positions.insert(*position);
  }
  return positions;
}

Counterexample find_counterexample(const Subject& empty, const RuleProbes& probes, std::uint32_t position,
                                   const SmtOptions& options) {
  return Violator(empty, probes, position, options).run();
}

}  // namespace capstan
