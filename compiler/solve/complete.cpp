#include "compiler/solve/complete.h"

#include <algorithm>
#include <set>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/fill.h"

namespace capstan {
namespace {

constexpr int kMostCompletionRounds = 200;
constexpr std::uint32_t kPreferWeight = 20'000'000;
constexpr std::uint32_t kWarningWeight = 40'000;  // more than all defaults together, less than a wish
constexpr std::uint32_t kAdviceWeight = 400;
constexpr std::uint32_t kOtherThanDefault = 100;
constexpr std::uint32_t kPerToken = 3;
constexpr std::uint32_t kCaptureWeight = 1'500;  // layers captured at all, for the widest scope
constexpr std::uint32_t kNoSizeWeight = 5'000;

bool is_scope(const std::string& name) {
  return name == "model.cuda_graph_scope" || name == "model.cuda_graph_modules";
}

/// Some stated layer is a Mamba layer, or that is left open.
bool may_have_mamba(const Subject& subject) {
  const FactNames& names = *subject.facts.names;
  for (const char* const name :
       {"model.is_hybrid_model", "model.hybrid_layer_pattern", "model.hybrid_override_pattern"}) {
    FactId fact = 0;
    if (!names.find(name, fact)) continue;
    const Fact& stated = subject.facts.values[fact];
    if (stated.state == Fact::State::unknown && stated.set) return true;
    if (stated.value == Value(true)) return true;
    if (stated.value.kind() == Value::Kind::string && stated.value.string().find('M') != std::string::npos)
      return true;
  }
  return false;
}

/// A part of the layers that the model has; not the words for the whole layer, the whole iteration or
/// inference.
bool is_layer_part(const Subject& subject, const std::string& token) {
  return !token.starts_with("full") && (token != "mamba" || may_have_mamba(subject));
}

/// 0 layers are no model: a default that only says that nobody stated the size.
bool is_no_size(const Subject& subject, FactId fact, const Choice& choice) {
  const Choice standard = default_choice(subject, fact);
  return effect_of(subject, fact) == KeyEffect::model && standard.value == Value(0) &&
         choice.value == Value(0) && subject.key(fact).spec != nullptr &&
         !subject.key(fact).spec->type.none &&
         (subject.name(fact) == "model.num_layers" || subject.name(fact).ends_with("_size") ||
          subject.name(fact).ends_with("_heads"));
}

/// What is wished for is tried, whatever else suggests itself.
void add_wished(const std::vector<Assignment>& wishes, OpenKey& key) {
  for (const Assignment& wish : wishes) {
    if (wish.fact != key.fact) continue;
    std::vector<Choice>& choices = key.domain.choices;
    const bool known = std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) {
      return !choice.unknown && choice.value == wish.value;
    });
    if (!known) choices.push_back({true, false, wish.value});
  }
}

}  // namespace

Completion complete(const Subject& subject, const CompleteRequest& request) {
  Completion completion;
  const auto may_stay = [&](std::uint32_t position) { return !forbids(subject.index().item(position)); };
  std::vector<OpenKey> keys = open_keys(subject, request.open);
  for (OpenKey& key : keys) add_wished(request.prefer, key);
  std::set<std::uint32_t> rules;
  for (int round = 0; round < kMostCompletionRounds; ++round) {
    Smt smt(request.smt);
    Encoding encoding(smt, subject.index(), subject.facts);
    std::vector<SoftTerm> soft;
    for (const OpenKey& key : keys) encoding.open(key.fact, key.domain);
    // A scope counts where layers are captured: elsewhere it has no effect, and its default is the best.
    Term captured = kTrue;
    if (request.widest_scope) {
      if (FactId fact = 0; subject.facts.names->find("graph.per_layer", fact)) {
        captured =
            encoding.equals(encoding.fact_before(fact, static_cast<std::uint32_t>(subject.index().size())),
                            Scalar::of(Value(true)));
      }
      soft.push_back({captured, kCaptureWeight});
    }
    for (const OpenKey& key : keys) {
      const FactId fact = key.fact;
      const Domain* const domain = &key.domain;
      const Choice standard = default_choice(subject, fact);
      const bool scope = is_scope(subject.name(fact));
      for (std::size_t i = 0; i < domain->choices.size(); ++i) {
        const Choice& choice = domain->choices[i];
        const bool is_default = !standard.unknown && choice.value == standard.value && !choice.set;
        const auto rank = static_cast<std::uint32_t>(std::min<std::size_t>(i, 60));
        std::uint32_t weight = is_default ? 0 : kOtherThanDefault + rank;
        if (scope && request.widest_scope && !choice.set)
          soft.push_back({smt.negate(smt.both(captured, encoding.chosen(fact, i))), 3 * kOtherThanDefault});
        if (is_no_size(subject, fact, choice)) weight += kNoSizeWeight;
        // A list that stands among the choices costs what it costs as a set of tokens.
        if (domain->any_subset && choice.set && choice.value.kind() == Value::Kind::list) {
          weight = kOtherThanDefault;
          for (const std::string& token : domain->tokens) {
            if (has_element(choice.value.list(), Value(token)) != (scope && is_layer_part(subject, token)))
              weight += kPerToken;
          }
        }
        if (weight > 0) soft.push_back({smt.negate(encoding.chosen(fact, i)), weight});
      }
      if (domain->any_subset) {
        soft.push_back({smt.negate(encoding.is_subset(fact)), kOtherThanDefault});
        for (std::size_t token = 0; token < domain->tokens.size(); ++token) {
          // Scopes as wide as the rules let them be, other lists as short.
          const Term member = encoding.member(fact, token);
          const bool part = scope && is_layer_part(subject, domain->tokens[token]);
          const Term wanted = part ? smt.same(member, captured) : smt.negate(member);
          soft.push_back({smt.implies(encoding.is_subset(fact), wanted), kPerToken});
        }
      }
    }
    for (std::size_t i = 0; i < request.prefer.size(); ++i) {
      const Assignment& wish = request.prefer[i];
      const Term term = encoding.equals(encoding.fact_before(wish.fact, 0), Scalar::of(wish.value));
      soft.push_back({term, kPreferWeight >> std::min<std::size_t>(i, 8)});
    }
    for (const std::uint32_t rule : rules) {
      const Term holds = smt.negate(encoding.violated(rule));
      if (may_stay(rule))
        soft.push_back({holds, subject.index().item(rule).finding == FindingKind::advice ? kAdviceWeight
                                                                                         : kWarningWeight});
      else
        smt.require(holds);
    }
    std::uint64_t cost = 0;
    completion.answer = smt.minimize(soft, {}, cost);
    if (completion.answer == Answer::undecided) return completion;
    if (completion.answer == Answer::unsat) {
      completion.conflicts = find_conflicts(subject, request.open, 8, request.smt);
      return completion;
    }
    completion.values = decoded(encoding, keys);
    bool grown = false;
    bool broken = false;
    completion.remaining.clear();
    for (const std::uint32_t position : violated_checks(subject, completion.values)) {
      grown |= rules.insert(position).second;
      if (may_stay(position))
        completion.remaining.push_back(position);
      else
        broken = true;
    }
    if (grown) continue;
    if (broken) completion.answer = Answer::undecided;  // encoding and evaluator disagree: no claim is made
    return completion;
  }
  completion.answer = Answer::undecided;
  return completion;
}

}  // namespace capstan
