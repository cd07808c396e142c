#include "compiler/facts/stack_choice.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/diagnostics/codes.h"

namespace capstan {
namespace {

/// The component whose releases number the stacks of a front-end.
std::string_view leading_component(std::string_view frontend) {
  if (frontend == "bridge") return "megatron-bridge";
  if (frontend == "megatron-lm") return "megatron-lm";
  return "megatron-core";
}

/// Front-ends that others call by other names. verl and slime build Megatron Core's own config objects.
std::string frontend_of(std::string_view written) {
  if (written == "megatron-bridge") return "bridge";
  if (written == "verl" || written == "slime" || written == "megatron-core") return "core";
  return std::string(written);
}

bool is_pinned_by_stacks(std::string_view component) {
  return component == "megatron-core" || component == "megatron-bridge" || component == "megatron-lm";
}

bool same_release(const Version& a, const Version& b) {
  return a.major == b.major && a.minor == b.minor;
}

bool is_development(const Stack& stack) {
  return stack.name.ends_with("-head");
}

struct StatedVersion {
  std::string component;
  Version version;
  Span place;
  bool release_line = false;  ///< "0.17": any patch release of it
};

/// How well a stack fits the keys that a config sets, for configs that name no release.
struct Fit {
  const Stack* stack = nullptr;
  std::size_t points =
      0;  ///< two for a key under the release's own spelling, one for an older spelling that it still reads
};

void report_target(std::string message, Span place, std::string help, Sink& sink) {
  Diagnostic diagnostic = start_problem("TG001", std::move(message), place);
  diagnostic.keys = {"target"};
  if (!help.empty()) diagnostic.notes.push_back({Note::Kind::help, std::move(help), {}});
  sink.report(std::move(diagnostic));
}

class Chooser {
 public:
  Chooser(const Config& config, const Schema& schema, Sink& sink)
      : config_(config), schema_(schema), sink_(sink) {}

  std::optional<StackChoice> choose(const std::string& target_option) {
    if (!read_versions()) return std::nullopt;
    std::optional<StackChoice> choice;
    if (!target_option.empty()) {
      choice = named(target_option, {});
    } else if (const Setting* stack = set("target.stack")) {
      if (stack->value.kind() != Value::Kind::string) {
        report("`target.stack` must be the name of a stack", stack->origin.value);
        return std::nullopt;
      }
      choice = named(stack->value.string(), stack->origin.value);
    } else {
      choice = inferred();
    }
    if (choice && !override_components(*choice)) return std::nullopt;
    return choice;
  }

 private:
  const Setting* set(std::string_view path) const {
    const Setting* setting = config_.find(path);
    return setting == nullptr || setting->value.is_none() || setting->value == Value("?") ? nullptr : setting;
  }

  void report(std::string message, Span place, std::string help = {}) {
    report_target(std::move(message), place, std::move(help), sink_);
  }

  /// Versions of components in section `target`. False after a report.
  bool read_versions() {
    bool ok = true;
    const auto first = config_.settings.lower_bound("target.");
    for (auto at = first; at != config_.settings.end() && at->first.starts_with("target."); ++at) {
      std::string component = at->first.substr(7);
      std::replace(component.begin(), component.end(), '_', '-');
      const bool minimum = component == "transformer-engine-min";
      if (minimum) component = "transformer-engine";
      const std::vector<std::string>& known = schema_.components();
      if (component == "capstan" || !std::binary_search(known.begin(), known.end(), component)) continue;
      const Setting& setting = at->second;
      if (setting.value.is_none() || setting.value == Value("?")) continue;
      const auto version =
          setting.value.kind() == Value::Kind::string ? parse_version(setting.value.string()) : std::nullopt;
      if (!version) {
        report(fmt::format("`{}` is {}, which is no version", at->first, to_text(setting.value)),
               setting.origin.value, "versions are strings such as \"2.10\" or \"0.16.0rc0\"");
        ok = false;
        continue;
      }
      const auto stated = std::find_if(versions_.begin(), versions_.end(), [&](const StatedVersion& other) {
        return other.component == component;
      });
      const std::string& text = setting.value.string();
      const bool release_line = std::count(text.begin(), text.end(), '.') < 2;
      const StatedVersion entry{component, *version, setting.origin.value, release_line};
      if (stated == versions_.end()) {
        versions_.push_back(entry);
      } else if (!minimum) {
        *stated = entry;
      }
    }
    return ok;
  }

  std::optional<StackChoice> named(const std::string& name, Span place) {
    if (const Stack* stack = schema_.find_stack(name)) return StackChoice{*stack, false, {}, place};
    report_unknown_stack(name, schema_, place, sink_);
    return std::nullopt;
  }

  /// Candidates by what is stated of front-end and versions; then by the keys that the config sets.
  std::optional<StackChoice> inferred() {
    std::string frontend;
    Span place;
    std::string stated;
    if (const Setting* setting = set("target.frontend")) {
      if (setting->value.kind() != Value::Kind::string) {
        report("`target.frontend` must be a string", setting->origin.value);
        return std::nullopt;
      }
      frontend = frontend_of(setting->value.string());
      place = setting->origin.value;
      stated = fmt::format("front-end {}", to_text(setting->value));
      if (frontend != "bridge" && frontend != "megatron-lm" && frontend != "core") {
        const std::string near =
            nearest(setting->value.string(), {"bridge", "megatron-bridge", "megatron-lm", "core"});
        report(fmt::format("no front-end is named {}", to_text(setting->value)), place,
               near.empty() ? "known front-ends: `bridge`, `megatron-lm`, `core`"
                            : fmt::format("did you mean `{}`?", near));
        return std::nullopt;
      }
    }
    std::vector<const Stack*> candidates = candidates_of(frontend);
    std::string pinned;
    for (const StatedVersion& version : versions_) {
      if (!is_pinned_by_stacks(version.component)) continue;
      std::vector<const Stack*> matching;
      for (const Stack* stack : candidates) {
        const Version* own = stack->version_of(version.component);
        if (own != nullptr && same_release(*own, version.version)) matching.push_back(stack);
      }
      if (matching.empty()) {
        report_unknown_release(version, candidates);
        return std::nullopt;
      }
      candidates = std::move(matching);
      pinned += (pinned.empty() ? "" : ", ") + fmt::format("{} {}", version.component, written(version));
      if (!place.exists()) place = version.place;
    }
    if (candidates.empty()) {
      report("no stack is known", place);
      return std::nullopt;
    }
    // One candidate per front-end order: bridge before megatron-lm before core; within, newest release first.
    std::stable_sort(candidates.begin(), candidates.end(), [](const Stack* a, const Stack* b) {
      if (a->frontend != b->frontend) return frontend_order(a->frontend) < frontend_order(b->frontend);
      if (is_development(*a) != is_development(*b)) return !is_development(*a);
      const auto version = [](const Stack* stack) {
        const Version* found = stack->version_of(leading_component(stack->frontend));
        return found == nullptr ? Version{} : *found;
      };
      return version(b) < version(a);
    });
    const Stack* newest = candidates.front();
    const Stack* best = best_fit(candidates);
    StackChoice choice{*best, true, {}, place};
    choice.reason = stated.empty() ? "" : stated + "; ";
    if (pinned.empty()) {
      choice.reason += "no release is stated; " + fit_reason(*best, *newest, "newest one");
    } else if (candidates.size() == 1) {
      choice.assumed = false;
      choice.reason += pinned + " is its release";
    } else {
      std::string names;
      for (const Stack* stack : candidates) names += (names.empty() ? "" : ", ") + stack->name;
      choice.reason +=
          fmt::format("{} is that of {}; {}", pinned, names,
                      fit_reason(*best, *newest, "no key speaks for another one than the first"));
    }
    return choice;
  }

  std::vector<const Stack*> candidates_of(const std::string& frontend) const {
    std::vector<const Stack*> candidates;
    const bool core_stated =
        std::any_of(versions_.begin(), versions_.end(),
                    [](const StatedVersion& version) { return version.component == "megatron-core"; });
    for (const Stack& stack : schema_.stacks()) {
      // Core alone is nobody's front-end unless somebody says so.
      if (frontend.empty() ? stack.frontend != "core" || core_stated : stack.frontend == frontend) {
        candidates.push_back(&stack);
      }
    }
    return candidates;
  }

  static int frontend_order(std::string_view frontend) {
    return frontend == "bridge" ? 0 : frontend == "megatron-lm" ? 1 : 2;
  }

  static std::string written(const StatedVersion& version) {
    return version.release_line ? fmt::format("{}.{}", version.version.major, version.version.minor)
                                : to_text(version.version);
  }

  void report_unknown_release(const StatedVersion& version, const std::vector<const Stack*>& candidates) {
    std::string known;
    for (const Stack* stack : candidates) {
      if (const Version* own = stack->version_of(version.component)) {
        known +=
            fmt::format("{}{}.{} (`{}`)", known.empty() ? "" : ", ", own->major, own->minor, stack->name);
      }
    }
    report(fmt::format("no known stack has {} {}", version.component, to_text(version.version)),
           version.place, known.empty() ? "" : "known releases: " + known);
  }

  /// Two points when the stack has the key under this spelling and knows the value, one when only an older
  /// spelling.
  std::size_t points_of(const KeyInfo& key, const Value& value, const Stack& stack) const {
    const KeySpec* spec = spec_for(key, stack);
    if (spec == nullptr) return 0;
    if (value.kind() == Value::Kind::string && !spec->values.empty() && !spec->values_are_open &&
        std::find(spec->values.begin(), spec->values.end(), value.string()) == spec->values.end()) {
      return 0;
    }
    return is_native(key, stack, schema_) ? 2 : 1;
  }

  /// Most points; the earlier of equals.
  const Stack* best_fit(const std::vector<const Stack*>& candidates) const {
    std::vector<Fit> fits_of;
    for (const Stack* stack : candidates) fits_of.push_back({stack, 0});
    for (const auto& [path, setting] : config_.settings) {
      const KeyInfo* key = schema_.find(path);
      if (key == nullptr) continue;
      for (Fit& fit : fits_of) fit.points += points_of(*key, setting.value, *fit.stack);
    }
    const Fit* best = &fits_of.front();
    for (const Fit& fit : fits_of) {
      if (fit.points > best->points) best = &fit;
    }
    return best->stack;
  }

  /// Why `best` and not the first candidate; `otherwise` where it is the first.
  std::string fit_reason(const Stack& best, const Stack& first, const std::string& otherwise) const {
    if (best.name == first.name) return otherwise;
    for (const auto& [path, setting] : config_.settings) {
      const KeyInfo* key = schema_.find(path);
      if (key != nullptr && points_of(*key, setting.value, best) > points_of(*key, setting.value, first))
        return fmt::format("`{}` speaks for it, not for {}", path, first.name);
    }
    return "its keys fit best";
  }

  bool override_components(StackChoice& choice) {
    for (const StatedVersion& version : versions_) {
      if (is_pinned_by_stacks(version.component)) {
        // A release that no stack has would be judged by rules of another one.
        const bool known =
            std::any_of(schema_.stacks().begin(), schema_.stacks().end(), [&](const Stack& stack) {
              const Version* own = stack.version_of(version.component);
              return own != nullptr && same_release(*own, version.version);
            });
        if (!known) {
          std::vector<const Stack*> all;
          for (const Stack& stack : schema_.stacks()) all.push_back(&stack);
          report_unknown_release(version, all);
          return false;
        }
      }
      auto& components = choice.stack.components;
      const auto found = std::find_if(components.begin(), components.end(),
                                      [&](const auto& entry) { return entry.first == version.component; });
      if (found == components.end()) {
        components.emplace_back(version.component, version.version);
      } else if (!version.release_line || !same_release(found->second, version.version)) {
        found->second = version.version;
      }
    }
    std::sort(choice.stack.components.begin(), choice.stack.components.end());
    return true;
  }

  const Config& config_;
  const Schema& schema_;
  Sink& sink_;
  std::vector<StatedVersion> versions_;
};

}  // namespace

void report_unknown_stack(const std::string& name, const Schema& schema, Span place, Sink& sink) {
  std::vector<std::string> names;
  for (const Stack& stack : schema.stacks()) names.push_back(stack.name);
  const std::string near = nearest(name, names);
  std::string listed;
  for (const std::string& known : names) listed += (listed.empty() ? "`" : ", `") + known + '`';
  report_target(fmt::format("no stack is named {}", to_text(Value(name))), place,
                near.empty() ? "known stacks: " + listed : fmt::format("did you mean `{}`?", near), sink);
}

std::optional<StackChoice> choose_stack(const Config& config, const Schema& schema,
                                        const std::string& target_option, Sink& sink) {
  return Chooser(config, schema, sink).choose(target_option);
}

std::string stack_words(const StackChoice& choice) {
  if (choice.reason.empty()) return choice.stack.name;
  return fmt::format("{} ({}{})", choice.stack.name, choice.assumed ? "assumed: " : "", choice.reason);
}

}  // namespace capstan
