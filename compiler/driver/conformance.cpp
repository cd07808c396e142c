#include "compiler/driver/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/driver/usage_error.h"
#include "compiler/facts/derive.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/message.h"
#include "compiler/ruleset/resolve.h"

namespace capstan {
namespace {

// What the constructor of a config class says of a key that it does not have.
constexpr std::string_view kFieldsStage = "fields";

/// A stack with the versions that a case states, and what follows from it; most cases share one of few.
struct View {
  Stack stack;
  SchemaView schema;
  ActiveRules rules;
  View(Stack chosen, const Schema& schema_of_all, const RuleSet& set)
      : stack(std::move(chosen)), schema(schema_of_all, stack), rules(select(set, stack)) {}
};

class Judge {
 public:
  Judge(const RuleSet& rules, const Schema& schema, const Stack& stack)
      : rules_(rules), schema_(schema), stack_(stack) {}

  void judge(const ConformanceCase& one, const RealVerdict& real, Conformance& out) {
    const View& view = view_of(one);
    std::vector<std::string> fired;
    bool named = false, breaks = false, advice = false, undecided = false;
    for (const auto& [path, setting] : one.config.settings) {
      // Only the model's class is built by name; the other sections of a case are read key by key.
      if (section_of(path) != "model" || view.schema.find(path).spec != nullptr) continue;
      fired.push_back("TY003 " + path);
      named = named || real.stage == kFieldsStage;
    }
    const Evaluation evaluation = evaluate(view.rules, derive_facts(one.config, view.schema, rules_.names));
    for (const Violation& violation : evaluation.violations) {
      const RuleItem& item = rules_.items[violation.item];
      if (item.kind != RuleItem::Kind::check) continue;
      if (violation.undecided) {
        undecided = true;
      } else if (item.finding == FindingKind::rejects) {
        fired.push_back(item.code + ' ' + item.name);
        named = named || std::any_of(item.raises.begin(), item.raises.end(), [&](const std::string& pattern) {
                  return matches_pattern(pattern, real.message);
                });
      } else {
        (item.finding == FindingKind::breaks ? breaks : advice) = true;
      }
    }
    ++out.cases;
    out.with_breaks += breaks ? 1 : 0;
    out.with_advice += advice ? 1 : 0;
    out.undecided += undecided ? 1 : 0;
    out.rejected += real.rejected ? 1 : 0;
    const bool agrees = real.rejected != fired.empty();
    if (agrees) ++out.agreed;
    if (real.rejected && named) ++out.named;
    if (agrees && (!real.rejected || named)) return;
    const auto kind = agrees          ? Disagreement::Kind::unnamed
                      : real.rejected ? Disagreement::Kind::missed
                                      : Disagreement::Kind::false_alarm;
    out.disagreements.push_back({kind, real.id, real.stage, real.message, std::move(fired)});
  }

 private:
  const View& view_of(const ConformanceCase& one) {
    for (const auto& [components, view] : views_) {
      if (components == one.components) return *view;
    }
    Stack stack = stack_;
    for (const auto& [component, version] : one.components) {
      std::erase_if(stack.components, [&name = component](const auto& known) { return known.first == name; });
      stack.components.emplace_back(component, version);
    }
    std::sort(stack.components.begin(), stack.components.end());
    views_.emplace_back(one.components, std::make_unique<View>(std::move(stack), schema_, rules_));
    return *views_.back().second;
  }

  const RuleSet& rules_;
  const Schema& schema_;
  const Stack& stack_;
  std::vector<std::pair<std::vector<std::pair<std::string, Version>>, std::unique_ptr<View>>> views_;
};

/// Percent with so many digits, rounded down, so that 100 is written for all and for nothing less.
std::string percent(std::size_t part, std::size_t whole, int digits) {
  const double scale = digits == 2 ? 100.0 : 10.0;
  const double value = whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{:.{}f}", part == whole ? 100.0 : std::floor(value * scale) / scale, digits);
}

}  // namespace

double Conformance::agreement() const {
  return cases == 0 ? 0 : 100.0 * static_cast<double>(agreed) / static_cast<double>(cases);
}

Conformance judge_table(const RuleSet& rules, const Schema& schema, const Stack& stack,
                        const ConformanceCases& cases, const std::vector<RealVerdict>& verdicts) {
  Conformance conformance;
  conformance.stack = stack.name;
  Judge judge(rules, schema, stack);
  for (const RealVerdict& verdict : verdicts) {
    const auto found = cases.find(verdict.id);
    if (found == cases.end())
      throw UsageError(fmt::format("no file of cases has `{}`, which the verdicts name", verdict.id));
    judge.judge(found->second, verdict, conformance);
  }
  return conformance;
}

std::string summary_line(const Conformance& conformance) {
  return fmt::format("agreement {} % ({}/{}), first reason named {} % ({}/{})",
                     percent(conformance.agreed, conformance.cases, 2), conformance.agreed, conformance.cases,
                     percent(conformance.named, conformance.rejected, 1), conformance.named,
                     conformance.rejected);
}

std::string describe_disagreements(const Conformance& conformance) {
  std::string out;
  for (const Disagreement& one : conformance.disagreements) {
    switch (one.kind) {
      case Disagreement::Kind::missed:
        out += fmt::format("missed       {}: no rule fires; the real code rejects in {}: {}\n", one.id,
                           one.stage, one.message);
        break;
      case Disagreement::Kind::false_alarm:
        out += fmt::format("false alarm  {}: the real code accepts; fired: {}\n", one.id,
                           fmt::join(one.fired, ", "));
        break;
      case Disagreement::Kind::unnamed:
        out += fmt::format("unnamed      {}: fired: {}; the real code says in {}: {}\n", one.id,
                           fmt::join(one.fired, ", "), one.stage, one.message);
        break;
    }
  }
  out += fmt::format(
      "beside: {} of {} cases have findings of kind breaks, {} of kind advice, {} undecided checks\n",
      conformance.with_breaks, conformance.cases, conformance.with_advice, conformance.undecided);
  return out;
}

std::string conformance_page(const std::vector<Conformance>& tables) {
  std::string out =
      "# Agreement with the real framework\n\n"
      "Each line compares Capstan's *rejects* rules of one stack with what the configuration code of that "
      "release did with the\n"
      "same configs: the code was imported and run, not modelled. Findings of the kinds *breaks* and "
      "*advice* do not count.\n"
      "\"Reason named\" counts the configs that the release rejects and for which a rule that fires knows "
      "the message of the\n"
      "release's first failing check. Outside the tables: checks that need process groups, a built model, "
      "data or a GPU.\n\n"
      "Made by `capstan rules conformance --markdown`; the tables are in `tests/conformance/`, and the tests "
      "hold the floor.\n\n"
      "| stack | agreement | cases | reason named | rejected | missed | false alarms |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Conformance& table : tables) {
    const auto count = [&](Disagreement::Kind kind) {
      return std::count_if(table.disagreements.begin(), table.disagreements.end(),
                           [&](const Disagreement& one) { return one.kind == kind; });
    };
    out += fmt::format("| {} | {} % | {} | {} % | {} | {} | {} |\n", table.stack,
                       percent(table.agreed, table.cases, 2), table.cases,
                       percent(table.named, table.rejected, 1), table.rejected,
                       count(Disagreement::Kind::missed), count(Disagreement::Kind::false_alarm));
  }
  return out;
}

}  // namespace capstan
