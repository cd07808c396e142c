#include "compiler/driver/rule_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler/ruleset/version_ranges.h"

namespace capstan {
namespace {

const char* comparison_text(Comparison comparison) {
  switch (comparison) {
    case Comparison::less:
      return "<";
    case Comparison::less_equal:
      return "<=";
    case Comparison::equal:
      return "=";
    case Comparison::greater_equal:
      return ">=";
    case Comparison::greater:
      return ">";
    case Comparison::not_equal:
      return "!=";
  }
  return "?";
}

/// "0.16", "0.20.0.dev0": as people write it.
std::string short_version(const Version& version) {
  std::string text = to_text(version);
  if (version.stage == 0 && version.patch == 0 && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::vector<std::string> names_of(const std::vector<FactId>& ids, const RuleSet& rules) {
  std::vector<std::string> names;
  for (const FactId id : ids) {
    if (std::find(names.begin(), names.end(), rules.names.name(id)) == names.end())
      names.push_back(rules.names.name(id));
  }
  return names;
}

}  // namespace

std::vector<RuleGroup> group_rules(const RuleSet& rules) {
  std::map<std::string, RuleGroup> groups;
  for (const RuleItem& item : rules.items) {
    if (item.code.empty()) continue;
    RuleGroup& group = groups[item.code];
    group.code = item.code;
    group.items.push_back(&item);
  }
  std::vector<RuleGroup> sorted;
  for (auto& [code, group] : groups) sorted.push_back(std::move(group));
  return sorted;
}

std::string family_of(const RuleItem& item) {
  return std::filesystem::path(item.file).parent_path().filename().string();
}

std::string kind_of(const RuleItem& item) {
  return item.kind == RuleItem::Kind::rewrite ? "rewrite" : finding_kind_name(item.finding);
}

std::string applies_text(const RuleItem& item) {
  if (item.applies.empty()) return "any release";
  std::vector<std::string> parts;
  for (const ResolvedRange& range : item.applies) {
    std::string part = range.component;
    for (const ResolvedBound& bound : range.bounds) {
      part += fmt::format(" {} {}", comparison_text(bound.comparison), short_version(bound.version));
    }
    parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> stacks_of(const RuleGroup& group, const Schema& schema) {
  std::vector<std::string> names;
  for (const Stack& stack : schema.stacks()) {
    const bool active = std::any_of(group.items.begin(), group.items.end(),
                                    [&](const RuleItem* item) { return is_active(*item, stack); });
    if (active) names.push_back(stack.name);
  }
  return names;
}

std::string describe_rule(const RuleGroup& group, const RuleSet& rules, const Schema& schema) {
  const RuleItem& first = group.first();
  std::string out = fmt::format("{} {}\n", first.code, first.name);
  out += fmt::format("  {} ({}), enforced by {}\n", kind_of(first), severity_name(first.severity),
                     enforcer_name(first.enforcer));
  for (const RuleItem* item : group.items) {
    out += fmt::format(
        "  applies to {}{}; judged in {} {}\n", applies_text(*item),
        item->frontends.empty() ? "" : fmt::format(", front-end {}", fmt::join(item->frontends, ", ")),
        rules.phases[static_cast<std::size_t>(item->phase)], item->step);
  }
  const std::vector<std::string> stacks = stacks_of(group, schema);
  out += fmt::format("  active on {}\n", stacks.empty() ? "no stack that names no further component"
                                                        : fmt::format("{}", fmt::join(stacks, ", ")));
  const std::vector<std::string> blamed = names_of(first.blame, rules);
  if (!blamed.empty()) out += fmt::format("  concerns {}\n", fmt::join(blamed, ", "));
  if (!first.message.empty()) out += fmt::format("  says: {}\n", first.message);
  if (!first.why.empty()) out += fmt::format("  why: {}\n", first.why);
  for (const std::string& pattern : first.raises)
    out += fmt::format("  the framework's message: {}\n", pattern);
  for (const ResolvedFix& fix : first.fixes) {
    out += fmt::format("  fix ({}, costs {}): {}\n", applicability_name(fix.applicability),
                       fix.cost == CostClass::free ? "nothing" : cost_class_name(fix.cost), fix.title);
  }
  for (const SourceSyntax& source : first.sources) {
    out += fmt::format("  source: {} {} {}, seen in {}\n", source.repository.text, source.path.text,
                       source.symbol.text, source.seen.text);
  }
  for (const EvidenceSyntax& evidence : first.evidence) {
    out += fmt::format("  evidence: {} {}{}\n", evidence.kind.text, evidence.date.text,
                       evidence.text.text.empty() ? "" : ", " + evidence.text.text);
  }
  out += fmt::format("  file: {}\n", first.file);
  return out;
}

std::string rules_to_json(const std::vector<RuleGroup>& groups, const std::vector<std::string>& documents,
                          const RuleSet& rules, const Schema& schema) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (std::size_t index = 0; index < groups.size(); ++index) {
    const RuleGroup& group = groups[index];
    const RuleItem& first = group.first();
    Json one;
    one["code"] = first.code;
    one["name"] = first.name;
    one["family"] = family_of(first);
    one["kind"] = kind_of(first);
    one["severity"] = severity_name(first.severity);
    one["enforcer"] = enforcer_name(first.enforcer);
    Json ranges = Json::array();
    for (const RuleItem* item : group.items) {
      ranges.push_back({{"applies", applies_text(*item)},
                        {"frontends", item->frontends},
                        {"phase", rules.phases[static_cast<std::size_t>(item->phase)]},
                        {"step", item->step}});
    }
    one["ranges"] = std::move(ranges);
    one["stacks"] = stacks_of(group, schema);
    one["keys"] = names_of(first.blame, rules);
    one["message"] = first.message;
    one["why"] = first.why;
    one["raises"] = first.raises;
    one["fixes"] = Json::array();
    for (const ResolvedFix& fix : first.fixes) {
      one["fixes"].push_back({{"title", fix.title},
                              {"applicability", applicability_name(fix.applicability)},
                              {"cost", cost_class_name(fix.cost)}});
    }
    one["sources"] = Json::array();
    for (const SourceSyntax& source : first.sources) {
      one["sources"].push_back({{"repository", source.repository.text},
                                {"path", source.path.text},
                                {"symbol", source.symbol.text},
                                {"seen", source.seen.text}});
    }
    one["evidence"] = Json::array();
    for (const EvidenceSyntax& evidence : first.evidence) {
      one["evidence"].push_back(
          {{"kind", evidence.kind.text}, {"date", evidence.date.text}, {"text", evidence.text.text}});
    }
    one["file"] = first.file;
    if (index < documents.size() && !documents[index].empty()) one["documentation"] = documents[index];
    all.push_back(std::move(one));
  }
  Json root;
  root["version"] = 1;
  root["rules"] = std::move(all);
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace capstan
