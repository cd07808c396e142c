// ExpressionResolver: what a name stands for.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ruleset/expression_resolver.h"
#include "compiler/ruleset/version_ranges.h"

namespace capstan {

bool share_frontend(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() || b.empty()) return true;
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& name) { return std::find(b.begin(), b.end(), name) != b.end(); });
}

std::optional<Kinds> ExpressionResolver::target_kinds(std::string_view name) {
  if (name == "frontend" || name == "stack" || name == "gpu") return of_bits(kKindString);
  if (name == "compute_capability" || name == "num_gpus") return of_bits(kKindInteger);
  const std::vector<std::string>& components = schema_.components();
  if (name != "capstan" && std::find(components.begin(), components.end(), name) != components.end())
    return of_bits(kKindVersion);
  return std::nullopt;
}

const std::vector<const KeySpec*>& KeySpecs::of(const KeyInfo& key) {
  const auto [found, is_new] = specs_.try_emplace(&key);
  if (is_new) {
    found->second.reserve(schema_.stacks().size());
    for (const Stack& stack : schema_.stacks()) found->second.push_back(spec_for(key, stack));
  }
  return found->second;
}

std::optional<Kinds> ExpressionResolver::key_kinds(const std::string& name, Span span) {
  const KeyInfo* key = schema_.find(name);
  if (key == nullptr) return std::nullopt;
  std::optional<Kinds> kinds;
  const KeySpec* last = nullptr;
  const std::vector<const KeySpec*>& specs = specs_.of(*key);
  for (const Stack* stack : scope_.stacks) {
    const KeySpec* spec = specs[static_cast<std::size_t>(stack - schema_.stacks().data())];
    if (spec == nullptr || spec == last) continue;
    last = spec;
    kinds = kinds ? join(*kinds, kinds_of(*spec)) : kinds_of(*spec);
  }
  if (!kinds) {
    problem("RU003", fmt::format("none of the releases that the rule applies to has `{}`", name), span);
    return any_kinds();
  }
  // A release without the key reads none.
  kinds->bits = static_cast<std::uint16_t>(kinds->bits | kKindNone);
  return kinds;
}

std::optional<Kinds> ExpressionResolver::defined_kinds(const std::string& name, const DefinedFact& fact,
                                                       Span span) {
  std::optional<Kinds> kinds;
  for (const DefinedFact::Definition& definition : fact.definitions) {
    if (!can_overlap(scope_.applies, definition.applies) ||
        !share_frontend(scope_.frontends, definition.frontends))
      continue;
    kinds = kinds ? join(*kinds, definition.kinds) : definition.kinds;
  }
  if (!kinds) {
    problem("RU009",
            fact.pending.empty()
                ? fmt::format("`{}` is not defined for the releases that the rule applies to", name)
                : fmt::format("`{}` is read before it is defined; the define needs an earlier phase or step",
                              name),
            span);
    return any_kinds();
  }
  kinds->bits = static_cast<std::uint16_t>(kinds->bits | kKindNone);  // where no define is active
  return kinds;
}

void ExpressionResolver::report_unknown_name(const std::string& name, Span span) {
  std::vector<std::string> candidates;
  for (const KeyInfo& key : schema_.keys()) candidates.push_back(key.path);
  for (const auto& [known, fact] : defined_) candidates.push_back(known);
  for (const std::string& component : schema_.components()) candidates.push_back("target." + component);
  const std::string near = nearest(name, candidates);
  problem("RU003",
          fmt::format("no release has a key or fact `{}`{}", name,
                      near.empty() ? "" : fmt::format("; did you mean `{}`?", near)),
          span);
}

std::optional<FactId> ExpressionResolver::resolve_name(const std::string& name, Span span, Kinds& kinds) {
  const std::string_view section = section_of(name);
  std::optional<Kinds> found;
  if (section == kEnvironmentSection && name.size() > section.size()) {
    found = of_bits(kKindString | kKindNone);
  } else if (section == "target" && name.size() > section.size()) {
    found = target_kinds(std::string_view(name).substr(section.size() + 1));
  } else if (const auto defined = defined_.find(name); defined != defined_.end()) {
    found = defined_kinds(name, defined->second, span);
  } else {
    found = key_kinds(name, span);
  }
  if (!found) {
    report_unknown_name(name, span);
    kinds = any_kinds();
    return std::nullopt;
  }
  kinds = *found;
  return names_.intern(name);
}

void ExpressionResolver::problem(const char* code, std::string message, Span span) {
  failed_ = true;
  sink_.problem(code, std::move(message), span);
}

}  // namespace capstan
