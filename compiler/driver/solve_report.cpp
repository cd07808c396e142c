#include "compiler/driver/solve_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace capstan {

std::string statement(const SolveSession& session, FactId fact, const std::vector<Assignment>& changes) {
  const Subject& subject = session.subject();
  for (const Assignment& change : changes) {
    if (change.fact == fact) return fmt::format("`{} = {}`", subject.name(fact), to_text(change.value));
  }
  const Fact& now = subject.facts.values[fact];
  if (now.state == Fact::State::unknown) return fmt::format("`{}` (open)", subject.name(fact));
  return fmt::format("`{} = {}`", subject.name(fact),
                     now.is_version ? to_text(now.version) : to_text(now.value));
}

std::string describe_conflict(const SolveSession& session, const Conflict& conflict,
                              const std::string& message, const std::vector<Assignment>& changes) {
  const RuleItem& item = session.subject().index().item(conflict.position);
  std::string out = fmt::format("  {} {}: {}\n", item.code, item.name, message);
  for (const Participant& participant : conflict.participants) {
    const bool wanted = std::any_of(changes.begin(), changes.end(), [&](const Assignment& change) {
      return change.fact == participant.fact;
    });
    out += fmt::format("    because {}  ({})\n", statement(session, participant.fact, changes),
                       wanted ? "asked for" : session.place_of(participant.fact));
  }
  if (conflict.minimal == Answer::undecided)
    out += "    undecided whether each of these takes part; `--timeout` raises the limit\n";
  if (!item.why.empty()) out += fmt::format("    why: {}\n", item.why);
  return out;
}

std::string describe_minimal_conflict(const SolveSession& session, const MinimalConflict& conflict,
                                      const std::vector<FactId>& open, const std::vector<Assignment>& changes,
                                      std::size_t indent) {
  const Subject& subject = session.subject();
  const std::string lead(indent, ' ');
  std::string out;
  for (const std::uint32_t rule : conflict.rules) {
    const RuleItem& item = subject.index().item(rule);
    const auto& inputs = subject.index().inputs(rule);
    std::string because;
    for (const FactId key : conflict.keys) {
      if (!std::binary_search(inputs.begin(), inputs.end(), key)) continue;
      because += (because.empty() ? "" : " and ") + statement(session, key, changes);
    }
    std::string about;
    for (const FactId fact : inputs) {
      const bool given = std::any_of(changes.begin(), changes.end(),
                                     [fact](const Assignment& change) { return change.fact == fact; });
      if (!given && std::find(open.begin(), open.end(), fact) != open.end())
        about += (about.empty() ? "" : ", ") + fmt::format("`{}`", subject.name(fact));
    }
    out += fmt::format("{}{}{} ({}) {}\n", lead, because.empty() ? "" : "because of " + because + ", ",
                       item.code, item.name, about.empty() ? "does not hold" : "limits " + about);
  }
  for (const FactId key : conflict.keys) {
    const bool asked = std::any_of(changes.begin(), changes.end(),
                                   [key](const Assignment& change) { return change.fact == key; });
    out += fmt::format("{}{}  ({})\n", lead, statement(session, key, changes),
                       asked ? "asked for" : session.place_of(key));
  }
  return out;
}

std::string describe_repair(const SolveSession& session, const Repair& repair, std::size_t number) {
  return fmt::format("  {}. {} ({}, {})\n", number, describe(session.subject(), repair.changes),
                     cost_class_name(repair.cost), applicability_name(repair.applicability));
}

std::string count_of(std::uint64_t count, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace capstan
