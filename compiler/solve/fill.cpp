#include "compiler/solve/fill.h"

namespace capstan {
namespace {

constexpr int kMostFillRounds = 200;

}  // namespace

std::vector<Assignment> decoded(const Encoding& encoding, const std::vector<OpenKey>& open) {
  std::vector<Assignment> values;
  for (const OpenKey& key : open) {
    const Choice choice = encoding.decode(key.fact);
    if (!choice.unknown) values.push_back({key.fact, choice.set, choice.value});
  }
  return values;
}

Filling fill(const Subject& subject, const std::vector<OpenKey>& open, const std::vector<FactId>& about,
             std::set<std::uint32_t>& rules, const SmtOptions& options) {
  Filling filling;
  Smt smt(options);
  Encoding encoding(smt, subject.index(), subject.facts);
  for (const OpenKey& key : open) encoding.open(key.fact, key.domain);
  const auto require = [&](std::uint32_t rule) { smt.require(smt.negate(encoding.violated(rule))); };
  for (const std::uint32_t rule : rules) require(rule);
  for (int round = 0; round < kMostFillRounds; ++round) {
    filling.answer = smt.check();
    if (filling.answer == Answer::unsat && encoding.too_wide()) filling.answer = Answer::undecided;
    if (filling.answer != Answer::sat) return filling;
    filling.values = decoded(encoding, open);
    bool broken = false;
    bool grown = false;
    for (const std::uint32_t position : violated_checks(subject, filling.values)) {
      if (!forbids(subject.index().item(position)) || !reads_any(subject.index(), position, about)) continue;
      broken = true;
      if (!rules.insert(position).second) continue;
      grown = true;
      require(position);
    }
    if (!broken) return filling;
    if (!grown) break;  // encoding and evaluator disagree: no claim is made
  }
  filling.answer = Answer::undecided;
  return filling;
}

}  // namespace capstan
